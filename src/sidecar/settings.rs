//! The settings from a log's creation: `.deedbook/settings`, text with a checksum.
//!
//! ```text
//! format wal
//! segment_bytes 67108864        (for a log in segments)
//! record_bytes_max 67108864
//! crc 1a2b3c4d                  (CRC-32 of the lines above)
//! ```

use std::io;
use std::path::Path;

use super::note::{Found, Note, is_absence, is_missing, value};
use crate::error::{Error, Result};
use crate::storage::{Access, Storage};

pub(super) const SETTINGS_NAME: &str = "settings";

/// The settings from a log's creation.
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
    fn lines(self) -> String {
        let Self { format, segment_bytes, record_bytes_max } = self;
        let segment = segment_bytes.map(|bytes| format!("segment_bytes {bytes}\n"));
        let segment = segment.unwrap_or_default();
        format!("format {format}\n{segment}record_bytes_max {record_bytes_max}\n")
    }

    fn of_lines(format: &'static str, lines: &str) -> Option<Self> {
        let number = |name| lines.lines().find_map(|line| value(Some(line), name))?.parse().ok();
        let settings = Self {
            format,
            segment_bytes: number("segment_bytes").filter(|&bytes| bytes > 0),
            record_bytes_max: number("record_bytes_max")?,
        };
        (settings.lines() == lines).then_some(settings)
    }

    /// Read the settings of a log of this format. Advisory: missing or damaged settings count as
    /// absent.
    pub fn load(
        storage: &dyn Storage,
        sidecar: &Path,
        format: &'static str,
    ) -> Result<Option<Self>> {
        Self::load_unless(is_absence, storage, sidecar, format)
    }

    /// As [`load`](Self::load), for callers that need the settings: a file without permission to
    /// read is an error.
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
        Ok(match note(storage, sidecar).find(is_absent)? {
            Found::Lines(lines) => Self::of_lines(format, &lines),
            Found::Absent | Found::Damaged => None,
        })
    }

    /// Sync the file. A copied log has a settings file that nobody synced.
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
        note(storage, sidecar).store(&self.lines())
    }
}

fn note<'a>(storage: &'a dyn Storage, sidecar: &Path) -> Note<'a> {
    Note { storage, path: sidecar.join(SETTINGS_NAME), what: "the settings" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_back() {
        for segment_bytes in [None, Some(64)] {
            let settings = Settings { format: "wal", segment_bytes, record_bytes_max: 9 };
            let lines = settings.lines();
            assert_eq!(Settings::of_lines("wal", &lines), Some(settings));
            assert_eq!(Settings::of_lines("book", &lines), None);
            assert_eq!(Settings::of_lines("wal", &format!("{lines}x 1\n")), None);
        }
    }
}
