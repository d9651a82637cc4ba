//! The records that callers get.

/// One record of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its number in the file, from 0 on; `None` after damage that hid the count.
    pub number: Option<u64>,
    /// The byte of the file at which it begins.
    pub offset: u64,
    /// The payload.
    pub payload: Vec<u8>,
}

/// A record, borrowed from its cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordRef<'a> {
    /// Its number in the file, from 0 on; `None` after damage that hid the count.
    pub number: Option<u64>,
    /// The byte of the file at which it begins.
    pub offset: u64,
    /// The payload.
    pub payload: &'a [u8],
}
