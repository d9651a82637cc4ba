//! The records of a log, for callers.

use super::codec::{HEADER_BYTES, Lsn};
use super::pack::Parts;

/// One record of a log. A cursor lends the payload, and gives a `Record<&[u8]>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<P = Vec<u8>> {
    /// The record's first byte.
    pub lsn: Lsn,
    /// The payload.
    pub payload: P,
}

impl<P: AsRef<[u8]>> Record<P> {
    /// Size in the log with the header, bytes.
    pub fn framed_len(&self) -> u64 {
        self.payload.as_ref().len() as u64 + HEADER_BYTES
    }

    /// LSN of the next record.
    pub fn next_lsn(&self) -> Lsn {
        Lsn(self.lsn.0 + self.framed_len())
    }

    /// The payloads that [`append_atomic`](super::Wal::append_atomic) packed; `None` for any other record.
    pub fn parts(&self) -> Option<impl Iterator<Item = &[u8]>> {
        Parts::of(self.payload.as_ref())
    }
}

impl Record<&[u8]> {
    /// The record with a payload of its own.
    pub fn into_owned(self) -> Record {
        Record { lsn: self.lsn, payload: self.payload.to_vec() }
    }
}
