//! Syncing, and closing.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::append::Appended;
use crate::durability::Durability;
use crate::error::{Durable, Error, Result};
use crate::ground::background;
use crate::ground::lines;
use crate::ground::locks::atomic::Ordering;
use crate::ledger::codec::FORMAT;
use crate::ledger::store::{LedgerStore, Shared};
use crate::storage::File;

/// The most finished files that wait for a sync. Each is held open, and takes space even after
/// sending and removal.
const UNSYNCED_FILES_MAX: usize = 64;

impl LedgerStore {
    /// Return when every record that this store appended is on stable storage, whatever the
    /// durability option. With [`Durability::None`] no file is held open for this, and every file is
    /// synced. One that this process may not open is passed over if another store wrote it; any other
    /// that cannot be opened is an error once all the rest is synced, and a later call tries it again.
    ///
    /// # Errors
    ///
    /// Fails if the sync fails, now or before ([`Poisoned`](crate::ErrorKind::Poisoned)); see [Errors](crate#errors).
    pub fn sync(&self) -> Result<()> {
        let shared = self.writable_as_before()?;
        let end = shared.state().written;
        shared.sync_to(end, true)?;
        // After the file being written: if another thread finishes the file before its sync, the
        // file is among these.
        if shared.options.durability == Durability::None {
            let synced = shared.sync_all_files();
            synced.map_err(|e| e.of(FORMAT).with_durable(Durable::Unknown))?;
        }
        Ok(())
    }

    /// Finish the file being written, sync (unless the durability is none), and take no more calls.
    /// Closing twice is fine: the second call waits for the first, and fails if that failed.
    ///
    /// # Errors
    ///
    /// Fails if the last sync fails. The handle is closed all the same.
    pub fn close(&self) -> Result<()> {
        if self.shared.is_forked() {
            return Err(self.shared.forked_error());
        }
        self.shared.finish()
    }
}

impl Shared {
    /// Sync as the durability option asks after an append.
    pub(super) fn after_append(&self, appended: Appended) -> Result<()> {
        let Appended { end, finished, .. } = appended;
        match self.options.durability {
            Durability::Always => self.sync_to(end, true),
            Durability::Bytes(bytes) if end.saturating_sub(self.commits.durable()) >= bytes => {
                self.sync_to(end, true)
            }
            Durability::Rotate | Durability::Manual => match finished {
                Some(finished) => self.sync_to(finished, false),
                None => Ok(()),
            },
            _ => match finished {
                Some(finished) => self.sync_if_many(finished),
                None => Ok(()),
            },
        }
    }

    /// Finish the file being written. Sync the file if the durability option syncs finished files.
    pub(in crate::ledger) fn finish_and_sync(&self) -> Result<()> {
        let end = {
            let mut state = self.state();
            if state.active.is_none() {
                return Ok(());
            }
            self.finish_active(&mut state);
            state.written
        };
        match self.options.durability {
            // A poisoned store can still send the records in the page cache.
            _ if self.commits.check().is_err() => Ok(()),
            Durability::Rotate | Durability::Manual => self.sync_to(end, false),
            _ => self.sync_if_many(end),
        }
    }

    /// Sync the finished files, which end at `finished`, if many wait for a sync.
    pub(super) fn sync_if_many(&self, finished: u64) -> Result<()> {
        let unsynced = self.state().unsynced.len();
        match unsynced < UNSYNCED_FILES_MAX {
            true => Ok(()),
            false => self.sync_to(finished, false),
        }
    }

    /// Make everything up to `target` durable, together with all waiting threads: the finished
    /// files, and with `active` the file being written.
    pub(super) fn sync_to(&self, target: u64, active: bool) -> Result<()> {
        let _held = lines::hold();
        let result = self.commits.commit(target, || self.sync_files(active));
        result.map_err(|e| e.of(FORMAT).at(&self.directory.path))
    }

