//! An open file of the real file system.

use std::fs;
use std::io;
#[cfg(target_os = "linux")]
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

#[cfg(target_os = "linux")]
use super::prealloc::Prealloc;
use crate::storage::{File, FileId};

/// An open file, with the space that this handle reserved.
#[derive(Debug)]
pub struct DiskFile {
    file: fs::File,
    #[cfg(target_os = "linux")]
    prealloc: Mutex<Prealloc>,
}

/// The file's identity: device, inode, and time of creation.
pub fn id_of(file: &fs::File) -> io::Result<FileId> {
    let metadata = file.metadata()?;
    let created = metadata.created().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let created_ns = created.map_or(0, |since| since.as_nanos() as u64);
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        Ok(FileId { device: metadata.dev(), inode: metadata.ino(), created_ns })
    }
    #[cfg(not(unix))]
    {
        // Without an inode number, the time of creation has to distinguish the file.
        Ok(FileId { device: 0, inode: 0, created_ns })
    }
}

impl DiskFile {
    /// Make a handle without reserved space. With `mapped_writes`, short writes into reserved space
    /// go through a map.
    pub fn new(file: fs::File, mapped_writes: bool) -> Self {
        #[cfg(not(target_os = "linux"))]
        let _ = mapped_writes;
        Self {
            file,
            #[cfg(target_os = "linux")]
            prealloc: Mutex::new(Prealloc::new(mapped_writes)),
        }
    }

    #[cfg(target_os = "linux")]
    fn prealloc(&self) -> MutexGuard<'_, Prealloc> {
        self.prealloc.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Size and number of names. The call does not ask for the times: after a program asks for the
    /// times, Linux gives the next write a new time, and the next sync takes a third longer.
    #[cfg(target_os = "linux")]
    #[allow(unsafe_code)]
    fn status(&self) -> io::Result<(u64, u64)> {
        use std::os::fd::AsRawFd;
        // SAFETY: a system call on a descriptor that is open for as long as `self.file`, with an
        // empty path and a structure for which any bytes are a value.
        let (done, found) = unsafe {
            let mut found: libc::statx = std::mem::zeroed();
            let wanted = libc::STATX_SIZE | libc::STATX_NLINK;
            let fd = self.file.as_raw_fd();
            let done = libc::statx(fd, c"".as_ptr(), libc::AT_EMPTY_PATH, wanted, &mut found);
            (done, found)
        };
        match done {
            0 => Ok((found.stx_size, found.stx_nlink.into())),
            // Old kernels and sandboxes lack the call.
            _ => self.status_with_times(),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn status(&self) -> io::Result<(u64, u64)> {
        self.status_with_times()
    }

    fn status_with_times(&self) -> io::Result<(u64, u64)> {
        let metadata = self.file.metadata()?;
        #[cfg(unix)]
        return Ok((metadata.len(), std::os::unix::fs::MetadataExt::nlink(&metadata)));
        #[cfg(not(unix))]
        return Ok((metadata.len(), 1));
    }
}

impl File for DiskFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.status()?.0)
    }

    fn id(&self) -> io::Result<FileId> {
        id_of(&self.file)
    }

    fn modified(&self) -> io::Result<Option<SystemTime>> {
        Ok(self.file.metadata()?.modified().ok())
    }

    /// Set the file's times to now. Stores through a map set the times only now and then. A process
    /// that may write may set the times to now, even if another user owns the file.
    #[cfg(target_os = "linux")]
    #[allow(unsafe_code)]
    fn touch(&self) -> io::Result<()> {
        use std::os::fd::AsRawFd;
        // SAFETY: a system call on a descriptor that is open for as long as `self.file`.
        match unsafe { libc::futimens(self.file.as_raw_fd(), std::ptr::null()) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn is_unlinked(&self) -> io::Result<bool> {
        Ok(self.names()? == 0)
    }

    fn names(&self) -> io::Result<u64> {
        Ok(self.status()?.1)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        #[cfg(unix)]
        return std::os::unix::fs::FileExt::read_at(&self.file, buf, offset);
        #[cfg(windows)]
        return std::os::windows::fs::FileExt::seek_read(&self.file, buf, offset);
    }

    #[cfg(target_os = "linux")]
    #[allow(unsafe_code)]
    fn data_from(&self, offset: u64) -> io::Result<u64> {
        use std::os::fd::AsRawFd;
        let Ok(at) = libc::off_t::try_from(offset) else { return Ok(offset) };
        // SAFETY: a system call on a descriptor that is open for as long as `self.file`. The call
        // moves the descriptor's position; all reads and writes here give their own.
        match unsafe { libc::lseek(self.file.as_raw_fd(), at, libc::SEEK_DATA) } {
            found if found >= 0 => Ok(found as u64),
            _ if io::Error::last_os_error().raw_os_error() == Some(libc::ENXIO) => Ok(u64::MAX),
            // Some file systems do not report data.
            _ => Ok(offset),
        }
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        #[cfg(target_os = "linux")]
        if self.prealloc().write(&self.file, buf, offset)? {
            return Ok(buf.len());
        }
        #[cfg(unix)]
        return std::os::unix::fs::FileExt::write_at(&self.file, buf, offset);
        #[cfg(windows)]
        return std::os::windows::fs::FileExt::seek_write(&self.file, buf, offset);
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        let mut prealloc = self.prealloc();
        #[cfg(target_os = "linux")]
        prealloc.forget();
        self.file.set_len(len)
    }

    #[cfg(target_os = "linux")]
    fn allocate(&self, len: u64) -> io::Result<bool> {
        let mut prealloc = self.prealloc();
        prealloc.reserve(&self.file, self.len()?, len)
    }

    #[cfg(not(target_os = "linux"))]
    fn allocate(&self, _len: u64) -> io::Result<bool> {
        Ok(false)
    }

    #[cfg(target_os = "linux")]
    fn sync_data(&self) -> io::Result<()> {
        self.prealloc().syncing();
        self.file.sync_data()?;
        // Hold the lock: an append that reserves space meanwhile would look like a foreign
        // truncation.
        let prealloc = self.prealloc();
        prealloc.check(self.len()?)
    }

    #[cfg(not(target_os = "linux"))]
    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}
