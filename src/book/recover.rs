//! Where a book ends: from the mark if it can be believed, else from a scan. Only looks.

use std::io;

use super::format::{FIRST_AT, FRAMING_BYTES, Frame, HEADER_BYTES, MUG_BYTES, Packed, reach};
use super::tip::Tip;
pub use crate::mode::Depth;
use crate::scan::{Bad, Damage, Found, Scanner, Stop, Verdict, end_of_data, find_intact};
pub use crate::sidecar::MarkUse;
use crate::sidecar::{BLOCK_BYTES, Mark};
use crate::storage::{File, FileId, read_full};

/// What a look at the log found.
#[derive(Clone, Debug)]
pub struct Findings {
    /// The valid prefix.
    pub tip: Tip,
    /// How the log ends.
    pub verdict: Verdict,
    /// The first damage.
    pub damage: Option<Damage>,
    /// What became of the mark.
    pub mark: MarkUse,
    /// Byte up to which the mark says the log is durable.
    pub durable_end: Option<u64>,
    /// Bytes looked at.
    pub scanned_bytes: u64,
    /// Deeds looked at.
    pub scanned_records: u64,
    /// Byte behind the last one that is not zero, at least the end of the valid prefix.
    pub data_end: u64,
    /// Size of the file.
    pub file_end: u64,
    /// Where blocks of deeds end, as noticed on the way: ordinal less the first, and byte.
    pub blocks: Vec<(u64, u64)>,
}

/// Look at the log in `file` with the mark that lies beside it.
pub fn look(
    file: &dyn File,
    codec: Packed,
    header_first: u64,
    mark: Option<Mark>,
    damaged_mark: bool,
    depth: Depth,
) -> io::Result<Findings> {
    let file_end = file.len()?;
    let possible = mark.filter(is_possible);
    let damaged_mark = damaged_mark || (mark.is_some() && possible.is_none());
    let none = if damaged_mark { MarkUse::Damaged } else { MarkUse::Missing };
    let mut walk = Walk { file, codec, file_end, scanned_records: 0, blocks: Vec::new() };
    let Some(mark) = possible else {
        return walk.without_mark(header_first, none, depth);
    };
    if let Some(tip) = walk.anchored(&mark, file.id()?)?
        && (depth == Depth::Quick || walk.reaches(&mark)?)
    {
        return walk.behind_mark(tip, header_first, &mark);
    }
    let (tip, stop) = walk.check(Tip { first: header_first, ..Tip::empty() })?;
    // Only another intact first deed proves that the mark is not this log's.
    let same_start = tip.records == 0 || tip.first_sum == mark.first_sum;
    if mark.records == 0 || !same_start || tip.end >= mark.end {
        return walk.conclude_carefully(tip, stop, HEADER_BYTES, MarkUse::Foreign);
    }
    // This log's own mark, and what it vouches for is not there.
    let mut findings = walk.conclude_carefully(tip, stop, HEADER_BYTES, MarkUse::Lost)?;
    findings.verdict = Verdict::Corrupt;
    findings.durable_end = Some(mark.end);
    let lost = mark.records.saturating_sub(tip.records);
    let damage = findings.damage.get_or_insert_with(|| Damage {
        offset: tip.end,
        end: file_end.max(tip.end),
        reason: format!("the log ends at byte {}, acknowledged up to {}", tip.end, mark.end),
        next_intact: None,
        first_lost: None,
        records_lost: None,
    });
    damage.first_lost = mark.first.checked_add(tip.records);
    if damage.next_intact.is_none() {
        damage.records_lost = Some(lost);
    }
    Ok(findings)
}

/// Whether a mark's numbers can be those of any log, so that counting with them cannot overflow.
fn is_possible(mark: &Mark) -> bool {
    let deeds_max = mark.end.saturating_sub(HEADER_BYTES) / (FRAMING_BYTES + MUG_BYTES);
    let only = mark.records == 1 && mark.last_offset == HEADER_BYTES;
    let several = mark.records > 1 && mark.last_offset > HEADER_BYTES;
    (mark.records == 0 || only || several)
        && mark.records <= deeds_max
        && mark.first.checked_add(mark.records).is_some()
}

/// Where blocks of deeds end between a known deed border and `end`, by lengths alone: deeds before
/// it, and byte. Stops at damage.
pub fn blocks(file: &dyn File, codec: Packed, from: Tip, end: u64) -> io::Result<Vec<(u64, u64)>> {
    let codec = Packed { check: false, ..codec };
    let mut walk = Walk { file, codec, file_end: end, scanned_records: 0, blocks: Vec::new() };
    walk.check(from)?;
    Ok(walk.blocks)
}

