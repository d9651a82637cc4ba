//! Consumers that still need records, each with the LSN of the next record. The writer and every reader may set
//! consumers; `sidecar/consumers.rs` has the file.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::error::{Durable, ErrorKind, Result};
use crate::ground::locks::{MutexGuard, TryLockError, lock};
use crate::mode::Mode;
use crate::sidecar::{CONSUMERS_WAIT, Positions, check_name};
use crate::storage::LockGuard;
use crate::wal::codec::{FORMAT, Lsn};
use crate::wal::format::WalFormat;
use crate::wal::{Shared, Wal};

impl Wal {
    /// The named consumers, each with the LSN of the next record it needs.
    ///
    /// # Errors
    ///
    /// Fails for a name that cannot be a consumer's, and for a damaged file of consumers; see [Errors](crate#errors).
    pub fn consumers(&self) -> Result<BTreeMap<String, Lsn>> {
        let positions = self.0.usable()?.consumers().load()?;
        Ok(positions.into_iter().map(|(name, lsn)| (name, Lsn(lsn))).collect())
    }

    /// Note, durably, that a consumer needs the record at `lsn` and all later records. The LSN must be the beginning of
    /// a record, or the log's end. A handle for reading works, too. Waits up to 30 s for a process that drops records
    /// or sets a consumer, then fails with [`ErrorKind::Locked`], as truncations and retention do.
    ///
    /// # Errors
    ///
    /// Fails for a name that cannot be a consumer's, and for a damaged file of consumers; see [Errors](crate#errors).
    ///
    /// # Examples
    ///
    /// ```
    /// use deedbook::wal::Wal;
    ///
    /// # fn main() -> deedbook::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("log");
    /// let wal = Wal::create(&path)?;
    /// let lsn = wal.commit(b"set x = 1")?;
    /// wal.set_consumer("replica", lsn)?; // nothing from here on is dropped
    /// assert_eq!(wal.consumers()?.get("replica"), Some(&lsn));
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_consumer(&self, name: &str, lsn: Lsn) -> Result<()> {
        let shared = self.changeable()?;
        check_name("consumer", name)
            .map_err(|e| e.of(FORMAT).at(&self.0.shared.place.log).with_durable(Durable::No))?;
        shared.change_consumers(|shared, consumers| {
            // Under the lock, no other process drops records.
            shared.follow_head()?;
            let extent = shared.extent();
            // A writer may have cut the end known to this reader.
            shared.check_uncut()?;
            shared.locate_offset(extent, lsn.0)?;
            consumers.insert(name.to_string(), lsn.0);
            Ok(())
        })
    }

    /// Forget a consumer, durably. Forgetting an unknown consumer is no error.
    ///
    /// # Errors
    ///
    /// Fails for a name that cannot be a consumer's, and for a damaged file of consumers; see [Errors](crate#errors).
    pub fn remove_consumer(&self, name: &str) -> Result<()> {
        self.changeable()?.change_consumers(|_, consumers| {
            consumers.remove(name);
            Ok(())
        })
    }

    fn changeable(&self) -> Result<&Shared<WalFormat>> {
        match self.mode() {
            Mode::Read => self.0.usable(),
            _ => self.0.writable(),
        }
    }
}

/// Held while reading and changing consumers, or while dropping records.
pub struct ConsumersLock<'a> {
    _here: MutexGuard<'a, ()>,
    _elsewhere: Box<dyn LockGuard>,
}

impl Shared<WalFormat> {
    /// Keep other threads and processes from changing the consumers and from dropping records.
    pub(super) fn lock_consumers(&self) -> Result<ConsumersLock<'_>> {
        self.lock_consumers_within(lock(&self.exclusive), CONSUMERS_WAIT)
    }

    /// As [`Self::lock_consumers`]; `None` if another thread or process holds the lock.
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
        let _elsewhere = self.consumers().lock(wait)?;
        Ok(ConsumersLock { _here, _elsewhere })
    }

    fn change_consumers(
        &self,
        change: impl FnOnce(&Self, &mut Positions) -> Result<()>,
    ) -> Result<()> {
        let _changing = self.lock_consumers()?;
        if self.mode != Mode::Read {
            self.check_open()?;
        }
        self.consumers().change(|consumers| change(self, consumers))
    }

    /// Lower the consumers above `end`, under the consumers' lock, because a reader may be setting a consumer.
    pub(in crate::wal) fn lower_consumers(&self, end: u64, was_cut: bool) -> Result<()> {
        if !self.consumers().may_be_above(end, was_cut)? {
            return Ok(());
        }
        seeded!("consumers-lowered-unlocked" => return self.consumers().lower(end));
        let _lowering = self.lock_consumers()?;
        self.consumers().lower(end)
    }

    /// Refuse to drop records that a consumer needs.
    pub(super) fn check_consumers(&self, lsn: Lsn) -> Result<()> {
        let consumers = self.consumers().load()?;
        match consumers.iter().min_by_key(|(_, needs)| **needs) {
            Some((name, needs)) if *needs < lsn.0 => {
                let message = format!(
                    "consumer {name:?} needs lsn {needs}, which a cut before lsn {lsn} would drop"
                );
                Err(self.refused(ErrorKind::InvalidArgument, message))
            }
            _ => Ok(()),
        }
    }
}
