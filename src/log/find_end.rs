//! Where a log ends: from the mark if it can be believed, else from a scan. Changes nothing.

use std::io;

use crate::log::evidence::Border;
use crate::log::extent::Extent;
use crate::log::format::{Format, FrameOf};
use crate::log::framing::{Frame, Framing};
use crate::log::space::Space;
use crate::mode::Depth;
use crate::scan::{Damage, Scanned, Scanner, Stop, Verdict};
use crate::search::{end_of_data, find_intact};
use crate::sidecar::{INDEX_BLOCK_BYTES, Mark, MarkUse};
use crate::storage::File;

/// What a look at the log found.
#[derive(Clone, Debug)]
pub struct Findings {
    /// The valid prefix.
    pub extent: Extent,
    /// Whether the number of the first record is known.
    pub numbered: bool,
    /// Records follow a header that never reached the disk: none of them is the log's.
    pub headless: bool,
    /// How the log ends.
    pub verdict: Verdict,
    /// The first damage. If it lies before the first record, cutting does not mend it.
    pub damage: Option<Damage>,
    /// Whether the valid prefix ends before a whole record that is only longer than the caller's limit.
    pub beyond_limit: bool,
    /// What became of the mark.
    pub mark: MarkUse,
    /// Whether the records are numbered as the mark numbers them, and so as the index does that it
    /// vouches for. A scan from the head on does not know how many were dropped before.
    pub numbered_by_mark: bool,
    /// Byte up to which the mark says the log is durable.
    pub durable_end: Option<u64>,
    /// Byte from which on nothing was acknowledged. A mark that was closed does not say: another
    /// program may have appended since.
    pub unacknowledged_from: Option<u64>,
    /// Bytes looked at.
    pub scanned_bytes: u64,
    /// Records looked at.
    pub scanned_records: u64,
    /// Byte after the last one that is not zero, at least the end of the valid prefix.
    pub data_end: u64,
    /// Byte after the last one there is.
    pub file_end: u64,
    /// Where blocks of records end, as noticed on the way: ordinal, and byte.
    pub blocks: Vec<(u64, u64)>,
}

impl Findings {
    /// The damage, unless it is a torn tail.
    pub fn corruption(&self) -> Option<Damage> {
        self.damage.clone().filter(|_| self.verdict == Verdict::Corrupt)
    }

    /// Whether the mark is this log's.
    pub fn mark_is_ours(&self) -> bool {
        matches!(self.mark, MarkUse::Used | MarkUse::Lost)
    }

    fn note_beyond_limit<F: Format>(&mut self, beyond_limit: bool) {
        self.beyond_limit = beyond_limit;
        if let (true, Some(damage)) = (beyond_limit, &mut self.damage) {
            damage.reason.push_str(&beyond_limit_advice::<F>());
        }
    }

    /// Number of the first record, where it is known.
    pub fn first(&self) -> Option<u64> {
        Some(self.extent.first).filter(|_| self.numbered)
    }
}

/// What to do about a record that is only longer than the caller's limit.
pub fn beyond_limit_advice<F: Format>() -> String {
    format!("; this {} is whole, so raise {}", F::NOUN, F::LIMIT)
}

/// The end of what a mark vouches for, and the number of the record there.
pub fn end_of(mark: &Mark, numbered: bool) -> Border {
    Border { offset: mark.end, ordinal: mark.first.checked_add(mark.records).filter(|_| numbered) }
}

/// What is known before a log's end is looked for.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// The mark beside the log, whatever log it is of.
    pub mark: Option<Mark>,
    /// Whether there is a mark that cannot be read.
    pub damaged_mark: bool,
    /// Number of the first record, as the log's files say it.
    pub first: Option<u64>,
    /// How much to look at.
    pub depth: Depth,
}

