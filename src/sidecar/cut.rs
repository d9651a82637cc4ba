//! The intent of a truncation: `.deedbook/cut`. The next opening finishes a truncation that a crash
//! interrupted.
//!
//! Several files cannot be cut at once. The intent becomes durable before the first cut of a file,
//! and is removed after the last. A crash in between leaves the intent, and the next opening
//! finishes the cut.
//!
//! The intent names its log by file. An emptied log has no record to tie the intent to: after a
//! crash, the intent would empty any log put in its place.
//!
//! ```text
//!  0 magic 4   4 version 4   8 end 8   16 last_offset 8   24 last_sum 4   28 first_sum 4
//! 32 start 8   40 device 8   48 inode 8   56 created 8   64 crc 4 (CRC-32 of bytes 0..64)
//! ```

use std::path::Path;

use super::{PRIVATE_MODE, is_absence};
use crate::error::{Error, Result};
use crate::ground::checksum::crc32;
use crate::ground::slice::part;
use crate::storage::segmented::remove;
use crate::storage::{Access, FileId, Storage, read_full, replace};

const INTENT_NAME: &str = "cut";
const MAGIC: &[u8; 4] = b"DBCT";
const VERSION: u32 = 2;
const BYTES: usize = 68;

/// The intended end of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Intent {
    /// Byte after the last record to keep.
    pub end: u64,
    /// Byte of the last record.
    pub last_offset: u64,
    /// Its stored checksum: ties the intent to the log.
    pub last_sum: u32,
    /// Stored checksum of the log's first record when the cut began, whether it is kept or not.
    pub first_sum: u32,
    /// Byte of that record.
    pub start: u64,
    /// The single file, or the lowest segment: a cut keeps this file, even empty.
    pub file: FileId,
}

/// The content of the intent's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// Nothing.
    Absent,
    /// Something that is no intent.
    Foreign,
    /// An intent, perhaps another log's.
    Intent(Intent),
}

impl Intent {
    fn encode(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(BYTES);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&self.end.to_le_bytes());
        bytes.extend_from_slice(&self.last_offset.to_le_bytes());
        bytes.extend_from_slice(&self.last_sum.to_le_bytes());
        bytes.extend_from_slice(&self.first_sum.to_le_bytes());
        for number in [self.start, self.file.device, self.file.inode, self.file.created_ns] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&crc32(&bytes).to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let u64_at = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let u32_at = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let intent = Self {
            end: u64_at(8)?,
            last_offset: u64_at(16)?,
            last_sum: u32_at(24)?,
            first_sum: u32_at(28)?,
            start: u64_at(32)?,
            file: FileId { device: u64_at(40)?, inode: u64_at(48)?, created_ns: u64_at(56)? },
        };
        (intent.encode() == bytes).then_some(intent)
    }

    /// Read the intent. A path that is no readable file counts as no intent.
    pub fn load(storage: &dyn Storage, sidecar: &Path) -> Result<Left> {
        let path = sidecar.join(INTENT_NAME);
        let mut bytes = [0; BYTES + 1];
        let read = match storage.open(&path, Access::Read) {
            Ok(file) => read_full(&*file, &mut bytes, 0),
            Err(e) if is_absence(&e) => return Ok(Left::Absent),
            Err(e) => Err(e),
        };
        let read = read.map_err(|e| Error::io("read the intent", &path, e))?;
        let intent = Self::decode(part(&bytes, ..read));
        Ok(intent.map_or(Left::Foreign, Left::Intent))
    }

    /// Write it, durably.
    pub fn store(self, storage: &dyn Storage, sidecar: &Path) -> Result<()> {
        let path = sidecar.join(INTENT_NAME);
        replace(storage, &path, &self.encode(), PRIVATE_MODE)
            .map_err(|e| Error::io("store the intent", &path, e))
    }

    /// Remove it, durably.
    pub fn clear(storage: &dyn Storage, sidecar: &Path) -> Result<()> {
        let path = sidecar.join(INTENT_NAME);
        remove(storage, &path)
            .and_then(|()| storage.sync_dir(sidecar))
            .map_err(|e| Error::io("remove the intent", &path, e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Memory;

    const SIDECAR: &str = "/log/.deedbook";

    fn intent() -> Intent {
        let file = FileId { device: 6, inode: 7, created_ns: 8 };
        Intent { start: 5, end: 1, last_offset: 2, last_sum: 3, first_sum: 4, file }
    }

    fn write(storage: &dyn Storage, bytes: &[u8]) {
        let path = Path::new(SIDECAR).join(INTENT_NAME);
        replace(storage, &path, bytes, 0o600).unwrap();
    }

    #[test]
    fn an_intent_round_trips_and_shows_damage() {
        let bytes = intent().encode();
        let numbers = [1u64, 2].map(u64::to_le_bytes).concat();
        let sums = [3u32, 4].map(u32::to_le_bytes).concat();
        let file = [5u64, 6, 7, 8].map(u64::to_le_bytes).concat();
        assert_eq!(part(&bytes, ..64), [&b"DBCT\x02\0\0\0"[..], &numbers, &sums, &file].concat());
        assert_eq!(Intent::decode(&bytes), Some(intent()));
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert_eq!(Intent::decode(&damaged), None, "byte {at}");
            assert_eq!(Intent::decode(part(&bytes, ..at)), None, "{at} bytes");
        }
    }

    #[test]
    fn an_intent_is_stored_and_cleared() {
        let memory = Memory::new();
        let sidecar = Path::new(SIDECAR);
        assert_eq!(Intent::load(&memory, sidecar).unwrap(), Left::Absent);
        intent().store(&memory, sidecar).unwrap();
        assert_eq!(Intent::load(&memory, sidecar).unwrap(), Left::Intent(intent()));
        Intent::clear(&memory, sidecar).unwrap();
        assert_eq!(Intent::load(&memory, sidecar).unwrap(), Left::Absent);
        Intent::clear(&memory, sidecar).unwrap();
        write(&memory, &[&intent().encode()[..], b"x"].concat());
        assert_eq!(Intent::load(&memory, sidecar).unwrap(), Left::Foreign);
    }

    /// An unreadable intent must not count as none: the bytes after its end are no longer the
    /// log's.
    #[cfg(feature = "sim")]
    #[test]
    fn an_unreadable_intent_is_an_error() {
        use crate::storage::sim::{Call, Fault, Sim, What};
        let disk = Sim::new();
        Path::new(SIDECAR).ancestors().collect::<Vec<_>>().into_iter().rev().for_each(|dir| {
            drop(disk.create_dir(dir));
        });
        write(&disk, &intent().encode());
        disk.inject(Fault::once(1, What::Error(std::io::ErrorKind::Other)).of(Call::Open));
        assert!(Intent::load(&disk, Path::new(SIDECAR)).is_err());
    }
}
