//! The deeds of a book, for callers.

/// An event of a book. A cursor lends the jam, and gives a `Deed<&[u8]>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deed<J = Vec<u8>> {
    /// The event's number; `None` only after damage that hid the number of lost deeds.
    pub event: Option<u64>,
    /// The deed's first byte in its log.
    pub offset: u64,
    /// The mug as stored.
    pub mug: u32,
    /// The payload.
    pub jam: J,
}

impl Deed<&[u8]> {
    /// The deed with a jam of its own.
    pub fn into_owned(self) -> Deed {
        let Self { event, offset, mug, jam } = self;
        Deed { event, offset, mug, jam: jam.to_vec() }
    }
}
