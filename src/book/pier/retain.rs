//! Dropping the first epochs, whole, when no consumer needs them any more.
//!
//! ```text
//! for each, the oldest first:
//! 1 the transactions of 0iN are noted in .urb/log/.deedbook/transactions
//! 2 staged files of 0iN are renamed to the last epoch, if its layout is the same; synced
//! 3 0iN is renamed to .urb/log/.deedbook/dropped     both directories synced
//! 4 dropped is removed
//! ```
//!
//! A crash before a rename leaves the epoch, and a crash after the rename a pier that begins with
//! the next epoch. Each rename is durable before the next, so no gap can remain. The next writer
//! removes leftovers in `dropped`.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use super::part::OpenEpoch;
use super::publish::{Epochs, remove_begun};
use super::{Epoch, FORMAT, LOG_NAME, Pier, Shared, ends_of};
use crate::error::{Durable, Error, ErrorKind, Result};
use crate::ground::locks::lock;
use crate::mode::Mode;
use crate::retention::Retention;
use crate::sidecar::{CONSUMERS_WAIT, Consumers, check_name};
use crate::storage::{Access, Aside, move_to};
use crate::transaction::Target;

const ASIDE_NAME: &str = "dropped";
/// The text for the removal in errors.
const REMOVING: &str = "remove what was dropped";

impl Pier {
    /// Drop the epochs that `retention` allows, the oldest first, but no event that a consumer
    /// needs, and never the last epoch. Returns the dropped epochs as they were. Readers with an open epoch read to its end.
    ///
    /// Appends of other threads wait. If the call cannot find out whether an epoch is gone, it closes the handle; open
    /// the pier again to find out.
    ///
    /// # Errors
    ///
    /// Fails for a handle for reading ([`ReadOnly`](crate::ErrorKind::ReadOnly)); see [Errors](crate#errors).
    pub fn retain(&self, retention: &Retention) -> Result<Vec<Epoch>> {
        let shared = self.shared.writable()?;
        let consumers = shared.consumers();
        let locked = consumers.lock(CONSUMERS_WAIT)?;
        let needed = consumers.load()?.into_values().min();
        let (_held, mut parts) = shared.changing();
        let dropped = shared.allowed(&parts, retention, needed)?;
        for _ in &dropped {
            shared.drop_first(&mut parts)?;
        }
        drop(locked);
        Ok(dropped)
    }

    /// The epochs that [`Pier::retain`] would drop. Changes nothing, so a handle for reading works, too.
    ///
    /// # Errors
    ///
    /// Fails for a closed handle; see [Errors](crate#errors).
    pub fn retainable(&self, retention: &Retention) -> Result<Vec<Epoch>> {
        let needed = self.shared.consumers().load()?.into_values().min();
        self.with(|parts| self.shared.allowed(parts, retention, needed))
    }

    /// The named consumers, each with the next event it needs.
    ///
    /// # Errors
    ///
    /// Fails for a name that cannot be a consumer's, and for a damaged file of consumers; see [Errors](crate#errors).
    pub fn consumers(&self) -> Result<BTreeMap<String, u64>> {
        self.shared.usable()?;
        self.shared.consumers().load()
    }

    /// Note, durably, that a consumer needs `event` and all later events: any event of the pier, or the next. A handle
    /// for reading works, too. Waits up to 30 s for a process that drops epochs, then fails with [`ErrorKind::Locked`].
    ///
    /// # Errors
    ///
    /// Fails for a name that cannot be a consumer's, and for a damaged file of consumers; see [Errors](crate#errors).
    pub fn set_consumer(&self, name: &str, event: u64) -> Result<()> {
        let named = check_name("consumer", name);
        named.map_err(|e| e.of(FORMAT).at(&self.shared.dir).with_durable(Durable::No))?;
        self.change_consumers(|consumers| {
            // Under the lock, nobody drops epochs.
            self.refresh()?;
            let (epoch, last) = self.with(ends_of)?;
            if event <= epoch || event > last.saturating_add(1) {
                let (first, next) = (epoch.saturating_add(1), last.saturating_add(1));
                let message = format!("event {event} for a consumer, from {first} to {next}");
                return Err(self.shared.error(ErrorKind::OutOfRange, message));
            }
            consumers.insert(name.to_string(), event);
            Ok(())
        })
    }

    /// Forget a consumer, durably. Forgetting an unknown consumer is no error.
    ///
    /// # Errors
    ///
    /// Fails for a name that cannot be a consumer's, and for a damaged file of consumers; see [Errors](crate#errors).
    pub fn remove_consumer(&self, name: &str) -> Result<()> {
        self.change_consumers(|consumers| {
            consumers.remove(name);
            Ok(())
        })
    }

