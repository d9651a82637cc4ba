//! Records that repairs have given up: `.deedbook/loss`, text with a checksum. The note stays after
//! the repair, so that no later check calls the log complete.
//!
//! ```text
//! records 2437                  (acknowledged records that are missing; 0: not known)
//! first 97564                   (number of the first of them)
//! offset 3122048                (byte at which it began)
//! crc 1a2b3c4d                  (CRC-32 of the lines above)
//! ```
//!
//! After several losses there are six lines before the checksum: all losses but the last together,
//! and the last. After a crash between the note and the cut, the next repair notes the last loss
//! once more, and the loss must not count twice.

use std::path::Path;

use super::note::{Found, Note, is_absence, value};
use crate::error::{ErrorKind, Result};
use crate::storage::Storage;

const LOSS_NAME: &str = "loss";
/// Lines of one loss.
const LINES: usize = 3;
/// The name of a damaged note in errors.
const DAMAGED: &str = "the note of acknowledged records that a repair found missing";

/// Acknowledged records that are missing from a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// How many; 0 if that is not known.
    pub records: u64,
    /// Number of the first of them.
    pub first: u64,
    /// Byte of the log at which the loss began.
    pub offset: u64,
}

impl Loss {
    /// All noted losses, together. A damaged note is an error: its presence says that records are
    /// missing.
    pub fn load(storage: &dyn Storage, sidecar: &Path) -> Result<Option<Self>> {
        let noted = load(storage, sidecar)?;
        Ok(noted.into_iter().reduce(|all, loss| all.and(loss, u64::saturating_add)))
    }

    /// Add a loss to the note, durably. A loss at the place of the last noted loss is the same
    /// loss.
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
        note(storage, sidecar).store(&lines_of(&noted))
    }

    /// Both losses as one, from the first one's begin. The number of records is known if both
    /// numbers are.
    fn and(self, other: Self, count: fn(u64, u64) -> u64) -> Self {
        let known = self.records > 0 && other.records > 0;
        let records = if known { count(self.records, other.records) } else { 0 };
        Self { records, first: self.first.min(other.first), offset: self.offset.min(other.offset) }
    }

    fn of_lines(lines: &[&str]) -> Option<Self> {
        let number = |at: usize, name| value(lines.get(at).copied(), name)?.parse().ok();
        Some(Self {
            records: number(0, "records")?,
            first: number(1, "first")?,
            offset: number(2, "offset")?,
        })
    }
}

fn lines_of(noted: &[Loss]) -> String {
    let lines = |&Loss { records, first, offset }: &Loss| {
        format!("records {records}\nfirst {first}\noffset {offset}\n")
    };
    noted.iter().map(lines).collect()
}

fn of_lines(lines: &str) -> Option<Vec<Loss>> {
    let each: Vec<&str> = lines.lines().collect();
    let noted: Vec<Loss> = each.chunks(LINES).map(Loss::of_lines).collect::<Option<_>>()?;
    (lines_of(&noted) == lines).then_some(noted)
}

/// All but the last loss together, and the last; or the only one.
fn load(storage: &dyn Storage, sidecar: &Path) -> Result<Vec<Loss>> {
    let note = note(storage, sidecar);
    let noted = match note.find(is_absence)? {
        Found::Absent => return Ok(Vec::new()),
        Found::Damaged => None,
        Found::Lines(lines) => of_lines(&lines),
    };
    let message = "is damaged; remove it once you know what is missing";
    noted.ok_or_else(|| Note { what: DAMAGED, ..note }.error(ErrorKind::Corrupt, message))
}

fn note<'a>(storage: &'a dyn Storage, sidecar: &Path) -> Note<'a> {
    Note { storage, path: sidecar.join(LOSS_NAME), what: "the note of a loss" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Memory;

    const ONE: Loss = Loss { records: 2437, first: 97_564, offset: 3_122_048 };
    const TWO: Loss = Loss { records: 3, first: 97_600, offset: 3_123_000 };

    #[test]
    fn losses_are_read_back() {
        for noted in [vec![ONE], vec![ONE, TWO]] {
            assert_eq!(of_lines(&lines_of(&noted)), Some(noted));
        }
        assert_eq!(of_lines("records 1\n"), None);
    }

    /// The second note took the place of the first.
    #[test]
    fn losses_add_up_and_count_once() {
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
        // Further losses at the same place look like a repeat: the larger number stays.
        assert_eq!(noted(Loss { records: 2, ..three }), (2442, 4, 116));
        assert_eq!(noted(three), (2442, 4, 116));
        for _ in 0..2 {
            assert_eq!(noted(unknown), (0, 4, 116));
        }
        assert_eq!(noted(ONE), (0, 4, 116));
    }
}
