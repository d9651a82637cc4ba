//! A truncation of the end that was begun: `.deedbook/cut`. Whoever opens the log next ends it.
//!
//! Several files cannot be cut at once. The intent is durable before the first of them is touched
//! and removed behind the last, so a crash in between leaves the new state, not something between.
//!
//! ```text
//! 0 magic 4   4 version 4   8 end 8   16 last_offset 8   24 last_sum 4   28 crc 4 (of 0..28)
//! ```

use std::path::Path;

use super::options::Options;
use super::segments::remove;
use super::settings::is_absence;
use super::tip::Tip;
use crate::checksum::crc32;
use crate::error::{Error, Result};
use crate::storage::{Access, Storage, read_full, replace};

const INTENT_NAME: &str = "cut";
const MAGIC: &[u8; 4] = b"DBCT";
const VERSION: u32 = 1;
const BYTES: usize = 32;

/// Where the log is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Intent {
    /// Byte behind the last record to keep.
    pub end: u64,
    /// Byte of that record.
    pub last_offset: u64,
    /// Its stored checksum: ties the intent to the log.
    pub last_sum: u32,
}

impl Intent {
    /// The intent to cut behind `tip`.
    pub fn of(tip: Tip) -> Self {
        Self { end: tip.end, last_offset: tip.last_offset, last_sum: tip.last_sum }
    }

    fn encode(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(BYTES);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&self.end.to_le_bytes());
        bytes.extend_from_slice(&self.last_offset.to_le_bytes());
        bytes.extend_from_slice(&self.last_sum.to_le_bytes());
        bytes.extend_from_slice(&crc32(&bytes).to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let u64_at = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let u32_at = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let intent = Self { end: u64_at(8)?, last_offset: u64_at(16)?, last_sum: u32_at(24)? };
        (intent.encode() == bytes).then_some(intent)
    }

    /// Read it; what is no intent is none.
    pub fn load(storage: &dyn Storage, sidecar: &Path) -> Result<Option<Self>> {
        let path = sidecar.join(INTENT_NAME);
        let mut bytes = [0; BYTES];
        let read = match storage.open(&path, Access::Read) {
            Ok(file) => read_full(&*file, &mut bytes, 0),
            Err(e) if is_absence(&e) => return Ok(None),
            Err(e) => Err(e),
        };
        let read = read.map_err(|e| Error::io("read the intent", &path, e))?;
        Ok(Self::decode(bytes.get(..read).unwrap_or_default()))
    }

    /// Write it, durably.
    pub fn store(self, options: &Options, sidecar: &Path) -> Result<()> {
        let path = sidecar.join(INTENT_NAME);
        replace(&*options.storage, &path, &self.encode(), options.file_mode)
            .map_err(|e| Error::io("store the intent", &path, e))
    }

    /// Remove it, durably.
    pub fn clear(options: &Options, sidecar: &Path) -> Result<()> {
        let path = sidecar.join(INTENT_NAME);
        remove(&*options.storage, &path)
            .and_then(|()| options.storage.sync_dir(sidecar))
            .map_err(|e| Error::io("remove the intent", &path, e))
    }
}