    fn change_consumers(
        &self,
        change: impl FnOnce(&mut BTreeMap<String, u64>) -> Result<()>,
    ) -> Result<()> {
        self.shared.usable()?;
        let consumers = self.shared.consumers();
        let _locked = consumers.lock(CONSUMERS_WAIT)?;
        consumers.change(change)
    }

    /// A writer's first step, before any append. Removes leftovers of a crash, and lowers consumers above the end of
    /// the log, which would miss the next deeds.
    pub(super) fn settle(&self) -> Result<()> {
        let shared = &*self.shared;
        if shared.mode == Mode::Read {
            return Ok(());
        }
        shared.aside().remove(REMOVING).map_err(|e| e.of(FORMAT))?;
        remove_begun(&shared.options, &shared.dir)?;
        let next = self.last()?.saturating_add(1);
        let consumers = shared.consumers();
        match consumers.may_be_above(next, self.recovery()?.was_cut()) {
            Ok(false) => Ok(()),
            Ok(true) => {
                let _locked = consumers.lock(CONSUMERS_WAIT)?;
                consumers.lower(next)
            }
            // A damaged file of consumers: dropping refuses, appending and reading continue.
            Err(e) if e.kind() == ErrorKind::Corrupt => Ok(()),
            Err(e) => Err(e),
        }
    }
}

impl Shared {
    fn consumers(&self) -> Consumers<'_> {
        Consumers { storage: &*self.options.storage, sidecar: &self.sidecar, format: FORMAT }
    }

    fn aside(&self) -> Aside<'_> {
        Aside::at(&*self.options.storage, self.sidecar.join(ASIDE_NAME))
    }

    /// The epochs to drop, if consumers need the event `needed`.
    fn allowed(
        &self,
        parts: &[OpenEpoch],
        retention: &Retention,
        needed: Option<u64>,
    ) -> Result<Vec<Epoch>> {
        let ends = parts.iter().map(|part| part.book.end()).collect::<Result<Vec<u64>>>()?;
        let mut left: u64 = ends.iter().sum();
        let mut dropped = Vec::new();
        // Each epoch has a next epoch, whose number is the last event here.
        for ((part, bytes), after) in parts.iter().zip(ends).zip(parts.iter().skip(1)) {
            let is_needed = needed.is_some_and(|event| event <= after.number);
            let too_much = retention.bytes_max.is_some_and(|most| left - bytes >= most);
            let read = retention.consumed && needed.is_some();
            let old = |age| self.is_older(part, age);
            if is_needed || !(too_much || read || retention.age_max.map_or(Ok(false), old)?) {
                break;
            }
            left -= bytes;
            dropped.push(part.shown()?);
        }
        Ok(dropped)
    }

    /// Whether the last write to an epoch is more than `age` ago. A clock set back makes the epoch young.
    fn is_older(&self, part: &OpenEpoch, age: Duration) -> Result<bool> {
        let path = part.dir.join(LOG_NAME);
        let file = self.options.storage.open(&path, Access::Read);
        let written = file
            .and_then(|file| file.modified())
            .map_err(|e| Error::io("look at the log", &path, e).of(FORMAT))?;
        let since = written.and_then(|at| SystemTime::now().duration_since(at).ok());
        Ok(since.is_some_and(|is| is > age))
    }

    /// Drop the first epoch, durably. The caller has locked the consumers.
    fn drop_first(&self, parts: &mut Vec<OpenEpoch>) -> Result<()> {
        let [first, after, ..] = &parts[..] else { return Ok(()) };
        let (storage, aside) = (&*self.options.storage, self.aside());
        let (bytes, deeds) = (first.book.end()?, after.number.saturating_sub(first.number));
        let dir = first.dir.clone();
        // Without the note a repeat would be appended a second time.
        Epochs::of(&self.options, &self.dir).desk().note_all(first.book.transactions()?)?;
        if let Some(last) = parts.last().filter(|last| last.book.layout() == first.book.layout()) {
            // The job may still commit the staged files.
            let adopted = last.book.0.desk()?.adopt_all(&first.book.0.desk()?);
            adopted.map_err(|e| e.of(FORMAT))?;
        }
        aside.remove(REMOVING).map_err(|e| e.of(FORMAT))?;
        if let Err(e) = move_to(storage, &dir, aside.path()) {
            if !storage.is_dir(&dir) {
                // The error to return says more than an error of closing.
                let _ = self.finish(parts);
            }
            return Err(Error::io("drop the epoch", &dir, e).of(FORMAT));
        }
        parts.remove(0);
        let mut finished = lock(&self.finished);
        finished.dropped_files += 1;
        finished.dropped_records += deeds;
        finished.dropped_bytes += bytes;
        drop(finished);
        aside.remove(REMOVING).map_err(|e| e.of(FORMAT))
    }
}
