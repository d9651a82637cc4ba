//! The records that callers get, and the positions of records.

/// The position of a record: the file, and the number in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The index of the file.
    pub file: u32,
    /// The number of the record in the file, from 0 on.
    pub record: u64,
}

/// The first and the last record of a batch.
pub type Positions = (Position, Position);

/// A record of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The record's number in the file, from 0 on; `None` after damage that hid the count.
    pub number: Option<u64>,
    /// The record's first byte in the file.
    pub offset: u64,
    /// The payload.
    pub payload: Vec<u8>,
}

/// A record, borrowed from its cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordRef<'a> {
    /// The record's number in the file, from 0 on; `None` after damage that hid the count.
    pub number: Option<u64>,
    /// The record's first byte in the file.
    pub offset: u64,
    /// The payload.
    pub payload: &'a [u8],
}
