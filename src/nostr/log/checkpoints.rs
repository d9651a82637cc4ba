//! Checkpoints of the write-ahead log: write, find the last, remove older files.

use std::path::PathBuf;

use super::entry::{Entry, FORMAT, Lsn, file_name};
use super::files::{self, remove_files};
use super::wal::EventWal;
use super::wal_state::State;
use crate::error::{Error, ErrorKind, Result};
use crate::ground::locks::lock;
use crate::mode::Mode;
use crate::scan::OnCorrupt;

impl EventWal {
    /// Append a checkpoint, and return the entry's number. A checkpoint says that the segments hold
    /// every earlier entry durably. This method syncs the log and writes the checkpoint's number to
    /// the header of the newest file.
    pub fn checkpoint(&self, timestamp: u64) -> Result<Lsn> {
        let lsn = self.commit(&Entry::Checkpoint, timestamp)?;
        let mut state = lock(&self.state);
        state.checkpoint = state.checkpoint.max(lsn);
        store_checkpoint(&state)?;
        Ok(lsn)
    }

    /// Remove the files whose entries all precede the last checkpoint; returns their paths.
    pub fn drop_before_checkpoint(&self) -> Result<Vec<PathBuf>> {
        self.check_writable()?;
        let mut state = lock(&self.state);
        let state = &mut *state;
        let after = state.files.iter().skip(1);
        let count = after.take_while(|next| next.first <= state.checkpoint).count();
        let gone: Vec<_> = state.files.iter().take(count).map(|piece| piece.number).collect();
        if !gone.is_empty() {
            remove_files(&*self.options.storage, &self.dir, &gone)?;
            state.files.drain(..count);
        }
        Ok(gone.into_iter().map(|number| self.dir.join(file_name(number))).collect())
    }

    /// Number of the last checkpoint, 0 without one.
    pub fn last_checkpoint(&self) -> Lsn {
        lock(&self.state).checkpoint
    }

    /// Whether the log has this checkpoint, and so every later entry.
    pub(crate) fn has_checkpoint(&self, checkpoint: Lsn) -> Result<bool> {
        let mut entries = self.entries(checkpoint, OnCorrupt::Skip)?;
        let found = entries.next()?;
        Ok(found.is_some_and(|found| found.lsn == checkpoint && found.entry == Entry::Checkpoint))
    }

    /// Set the last checkpoint, whatever the headers name: a header may be torn.
    pub(crate) fn go_on_after(&self, checkpoint: Lsn) {
        lock(&self.state).checkpoint = checkpoint;
    }

    fn uncovered(&self, first: Lsn) -> Error {
        let message =
            format!("the log begins with lsn {first}, and no checkpoint covers what came before");
        Error::new(ErrorKind::LostRecords, message).of(FORMAT).at(&self.dir)
    }

    /// Find the last checkpoint. A header may name an older checkpoint if a crash came before the
    /// header's update, and a crash can tear a header. The entry itself proves that the segments
    /// were synced earlier.
    pub(crate) fn find_checkpoint(&self) -> Result<()> {
        let (named, first) = {
            let state = lock(&self.state);
            (state.checkpoint, state.files.first().map_or(Lsn(1), |piece| piece.first))
        };
        let found = match self.last_checkpoint_from(named.max(first))? {
            None if named > first => self.last_checkpoint_from(first)?,
            found => found,
        };
        let before = Lsn(first.0.saturating_sub(1));
        let checkpoint = match found {
            Some(found) => found,
            None if before == named || before == Lsn(0) => before,
            None => return Err(self.uncovered(first)),
        };
        let mut state = lock(&self.state);
        state.checkpoint = checkpoint;
        // A header that names a later checkpoint tells a repair that the checkpoint's entry is
        // damaged.
        match self.mode == Mode::Read || checkpoint <= named {
            true => Ok(()),
            false => store_checkpoint(&state),
        }
    }

    fn last_checkpoint_from(&self, from: Lsn) -> Result<Option<Lsn>> {
        let (mut entries, mut last) = (self.entries(from, OnCorrupt::Skip)?, None);
        while let Some(logged) = entries.next()? {
            if logged.entry == Entry::Checkpoint {
                last = Some(logged.lsn);
            }
        }
        Ok(last)
    }
}

/// Write the last checkpoint to the header of the newest file, durably.
fn store_checkpoint(state: &State) -> Result<()> {
    if state.finished {
        // The header of the next file will name it.
        return Ok(());
    }
    let shared = state.current.writable_as_before()?;
    shared.sync_after(|| {
        files::store_checkpoint(&*shared.file, state.checkpoint)
            .map_err(|e| shared.fail("store the checkpoint", e))
    })
}
