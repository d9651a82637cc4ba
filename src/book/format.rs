//! The type of the format: the codec of one book.

use super::layouts::Layout;
use super::layouts::codec::Codec;

/// The layout of one log.
#[derive(Clone, Copy, Debug)]
pub struct BookFormat {
    pub(super) codec: Codec,
}

impl BookFormat {
    pub fn reading(layout: Layout, deed_bytes_max: u64) -> Self {
        Self { codec: Codec::new(layout, deed_bytes_max) }
    }

    pub fn layout(&self) -> Layout {
        self.codec.layout
    }
}
