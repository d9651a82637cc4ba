//! The segments as one [`File`].

use std::io;

use super::{SHORT_BYTES_MAX, Segmented, remove, sync_named};
use crate::ground::locks::lock;
use crate::ground::slice::{part, part_mut};
use crate::storage::{File, FileId};

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
            // The segment before is complete now. Touch the file, because retention goes by its
            // time.
            self.file(&mut state, index - 1)?.touch()?;
        }
        let file = match index == state.next {
            true => self.create(&mut state)?,
            false => self.file(&mut state, index)?,
        };
        drop(state);
        let written = file.write_at(part, at);
        // Mark after the write: a sync that took the set in between has not covered the bytes.
        lock(&self.state).dirty.insert(index);
        written
    }

    /// Cut, newest segment first, so that no crash leaves a segment after a gap.
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
        // Appends continue meanwhile.
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
