//! A storage around another storage: a test watches, changes or refuses calls of the storage and of its files.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use deedbook::storage::sim::Call;
use deedbook::storage::{Access, File, FileId, LockAttempt, Storage};

/// The hooks between a log and its storage. By default each call is unchanged.
pub trait Between: Clone + Send + Sync + 'static {
    /// Runs before each call; an error becomes the call's. `Call::Id` stands for every look at a file's identity.
    fn before(&self, _call: Call, _path: &Path) -> io::Result<()> {
        Ok(())
    }
    fn opened(&self, _path: &Path) {}
    fn closed(&self) {}
    fn read(&self, file: &dyn File, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        file.read_at(buf, offset)
    }
    /// Carries out a call that changes files or directories; not a sync.
    fn change<T>(
        &self,
        _call: Call,
        _path: &Path,
        change: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        change()
    }
    fn write(&self, file: &dyn File, path: &Path, buf: &[u8], offset: u64) -> io::Result<usize> {
        self.change(Call::Write, path, || file.write_at(buf, offset))
    }
    fn allocate(&self, file: &dyn File, path: &Path, len: u64) -> io::Result<bool> {
        self.change(Call::Allocate, path, || file.allocate(len))
    }
    fn sync(&self, file: &Arc<dyn File>, _path: &Path) -> io::Result<()> {
        file.sync_data()
    }
    fn sync_dir(&self, storage: &Arc<dyn Storage>, dir: &Path) -> io::Result<()> {
        storage.sync_dir(dir)
    }
}

#[derive(Clone)]
pub struct Around<B> {
    pub storage: Arc<dyn Storage>,
    pub by: B,
}

struct FileAround<B: Between> {
    file: Arc<dyn File>,
    path: PathBuf,
    by: B,
}

impl<B: Between> Around<B> {
    pub fn on(storage: impl Storage + 'static, by: B) -> Self {
        Self { storage: Arc::new(storage), by }
    }

    fn file(&self, path: &Path, file: Box<dyn File>) -> Box<dyn File> {
        self.by.opened(path);
        Box::new(FileAround { file: file.into(), path: path.to_path_buf(), by: self.by.clone() })
    }

    fn before(&self, call: Call, path: &Path) -> io::Result<&Arc<dyn Storage>> {
        self.by.before(call, path)?;
        Ok(&self.storage)
    }

    fn change<T>(
        &self,
        call: Call,
        path: &Path,
        change: impl FnOnce(&dyn Storage) -> io::Result<T>,
    ) -> io::Result<T> {
        let storage = self.before(call, path)?;
        self.by.change(call, path, || change(&**storage))
    }
}

impl<B: Between> FileAround<B> {
    fn before(&self, call: Call) -> io::Result<&Arc<dyn File>> {
        self.by.before(call, &self.path)?;
        Ok(&self.file)
    }
}

impl<B> fmt::Debug for Around<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Around")
    }
}

impl<B: Between> fmt::Debug for FileAround<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.file.fmt(f)
    }
}

impl<B: Between> Drop for FileAround<B> {
    fn drop(&mut self) {
        self.by.closed();
    }
}

impl<B: Between> Storage for Around<B> {
    fn open(&self, path: &Path, access: Access) -> io::Result<Box<dyn File>> {
        let file = self.before(Call::Open, path)?.open(path, access)?;
        Ok(self.file(path, file))
    }
    fn create_new(&self, path: &Path, mode: u32) -> io::Result<Box<dyn File>> {
        let file = self.change(Call::Create, path, |storage| storage.create_new(path, mode))?;
        Ok(self.file(path, file))
    }
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.change(Call::CreateDir, path, |storage| storage.create_dir(path))
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.change(Call::Rename, to, |storage| storage.rename(from, to))
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.change(Call::Remove, path, |storage| storage.remove(path))
    }
    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        self.change(Call::Remove, dir, |storage| storage.remove_dir(dir))
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        self.before(Call::List, dir)?.list(dir)
    }
    fn is_dir(&self, path: &Path) -> bool {
        self.before(Call::Id, path).is_ok_and(|storage| storage.is_dir(path))
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.by.sync_dir(self.before(Call::SyncDir, dir)?, dir)
    }
    fn lock(&self, path: &Path, sign: bool) -> io::Result<LockAttempt> {
        self.before(Call::Lock, path)?.lock(path, sign)
    }
}

impl<B: Between> File for FileAround<B> {
    fn len(&self) -> io::Result<u64> {
        self.before(Call::Len)?.len()
    }
    fn id(&self) -> io::Result<FileId> {
        self.before(Call::Id)?.id()
    }
    fn is_unlinked(&self) -> io::Result<bool> {
        self.before(Call::Id)?.is_unlinked()
    }
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.by.read(&**self.before(Call::Read)?, buf, offset)
    }
    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        self.by.write(&**self.before(Call::Write)?, &self.path, buf, offset)
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        let file = self.before(Call::SetLen)?;
        self.by.change(Call::SetLen, &self.path, || file.set_len(len))
    }
    fn allocate(&self, len: u64) -> io::Result<bool> {
        self.by.allocate(&**self.before(Call::Allocate)?, &self.path, len)
    }
    fn sync_data(&self) -> io::Result<()> {
        self.by.sync(self.before(Call::Sync)?, &self.path)
    }
}
