//! Facts about a log from outside its records: places between records, and the end of the
//! acknowledged bytes.

use std::sync::Arc;

use crate::ground::locks::{Mutex, lock};
use crate::sidecar::Index;

/// A place known to lie between records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Border {
    /// Byte of the record after it.
    pub offset: u64,
    /// Number of the record, if known.
    pub ordinal: Option<u64>,
}

/// Facts about a log from outside its records.
#[derive(Clone, Debug)]
pub struct Evidence {
    index: Arc<Mutex<Index>>,
    known_end: Option<Border>,
    durable: Option<Border>,
    unacknowledged_from: Option<u64>,
}

impl Evidence {
    /// `known_end` is the end that the mark vouches for, or the writer knows. Nothing from
    /// `unacknowledged_from` on was acknowledged.
    pub fn new(
        index: Arc<Mutex<Index>>,
        known_end: Option<Border>,
        unacknowledged_from: Option<u64>,
    ) -> Self {
        Self { index, known_end, durable: None, unacknowledged_from }
    }

    /// Add the mark's end, if more than the mark's records are known.
    pub(super) fn with_durable(self, durable: Option<Border>) -> Self {
        Self { durable, ..self }
    }

    /// Take `offset` for the end of the known bytes.
    pub(super) fn set_known_end(&mut self, offset: u64) {
        self.known_end = Some(Border { offset, ordinal: None });
    }

    /// The byte from which on nothing was acknowledged. Damage there is a torn tail, and records in
    /// a payload there look like records of the log.
    pub fn unacknowledged_from(&self) -> Option<u64> {
        self.unacknowledged_from
    }

    /// The first known end after a byte: the end of the extent, or the mark's.
    pub(super) fn known_end_after(&self, offset: u64) -> Option<Border> {
        let ends = [self.known_end, self.durable].into_iter().flatten();
        ends.filter(|end| end.offset > offset).min_by_key(|end| end.offset)
    }

    /// The first border after a byte.
    pub(super) fn border_after(&self, offset: u64) -> Option<Border> {
        let entry = lock(&self.index).first_from(offset + 1);
        let border = entry.map(|e| Border { offset: e.offset, ordinal: Some(e.ordinal) });
        let end = self.known_end_after(offset);
        match (border, end) {
            (Some(border), Some(end)) if end.offset < border.offset => Some(end),
            (Some(border), _) => Some(border),
            (None, end) => end,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::sidecar::Entry;

    fn border(offset: u64) -> Border {
        Border { offset, ordinal: Some(offset / 10) }
    }

    /// Index entries at the given bytes, the known end and the durable end.
    fn evidence(index: &[u64], known: Option<u64>, durable: Option<u64>) -> Evidence {
        let mut entries = Index::empty(Path::new("/s"));
        for &offset in index {
            entries.push(Entry { ordinal: offset / 10, offset, sum: 0 });
        }
        Evidence::new(Arc::new(Mutex::new(entries)), known.map(border), Some(7))
            .with_durable(durable.map(border))
    }

    #[test]
    fn the_next_border_is_lowest_after_a_byte() {
        let all = evidence(&[100, 200, 300], Some(250), Some(350));
        let after = |evidence: &Evidence, offset| evidence.border_after(offset).map(|b| b.offset);
        let expected = [
            (0, Some(100)),
            (99, Some(100)),
            (100, Some(200)),
            (200, Some(250)),
            (250, Some(300)),
            (300, Some(350)),
            (349, Some(350)),
            (350, None),
        ];
        for (offset, border) in expected {
            assert_eq!(after(&all, offset), border, "after {offset}");
        }
        assert_eq!(all.border_after(0), Some(border(100)));
        assert_eq!(after(&evidence(&[100], None, None), 50), Some(100));
        assert_eq!(after(&evidence(&[], None, None), 50), None);
        // If index and end name one byte, the index knows the number.
        let mut same = evidence(&[100], None, None);
        same.set_known_end(100);
        assert_eq!(same.border_after(0), Some(border(100)));
    }

    #[test]
    fn known_ends_come_from_extent_or_mark() {
        let mut both = evidence(&[], Some(250), Some(350));
        let after = |evidence: &Evidence, offset| evidence.known_end_after(offset);
        assert_eq!((after(&both, 0), after(&both, 249)), (Some(border(250)), Some(border(250))));
        assert_eq!((after(&both, 250), after(&both, 350)), (Some(border(350)), None));
        both.set_known_end(300);
        assert_eq!(after(&both, 250), Some(Border { offset: 300, ordinal: None }));
        assert_eq!(both.unacknowledged_from(), Some(7));
    }
}
