//! The last intact record, and what it says of the log.

use crate::sidecar::Mark;
use crate::storage::FileId;

/// The last intact record and what lies before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tip {
    /// Records dropped before the first one, as far as they were counted.
    pub first: u64,
    /// Number of records.
    pub records: u64,
    /// Byte of the first record: the head.
    pub start: u64,
    /// Byte behind the last record.
    pub end: u64,
    /// Byte of the last record.
    pub last_offset: u64,
    /// Stored checksum of the last record.
    pub last_sum: u32,
    /// Stored checksum of the first record.
    pub first_sum: u32,
}

impl Tip {
    /// An empty log that begins at `start`.
    pub fn empty(start: u64) -> Self {
        Self { start, end: start, ..Self::default() }
    }

    /// The last record that a mark vouches for.
    pub fn of_mark(mark: &Mark) -> Self {
        let Mark { first, records, start, end, last_offset, first_sum, last_sum, .. } = *mark;
        Self { first, records, start, end, last_offset, last_sum, first_sum }
    }

    /// Go on behind a record found at `offset`.
    #[inline]
    pub fn push(&mut self, offset: u64, len: u64, sum: u32) {
        if self.records == 0 {
            self.first_sum = sum;
        }
        self.records += 1;
        self.end = offset + len;
        self.last_offset = offset;
        self.last_sum = sum;
    }

    /// The mark of this log, without an index.
    pub fn mark(self, file: FileId) -> Mark {
        Mark {
            first: self.first,
            records: self.records,
            start: self.start,
            end: self.end,
            last_offset: self.last_offset,
            first_sum: self.first_sum,
            last_sum: self.last_sum,
            file,
            ..Mark::default()
        }
    }
}
