//! Segment files as one continuous [`File`]: byte `O` lies in segment `O / S` at `O % S`.
//!
//! Records know nothing of segments and span them. What is unsynced is a set of segments, not a
//! watermark: a late write into an older segment is synced with the rest. Few files are open at a
//! time, whatever their number.

mod gapped;
mod orphans;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::locks::{Mutex, lock};
use crate::slice::{part, part_mut};
use crate::storage::{Access, File, FileId, HeldDir, Storage};

/// Segments open at a time, and unsynced ones at a time: a further one is synced first.
const OPEN_MAX: usize = 16;
/// Shorter writes into the segment used last are done under the lock, which costs less than taking
/// it twice; longer ones would keep readers waiting.
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
    /// Held through a whole sync, and before `state`: a sync that finds nothing unsynced
    /// because another has just taken it waits for that one, and fails if it fails. Removals hold it too,
    /// so that a sync takes no segment that we removed for one that another program removed.
    syncing: Mutex<()>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Lowest segment that counts.
    first: u64,
    /// After the highest segment that counts.
    next: u64,
    /// Segments after a gap, which a cut removes.
    orphans: Vec<u64>,
    /// Open files, the one used last at the end.
    open: Vec<(u64, Arc<dyn File>)>,
    dirty: BTreeSet<u64>,
    /// Whether segments were created or removed since the last sync.
    names_dirty: bool,
    /// The directory from then on: a sync that found no free descriptor for it would be the log's last.
    held: Option<Box<dyn HeldDir>>,
    /// Why a sync failed: no later one can make up for it.
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

