//! The only way to the file system: two small traits, boxed, so that no generics leak.
//!
//! [`struct@Disk`] is the real one and [`Memory`] keeps everything in memory; with the crate feature `sim`
//! there is one that loses power. The traits are also the interface for injecting faults: a failing
//! or crashing disk is one more implementation, never a hook in the formats.

#[cfg(target_os = "linux")]
mod bus_error;
mod closable;
#[cfg(test)]
pub mod counted;
mod disk;
mod disk_file;
mod fork;
#[cfg(target_os = "linux")]
mod mapped_reads;
#[cfg(target_os = "linux")]
mod mapped_writes;
mod memory;
#[cfg(target_os = "linux")]
mod prealloc;
pub(crate) mod segmented;
#[cfg(feature = "sim")]
pub mod sim;

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::{Error, ErrorKind, Result};
use crate::interrupt;
use crate::slice::{part, part_mut};

pub(crate) use closable::{Closable, Closed};
pub use disk::Disk;
#[cfg(feature = "nostr")]
pub(crate) use disk::is_own;
pub use fork::generation as fork_generation;
pub use memory::Memory;

/// What a file is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading only.
    Read,
    /// Reading and writing.
    Write,
}

/// Which file it is, under any name: device, inode and, where the system knows it, its birth.
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
    /// Whether both are one file, of which one may have been noted before the last start of the
    /// system: its device may have another number since then, its inode and birth are the same.
    pub(crate) fn is_still(self, now: Self) -> bool {
        let device = self.device == now.device || self.created_ns != 0;
        device && (self.inode, self.created_ns) == (now.inode, now.created_ns)
    }
}

