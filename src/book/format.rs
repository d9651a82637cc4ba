//! The type of the format: codec and slots of one book.

use std::sync::Arc;

use super::layouts::Layout;
use super::layouts::codec::Codec;
use super::slots::committed::Followed;
use super::slots::writer::SlotWriter;

/// The layout of one log.
#[derive(Clone, Debug)]
pub struct BookFormat {
    pub(super) codec: Codec,
    /// Of the layout `slots`.
    pub(super) slots: Option<Arc<SlotWriter>>,
    /// The same, of a reader.
    pub(super) followed: Arc<Followed>,
}

impl BookFormat {
    pub fn reading(layout: Layout, deed_bytes_max: u64) -> Self {
        Self { codec: Codec::new(layout, deed_bytes_max), slots: None, followed: Arc::default() }
    }

    pub(super) fn layout(&self) -> Layout {
        self.codec.layout
    }

    pub(super) fn followed(&self) -> &Followed {
        &self.followed
    }
}
