//! Syncing, the mark that follows each sync, and closing.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::durability::Durability;
use crate::error::{Durable, ErrorKind, Result};
use crate::ground::background;
use crate::ground::lines;
use crate::ground::locks::atomic::Ordering;
use crate::ground::locks::lock;
use crate::log::extent::Extent;
use crate::log::format::{Done, Format};
use crate::log::{Log, Shared};
use crate::mode::{Mode, Recovery};
use crate::sidecar::Mark;

impl<F: Format> Log<F> {
    /// Return when every record appended so far is on stable storage.
    pub fn sync(&self) -> Result<()> {
        let shared = self.writable_as_before()?;
        let end = shared.extent().end;
        shared.sync_to(end)
    }

    /// Return when the record that begins at byte `offset` is on stable storage.
    pub fn wait_durable_at(&self, offset: u64) -> Result<()> {
        let shared = self.writable_as_before()?;
        let end = shared.extent().end;
        if offset >= end {
            let name = F::name_of(None, offset);
            let message = format!("no {name}, the log ends at byte {end}");
            return Err(shared.error(ErrorKind::OutOfRange, message));
        }
        shared.sync_to(offset + 1)
    }

    /// Byte up to which the log is known to be on stable storage; `None` if a reader cannot tell.
    pub fn durable_offset(&self) -> Result<Option<u64>> {
        let shared = self.usable()?;
        if shared.mode != Mode::Read {
            return Ok(Some(shared.commits.durable()));
        }
        let state = shared.state();
        let durable = state.durable.filter(|_| !state.is_outdated);
        Ok(durable.map(|durable| durable.offset.min(state.extent.end)))
    }

    /// Number of records known to be on stable storage.
    pub fn durable_records(&self) -> Result<Option<u64>> {
        let shared = self.usable()?;
        if shared.mode != Mode::Read {
            return Ok(Some(shared.durable_records.load(Ordering::Acquire)));
        }
        let state = shared.state();
        let durable = state.durable.filter(|_| !state.is_outdated);
        Ok(durable.map(|_| state.durable_records.min(state.extent.records)))
    }
}

impl<F: Format> Shared<F> {
    /// Sync as the durability option asks after an append that ends at `end`.
    #[inline]
    pub fn after_append(&self, end: u64) -> Result<()> {
        match self.common.durability {
            Durability::Always => self.sync_to(end),
            Durability::Bytes(bytes) if end.saturating_sub(self.commits.durable()) >= bytes => {
                self.sync_to(end)
            }
            _ => Ok(()),
        }
    }

    /// As [`Self::after_append`], for a batch in a series; the caller syncs after the series.
    pub(super) fn after_append_unsynced(&self, end: u64) -> Result<()> {
        match self.common.durability {
            Durability::Always => Ok(()),
            _ => self.after_append(end),
        }
    }

    /// Make everything up to `target` durable, together with all waiting threads; then drop records
    /// that retention gives up.
    pub fn sync_to(&self, target: u64) -> Result<()> {
        self.sync_and_keep_to(target)?;
        F::tend(self, Done::Sync)
    }

    /// Make everything up to `target` durable, for callers that hold locks.
    pub fn sync_and_keep_to(&self, target: u64) -> Result<()> {
        let _held = lines::hold();
        let result = self.commits.commit(target, || {
            let _turn = self.turn();
            seeded!("appends-beside-a-slot-sync" => drop(_turn));
            // Take the extent before the sync: the sync may not cover appends during the sync.
            let (extent, file_id) = {
                let state = self.state();
                (state.extent, state.file_id)
            };
            self.sync_file(&extent)?;
            // Durable now: every record up to `extent.end`. The mark may follow.
            self.store_mark(extent.mark(file_id), false)?;
            self.durable_records.store(extent.records, Ordering::Release);
            Ok(seeded!(extent.end, "sync-covers-later-appends" => self.extent().end))
        });
        result.map_err(|e| e.of(F::NAME).at(&self.place.log))
    }

    /// Up to where a writer's log is on stable storage.
    pub fn durable(&self) -> u64 {
        self.commits.durable()
    }

    /// Sync after `change` wrote to the file, while no other thread syncs.
    pub fn sync_after(&self, change: impl FnOnce() -> Result<()>) -> Result<()> {
        self.commits.exclusive(|| {
            let extent = self.extent();
            change()?;
            self.sync_file(&extent)?;
            Ok(extent.end)
        })
    }

    /// Sync, and check that the files still are the log that others open.
    pub(super) fn sync_file(&self, extent: &Extent) -> Result<()> {
        let begun = Instant::now();
        self.file.sync_data().map_err(|e| self.fail("sync", e))?;
        self.seal.synced();
        self.check_still_there(extent).map_err(|e| self.fail("sync", e))?;
        self.commits.check_rollback()?;
        self.counters.synced(begun.elapsed(), self.common.slow_sync, &self.place.log);
        Ok(())
    }

