//! Leases: the files that a store fetched and has not given back, so that no other store sends them.
//!
//! Each store that fetches has a file `.deedbook/leases-BASE/N`, which it locks and which holds the
//! indexes of its files, one a line. The lock ends with the process, so the files of a killed sender
//! are free at once. Whoever reads or writes such a file holds the gate: nobody meets a file that is
//! half written, or not locked yet.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use super::Shared;
use super::codec::FORMAT;
use super::directory::{Directory, Finished, Gate, is_full, is_no_file};
use super::fetch::Removable;
use crate::error::{Error, Result};
use crate::lines::{self, Locked, locked};
use crate::mend::make_own_dir;
use crate::sidecar::PRIVATE_MODE;
use crate::storage::{Access, File, LockAttempt, LockGuard, read_full, write_full};

/// Before the base, in the name of the directory of leases.
const LEASES_PREFIX: &str = "leases-";
/// The longest lease that is read: some 6,000 indexes. A fetch gives 256.
const LEASE_BYTES_MAX: u64 = 1 << 16;

/// What this store has leased. Its lock is free once this is dropped.
#[derive(Debug)]
pub struct Lease {
    path: PathBuf,
    file: Box<dyn File>,
    indexes: BTreeSet<u32>,
    _lock: Box<dyn LockGuard>,
}

impl Lease {
    fn store(&self) -> Result<()> {
        let text: String = self.indexes.iter().map(|index| format!("{index}\n")).collect();
        let stored = write_full(&*self.file, text.as_bytes(), 0);
        let cut = stored.and_then(|()| self.file.set_len(text.len() as u64));
        cut.map_err(|e| Error::io("store the lease", &self.path, e))
    }
}

impl Shared {
    fn lease(&self) -> Locked<'_, Option<Lease>> {
        locked(&self.lease)
    }

    /// Lease the next of these files that no store writes and no other store has leased: at most
    /// `count`, for which `fits` holds. A file that cannot be opened goes to `failed`.
    pub(super) fn lease_next(
        &self,
        indexes: &mut std::iter::Peekable<std::vec::IntoIter<u32>>,
        count: usize,
        mut fits: impl FnMut(&Finished) -> bool,
        failed: &mut Option<Error>,
    ) -> Result<Vec<Finished>> {
        let gate = self.directory.gate()?;
        let mut lease = self.lease();
        let others = self.directory.leased(&gate, lease.as_ref())?;
        let mut found = Vec::new();
        while found.len() < count
            && let Some(&index) = indexes.peek()
        {
            if !others.contains(&index) {
                match self.directory.finished(&gate, index) {
                    Ok(Some(file)) if !fits(&file) => break,
                    Ok(Some(file)) => found.push(file),
                    Ok(None) => {}
                    Err(e) => {
                        failed.get_or_insert(e);
                    }
                }
            }
            indexes.next();
        }
        match self.directory.lease(&gate, &mut lease, &found) {
            // Sending is the only way to make room, and what users may not write they may still send.
            Err(e) if is_full(&e) || is_denied(&e) => {
                lines::warn(format_args!("files are sent without a lease: {e}"));
            }
            leased => leased?,
        }
        Ok(found)
    }

    /// Whether another fetch would find one of these files.
    pub(super) fn is_any_free(&self, indexes: impl Iterator<Item = u32>) -> Result<bool> {
        let gate = self.directory.gate()?;
        let others = self.directory.leased(&gate, self.lease().as_ref())?;
        let free = |index| {
            !others.contains(&index) && matches!(self.directory.finished(&gate, index), Ok(Some(_)))
        };
        Ok(indexes.into_iter().any(free))
    }

    /// Give files back.
    pub(super) fn give_back(&self, _gate: &Gate, indexes: impl IntoIterator<Item = u32>) {
        let mut lease = self.lease();
        let Some(lease) = &mut *lease else { return };
        let mut fewer = false;
        for index in indexes {
            fewer |= lease.indexes.remove(&index);
        }
        if fewer && let Err(e) = lease.store() {
            lines::warn(format_args!("files stay leased until the ledger is closed: {e}"));
        }
    }

    /// The same where nothing depends on it.
    pub(super) fn give_back_items(&self, items: &[Removable]) -> Result<()> {
        let gate = self.directory.gate()?;
        self.give_back(&gate, items.iter().map(Removable::index));
        Ok(())
    }

    /// Give all files back, and remove the lease.
    pub(super) fn end_lease(&self) {
        if self.lease().is_none() {
            return;
        }
        // Without the gate the file stays, unlocked, for the next fetch to remove.
        let gate = self.directory.gate();
        let Some(lease) = self.lease().take() else { return };
        let removed = gate.map(|_gate| self.directory.storage.remove(&lease.path));
        match removed {
            Ok(Err(e)) if !is_no_file(&e) => {
                lines::warn(format_args!("an old lease stays ({}): {e}", lease.path.display()));
            }
            Err(e) => lines::warn(format_args!("an old lease stays: {e}")),
            Ok(_) => {}
        }
    }
}

impl Directory {
    fn leases(&self) -> PathBuf {
        self.sidecar().join(format!("{LEASES_PREFIX}{}", self.base))
    }

    /// The files that other stores have leased. Leases of the dead are removed.
    fn leased(&self, _gate: &Gate, own: Option<&Lease>) -> Result<BTreeSet<u32>> {
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

    /// Add files to the lease of a store, which is made for the first of them.
    fn lease(&self, _gate: &Gate, lease: &mut Option<Lease>, files: &[Finished]) -> Result<()> {
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

fn is_denied(error: &Error) -> bool {
    let kind = error.io_source().map(io::Error::kind);
    matches!(kind, Some(io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem))
}
