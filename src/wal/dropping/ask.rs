//! What another process asks the writer to drop: `.deedbook/retain`, text with a checksum. The writer
//! looks there when it opens the log, and after its first sync in each segment.
//!
//! ```text
//! bytes_max 10485760         (each line only if it was asked for)
//! age_max_ms 604800000
//! consumed
//! crc 1a2b3c4d               (CRC-32 of the lines above)
//! ```

use std::path::PathBuf;
use std::time::Duration;

use crate::checksum::crc32;
use crate::error::{Error, ErrorKind, Result};
use crate::retention::Retention;
use crate::sidecar::{PRIVATE_MODE, is_absence};
use crate::slice::part;
use crate::storage::{Access, read_full, replace};
use crate::wal::codec::FORMAT;
use crate::wal::format::WalFormat;
use crate::wal::{Shared, Wal};

const ASKED_NAME: &str = "retain";
const BYTES_MAX: usize = 4096;

impl Wal {
    /// Ask the log's writer to do what [`Wal::retain`] does, in place of what was asked before. It does
    /// so after its first sync in a new segment, or when the log is opened for writing next. For a
    /// handle that reads, beside a running writer.
    pub fn ask_to_retain(&self, retention: &Retention) -> Result<()> {
        let shared = self.usable()?;
        shared.check_segmented()?;
        let _consumers = shared.lock_consumers()?;
        let path = shared.asked_path();
        let common = &shared.common;
        replace(&*common.storage, &path, encode(retention).as_bytes(), PRIVATE_MODE)
            .map_err(|e| Error::io("store what to retain", &path, e).of(FORMAT))
    }
}

impl Shared<WalFormat> {
    fn asked_path(&self) -> PathBuf {
        self.place.sidecar.join(ASKED_NAME)
    }

    /// What the writer is asked to drop.
    pub(super) fn asked(&self) -> Result<Option<Retention>> {
        let path = self.asked_path();
        let mut bytes = vec![0; BYTES_MAX];
        let read = match self.common.storage.open(&path, Access::Read) {
            Ok(file) => read_full(&*file, &mut bytes, 0),
            Err(e) if is_absence(&e) => return Ok(None),
            Err(e) => Err(e),
        };
        let read = read.map_err(|e| Error::io("read what to retain", &path, e).of(FORMAT))?;
        let text = std::str::from_utf8(part(&bytes, ..read)).ok();
        text.and_then(decode).map(Some).ok_or_else(|| {
            let message =
                "the file that says what to drop is damaged: ask again, which replaces it";
            Error::new(ErrorKind::Corrupt, message).of(FORMAT).at(&path)
        })
    }

    /// Forget what was asked: it is done. After a crash it may be done once more.
    pub(super) fn forget_asked(&self) -> Result<()> {
        let path = self.asked_path();
        let removed = self.common.storage.remove(&path);
        removed.map_err(|e| Error::io("remove what to retain", &path, e).of(FORMAT))
    }
}

fn encode(retention: &Retention) -> String {
    let mut text = String::new();
    if let Some(bytes) = retention.bytes_max {
        text.push_str(&format!("bytes_max {bytes}\n"));
    }
    if let Some(age) = retention.age_max {
        // Rounded up: 0 would drop all.
        let ms = age.as_nanos().div_ceil(1_000_000).min(u64::MAX.into());
        text.push_str(&format!("age_max_ms {ms}\n"));
    }
    if retention.consumed {
        text.push_str("consumed\n");
    }
    let crc = crc32(text.as_bytes());
    text + &format!("crc {crc:08x}\n")
}

fn decode(text: &str) -> Option<Retention> {
    let value = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?.parse().ok()
    };
    let retention = Retention {
        bytes_max: value("bytes_max"),
        age_max: value("age_max_ms").map(Duration::from_millis),
        consumed: text.lines().any(|line| line == "consumed"),
    };
    (encode(&retention) == text).then_some(retention)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Less than a millisecond became 0, which drops all, and the longest time was taken for damage.
    #[test]
    fn an_age_is_stored_in_whole_milliseconds_and_not_less() {
        for (age, stored) in [
            (Duration::from_micros(1), Duration::from_millis(1)),
            (Duration::from_micros(1500), Duration::from_millis(2)),
            (Duration::MAX, Duration::from_millis(u64::MAX)),
        ] {
            let asked = Retention { age_max: Some(age), ..Retention::default() };
            assert_eq!(decode(&encode(&asked)).unwrap().age_max, Some(stored));
        }
    }

    #[test]
    fn what_is_asked_is_read_back_and_damage_is_seen() {
        for (bytes_max, age, consumed) in
            [(None, None, false), (Some(u64::MAX), Some(1), true), (Some(0), None, true)]
        {
            let age_max = age.map(Duration::from_millis);
            let retention = Retention { bytes_max, age_max, consumed };
            let text = encode(&retention);
            assert_eq!(decode(&text), Some(retention));
            for at in 0..text.len() {
                let mut bytes = text.clone().into_bytes();
                bytes[at] ^= 1;
                let damaged = String::from_utf8(bytes).unwrap();
                assert_eq!(decode(&damaged), None, "{damaged:?}");
                assert_eq!(decode(&text[..at]), None);
            }
        }
    }
}
