//! Segment files as one continuous [`File`]: byte `O` lies in segment `O / S` at `O % S`.
//!
//! Records know nothing of segments and span them. The unsynced bytes are a set of segments, not a
//! watermark: the next sync covers a late write into an older segment, too. Few files are open at a
//! time, whatever their number.

mod file;
mod gapped;
pub mod head;
mod orphans;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::ground::locks::{Mutex, lock};
use crate::storage::{Access, File, HeldDir, Storage};

/// The most segments open at a time. Unsynced segments stay open, so the limit holds for them, too.
const OPEN_MAX: usize = 16;
/// Writes up to this length into the last used segment happen under the lock, which costs less than locking twice.
/// Longer writes would keep readers waiting.
const SHORT_BYTES_MAX: usize = 64 << 10;

/// The segment files of a log.
#[derive(Debug)]
pub struct Segmented {
    storage: Arc<dyn Storage>,
    dir: PathBuf,
    name: fn(u64) -> String,
    segment_bytes: u64,
    access: Access,
    file_mode: u32,
    /// Held through a whole sync, and taken before `state`. A sync that finds nothing unsynced,
    /// because a concurrent sync has just taken the set, waits for the concurrent sync and fails
    /// with it. Removals hold the lock, too: otherwise a sync might take a segment that we removed
    /// for a segment that another program removed.
    syncing: Mutex<()>,
    /// As [`Extent::stale`].
    stale: Vec<u64>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Lowest segment of the log.
    first: u64,
    /// The number after the highest valid segment.
    next: u64,
    /// Segments after a gap, which a cut removes.
    orphans: Vec<u64>,
    /// Open files; the last entry was used last.
    open: Vec<(u64, Arc<dyn File>)>,
    dirty: BTreeSet<u64>,
    /// Whether segments were created or removed since the last sync.
    names_dirty: bool,
    /// The directory, held open from the first use on: a sync that found no free descriptor for the
    /// directory would be the log's last.
    held: Option<Box<dyn HeldDir>>,
    /// Why a sync failed: no later sync can make up for the failure.
    failed: Option<String>,
}

impl State {
    fn check(&self) -> io::Result<()> {
        match &self.failed {
            None => Ok(()),
            Some(why) => Err(io::Error::other(format!("an earlier sync failed: {why}"))),
        }
    }
}

/// The segments in a listing of the directory.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// Lowest valid segment.
    pub first: u64,
    /// The number after the highest segment before any gap.
    pub next: u64,
    /// Segments after a gap.
    pub orphans: Vec<u64>,
    /// Segments below the head, which a crash brought back.
    pub stale: Vec<u64>,
    /// Segments of the log, opened by the look.
    pub open: Vec<(u64, Arc<dyn File>)>,
}

impl Listing {
    /// Keep an open file, but only a few files. The lowest file always stays open, to identify the log.
    pub fn keep(&mut self, index: u64, file: Arc<dyn File>) {
        if self.open.len() == OPEN_MAX {
            self.open.remove(1);
        }
        self.open.push((index, file));
    }
}

impl Segmented {
    /// The segments of `extent`.
    pub fn new(
        storage: Arc<dyn Storage>,
        dir: &Path,
        name: fn(u64) -> String,
        segment_bytes: u64,
        access: Access,
        file_mode: u32,
        extent: Listing,
    ) -> Self {
        let state = State {
            first: extent.first,
            next: extent.next,
            orphans: extent.orphans,
            open: extent.open,
            dirty: BTreeSet::new(),
            names_dirty: false,
            held: None,
            failed: None,
        };
        let (dir, state) = (dir.to_path_buf(), Mutex::new(state));
        let (syncing, stale) = (Mutex::new(()), extent.stale);
        Self { storage, dir, name, segment_bytes, access, file_mode, syncing, stale, state }
    }

    /// The purpose of the open files.
    pub fn access(&self) -> Access {
        self.access
    }

    /// Size of a segment.
    pub fn segment_bytes(&self) -> u64 {
        self.segment_bytes
    }

    /// Path of a segment.
    pub fn path(&self, index: u64) -> PathBuf {
        self.dir.join((self.name)(index))
    }

