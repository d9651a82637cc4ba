//! What a log was created with: `.deedbook/settings`, text with a checksum.
//!
//! ```text
//! format wal
//! segment_bytes 67108864        (for a log in segments)
//! record_bytes_max 67108864
//! crc 1a2b3c4d                  (CRC-32 of the lines above)
//! ```

use std::io;
use std::path::Path;

use super::dir::PRIVATE_MODE;
use crate::checksum::crc32;
use crate::error::{Error, Result};
use crate::slice::part;
use crate::storage::{Access, Storage, read_full, replace};

pub(super) const SETTINGS_NAME: &str = "settings";
const BYTES_MAX: usize = 4096;

/// What a log was created with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The format's name.
    pub format: &'static str,
    /// Size of a segment, for a segmented log.
    pub segment_bytes: Option<u64>,
    /// Limit of a record, as the format counts it.
    pub record_bytes_max: u64,
}

impl Settings {
    fn encode(self) -> String {
        let mut text = format!("format {}\n", self.format);
        if let Some(bytes) = self.segment_bytes {
            text.push_str(&format!("segment_bytes {bytes}\n"));
        }
        text.push_str(&format!("record_bytes_max {}\n", self.record_bytes_max));
        let crc = crc32(text.as_bytes());
        text + &format!("crc {crc:08x}\n")
    }

    fn decode(format: &'static str, text: &str) -> Option<Self> {
        let value = |name: &str| {
            text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?.parse().ok()
        };
        let settings = Self {
            format,
            segment_bytes: value("segment_bytes").filter(|&bytes| bytes > 0),
            record_bytes_max: value("record_bytes_max")?,
        };
        (settings.encode() == text).then_some(settings)
    }

    /// Read those of a log of this format. Advisory: what is missing or damaged is as good as not
    /// there.
    pub fn load(
        storage: &dyn Storage,
        sidecar: &Path,
        format: &'static str,
    ) -> Result<Option<Self>> {
        Self::load_unless(is_absence, storage, sidecar, format)
    }

    /// The same for what goes wrong without them: those that may not be read are an error.
    pub fn load_known(
        storage: &dyn Storage,
        sidecar: &Path,
        format: &'static str,
    ) -> Result<Option<Self>> {
        Self::load_unless(is_missing, storage, sidecar, format)
    }

    fn load_unless(
        is_absent: fn(&io::Error) -> bool,
        storage: &dyn Storage,
        sidecar: &Path,
        format: &'static str,
    ) -> Result<Option<Self>> {
        let path = sidecar.join(SETTINGS_NAME);
        let mut bytes = vec![0; BYTES_MAX];
        let read = match storage.open(&path, Access::Read) {
            Ok(file) => read_full(&*file, &mut bytes, 0),
            Err(e) if is_absent(&e) => return Ok(None),
            Err(e) => Err(e),
        };
        let read = read.map_err(|e| Error::io("read the settings", &path, e))?;
        let text = std::str::from_utf8(part(&bytes, ..read)).ok();
        Ok(text.and_then(|text| Self::decode(format, text)))
    }

    /// Sync the file: a copy of a log has one that nobody synced.
    pub fn sync(storage: &dyn Storage, sidecar: &Path) -> Result<()> {
        let path = sidecar.join(SETTINGS_NAME);
        let synced = match storage.open(&path, Access::Read) {
            Ok(file) => file.sync_data(),
            Err(e) if is_absence(&e) => Ok(()),
            Err(e) => Err(e),
        };
        synced.map_err(|e| Error::io("sync the settings", &path, e))
    }

    /// Write them, durably.
    pub fn store(self, storage: &dyn Storage, sidecar: &Path) -> Result<()> {
        let path = sidecar.join(SETTINGS_NAME);
        replace(storage, &path, self.encode().as_bytes(), PRIVATE_MODE)
            .map_err(|e| Error::io("store the settings", &path, e))
    }
}

/// Whether an error says no more than that there is no such file, or none for us to read. That is
/// enough for a reader, and for what is advisory.
pub fn is_absence(e: &io::Error) -> bool {
    is_missing(e) || e.kind() == io::ErrorKind::PermissionDenied
}

/// Whether an error says that there is no such file: for one that may be there, and must not be taken
/// for absent.
pub fn is_missing(e: &io::Error) -> bool {
    use io::ErrorKind::{InvalidInput, NotADirectory, NotFound};
    matches!(e.kind(), NotFound | InvalidInput | NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_back_and_damage_is_seen() {
        for segment_bytes in [None, Some(64)] {
            let settings = Settings { format: "wal", segment_bytes, record_bytes_max: 9 };
            let text = settings.encode();
            assert_eq!(Settings::decode("wal", &text), Some(settings));
            assert_eq!(Settings::decode("book", &text), None);
            for at in 0..text.len() {
                let mut damaged = text.clone().into_bytes();
                damaged[at] ^= 1;
                assert_eq!(Settings::decode("wal", &String::from_utf8_lossy(&damaged)), None);
            }
        }
    }
}
