//! Deeds encoded before they are appended, so that many cost one write.

use super::format::{FORMAT, FRAMING_BYTES, MUG_BYTES, encode_deed};
use crate::error::{Durable, Error, ErrorKind, Result};
use crate::sidecar::BLOCK_BYTES;

/// Encoded deeds, appended all or not at all by [`Book::append_batch`](super::Book::append_batch).
#[derive(Clone, Debug)]
pub struct Batch {
    pub(super) bytes: Vec<u8>,
    pub(super) deeds: u64,
    /// Byte of the last deed in `bytes`.
    pub(super) last_at: usize,
    pub(super) first_sum: u32,
    pub(super) last_sum: u32,
    /// Where blocks for the index may end: deeds before it, and byte.
    pub(super) cuts: Vec<(u64, usize)>,
    deed_bytes_max: u64,
    /// The longest jam: the book may have a lower limit than the batch.
    pub(super) jam_len_max: usize,
}

impl Batch {
    /// An empty batch for deeds whose `len_d` is at most `deed_bytes_max`.
    pub fn new(deed_bytes_max: u64) -> Self {
        Self {
            bytes: Vec::new(),
            deeds: 0,
            last_at: 0,
            first_sum: 0,
            last_sum: 0,
            cuts: Vec::new(),
            deed_bytes_max,
            jam_len_max: 0,
        }
    }

    /// Add a deed. The batch is unchanged if the deed is beyond the limit.
    #[inline]
    pub fn push(&mut self, mug: u32, jam: &[u8]) -> Result<()> {
        check_len(jam.len(), self.deed_bytes_max)?;
        self.jam_len_max = self.jam_len_max.max(jam.len());
        self.last_at = self.bytes.len();
        self.last_sum = encode_deed(&mut self.bytes, mug, jam);
        if self.deeds == 0 {
            self.first_sum = self.last_sum;
        }
        self.deeds += 1;
        let block_start = self.cuts.last().map_or(0, |&(_, at)| at);
        if (self.bytes.len() - block_start) as u64 >= BLOCK_BYTES {
            self.cuts.push((self.deeds, self.bytes.len()));
        }
        Ok(())
    }

    /// Number of deeds.
    pub fn len(&self) -> u64 {
        self.deeds
    }

    /// Whether there are no deeds.
    pub fn is_empty(&self) -> bool {
        self.deeds == 0
    }

    /// Size in the log, bytes.
    pub fn bytes_len(&self) -> usize {
        self.bytes.len()
    }

    /// Forget the deeds and keep the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.cuts.clear();
        self.deeds = 0;
        self.last_at = 0;
        self.jam_len_max = 0;
    }
}

pub(super) fn check_len(jam_len: usize, deed_bytes_max: u64) -> Result<()> {
    let len = jam_len as u64 + MUG_BYTES;
    if len <= deed_bytes_max && len <= u64::MAX - FRAMING_BYTES {
        return Ok(());
    }
    let message = format!("deed of {len} bytes with its mug, limit {deed_bytes_max}");
    Err(Error::new(ErrorKind::TooLarge, message).of(FORMAT).with_durable(Durable::No))
}
