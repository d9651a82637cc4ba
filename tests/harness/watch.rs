//! A storage that tells what is done with its files, and lets a test hold it up.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use deedbook::storage::{Access, File, FileId, LockAttempt, Storage};

/// What was done, with success, or is about to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    Opened,
    Closed,
    /// So many bytes were read.
    Read(usize),
    Synced,
    /// A sync follows.
    Syncing,
}

#[derive(Clone)]
struct Watched {
    storage: Arc<dyn Storage>,
    hook: Arc<dyn Fn(Seen) + Send + Sync>,
}

struct WatchedFile {
    file: Box<dyn File>,
    by: Watched,
}

/// `storage`, with a function that is called behind what is done with its files.
pub fn watched(
    storage: Arc<dyn Storage>,
    hook: impl Fn(Seen) + Send + Sync + 'static,
) -> Arc<dyn Storage> {
    Arc::new(Watched { storage, hook: Arc::new(hook) })
}

impl Watched {
    fn watch(&self, file: Box<dyn File>) -> Box<dyn File> {
        (self.hook)(Seen::Opened);
        Box::new(WatchedFile { file, by: self.clone() })
    }
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watched")
    }
}

impl fmt::Debug for WatchedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.file.fmt(f)
    }
}

impl Drop for WatchedFile {
    fn drop(&mut self) {
        (self.by.hook)(Seen::Closed);
    }
}

impl Storage for Watched {
    fn open(&self, path: &Path, access: Access) -> io::Result<Box<dyn File>> {
        Ok(self.watch(self.storage.open(path, access)?))
    }
    fn create_new(&self, path: &Path, mode: u32) -> io::Result<Box<dyn File>> {
        Ok(self.watch(self.storage.create_new(path, mode)?))
    }
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.storage.create_dir(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.storage.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.storage.remove(path)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        self.storage.list(dir)
    }
    fn is_dir(&self, path: &Path) -> bool {
        self.storage.is_dir(path)
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.storage.sync_dir(dir)
    }
    fn lock(&self, path: &Path, sign: bool) -> io::Result<LockAttempt> {
        self.storage.lock(path, sign)
    }
}

impl File for WatchedFile {
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
        let read = self.file.read_at(buf, offset)?;
        (self.by.hook)(Seen::Read(read));
        Ok(read)
    }
    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        self.file.write_at(buf, offset)
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }
    fn allocate(&self, len: u64) -> io::Result<bool> {
        self.file.allocate(len)
    }
    fn sync_data(&self) -> io::Result<()> {
        (self.by.hook)(Seen::Syncing);
        self.file.sync_data()?;
        (self.by.hook)(Seen::Synced);
        Ok(())
    }
}
