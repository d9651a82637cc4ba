//! A storage that reports what is done with its files, and lets a test hold it up.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use deedbook::storage::{Access, File, FileId, LockAttempt, Storage};

/// What was done, or is about to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Any call follows.
    Calling,
    Opened,
    Closed,
    /// So many bytes were read.
    Read(usize),
    Synced,
    /// A sync follows.
    Syncing,
    /// A sync failed.
    NotSynced,
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

/// `storage`, with a function that is called before every call and after what is done with files.
pub fn watched(
    storage: Arc<dyn Storage>,
    hook: impl Fn(Seen) + Send + Sync + 'static,
) -> Arc<dyn Storage> {
    Arc::new(Watched { storage, hook: Arc::new(hook) })
}

impl Watched {
    /// The storage, for the next call.
    fn calling(&self) -> &dyn Storage {
        (self.hook)(Seen::Calling);
        &*self.storage
    }

    fn watch(&self, file: Box<dyn File>) -> Box<dyn File> {
        (self.hook)(Seen::Opened);
        Box::new(WatchedFile { file, by: self.clone() })
    }
}

impl WatchedFile {
    /// The file, for the next call.
    fn calling(&self) -> &dyn File {
        (self.by.hook)(Seen::Calling);
        &*self.file
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
        Ok(self.watch(self.calling().open(path, access)?))
    }
    fn create_new(&self, path: &Path, mode: u32) -> io::Result<Box<dyn File>> {
        Ok(self.watch(self.calling().create_new(path, mode)?))
    }
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.calling().create_dir(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.calling().rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.calling().remove(path)
    }
    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        self.calling().remove_dir(dir)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        self.calling().list(dir)
    }
    fn is_dir(&self, path: &Path) -> bool {
        self.calling().is_dir(path)
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.calling().sync_dir(dir)
    }
    fn lock(&self, path: &Path, sign: bool) -> io::Result<LockAttempt> {
        self.calling().lock(path, sign)
    }
}

impl File for WatchedFile {
    fn len(&self) -> io::Result<u64> {
        self.calling().len()
    }
    fn id(&self) -> io::Result<FileId> {
        self.calling().id()
    }
    fn is_unlinked(&self) -> io::Result<bool> {
        self.calling().is_unlinked()
    }
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = self.calling().read_at(buf, offset)?;
        (self.by.hook)(Seen::Read(read));
        Ok(read)
    }
    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        self.calling().write_at(buf, offset)
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.calling().set_len(len)
    }
    fn allocate(&self, len: u64) -> io::Result<bool> {
        self.calling().allocate(len)
    }
    fn sync_data(&self) -> io::Result<()> {
        (self.by.hook)(Seen::Syncing);
        let synced = self.calling().sync_data();
        (self.by.hook)(if synced.is_ok() { Seen::Synced } else { Seen::NotSynced });
        synced
    }
}
