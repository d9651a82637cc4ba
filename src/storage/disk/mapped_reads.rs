//! Read a file through a shared map, and survive a cut of the file under the map.
//!
//! The map covers the bytes at the time of opening. Later bytes, and bytes that a cut took from the
//! map (`bus_error.rs`), come from `pread`, which reports the file's real end. Only in the memory
//! page of the cut, zeros follow the file's end. Checksums recognise the zeros, like other damage.

use std::fs;
use std::io;
use std::time::SystemTime;

use memmap2::{MmapOptions, MmapRaw};

use super::bus_error::{Guard, Use};
use super::file::DiskFile;
use crate::storage::{File, FileId};

/// An open file with its map.
#[derive(Debug)]
pub struct MappedFile {
    // Dropped before the map.
    guard: Guard,
    map: MmapRaw,
    file: DiskFile,
}

/// Map all bytes of a file. `None` if the file is empty or there are too many maps.
pub fn map(file: &fs::File) -> Option<(Guard, MmapRaw)> {
    // Map for reading only, even if the file is open for writing.
    let map = MmapOptions::new().map_raw_read_only(file).ok().filter(|map| map.len() > 0)?;
    Some((Guard::new(map.as_ptr() as usize, map.len(), Use::Read)?, map))
}

impl MappedFile {
    /// The file behind the map.
    pub fn new((guard, map): (Guard, MmapRaw), file: DiskFile) -> Self {
        Self { guard, map, file }
    }

    /// Copy bytes out of the map; `false` if the map lacks some.
    #[allow(unsafe_code)]
    fn copy(&self, buf: &mut [u8], offset: u64) -> bool {
        let end = offset.checked_add(buf.len() as u64);
        if end.is_none_or(|end| end > self.map.len() as u64) || self.guard.faulted() {
            return false;
        }
        // SAFETY: the bytes lie inside the map, which lives as long as `self`, and there are no
        // references into the map. A writer may change the bytes meanwhile, as under `pread`. By
        // the letter of the language the change is a data race. In practice a `memcpy` of a shared
        // map copies old or new bytes, any bytes are a value, and the caller checks the copy and
        // never reads the map again. The handler repairs a fault.
        unsafe {
            let from = self.map.as_ptr().add(offset as usize);
            std::ptr::copy_nonoverlapping(from, buf.as_mut_ptr(), buf.len());
        }
        !self.guard.faulted()
    }
}

impl File for MappedFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn id(&self) -> io::Result<FileId> {
        self.file.id()
    }

    fn is_unlinked(&self) -> io::Result<bool> {
        self.file.is_unlinked()
    }

    fn modified(&self) -> io::Result<Option<SystemTime>> {
        self.file.modified()
    }

    fn touch(&self) -> io::Result<()> {
        self.file.touch()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        match self.copy(buf, offset) {
            true => Ok(buf.len()),
            false => self.file.read_at(buf, offset),
        }
    }

    fn data_from(&self, offset: u64) -> io::Result<u64> {
        self.file.data_from(offset)
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
        self.file.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::storage::{Access, Disk, Storage};

    fn mapped(len: usize) -> (tempfile::TempDir, Box<dyn File>, fs::File) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, vec![7; len]).unwrap();
        let file = Disk.open_mapped(&path, Access::Write).unwrap();
        assert!(len == 0 || format!("{file:?}").starts_with("MappedFile"), "{file:?}");
        let other = fs::OpenOptions::new().write(true).open(&path).unwrap();
        (dir, file, other)
    }

    #[test]
    fn a_mapped_read_sees_later_writes() {
        for len in [0, 10_000] {
            let (_dir, file, _) = mapped(len);
            file.write_at(b"new", len as u64 / 2).unwrap();
            file.write_at(b"more", len as u64 + 100).unwrap();
            let mut read = [0; 3];
            assert_eq!(file.read_at(&mut read, len as u64 / 2).unwrap(), 3);
            assert_eq!(&read, b"new");
            let mut read = [1; 200];
            assert_eq!(file.read_at(&mut read, len as u64 + 100).unwrap(), 4);
            assert_eq!(&read[..4], b"more");
            assert_eq!(file.read_at(&mut read, u64::MAX - 10).unwrap_or(0), 0);
        }
    }

    /// If zeros replaced the bytes after the cut, a reader would take them for the file's.
    #[test]
    fn a_mapped_read_ends_at_a_truncation() {
        let (_dir, file, other) = mapped(256 << 10);
        let mut read = [0; 100];
        other.set_len(65_586).unwrap();
        assert_eq!(file.read_at(&mut read, 200_000).unwrap(), 0);
        assert_eq!(file.read_at(&mut read, 65_536).unwrap(), 50);
        assert_eq!((file.read_at(&mut read, 0).unwrap(), read), (100, [7; 100]));
    }

    #[test]
    fn concurrent_truncation_gives_readers_no_zeros() {
        for _ in 0..50 {
            let (_dir, file, other) = mapped(1 << 20);
            let file: Arc<dyn File> = file.into();
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        for at in (0..256u64).rev().map(|page| page * 4096) {
                            let mut read = [0; 4096];
                            let there = file.read_at(&mut read, at).unwrap();
                            assert!(read[..there].iter().all(|byte| *byte == 7), "at {at}");
                        }
                    });
                }
                other.set_len(8192).unwrap();
            });
        }
    }
}
