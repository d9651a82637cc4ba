//! The event store's own write-ahead log: numbered entries in files that follow each other.
//!
//! The log finishes, syncs and closes a file before it creates the next, so a crash can tear only
//! the newest file. Damage in an older file has another cause. A checkpoint lets the log remove the
//! files wholly before it, the oldest first. The file with the checkpoint's entry stays, so that
//! numbers continue after the checkpoint even if later files are lost.

use std::path::{Path, PathBuf};

use super::codec::Codec;
pub use super::entry::{Entry, Lsn};
use super::entry::{FORMAT, FRAMING_BYTES, LSN_MAX, Tag, file_name};
use super::files::{FileFormat, check_none_lost, numbers};
use super::replay::Piece;
pub use super::replay::{Logged, Replay};
pub use super::wal_options::WalOptions;
use super::wal_state::State;
use crate::error::{Durable, Error, ErrorKind, Result};
use crate::ground::locks::{Mutex, lock};
use crate::log::{Batch, Log, OpenReport, Repair, RepairReport, Stats, VerifyReport, Wanted};
use crate::mode::Mode;
use crate::saving::make_own_dir;
use crate::scan::OnCorrupt;
use crate::sidecar::{LockTimeout, WriterLock, make_sidecar, sidecar_dir};
use crate::storage::located;

/// An open log. Handles may be shared by threads.
#[derive(Debug)]
pub struct EventWal {
    pub(super) dir: PathBuf,
    pub(super) mode: Mode,
    pub(super) options: WalOptions,
    pub(super) state: Mutex<State>,
    /// Held until the log is closed.
    guard: Mutex<Option<WriterLock>>,
}

impl WalOptions {
    /// Open the log in a directory.
    pub fn open(&self, dir: impl AsRef<Path>, mode: Mode) -> Result<EventWal> {
        EventWal::open_with(dir.as_ref(), mode, self.clone())
    }
}

impl EventWal {
    pub(crate) fn open_with(dir: &Path, mode: Mode, options: WalOptions) -> Result<Self> {
        let wal = Self::open_unread(dir, mode, options)?;
        wal.find_checkpoint()?;
        Ok(wal)
    }

    /// Open the log without a search for the last checkpoint: a manifest names it.
    pub(crate) fn open_unread(dir: &Path, mode: Mode, options: WalOptions) -> Result<Self> {
        options.check()?;
        let dir = located(&*options.storage, dir).map_err(|e| e.of(FORMAT))?;
        let storage = &*options.storage;
        let guard = match mode {
            Mode::Read => None,
            _ => Some(lock_dir(&options, &dir).map_err(|e| e.of(FORMAT))?),
        };
        let found = numbers(storage, &dir)?;
        check_none_lost(storage, &dir, found.last().copied())?;
        if mode == Mode::Create && !found.is_empty() {
            let exists = std::io::ErrorKind::AlreadyExists.into();
            return Err(Error::io("create the log", &dir.join(file_name(0)), exists).of(FORMAT));
        }
        let state = Mutex::new(State::open(&dir, mode, &options, &found, mode != Mode::Read)?);
        Ok(Self { dir, mode, options, state, guard: Mutex::new(guard) })
    }

    /// Open an existing log for reading, with the checks of an opening for writing.
    pub(crate) fn open_to_check(dir: &Path, options: WalOptions) -> Result<Self> {
        let found = numbers(&*options.storage, dir)?;
        check_none_lost(&*options.storage, dir, found.last().copied())?;
        let state = Mutex::new(State::open(dir, Mode::Read, &options, &found, true)?);
        let (dir, guard) = (dir.to_path_buf(), Mutex::new(None));
        Ok(Self { dir, mode: Mode::Read, options, state, guard })
    }

    /// Append one entry and return its number. The entry then survives a crash of the process, and
    /// with [`Durability::Always`](crate::Durability::Always) a power cut.
    pub fn append(&self, entry: &Entry<'_>, timestamp: u64) -> Result<Lsn> {
        let (lsn, log, end) = self.write(1, |state| {
            let data = entry.data();
            self.make_room(state, data.len() as u64 + FRAMING_BYTES)?;
            let tag = Tag { op: entry.op(), lsn: state.next, timestamp };
            Ok(state.current.writable()?.append_one(tag, &data)?.end)
        })?;
        self.after_append(&log, end)?;
        Ok(lsn)
    }

