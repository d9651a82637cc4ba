//! Records encoded before they are appended, so that many cost one write.

use crate::error::Result;
use crate::log::format::{Format, TagOf};
use crate::scan::framing::Framing;
use crate::sidecar::INDEX_BLOCK_BYTES;

/// Encoded records, appended all or not at all.
#[derive(Clone, Debug)]
pub struct Batch<F: Format> {
    framing: F::Framing,
    pub(crate) bytes: Vec<u8>,
    pub(crate) records: u64,
    /// Byte of the last record in `bytes`.
    pub(super) last_at: usize,
    pub(super) first_sum: u32,
    pub(super) last_sum: u32,
    /// Possible ends of blocks for the index: number of records before, and byte.
    pub(super) cuts: Vec<(u64, usize)>,
    /// The longest payload: the log may have a lower limit than the batch.
    pub(crate) payload_len_max: usize,
}

impl<F: Format> Batch<F> {
    pub(crate) fn with_framing(framing: F::Framing) -> Self {
        Self {
            framing,
            bytes: Vec::new(),
            records: 0,
            last_at: 0,
            first_sum: 0,
            last_sum: 0,
            cuts: Vec::new(),
            payload_len_max: 0,
        }
    }

    pub(crate) fn framing(&self) -> &F::Framing {
        &self.framing
    }

    /// Add a record; returns its byte in the batch. The batch is unchanged if the payload is beyond
    /// the limit.
    #[inline]
    pub(crate) fn push_tagged(&mut self, tag: TagOf<F>, payload: &[u8]) -> Result<u64> {
        self.framing.check_len(payload.len())?;
        self.payload_len_max = self.payload_len_max.max(payload.len());
        self.last_at = self.bytes.len();
        self.last_sum = self.framing.encode(&mut self.bytes, tag, payload);
        if self.records == 0 {
            self.first_sum = self.last_sum;
        }
        self.records += 1;
        let block_start = self.cuts.last().map_or(0, |&(_, at)| at);
        if (self.bytes.len() - block_start) as u64 >= INDEX_BLOCK_BYTES {
            self.cuts.push((self.records, self.bytes.len()));
        }
        Ok(self.last_at as u64)
    }

    /// Number of records.
    pub fn len(&self) -> u64 {
        self.records
    }

    /// Whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Size in the log, bytes.
    pub fn bytes_len(&self) -> usize {
        self.bytes.len()
    }

    /// Forget the records and keep the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.cuts.clear();
        self.records = 0;
        self.last_at = 0;
        self.payload_len_max = 0;
    }
}
