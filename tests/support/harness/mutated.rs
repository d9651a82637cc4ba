//! A disk that breaks a promise: it drops a sync, delays a sync, or loses a rename.
//!
//! A log that needs the promise then loses acknowledged records, or is refused after a power cut. If no state fails,
//! the log does not need the promise, or no test shows the need.

use std::fmt;
use std::sync::{MutexGuard, PoisonError};

use crate::support::prelude::*;

/// How the disk breaks the promise for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// The sync, and all other syncs of the same file or directory in the operation, do nothing.
    DropAll,
    Drop,
    /// The sync takes place only after the next call.
    Swap,
    /// No power cut leaves the rename, although the directory was synced.
    Lose,
}

pub type At = Option<(usize, Mutation)>;

/// A call with an effect on the disks after a power cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// The number of the log's operation that made the call, from the creation on, and its kind.
    pub operation: usize,
    pub doing: &'static str,
    pub call: Call,
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
pub type Kinds = Arc<dyn Fn(&Path) -> String + Send + Sync>;

/// A storage that breaks the promise of a call. Clones are the same.
#[derive(Clone)]
pub struct Mutated {
    disk: Sim,
    kinds: Kinds,
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    operation: usize,
    doing: &'static str,
    made: Vec<Made>,
    dead: bool,
    at: At,
    /// A sync that the next call overtakes.
    late: Option<Late>,
}

type Late = Box<dyn FnOnce() -> io::Result<()> + Send>;

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

    pub fn doing(&self, doing: &'static str) {
        let mut shared = self.shared();
        shared.operation += 1;
        shared.doing = doing;
    }

    pub fn storage(&self) -> Arc<dyn Storage> {
        self.shared().dead = false;
        self.doing(if self.made().is_empty() { "create" } else { "open" });
        Arc::new(Around::on(self.disk.clone(), self.clone()))
    }

    pub fn made(&self) -> Vec<Made> {
        self.shared().made.clone()
    }

    /// Count a call; returns the call's mutation and the overtaken sync.
    fn count(&self, call: Call, path: &Path) -> io::Result<(Option<Mutation>, Option<Late>)> {
        let mut shared = self.shared();
        let Shared { operation, doing, dead, .. } = *shared;
        if dead {
            return Err(io::Error::other("the process is dead"));
        }
        let number = shared.made.len();
        shared.made.push(Made { operation, doing, call, of: (self.kinds)(path) });
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

    fn sync_at(
        &self,
        call: Call,
        path: &Path,
        sync: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> io::Result<()> {
        let (mutation, overtaken) = self.count(call, path)?;
        match mutation {
            Some(Mutation::DropAll | Mutation::Drop) => {}
            Some(_) => self.shared().late = Some(Box::new(sync)),
            None => self.lives(sync())?,
        }
        overtaken.map_or(Ok(()), |sync| self.lives(sync()))
    }
}

impl Between for Mutated {
    fn change<T>(
        &self,
        call: Call,
        path: &Path,
        change: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        let (mutation, overtaken) = self.count(call, path)?;
        if mutation == Some(Mutation::Lose) {
            self.disk.inject(Fault::once(1, What::Lie).of(call));
        }
        let changed = self.lives(change());
        overtaken.map_or(Ok(()), |sync| self.lives(sync()))?;
        changed
    }
    fn sync(&self, file: &Arc<dyn File>, path: &Path) -> io::Result<()> {
        let file = file.clone();
        self.sync_at(Call::Sync, path, move || file.sync_data())
    }
    fn sync_dir(&self, storage: &Arc<dyn Storage>, dir: &Path) -> io::Result<()> {
        let (storage, of) = (storage.clone(), dir.to_path_buf());
        self.sync_at(Call::SyncDir, dir, move || storage.sync_dir(&of))
    }
}
