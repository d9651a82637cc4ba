//! Leases: the files that a store fetched and has not given back. No other store sends them.
//!
//! Each fetching store has a file `.deedbook/leases-BASE/N`, locks the file, and writes the indexes
//! of all leased files there, one a line. The lock ends with the process, so a killed sender's
//! files are free at once. Readers and writers of a lease hold the gate: nobody meets a
//! half-written or unlocked lease.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::ledger::codec::FORMAT;
use crate::ledger::directory::{Directory, Finished, Gate, is_no_file};
use crate::saving::make_own_dir;
use crate::sidecar::PRIVATE_MODE;
use crate::storage::{Access, File, LockAttempt, LockGuard, read_full, write_full};

/// Before the base, in the name of the directory of leases.
const LEASES_PREFIX: &str = "leases-";
/// The longest lease to read: some 6,000 indexes. A fetch gives 256.
const LEASE_BYTES_MAX: u64 = 1 << 16;

/// The store's leased files. Dropping the lease frees the lock.
#[derive(Debug)]
pub struct Lease {
    pub(in crate::ledger) path: PathBuf,
    file: Box<dyn File>,
    pub(in crate::ledger) indexes: BTreeSet<u32>,
    _lock: Box<dyn LockGuard>,
}

impl Lease {
    pub(in crate::ledger) fn store(&self) -> Result<()> {
        let text: String = self.indexes.iter().map(|index| format!("{index}\n")).collect();
        let stored = write_full(&*self.file, text.as_bytes(), 0);
        let cut = stored.and_then(|()| self.file.set_len(text.len() as u64));
        cut.map_err(|e| Error::io("store the lease", &self.path, e))
    }
}

impl Directory {
    fn leases(&self) -> PathBuf {
        self.sidecar().join(format!("{LEASES_PREFIX}{}", self.base))
    }

    /// The files that other stores have leased. Leases of the dead are removed.
    pub(in crate::ledger) fn leased(
        &self,
        _gate: &Gate,
        own: Option<&Lease>,
    ) -> Result<BTreeSet<u32>> {
        let (dir, mut indexes) = (self.leases(), BTreeSet::new());
        let names = match self.storage.list(&dir) {
            Err(e) if is_no_file(&e) || e.kind() == io::ErrorKind::NotADirectory => {
                return Ok(indexes);
            }
            names => names.map_err(|e| Error::io("list the leases", &dir, e))?,
        };
        for path in names.iter().filter(|name| number(name).is_some()).map(|name| dir.join(name)) {
            if own.is_some_and(|own| own.path == path) {
                continue;
            }
            match self.look_at_lease(&path, &mut indexes) {
                // Another user's, whose files this store can hardly read.
                Err(e) if is_no_file(&e) || e.kind() == io::ErrorKind::PermissionDenied => {}
                looked => looked.map_err(|e| Error::io("read the lease", &path, e))?,
            }
        }
        Ok(indexes)
    }

    fn look_at_lease(&self, path: &std::path::Path, indexes: &mut BTreeSet<u32>) -> io::Result<()> {
        match self.storage.lock(path, false)? {
            // Its store is dead, or closed.
            LockAttempt::Held(_guard) => return self.storage.remove(path),
            LockAttempt::Busy(_) => {}
        }
        let file = self.storage.open(path, Access::Read)?;
        let mut bytes = vec![0; file.len()?.min(LEASE_BYTES_MAX) as usize];
        let read = read_full(&*file, &mut bytes, 0)?;
        bytes.truncate(read);
        let text = String::from_utf8_lossy(&bytes);
        indexes.extend(text.lines().filter_map(|line| line.parse::<u32>().ok()));
        Ok(())
    }

    /// Add files to a store's lease; the first file creates the lease.
    pub(in crate::ledger) fn lease(
        &self,
        _gate: &Gate,
        lease: &mut Option<Lease>,
        files: &[Finished],
    ) -> Result<()> {
        if files.is_empty() {
            return Ok(());
        }
        let lease = match lease {
            Some(lease) => lease,
            None => lease.insert(self.new_lease()?),
        };
        let before = lease.indexes.clone();
        lease.indexes.extend(files.iter().map(|file| file.index));
        if lease.indexes == before {
            return Ok(());
        }
        lease.store().inspect_err(|_| lease.indexes = before)
    }

    fn new_lease(&self) -> Result<Lease> {
        self.make_sidecar()?;
        let dir = self.leases();
        make_own_dir(&*self.storage, &dir, PRIVATE_MODE)?;
        let names = self.storage.list(&dir).map_err(|e| Error::io("list the leases", &dir, e))?;
        let next = names.iter().filter_map(number).max().map_or(0, |last| last + 1);
        let path = dir.join(next.to_string());
        let fail = |e| Error::io("create the lease", &path, e);
        let file = self.storage.create_new(&path, PRIVATE_MODE).map_err(fail)?;
        match self.storage.lock(&path, false).map_err(fail)? {
            LockAttempt::Held(lock) => {
                Ok(Lease { path, file, indexes: BTreeSet::new(), _lock: lock })
            }
            LockAttempt::Busy(_) => {
                let message = "another program locked it at once";
                Err(Error::new(crate::ErrorKind::Locked, message).of(FORMAT).at(&path))
            }
        }
    }
}

/// The number of a lease, by its name.
fn number(name: &std::ffi::OsString) -> Option<u64> {
    name.to_str()?.parse().ok()
}
