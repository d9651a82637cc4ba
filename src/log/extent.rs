//! The valid prefix of a log: begin and end, first and last record.

use crate::scan::framing::Frame;
use crate::sidecar::Mark;
use crate::storage::FileId;

/// The valid prefix of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Ordinal of the first record, or of the one to come.
    pub first: u64,
    /// Number of records.
    pub records: u64,
    /// Byte of the first record, or of the one to come.
    pub start: u64,
    /// Byte after the last record.
    pub end: u64,
    /// Byte of the last record.
    pub last_offset: u64,
    /// Stored checksum of the last record.
    pub last_sum: u32,
    /// Stored checksum of the first record.
    pub first_sum: u32,
}

impl Extent {
    /// An empty log that begins at byte `start` with record `first`.
    pub fn empty(first: u64, start: u64) -> Self {
        Self { first, start, end: start, ..Self::default() }
    }

    /// The extent that a mark vouches for.
    pub(super) fn of_mark(mark: &Mark) -> Self {
        let Mark { first, records, start, end, last_offset, first_sum, last_sum, .. } = *mark;
        Self { first, records, start, end, last_offset, last_sum, first_sum }
    }

    /// Ordinal of the record that comes next.
    pub fn next(&self) -> u64 {
        self.first.saturating_add(self.records)
    }

    /// Add the record found at `offset`.
    #[inline]
    pub fn push(&mut self, offset: u64, frame: impl Frame) {
        self.push_parts(offset, frame.len(), frame.sum());
    }

    /// Add a record of `len` bytes at `offset`.
    #[inline]
    pub(super) fn push_parts(&mut self, offset: u64, len: u64, sum: u32) {
        if self.records == 0 {
            self.first_sum = sum;
        }
        self.records += 1;
        self.end = offset + len;
        self.last_offset = offset;
        self.last_sum = sum;
    }

    /// The mark of this prefix, without an index.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A record of 30 bytes with this checksum.
    #[derive(Clone, Copy, Debug)]
    struct Sum(u32);

    impl Frame for Sum {
        fn sum(self) -> u32 {
            self.0
        }

        fn len(self) -> u64 {
            30
        }

        fn payload_len(self) -> u64 {
            30
        }

        fn payload(self, record: &[u8]) -> &[u8] {
            record
        }
    }

    #[test]
    fn an_extent_survives_its_mark() {
        let empty = Extent::empty(5, 100);
        assert_eq!((empty.first, empty.start, empty.end, empty.next()), (5, 100, 100, 5));
        let mut extent = empty;
        extent.push(100, Sum(11));
        extent.push_parts(130, 40, 12);
        let grown = Extent {
            first: 5,
            records: 2,
            start: 100,
            end: 170,
            last_offset: 130,
            last_sum: 12,
            first_sum: 11,
        };
        assert_eq!((extent, extent.next()), (grown, 7));
        let file = FileId { device: 1, inode: 2, created_ns: 3 };
        let mark = extent.mark(file);
        assert_eq!((Extent::of_mark(&mark), mark.file), (extent, file));
        let Mark { closed, exact, index_entries, index_chain, .. } = mark;
        assert_eq!((closed, exact, index_entries, index_chain), (false, false, 0, 0));
    }
}
