//! The directory of a ledger: the files, the files being written, and the next index.
//!
//! A call that looks at several names, or changes a name, holds the [`Gate`]: the directory's own
//! lock, for a few system calls. So no other store meets a file between its creation and its lock,
//! and two stores that look for finished files do not take each other's look for a writer.

mod claim;
pub(crate) mod counter;
pub(super) mod lease;
pub(super) mod look;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::codec::{FORMAT, QUARANTINE_NAME, file_index, file_name, file_parts};
use super::limits::known_limit;
use super::options::{Options, check_base};
use crate::error::{Error, ErrorKind, Result};
use crate::ground::lines::{self, Held};
use crate::ground::locks::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::saving::{make_dir, make_own_dir, refuse_link, sync_above, sync_names};
use crate::sidecar::{
    PRIVATE_MODE, Settings, lock_within, make_sidecar, refuse_other_format, sidecar_dir,
};
use crate::storage::{
    Access, File, FileId, LockAttempt, LockGuard, Storage, located, move_to, sync_dir,
};

/// How long another store's hold of the directory is waited for.
const GATE_WAIT: Duration = Duration::from_secs(30);
/// The most taken names that the creation of a file tries in a row.
const CREATE_TRIES: u32 = 1000;
/// The begin of the name of the directory for staged files, before the base.
const JOBS_PREFIX: &str = "jobs-";

/// The directory of a ledger.
#[derive(Debug)]
pub struct Directory {
    pub storage: Arc<dyn Storage>,
    /// The directory, absolute.
    pub path: PathBuf,
    pub base: String,
    /// The jobs' staged files and commits: several ledgers share a directory and its `.deedbook`.
    pub jobs: PathBuf,
    pub file_mode: u32,
    /// Whether this store has made the names of the directory and of `.deedbook` durable: another
    /// store may have made both and crashed before.
    settled: AtomicBool,
    sidecar_settled: AtomicBool,
    /// The highest next index known to be durable.
    counted: AtomicU64,
}

/// The directory's lock. Released when dropped.
#[derive(Debug)]
pub struct Gate {
    _guard: Box<dyn LockGuard>,
    _held: Held,
}

/// A file that no store writes.
#[derive(Debug)]
pub struct Finished {
    pub index: u32,
    pub path: PathBuf,
    pub file: Arc<dyn File>,
    pub id: FileId,
    pub len: u64,
}

/// A new file, locked until the guard is dropped.
#[derive(Debug)]
pub struct Created {
    pub index: u32,
    pub path: PathBuf,
    pub file: Arc<dyn File>,
    pub id: FileId,
    pub lock: Box<dyn LockGuard>,
}

/// The destination of a removed file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Away {
    /// It is removed.
    Removed,
    /// Moved to `.deedbook/quarantine/`.
    Quarantined,
}

impl Directory {
    /// A directory that may not be there.
    pub fn at(options: &Options, location: &Path, base: &str) -> Result<Self> {
        let refused = |message| Error::new(ErrorKind::InvalidArgument, message).at(location);
        check_base(base).map_err(refused)?;
        let path = located(&*options.storage, location)?;
        refuse_link(&*options.storage, &sidecar_dir(&path))?;
        Ok(Self {
            jobs: sidecar_dir(&path).join(format!("{JOBS_PREFIX}{base}")),
            path,
            storage: options.storage.clone(),
            base: base.into(),
            file_mode: options.file_mode,
            settled: AtomicBool::new(false),
            sidecar_settled: AtomicBool::new(false),
            counted: AtomicU64::new(0),
        })
    }

    /// The directory, created if missing.
    pub fn open(options: &Options, location: &Path, base: &str) -> Result<Self> {
        let directory = Self::at(options, location, base)?;
        refuse_other_format(&*directory.storage, &directory.path, FORMAT)?;
        make_dir(&*directory.storage, &directory.path, options.file_mode)?;
        Ok(directory)
    }

    pub fn sidecar(&self) -> PathBuf {
        sidecar_dir(&self.path)
    }

    pub fn path_of(&self, index: u32) -> PathBuf {
        self.path.join(file_name(index, &self.base))
    }

    /// Indexes of the files there are, the oldest first.
    pub fn indexes(&self) -> Result<Vec<u32>> {
        let names = self.storage.list(&self.path).map_err(|e| self.fail("list the files", e))?;
        let mut found: Vec<_> =
            names.iter().filter_map(|name| file_index(name, &self.base)).collect();
        found.sort_unstable();
        seeded!("newest-file-first" => found.reverse());
        Ok(found)
    }

    /// The index after those of the files there are.
    pub fn after_last(&self) -> Result<u64> {
        Ok(self.indexes()?.last().map_or(0, |&last| u64::from(last) + 1))
    }

