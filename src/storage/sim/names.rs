//! The simulated machine as a [`Storage`]: names, directories and locks.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use super::Sim;
use super::fault::{Call, What};
use super::handle::Handle;
use crate::storage::{Access, File, LockAttempt, LockGuard, Storage};

#[derive(Debug)]
struct Guard {
    sim: Sim,
    inode: u64,
}

impl Sim {
    fn handle(&self, inode: u64, access: Access) -> Box<dyn File> {
        Box::new(Handle::new(self.clone(), inode, access))
    }
}

impl Storage for Sim {
    fn open(&self, path: &Path, access: Access) -> io::Result<Box<dyn File>> {
        let inode = self.act(Call::Open, |inner, _| inner.machine.find_file(path))?;
        Ok(self.handle(inode, access))
    }

    fn create_new(&self, path: &Path, _mode: u32) -> io::Result<Box<dyn File>> {
        let inode = self.act(Call::Create, |inner, _| inner.machine.create(path, false))?;
        Ok(self.handle(inode, Access::Write))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.act(Call::CreateDir, |inner, _| match inner.machine.create(path, true) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                inner.machine.find_dir(path).map(drop)
            }
            made => made.map(drop),
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.act(Call::Rename, |inner, what| {
            inner.machine.rename(from, to)?;
            if what == Some(What::Lie) {
                inner.machine.changes.pop();
            }
            Ok(())
        })
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.act(Call::Remove, |inner, _| inner.machine.remove(path))
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        self.act(Call::Remove, |inner, _| inner.machine.remove_dir(dir))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        self.act(Call::List, |inner, _| inner.machine.list(dir, inner.calls))
    }

    fn is_dir(&self, path: &Path) -> bool {
        let inner = self.inner();
        !inner.down && inner.machine.find_dir(path).is_ok()
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.act(Call::SyncDir, |inner, what| {
            let dir = inner.machine.find_dir(dir)?;
            if what != Some(What::Lie) {
                inner.machine.sync_dir(dir);
            }
            Ok(())
        })
    }

    fn lock(&self, path: &Path, sign: bool) -> io::Result<LockAttempt> {
        let inode = self.act(Call::Lock, |inner, _| {
            let inode = match sign {
                true => inner.machine.find_file(path)?,
                false => inner.machine.find(path).ok_or(io::ErrorKind::NotFound)?,
            };
            Ok(inner.locked.insert(inode).then_some(inode))
        })?;
        Ok(match inode {
            None => LockAttempt::Busy(Some(std::process::id())),
            Some(inode) => LockAttempt::Held(Box::new(Guard { sim: self.clone(), inode })),
        })
    }
}

impl LockGuard for Guard {}

impl Drop for Guard {
    fn drop(&mut self) {
        self.sim.inner().locked.remove(&self.inode);
    }
}
