//! A disk that breaks a promise: it drops a sync, delays a sync, or loses a rename.
//!
//! A log that needs the promise then loses acknowledged records, or is refused after a power cut. If no state fails,
//! the log does not need the promise, or no test shows the need.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use deedbook::storage::sim::{Call, Fault, Sim, What};
use deedbook::storage::{Access, File, FileId, LockAttempt, Storage};

/// How the disk breaks the promise for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// The sync, and all other syncs of the same file or directory in the operation, do nothing.
    DropAll,
    /// Only the sync does nothing.
    Drop,
    /// The sync takes place only after the next call.
    Swap,
    /// No power cut leaves the rename, although the directory was synced.
    Lose,
}

/// The number of a call, and its mutation.
pub type At = Option<(usize, Mutation)>;

/// A call that changes the disks that a power cut can leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// The number of the log's operation that made the call, from the creation on, and its kind.
    pub operation: usize,
    pub doing: &'static str,
    pub call: Call,
    /// The kind of file or directory.
    pub of: String,
}

impl fmt::Display for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let call = match self.call {
            Call::Create | Call::CreateDir => "create",
            Call::Rename => "rename",
            Call::Remove => "remove",
            Call::Write => "write",
            Call::SetLen | Call::Allocate => "resize",
            Call::Sync | Call::SyncDir => "sync",
            other => panic!("{other:?} changes nothing"),
        };
        write!(f, "{call} {}", self.of)
    }
}

/// The names that people give to files and directories.
pub type Kinds = Arc<dyn Fn(&Path) -> String + Send + std::marker::Sync>;

/// A storage that breaks the promise of a call. Clones are the same.
#[derive(Clone)]
pub struct Mutated {
    disk: Sim,
    kinds: Kinds,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug)]
struct Shared {
    operation: usize,
    doing: &'static str,
    made: Vec<Made>,
    dead: bool,
    at: At,
    /// A sync that the next call overtakes.
    late: Option<Sync>,
}

#[derive(Debug)]
enum Sync {
    File(Arc<dyn File>),
    Dir(Sim, PathBuf),
}

struct MutatedFile {
    file: Arc<dyn File>,
    of: String,
    by: Mutated,
}

impl Mutated {
    /// The disk, which mutates the call with the number.
    pub fn new(disk: Sim, kinds: Kinds, at: At) -> Self {
        let (made, late) = (Vec::new(), None);
        let shared = Shared { operation: 0, doing: "", dead: false, made, at, late };
        Self { disk, kinds, shared: Arc::new(Mutex::new(shared)) }
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The process dies: its log reaches no disk any more, and the next process finds the disk `left`.
    pub fn die(&mut self, left: Sim) {
        let mut shared = self.shared();
        (shared.dead, shared.late) = (true, None);
        drop(shared);
        self.disk = left;
    }

    /// The log begins the operation `doing`.
    pub fn doing(&self, doing: &'static str) {
        let mut shared = self.shared();
        shared.operation += 1;
        shared.doing = doing;
    }

    /// The storage for an opening.
    pub fn storage(&self) -> Arc<dyn Storage> {
        self.shared().dead = false;
        self.doing(if self.made().is_empty() { "create" } else { "open" });
        Arc::new(self.clone())
    }

    /// The calls so far.
    pub fn made(&self) -> Vec<Made> {
        self.shared().made.clone()
    }

    /// Count a call; returns the call's mutation and the overtaken sync.
    fn count(&self, call: Call, of: String) -> io::Result<(Option<Mutation>, Option<Sync>)> {
        let mut shared = self.shared();
        let Shared { operation, doing, dead, .. } = *shared;
        if dead {
            return Err(io::Error::other("the process is dead"));
        }
        let number = shared.made.len();
        shared.made.push(Made { operation, doing, call, of });
        let meets = |at: usize, mutation| match mutation {
            Mutation::DropAll => at <= number && shared.made[at] == shared.made[number],
            _ => at == number,
        };
        let due = shared.at.filter(|&(at, mutation)| meets(at, mutation));
        Ok((due.map(|(_, mutation)| mutation), shared.late.take()))
    }

    /// After a failed call the process is dead, and later calls do not count.
    fn lives<T>(&self, done: io::Result<T>) -> io::Result<T> {
        let is_dead = |e: &io::Error| e.kind() == io::ErrorKind::Other;
        if done.as_ref().is_err_and(is_dead) {
            self.shared().dead = true;
        }
        done
    }

    fn change<T>(
        &self,
        call: Call,
        of: String,
        change: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        let (mutation, overtaken) = self.count(call, of)?;
        if mutation == Some(Mutation::Lose) {
            self.disk.inject(Fault::once(1, What::Lie).of(call));
        }
        let changed = self.lives(change());
        overtaken.map_or(Ok(()), |sync| self.lives(sync.carry_out()))?;
        changed
    }

    fn sync(&self, call: Call, of: String, sync: Sync) -> io::Result<()> {
        let (mutation, overtaken) = self.count(call, of)?;
        match mutation {
            Some(Mutation::DropAll | Mutation::Drop) => {}
            Some(_) => self.shared().late = Some(sync),
            None => self.lives(sync.carry_out())?,
        }
        overtaken.map_or(Ok(()), |sync| self.lives(sync.carry_out()))
    }

    fn file(&self, file: Box<dyn File>, path: &Path) -> Box<dyn File> {
        Box::new(MutatedFile { file: file.into(), of: (self.kinds)(path), by: self.clone() })
    }
}

impl fmt::Debug for Mutated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mutated")
    }
}

