//! The type of the format: the codec of one book.

use super::layouts::Layout;
use super::layouts::codec::Codec;

/// The format of a book, as the parameter of the types that walk over logs: `Cursor<BookFormat>`.
#[derive(Clone, Copy, Debug)]
pub struct BookFormat {
    pub(super) codec: Codec,
}

impl BookFormat {
    pub(crate) fn reading(layout: Layout, deed_bytes_max: u64) -> Self {
        Self { codec: Codec::new(layout, deed_bytes_max) }
    }

    pub(crate) fn layout(&self) -> Layout {
        self.codec.layout
    }
}