/// Find the end of a log.
pub fn find_end<F: Format>(format: &F, space: &Space, known: Known) -> io::Result<Findings> {
    let Known { mark, damaged_mark, first, depth } = known;
    let possible = mark.filter(is_possible::<F>);
    let damaged_mark = damaged_mark || (mark.is_some() && possible.is_none());
    let mut walk = Walk::new(format, space);
    let start = Extent::empty(first.unwrap_or(0), space.start);
    let Some(mark) = possible else {
        let none = if damaged_mark { MarkUse::Damaged } else { MarkUse::Missing };
        if depth == Depth::Begin {
            return Ok(walk.unread(start, none));
        }
        if depth == Depth::Quick && F::Framing::TRAILER_BYTES > 0 {
            if let Some(extent) = walk.hop(start)? {
                return walk.findings(extent, none, space.start);
            }
            walk = Walk::new(format, space);
        }
        let (extent, stop) = walk.check(start, space.end)?;
        return walk.conclude_carefully(extent, stop, none, space.start);
    };
    let anchored = walk.is_anchored(&mark)?;
    if depth == Depth::Begin {
        let ours = mark.start == space.start && (anchored || walk.has_same_first(&mark)?);
        return Ok(match ours {
            true => walk.unread_by_mark(&mark),
            false => walk.unread(start, MarkUse::Missing),
        });
    }
    if mark.end == space.start && mark.start < mark.end && !mark.closed {
        // All that it vouches for was dropped, and nothing was appended since.
        return walk.after_mark(Extent::empty(mark.first + mark.records, space.start), &mark);
    }
    if anchored {
        // An empty log takes the number of its first record from the file.
        let by_file = first.filter(|_| mark.records == 0 && mark.start == space.start);
        if mark.start == space.start && depth == Depth::Quick {
            let extent = Extent::of_mark(&mark);
            let first = by_file.unwrap_or(extent.first);
            return walk.after_mark(Extent { first, ..extent }, &mark);
        }
        // A prefix was dropped since, or every record is to be checked.
        let (extent, _) = walk.check(start, mark.end)?;
        if extent.end == mark.end {
            // Numbered so that the record at the mark's end keeps its ordinal: the index has those,
            // and the next mark vouches for it again.
            let first = by_file.or((mark.first + mark.records).checked_sub(extent.records));
            let extent = Extent { first: first.unwrap_or(0), ..extent };
            let shift = extent.first.wrapping_sub(start.first);
            for (ordinal, _) in &mut walk.blocks {
                *ordinal = ordinal.wrapping_add(shift);
            }
            let findings = walk.after_mark(extent, &mark)?;
            return Ok(Findings { numbered_by_mark: first.is_some(), ..findings });
        }
        walk = Walk::new(format, space);
    }
    let (extent, stop) = walk.check(start, space.end)?;
    // Only another intact first record proves that the mark is not this log's.
    let comparable = mark.start == space.start && extent.records > 0;
    let same_start = !comparable || extent.first_sum == mark.first_sum;
    if mark.records == 0 || !same_start || extent.end >= mark.end {
        return walk.conclude_carefully(extent, stop, MarkUse::Foreign, space.start);
    }
    walk.lost(extent, stop, &mark)
}

/// Whether a whole record begins at a byte that is only longer than the caller's limit.
pub fn begins_beyond_limit<F: Format>(format: &F, space: &Space, at: u64) -> io::Result<bool> {
    let (file, end) = (&*space.file, space.end);
    let mut scanner = Scanner::of_frames(format.framing(), at, end);
    match scanner.next(file)? {
        Scanned::Stop { why, .. } => is_beyond_limit(format, file, at, &why, end),
        Scanned::Record { .. } | Scanned::End => Ok(false),
    }
}

/// Whether what stops a walk at `at` is a whole record that is only longer than the caller's limit.
pub fn is_beyond_limit<F: Format>(
    format: &F,
    file: &dyn File,
    at: u64,
    why: &Stop,
    end: u64,
) -> io::Result<bool> {
    why.len_beyond_limit().map_or(Ok(false), |len| format.is_beyond_limit(file, at, len, end))
}

/// Whether a log has exactly the last record that a mark names, where it names it.
pub fn anchored<F: Format>(format: &F, space: &Space, mark: &Mark) -> io::Result<bool> {
    let possible = is_possible::<F>(mark) && mark.start == space.start && mark.records > 0;
    Ok(possible && Walk::new(format, space).is_anchored(mark)?)
}

