//! The records of a log, for callers.

use super::codec::{HEADER_BYTES, Lsn};

/// One record of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The record's first byte.
    pub lsn: Lsn,
    /// The payload.
    pub payload: Vec<u8>,
}

/// A record, borrowed from its cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordRef<'a> {
    /// The record's first byte.
    pub lsn: Lsn,
    /// The payload.
    pub payload: &'a [u8],
}

impl RecordRef<'_> {
    /// Size in the log with the header, bytes.
    pub fn framed_len(&self) -> u64 {
        self.payload.len() as u64 + HEADER_BYTES
    }

    /// LSN of the next record.
    pub fn next_lsn(&self) -> Lsn {
        Lsn(self.lsn.0 + self.framed_len())
    }
}
