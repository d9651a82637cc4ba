//! Where a log ends: from the mark if it can be believed, else from a scan. Only looks.

use std::io;

use super::format::{Codec, HEADER_BYTES};
use super::tip::Tip;
use crate::checksum::crc32c_more;
use crate::mode::Depth;
use crate::scan::{Bad, Damage, Found, Scanner, Stop, Verdict, end_of_data, find_intact};
use crate::sidecar::{BLOCK_BYTES, Mark, MarkUse};
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
    /// Whether the records are numbered as the mark numbers them, and so as the index does that it
    /// vouches for. A scan from the head on does not know how many were dropped before.
    pub numbered_by_mark: bool,
    /// Byte up to which the mark says the log is durable.
    pub durable_end: Option<u64>,
    /// Bytes looked at.
    pub scanned_bytes: u64,
    /// Records looked at.
    pub scanned_records: u64,
    /// Byte behind the last one that is not zero, at least the end of the valid prefix.
    pub data_end: u64,
    /// Byte behind the last one there is.
    pub file_end: u64,
    /// Where blocks of records end, as noticed on the way: ordinal, and byte.
    pub blocks: Vec<(u64, u64)>,
}

/// What is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The log's bytes.
    pub file: &'a dyn File,
    /// Byte behind the last one there is.
    pub file_end: u64,
    /// Byte of the first record.
    pub head: u64,
    /// The codec.
    pub codec: Codec,
    /// Why segments behind `file_end` do not count, if there are any.
    pub gap: Option<&'a str>,
}

/// Look at the log with the mark that lies beside it.
pub fn look(
    subject: Subject<'_>,
    mark: Option<Mark>,
    damaged_mark: bool,
    depth: Depth,
) -> io::Result<Findings> {
    let possible = mark.filter(is_possible);
    let damaged = damaged_mark || (mark.is_some() && possible.is_none());
    let mut walk = Walk { subject, scanned_records: 0, blocks: Vec::new() };
    let start = Tip::empty(subject.head);
    if depth == Depth::Begin {
        let id = subject.file.id()?;
        let ours = match possible.filter(|mark| mark.start == subject.head) {
            Some(mark) if walk.is_anchored(&mark, id)? => Some(mark),
            _ => None,
        };
        return Ok(walk.unlooked(ours));
    }
    let Some(mark) = possible else {
        let (tip, stop) = walk.check(start, subject.file_end)?;
        let none = if damaged { MarkUse::Damaged } else { MarkUse::Missing };
        return walk.conclude_carefully(tip, stop, none);
    };
    if walk.is_anchored(&mark, subject.file.id()?)? {
        if mark.start == subject.head && depth == Depth::Quick {
            return walk.behind_mark(Tip::of_mark(&mark), &mark);
        }
        // A prefix was dropped since, or every record is to be checked.
        let (tip, _) = walk.check(start, mark.end)?;
        if tip.end == mark.end {
            // Numbered so that the record behind the mark keeps its ordinal: the index has those,
            // and the next mark vouches for it again.
            let first = (mark.first + mark.records).checked_sub(tip.records);
            let tip = Tip { first: first.unwrap_or(0), ..tip };
            walk.blocks.iter_mut().for_each(|(ordinal, _)| *ordinal += tip.first);
            let findings = walk.behind_mark(tip, &mark)?;
            return Ok(Findings { numbered_by_mark: first.is_some(), ..findings });
        }
        walk = Walk { subject, scanned_records: 0, blocks: Vec::new() };
    }
    let (tip, stop) = walk.check(start, subject.file_end)?;
    // Only another intact first record proves that the mark is not this log's.
    let comparable = mark.start == subject.head && tip.records > 0;
    let same_start = !comparable || tip.first_sum == mark.first_sum;
    if mark.records == 0 || !same_start || tip.end >= mark.end {
        return walk.conclude_carefully(tip, stop, MarkUse::Foreign);
    }
    // This log's own mark, and what it vouches for is not there.
    let mut findings = walk.conclude_carefully(tip, stop, MarkUse::Lost)?;
    findings.verdict = Verdict::Corrupt;
    findings.durable_end = Some(mark.end);
    let gap = subject.gap.map(|gap| format!("; {gap}")).unwrap_or_default();
    findings.damage.get_or_insert_with(|| Damage {
        offset: tip.end,
        end: subject.file_end.max(tip.end),
        reason: format!("the log ends at {}, acknowledged up to {}{gap}", tip.end, mark.end),
        next_intact: None,
        first_lost: None,
        records_lost: Some(mark.records.saturating_sub(tip.records)),
    });
    Ok(findings)
}