    /// Append entries, each with its time, with one write, and return the number of the first
    /// entry. An error means that no entry is acknowledged. A crash before the sync may leave a
    /// prefix of the entries.
    pub fn append_many(&self, entries: &[(Entry<'_>, u64)]) -> Result<Lsn> {
        let (lsn, log, end) = self.write(entries.len() as u64, |state| {
            let mut batch = Batch::with_framing(Codec::new(self.options.data_bytes_max));
            for ((entry, timestamp), lsn) in entries.iter().zip(state.next.0..) {
                let tag = Tag { op: entry.op(), lsn: Lsn(lsn), timestamp: *timestamp };
                batch.push_tagged(tag, &entry.data())?;
            }
            self.make_room(state, batch.bytes_len() as u64)?;
            let log = state.current.writable()?;
            Ok(log.append_batch_at(&batch, Wanted::default())?.end)
        })?;
        self.after_append(&log, end)?;
        Ok(lsn)
    }

    /// Append one entry, sync the log, and return the entry's number.
    pub fn commit(&self, entry: &Entry<'_>, timestamp: u64) -> Result<Lsn> {
        let lsn = self.append(entry, timestamp)?;
        self.sync()?;
        Ok(lsn)
    }

    /// Wait until every entry appended so far is on stable storage. Waiting threads share a sync.
    pub fn sync(&self) -> Result<()> {
        let (log, end) = {
            let state = lock(&self.state);
            state.check()?;
            if state.finished {
                return Ok(());
            }
            let end = state.current.writable_as_before()?.extent().end;
            (state.current.clone(), end)
        };
        // If another thread finishes this file meanwhile, the file is already synced.
        log.shared.sync_to(end)
    }

    /// A snapshot of the entries after the last checkpoint.
    pub fn replay(&self, on_corrupt: OnCorrupt) -> Result<Replay> {
        let after = Lsn(lock(&self.state).checkpoint.0 + 1);
        self.entries(after, on_corrupt)
    }

    /// A snapshot of the entries from a number on; a number before the first entry returns all
    /// entries.
    pub fn entries(&self, from: Lsn, on_corrupt: OnCorrupt) -> Result<Replay> {
        let state = lock(&self.state);
        // A file that begins below the file before is damage, and the walk reports it.
        let pairs = state.files.iter().zip(state.files.iter().skip(1));
        let before = |(one, next): &(&Piece, &Piece)| one.first < next.first && next.first <= from;
        let later = pairs.take_while(before).count();
        let (_, mut finished) = state.files.split_at(later);
        let mut newest = None;
        // The walk reads a finished newest file like the older files.
        if let Some((piece, before)) = finished.split_last().filter(|_| !state.finished) {
            let cursor = state.current.cursor_by_ordinal(from.0, None, on_corrupt)?;
            (newest, finished) = (Some((piece.number, cursor)), before);
        }
        let options = self.options.file(Lsn(0), Lsn(0));
        Ok(Replay::new(&self.dir, options, finished, newest, from, on_corrupt))
    }

    /// Check every entry of every file, and return one report a file, the oldest first.
    pub fn verify(&self) -> Result<Vec<VerifyReport>> {
        let state = lock(&self.state);
        let check = |piece: &Piece| {
            let options = self.options.file(piece.first, Lsn(0));
            let path = self.dir.join(file_name(piece.number));
            crate::log::check_rest::<FileFormat>(&path, &options, &[], |_, _| Ok(()))
        };
        state.files.iter().map(check).collect()
    }

    /// Number of the next entry.
    pub fn next_lsn(&self) -> Lsn {
        lock(&self.state).next
    }

    /// Number of the first entry that may not be on stable storage. A reader that cannot know
    /// returns `None`.
    pub fn durable(&self) -> Result<Option<Lsn>> {
        let state = lock(&self.state);
        if state.finished {
            return Ok(Some(state.next));
        }
        let records = state.current.durable_records()?;
        let first = state.current.extent()?.first;
        Ok(records.map(|records| Lsn(first.saturating_add(records))))
    }

    /// Size of all the files, bytes.
    pub fn bytes(&self) -> u64 {
        let state = lock(&self.state);
        let finished = state.files.iter().rev().skip(1).map(|piece| piece.bytes);
        finished.sum::<u64>() + state.current.shared.extent().end
    }

    /// Counters of this handle since its opening.
    pub fn stats(&self) -> Stats {
        let state = lock(&self.state);
        let mut all = state.done.clone();
        if !state.finished {
            all.add(&state.current.shared.counters.read());
        }
        all
    }

    /// Bytes of entries not yet synced. A finished file is synced as a whole.
    pub fn unsynced_bytes(&self) -> u64 {
        let state = lock(&self.state);
        if state.finished {
            return 0;
        }
        let shared = &state.current.shared;
        let durable = shared.durable();
        shared.extent().end.saturating_sub(durable)
    }

    /// The result of opening: the state of the log's end, and repairs.
    pub fn recovery(&self) -> OpenReport {
        lock(&self.state).current.recovery().clone()
    }

    /// The files, the oldest first.
    pub fn paths(&self) -> Vec<PathBuf> {
        let state = lock(&self.state);
        state.files.iter().map(|piece| self.dir.join(file_name(piece.number))).collect()
    }

    /// Sync and close the log.
    pub fn close(&self) -> Result<()> {
        let mut state = lock(&self.state);
        state.closed = true;
        let closed = state.current.close();
        lock(&self.guard).take();
        closed
    }

    pub(super) fn check_writable(&self) -> Result<()> {
        if self.mode == Mode::Read {
            let message = "the log was opened for reading only";
            let error = Error::new(ErrorKind::ReadOnly, message).of(FORMAT).at(&self.dir);
            return Err(error.with_durable(Durable::No));
        }
        Ok(())
    }

    /// Append `count` entries with `change`, which returns the new end of the newest file.
    fn write(
        &self,
        count: u64,
        change: impl FnOnce(&mut State) -> Result<u64>,
    ) -> Result<(Lsn, Log<FileFormat>, u64)> {
        self.check_writable()?;
        let mut state = lock(&self.state);
        let lsn = state.next;
        let after = Lsn(lsn.0.saturating_add(count));
        if after.0 > LSN_MAX.0 + 1 {
            let message = format!("{count} entries from lsn {lsn} on, the last one is {LSN_MAX}");
            let error = Error::new(ErrorKind::TooLarge, message).of(FORMAT);
            return Err(error.at(&self.dir).with_durable(Durable::No));
        }
        let end = change(&mut state)?;
        state.next = after;
        Ok((lsn, state.current.clone(), end))
    }

    /// Sync if the durability asks for a sync. The lock is released first, so appends continue.
    fn after_append(&self, log: &Log<FileFormat>, end: u64) -> Result<()> {
        let unsynced = end.saturating_sub(log.shared.durable());
        match self.options.durability {
            None if unsynced >= self.options.batch_bytes => log.shared.sync_to(end),
            None => Ok(()),
            Some(_) => log.shared.after_append(end),
        }
    }

    /// Start the next file if this file would get too long: an entry does not span files.
    fn make_room(&self, state: &mut State, bytes: u64) -> Result<()> {
        state.check()?;
        if !state.finished {
            let extent = state.current.writable()?.extent();
            if extent.records == 0 || extent.end.saturating_add(bytes) <= self.options.segment_bytes
            {
                return Ok(());
            }
            state.finish()?;
        }
        let number = state.files.last().map_or(0, |piece| piece.number + 1);
        let options = self.options.file(state.next, state.checkpoint);
        // If an earlier attempt left the next file, it is empty.
        state.current = Log::open_with(&self.dir.join(file_name(number)), Mode::Append, options)
            .map_err(|e| e.with_durable(Durable::No))?;
        state.files.push(Piece { number, first: state.next, bytes: 0 });
        state.finished = false;
        Ok(())
    }
}

/// Save the bytes after the valid prefix of the newest file to a file next to the log, and cut
/// them. A repair does not cut damage in a finished file: the entries after the damage are in other
/// files.
pub fn repair(dir: impl AsRef<Path>, options: &WalOptions, may: Repair) -> Result<RepairReport> {
    let dir = located(&*options.storage, dir.as_ref()).map_err(|e| e.of(FORMAT))?;
    let _guard = lock_dir(options, &dir).map_err(|e| e.of(FORMAT))?;
    let newest = numbers(&*options.storage, &dir)?.last().copied().unwrap_or(0);
    let path = dir.join(file_name(newest));
    crate::log::repair::<FileFormat>(&path, &options.file(Lsn(1), Lsn(0)), may)
}

/// One writer for all the files.
fn lock_dir(options: &WalOptions, dir: &Path) -> Result<WriterLock> {
    let (storage, sidecar) = (&*options.storage, sidecar_dir(dir));
    make_own_dir(storage, dir, options.file_mode)?;
    make_sidecar(storage, &sidecar)?;
    WriterLock::acquire(storage, &sidecar, dir, &LockTimeout::default())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::nostr::log::files::lost_files;
    use crate::storage::{Memory, Storage as _};

    /// `verify` next to a running writer reported an existing file as missing.
    #[test]
    fn a_file_begun_after_listing_is_not_lost() {
        let (memory, dir) = (Memory::new(), Path::new("/wal"));
        let options = WalOptions::new().storage(Arc::new(memory.clone())).small(true);
        let wal = options.segment_bytes(100).open(dir, Mode::Append).unwrap();
        (0..9).for_each(|n| assert!(wal.commit(&Entry::Checkpoint, n).is_ok()));
        let newest = numbers(&memory, dir).unwrap().last().copied();
        assert!(newest > Some(1));
        assert_eq!(lost_files(&memory, dir, Some(0)).unwrap().len(), 0);
        memory.remove(&dir.join(file_name(newest.unwrap()))).unwrap();
        let lost = lost_files(&memory, dir, Some(0)).unwrap();
        assert_eq!(lost.len(), 1, "{lost:?}");
    }
}
