//! Syncing, the mark that follows each sync, and closing.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::format::FORMAT;
use super::options::Recovery;
use super::tip::Tip;
use super::{Book, Mode, Shared, State};
use crate::durability::Durability;
use crate::error::{Durable, Error, Result};
use crate::sidecar::Mark;

impl Book {
    /// Return when every deed appended so far is on stable storage.
    pub fn sync(&self) -> Result<()> {
        let shared = self.writable()?;
        let end = shared.state().tip.end;
        shared.sync_to(end)
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
            let tip = self.state().tip;
            self.sync_file(tip)?;
            // Durable now: header and every deed up to `tip.end`. The mark may follow.
            self.store_mark(tip, false)?;
            self.durable_records.store(tip.records, Ordering::Release);
            Ok(tip.end)
        });
        result.map_err(|e| e.of(FORMAT).at(&self.log_path))
    }

    /// Sync the file, and see that it still is the log that others open.
    fn sync_file(&self, tip: Tip) -> Result<()> {
        self.file
            .sync_data()
            .and_then(|()| self.check_still_there(tip))
            .map_err(|e| Error::io("sync", &self.log_path, e))?;
        self.commits.check_rollback()
    }

    /// Advisory: if the mark cannot be stored, the one before stands, which costs time only. But
    /// where recovery cuts back to the mark, it is a part of what is acknowledged.
    pub(super) fn store_mark(&self, tip: Tip, closed: bool) -> Result<()> {
        let mut index = self.index();
        index.flush(&*self.options.storage, self.options.file_mode);
        let (index_entries, index_chain) = index.summary_at(tip.end);
        drop(index);
        let next = self.state().epoch.saturating_add(1);
        let exact = self.options.recovery == Recovery::Acknowledged;
        let mark = tip.mark(next, self.file_id);
        let mark = Mark { closed, exact, index_entries, index_chain, ..mark };
        let mut file = self.mark_file.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(file) = file.as_mut() else { return Ok(()) };
        let stored = file.store(&mark);
        if mark.exact {
            let stored = stored.and_then(|()| file.sync());
            stored.map_err(|e| Error::io("store the mark", &self.log_path, e))?;
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
            self.mark_file.lock().unwrap_or_else(PoisonError::into_inner).take();
            self.lock.lock().unwrap_or_else(PoisonError::into_inner).take();
        }
        self.closed.store(true, Ordering::Release);
        if let Some(thread) = self.background.get() {
            thread.unpark();
        }
        result.map_err(|e| e.of(FORMAT).at(&self.log_path))
    }

    /// Returns up to where the log is durable.
    fn cut_and_sync(&self) -> Result<u64> {
        let tip = {
            let mut state = self.state();
            if self.closed.swap(true, Ordering::AcqRel) {
                return Ok(self.commits.durable());
            }
            self.check_whole(&state).map_err(|e| {
                Error::io("close", &self.log_path, e).with_durable(Durable::Unknown)
            })?;
            if state.file_end > state.tip.end {
                self.file
                    .set_len(state.tip.end)
                    .map_err(|e| Error::io("cut the reserved space", &self.log_path, e))?;
                state.file_end = state.tip.end;
            }
            state.tip
        };
        if self.options.durability == Durability::Never {
            return Ok(self.commits.durable());
        }
        self.sync_file(tip)?;
        self.durable_records.store(tip.records, Ordering::Release);
        self.store_mark(tip, true)?;
        self.index().sync();
        if let Some(file) = &*self.mark_file.lock().unwrap_or_else(PoisonError::into_inner) {
            // So that the next opening after a power cut is quick, too.
            let _ = file.sync();
        }
        Ok(tip.end)
    }

    /// Writing on behind the end of a file that another process cut would leave zeros where deeds
    /// were, and the next sync would vouch for them.
    pub(super) fn check_whole(&self, state: &State) -> std::io::Result<()> {
        let len = self.file.len()?;
        match len < state.tip.end {
            false => Ok(()),
            true => Err(std::io::Error::other(format!(
                "another process cut the file to {len} bytes, it had deeds up to {}",
                state.tip.end
            ))),
        }
    }

    /// What was synced counts only if it is still in the log that others open.
    fn check_still_there(&self, tip: Tip) -> std::io::Result<()> {
        let len = self.file.len()?;
        if len < tip.end {
            let message = format!("another process cut the file to {len} bytes");
            return Err(std::io::Error::other(message));
        }
        match self.file.is_unlinked()? {
            false => Ok(()),
            true => Err(std::io::Error::other("the file was removed or replaced")),
        }
    }
}
