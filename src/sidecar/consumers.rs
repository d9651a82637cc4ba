//! Consumers that still need records: names with durable positions, in `.deedbook/consumers`. The
//! writer and every reader may set positions. Setting a position locks the directory `.deedbook`,
//! and so does dropping records.
//!
//! ```text
//! NAME POSITION     one line each, sorted by name; a name has no white space
//! crc 1a2b3c4d      CRC-32 of the lines above
//! ```
//!
//! A position names the record needed next: an LSN in a write-ahead log, an event in a pier. No
//! other file has the positions. So a damaged file is an error for calls that drop records, and
//! never "no consumers".

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use super::dir::make_sidecar;
use super::lock::lock_within;
use super::note::{Found, Note};
use crate::error::{Durable, Error, ErrorKind, Result};
use crate::storage::{LockGuard, Storage};

const CONSUMERS_NAME: &str = "consumers";
/// Dropping records in another process takes some fsyncs.
pub const CONSUMERS_WAIT: Duration = Duration::from_secs(30);

/// Positions by name.
pub type Positions = BTreeMap<String, u64>;

/// A log's consumers.
#[derive(Clone, Copy, Debug)]
pub struct Consumers<'a> {
    pub storage: &'a dyn Storage,
    /// The directory `.deedbook`.
    pub sidecar: &'a Path,
    /// Name in errors.
    pub format: &'static str,
}

impl Consumers<'_> {
    /// Keep other threads and processes from changing the consumers and from dropping records.
    pub fn lock(&self, wait: Duration) -> Result<Box<dyn LockGuard>> {
        let Self { storage, sidecar, .. } = *self;
        let locked = || {
            // A log from another program has no sidecar yet.
            make_sidecar(storage, sidecar)?;
            seeded!(lock_within(storage, sidecar, wait),
                "consumer-set-unlocked" => lock_within(&crate::storage::Memory::new(), Path::new("/"), wait))
        };
        locked().map_err(|e| e.of(self.format).with_durable(Durable::No))
    }

    pub fn load(&self) -> Result<Positions> {
        let found = self.note().find(|e| e.kind() == io::ErrorKind::NotFound);
        let positions = match found.map_err(|e| e.of(self.format))? {
            Found::Absent => return Ok(BTreeMap::new()),
            Found::Damaged => None,
            Found::Lines(lines) => of_lines(&lines),
        };
        positions.ok_or_else(|| {
            let message = "is damaged: which records are needed is not known; remove it and set \
                           the consumers again";
            self.note().error(ErrorKind::Corrupt, message).of(self.format)
        })
    }

    /// Store the positions durably. The caller has held the lock since loading.
    pub fn store(&self, consumers: &Positions) -> Result<()> {
        self.note().store(&lines_of(consumers)).map_err(|e| e.of(self.format))
    }

    /// If `change` changes the positions, store them durably. The caller holds the lock.
    pub fn change(&self, change: impl FnOnce(&mut Positions) -> Result<()>) -> Result<()> {
        let before = self.load()?;
        let mut consumers = before.clone();
        change(&mut consumers)?;
        if consumers == before {
            return Ok(());
        }
        self.store(&consumers)
    }

    /// Whether opening must take the lock to lower consumers to `end`. After a cut, opening must
    /// always take the lock: a reader that has not seen the cut may be storing a higher position.
    pub fn may_be_above(&self, end: u64, was_cut: bool) -> Result<bool> {
        Ok(self.load()?.values().any(|position| *position > end) || was_cut)
    }

    /// Lower every position above `end` to `end`, durably: the next records there are new, and no
    /// consumer has read them. The caller holds the lock, and no thread appends.
    pub fn lower(&self, end: u64) -> Result<()> {
        match lowered(&self.load()?, end) {
            Some(lowered) => self.store(&lowered),
            None => Ok(()),
        }
    }

    /// Raise every position below `head` to `head`, durably. The caller holds the lock.
    pub fn raise(&self, head: u64) -> Result<()> {
        self.change(|consumers| {
            consumers.values_mut().for_each(|position| *position = head.max(*position));
            Ok(())
        })
    }

    /// Undo a complete or partial lowering to `end`, durably, because the cut failed. The caller
    /// has held the lock since loading `before`.
    pub fn put_back(&self, before: &Positions, end: u64) -> Result<()> {
        // If the old file still has its name, no other file was ever in its place.
        if lowered(before, end).is_none() || self.load()? == *before {
            return Ok(());
        }
        self.store(before)
    }

    fn note(&self) -> Note<'_> {
        let path = self.sidecar.join(CONSUMERS_NAME);
        Note { storage: self.storage, path, what: "the consumers' file" }
    }
}

/// The consumers with none above `end`, unless there is none.
fn lowered(consumers: &Positions, end: u64) -> Option<Positions> {
    let lower = |(name, position): (&String, &u64)| (name.clone(), end.min(*position));
    let any = consumers.values().any(|position| *position > end);
    any.then(|| consumers.iter().map(lower).collect())
}

fn lines_of(consumers: &Positions) -> String {
    let line = |(name, position): (&String, &u64)| format!("{name} {position}\n");
    consumers.iter().map(line).collect()
}

fn of_lines(lines: &str) -> Option<Positions> {
    let mut consumers = BTreeMap::new();
    for line in lines.lines() {
        let (name, position) = line.rsplit_once(' ')?;
        // As a caller's are checked.
        check_name("consumer", name).ok()?;
        consumers.insert(name.to_string(), position.parse().ok()?);
    }
    (lines_of(&consumers) == lines).then_some(consumers)
}

/// The longest name of a consumer, an application or a query: a user chooses the name, and a line
/// of a text file holds it.
const NAME_BYTES_MAX: usize = 255;

/// Refuse a name that would break its line. `what` is the noun for the error.
pub fn check_name(what: &str, name: &str) -> Result<()> {
    let fits = !name.is_empty() && name.len() <= NAME_BYTES_MAX;
    if fits && !name.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Ok(());
    }
    let message = format!(
        "{what} {name:?}: a name has 1 to {NAME_BYTES_MAX} bytes, none of them white space"
    );
    Err(Error::new(ErrorKind::InvalidArgument, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consumers_are_read_back() {
        for names in [vec![], vec!["crc"], vec!["a", "bé", "zz"]] {
            let consumers: Positions = names.iter().map(|name| (name.to_string(), 7)).collect();
            assert_eq!(of_lines(&lines_of(&consumers)), Some(consumers));
        }
        assert_eq!(of_lines("a 7\na 8\n"), None);
    }
}
