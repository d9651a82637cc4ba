//! A disk that stores other bytes than it was given.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use deedbook::storage::{Access, Disk, File, FileId, LockAttempt, Storage};

/// The disk, on which a byte is changed on its way into files of one name, wherever it is written.
#[derive(Clone, Copy, Debug)]
pub struct Flips {
    pub name: &'static str,
    /// The bytes whose last one is changed; they must be written at once.
    pub of: &'static [u8],
}

#[derive(Debug)]
struct FlipsFile {
    file: Box<dyn File>,
    of: Option<&'static [u8]>,
}

impl Flips {
    fn file(self, path: &Path, file: Box<dyn File>) -> Box<dyn File> {
        let of = path.ends_with(self.name).then_some(self.of);
        Box::new(FlipsFile { file, of })
    }
}

impl Storage for Flips {
    fn open(&self, path: &Path, access: Access) -> io::Result<Box<dyn File>> {
        Disk.open(path, access).map(|file| self.file(path, file))
    }
    fn create_new(&self, path: &Path, mode: u32) -> io::Result<Box<dyn File>> {
        Disk.create_new(path, mode).map(|file| self.file(path, file))
    }
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        Disk.create_dir(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Disk.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        Disk.remove(path)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        Disk.list(dir)
    }
    fn is_dir(&self, path: &Path) -> bool {
        Disk.is_dir(path)
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        Disk.sync_dir(dir)
    }
    fn lock(&self, path: &Path, sign: bool) -> io::Result<LockAttempt> {
        Disk.lock(path, sign)
    }
}

impl File for FlipsFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
    fn id(&self) -> io::Result<FileId> {
        self.file.id()
    }
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buf, offset)
    }
    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        let mut changed = buf.to_vec();
        if let Some(of) = self.of {
            let found = buf.windows(of.len()).position(|bytes| bytes == of);
            if let Some(at) = found {
                changed[at + of.len() - 1] ^= 1;
            }
        }
        self.file.write_at(&changed, offset)
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }
    fn allocate(&self, _len: u64) -> io::Result<bool> {
        Ok(false)
    }
    fn is_unlinked(&self) -> io::Result<bool> {
        self.file.is_unlinked()
    }
    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}