/// Whether a mark's numbers can be those of any log, so that counting with them cannot overflow.
fn is_possible(mark: &Mark) -> bool {
    let records_max = mark.end.saturating_sub(mark.start) / HEADER_BYTES;
    let empty = mark.records == 0 && mark.start == mark.end;
    let filled = mark.records > 0
        && mark.last_offset >= mark.start
        && mark.end.saturating_sub(mark.last_offset) >= HEADER_BYTES;
    (empty || filled) && mark.records <= records_max && mark.first <= mark.start / HEADER_BYTES
}

/// Where blocks of records end between a known border and `end`, by lengths alone: ordinal of the
/// record behind it, and byte. Stops at damage.
pub fn blocks(file: &dyn File, codec: Codec, from: Tip, end: u64) -> io::Result<Vec<(u64, u64)>> {
    let codec = Codec { check: false, ..codec };
    let subject = Subject { file, file_end: end, head: from.start, codec, gap: None };
    let mut walk = Walk { subject, scanned_records: 0, blocks: Vec::new() };
    walk.check(from, end)?;
    Ok(walk.blocks)
}

struct Walk<'a> {
    subject: Subject<'a>,
    scanned_records: u64,
    blocks: Vec<(u64, u64)>,
}

impl Walk<'_> {
    /// Whether the log has exactly the record that the mark names, where it names it.
    fn is_anchored(&self, mark: &Mark, id: FileId) -> io::Result<bool> {
        let Subject { file, file_end, head, codec, .. } = self.subject;
        if mark.records == 0 {
            // Nothing in the log to hold it against but the file itself.
            return Ok(mark.file.is_still(id) && mark.end == head);
        }
        if mark.end > file_end || mark.last_offset < head {
            return Ok(false);
        }
        let mut scanner = Scanner::new(codec, mark.last_offset, mark.end);
        let Found::Record { frame, .. } = scanner.next(file)? else { return Ok(false) };
        Ok(frame.crc == mark.last_sum && scanner.position() == mark.end)
    }

    /// Everything behind the mark is unacknowledged: whatever is not a record is a torn tail.
    fn behind_mark(mut self, from: Tip, mark: &Mark) -> io::Result<Findings> {
        let (tip, stop) = self.check(from, self.subject.file_end)?;
        let mut findings = self.findings(tip, MarkUse::Used, from.end)?;
        findings.numbered_by_mark = true;
        findings.durable_end = Some(mark.end);
        let gap = self.subject.gap.is_some();
        if tip.end < self.subject.file_end || gap {
            let beyond_limit = self.is_beyond_limit(tip, stop.as_ref())?;
            findings.verdict = if beyond_limit { Verdict::Corrupt } else { Verdict::Torn };
            // Zeros alone were reserved and never written: nothing is damaged.
            let written = beyond_limit || gap || findings.data_end > tip.end;
            findings.damage = written.then(|| self.damage(tip, stop.as_ref(), None));
        }
        Ok(findings)
    }

    fn check(&mut self, start: Tip, end: u64) -> io::Result<(Tip, Option<Stop>)> {
        let Subject { file, codec, .. } = self.subject;
        let mut tip = start;
        let mut scanner = Scanner::new(codec, start.end, end);
        let mut block_end = start.end + BLOCK_BYTES;
        loop {
            match scanner.next(file)? {
                Found::Record { offset, frame } => {
                    tip.push(offset, frame.framed_len(), frame.crc);
                    self.scanned_records += 1;
                    if tip.end >= block_end {
                        self.blocks.push((tip.first + tip.records, tip.end));
                        block_end = tip.end + BLOCK_BYTES;
                    }
                }
                Found::End => return Ok((tip, None)),
                Found::Stop { why, .. } => return Ok((tip, Some(why))),
            }
        }
    }

    /// Without a mark, an intact record behind the damage means that the log is corrupt, and so do
    /// segments behind a gap.
    fn conclude_carefully(
        mut self,
        tip: Tip,
        stop: Option<Stop>,
        mark: MarkUse,
    ) -> io::Result<Findings> {
        let Subject { file, file_end, codec, gap, head } = self.subject;
        let mut findings = self.findings(tip, mark, head)?;
        if tip.end == file_end && gap.is_none() {
            return Ok(findings);
        }
        let next = match findings.data_end > tip.end {
            true => find_intact(file, &codec, tip.end + 1, file_end)?,
            false => None,
        };
        let corrupt =
            next.is_some() || gap.is_some() || self.is_beyond_limit(tip, stop.as_ref())?;
        findings.verdict = if corrupt { Verdict::Corrupt } else { Verdict::Torn };
        let written = corrupt || findings.data_end > tip.end;
        findings.damage = written.then(|| self.damage(tip, stop.as_ref(), next));
        Ok(findings)
    }

    /// Whether all of an intact record stands behind the tip that is only longer than the caller's
    /// limit: no torn tail, and nothing to cut.
    fn is_beyond_limit(&self, tip: Tip, stop: Option<&Stop>) -> io::Result<bool> {
        let Some(Stop::Bad(Bad { what: "length", found, .. })) = stop else {
            return Ok(false);
        };
        let Subject { file, file_end, .. } = self.subject;
        if HEADER_BYTES + found > file_end - tip.end {
            return Ok(false);
        }
        let mut header = [0; HEADER_BYTES as usize];
        read_full(file, &mut header, tip.end)?;
        let (stored, length) = header.split_at(4);
        let (mut crc, mut left) = (crc32c_more(0, length), *found);
        let mut at = tip.end + HEADER_BYTES;
        let mut block = vec![0; left.min(1 << 20) as usize];
        while left > 0 {
            let want = left.min(block.len() as u64) as usize;
            let target = block.get_mut(..want).unwrap_or_default();
            let read = read_full(file, target, at)?;
            if read == 0 {
                return Ok(false);
            }
            crc = crc32c_more(crc, target.get(..read).unwrap_or_default());
            (at, left) = (at + read as u64, left - read as u64);
        }
        Ok(stored == crc.to_le_bytes())
    }

    fn findings(&mut self, tip: Tip, mark: MarkUse, from: u64) -> io::Result<Findings> {
        let Subject { file, file_end, .. } = self.subject;
        Ok(Findings {
            tip,
            mark,
            scanned_bytes: tip.end.saturating_sub(from),
            scanned_records: self.scanned_records,
            data_end: end_of_data(file, tip.end, file_end)?,
            blocks: std::mem::take(&mut self.blocks),
            ..self.unlooked(None)
        })
    }

    /// What the mark says, and nothing else.
    fn unlooked(&self, mark: Option<Mark>) -> Findings {
        let Subject { file_end, head, .. } = self.subject;
        Findings {
            tip: mark.as_ref().map_or(Tip::empty(head), Tip::of_mark),
            verdict: Verdict::Clean,
            damage: None,
            mark: if mark.is_some() { MarkUse::Used } else { MarkUse::Missing },
            numbered_by_mark: mark.is_some(),
            durable_end: mark.map(|mark| mark.end),
            scanned_bytes: 0,
            scanned_records: 0,
            data_end: file_end,
            file_end,
            blocks: Vec::new(),
        }
    }

    fn damage(&self, tip: Tip, stop: Option<&Stop>, next: Option<u64>) -> Damage {
        let why = match (stop, self.subject.gap) {
            (Some(stop), _) => stop.reason(),
            (None, Some(gap)) => gap.to_string(),
            (None, None) => "unreadable".into(),
        };
        Damage {
            offset: tip.end,
            end: next.unwrap_or(self.subject.file_end),
            reason: format!("record at lsn {}: {why}", tip.end),
            next_intact: next,
            first_lost: None,
            records_lost: None,
        }
    }
}
