//! Consumers that still need records: names with durable positions, in `.deedbook/consumers`. The
//! writer and every reader may set them. Setting them locks the directory `.deedbook`, and so does
//! dropping records.
//!
//! ```text
//! NAME LSN          one line each, sorted by name; a name has no white space
//! crc 1a2b3c4d      CRC-32 of the lines above
//! ```
//!
//! Known nowhere else. So a damaged file is an error for calls that drop records, and never "no
//! consumers".

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::format::WalFormat;
use super::record::{FORMAT, Lsn};
use super::{Shared, Wal};
use crate::checksum::crc32;
use crate::error::{Durable, Error, ErrorKind, Result};
use crate::locks::{MutexGuard, TryLockError, lock};
use crate::mend::{above, make_dir};
use crate::mode::Mode;
use crate::sidecar::{check_name, lock_within};
use crate::slice::part;
use crate::storage::{Access, LockGuard, read_full, replace};

const CONSUMERS_NAME: &str = "consumers";
/// A truncation in another process takes some fsyncs.
const LOCK_WAIT: Duration = Duration::from_secs(30);
const FILE_BYTES_MAX: u64 = 16 << 20;

impl Wal {
    /// The named consumers, each with the LSN of the record that it needs next.
    pub fn consumers(&self) -> Result<BTreeMap<String, Lsn>> {
        self.usable()?.consumers()
    }

    /// Note, durably, that a consumer needs the record at `lsn` and all after it. The LSN must be
    /// the beginning of a record, or the log's end. A handle for reading may do so, too: that is all
    /// that it ever writes.
    pub fn set_consumer(&self, name: &str, lsn: Lsn) -> Result<()> {
        let shared = self.changeable()?;
        check_name("consumer", name)
            .map_err(|e| e.of(FORMAT).at(&self.shared.place.log).with_durable(Durable::No))?;
        shared.change_consumers(|shared, consumers| {
            // While it is locked, nobody drops what is there now.
            shared.follow_head()?;
            let extent = shared.state().extent;
            shared.locate_offset(extent, lsn.0)?;
            consumers.insert(name.to_string(), lsn);
            Ok(())
        })
    }

    /// Forget a consumer, durably. Forgetting one that is not there is fine.
    pub fn remove_consumer(&self, name: &str) -> Result<()> {
        self.changeable()?.change_consumers(|_, consumers| {
            consumers.remove(name);
            Ok(())
        })
    }
}

impl Wal {
    fn changeable(&self) -> Result<&Shared<WalFormat>> {
        match self.mode() {
            Mode::Read => self.usable(),
            _ => self.writable(),
        }
    }
}

/// Held while the consumers are read and changed, or records dropped that they might need.
pub struct ConsumersLock<'a> {
    _here: MutexGuard<'a, ()>,
    _elsewhere: Box<dyn LockGuard>,
}

