//! What is known of a log from elsewhere than its records: places between records, and how far it
//! was acknowledged.

use std::sync::Arc;

use crate::locks::{Mutex, lock};
use crate::sidecar::Index;

/// A place known to lie between records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Border {
    /// Byte of the record after it.
    pub offset: u64,
    /// Number of that record, where it is known.
    pub ordinal: Option<u64>,
}

/// What is known of a log from elsewhere than its records.
#[derive(Clone, Debug)]
pub struct Evidence {
    index: Arc<Mutex<Index>>,
    known_end: Option<Border>,
    durable: Option<Border>,
    unacknowledged_from: Option<u64>,
}

impl Evidence {
    /// From the index; the end of what the mark vouches for, or the writer knows; and the byte from
    /// which on nothing was acknowledged.
    pub fn new(
        index: Arc<Mutex<Index>>,
        known_end: Option<Border>,
        unacknowledged_from: Option<u64>,
    ) -> Self {
        Self { index, known_end, durable: None, unacknowledged_from }
    }

    /// The end of what the mark vouches for, where more is known.
    pub fn with_durable(self, durable: Option<Border>) -> Self {
        Self { durable, ..self }
    }

    /// Take this byte for the end of what is known.
    pub fn set_known_end(&mut self, offset: u64) {
        self.known_end = Some(Border { offset, ordinal: None });
    }

    /// The byte from which on nothing was acknowledged: damage there is a torn tail, in which the
    /// records of a payload look like those of the log.
    pub fn unacknowledged_from(&self) -> Option<u64> {
        self.unacknowledged_from
    }

    /// The first end of something known after a byte: of the extent, or of what the mark vouches for.
    pub fn known_end_after(&self, offset: u64) -> Option<Border> {
        let ends = [self.known_end, self.durable].into_iter().flatten();
        ends.filter(|end| end.offset > offset).min_by_key(|end| end.offset)
    }

    /// The first border after a byte.
    pub fn border_after(&self, offset: u64) -> Option<Border> {
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
