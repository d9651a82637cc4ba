//! What a log was created with: `.deedbook/settings`, text with a checksum.
//!
//! ```text
//! format wal
//! segment_bytes 67108864        (absent for a single file)
//! record_bytes_max 67108864
//! crc 1a2b3c4d                  (CRC-32 of the lines above)
//! ```

use std::io;
use std::path::Path;

use super::options::{Layout, Options};
use crate::checksum::crc32;
use crate::error::{Error, ErrorKind, Result};
use crate::storage::{Access, Storage, read_full, replace};

const SETTINGS_NAME: &str = "settings";
const BYTES_MAX: usize = 4096;

/// What a log was created with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Size of a segment, for a segmented log.
    pub segment_bytes: Option<u64>,
    /// Limit of a payload.
    pub record_bytes_max: u64,
}

impl Settings {
    fn encode(self) -> String {
        let mut text = String::from("format wal\n");
        if let Some(bytes) = self.segment_bytes {
            text.push_str(&format!("segment_bytes {bytes}\n"));
        }
        text.push_str(&format!("record_bytes_max {}\n", self.record_bytes_max));
        let crc = crc32(text.as_bytes());
        text + &format!("crc {crc:08x}\n")
    }

    fn decode(text: &str) -> Option<Self> {
        let value = |name: &str| {
            text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?.parse().ok()
        };
        let settings = Self {
            segment_bytes: value("segment_bytes").filter(|&bytes| bytes > 0),
            record_bytes_max: value("record_bytes_max")?,
        };
        (settings.encode() == text).then_some(settings)
    }

    /// Read them. Advisory: what is missing or damaged is as good as not there.
    pub fn load(storage: &dyn Storage, sidecar: &Path) -> Result<Option<Self>> {
        let path = sidecar.join(SETTINGS_NAME);
        let mut bytes = vec![0; BYTES_MAX];
        let read = match storage.open(&path, Access::Read) {
            Ok(file) => read_full(&*file, &mut bytes, 0),
            Err(e) if is_absence(&e) => return Ok(None),
            Err(e) => Err(e),
        };
        let read = read.map_err(|e| Error::io("read the settings", &path, e))?;
        let there = bytes.get(..read).unwrap_or_default();
        Ok(std::str::from_utf8(there).ok().and_then(Self::decode))
    }

    /// Write them, durably.
    pub fn store(self, options: &Options, sidecar: &Path) -> Result<()> {
        let path = sidecar.join(SETTINGS_NAME);
        replace(&*options.storage, &path, self.encode().as_bytes(), options.file_mode)
            .map_err(|e| Error::io("store the settings", &path, e))
    }

    /// Refuse a layout that is not the log's.
    pub fn check_layout(self, asked: Option<Layout>, log: &Path) -> Result<()> {
        match (asked, self.segment_bytes) {
            (Some(Layout::Segmented { segment_bytes: asked }), Some(has)) if asked != has => {
                let message = format!("segment size {asked} asked for, the log has {has}");
                Err(Error::new(ErrorKind::InvalidArgument, message).at(log))
            }
            _ => Ok(()),
        }
    }
}

/// Whether an error says no more than that there is no such file, or none for us to read.
pub fn is_absence(e: &io::Error) -> bool {
    matches!(
        e.kind(),
        io::ErrorKind::NotFound
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::PermissionDenied
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_back_and_damage_is_not_believed() {
        for segment_bytes in [None, Some(64)] {
            let settings = Settings { segment_bytes, record_bytes_max: 1 << 20 };
            let text = settings.encode();
            assert_eq!(Settings::decode(&text), Some(settings));
            assert_eq!(Settings::decode(&text.replace("record", "rekord")), None);
            assert_eq!(Settings::decode(&text.replace('1', "2")), None);
            assert_eq!(Settings::decode(text.trim_end()), None);
        }
    }
}
