//! A disk for the model checker: a sync covers the bytes written before its begin, and not a byte
//! more, however long the sync takes.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use deedbook::storage::{Access, File, FileId, LockAttempt, LockGuard, Storage};
use shuttle::sync::atomic::{AtomicBool, Ordering};

/// The behaviour of the next syncs of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    None,
    /// The sync after this many fails, once.
    Fails(u32),
    /// The sync after this many panics, once.
    Panics(u32),
}

#[derive(Clone, Debug)]
enum Change {
    Write(usize, Vec<u8>),
    SetLen(usize),
}

#[derive(Debug, Default)]
struct Content {
    changes: Vec<Change>,
    /// How many changes are on the disk.
    durable: usize,
}

impl Content {
    fn bytes(&self, changes: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        for change in self.changes.iter().take(changes) {
            match change {
                Change::Write(at, part) => {
                    bytes.resize(bytes.len().max(at + part.len()), 0);
                    bytes[*at..at + part.len()].copy_from_slice(part);
                }
                Change::SetLen(len) => bytes.resize(*len, 0),
            }
        }
        bytes
    }
}

#[derive(Debug)]
struct Inner {
    names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    dirs: BTreeSet<PathBuf>,
    files: Vec<Content>,
    trouble: Trouble,
    pub syncs: u32,
}

/// The disk. A standard lock guards the state, and is never held at a point where threads change.
#[derive(Clone, Debug)]
pub struct Disk {
    inner: Arc<Mutex<Inner>>,
    /// Read at points where another thread may run.
    point: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Handle {
    disk: Disk,
    id: usize,
}

impl Disk {
    pub fn new(trouble: Trouble) -> Self {
        Self::of(Inner {
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            dirs: BTreeSet::from([PathBuf::from("/")]),
            files: Vec::new(),
            trouble,
            syncs: 0,
        })
    }

    fn of(inner: Inner) -> Self {
        Self { inner: Arc::new(Mutex::new(inner)), point: Arc::new(AtomicBool::new(false)) }
    }

    /// Another thread may go on here. A yield would not do: after a yield, a thread is the last in
    /// line for good, so the thread in the window under test went on at each call of the disk.
    fn others_may_run(&self) {
        self.point.load(Ordering::Relaxed);
    }

    /// Injects a failure from now on.
    pub fn trouble(&self, trouble: Trouble) {
        let mut inner = self.inner.lock().unwrap();
        inner.trouble = trouble;
        inner.syncs = 0;
    }

    /// The disk after a power cut at this moment: synced names and bytes, nothing else.
    pub fn after_power_cut(&self) -> Self {
        let inner = self.inner.lock().unwrap();
        let files = inner.files.iter().map(|content| {
            let changes = vec![Change::Write(0, content.bytes(content.durable))];
            Content { changes, durable: 1 }
        });
        Self::of(Inner {
            names: inner.durable_names.clone(),
            durable_names: inner.durable_names.clone(),
            dirs: inner.dirs.clone(),
            files: files.collect(),
            trouble: Trouble::None,
            syncs: 0,
        })
    }
}

fn not_found() -> io::Error {
    io::ErrorKind::NotFound.into()
}

#[derive(Debug)]
struct NoLock;
impl LockGuard for NoLock {}

impl Storage for Disk {
    fn open(&self, path: &Path, _access: Access) -> io::Result<Box<dyn File>> {
        let id = *self.inner.lock().unwrap().names.get(path).ok_or_else(not_found)?;
        Ok(Box::new(Handle { disk: self.clone(), id }))
    }

    fn create_new(&self, path: &Path, _mode: u32) -> io::Result<Box<dyn File>> {
        let mut inner = self.inner.lock().unwrap();
        if inner.names.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let id = inner.files.len();
        inner.files.push(Content::default());
        inner.names.insert(path.to_path_buf(), id);
        drop(inner);
        Ok(Box::new(Handle { disk: self.clone(), id }))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.inner.lock().unwrap().dirs.insert(path.to_path_buf());
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut inner = self.inner.lock().unwrap();
        let id = inner.names.remove(from).ok_or_else(not_found)?;
        inner.names.insert(to.to_path_buf(), id);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.inner.lock().unwrap().names.remove(path).map(drop).ok_or_else(not_found)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        let inner = self.inner.lock().unwrap();
        let here = inner.names.keys().filter(|path| path.parent() == Some(dir));
        Ok(here.filter_map(|path| Some(path.file_name()?.to_os_string())).collect())
    }

    fn is_dir(&self, path: &Path) -> bool {
        self.inner.lock().unwrap().dirs.contains(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let here = |path: &PathBuf| path.parent() == Some(dir);
        let now: Vec<_> = {
            let inner = self.inner.lock().unwrap();
            let entries = inner.names.iter().filter(|(path, _)| here(path));
            entries.map(|(path, id)| (path.clone(), *id)).collect()
        };
        self.others_may_run();
        let mut inner = self.inner.lock().unwrap();
        inner.durable_names.retain(|path, _| !here(path));
        inner.durable_names.extend(now);
        Ok(())
    }

    fn lock(&self, _path: &Path, _sign: bool) -> io::Result<LockAttempt> {
        Ok(LockAttempt::Held(Box::new(NoLock)))
    }
}

impl Handle {
    fn change(&self, change: Change) {
        self.disk.inner.lock().unwrap().files[self.id].changes.push(change);
    }

    fn bytes(&self) -> Vec<u8> {
        let inner = self.disk.inner.lock().unwrap();
        let content = &inner.files[self.id];
        content.bytes(content.changes.len())
    }
}

impl File for Handle {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes().len() as u64)
    }

    fn id(&self) -> io::Result<FileId> {
        Ok(FileId { device: 1, inode: self.id as u64 + 1, created_ns: 1 })
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let bytes = self.bytes();
        let there = bytes.get(offset as usize..).unwrap_or_default();
        let count = there.len().min(buf.len());
        buf[..count].copy_from_slice(&there[..count]);
        Ok(count)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        self.disk.others_may_run();
        self.change(Change::Write(offset as usize, buf.to_vec()));
        self.disk.others_may_run();
        Ok(buf.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.change(Change::SetLen(len as usize));
        Ok(())
    }

    fn allocate(&self, _len: u64) -> io::Result<bool> {
        Ok(false)
    }

    fn sync_data(&self) -> io::Result<()> {
        let begun = {
            let mut inner = self.disk.inner.lock().unwrap();
            inner.syncs += 1;
            let (due, syncs) = (inner.trouble, inner.syncs);
            match due {
                Trouble::Fails(after) if syncs > after => {
                    inner.trouble = Trouble::None;
                    return Err(io::Error::other("the disk failed once"));
                }
                Trouble::Panics(after) if syncs > after => {
                    inner.trouble = Trouble::None;
                    drop(inner);
                    panic!("the leader panics");
                }
                _ => {}
            }
            inner.files[self.id].changes.len()
        };
        self.disk.others_may_run();
        let mut inner = self.disk.inner.lock().unwrap();
        let content = &mut inner.files[self.id];
        content.durable = content.durable.max(begun);
        Ok(())
    }
}
