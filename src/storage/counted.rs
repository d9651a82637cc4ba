//! A file for tests. Counts the bytes and the calls of reads.

#![allow(clippy::indexing_slicing)]

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{File, FileId};

/// Bytes that can only be read.
#[derive(Debug, Default)]
pub struct Counted {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Reads after this many find nothing.
    pub reads_max: Option<u64>,
    /// Whether zeros are holes.
    pub has_holes: bool,
    read: AtomicU64,
    reads: AtomicU64,
}

impl Counted {
    /// Make a file with the given bytes.
    pub fn of(bytes: Vec<u8>) -> Self {
        Self { bytes, ..Self::default() }
    }

    /// How many bytes were read so far.
    pub fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// In how many calls.
    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }
}

impl File for Counted {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn id(&self) -> io::Result<FileId> {
        Ok(FileId::default())
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let rest = self.bytes.get(offset as usize..).unwrap_or_default();
        let gone = self.reads_max.is_some_and(|max| self.reads() >= max);
        let len = if gone { 0 } else { rest.len().min(buf.len()) };
        buf[..len].copy_from_slice(&rest[..len]);
        self.read.fetch_add(len as u64, Ordering::Relaxed);
        self.reads.fetch_add(1, Ordering::Relaxed);
        Ok(len)
    }

    fn data_from(&self, offset: u64) -> io::Result<u64> {
        let rest = self.bytes.get(offset as usize..).unwrap_or_default();
        let zeros = rest.iter().take_while(|&&byte| self.has_holes && byte == 0).count();
        Ok(offset + zeros as u64)
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<usize> {
        unreachable!()
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        unreachable!()
    }

    fn allocate(&self, _: u64) -> io::Result<bool> {
        unreachable!()
    }

    fn sync_data(&self) -> io::Result<()> {
        unreachable!()
    }
}