/// Whether a mark of this log was made for another file: the log was copied, and what the mark vouches
/// for may never have been in the copy.
pub fn is_of_another_file(space: &Space, mark: &Mark) -> io::Result<bool> {
    Ok(mark.start == space.start && !mark.file.is_still(space.file.id()?))
}

/// Whether a mark's numbers can be those of any log, so that counting with them cannot overflow.
fn is_possible<F: Format>(mark: &Mark) -> bool {
    let shortest = F::Framing::RECORD_BYTES_MIN;
    let bytes = mark.end.saturating_sub(mark.start);
    let filled = match mark.records {
        0 => mark.start == mark.end,
        records => {
            mark.last_offset >= mark.start
                && (records == 1) == (mark.last_offset == mark.start)
                && mark.end.saturating_sub(mark.last_offset) >= shortest
        }
    };
    filled && mark.records <= bytes / shortest && mark.first.checked_add(mark.records).is_some()
}

/// Where blocks of records end between a known border and `end`, by lengths alone: ordinal of the
/// record there, and byte. Stops at damage.
pub fn blocks_by_lengths<F: Format>(
    file: &dyn File,
    framing: F::Framing,
    from: Extent,
    end: u64,
) -> io::Result<Vec<(u64, u64)>> {
    let mut blocks = Vec::new();
    walk_records(file, framing.by_lengths(), from, end, &mut blocks)?;
    Ok(blocks)
}

/// Walk intact records from the end of `extent` on, and note where blocks end.
fn walk_records<C: Framing>(
    file: &dyn File,
    framing: C,
    mut extent: Extent,
    end: u64,
    blocks: &mut Vec<(u64, u64)>,
) -> io::Result<(Extent, Option<Stop>)> {
    let mut scanner = Scanner::of_frames(framing, extent.end, end);
    if C::LINKED && extent.records > 0 {
        // What follows is held against the last record, too.
        scanner.seek(extent.last_offset);
        scanner.next(file)?;
    }
    let mut block_end = extent.end.saturating_add(INDEX_BLOCK_BYTES);
    loop {
        match scanner.next(file)? {
            Scanned::Record { offset, frame } => {
                extent.push(offset, frame);
                if extent.end >= block_end {
                    blocks.push((extent.next(), extent.end));
                    block_end = extent.end + INDEX_BLOCK_BYTES;
                }
            }
            Scanned::End => return Ok((extent, None)),
            Scanned::Stop { why, .. } => return Ok((extent, Some(why))),
        }
    }
}

struct Walk<'a, F: Format> {
    format: &'a F,
    space: &'a Space,
    scanned_records: u64,
    blocks: Vec<(u64, u64)>,
}

impl<'a, F: Format> Walk<'a, F> {
    fn new(format: &'a F, space: &'a Space) -> Self {
        Self { format, space, scanned_records: 0, blocks: Vec::new() }
    }