    /// Lowest segment of the log, and the number after the highest.
    pub fn range(&self) -> std::ops::Range<u64> {
        let state = lock(&self.state);
        state.first..state.next
    }

    /// Take over the result of a later listing of the directory. Only a reader's segments may
    /// change.
    pub fn adopt(&self, found: &Self) {
        let (mut state, found) = (lock(&self.state), lock(&found.state));
        (state.first, state.next) = (found.first, found.next);
        state.orphans.clone_from(&found.orphans);
        state.open.clear();
    }

    /// Close all files and the directory. A later call opens the files again.
    pub fn give_back(&self) {
        let mut state = lock(&self.state);
        state.open.clear();
        state.held = None;
    }

    /// Close the files that lost their names: the next reads open the names' new files.
    pub fn reopen(&self) {
        lock(&self.state).open.retain(|(_, file)| matches!(file.is_unlinked(), Ok(false)));
    }

    /// Remove the segments below `first`, oldest first, durably. Segments left by a crash lie below the head and are
    /// not valid.
    pub fn remove_below(&self, first: u64) -> io::Result<()> {
        let _syncing = lock(&self.syncing);
        let mut state = lock(&self.state);
        let from = state.first;
        state.first = first.max(from);
        state.open.retain(|(index, _)| *index >= first);
        state.dirty = state.dirty.split_off(&first);
        for index in from..first {
            remove(
                &*self.storage,
                &self.path(seeded!(index, "newest-segment-first" => from + first - 1 - index)),
            )?;
        }
        self.storage.sync_dir(&self.dir)
    }

    /// Remove the segments below the head that a crash brought back, oldest first, once the head is durable.
    pub fn remove_stale(&self) -> Result<&[u64]> {
        if self.stale.is_empty() {
            return Ok(&[]);
        }
        let sync = || {
            let synced = self.storage.sync_dir(&self.dir);
            synced.map_err(|e| Error::io("sync the directory", &self.dir, e))
        };
        sync()?;
        for index in &self.stale {
            let path = self.path(*index);
            remove(&*self.storage, &path).map_err(|e| Error::io("remove the segment", &path, e))?;
        }
        sync()?;
        Ok(&self.stale)
    }

    /// Create the segment with byte `offset` if missing, durably.
    pub fn ensure(&self, offset: u64) -> io::Result<()> {
        let mut state = lock(&self.state);
        while state.next <= offset / self.segment_bytes {
            self.create(&mut state)?;
        }
        drop(state);
        self.sync_data()
    }

    /// Sync every segment from the segment with byte `offset` on, written by any handle, and all
    /// their names.
    pub fn sync_from(&self, offset: u64) -> io::Result<()> {
        let _syncing = lock(&self.syncing);
        let mut state = lock(&self.state);
        state.check()?;
        for index in (offset / self.segment_bytes).max(state.first)..state.next {
            let file = self.file(&mut state, index)?;
            self.sync_one(&mut state, index, &*file)?;
            state.dirty.remove(&index);
        }
        state.names_dirty = false;
        self.storage.sync_dir(&self.dir)
    }

    fn create(&self, state: &mut State) -> io::Result<Arc<dyn File>> {
        let index = state.next;
        self.check_place(state)?;
        self.hold_dir(state)?;
        let file: Arc<dyn File> =
            Arc::from(self.storage.create_new(&self.path(index), self.file_mode)?);
        state.next = index + 1;
        state.names_dirty = true;
        state.dirty.insert(index);
        self.keep(state, index, file.clone())?;
        Ok(file)
    }

    fn hold_dir(&self, state: &mut State) -> io::Result<()> {
        if state.held.is_none() {
            state.held = self.storage.hold_dir(&self.dir)?;
        }
        Ok(())
    }

    /// Fail if somebody moved the directory and another log has its name: create nothing in the
    /// other log.
    fn check_place(&self, state: &mut State) -> io::Result<()> {
        let Some((last, ours)) = state.open.iter().max_by_key(|(index, _)| *index) else {
            return Ok(());
        };
        let path = self.path(*last);
        let same = match self.storage.open(&path, Access::Read) {
            Ok(there) => there.id()? == ours.id()?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => false,
            Err(e) => return Err(e),
        };
        match same {
            true => Ok(()),
            false => Err(io::Error::other(format!(
                "{} is another file or gone: the log was moved or replaced",
                (self.name)(*last)
            ))),
        }
    }

