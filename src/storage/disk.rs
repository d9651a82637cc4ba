//! The real file system. The only module that touches `std::fs`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

#[cfg(target_os = "linux")]
use super::map::Window;
use super::{Access, File, FileId, LockAttempt, LockGuard, Storage, fork_generation};

/// Writes up to this size into allocated space are stored through a shared map, which takes a
/// third of the time of `pwrite` and survives the death of the process just as well; longer ones
/// are quicker by `pwrite`.
#[cfg(target_os = "linux")]
const MAPPED_WRITE_BYTES_MAX: usize = 4 << 10;

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
    /// The file has at least this many bytes with space reserved, as far as this handle made them.
    allocated: AtomicU64,
    #[cfg(target_os = "linux")]
    window: Mutex<Option<Window>>,
}

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
            allocated: AtomicU64::new(0),
            #[cfg(target_os = "linux")]
            window: Mutex::new(None),
        })
    }
}

impl Storage for Disk {
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
        // A whole-file lock on Windows would keep readers out, so only the signed file is locked.
        if !sign && !cfg!(unix) {
            let file = open_regular(path, Access::Read)?;
            return Ok(LockAttempt::Held(Box::new(DiskLock {
                key: (fork_generation(), FileId::default()),
                file,
                signed: false,
            })));
        }
        let file = open_regular(path, if sign { Access::Write } else { Access::Read })?;
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
        Ok(self.file.metadata()?.len())
    }

    fn id(&self) -> io::Result<FileId> {
        id_of(&self.file)
    }

    fn modified(&self) -> io::Result<Option<SystemTime>> {
        Ok(self.file.metadata()?.modified().ok())
    }

    #[cfg(unix)]
    fn is_unlinked(&self) -> io::Result<bool> {
        use std::os::unix::fs::MetadataExt;
        Ok(self.file.metadata()?.nlink() == 0)
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        #[cfg(unix)]
        return std::os::unix::fs::FileExt::read_at(&self.file, buf, offset);
        #[cfg(windows)]
        return std::os::windows::fs::FileExt::seek_read(&self.file, buf, offset);
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        #[cfg(target_os = "linux")]
        if buf.len() <= MAPPED_WRITE_BYTES_MAX {
            let allocated = self.allocated.load(Ordering::Relaxed);
            let end = offset.saturating_add(buf.len() as u64);
            if end <= allocated
                && Window::write(&mut lock(&self.window), &self.file, allocated, buf, offset)?
            {
                return Ok(buf.len());
            }
        }
        #[cfg(unix)]
        return std::os::unix::fs::FileExt::write_at(&self.file, buf, offset);
        #[cfg(windows)]
        return std::os::windows::fs::FileExt::seek_write(&self.file, buf, offset);
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        {
            // Unmapped first: storing behind the end of a file is a bus error.
            *lock(&self.window) = None;
        }
        self.allocated.store(0, Ordering::Relaxed);
        self.file.set_len(len)
    }

    #[cfg(target_os = "linux")]
    #[allow(unsafe_code)]
    fn allocate(&self, len: u64) -> io::Result<bool> {
        use std::os::fd::AsRawFd;
        let old = self.len()?;
        if len > old {
            let (from, count) = (old as libc::off64_t, (len - old) as libc::off64_t);
            // SAFETY: a system call on a descriptor that is open for as long as `self.file`.
            if unsafe { libc::fallocate64(self.file.as_raw_fd(), 0, from, count) } != 0 {
                let e = io::Error::last_os_error();
                return match e.raw_os_error() {
                    Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL) => Ok(false),
                    _ => Err(e),
                };
            }
        }
        self.allocated.store(len.max(old), Ordering::Relaxed);
        Ok(true)
    }

    #[cfg(not(target_os = "linux"))]
    fn allocate(&self, _len: u64) -> io::Result<bool> {
        Ok(false)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()?;
        // Stores through a map behind a foreign truncation go nowhere and report nothing.
        let (len, allocated) = (self.len()?, self.allocated.load(Ordering::Relaxed));
        if len < allocated {
            return Err(io::Error::other(format!(
                "another process cut the file to {len} bytes, it had {allocated}"
            )));
        }
        Ok(())
    }
}