    fn file(&self) -> &'a dyn File {
        &*self.space.file
    }

    fn check(&mut self, from: Extent, end: u64) -> io::Result<(Extent, Option<Stop>)> {
        let framing = self.format.framing();
        let found = walk_records(self.file(), framing, from, end, &mut self.blocks)?;
        self.scanned_records += found.0.records - from.records;
        Ok(found)
    }

    /// Whether the log has exactly the record that the mark names, where it names it.
    fn is_anchored(&self, mark: &Mark) -> io::Result<bool> {
        let Space { start, end, .. } = *self.space;
        if mark.records == 0 {
            // Nothing in the log to hold it against but the file itself.
            return Ok(mark.file.is_still(self.file().id()?) && mark.end == start);
        }
        if mark.end > end || mark.last_offset < start {
            return Ok(false);
        }
        let mut scanner = Scanner::of_frames(self.format.framing(), mark.last_offset, mark.end);
        let Scanned::Record { frame, .. } = scanner.next(self.file())? else { return Ok(false) };
        let frame: FrameOf<F> = frame;
        Ok(frame.sum() == mark.last_sum && scanner.position() == mark.end)
    }

    /// Whether the log begins with the record that the mark's log begins with.
    fn has_same_first(&self, mark: &Mark) -> io::Result<bool> {
        let Space { start, end, .. } = *self.space;
        let mut scanner = Scanner::of_frames(self.format.framing(), start, end);
        let first: Scanned<FrameOf<F>> = scanner.next(self.file())?;
        Ok(matches!(first, Scanned::Record { frame, .. } if frame.sum() == mark.first_sum))
    }

    /// Hop from length to length. Only a chain that ends exactly at the end of the file, with an
    /// intact last record, is believed.
    fn hop(&mut self, start: Extent) -> io::Result<Option<Extent>> {
        let framing = self.format.framing();
        let by_lengths = framing.by_lengths();
        let end = self.space.end;
        let (extent, stop) = walk_records(self.file(), by_lengths, start, end, &mut self.blocks)?;
        self.scanned_records = extent.records;
        if stop.is_some() || extent.end != end || self.space.gap.is_some() {
            return Ok(None);
        }
        if extent.records == 0 {
            return Ok(Some(extent));
        }
        let mut last = Scanner::of_frames(framing, extent.last_offset, extent.end);
        let intact = matches!(last.next(self.file())?, Scanned::Record { .. });
        Ok(intact.then_some(extent))
    }

    /// What lies after a mark. While the mark is open, all of it is unacknowledged, and whatever is
    /// not a record is a torn tail; after a closed one, the careful rule holds.
    fn after_mark(mut self, from: Extent, mark: &Mark) -> io::Result<Findings> {
        let (extent, stop) = self.check(from, self.space.end)?;
        let mut findings = match mark.closed {
            true => self.conclude_carefully(extent, stop, MarkUse::Used, from.end)?,
            false => self.conclude_torn(extent, stop, from.end)?,
        };
        findings.durable_end = Some(mark.end);
        findings.unacknowledged_from = Some(mark.end).filter(|_| !mark.closed);
        Ok(findings)
    }

    fn conclude_torn(
        mut self,
        extent: Extent,
        stop: Option<Stop>,
        from: u64,
    ) -> io::Result<Findings> {
        let mut findings = self.findings(extent, MarkUse::Used, from)?;
        let gap = self.space.gap.is_some();
        if extent.end < self.space.end || gap {
            let beyond_limit = self.is_beyond_limit(&extent, stop.as_ref())?;
            // Zeros alone were reserved and never written: nothing is damaged.
            let written = beyond_limit || gap || findings.data_end > extent.end;
            findings.verdict = match (beyond_limit, written) {
                (true, _) => Verdict::Corrupt,
                (false, true) => Verdict::Torn,
                (false, false) => Verdict::Open,
            };
            findings.damage = written.then(|| self.damage(&extent, stop.as_ref(), None));
            findings.note_beyond_limit::<F>(beyond_limit);
        }
        Ok(findings)
    }

    /// Where nothing says what was acknowledged, an intact record after the damage means that the
    /// log is corrupt, and so do files after a gap.
    fn conclude_carefully(
        mut self,
        extent: Extent,
        stop: Option<Stop>,
        mark: MarkUse,
        from: u64,
    ) -> io::Result<Findings> {
        let mut findings = self.findings(extent, mark, from)?;
        let Space { file, end, gap, .. } = self.space;
        if extent.end == *end && gap.is_none() {
            return Ok(findings);
        }
        let reach = findings.data_end.saturating_add(F::Framing::TRAILING_ZEROS_MAX).min(*end);
        // One that does not follow is intact itself.
        let past = u64::from(!matches!(stop, Some(Stop::Unlinked(_))));
        let next = match findings.data_end > extent.end {
            true => find_intact(&**file, &self.format.framing(), extent.end + past, reach)?,
            false => None,
        };
        let beyond_limit = self.is_beyond_limit(&extent, stop.as_ref())?;
        let corrupt = next.is_some() || gap.is_some() || beyond_limit;
        let written = corrupt || findings.data_end > extent.end;
        findings.verdict = match (corrupt, written) {
            (true, _) => Verdict::Corrupt,
            (false, true) => Verdict::Torn,
            (false, false) => Verdict::Open,
        };
        findings.damage = written.then(|| self.damage(&extent, stop.as_ref(), next));
        findings.note_beyond_limit::<F>(beyond_limit);
        Ok(findings)
    }

    /// This log's own mark, and what it vouches for is not there.
    fn lost(self, extent: Extent, stop: Option<Stop>, mark: &Mark) -> io::Result<Findings> {
        let (end, gap) = (self.space.end, self.space.gap.clone());
        let copied = is_of_another_file(self.space, mark)?;
        let mut findings = self.conclude_carefully(extent, stop, MarkUse::Lost, extent.start)?;
        findings.verdict = Verdict::Corrupt;
        findings.durable_end = Some(mark.end);
        findings.unacknowledged_from = Some(mark.end).filter(|_| !mark.closed);
        if mark.start == extent.start {
            // The same head, so the same numbers.
            findings.extent.first = mark.first;
            findings.numbered_by_mark = true;
        }
        let gap = gap.map(|gap| format!("; {gap}")).unwrap_or_default();
        let of = if copied { " in the log that this is a copy of" } else { "" };
        let lost = mark.records.saturating_sub(extent.records);
        let damage = findings.damage.get_or_insert_with(|| Damage {
            offset: extent.end,
            end: end.max(extent.end),
            reason: format!(
                "the log ends at byte {}, acknowledged up to {}{of}{gap}",
                extent.end, mark.end
            ),
            ..Damage::default()
        });
        damage.first_lost = mark.first.checked_add(extent.records).filter(|_| F::NUMBERED);
        if damage.next_intact.is_none() {
            damage.records_lost = Some(lost);
        }
        Ok(findings)
    }

    fn is_beyond_limit(&self, extent: &Extent, stop: Option<&Stop>) -> io::Result<bool> {
        let (file, at, end) = (self.file(), extent.end, self.space.end);
        stop.map_or(Ok(false), |why| is_beyond_limit(self.format, file, at, why, end))
    }

    fn findings(&mut self, extent: Extent, mark: MarkUse, from: u64) -> io::Result<Findings> {
        Ok(Findings {
            scanned_bytes: extent.end.saturating_sub(from),
            scanned_records: self.scanned_records,
            data_end: end_of_data(self.file(), extent.end, self.space.end)?,
            blocks: std::mem::take(&mut self.blocks),
            ..self.unread(extent, mark)
        })
    }

    /// Nothing but where the log begins.
    fn unread(&self, extent: Extent, mark: MarkUse) -> Findings {
        Findings {
            extent,
            numbered: true,
            headless: false,
            verdict: Verdict::Clean,
            damage: None,
            beyond_limit: false,
            mark,
            numbered_by_mark: mark == MarkUse::Used,
            durable_end: None,
            unacknowledged_from: None,
            scanned_bytes: 0,
            scanned_records: 0,
            data_end: self.space.end,
            file_end: self.space.end,
            blocks: Vec::new(),
        }
    }

    /// What the mark says, and nothing else.
    fn unread_by_mark(&self, mark: &Mark) -> Findings {
        Findings {
            durable_end: Some(mark.end),
            unacknowledged_from: Some(mark.end).filter(|_| !mark.closed),
            ..self.unread(Extent::of_mark(mark), MarkUse::Used)
        }
    }

    fn damage(&self, extent: &Extent, stop: Option<&Stop>, next: Option<u64>) -> Damage {
        let why = match (stop, &self.space.gap) {
            (Some(stop), _) => stop.reason(),
            (None, Some(gap)) => gap.clone(),
            (None, None) => "unreadable".into(),
        };
        let number = Some(extent.next()).filter(|_| extent.records > 0);
        let name = F::name_of(number, extent.end);
        Damage {
            offset: extent.end,
            end: next.unwrap_or(self.space.end),
            reason: format!("{name}: {why}"),
            next_intact: next,
            first_lost: number.filter(|_| F::NUMBERED),
            ..Damage::default()
        }
    }
}
