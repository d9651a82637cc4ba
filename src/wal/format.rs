//! The type of the format: layout, codec and segments of one log.

use std::sync::Arc;

use super::codec::Codec;
use super::options::Layout;
use crate::locks::atomic::AtomicU64;
use crate::storage::segmented::Segmented;

/// The codec and the files of one log.
#[derive(Clone, Debug)]
pub struct WalFormat {
    pub(super) codec: Codec,
    pub(super) layout: Layout,
    pub(super) segments: Option<Arc<Segmented>>,
    /// The segment in which the log ended when the retention asked for at opening was applied last.
    pub(super) retained_in: Arc<AtomicU64>,
}

impl WalFormat {
    pub(super) fn new(codec: Codec, layout: Layout, segments: Option<Arc<Segmented>>) -> Self {
        Self { codec, layout, segments, retained_in: Arc::default() }
    }

    /// Where the log's bytes lie.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Its segments, if it has any.
    pub fn segments(&self) -> Option<&Arc<Segmented>> {
        self.segments.as_ref()
    }

    /// Limit of a payload that the log was created with.
    pub fn record_bytes_max(&self) -> u64 {
        self.codec.record_bytes_max
    }
}