impl fmt::Debug for MutatedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.file.fmt(f)
    }
}

impl Sync {
    fn carry_out(&self) -> io::Result<()> {
        match self {
            Self::File(file) => file.sync_data(),
            Self::Dir(disk, dir) => disk.sync_dir(dir),
        }
    }
}

impl Storage for Mutated {
    fn open(&self, path: &Path, access: Access) -> io::Result<Box<dyn File>> {
        Ok(self.file(self.disk.open(path, access)?, path))
    }
    fn create_new(&self, path: &Path, mode: u32) -> io::Result<Box<dyn File>> {
        let create = || self.disk.create_new(path, mode);
        Ok(self.file(self.change(Call::Create, (self.kinds)(path), create)?, path))
    }
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.change(Call::CreateDir, (self.kinds)(path), || self.disk.create_dir(path))
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.change(Call::Rename, (self.kinds)(to), || self.disk.rename(from, to))
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.change(Call::Remove, (self.kinds)(path), || self.disk.remove(path))
    }
    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        self.change(Call::Remove, (self.kinds)(dir), || self.disk.remove_dir(dir))
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        self.disk.list(dir)
    }
    fn is_dir(&self, path: &Path) -> bool {
        self.disk.is_dir(path)
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let sync = Sync::Dir(self.disk.clone(), dir.to_path_buf());
        self.sync(Call::SyncDir, (self.kinds)(dir), sync)
    }
    fn lock(&self, path: &Path, sign: bool) -> io::Result<LockAttempt> {
        self.disk.lock(path, sign)
    }
}

impl File for MutatedFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
    fn id(&self) -> io::Result<FileId> {
        self.file.id()
    }
    fn is_unlinked(&self) -> io::Result<bool> {
        self.file.is_unlinked()
    }
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buf, offset)
    }
    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        self.by.change(Call::Write, self.of.clone(), || self.file.write_at(buf, offset))
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.by.change(Call::SetLen, self.of.clone(), || self.file.set_len(len))
    }
    fn allocate(&self, len: u64) -> io::Result<bool> {
        self.by.change(Call::Allocate, self.of.clone(), || self.file.allocate(len))
    }
    fn sync_data(&self) -> io::Result<()> {
        self.by.sync(Call::Sync, self.of.clone(), Sync::File(self.file.clone()))
    }
}