    /// Whether recovery cuts back to the mark. Then an acknowledgement needs the mark, too.
    pub(super) fn is_exact(&self) -> bool {
        self.common.recovery == Recovery::Acknowledged
    }

    /// Advisory: if storing fails, the mark before stands, which costs only time. An exact mark
    /// must be durable, and so must the first mark if the mark of an empty log proves something.
    pub(super) fn store_mark(&self, mark: Mark, closed: bool) -> Result<()> {
        let mut index = self.index();
        index.flush(&*self.common.storage);
        let (index_entries, index_chain) = index.summary_at(mark.end);
        drop(index);
        let exact = self.is_exact();
        let mark = Mark { closed, exact, index_entries, index_chain, ..mark };
        let mut file = lock(&self.mark_file);
        let Some(file) = file.as_mut() else { return Ok(()) };
        let stored = file.store(&mark);
        let is_first = self.durable_records.load(Ordering::Acquire) == 0 && mark.records > 0;
        if exact || (is_first && self.seal.counts()) {
            let stored = stored.and_then(|()| file.sync());
            return stored.map_err(|e| self.fail("store the mark", e));
        }
        if let Err(e) = stored {
            self.warn("cannot store the mark", &e);
        }
        Ok(())
    }

    /// Sync, cut the space reserved ahead, and mark the log as closed. Once only; a second call waits
    /// for the first, and fails if that failed.
    pub(in crate::log) fn finish(&self) -> Result<()> {
        let _held = lines::hold();
        let mut result = Ok(());
        if self.mode != Mode::Read && !self.is_forked() {
            // While no other thread syncs: an earlier sync would store its older mark over the mark
            // of closing.
            result = seeded!(self.commits.exclusive(|| self.cut_and_sync()),
                "close-beside-a-sync" => self.commits.check().and_then(|()| self.cut_and_sync().map(drop)));
            // If the handle is poisoned, `exclusive` did nothing. Wait until another thread's write
            // ends, or is taken back, before another writer may come.
            let state = self.state();
            self.closed.store(true, Ordering::Release);
            drop(state);
            lock(&self.mark_file).take();
            lock(&self.lock).take();
        }
        self.closed.store(true, Ordering::Release);
        if let Some(thread) = self.background.get() {
            thread.unpark();
        }
        result.map_err(|e| e.of(F::NAME).at(&self.place.log))
    }

    /// Returns up to where the log is durable.
    fn cut_and_sync(&self) -> Result<u64> {
        let (extent, file_id, untouched) = {
            let mut state = self.state();
            if self.closed.swap(true, Ordering::AcqRel) {
                return Ok(self.commits.durable());
            }
            self.check_not_truncated(&state)
                .map_err(|e| self.fail("close", e).with_durable(Durable::Unknown))?;
            if state.file_end > state.extent.end {
                self.file
                    .set_len(state.extent.end)
                    .map_err(|e| self.fail("cut the reserved space", e))?;
                state.file_end = state.extent.end;
            }
            // The mark stays closed also where it could not be opened before an append.
            let is_synced = state.extent.end <= self.commits.durable();
            (state.extent, state.file_id, !state.mark_is_open && is_synced)
        };
        if seeded!(untouched, "close-keeps-open-mark" => untouched || self.common.durability == Durability::None)
        {
            return Ok(self.commits.durable());
        }
        self.sync_file(&extent)?;
        self.durable_records.store(extent.records, Ordering::Release);
        self.store_mark(extent.mark(file_id), true)?;
        self.index().sync();
        if let Some(file) = &*lock(&self.mark_file)
            && let Err(e) = file.sync()
        {
            // The next opening after a power cut takes longer.
            self.warn("cannot sync the mark", &e);
        }
        Ok(extent.end)
    }

    /// Fail if the synced file is no longer the log that others open.
    pub(super) fn check_still_there(&self, extent: &Extent) -> io::Result<()> {
        self.check_len(extent.end)?;
        match self.file.is_unlinked()? {
            false => Ok(()),
            true => Err(io::Error::other("the log was removed or replaced")),
        }
    }
}

/// Sync every `interval` until the log is closed or dropped, to keep the time without a sync short
/// even if no append follows.
pub fn sync_every<F: Format>(shared: &Arc<Shared<F>>, interval: Duration) -> io::Result<()> {
    background::every(shared, &shared.background, interval, |shared| {
        if shared.closed.load(Ordering::Acquire) {
            return false;
        }
        let end = shared.extent().end;
        if end > shared.commits.durable()
            && let Err(error) = seeded!(shared.sync_to(end),
                "background-sync-error-lost" => shared.file.sync_data().map_or(Ok(()), |()| shared.sync_to(end)))
        {
            // The handle is poisoned: the next append fails.
            shared.warn("the sync in the background failed", &error);
            return false;
        }
        true
    })
}
