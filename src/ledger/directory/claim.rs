//! The next index, claimed before a store shows an index or removes a file.

use std::path::Path;

use super::{Directory, Gate, counter, is_full};
use crate::error::{Error, Result};
use crate::ground::lines;
use crate::ground::locks::atomic::Ordering;
use crate::storage::{Access, sync_dir};

impl Directory {
    /// The lowest index that no store has claimed.
    pub fn counted(&self) -> Result<u64> {
        counter::load(&*self.storage, &self.sidecar(), &self.base)
    }

    /// Call before a store shows an index to anybody, or removes its file: no file gets this index
    /// again, or a lower one, not even after a power cut.
    pub fn claim(&self, _gate: &Gate, last: u32) -> Result<()> {
        let (sidecar, next) = (self.sidecar(), u64::from(last) + 1);
        let stored = self.counted()?;
        if stored < next {
            self.make_sidecar()?;
            counter::store(&*self.storage, &sidecar, &self.base, next)?;
        } else if self.counted.load(Ordering::Acquire) < next {
            // The store that wrote the counter may have crashed before the name was durable.
            sync_dir(&*self.storage, &sidecar)?;
        }
        self.counted.fetch_max(stored.max(next), Ordering::AcqRel);
        if !self.sidecar_settled.load(Ordering::Acquire) {
            self.sync()?;
            self.sidecar_settled.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// As [`claim`](Self::claim), for a file that stays. On a full disk a durable file name is
    /// enough: indexes continue after the highest name. Without this exception, a full disk would
    /// stop sending, and sending makes room.
    pub fn show(&self, gate: &Gate, last: u32) -> Result<()> {
        match self.claim(gate, last) {
            Err(e) if is_full(&e) => {
                lines::warn(format_args!("the next index waits for room on the disk: {e}"));
                self.sync()
            }
            claimed => claimed,
        }
    }

    /// As [`claim`](Self::claim), for a file to be removed. On a full disk, empty the file first,
    /// durably, to make room. If the room is still too small, return `false`: the name stays, which
    /// keeps the index, until a fetch finds the file blank.
    pub(super) fn claim_or_empty(&self, gate: &Gate, index: u32, path: &Path) -> Result<bool> {
        match self.claim(gate, index) {
            Err(e) if is_full(&e) => {
                self.storage
                    .open(path, Access::Write)
                    .and_then(|file| file.set_len(0).and_then(|()| file.sync_data()))
                    .map_err(|e| Error::io("empty the file", path, e))?;
            }
            claimed => return claimed.map(|()| true),
        }
        match self.claim(gate, index) {
            Err(e) if is_full(&e) => {
                lines::warn(format_args!("emptied, to be removed when the disk has room: {e}"));
                Ok(false)
            }
            claimed => claimed.map(|()| true),
        }
    }

    /// Set the counter back to `next`, its value before the claim, while the gate is held: a gap
    /// between indexes would look like lost files to readers. Files may have higher indexes
    /// already.
    pub fn unclaim(&self, _gate: &Gate, next: u64) -> Result<()> {
        if self.counted()? <= next {
            return Ok(());
        }
        counter::store(&*self.storage, &self.sidecar(), &self.base, next)?;
        self.counted.store(next, Ordering::Release);
        Ok(())
    }
}