/// What a listing of the directory says.
#[derive(Clone, Debug, Default)]
pub struct Extent {
    /// Lowest segment that counts.
    pub first: u64,
    /// After the highest one before any gap.
    pub next: u64,
    /// Segments after a gap.
    pub orphans: Vec<u64>,
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
        extent: Extent,
    ) -> Self {
        let state = State {
            first: extent.first,
            next: extent.next,
            orphans: extent.orphans,
            open: Vec::new(),
            dirty: BTreeSet::new(),
            names_dirty: false,
            held: None,
            failed: None,
        };
        let (dir, state) = (dir.to_path_buf(), Mutex::new(state));
        let syncing = Mutex::new(());
        Self { storage, dir, name, segment_bytes, access, file_mode, syncing, state }
    }

    /// What its files are opened for.
    pub fn access(&self) -> Access {
        self.access
    }

    /// Path of a segment.
    pub fn path(&self, index: u64) -> PathBuf {
        self.dir.join((self.name)(index))
    }

    /// Lowest segment that counts, and the one after the highest.
    pub fn range(&self) -> std::ops::Range<u64> {
        let state = lock(&self.state);
        state.first..state.next
    }

    /// Take over what a later listing of the directory found. Only a reader's may change under it.
    pub fn adopt(&self, found: &Self) {
        let (mut state, found) = (lock(&self.state), lock(&found.state));
        (state.first, state.next) = (found.first, found.next);
        state.orphans.clone_from(&found.orphans);
        state.open.clear();
    }

    /// Close all files and the directory. A later call opens what it needs.
    pub fn give_back(&self) {
        let mut state = lock(&self.state);
        state.open.clear();
        state.held = None;
    }

    /// Close the files that lost their names: the next reads open what has these now.
    pub fn reopen(&self) {
        lock(&self.state).open.retain(|(_, file)| matches!(file.is_unlinked(), Ok(false)));
    }

    /// Remove the segments below `first`, oldest first, durably: what a crash leaves of them lies
    /// below the head and does not count.
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

    /// Create the segment that contains byte `offset` if it is missing, durably.
    pub fn ensure(&self, offset: u64) -> io::Result<()> {
        let mut state = lock(&self.state);
        while state.next <= offset / self.segment_bytes {
            self.create(&mut state)?;
        }
        drop(state);
        self.sync_data()
    }

    /// Sync every segment from the one with byte `offset` on, written by any handle, and their names.
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

    /// Where the directory was moved, and another log got its name, nothing is created in that.
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

    /// Remember an open file; the one unused for longest is closed, after a sync if it needs one,
    /// because a failure of the disk is reported only to those that had the file open.
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

    /// Segments that others created since.
    fn grow(&self, state: &mut State) -> io::Result<u64> {
        loop {
            if state.next == state.first {
                return Ok(state.first * self.segment_bytes);
            }
            let index = state.next - 1;
            let file = match self.open_one(state, index) {
                // Its writer cut the log.
                Err(e) if self.access == Access::Read && e.kind() == io::ErrorKind::NotFound => {
                    state.next = index;
                    continue;
                }
                file => file?,
            };
            if self.access == Access::Read && file.is_unlinked()? {
                // And may have begun that segment again.
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

/// Sync a segment; what a file holds that has no name any more is lost with its handle.
fn sync_named(name: &str, file: &dyn File) -> io::Result<()> {
    file.sync_data()?;
    match file.is_unlinked()? {
        false => Ok(()),
        true => Err(io::Error::other(format!("segment {name} was removed or replaced"))),
    }
}

/// Remove a file that may be gone already.
pub fn remove(storage: &dyn Storage, path: &Path) -> io::Result<()> {
    match storage.remove(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

impl File for Segmented {
    fn len(&self) -> io::Result<u64> {
        let mut state = lock(&self.state);
        self.grow(&mut state)
    }

    /// The lowest segment's.
    fn id(&self) -> io::Result<FileId> {
        let mut state = lock(&self.state);
        match state.first < state.next {
            true => {
                let first = state.first;
                self.file(&mut state, first)?.id()
            }
            false => Ok(FileId::default()),
        }
    }

    fn is_unlinked(&self) -> io::Result<bool> {
        let mut state = lock(&self.state);
        match state.next.checked_sub(1).filter(|last| *last >= state.first) {
            Some(last) => self.file(&mut state, last)?.is_unlinked(),
            None => Ok(false),
        }
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let (index, at, len) = self.place(offset, buf.len());
        let mut state = lock(&self.state);
        if index >= state.next {
            self.grow(&mut state)?;
            if index >= state.next {
                return Ok(0);
            }
        }
        if index < state.first {
            let name = (self.name)(index);
            return Err(io::Error::other(format!("segment {name} was dropped")));
        }
        let inner = index + 1 < state.next;
        let file = self.file(&mut state, index)?;
        drop(state);
        let read = file.read_at(part_mut(buf, ..len), at)?;
        if read == 0 && inner && len > 0 {
            // Not the end of the log: others follow.
            let (name, has) = ((self.name)(index), file.len()?);
            let message =
                format!("segment {name} has {has} bytes, must have {}", self.segment_bytes);
            return Err(io::Error::other(message));
        }
        Ok(read)
    }

    /// At most up to the end of a segment.
    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        let (index, at, len) = self.place(offset, buf.len());
        let part = part(buf, ..len);
        let mut state = lock(&self.state);
        if let Some((_, file)) = state.open.last().filter(|(last, _)| *last == index)
            && len <= SHORT_BYTES_MAX
            && at > 0
        {
            let written = file.write_at(part, at);
            state.dirty.insert(index);
            return written;
        }
        if at == 0 && index > state.first {
            // Nothing more comes into the one before: retention goes by its time.
            self.file(&mut state, index - 1)?.touch()?;
        }
        let file = match index == state.next {
            true => self.create(&mut state)?,
            false => self.file(&mut state, index)?,
        };
        drop(state);
        let written = file.write_at(part, at);
        // After the write: a sync that took the set in between has not covered it.
        lock(&self.state).dirty.insert(index);
        written
    }

    /// Cut; segments go newest first, so that no crash leaves one after a gap.
    fn set_len(&self, len: u64) -> io::Result<()> {
        let _syncing = lock(&self.syncing);
        let mut state = lock(&self.state);
        let last = (len.saturating_sub(1) / self.segment_bytes).max(state.first);
        if !state.orphans.is_empty() || last + 1 < state.next {
            self.hold_dir(&mut state)?;
        }
        let mut gone = std::mem::take(&mut state.orphans);
        gone.extend((last + 1)..state.next);
        gone.sort_unstable();
        state.open.retain(|(index, _)| *index <= last);
        state.dirty.retain(|index| *index <= last);
        state.next = state.next.min(last + 1);
        for index in gone.iter().rev() {
            remove(&*self.storage, &self.path(*index))?;
        }
        if !gone.is_empty() {
            state.names_dirty = true;
        }
        if last >= state.next {
            return Ok(());
        }
        let file = self.file(&mut state, last)?;
        state.dirty.insert(last);
        file.set_len(len - last * self.segment_bytes)
    }

    fn allocate(&self, len: u64) -> io::Result<bool> {
        let mut state = lock(&self.state);
        let last = len.saturating_sub(1) / self.segment_bytes;
        let mut index = state.next.saturating_sub(1).max(state.first);
        while index <= last {
            let file = match index == state.next {
                true => self.create(&mut state)?,
                false => self.file(&mut state, index)?,
            };
            let want = (len - index * self.segment_bytes).min(self.segment_bytes);
            if !file.allocate(want)? {
                return Ok(false);
            }
            state.dirty.insert(index);
            index += 1;
        }
        Ok(true)
    }

    /// Return when every segment written since the last sync is on stable storage, and its name.
    fn sync_data(&self) -> io::Result<()> {
        let _syncing = lock(&self.syncing);
        let mut state = lock(&self.state);
        state.check()?;
        let dirty = std::mem::take(&mut state.dirty);
        let names_dirty = std::mem::take(&mut state.names_dirty);
        let held = state.held.take();
        let mut files = Vec::with_capacity(dirty.len());
        for index in dirty {
            match self.file(&mut state, index) {
                Ok(file) => files.push((index, file)),
                Err(e) => {
                    state.failed.get_or_insert_with(|| e.to_string());
                    return Err(e);
                }
            }
        }
        // Appends go on meanwhile.
        drop(state);
        let synced = files
            .iter()
            .try_for_each(|(index, file)| sync_named(&(self.name)(*index), &**file))
            .and_then(|()| match (names_dirty, held) {
                (true, Some(dir)) => dir.sync(),
                (true, None) => self.storage.sync_dir(&self.dir),
                (false, _) => Ok(()),
            });
        if let Err(e) = &synced {
            lock(&self.state).failed.get_or_insert_with(|| e.to_string());
        }
        seeded!("sync-covers-later-writes" => lock(&self.state).dirty.clear());
        synced
    }
}

#[cfg(test)]
mod tests;
