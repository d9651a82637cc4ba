//! The real file system. The only module that touches `std::fs`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

#[cfg(target_os = "linux")]
use super::prealloc::Prealloc;
use super::{Access, File, FileId, LockAttempt, LockGuard, Storage, fork_generation};

/// Files that this process has locked: on some systems a second lock by one process succeeds.
/// With the fork generation, because a child inherits the set but holds none of the locks.
static LOCKED_HERE: Mutex<BTreeSet<(u64, FileId)>> = Mutex::new(BTreeSet::new());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The file system of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

#[derive(Debug)]
struct DiskFile {
    file: fs::File,
    #[cfg(target_os = "linux")]
    prealloc: Mutex<Prealloc>,
}

/// Where there is nothing to lock.
#[derive(Debug)]
struct NoLock;

#[derive(Debug)]
struct DiskLock {
    file: fs::File,
    /// The entry in [`LOCKED_HERE`].
    key: (u64, FileId),
    signed: bool,
}

fn options(access: Access) -> fs::OpenOptions {
    let mut options = fs::OpenOptions::new();
    options.read(true).write(access == Access::Write);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // Not blocking: opening a FIFO must not hang.
        options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC);
    }
    options
}

fn regular(file: fs::File) -> io::Result<fs::File> {
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
    }
}

fn open_regular(path: &Path, access: Access) -> io::Result<fs::File> {
    #[cfg(not(unix))]
    if fs::symlink_metadata(path)?.file_type().is_symlink() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a symbolic link"));
    }
    match options(access).open(path) {
        #[cfg(unix)]
        Err(e) if matches!(e.raw_os_error(), Some(libc::ELOOP | libc::EISDIR | libc::ENXIO)) => {
            let message = format!("not a regular file: {e}");
            Err(io::Error::new(io::ErrorKind::InvalidInput, message))
        }
        opened => regular(opened?),
    }
}

fn id_of(file: &fs::File) -> io::Result<FileId> {
    let metadata = file.metadata()?;
    let born = metadata.created().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let born_ns = born.map_or(0, |since| since.as_nanos() as u64);
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        Ok(FileId { device: metadata.dev(), inode: metadata.ino(), born_ns })
    }
    #[cfg(not(unix))]
    {
        // Without an inode number the times of the file have to tell it apart.
        Ok(FileId { device: 0, inode: 0, born_ns })
    }
}

impl DiskFile {
    fn boxed(file: fs::File) -> Box<dyn File> {
        Box::new(Self {
            file,
            #[cfg(target_os = "linux")]
            prealloc: Mutex::default(),
        })
    }

