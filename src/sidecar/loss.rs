//! What repairs went on without: `.deedbook/loss`, text with a checksum. It outlives them, so that no
//! later check calls the log complete.
//!
//! ```text
//! records 2437                  (acknowledged records that are missing; 0: not known)
//! first 97564                   (number of the first of them)
//! offset 3122048                (byte at which it began)
//! crc 1a2b3c4d                  (CRC-32 of the lines above)
//! ```
//!
//! After several losses there are six lines before the checksum: all but the last loss together, and
//! the last. A crash between its note and the cut has the last one noted once more, and it must not
//! count twice.

use std::path::Path;

use super::dir::PRIVATE_MODE;
use super::sealed::{seal, unseal};
use super::settings::is_absence;
use crate::error::{Error, ErrorKind, Result};
use crate::slice::part;
use crate::storage::{Access, Storage, read_full, replace};

const LOSS_NAME: &str = "loss";
const BYTES_MAX: usize = 4096;
/// Lines of one loss.
const LINES: usize = 3;

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
    /// All that is noted, together. A damaged note is an error: it says that something is missing.
    pub fn load(storage: &dyn Storage, sidecar: &Path) -> Result<Option<Self>> {
        let noted = load(storage, sidecar)?;
        Ok(noted.into_iter().reduce(|all, loss| all.and(loss, u64::saturating_add)))
    }

    /// Add this loss to what is noted already, durably. That of the last note is the same one.
    pub fn store(self, storage: &dyn Storage, sidecar: &Path) -> Result<()> {
        let mut noted = load(storage, sidecar)?;
        let noted = match noted.pop() {
            None => vec![self],
            Some(last) if (last.first, last.offset) == (self.first, self.offset) => {
                noted.push(last.and(self, u64::max));
                noted
            }
            Some(last) => {
                let before = noted.into_iter().fold(last, |all, l| all.and(l, u64::saturating_add));
                vec![before, self]
            }
        };
        let path = sidecar.join(LOSS_NAME);
        replace(storage, &path, encode(&noted).as_bytes(), PRIVATE_MODE)
            .map_err(|e| Error::io("store the note of a loss", &path, e))
    }

    /// Both, as one that began where the first did. How many is known if it is of both.
    fn and(self, other: Self, count: fn(u64, u64) -> u64) -> Self {
        let known = self.records > 0 && other.records > 0;
        let records = if known { count(self.records, other.records) } else { 0 };
        Self { records, first: self.first.min(other.first), offset: self.offset.min(other.offset) }
    }

    fn of_lines(lines: &[&str]) -> Option<Self> {
        let value = |at: usize, name: &str| {
            lines.get(at)?.strip_prefix(name)?.strip_prefix(' ')?.parse().ok()
        };
        Some(Self {
            records: value(0, "records")?,
            first: value(1, "first")?,
            offset: value(2, "offset")?,
        })
    }
}

fn encode(noted: &[Loss]) -> String {
    let lines = |&Loss { records, first, offset }: &Loss| {
        format!("records {records}\nfirst {first}\noffset {offset}\n")
    };
    seal(&noted.iter().map(lines).collect::<String>())
}

fn decode(text: &str) -> Option<Vec<Loss>> {
    let lines: Vec<&str> = unseal(text)?.lines().collect();
    let noted: Vec<Loss> = lines.chunks(LINES).map(Loss::of_lines).collect::<Option<_>>()?;
    (encode(&noted) == text).then_some(noted)
}

/// All but the last loss together, and the last; or the only one.
fn load(storage: &dyn Storage, sidecar: &Path) -> Result<Vec<Loss>> {
    let path = sidecar.join(LOSS_NAME);
    let mut bytes = vec![0; BYTES_MAX];
    let read = match storage.open(&path, Access::Read) {
        Ok(file) => read_full(&*file, &mut bytes, 0),
        Err(e) if is_absence(&e) => return Ok(Vec::new()),
        Err(e) => Err(e),
    };
    let read = read.map_err(|e| Error::io("read the note of a loss", &path, e))?;
    let text = std::str::from_utf8(part(&bytes, ..read)).ok();
    text.and_then(decode).ok_or_else(|| {
        let message = "the note of acknowledged records that a repair found missing is \
                       damaged; remove it once you know what is missing";
        Error::new(ErrorKind::Corrupt, message).at(&path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Memory;

    const ONE: Loss = Loss { records: 2437, first: 97_564, offset: 3_122_048 };
    const TWO: Loss = Loss { records: 3, first: 97_600, offset: 3_123_000 };

    #[test]
    fn a_loss_is_read_back_and_damage_is_seen() {
        for noted in [vec![ONE], vec![ONE, TWO]] {
            let text = encode(&noted);
            assert_eq!(decode(&text), Some(noted));
            for at in 0..text.len() {
                let mut damaged = text.clone().into_bytes();
                damaged[at] ^= 1;
                assert_eq!(decode(&String::from_utf8_lossy(&damaged)), None, "byte {at}");
            }
        }
    }

    /// The second note took the place of the first.
    #[test]
    fn losses_add_up_and_one_that_is_noted_again_counts_once() {
        let (storage, dir) = (Memory::new(), Path::new("/.deedbook"));
        let noted = |loss: Loss| {
            loss.store(&storage, dir).unwrap();
            let Loss { records, first, offset } = Loss::load(&storage, dir).unwrap().unwrap();
            (records, first, offset)
        };
        assert_eq!(Loss::load(&storage, dir).unwrap(), None);
        let three = Loss { records: 1, first: 4, offset: 116 };
        let unknown = Loss { records: 0, first: 9, offset: 200 };
        for _ in 0..2 {
            assert_eq!(noted(ONE), (2437, 97_564, 3_122_048));
        }
        for _ in 0..2 {
            assert_eq!(noted(TWO), (2440, 97_564, 3_122_048));
        }
        for _ in 0..2 {
            assert_eq!(noted(three), (2441, 4, 116), "the lowest of all");
        }
        // Further ones at the same place look like those: the larger number stays.
        assert_eq!(noted(Loss { records: 2, ..three }), (2442, 4, 116));
        assert_eq!(noted(three), (2442, 4, 116));
        for _ in 0..2 {
            assert_eq!(noted(unknown), (0, 4, 116));
        }
        assert_eq!(noted(ONE), (0, 4, 116));
    }
}
