//! A file system in memory with all paths inside one directory, and the small files next to a log,
//! with right checksums.

use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use deedbook::storage::{Access, File, LockAttempt, Memory, Storage};
use deedbook::wal::{Layout, Options, Wal};
use deedbook::{Durability, Mode, Result};

use super::kit::crc32;

/// The log's directory.
pub const LOG: &str = "/fence/log";

/// Panics for a path outside the log's directory and the directories above.
#[derive(Clone, Debug)]
pub struct Fenced(pub Memory);

impl Fenced {
    /// A file system with the log's directory.
    pub fn new() -> Self {
        let memory = Memory::new();
        for dir in ["/fence", LOG] {
            memory.create_dir(Path::new(dir)).unwrap();
        }
        Self(memory)
    }

    fn ask<'a>(&self, path: &'a Path) -> &'a Path {
        let is_inside = path.starts_with(LOG) || Path::new(LOG).starts_with(path);
        let leads_out = path.components().any(|part| part == Component::ParentDir);
        assert!(is_inside && !leads_out, "outside the log: {}", path.display());
        path
    }

    /// Write a file in the log's directory, whole.
    pub fn put(&self, name: &str, bytes: &[u8]) {
        let path = Path::new(LOG).join(name);
        let above: Vec<_> = path.ancestors().skip(1).collect();
        above.into_iter().rev().for_each(|dir| drop(self.0.create_dir(dir)));
        let _ = self.0.remove(&path);
        let file = self.0.create_new(&path, 0o600).unwrap();
        if !bytes.is_empty() {
            file.write_at(bytes, 0).unwrap();
        }
    }
}

impl Storage for Fenced {
    fn open(&self, path: &Path, access: Access) -> io::Result<Box<dyn File>> {
        self.0.open(self.ask(path), access)
    }

    fn create_new(&self, path: &Path, mode: u32) -> io::Result<Box<dyn File>> {
        self.0.create_new(self.ask(path), mode)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.0.create_dir(self.ask(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.rename(self.ask(from), self.ask(to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.remove(self.ask(path))
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        self.0.remove_dir(self.ask(dir))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        self.0.list(self.ask(dir))
    }

    fn is_dir(&self, path: &Path) -> bool {
        self.0.is_dir(self.ask(path))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.0.sync_dir(self.ask(dir))
    }

    fn lock(&self, path: &Path, sign: bool) -> io::Result<LockAttempt> {
        self.0.lock(self.ask(path), sign)
    }
}

/// Lines with the right checksum.
pub fn sealed(lines: &[u8]) -> Vec<u8> {
    let crc = format!("crc {:08x}\n", crc32(lines));
    [lines, crc.as_bytes()].concat()
}

/// The payloads of a write-ahead log, from the head on.
pub fn payloads(wal: &Wal) -> Vec<Vec<u8>> {
    let records = wal.iter(..).unwrap();
    records.map(|record| record.unwrap().payload.to_vec()).collect()
}

/// Open the write-ahead log, in segments of 64 bytes.
pub fn open_wal(disk: &Fenced, mode: Mode) -> Result<Wal> {
    let layout = Some(Layout::Segmented { segment_bytes: 64 });
    let options = Options::new().storage(Arc::new(disk.clone())).layout(layout);
    options.durability(Durability::Manual).open(PathBuf::from(LOG), mode)
}

/// Make a write-ahead log with `count` records.
pub fn write_wal(disk: &Fenced, count: u8) -> Vec<Vec<u8>> {
    let wal = open_wal(disk, Mode::Append).unwrap();
    for i in 0..count {
        wal.append(&vec![i; usize::from(i) * 3]).unwrap();
    }
    wal.sync().unwrap();
    let written = payloads(&wal);
    wal.close().unwrap();
    written
}
