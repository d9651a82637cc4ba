//! Where a book ends: from the mark if it can be believed, else from a scan. Only looks.

use std::io;

use super::format::{FRAMING_BYTES, Frame, HEADER_BYTES, MUG_BYTES, Packed};
use crate::scan::{Damage, Found, Parse, Scanner, Step, Stop, Verdict, end_of_data, find_intact};
use crate::sidecar::Mark;
use crate::storage::{File, FileId, read_full};

/// The last intact deed and what lies before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tip {
    /// Number of the first event; meaningless while `records` is 0.
    pub first: u64,
    /// Number of deeds.
    pub records: u64,
    /// Byte behind the last deed.
    pub end: u64,
    /// Byte of the last deed.
    pub last_offset: u64,
    /// Stored checksum of the last deed.
    pub last_sum: u32,
    /// Stored checksum of the first deed.
    pub first_sum: u32,
}

impl Tip {
    /// An empty log.
    pub fn empty() -> Self {
        Self { end: HEADER_BYTES, ..Self::default() }
    }

    /// Go on behind a deed found at `offset`.
    pub fn push(&mut self, offset: u64, len: u64, sum: u32) {
        if self.records == 0 {
            self.first_sum = sum;
        }
        self.records += 1;
        self.end = offset + len;
        self.last_offset = offset;
        self.last_sum = sum;
    }
}

/// What became of the mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkUse {
    /// It agrees with the log.
    Used,
    /// There is none.
    Missing,
    /// Neither slot is intact.
    Damaged,
    /// It is another log's.
    Foreign,
    /// It is this log's, and the log ends below it.
    Lost,
}

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

/// Bytes of deeds per entry of the index.
pub const BLOCK_BYTES: u64 = 64 << 10;

/// Look at the log in `file` with the mark that lies beside it.
pub fn look(
    file: &dyn File,
    codec: Packed,
    header_first: u64,
    mark: Option<Mark>,
    damaged_mark: bool,
) -> io::Result<Findings> {
    let file_end = file.len()?;
    let none = if damaged_mark { MarkUse::Damaged } else { MarkUse::Missing };
    let mut walk = Walk { file, codec, file_end, scanned_records: 0, blocks: Vec::new() };
    let Some(mark) = mark else {
        return walk.without_mark(header_first, none);
    };
    if let Some(tip) = walk.anchored(&mark, file.id()?)? {
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
    damage.first_lost = Some(mark.first + tip.records);
    if damage.next_intact.is_none() {
        damage.records_lost = Some(lost);
    }
    Ok(findings)
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
            let ours = mark.file == id && mark.end == HEADER_BYTES;
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
        Ok(agrees.then_some(Tip {
            first: mark.first,
            records: mark.records,
            end: mark.end,
            last_offset: mark.last_offset,
            last_sum: mark.last_sum,
            first_sum: mark.first_sum,
        }))
    }

    /// Everything behind the mark is unacknowledged: whatever is not a deed is a torn tail.
    fn behind_mark(mut self, from: Tip, header_first: u64, mark: &Mark) -> io::Result<Findings> {
        let start = from.end;
        if mark.records > 0 && header_first != mark.first {
            return self.header_disagrees(from, header_first);
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
            findings.verdict = Verdict::Torn;
            findings.damage = Some(damage(tip, stop.as_ref(), self.file_end, None));
        }
        Ok(findings)
    }

    fn header_disagrees(&mut self, tip: Tip, header_first: u64) -> io::Result<Findings> {
        let mut findings = self.findings(tip, MarkUse::Used, tip.end)?;
        findings.verdict = Verdict::Corrupt;
        findings.durable_end = Some(tip.end);
        findings.damage = Some(Damage {
            offset: 8,
            end: HEADER_BYTES,
            reason: format!("first event {header_first} in the header, {} by the mark", tip.first),
            next_intact: Some(HEADER_BYTES),
            first_lost: None,
            records_lost: None,
        });
        Ok(findings)
    }

    fn without_mark(mut self, header_first: u64, mark: MarkUse) -> io::Result<Findings> {
        let start = Tip { first: header_first, ..Tip::empty() };
        if let Some(tip) = self.hop(start)? {
            return self.findings(tip, mark, HEADER_BYTES);
        }
        self.scanned_records = 0;
        self.blocks.clear();
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
        let next = match findings.data_end > tip.end {
            true => find_intact(self.file, &self.codec, tip.end + 1, findings.data_end)?,
            false => None,
        };
        findings.verdict = if next.is_some() { Verdict::Corrupt } else { Verdict::Torn };
        findings.damage = Some(damage(tip, stop.as_ref(), self.file_end, next));
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

/// Whether an intact deed ends at `end` and starts where its length trailer says; for walking
/// backwards. Returns its offset and frame, with its bytes in `deed`.
pub fn deed_before(
    file: &dyn File,
    codec: Packed,
    start: u64,
    end: u64,
    deed: &mut Vec<u8>,
) -> io::Result<Result<(u64, Frame), String>> {
    let mut trailer = [0; 8];
    if end < start + FRAMING_BYTES + MUG_BYTES {
        return Ok(Err(format!("{} bytes, a deed has at least 24", end.saturating_sub(start))));
    }
    read_full(file, &mut trailer, end - 8)?;
    let len = u64::from_le_bytes(trailer);
    let whole = len.saturating_add(FRAMING_BYTES);
    if len < MUG_BYTES || len > codec.deed_bytes_max || whole > end - start {
        let most = codec.deed_bytes_max.min(end - start - FRAMING_BYTES);
        return Ok(Err(format!("length trailer {len}, possible are {MUG_BYTES} to {most}")));
    }
    let offset = end - whole;
    let mut head = [0; 8];
    read_full(file, &mut head, offset)?;
    if head != trailer {
        let found = u64::from_le_bytes(head);
        return Ok(Err(format!("length {found}, length trailer {len}")));
    }
    deed.resize(whole as usize, 0);
    let read = read_full(file, deed, offset)?;
    match codec.parse(deed.get(..read).unwrap_or_default()) {
        Step::Record { frame, .. } => Ok(Ok((offset, frame))),
        Step::Bad(bad) => Ok(Err(bad.reason())),
        _ => Ok(Err(format!("{read} bytes read, the deed has {whole}"))),
    }
}
