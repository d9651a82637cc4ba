//! The type of a log's format: layout and codec.

use std::sync::Arc;

use super::codec::Codec;
use super::options::Layout;
use crate::ground::locks::atomic::AtomicU64;

/// The format of a write-ahead log, as the parameter of the types that walk over logs: `Cursor<WalFormat>`.
#[derive(Clone, Debug)]
pub struct WalFormat {
    pub(super) codec: Codec,
    pub(super) layout: Layout,
    /// The segment of the log's durable end, plus 1, when the option `retention` was last applied;
    /// 0 means never.
    pub(super) retained_in: Arc<AtomicU64>,
}

impl WalFormat {
    pub(super) fn new(codec: Codec, layout: Layout) -> Self {
        Self { codec, layout, retained_in: Arc::default() }
    }

    /// The layout of the log's bytes.
    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    /// Limit of a payload, from the creation of the log.
    pub(crate) fn record_bytes_max(&self) -> u64 {
        self.codec.record_bytes_max
    }
}
