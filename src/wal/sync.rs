//! Syncing, the mark that follows each sync, and closing.

use std::time::Instant;

use super::format::{FORMAT, Lsn};
use super::options::Recovery;
use super::tip::Tip;
use super::{Mode, Shared, State, Wal};
use crate::durability::Durability;
use crate::error::{Durable, Error, Result};
use crate::locks::atomic::Ordering;
use crate::locks::lock;
use crate::sidecar::Mark;

impl Wal {
    /// Return when every record appended so far is on stable storage.
    pub fn sync(&self) -> Result<()> {
        let shared = self.writable()?;
        let end = shared.state().tip.end;
        shared.sync_to(end)
    }

    /// Return when the record at `lsn` is on stable storage: whoever syncs next syncs for all that
    /// wait, and if nobody does, this call does.
    pub fn wait_durable(&self, lsn: Lsn) -> Result<()> {
        let shared = self.writable()?;
        let end = shared.state().tip.end;
        if lsn.0 >= end {
            let message = format!("lsn {lsn}, the log ends at {end}");
            return Err(shared.outside(message));
        }
        shared.sync_to(lsn.0 + 1)
    }
}

impl Shared {
    pub(super) fn after_append(&self, end: u64) -> Result<()> {
        match self.options.durability {
            Durability::Always => self.sync_to(end),
            Durability::Bytes(bytes) if end.saturating_sub(self.commits.durable()) >= bytes => {
                self.sync_to(end)
            }
            _ => Ok(()),
        }
    }

    /// Make everything up to `target` durable, together with whoever else waits.
    pub(super) fn sync_to(&self, target: u64) -> Result<()> {
        let result = self.commits.commit(target, || {
            let (tip, file_id) = {
                let state = self.state();
                (state.tip, state.file_id)
            };
            self.sync_file(tip)?;
            // Durable now: every record up to `tip.end`, in whichever segment. The mark may follow.
            self.store_mark(tip.mark(file_id), false)?;
            Ok(tip.end)
        });
        self.counters.tell(self.options.slow_sync, &self.place.log);
        result.map_err(|e| e.of(FORMAT).at(&self.place.log))
    }

    /// Sync every segment written, and see that they still are the log that others open.
    pub(super) fn sync_file(&self, tip: Tip) -> Result<()> {
        let begun = Instant::now();
        self.file
            .sync_data()
            .and_then(|()| self.check_still_there(tip))
            .map_err(|e| Error::io("sync", &self.place.log, e))?;
        self.commits.check_rollback()?;
        self.counters.synced(begun.elapsed(), self.options.slow_sync);
        Ok(())
    }

    /// Advisory: if the mark cannot be stored, the one before stands, which costs time only. But
    /// where recovery cuts back to the mark, it is a part of what is acknowledged.
    pub(super) fn store_mark(&self, mark: Mark, closed: bool) -> Result<()> {
        let mut index = self.index();
        index.flush(&*self.options.storage, self.options.file_mode);
        let (index_entries, index_chain) = index.summary_at(mark.end);
        drop(index);
        let exact = self.options.recovery == Recovery::Acknowledged;
        let mark = Mark { closed, exact, index_entries, index_chain, ..mark };
        let mut file = lock(&self.mark_file);
        let Some(file) = file.as_mut() else { return Ok(()) };
        let stored = file.store(&mark);
        if mark.exact {
            let stored = stored.and_then(|()| file.sync());
            stored.map_err(|e| Error::io("store the mark", &self.place.log, e))?;
        }
        Ok(())
    }

    /// Sync, cut the space reserved ahead, and mark the log as closed. Once only; whoever comes second
    /// waits for the first, and is told if that failed.
    pub(super) fn finish(&self) -> Result<()> {
        let mut result = Ok(());
        if self.mode != Mode::Read && !self.forked() {
            // While nobody else syncs: a sync that began before would put its older mark behind
            // that of closing.
            result = self.commits.exclusive(|| self.cut_and_sync());
            lock(&self.mark_file).take();
            lock(&self.lock).take();
        }
        self.closed.store(true, Ordering::Release);
        if let Some(thread) = self.background.get() {
            thread.unpark();
        }
        self.counters.tell(self.options.slow_sync, &self.place.log);
        result.map_err(|e| e.of(FORMAT).at(&self.place.log))
    }

    /// Returns up to where the log is durable.
    fn cut_and_sync(&self) -> Result<u64> {
        let (tip, file_id) = {
            let mut state = self.state();
            if self.closed.swap(true, Ordering::AcqRel) {
                return Ok(self.commits.durable());
            }
            self.check_whole(&state).map_err(|e| {
                Error::io("close", &self.place.log, e).with_durable(Durable::Unknown)
            })?;
            if state.file_end > state.tip.end {
                self.file
                    .set_len(state.tip.end)
                    .map_err(|e| Error::io("cut the reserved space", &self.place.log, e))?;
                state.file_end = state.tip.end;
            }
            (state.tip, state.file_id)
        };
        if self.options.durability == Durability::Never {
            return Ok(self.commits.durable());
        }
        self.sync_file(tip)?;
        self.store_mark(tip.mark(file_id), true)?;
        self.index().sync();
        if let Some(file) = &*lock(&self.mark_file) {
            // So that the next opening after a power cut is quick, too.
            let _ = file.sync();
        }
        Ok(tip.end)
    }

    /// Writing on behind the end of a file that another process cut would leave zeros where records
    /// were, and the next sync would vouch for them.
    pub(super) fn check_whole(&self, state: &State) -> std::io::Result<()> {
        self.check_len(state.tip)
    }

    fn check_len(&self, tip: Tip) -> std::io::Result<()> {
        let len = self.file.len()?;
        match len < tip.end {
            false => Ok(()),
            true => Err(std::io::Error::other(format!(
                "another process cut the log to {len} bytes, it had records up to {}",
                tip.end
            ))),
        }
    }

    /// What was synced counts only if it is still in the log that others open.
    pub(super) fn check_still_there(&self, tip: Tip) -> std::io::Result<()> {
        self.check_len(tip)?;
        match self.file.is_unlinked()? {
            false => Ok(()),
            true => Err(std::io::Error::other("the log was removed or replaced")),
        }
    }
}
