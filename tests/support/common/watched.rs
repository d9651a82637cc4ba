//! A disk whose calls are counted, and may fail. It syncs nothing, as no power is cut here.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use deedbook::storage::{Access, Disk, File, FileId, LockAttempt, Storage};

/// What is asked before a call: its number, from 1 on, and the path. An error is the call's.
type Before = dyn Fn(u64, &Path) -> io::Result<()> + Send + Sync;

/// The disk, with something that is done before each call that may fail.
#[derive(Clone)]
pub struct Watched {
    calls: Arc<AtomicU64>,
    before: Arc<Before>,
    synced: Arc<Mutex<BTreeSet<PathBuf>>>,
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watched")
    }
}

#[derive(Debug)]
struct WatchedFile {
    file: Box<dyn File>,
    path: PathBuf,
    disk: Watched,
}

impl Watched {
    pub fn new(before: impl Fn(u64, &Path) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self { calls: Arc::default(), before: Arc::new(before), synced: Arc::default() }
    }

    /// Fails the call with this number; with `dead` all after it, too, as if the process had ended.
    pub fn failing(at: u64, dead: bool) -> Self {
        Self::new(move |call, _| match call == at || (dead && call > at) {
            true => Err(io::ErrorKind::Other.into()),
            false => Ok(()),
        })
    }

    /// Fails no call.
    pub fn idle() -> Self {
        Self::new(|_, _| Ok(()))
    }

    /// Calls so far.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Whether the names in a directory were synced.
    pub fn has_synced(&self, dir: &Path) -> bool {
        self.synced.lock().unwrap().contains(dir)
    }

    fn ask(&self, path: &Path) -> io::Result<()> {
        (self.before)(self.calls.fetch_add(1, Ordering::Relaxed) + 1, path)
    }

    fn file(&self, path: &Path, file: Box<dyn File>) -> Box<dyn File> {
        Box::new(WatchedFile { file, path: path.to_path_buf(), disk: self.clone() })
    }
}

impl Storage for Watched {
    fn open(&self, path: &Path, access: Access) -> io::Result<Box<dyn File>> {
        self.ask(path)?;
        Disk.open(path, access).map(|file| self.file(path, file))
    }
    fn create_new(&self, path: &Path, mode: u32) -> io::Result<Box<dyn File>> {
        self.ask(path)?;
        Disk.create_new(path, mode).map(|file| self.file(path, file))
    }
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.ask(path)?;
        Disk.create_dir(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.ask(to)?;
        Disk.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.ask(path)?;
        Disk.remove(path)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        self.ask(dir)?;
        Disk.list(dir)
    }
    fn is_dir(&self, path: &Path) -> bool {
        Disk.is_dir(path)
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.ask(dir)?;
        self.synced.lock().unwrap().insert(dir.to_path_buf());
        Ok(())
    }
    fn lock(&self, path: &Path, sign: bool) -> io::Result<LockAttempt> {
        self.ask(path)?;
        Disk.lock(path, sign)
    }
}

impl File for WatchedFile {
    fn len(&self) -> io::Result<u64> {
        self.disk.ask(&self.path)?;
        self.file.len()
    }
    fn id(&self) -> io::Result<FileId> {
        self.file.id()
    }
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.disk.ask(&self.path)?;
        self.file.read_at(buf, offset)
    }
    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        self.disk.ask(&self.path)?;
        self.file.write_at(buf, offset)
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.disk.ask(&self.path)?;
        self.file.set_len(len)
    }
    fn allocate(&self, _len: u64) -> io::Result<bool> {
        Ok(false)
    }
    fn is_unlinked(&self) -> io::Result<bool> {
        self.file.is_unlinked()
    }
    fn sync_data(&self) -> io::Result<()> {
        self.disk.ask(&self.path)
    }
}