    /// Remember an open file. If too many are open, close the file unused for longest, and sync it
    /// before if unsynced, because Linux reports a failure of the disk only to handles that were
    /// open.
    fn keep(&self, state: &mut State, index: u64, file: Arc<dyn File>) -> io::Result<()> {
        state.open.push((index, file));
        if state.open.len() > OPEN_MAX {
            let (old, file) = state.open.remove(0);
            if state.dirty.contains(&old) {
                self.sync_one(state, old, &*file)?;
                state.dirty.remove(&old);
            }
        }
        Ok(())
    }

    fn sync_one(&self, state: &mut State, index: u64, file: &dyn File) -> io::Result<()> {
        let synced = sync_named(&(self.name)(index), file);
        if let Err(e) = seeded!(&synced, "failed-sync-forgotten" => return synced) {
            state.failed.get_or_insert_with(|| e.to_string());
        }
        synced
    }

    fn file(&self, state: &mut State, index: u64) -> io::Result<Arc<dyn File>> {
        self.open_one(state, index).map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => {
                io::Error::other(format!("segment {} is gone", (self.name)(index)))
            }
            _ => e,
        })
    }

    fn open_one(&self, state: &mut State, index: u64) -> io::Result<Arc<dyn File>> {
        if let Some((last, file)) = state.open.last()
            && *last == index
        {
            return Ok(file.clone());
        }
        if let Some(at) = state.open.iter().position(|(open, _)| *open == index) {
            let entry = state.open.remove(at);
            let file = entry.1.clone();
            state.open.push(entry);
            return Ok(file);
        }
        let file: Arc<dyn File> = Arc::from(self.storage.open(&self.path(index), self.access)?);
        self.keep(state, index, file.clone())?;
        Ok(file)
    }

    /// Find segments that others created since. Returns the length of the log.
    fn grow(&self, state: &mut State) -> io::Result<u64> {
        loop {
            if state.next == state.first {
                return Ok(state.first * self.segment_bytes);
            }
            let index = state.next - 1;
            let file = match self.open_one(state, index) {
                // The writer cut the log.
                Err(e) if self.access == Access::Read && e.kind() == io::ErrorKind::NotFound => {
                    state.next = index;
                    continue;
                }
                file => file?,
            };
            if self.access == Access::Read && file.is_unlinked()? {
                // The writer cut the log, and may have begun the segment again.
                state.open.retain(|(open, _)| *open != index);
                continue;
            }
            let len = file.len()?;
            if len < self.segment_bytes || self.access == Access::Write {
                return Ok(index.saturating_mul(self.segment_bytes).saturating_add(len));
            }
            match self.storage.open(&self.path(state.next), self.access) {
                Ok(file) => {
                    let next = state.next;
                    state.next += 1;
                    self.keep(state, next, Arc::from(file))?;
                }
                Err(e) if e.kind() == io::ErrorKind::NotFound => {
                    return Ok(index.saturating_mul(self.segment_bytes).saturating_add(len));
                }
                Err(e) => return Err(e),
            }
        }
    }

    fn place(&self, offset: u64, len: usize) -> (u64, u64, usize) {
        let (index, at) = (offset / self.segment_bytes, offset % self.segment_bytes);
        (index, at, (self.segment_bytes - at).min(len as u64) as usize)
    }
}

/// Sync a segment. Fail if the file has lost its name: closing the handle would lose the bytes.
fn sync_named(name: &str, file: &dyn File) -> io::Result<()> {
    file.sync_data()?;
    match file.is_unlinked()? {
        false => Ok(()),
        true => Err(io::Error::other(format!("segment {name} was removed or replaced"))),
    }
}

/// Remove a file, even if already removed.
pub fn remove(storage: &dyn Storage, path: &Path) -> io::Result<()> {
    match storage.remove(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests;
