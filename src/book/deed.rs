//! The deeds of a book, for callers.

/// An event of a book.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deed {
    /// The event's number; `None` only after damage that hid the number of lost deeds.
    pub event: Option<u64>,
    /// The mug as stored.
    pub mug: u32,
    /// The payload.
    pub jam: Vec<u8>,
}

/// A deed, borrowed from its cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeedRef<'a> {
    /// The event's number; `None` only after damage that hid the number of lost deeds.
    pub event: Option<u64>,
    /// The deed's byte in the log.
    pub offset: u64,
    /// The mug as stored.
    pub mug: u32,
    /// The payload.
    pub jam: &'a [u8],
    pub(super) framed_len: u64,
}

impl DeedRef<'_> {
    /// Size in the log with its framing, bytes.
    pub fn framed_len(&self) -> u64 {
        self.framed_len
    }
}
