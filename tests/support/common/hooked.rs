//! Files in memory whose calls can be watched, and failed in the middle.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use deedbook::storage::{Access, File, FileId, LockAttempt, Memory, Storage};

/// What is being done to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Allocate,
    /// Bytes are to be read.
    Read,
    /// So many bytes are to be written.
    Write(usize),
    /// Half of them are.
    Half,
    Sync,
}

type Watch = dyn Fn(Event) -> bool + Send + Sync;

/// A file system in memory that asks before each of these calls: `true` for a write has its second
/// half fail.
#[derive(Clone, Debug, Default)]
pub struct Hooked {
    memory: Memory,
    hook: Hook,
}

#[derive(Clone, Default)]
struct Hook(Arc<Mutex<Option<Arc<Watch>>>>);

impl Hook {
    fn ask(&self, event: Event) -> bool {
        let watch = self.0.lock().unwrap().clone();
        watch.is_some_and(|watch| watch(event))
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hook")
    }
}

impl Hooked {
    pub fn watch(&self, watch: impl Fn(Event) -> bool + Send + Sync + 'static) {
        *self.hook.0.lock().unwrap() = Some(Arc::new(watch));
    }

    pub fn unwatch(&self) {
        *self.hook.0.lock().unwrap() = None;
    }

    fn file(&self, file: io::Result<Box<dyn File>>) -> io::Result<Box<dyn File>> {
        Ok(Box::new(HookedFile { file: file?, hook: self.hook.clone() }))
    }
}

impl Storage for Hooked {
    fn open(&self, path: &Path, access: Access) -> io::Result<Box<dyn File>> {
        self.file(self.memory.open(path, access))
    }

    fn create_new(&self, path: &Path, mode: u32) -> io::Result<Box<dyn File>> {
        self.file(self.memory.create_new(path, mode))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.memory.create_dir(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.memory.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.memory.remove(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<std::ffi::OsString>> {
        self.memory.list(dir)
    }

    fn is_dir(&self, path: &Path) -> bool {
        self.memory.is_dir(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.memory.sync_dir(dir)
    }

    fn lock(&self, path: &Path, sign: bool) -> io::Result<LockAttempt> {
        self.memory.lock(path, sign)
    }
}

#[derive(Debug)]
struct HookedFile {
    file: Box<dyn File>,
    hook: Hook,
}

impl File for HookedFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn id(&self) -> io::Result<FileId> {
        self.file.id()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.hook.ask(Event::Read);
        self.file.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        if !self.hook.ask(Event::Write(buf.len())) {
            return self.file.write_at(buf, offset);
        }
        self.file.write_at(&buf[..buf.len() / 2], offset)?;
        self.hook.ask(Event::Half);
        Err(io::ErrorKind::StorageFull.into())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn allocate(&self, len: u64) -> io::Result<bool> {
        self.hook.ask(Event::Allocate);
        self.file.allocate(len)
    }

    fn is_unlinked(&self) -> io::Result<bool> {
        self.file.is_unlinked()
    }

    fn sync_data(&self) -> io::Result<()> {
        self.hook.ask(Event::Sync);
        self.file.sync_data()
    }
}
