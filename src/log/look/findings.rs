//! The findings of a look at a log: the valid prefix, the damage, and the use of the mark.

use crate::log::extent::Extent;
use crate::scan::{Damage, Verdict};
use crate::sidecar::MarkUse;

/// The findings of a look at a log.
#[derive(Clone, Debug)]
pub struct Findings {
    /// The valid prefix.
    pub extent: Extent,
    /// Whether the number of the first record is known.
    pub numbered: bool,
    /// Records follow a header that never reached the disk: no record counts.
    pub headless: bool,
    /// How the log ends.
    pub verdict: Verdict,
    /// The first damage. If the damage lies before the first record, a cut does not repair it.
    pub damage: Option<Damage>,
    /// The damage after the valid prefix, if `damage` is before the first record.
    pub after: Option<Damage>,
    /// Whether the valid prefix ends before a whole record that is only longer than the caller's limit.
    pub beyond_limit: bool,
    /// How the look used the mark.
    pub mark: MarkUse,
    /// Whether the records have the mark's numbers, and therefore the numbers of the mark's index.
    /// A scan from the head does not know how many records were dropped before.
    pub numbered_by_mark: bool,
    /// Byte up to which the mark says the log is durable.
    pub durable_end: Option<u64>,
    /// Byte from which on nothing was acknowledged. `None` for a closed mark: another program may
    /// have appended since. `None` also if the mark's other slot may have held a newer mark.
    pub unacknowledged_from: Option<u64>,
    /// Bytes looked at.
    pub scanned_bytes: u64,
    /// Records looked at.
    pub scanned_records: u64,
    /// Byte after the last byte other than zero, at least the end of the valid prefix.
    pub data_end: u64,
    /// Byte after the last one there is.
    pub file_end: u64,
    /// Ends of blocks of records, noticed on the way: ordinal, and byte.
    pub blocks: Vec<(u64, u64)>,
}

impl Findings {
    /// Whether a record lies in the damage. In `slots`, the damage is a whole batch whose checksum differs: any deed of
    /// the batch may be the wrong one.
    pub(in crate::log) fn is_in_damage(&self, offset: u64) -> bool {
        self.damage.as_ref().is_some_and(|damage| (damage.offset..damage.end).contains(&offset))
    }

    /// The damage, unless it is a torn tail.
    pub(in crate::log) fn corruption(&self) -> Option<Damage> {
        self.damage.clone().filter(|_| self.verdict == Verdict::Corrupt)
    }

    /// Note damage before the first record. It comes before any other damage.
    pub fn note_leading(&mut self, damage: Damage) {
        // An empty stretch is only the end of the log, unless records are missing there.
        let (start, is_lost) = (self.extent.start, self.mark == MarkUse::Lost);
        let counts =
            |after: &Damage| after.offset >= start && (is_lost || after.offset < after.end);
        if let Some(after) = self.corruption().filter(counts) {
            self.after = Some(after);
        }
        self.verdict = Verdict::Corrupt;
        self.damage = Some(damage);
    }

    /// Give the first record another number, and shift all numbers after it.
    pub fn renumber(&mut self, first: u64) {
        let shift = first.wrapping_sub(self.extent.first);
        self.extent.first = first;
        for (ordinal, _) in &mut self.blocks {
            *ordinal = ordinal.wrapping_add(shift);
        }
    }

    /// Whether the mark is this log's.
    pub fn mark_is_ours(&self) -> bool {
        matches!(self.mark, MarkUse::Used | MarkUse::Lost)
    }

    /// Number of the first record, where it is known.
    pub fn first(&self) -> Option<u64> {
        Some(self.extent.first).filter(|_| self.numbered)
    }
}