struct Walk<'a> {
    file: &'a dyn File,
    codec: Packed,
    file_end: u64,
    scanned_records: u64,
    blocks: Vec<(u64, u64)>,
}

impl Walk<'_> {
    /// The mark's end as a tip, if the log has exactly the deed there that the mark names.
    fn anchored(&self, mark: &Mark, id: FileId) -> io::Result<Option<Tip>> {
        if mark.records == 0 {
            // Nothing in the log to hold it against but the file itself.
            let ours = mark.file.is_still(id) && mark.end == HEADER_BYTES;
            return Ok(ours.then(|| Tip { first: mark.first, ..Tip::empty() }));
        }
        if mark.end > self.file_end
            || mark.last_offset < HEADER_BYTES
            || mark.end <= mark.last_offset
        {
            return Ok(None);
        }
        let mut scanner = Scanner::new(self.codec, mark.last_offset, mark.end);
        let found = scanner.next(self.file)?;
        let Found::Record { frame, .. } = found else { return Ok(None) };
        let agrees = frame.crc == mark.last_sum && scanner.position() == mark.end;
        Ok(agrees.then(|| Tip::of_mark(mark)))
    }

    /// Whether every deed that the mark vouches for is intact.
    fn reaches(&self, mark: &Mark) -> io::Result<bool> {
        let Self { file, codec, .. } = *self;
        let mut walk =
            Walk { file, codec, file_end: mark.end, scanned_records: 0, blocks: Vec::new() };
        let (tip, _) = walk.check(Tip::empty())?;
        Ok(tip.end == mark.end && tip.records == mark.records)
    }

    /// Everything behind the mark is unacknowledged: whatever is not a deed is a torn tail.
    fn behind_mark(mut self, from: Tip, header_first: u64, mark: &Mark) -> io::Result<Findings> {
        let start = from.end;
        if mark.records > 0 && header_first != mark.first {
            let (tip, _) = self.check(from)?;
            let mut findings = self.header_disagrees(tip, header_first)?;
            findings.durable_end = Some(start);
            return Ok(findings);
        }
        // Deeds without a first number were never acknowledged: the header's sector, which the
        // first save writes first, never reached the disk.
        let numbered = mark.records > 0 || header_first != 0;
        let (tip, stop) = match numbered {
            true => self.check(Tip { first: header_first, ..from })?,
            false => (from, Some(Stop::Blank)),
        };
        let mut findings = self.findings(tip, MarkUse::Used, start)?;
        findings.durable_end = Some(start);
        if tip.end < self.file_end {
            let beyond_limit = beyond_limit(self.file, tip.end, stop.as_ref(), self.file_end)?;
            findings.verdict = if beyond_limit { Verdict::Corrupt } else { Verdict::Torn };
            // Zeros alone were reserved and never written: nothing is damaged.
            let written = beyond_limit || findings.data_end > tip.end;
            findings.damage = written.then(|| damage(tip, stop.as_ref(), self.file_end, None));
        }
        Ok(findings)
    }

    fn header_disagrees(&mut self, tip: Tip, header_first: u64) -> io::Result<Findings> {
        let mut findings = self.findings(tip, MarkUse::Used, tip.end)?;
        findings.verdict = Verdict::Corrupt;
        findings.durable_end = Some(tip.end);
        let reason = format!("first event {header_first} in the header, {} by the mark", tip.first);
        findings.damage = Some(in_header(FIRST_AT, reason));
        Ok(findings)
    }

    fn without_mark(
        mut self,
        header_first: u64,
        mark: MarkUse,
        depth: Depth,
    ) -> io::Result<Findings> {
        let start = Tip { first: header_first, ..Tip::empty() };
        if depth == Depth::Quick {
            if let Some(tip) = self.hop(start)? {
                return self.findings(tip, mark, HEADER_BYTES);
            }
            self.scanned_records = 0;
            self.blocks.clear();
        }
        let (tip, stop) = self.check(start)?;
        self.conclude_carefully(tip, stop, HEADER_BYTES, mark)
    }

    /// Hop from length to length. Only a chain that ends exactly at the end of the file, with an
    /// intact last deed, is believed.
    fn hop(&mut self, start: Tip) -> io::Result<Option<Tip>> {
        let codec = Packed { check: false, ..self.codec };
        let (tip, stop) = self.walk(codec, start)?;
        if stop.is_some() || tip.end != self.file_end || (tip.records > 0 && tip.first == 0) {
            return Ok(None);
        }
        if tip.records == 0 {
            return Ok(Some(tip));
        }
        let mut last = Scanner::new(self.codec, tip.last_offset, tip.end);
        let intact = matches!(last.next(self.file)?, Found::Record { .. });
        Ok(intact.then_some(tip))
    }

    fn check(&mut self, start: Tip) -> io::Result<(Tip, Option<Stop>)> {
        self.walk(self.codec, start)
    }

    fn walk(&mut self, codec: Packed, start: Tip) -> io::Result<(Tip, Option<Stop>)> {
        let mut tip = start;
        let mut scanner = Scanner::new(codec, start.end, self.file_end);
        let mut block_end = start.end + BLOCK_BYTES;
        loop {
            match scanner.next(self.file)? {
                Found::Record { offset, frame } => {
                    let Frame { crc, jam_len, .. } = frame;
                    tip.push(offset, jam_len + MUG_BYTES + FRAMING_BYTES, crc);
                    self.scanned_records += 1;
                    if tip.end >= block_end {
                        self.blocks.push((tip.records, tip.end));
                        block_end = tip.end + BLOCK_BYTES;
                    }
                }
                Found::End => return Ok((tip, None)),
                Found::Stop { why, .. } => return Ok((tip, Some(why))),
            }
        }
    }

    /// Without a mark, an intact deed behind the damage means that the log is corrupt.
    fn conclude_carefully(
        mut self,
        tip: Tip,
        stop: Option<Stop>,
        from: u64,
        mark: MarkUse,
    ) -> io::Result<Findings> {
        if tip.records > 0 && tip.first == 0 {
            let mut findings = self.header_disagrees(tip, 0)?;
            findings.mark = mark;
            findings.durable_end = None;
            if let Some(damage) = &mut findings.damage {
                damage.reason = "first event 0 in the header, but deeds behind it".into();
            }
            return Ok(findings);
        }
        let mut findings = self.findings(tip, mark, from)?;
        if tip.end == self.file_end {
            return Ok(findings);
        }
        let reach = reach(findings.data_end, self.file_end);
        let next = match findings.data_end > tip.end {
            true => find_intact(self.file, &self.codec, tip.end + 1, reach)?,
            false => None,
        };
        let corrupt =
            next.is_some() || beyond_limit(self.file, tip.end, stop.as_ref(), self.file_end)?;
        findings.verdict = if corrupt { Verdict::Corrupt } else { Verdict::Torn };
        let written = corrupt || findings.data_end > tip.end;
        findings.damage = written.then(|| damage(tip, stop.as_ref(), self.file_end, next));
        Ok(findings)
    }

    fn findings(&mut self, tip: Tip, mark: MarkUse, from: u64) -> io::Result<Findings> {
        Ok(Findings {
            tip,
            verdict: Verdict::Clean,
            damage: None,
            mark,
            durable_end: None,
            scanned_bytes: tip.end.saturating_sub(from),
            scanned_records: self.scanned_records,
            data_end: end_of_data(self.file, tip.end, self.file_end)?,
            file_end: self.file_end,
            blocks: std::mem::take(&mut self.blocks),
        })
    }
}