    /// Size and number of names. Not asking for the times: after they were asked for, Linux gives
    /// the next write a new one, which makes the sync behind it a third slower.
    #[cfg(target_os = "linux")]
    #[allow(unsafe_code)]
    fn status(&self) -> io::Result<(u64, u64)> {
        use std::os::fd::AsRawFd;
        // SAFETY: a system call on a descriptor that is open for as long as `self.file`, with an
        // empty path and a structure of which any bytes are a value.
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

impl Storage for Disk {
    fn absolute(&self, path: &Path) -> io::Result<PathBuf> {
        std::path::absolute(path)
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Box<dyn File>> {
        Ok(DiskFile::boxed(open_regular(path, access)?))
    }

    fn create_new(&self, path: &Path, mode: u32) -> io::Result<Box<dyn File>> {
        let mut options = options(Access::Write);
        options.create_new(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            options.mode(mode);
        }
        #[cfg(not(unix))]
        let _ = mode;
        Ok(DiskFile::boxed(options.open(path)?))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        match fs::create_dir(path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            done => done,
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name())).collect()
    }

    fn is_dir(&self, path: &Path) -> bool {
        path.is_dir()
    }

    fn is_link(&self, path: &Path) -> bool {
        path.is_symlink()
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        // Windows has no such call; NTFS journals its directories.
        if cfg!(unix) {
            let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
            fs::File::open(dir)?.sync_all()?;
        }
        Ok(())
    }

    fn lock(&self, path: &Path, sign: bool) -> io::Result<LockAttempt> {
        let dir = !sign && path.is_dir();
        if dir && !cfg!(unix) {
            return Ok(LockAttempt::Held(Box::new(NoLock)));
        }
        // A whole-file lock on Windows would keep readers out, so only the signed file is locked.
        if !sign && !cfg!(unix) {
            let file = open_regular(path, Access::Read)?;
            return Ok(LockAttempt::Held(Box::new(DiskLock {
                key: (fork_generation(), FileId::default()),
                file,
                signed: false,
            })));
        }
        let file = match dir {
            // Through a link as well, as every file in it is: whatever its name, one directory has
            // one lock.
            true => fs::File::open(path)?,
            false => open_regular(path, if sign { Access::Write } else { Access::Read })?,
        };
        let key = (fork_generation(), id_of(&file)?);
        if !lock(&LOCKED_HERE).insert(key) {
            return Ok(LockAttempt::Busy(Some(std::process::id())));
        }
        let forget = || lock(&LOCKED_HERE).remove(&key);
        match file.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                forget();
                let text = fs::read_to_string(path).unwrap_or_default();
                let holder = if sign { text.trim().parse().ok() } else { None };
                return Ok(LockAttempt::Busy(holder));
            }
            Err(fs::TryLockError::Error(e)) => {
                forget();
                return Err(e);
            }
        }
        let guard = DiskLock { file, key, signed: sign };
        if sign {
            guard.file.set_len(0)?;
            io::Write::write_all(&mut &guard.file, format!("{}\n", std::process::id()).as_bytes())?;
        }
        Ok(LockAttempt::Held(Box::new(guard)))
    }
}

impl LockGuard for DiskLock {}

impl LockGuard for NoLock {}

impl Drop for DiskLock {
    fn drop(&mut self) {
        if self.key.0 != fork_generation() {
            // A forked child's copy: unlocking it would unlock the parent's.
            return;
        }
        lock(&LOCKED_HERE).remove(&self.key);
        if self.signed {
            // The name of a holder that is gone would mislead; the lock itself ends with the file.
            let _ = self.file.set_len(0);
        }
        let _ = self.file.unlock();
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

    /// Stores through a map move the time only now and then. Without times given, who may write
    /// may set them, and need not own the file.
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
        Ok(self.status()?.1 == 0)
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
        // SAFETY: a system call on a descriptor that is open for as long as `self.file`; nothing
        // here reads or writes at the position that it moves.
        match unsafe { libc::lseek(self.file.as_raw_fd(), at, libc::SEEK_DATA) } {
            found if found >= 0 => Ok(found as u64),
            _ if io::Error::last_os_error().raw_os_error() == Some(libc::ENXIO) => Ok(u64::MAX),
            // Not every file system tells.
            _ => Ok(offset),
        }
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        #[cfg(target_os = "linux")]
        if lock(&self.prealloc).write(&self.file, buf, offset)? {
            return Ok(buf.len());
        }
        #[cfg(unix)]
        return std::os::unix::fs::FileExt::write_at(&self.file, buf, offset);
        #[cfg(windows)]
        return std::os::windows::fs::FileExt::seek_write(&self.file, buf, offset);
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        let mut prealloc = lock(&self.prealloc);
        #[cfg(target_os = "linux")]
        prealloc.forget();
        self.file.set_len(len)
    }

    #[cfg(target_os = "linux")]
    fn allocate(&self, len: u64) -> io::Result<bool> {
        let mut prealloc = lock(&self.prealloc);
        prealloc.reserve(&self.file, self.len()?, len)
    }

    #[cfg(not(target_os = "linux"))]
    fn allocate(&self, _len: u64) -> io::Result<bool> {
        Ok(false)
    }

    #[cfg(target_os = "linux")]
    fn sync_data(&self) -> io::Result<()> {
        lock(&self.prealloc).syncing();
        self.file.sync_data()?;
        // Under the lock: an append that reserves more meanwhile is no foreign truncation.
        let prealloc = lock(&self.prealloc);
        prealloc.check(self.len()?)
    }

    #[cfg(not(target_os = "linux"))]
    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}
