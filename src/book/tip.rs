//! The last intact deed, and what it says of the log.

use super::format::HEADER_BYTES;
use crate::sidecar::Mark;
use crate::storage::FileId;

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

    /// The last deed that a mark vouches for.
    pub fn of_mark(mark: &Mark) -> Self {
        let Mark { first, records, end, last_offset, first_sum, last_sum, .. } = *mark;
        Self { first, records, end, last_offset, last_sum, first_sum }
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

    /// The mark of this log, without an index. `next`: number of the first event of an empty log.
    pub fn mark(self, next: u64, file: FileId) -> Mark {
        Mark {
            first: if self.records == 0 { next } else { self.first },
            records: self.records,
            end: self.end,
            last_offset: self.last_offset,
            first_sum: self.first_sum,
            last_sum: self.last_sum,
            file,
            ..Mark::default()
        }
    }
}