/// Whether all of a deed stands at `offset`, by its lengths, that is only longer than the caller's
/// limit: no torn tail, and nothing to cut.
pub fn beyond_limit(
    file: &dyn File,
    offset: u64,
    stop: Option<&Stop>,
    end: u64,
) -> io::Result<bool> {
    let Some(Stop::Bad(Bad { what: "length", against: "limit", found, .. })) = stop else {
        return Ok(false);
    };
    let whole = found.checked_add(FRAMING_BYTES).and_then(|len| offset.checked_add(len));
    let Some(trailer_at) = whole.filter(|&whole| whole <= end).map(|whole| whole - 8) else {
        return Ok(false);
    };
    let mut trailer = [0; 8];
    let read = read_full(file, &mut trailer, trailer_at)?;
    Ok(read == 8 && u64::from_le_bytes(trailer) == *found)
}

/// Damage in the header, in front of all deeds.
pub fn in_header(offset: u64, reason: String) -> Damage {
    Damage {
        offset,
        end: HEADER_BYTES,
        reason,
        next_intact: Some(HEADER_BYTES),
        first_lost: None,
        records_lost: None,
    }
}

fn damage(tip: Tip, stop: Option<&Stop>, file_end: u64, next: Option<u64>) -> Damage {
    let number = tip.first.checked_add(tip.records).filter(|_| tip.records > 0);
    let whose = number.map_or("the first deed".into(), |event| format!("deed {event}"));
    let why = stop.map_or("unreadable".into(), Stop::reason);
    Damage {
        offset: tip.end,
        end: next.unwrap_or(file_end),
        reason: format!("{whose}: {why}"),
        next_intact: next,
        first_lost: number,
        records_lost: None,
    }
}