/// An open regular file. All calls are positional and take `&self`.
pub trait File: Send + Sync + fmt::Debug {
    /// Size in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Whether the file has no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Which file it is.
    fn id(&self) -> io::Result<FileId>;
    /// Whether the file was removed or replaced: it has no name any more and ends with its handles.
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
    /// Have [`File::modified`] say now, where writes need not have moved it.
    fn touch(&self) -> io::Result<()> {
        Ok(())
    }
    /// Read at most `buf.len()` bytes; 0 only at the end of the file.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;
    /// The first byte from `offset` on that may not be a zero: files may have holes, which need not
    /// be read.
    fn data_from(&self, offset: u64) -> io::Result<u64> {
        Ok(offset)
    }
    /// Write at most `buf.len()` bytes; they survive the death of the process. A file that is only read has neither
    /// this method nor the next three.
    fn write_at(&self, _buf: &[u8], _offset: u64) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Truncate the file, or extend it with zeros.
    fn set_len(&self, _len: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Extend the file to `len` with zeros and reserve the space, so that later writes below `len`
    /// cannot run out of it. `false` where the system cannot: nothing changed.
    fn allocate(&self, _len: u64) -> io::Result<bool> {
        Ok(false)
    }
    /// Return when data and size are on stable storage. Says nothing about the directory entry.
    fn sync_data(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// The answer to a request for a lock.
#[derive(Debug)]
pub enum LockAttempt {
    /// The lock is ours until the guard is dropped.
    Held(Box<dyn LockGuard>),
    /// Another holder has it; its process id, if it is known.
    Busy(Option<u32>),
}

/// Releases the lock when dropped.
pub trait LockGuard: Send + Sync + fmt::Debug {}

/// A directory that is held open.
pub trait HeldDir: Send + Sync + fmt::Debug {
    /// Return when its entries are on stable storage.
    fn sync(&self) -> io::Result<()>;
}

/// A file system, as far as logs need one.
pub trait Storage: Send + Sync + fmt::Debug {
    /// The path independent of later changes of the working directory.
    fn absolute(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_path_buf())
    }
    /// Open an existing regular file without following a symbolic link.
    fn open(&self, path: &Path, access: Access) -> io::Result<Box<dyn File>>;
    /// The same; where it can be, what the file has by now is read through a map.
    fn open_mapped(&self, path: &Path, access: Access) -> io::Result<Box<dyn File>> {
        self.open(path, access)
    }
    /// Create a file that must not exist, with Unix permissions `mode` less the umask.
    fn create_new(&self, path: &Path, mode: u32) -> io::Result<Box<dyn File>>;
    /// Create a directory whose parent exists; fine if it is there already.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// The same with Unix permissions `mode` less the umask, where the storage has any. Without them a
    /// directory is its owner's alone.
    fn create_dir_as(&self, path: &Path, _mode: u32) -> io::Result<()> {
        self.create_dir(path)
    }
    /// Replace `to` by `from`, atomically; a directory only gets a name that is free.
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
    /// Return when the directory's entries are on stable storage.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// Hold a directory open, so that syncing its entries later needs no free descriptor. `None` where
    /// [`sync_dir`](Self::sync_dir) by its path is as good.
    fn hold_dir(&self, _dir: &Path) -> io::Result<Option<Box<dyn HeldDir>>> {
        Ok(None)
    }
    /// Lock a whole existing file against other processes and against this one, without waiting.
    /// With `sign`, the holder's process id is written into the file; without, a directory will do,
    /// too, where the system can.
    fn lock(&self, path: &Path, sign: bool) -> io::Result<LockAttempt>;
}

/// Where a log lies, from now on.
pub(crate) fn located(storage: &dyn Storage, path: &Path) -> Result<PathBuf> {
    if path.as_os_str().is_empty() {
        return Err(Error::new(ErrorKind::InvalidArgument, "the path of the log is empty"));
    }
    if path.as_os_str().as_encoded_bytes().contains(&0) {
        let message = "the path of the log has a zero byte";
        return Err(Error::new(ErrorKind::InvalidArgument, message).at(path));
    }
    storage.absolute(path).map_err(|e| Error::io("find the place of the log", path, e))
}

/// Fill `buf` from `offset`, or as much as there is before the end of the file; returns the count.
pub(crate) fn read_full(file: &dyn File, buf: &mut [u8], offset: u64) -> io::Result<usize> {
    interrupt::ask()?;
    let mut done = 0;
    while let Some(rest) = buf.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, offset + done as u64) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(done)
}

/// The checksum of some bytes of a file, going on from that of what came before them; `None` if the file
/// ends before they do.
pub(crate) fn sum_of(
    file: &dyn File,
    bytes: Range<u64>,
    before: u32,
    more: fn(u32, &[u8]) -> u32,
) -> io::Result<Option<u32>> {
    let mut block = vec![0; bytes.end.saturating_sub(bytes.start).min(1 << 20) as usize];
    let (mut sum, mut at) = (before, bytes.start);
    while at < bytes.end {
        let want = (bytes.end - at).min(block.len() as u64) as usize;
        let read = read_full(file, part_mut(&mut block, ..want), at)?;
        if read == 0 {
            return Ok(None);
        }
        sum = more(sum, part(&block, ..read));
        at += read as u64;
    }
    Ok(Some(sum))
}

/// Write all of `buf` at `offset`; short writes go on, a write of 0 bytes is an error.
pub(crate) fn write_full(file: &dyn File, buf: &[u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    while let Some(rest) = buf.get(done..).filter(|rest| !rest.is_empty()) {
        match file.write_at(rest, offset + done as u64) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => done += seeded!(n, "short-write-is-whole" => rest.len()),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Make `path` hold exactly `bytes`, all or nothing: temporary file, fsync, rename, fsync of the
/// directory. When this returns, the new content is durable.
pub(crate) fn replace(
    storage: &dyn Storage,
    path: &Path,
    bytes: &[u8],
    mode: u32,
) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".tmp");
    replace_through(storage, path, &path.with_file_name(name), bytes, mode)
}

/// The same through another temporary file of that directory: for files whose names callers choose, so
/// that `NAME.tmp` may be one of them.
pub(crate) fn replace_through(
    storage: &dyn Storage,
    path: &Path,
    temporary: &Path,
    bytes: &[u8],
    mode: u32,
) -> io::Result<()> {
    match storage.remove(temporary) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let file = storage.create_new(temporary, mode)?;
    if let Err(e) = write_full(&*file, bytes, 0).and_then(|()| file.sync_data()) {
        drop(file);
        // On a full disk even that little is missed.
        let _ = storage.remove(temporary);
        return Err(e);
    }
    drop(file);
    storage.rename(temporary, path)?;
    storage.sync_dir(path.parent().unwrap_or(Path::new(".")))
}
