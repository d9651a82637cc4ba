//! The only way to the file system, and the type of a log's option `storage`.
//!
//! [`struct@Disk`] is the file system and the default, [`Memory`] keeps everything in memory, and `sim::Sim` (feature
//! `sim`) is a disk that loses power and fails, for tests. The types in the signatures of [`Storage`] are not
//! documented and may change: implement [`Storage`] only around one of these three, for example in a test that injects
//! faults.

mod aside;
mod closable;
#[cfg(test)]
pub mod counted;
mod disk;
mod fork;
mod memory;
pub(crate) mod segmented;
#[cfg(feature = "sim")]
pub mod sim;
mod whole;

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

pub(crate) use aside::{Aside, above, move_to, replace, replace_through, sync_dir};
pub(crate) use closable::Closable;
pub use disk::Disk;
#[cfg(feature = "nostr")]
pub(crate) use disk::is_own;
#[doc(hidden)]
pub use disk::{SMALL_BYTES_MAX, is_directory, is_regular, open_regular, read_small};
pub(crate) use fork::generation as fork_generation;
pub use memory::Memory;
pub(crate) use whole::{READ_BYTES, end_of_data, located, names_in, read_full, sum_of, write_full};

/// The purpose of an open file.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading only.
    Read,
    /// Reading and writing.
    Write,
}

/// The identity of a file under any name: device, inode and, if the system knows, the time of creation.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId {
    /// The device.
    pub device: u64,
    /// The inode.
    pub inode: u64,
    /// Nanoseconds from 1970 to the file's creation, or 0: shows that an inode was reused.
    pub created_ns: u64,
}

impl FileId {
    /// Whether both name one file. `self` may be a note from before the last start of the system:
    /// the device may have another number since, but inode and time of creation stay.
    pub(crate) fn is_still(self, now: Self) -> bool {
        let device = self.device == now.device || self.created_ns != 0;
        device && (self.inode, self.created_ns) == (now.inode, now.created_ns)
    }
}

/// An open regular file. All calls are positional and take `&self`.
#[doc(hidden)]
pub trait File: Send + Sync + fmt::Debug {
    /// Size in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Whether the file has no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// The file's identity.
    fn id(&self) -> io::Result<FileId>;
    /// Whether somebody removed or replaced the file: a file without a name ends with its handles.
    fn is_unlinked(&self) -> io::Result<bool> {
        Ok(false)
    }
    /// How many names the file has: hard links.
    fn names(&self) -> io::Result<u64> {
        Ok(1)
    }
    /// When the content changed last, if the system knows.
    fn modified(&self) -> io::Result<Option<SystemTime>> {
        Ok(None)
    }
    /// Set [`File::modified`] to now, because writes may not have updated the time.
    fn touch(&self) -> io::Result<()> {
        Ok(())
    }
    /// Read at most `buf.len()` bytes; 0 only at the end of the file.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;
    /// The first byte from `offset` on that may be other than zero. A caller need not read a file's
    /// holes.
    fn data_from(&self, offset: u64) -> io::Result<u64> {
        Ok(offset)
    }
    /// Write at most `buf.len()` bytes; they survive a crash of the process. A file opened for
    /// reading needs neither this method nor the next three.
    fn write_at(&self, _buf: &[u8], _offset: u64) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Truncate the file, or extend it with zeros.
    fn set_len(&self, _len: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Extend the file to `len` with zeros and reserve the space, so that later writes below `len`
    /// cannot fail for lack of space. `false` if the system cannot reserve; the file is then
    /// unchanged.
    fn allocate(&self, _len: u64) -> io::Result<bool> {
        Ok(false)
    }
    /// Return when data and size are on stable storage. Says nothing about the directory entry.
    fn sync_data(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// The answer to a request for a lock.
#[doc(hidden)]
#[derive(Debug)]
pub enum LockAttempt {
    /// The lock is ours until the guard is dropped.
    Held(Box<dyn LockGuard>),
    /// Another holder has the lock; the number is the holder's process id, if known.
    Busy(Option<u32>),
}

/// Releases the lock when dropped.
#[doc(hidden)]
pub trait LockGuard: Send + Sync + fmt::Debug {}

/// A directory that is held open.
#[doc(hidden)]
pub trait HeldDir: Send + Sync + fmt::Debug {
    /// Return when the directory's entries are on stable storage.
    fn sync(&self) -> io::Result<()>;
}

/// A file system, as far as logs need one.
pub trait Storage: Send + Sync + fmt::Debug {
    /// The path independent of later changes of the working directory.
    fn absolute(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_path_buf())
    }
    /// The path of an existing file, without links.
    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_path_buf())
    }
    /// Open an existing regular file without following a symbolic link.
    fn open(&self, path: &Path, access: Access) -> io::Result<Box<dyn File>>;
    /// As [`open`](Self::open); if possible, the file's present bytes are read through a map.
    fn open_mapped(&self, path: &Path, access: Access) -> io::Result<Box<dyn File>> {
        self.open(path, access)
    }
    /// Create a file that must not exist, with Unix permissions `mode` less the umask.
    fn create_new(&self, path: &Path, mode: u32) -> io::Result<Box<dyn File>>;
    /// Create a directory in an existing parent. An existing directory is fine.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// As [`create_dir`](Self::create_dir), with Unix permissions `mode` less the umask, if the
    /// storage has permissions. A storage without permissions gives the directory to its owner
    /// alone.
    fn create_dir_as(&self, path: &Path, _mode: u32) -> io::Result<()> {
        self.create_dir(path)
    }
    /// Replace `to` by `from`, atomically. A directory can only get a free name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Remove a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Remove an empty directory.
    fn remove_dir(&self, _dir: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Names in a directory, in no order.
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>>;
    /// Whether the path is a directory.
    fn is_dir(&self, path: &Path) -> bool;
    /// Whether the path is a symbolic link.
    fn is_link(&self, _path: &Path) -> bool {
        false
    }
    /// The Unix permissions of a file or directory; `None` if the storage has no permissions.
    fn mode(&self, _path: &Path) -> io::Result<Option<u32>> {
        Ok(None)
    }
    /// Set the Unix permissions of a file or directory, where the storage has any.
    fn set_mode(&self, _path: &Path, _mode: u32) -> io::Result<()> {
        Ok(())
    }
    /// Return when the directory's entries are on stable storage.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// Hold a directory open, so that a later sync of its entries needs no free descriptor. `None`
    /// if [`sync_dir`](Self::sync_dir) by path is as good.
    fn hold_dir(&self, _dir: &Path) -> io::Result<Option<Box<dyn HeldDir>>> {
        Ok(None)
    }
    /// Lock a whole existing file against other processes and this process, without waiting. With
    /// `sign`, the file gets the holder's process id. Without, `path` may name a directory, if the
    /// system can lock directories.
    fn lock(&self, path: &Path, sign: bool) -> io::Result<LockAttempt>;
}