    /// Returns up to where everything is durable then.
    fn sync_files(&self, with_active: bool) -> Result<u64> {
        // Take the files before the sync: the sync may not cover appends during the sync.
        let (finished, active, names, end) = {
            let mut state = self.state();
            let finished = std::mem::take(&mut state.unsynced);
            let active = state.active.as_ref().filter(|_| with_active);
            let active = active.map(|active| (active.file.clone(), active.path.clone()));
            let unsynced = state.active.as_ref().filter(|_| !with_active);
            let end = state.written - unsynced.map_or(0, |active| active.len);
            (finished, active, std::mem::take(&mut state.names_unsynced), end)
        };
        let begun = Instant::now();
        let fail = |e| Error::io("sync", &self.directory.path, e);
        for file in &finished {
            file.sync_data().map_err(fail)?;
        }
        if let Some((file, path)) = &active {
            file.sync_data().map_err(|e| Error::io("sync", path, e))?;
            self.check_still_there(file, path)?;
        }
        // A file without a name is lost with the power.
        if names {
            self.directory.sync()?;
        }
        self.commits.check_rollback()?;
        self.counters.synced(begun.elapsed(), self.options.slow_sync, &self.directory.path);
        Ok(end)
    }

    /// Fail if the synced file can no longer be fetched. A file finished since may already have
    /// been sent.
    fn check_still_there(&self, file: &Arc<dyn File>, path: &Path) -> Result<()> {
        if !file.is_unlinked().map_err(|e| Error::io("sync", path, e))? {
            return Ok(());
        }
        let state = self.state();
        match state.active.as_ref().is_some_and(|active| Arc::ptr_eq(&active.file, file)) {
            false => Ok(()),
            true => {
                let gone = std::io::Error::other("another program removed or replaced the file");
                Err(Error::io("sync", path, gone))
            }
        }
    }

    /// Sync each finished file of every store, and the files' names.
    fn sync_all_files(&self) -> Result<()> {
        let begun = self.state().begun.clone();
        // Linux reports a failed sync once, and then takes the pages for synced.
        let poison = |e: &Error| self.commits.poison(&e.to_string());
        let mut failed = None;
        for index in self.directory.indexes()? {
            // Without the gate: a sync takes long.
            let found = self.directory.finished(&self.directory.gate()?, index);
            match found {
                Ok(Some(found)) => {
                    let synced = found.file.sync_data();
                    synced.map_err(|e| Error::io("sync", &found.path, e)).inspect_err(poison)?;
                }
                Ok(None) => {}
                // A file of another user, for which this store made no promise.
                Err(e) if is_denied(&e) && !begun.contains(index) => {}
                Err(e) => {
                    failed.get_or_insert(e);
                }
            }
        }
        self.directory.sync().inspect_err(poison)?;
        failed.map_or(Ok(()), Err)
    }

    /// Once only; a second call waits for the first, and fails if that failed.
    pub(in crate::ledger) fn finish(&self) -> Result<()> {
        if self.is_forked() {
            return Ok(());
        }
        let _held = lines::hold();
        let result = self.commits.exclusive(|| {
            let mut state = self.state();
            if self.closed.swap(true, Ordering::AcqRel) {
                return Ok(self.commits.durable());
            }
            self.finish_active(&mut state);
            drop(state);
            match self.options.durability {
                Durability::None => Ok(self.commits.durable()),
                _ => self.sync_files(false),
            }
        });
        if self.commits.check().is_err() {
            // A poisoned handle closes, too: the file's lock is then free for others.
            self.closed.store(true, Ordering::Release);
            self.finish_active(&mut self.state());
        }
        self.end_lease();
        if let Some(thread) = self.background.get() {
            thread.unpark();
        }
        result.map_err(|e| e.of(FORMAT).at(&self.directory.path).with_durable(Durable::Unknown))
    }
}

fn is_denied(error: &Error) -> bool {
    error.io_source().is_some_and(|e| e.kind() == io::ErrorKind::PermissionDenied)
}

/// Sync every `interval` until the store is closed or dropped, to keep the time without a sync
/// short even if no append follows.
pub fn sync_every(shared: &Arc<Shared>, interval: Duration) -> Result<()> {
    let begun = background::every(shared, &shared.background, interval, |shared| {
        if shared.closed.load(Ordering::Acquire) {
            return false;
        }
        let end = shared.state().written;
        if end > shared.commits.durable()
            && let Err(error) = shared.sync_to(end, true)
        {
            // The store is poisoned: the next append fails.
            lines::warn(format_args!("the sync in the background failed: {error}"));
            return false;
        }
        true
    });
    begun.map_err(|e| Error::io("start the sync thread", &shared.directory.path, e))
}