impl Shared<WalFormat> {
    /// Keep other threads and processes from changing the consumers and from dropping records.
    pub(super) fn lock_consumers(&self) -> Result<ConsumersLock<'_>> {
        self.lock_consumers_within(lock(&self.exclusive), LOCK_WAIT)
    }

    /// The same, unless another thread or process does it right now.
    pub(super) fn try_lock_consumers(&self) -> Result<Option<ConsumersLock<'_>>> {
        let here = match self.exclusive.try_lock() {
            Ok(here) => here,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(None),
        };
        match self.lock_consumers_within(here, Duration::ZERO) {
            Err(e) if e.kind() == ErrorKind::Locked => Ok(None),
            locked => locked.map(Some),
        }
    }

    fn lock_consumers_within<'a>(
        &self,
        _here: MutexGuard<'a, ()>,
        wait: Duration,
    ) -> Result<ConsumersLock<'a>> {
        let (storage, sidecar) = (&*self.common.storage, &self.place.sidecar);
        let locked = || {
            // Of a log that another program wrote.
            make_dir(storage, above(sidecar))?;
            make_dir(storage, sidecar)?;
            lock_within(storage, sidecar, wait)
        };
        let _elsewhere = locked().map_err(|e| e.of(FORMAT).with_durable(Durable::No))?;
        Ok(ConsumersLock { _here, _elsewhere })
    }

    fn change_consumers(
        &self,
        change: impl FnOnce(&Self, &mut BTreeMap<String, Lsn>) -> Result<()>,
    ) -> Result<()> {
        let _changing = self.lock_consumers()?;
        if self.mode != Mode::Read {
            self.check_open()?;
        }
        let before = self.consumers()?;
        let mut consumers = before.clone();
        change(self, &mut consumers)?;
        if consumers == before {
            return Ok(());
        }
        self.store_consumers(&consumers)
    }

    fn store_consumers(&self, consumers: &BTreeMap<String, Lsn>) -> Result<()> {
        let path = self.consumers_path();
        let common = &self.common;
        replace(&*common.storage, &path, encode(consumers).as_bytes(), common.file_mode)
            .map_err(|e| Error::io("store the consumers", &path, e).of(FORMAT))
    }

    /// Lower every position above `end` to it, durably: the records that come to lie there next are
    /// others, which no consumer has read. The caller locks the consumers, and no thread appends.
    pub(super) fn lower_consumers(&self, end: u64) -> Result<()> {
        let before = self.consumers()?;
        match lowered(&before, end) {
            Some(lowered) => self.store_consumers(&lowered),
            None => Ok(()),
        }
    }

    /// Raise every position below `head` to it, durably. The caller locks the consumers.
    pub(super) fn raise_consumers(&self, head: Lsn) -> Result<()> {
        let before = self.consumers()?;
        if before.values().all(|lsn| *lsn >= head) {
            return Ok(());
        }
        let raise = |(name, lsn): (&String, &Lsn)| (name.clone(), (*lsn).max(head));
        self.store_consumers(&before.iter().map(raise).collect())
    }

    /// Undo what lowering to `end` did or began, durably: what it was for does not come. The caller
    /// has locked the consumers since `before` was read.
    pub(super) fn put_back_consumers(
        &self,
        before: &BTreeMap<String, Lsn>,
        end: u64,
    ) -> Result<()> {
        // Where the old file still has its name, no other was ever in its place.
        if lowered(before, end).is_none() || self.consumers()? == *before {
            return Ok(());
        }
        self.store_consumers(before)
    }

    fn consumers_path(&self) -> PathBuf {
        self.place.sidecar.join(CONSUMERS_NAME)
    }

    pub(super) fn consumers(&self) -> Result<BTreeMap<String, Lsn>> {
        let path = self.consumers_path();
        let fail = |e| Error::io("read the consumers", &path, e).of(FORMAT);
        let file = match self.common.storage.open(&path, Access::Read) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
            file => file.map_err(fail)?,
        };
        let mut bytes = vec![0; file.len().map_err(fail)?.min(FILE_BYTES_MAX) as usize];
        let read = read_full(&*file, &mut bytes, 0).map_err(fail)?;
        decode(part(&bytes, ..read)).ok_or_else(|| {
            let message = "the consumers' file is damaged: which records are needed is not known; \
                           remove it and set the consumers again";
            Error::new(ErrorKind::Corrupt, message).of(FORMAT).at(&path)
        })
    }

    /// Refuse to drop what a consumer needs.
    pub(super) fn check_consumers(&self, lsn: Lsn) -> Result<()> {
        let consumers = self.consumers()?;
        match consumers.iter().min_by_key(|(_, needs)| **needs) {
            Some((name, needs)) if *needs < lsn => {
                let message = format!(
                    "consumer {name:?} needs lsn {needs}, which a cut before lsn {lsn} would drop"
                );
                Err(self.refused(ErrorKind::InvalidArgument, message))
            }
            _ => Ok(()),
        }
    }
}

/// The consumers with none above `end`, unless there is none.
fn lowered(consumers: &BTreeMap<String, Lsn>, end: u64) -> Option<BTreeMap<String, Lsn>> {
    let lower = |(name, lsn): (&String, &Lsn)| (name.clone(), (*lsn).min(Lsn(end)));
    let any = consumers.values().any(|lsn| lsn.0 > end);
    any.then(|| consumers.iter().map(lower).collect())
}

fn encode(consumers: &BTreeMap<String, Lsn>) -> String {
    let text: String = consumers.iter().map(|(name, lsn)| format!("{name} {lsn}\n")).collect();
    let crc = crc32(text.as_bytes());
    text + &format!("crc {crc:08x}\n")
}

fn decode(bytes: &[u8]) -> Option<BTreeMap<String, Lsn>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut consumers = BTreeMap::new();
    let (lines, _crc) = text.strip_suffix('\n')?.rsplit_once("crc ")?;
    for line in lines.lines() {
        let (name, lsn) = line.rsplit_once(' ')?;
        consumers.insert(name.to_string(), Lsn(lsn.parse().ok()?));
    }
    (encode(&consumers) == text).then_some(consumers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consumers_are_read_back_and_damage_is_seen() {
        for names in [vec![], vec!["crc"], vec!["a", "bé", "zz"]] {
            let consumers: BTreeMap<_, _> =
                names.iter().map(|name| (name.to_string(), Lsn(7))).collect();
            let text = encode(&consumers);
            assert_eq!(decode(text.as_bytes()), Some(consumers));
            for at in 0..text.len() {
                let mut damaged = text.clone().into_bytes();
                damaged[at] ^= 1;
                assert_eq!(decode(&damaged), None);
                assert_eq!(decode(&text.as_bytes()[..at]), None);
            }
        }
    }
}
