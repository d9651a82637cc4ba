//! A file system in memory, for tests and for logs that need not outlive the process.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Access, File, FileId, LockAttempt, LockGuard, Storage};
use crate::ground::slice::{part, part_mut};

/// Files in memory. Clones share the same files.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    tree: Arc<Mutex<Tree>>,
}

#[derive(Debug, Default)]
struct Tree {
    files: BTreeMap<PathBuf, Arc<Inode>>,
    /// With numbers, for locks.
    dirs: BTreeMap<PathBuf, u64>,
    locked: BTreeSet<u64>,
    inodes: u64,
}

#[derive(Debug, Default)]
struct Inode {
    number: u64,
    bytes: Mutex<Vec<u8>>,
    /// Whether it has no name any more.
    unlinked: AtomicBool,
}

#[derive(Debug)]
struct Handle {
    inode: Arc<Inode>,
    access: Access,
}

#[derive(Debug)]
struct Guard {
    tree: Arc<Mutex<Tree>>,
    inode: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Memory {
    /// An empty file system whose root directory exists.
    pub fn new() -> Self {
        Self::default()
    }

    fn inode(&self, path: &Path) -> io::Result<Arc<Inode>> {
        let tree = lock(&self.tree);
        tree.files.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Tree {
    fn rename_dir(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        if self.files.contains_key(to) || self.dirs.contains_key(to) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let moved = |path: PathBuf| match path.strip_prefix(from) {
            Ok(rest) if rest.as_os_str().is_empty() => to.to_path_buf(),
            Ok(rest) => to.join(rest),
            Err(_) => path,
        };
        let (files, dirs) = (std::mem::take(&mut self.files), std::mem::take(&mut self.dirs));
        self.files = files.into_iter().map(|(path, inode)| (moved(path), inode)).collect();
        self.dirs = dirs.into_iter().map(|(path, number)| (moved(path), number)).collect();
        Ok(())
    }
}

impl Storage for Memory {
    fn open(&self, path: &Path, access: Access) -> io::Result<Box<dyn File>> {
        Ok(Box::new(Handle { inode: self.inode(path)?, access }))
    }

    fn create_new(&self, path: &Path, _mode: u32) -> io::Result<Box<dyn File>> {
        let mut tree = lock(&self.tree);
        if tree.files.contains_key(path) || tree.dirs.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        tree.inodes += 1;
        let number = tree.inodes;
        let inode = Arc::new(Inode { number, ..Inode::default() });
        tree.files.insert(path.to_path_buf(), inode.clone());
        Ok(Box::new(Handle { inode, access: Access::Write }))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut tree = lock(&self.tree);
        if tree.files.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if !tree.dirs.contains_key(path) {
            // From above, where no file comes.
            let number = u64::MAX - tree.dirs.len() as u64;
            tree.dirs.insert(path.to_path_buf(), number);
        }
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut tree = lock(&self.tree);
        if tree.dirs.contains_key(from) {
            return tree.rename_dir(from, to);
        }
        let inode = tree.files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        if let Some(replaced) = tree.files.insert(to.to_path_buf(), inode) {
            replaced.unlinked.store(true, Ordering::Release);
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        match lock(&self.tree).files.remove(path) {
            Some(removed) => {
                removed.unlinked.store(true, Ordering::Release);
                Ok(())
            }
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        let mut tree = lock(&self.tree);
        if tree.files.keys().chain(tree.dirs.keys()).any(|path| path.parent() == Some(dir)) {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        tree.dirs.remove(dir).map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        let tree = lock(&self.tree);
        if tree.files.contains_key(dir) {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        let inside = |path: &&PathBuf| path.parent() == Some(dir);
        let names = tree.files.keys().chain(tree.dirs.keys()).filter(inside);
        // Backwards: a caller that needs an order would find the order here and miss it on a disk.
        Ok(names.rev().filter_map(|path| path.file_name().map(OsString::from)).collect())
    }

    fn is_dir(&self, path: &Path) -> bool {
        lock(&self.tree).dirs.contains_key(path)
    }

    fn sync_dir(&self, _dir: &Path) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self, path: &Path, sign: bool) -> io::Result<LockAttempt> {
        let dir = lock(&self.tree).dirs.get(path).copied();
        let inode = match dir.filter(|_| !sign) {
            Some(dir) => dir,
            None => self.inode(path)?.number,
        };
        if !lock(&self.tree).locked.insert(inode) {
            return Ok(LockAttempt::Busy(Some(std::process::id())));
        }
        Ok(LockAttempt::Held(Box::new(Guard { tree: self.tree.clone(), inode })))
    }
}

impl LockGuard for Guard {}

impl Drop for Guard {
    fn drop(&mut self) {
        lock(&self.tree).locked.remove(&self.inode);
    }
}

impl Handle {
    fn writable(&self) -> io::Result<MutexGuard<'_, Vec<u8>>> {
        match self.access {
            Access::Read => Err(io::ErrorKind::PermissionDenied.into()),
            Access::Write => Ok(lock(&self.inode.bytes)),
        }
    }
}

fn position(offset: u64) -> io::Result<usize> {
    usize::try_from(offset).map_err(|_| io::ErrorKind::FileTooLarge.into())
}

impl File for Handle {
    fn len(&self) -> io::Result<u64> {
        Ok(lock(&self.inode.bytes).len() as u64)
    }

    fn id(&self) -> io::Result<FileId> {
        Ok(FileId { device: 0, inode: self.inode.number, created_ns: 0 })
    }

    fn is_unlinked(&self) -> io::Result<bool> {
        Ok(self.inode.unlinked.load(Ordering::Acquire))
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let bytes = lock(&self.inode.bytes);
        let rest = bytes.get(position(offset)?..).unwrap_or_default();
        let n = rest.len().min(buf.len());
        // Not byte by byte: without optimisation that takes most of a test's time.
        part_mut(buf, ..n).copy_from_slice(part(rest, ..n));
        Ok(n)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        let mut bytes = self.writable()?;
        let start = position(offset)?;
        let end = start.checked_add(buf.len()).ok_or(io::ErrorKind::FileTooLarge)?;
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        if let Some(target) = bytes.get_mut(start..end) {
            target.copy_from_slice(buf);
        }
        Ok(buf.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.writable()?.resize(position(len)?, 0);
        Ok(())
    }

    fn allocate(&self, len: u64) -> io::Result<bool> {
        let mut bytes = self.writable()?;
        let len = position(len)?;
        if bytes.len() < len {
            bytes.resize(len, 0);
        }
        Ok(true)
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renaming_a_directory_moves_its_files() {
        let memory = Memory::new();
        for dir in ["/a", "/a/b", "/ab"] {
            memory.create_dir(Path::new(dir)).unwrap();
        }
        memory.create_new(Path::new("/a/b/c"), 0o600).unwrap();
        let taken = memory.rename(Path::new("/a"), Path::new("/ab")).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
        memory.rename(Path::new("/a"), Path::new("/z")).unwrap();
        assert!(memory.is_dir(Path::new("/z/b")) && memory.is_dir(Path::new("/ab")));
        assert!(!memory.is_dir(Path::new("/a")));
        memory.open(Path::new("/z/b/c"), Access::Read).unwrap();
    }

    #[test]
    fn a_file_is_no_directory_to_list() {
        let (memory, file) = (Memory::new(), Path::new("/a"));
        memory.create_new(file, 0o600).unwrap();
        assert_eq!(memory.list(file).unwrap_err().kind(), io::ErrorKind::NotADirectory);
    }

    /// Names came sorted. A caller that forgot to sort passed here and failed on a disk.
    #[test]
    fn names_are_not_listed_in_order() {
        let memory = Memory::new();
        for name in ["/a", "/b", "/c"] {
            memory.create_new(Path::new(name), 0o600).unwrap();
        }
        memory.create_dir(Path::new("/d")).unwrap();
        assert_eq!(memory.list(Path::new("/")).unwrap(), ["d", "c", "b", "a"]);
    }
}
