//! The records that callers get, and the positions of records.

/// The position of a record: the file, and the number in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The index of the file.
    pub file: u32,
    /// The number of the record in the file, from 0 on.
    pub record: u64,
}

/// A record of a file. A cursor lends the payload, and gives a `Record<&[u8]>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<P = Vec<u8>> {
    /// The record's number in the file, from 0 on; `None` after damage that hid the count.
    pub number: Option<u64>,
    /// The record's first byte in the file.
    pub offset: u64,
    /// The payload.
    pub payload: P,
}

impl Record<&[u8]> {
    /// The record with a payload of its own.
    pub fn into_owned(self) -> Record {
        let Self { number, offset, payload } = self;
        Record { number, offset, payload: payload.to_vec() }
    }
}
