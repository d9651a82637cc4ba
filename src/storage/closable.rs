//! A file that its handle can give back while cursors still refer to it.

use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use super::{File, FileId};
use crate::error::Closed;
use crate::ground::locks::{PoisonError, RwLock};

/// An open file until it is closed: then each call fails with [`Closed`].
#[derive(Debug)]
pub struct Closable(RwLock<Option<Arc<dyn File>>>);

impl Closable {
    /// The file, open.
    pub fn new(file: Arc<dyn File>) -> Self {
        Self(RwLock::new(Some(file)))
    }

    /// Give the file back, once the calls that other threads are in have returned.
    pub fn close(&self) {
        let file = self.0.write().unwrap_or_else(PoisonError::into_inner).take();
        drop(file);
    }

    #[inline]
    fn with<T>(&self, call: impl FnOnce(&dyn File) -> io::Result<T>) -> io::Result<T> {
        match &*self.0.read().unwrap_or_else(PoisonError::into_inner) {
            Some(file) => call(&**file),
            None => Err(io::Error::other(Closed)),
        }
    }
}

impl File for Closable {
    fn len(&self) -> io::Result<u64> {
        self.with(|file| file.len())
    }

    fn id(&self) -> io::Result<FileId> {
        self.with(|file| file.id())
    }

    fn is_unlinked(&self) -> io::Result<bool> {
        self.with(|file| file.is_unlinked())
    }

    fn modified(&self) -> io::Result<Option<SystemTime>> {
        self.with(|file| file.modified())
    }

    fn touch(&self) -> io::Result<()> {
        self.with(|file| file.touch())
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.with(|file| file.read_at(buf, offset))
    }

    fn data_from(&self, offset: u64) -> io::Result<u64> {
        self.with(|file| file.data_from(offset))
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        self.with(|file| file.write_at(buf, offset))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.with(|file| file.set_len(len))
    }

    fn allocate(&self, len: u64) -> io::Result<bool> {
        self.with(|file| file.allocate(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.with(|file| file.sync_data())
    }
}