    /// Lock the directory for this thread alone. Other holders need only a few system calls, so
    /// wait.
    pub fn gate(&self) -> Result<Gate> {
        let guard = lock_within(&*self.storage, &self.path, GATE_WAIT)?;
        Ok(Gate { _guard: guard, _held: lines::hold() })
    }

    /// Create and lock the file after all present and former files. `next` is the lowest allowed
    /// index: the index after this store's last file, or 0 without a last file.
    pub fn create(&self, _gate: &Gate, next: u64) -> Result<Created> {
        // A list takes longer the more files wait, so a store lists once: later, the store's own
        // file is the last. Another store's later file has the next name, and a removal raises the
        // counter.
        let mut listed = next == 0;
        // First the names, then the counter: the counter covers every file removed in between.
        let highest = if listed { self.after_last()? } else { 0 };
        let counted = self.counted()?;
        let mut next = next.max(highest).max(counted);
        for _ in 0..CREATE_TRIES {
            let index = self.index(next)?;
            let path = self.path_of(index);
            match self.storage.create_new(&path, self.file_mode) {
                Ok(file) => match self.lock_new(&*file, &path) {
                    Ok(Some((id, lock))) => {
                        return Ok(Created { index, path, file: Arc::from(file), id, lock });
                    }
                    Ok(None) => {}
                    Err(error) => {
                        // No other thread has seen the file: this thread holds the directory.
                        let _ = self.storage.remove(&path);
                        return Err(error);
                    }
                },
                // Another store's.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists && !listed => {
                    listed = true;
                    next = seeded!(next.max(self.after_last()?), "names-one-by-one" => next + 1);
                    continue;
                }
                // Another program's, which does not ask for the gate.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(Error::io("create the file", &path, e)),
            }
            next += 1;
        }
        let message = format!("{CREATE_TRIES} names in a row up to index {} are taken", next - 1);
        Err(Error::new(ErrorKind::Locked, message).at(&self.path))
    }

    /// An index, if a file can have it.
    pub fn index(&self, next: u64) -> Result<u32> {
        u32::try_from(next).map_err(|_| {
            let message = format!("index {next}, the highest is {}", u32::MAX);
            Error::new(ErrorKind::TooLarge, message).at(&self.path)
        })
    }

    fn lock_new(
        &self,
        file: &dyn File,
        path: &Path,
    ) -> Result<Option<(FileId, Box<dyn LockGuard>)>> {
        let fail = |e| Error::io("lock the file", path, e);
        let id = file.id().map_err(fail)?;
        Ok(match self.storage.lock(path, false).map_err(fail)? {
            LockAttempt::Held(guard) => Some((id, guard)),
            LockAttempt::Busy(_) => None,
        })
    }

    /// Open a file, unless a store is writing the file, or the path has no regular file.
    pub fn finished(&self, _gate: &Gate, index: u32) -> Result<Option<Finished>> {
        let path = self.path_of(index);
        let fail = |e| Error::io("open the file", &path, e);
        let file: Arc<dyn File> = match self.storage.open(&path, Access::Read) {
            Ok(file) => Arc::from(file),
            Err(e) if is_no_file(&e) => return Ok(None),
            Err(e) => return Err(fail(e)),
        };
        match self.storage.lock(&path, false) {
            Ok(LockAttempt::Held(guard)) => drop(guard),
            Ok(LockAttempt::Busy(_)) => seeded!(return Ok(None), "busy-file-given" => ()),
            Err(e) if is_no_file(&e) => return Ok(None),
            Err(e) => return Err(fail(e)),
        }
        let (id, len) = (file.id().map_err(fail)?, file.len().map_err(fail)?);
        Ok(Some(Finished { index, path, file, id, len }))
    }

    /// Remove a file whose index no store has seen.
    pub fn remove_unseen(&self, _gate: &Gate, path: &Path, id: FileId) -> Result<()> {
        let fail = |e| Error::io("remove the file", path, e);
        let found =
            self.storage.open(path, Access::Read).and_then(|file| file.id()).map_err(fail)?;
        match found == id {
            true => self.storage.remove(path).map_err(fail),
            false => Ok(()),
        }
    }

    /// Put the file with this identity away; `false` if the file is missing, or the name has
    /// another file.
    pub fn put_away(&self, gate: &Gate, index: u32, id: FileId, away: Away) -> Result<bool> {
        let path = self.path_of(index);
        let found = match self.storage.open(&path, Access::Read) {
            Ok(file) => file.id().map_err(|e| Error::io("look at the file", &path, e))?,
            Err(e) if is_no_file(&e) => return Ok(false),
            Err(e) => return Err(Error::io("open the file", &path, e)),
        };
        if found != id {
            lines::warn(format_args!("not removed: another file by now ({})", path.display()));
            return Ok(false);
        }
        match away {
            Away::Removed if self.claim_or_empty(gate, index, &path)? => {
                self.storage.remove(&path).map_err(|e| Error::io("remove the file", &path, e))?;
            }
            Away::Removed => {}
            Away::Quarantined => {
                self.claim(gate, index)?;
                self.quarantine(index, &path)?;
            }
        }
        Ok(true)
    }

    /// Make the directory for quarantined files, durably.
    pub fn make_quarantine(&self) -> Result<PathBuf> {
        self.make_sidecar()?;
        let dir = self.sidecar().join(QUARANTINE_NAME);
        make_own_dir(&*self.storage, &dir, PRIVATE_MODE)?;
        sync_names(&*self.storage, &self.sidecar(), &self.path)?;
        Ok(dir)
    }

    /// A free name for a damaged file in the quarantine: the file's name, or the name with a number.
    pub fn free_in_quarantine(&self, index: u32) -> Result<PathBuf> {
        let dir = self.make_quarantine()?;
        let taken = self.storage.list(&dir).map_err(|e| Error::io("list the files", &dir, e))?;
        let name = file_name(index, &self.base);
        let names = std::iter::once(name.clone()).chain((2..).map(|n| format!("{name}.{n}")));
        let mut free = names.skip_while(|name| taken.iter().any(|taken| *taken == **name));
        Ok(dir.join(free.next().unwrap_or_default()))
    }

    /// The damaged files in the quarantine, by name.
    pub fn quarantined(&self) -> Result<Vec<PathBuf>> {
        let dir = self.sidecar().join(QUARANTINE_NAME);
        let mut names = match self.storage.list(&dir) {
            Err(e) if is_no_file(&e) || e.kind() == io::ErrorKind::NotADirectory => Vec::new(),
            names => names.map_err(|e| Error::io("list the files", &dir, e))?,
        };
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        names.retain(|name| {
            let parts = file_parts(name);
            let rest = parts.and_then(|(_, found)| found.strip_prefix(&*self.base));
            rest.is_some_and(|rest| {
                rest.is_empty() || rest.strip_prefix('.').is_some_and(is_number)
            })
        });
        names.sort();
        Ok(names.into_iter().map(|name| dir.join(name)).collect())
    }

    /// Durably: no other copy of the records after the damage exists.
    fn quarantine(&self, index: u32, path: &Path) -> Result<()> {
        let fail = |e| Error::io("move the file to the quarantine", path, e);
        let to = self.free_in_quarantine(index)?;
        move_to(&*self.storage, path, &to).map_err(fail)?;
        lines::warn(format_args!("a damaged file went to {}", to.display()));
        Ok(())
    }

    /// The limit of a payload that the ledger's stores were opened with, if above the usual limit.
    pub fn kept_limit(&self) -> Result<u64> {
        known_limit(&*self.storage, &self.path)
    }

    /// Have other stores read records as long as this limit allows.
    pub fn keep_limit(&self, _gate: &Gate, record_bytes_max: u64) -> Result<()> {
        if record_bytes_max <= self.kept_limit()? {
            return Ok(());
        }
        self.make_sidecar()?;
        let settings = Settings { format: FORMAT, segment_bytes: None, record_bytes_max };
        settings.store(&*self.storage, &self.sidecar())
    }

    /// Return when the names of the files are on stable storage.
    pub fn sync(&self) -> Result<()> {
        sync_dir(&*self.storage, &self.path)?;
        if !self.settled.load(Ordering::Acquire) {
            sync_above(&*self.storage, &self.path)?;
            self.settled.store(true, Ordering::Release);
        }
        Ok(())
    }

    pub fn make_sidecar(&self) -> Result<()> {
        make_sidecar(&*self.storage, &self.sidecar())
    }

    fn fail(&self, doing: &str, e: io::Error) -> Error {
        Error::io(doing, &self.path, e)
    }
}

/// Whether there is no file of the ledger by that name.
pub fn is_no_file(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidInput)
}

/// Whether the disk, or the user's share of it, is full.
pub fn is_full(error: &Error) -> bool {
    let kind = error.io_source().map(io::Error::kind);
    matches!(kind, Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Memory;

    /// A process that never unlocks would have held up every call forever.
    #[test]
    fn a_locked_directory_fails_after_the_wait() {
        let options = Options { storage: Arc::new(Memory::default()), ..Options::default() };
        let directory = Directory::open(&options, Path::new("/spool"), "events").unwrap();
        let gate = directory.gate().unwrap();
        let error = lock_within(&*directory.storage, &directory.path, Duration::from_millis(5))
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Locked);
        assert!(error.message().contains("locked for 5ms"), "{error}");
        drop(gate);
        directory.gate().unwrap();
    }
}
