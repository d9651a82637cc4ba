//! What a repair found missing: `.deedbook/loss`, text with a checksum. It outlives the repair, so
//! that no later check calls the log complete.
//!
//! ```text
//! records 2437                  (acknowledged records that are missing; 0: not known)
//! first 97564                   (number of the first of them)
//! offset 3122048                (byte at which it began)
//! crc 1a2b3c4d                  (CRC-32 of the lines above)
//! ```

use std::path::Path;

use crate::checksum::crc32;
use crate::error::{Error, ErrorKind, Result};
use crate::sidecar::is_absence;
use crate::slice::part;
use crate::storage::{Access, Storage, read_full, replace};

const LOSS_NAME: &str = "loss";
const BYTES_MAX: usize = 4096;

/// Acknowledged records that are missing from a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// How many; 0 if that is not known.
    pub records: u64,
    /// Number of the first of them.
    pub first: u64,
    /// Byte of the log at which it began.
    pub offset: u64,
}

impl Loss {
    fn encode(self) -> String {
        let Self { records, first, offset } = self;
        let text = format!("records {records}\nfirst {first}\noffset {offset}\n");
        let crc = crc32(text.as_bytes());
        text + &format!("crc {crc:08x}\n")
    }

    fn decode(text: &str) -> Option<Self> {
        let value = |name: &str| {
            text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?.parse().ok()
        };
        let loss =
            Self { records: value("records")?, first: value("first")?, offset: value("offset")? };
        (loss.encode() == text).then_some(loss)
    }

    /// Read it, if there is one. A damaged one is an error: it says that something is missing.
    pub fn load(storage: &dyn Storage, sidecar: &Path) -> Result<Option<Self>> {
        let path = sidecar.join(LOSS_NAME);
        let mut bytes = vec![0; BYTES_MAX];
        let read = match storage.open(&path, Access::Read) {
            Ok(file) => read_full(&*file, &mut bytes, 0),
            Err(e) if is_absence(&e) => return Ok(None),
            Err(e) => Err(e),
        };
        let read = read.map_err(|e| Error::io("read the note of a loss", &path, e))?;
        let text = std::str::from_utf8(part(&bytes, ..read)).ok();
        text.and_then(Self::decode).map(Some).ok_or_else(|| {
            let message = "the note of acknowledged records that a repair found missing is \
                           damaged; remove it once you know what is missing";
            Error::new(ErrorKind::Corrupt, message).at(&path)
        })
    }

    /// Add this loss to what is noted already, durably.
    pub fn store(self, storage: &dyn Storage, sidecar: &Path, mode: u32) -> Result<()> {
        let path = sidecar.join(LOSS_NAME);
        replace(storage, &path, self.encode().as_bytes(), mode)
            .map_err(|e| Error::io("store the note of a loss", &path, e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_is_read_back_and_damage_is_seen() {
        let loss = Loss { records: 2437, first: 97_564, offset: 3_122_048 };
        let text = loss.encode();
        assert_eq!(Loss::decode(&text), Some(loss));
        for at in 0..text.len() {
            let mut damaged = text.clone().into_bytes();
            damaged[at] ^= 1;
            assert_eq!(Loss::decode(&String::from_utf8_lossy(&damaged)), None);
        }
    }
}
