//! The real file system: names, directories and locks. Only this file, `file.rs` and `regular.rs` touch `std::fs`.

#[cfg(target_os = "linux")]
mod bus_error;
mod file;
#[cfg(target_os = "linux")]
mod mapped_reads;
#[cfg(target_os = "linux")]
mod mapped_writes;
#[cfg(target_os = "linux")]
mod prealloc;
mod regular;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

#[cfg(unix)]
use crate::storage::fork::NotInherited;
use crate::storage::{
    Access, File, FileId, HeldDir, LockAttempt, LockGuard, Storage, fork_generation,
};
use file::{DiskFile, id_of};
#[cfg(target_os = "linux")]
use mapped_reads::MappedFile;
#[cfg(feature = "nostr")]
pub use regular::is_own;
pub use regular::{SMALL_BYTES_MAX, is_directory, is_regular, open_regular, read_small};
use regular::{opened, options};

/// Files locked by this process: on some systems a second lock by one process succeeds. Each entry
/// has the fork generation, because a child inherits the set but holds none of the locks.
static LOCKED_HERE: Mutex<BTreeSet<(u64, FileId)>> = Mutex::new(BTreeSet::new());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The file system of the operating system.
///
/// On Linux, small appends go through a shared map of the file, several times quicker than system
/// calls. If another process cuts the file, Linux sends SIGBUS. A handler, installed with the first
/// map, makes the append return an error. A program that needs SIGBUS for itself (with a handler
/// installed later, like Python's `faulthandler`) turns the maps off: by
/// [`Disk::without_mapped_writes`], or for every disk of the process by the environment variable
/// `DEEDBOOK_MAPPED_WRITES=0`. The library then installs no handler.
#[derive(Clone, Copy, Debug)]
pub struct Disk {
    mapped_writes: bool,
}

/// The disk with default settings.
#[allow(non_upper_case_globals)]
#[doc(hidden)]
pub const Disk: Disk = Disk { mapped_writes: true };

impl Default for Disk {
    fn default() -> Self {
        Disk
    }
}

impl Disk {
    /// Give a file another name.
    pub fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    /// The disk, written by system calls only.
    pub fn without_mapped_writes() -> Self {
        Self { mapped_writes: false }
    }

    fn file(self, file: fs::File) -> Box<dyn File> {
        Box::new(DiskFile::new(file, self.mapped_writes && mapped_writes_allowed()))
    }
}

/// The environment's setting at the time when the process opened its first file.
fn mapped_writes_allowed() -> bool {
    static ALLOWED: LazyLock<bool> =
        LazyLock::new(|| std::env::var_os("DEEDBOOK_MAPPED_WRITES").is_none_or(|set| set != "0"));
    *ALLOWED
}

/// The most that is read of a signed file.
const SIGNATURE_BYTES_MAX: u64 = 32;

/// The lock of a directory on a system that cannot lock directories.
#[derive(Debug)]
struct NoLock;

#[derive(Debug)]
struct DiskLock {
    /// A forked child has closed its copy and leaks this value.
    file: ManuallyDrop<fs::File>,
    #[cfg(unix)]
    not_inherited: Option<NotInherited>,
    /// The entry in [`LOCKED_HERE`].
    key: (u64, FileId),
    signed: bool,
}

/// The process id that a signed file names.
fn signature(file: &fs::File) -> Option<u32> {
    let mut text = Vec::new();
    let mut bytes = io::Read::take(file, SIGNATURE_BYTES_MAX);
    io::Read::read_to_end(&mut bytes, &mut text).ok()?;
    std::str::from_utf8(&text).ok()?.trim().parse().ok()
}

fn open_dir(dir: &Path) -> io::Result<fs::File> {
    fs::File::open(if dir.as_os_str().is_empty() { Path::new(".") } else { dir })
}

impl HeldDir for fs::File {
    fn sync(&self) -> io::Result<()> {
        self.sync_all()
    }
}

impl Storage for Disk {
    fn absolute(&self, path: &Path) -> io::Result<PathBuf> {
        std::path::absolute(path)
    }

    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        fs::canonicalize(path)
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Box<dyn File>> {
        Ok(self.file(opened(path, options(access))?))
    }

    #[cfg(target_os = "linux")]
    fn open_mapped(&self, path: &Path, access: Access) -> io::Result<Box<dyn File>> {
        let file = opened(path, options(access))?;
        Ok(match mapped_reads::map(&file) {
            Some(map) => Box::new(MappedFile::new(map, DiskFile::new(file, false))),
            None => self.file(file),
        })
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
        Ok(self.file(opened(path, options)?))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.create_dir_as(path, 0o700)
    }

    fn create_dir_as(&self, path: &Path, mode: u32) -> io::Result<()> {
        #[cfg_attr(not(unix), allow(unused_mut))]
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, mode);
        #[cfg(not(unix))]
        let _ = mode;
        match builder.create(path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            done => done,
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        // The system would replace an empty directory.
        if from.is_dir() && (to.exists() || to.is_symlink()) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        fs::remove_dir(dir)
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

    #[cfg(unix)]
    fn mode(&self, path: &Path) -> io::Result<Option<u32>> {
        use std::os::unix::fs::PermissionsExt;
        Ok(Some(fs::symlink_metadata(path)?.permissions().mode() & 0o7777))
    }

    #[cfg(unix)]
    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        // Windows has no call to sync a directory; NTFS journals its directories.
        if cfg!(unix) {
            open_dir(dir)?.sync_all()?;
        }
        Ok(())
    }

    fn hold_dir(&self, dir: &Path) -> io::Result<Option<Box<dyn HeldDir>>> {
        Ok(if cfg!(unix) { Some(Box::new(open_dir(dir)?)) } else { None })
    }

    fn lock(&self, path: &Path, sign: bool) -> io::Result<LockAttempt> {
        let dir = !sign && path.is_dir();
        if dir && !cfg!(unix) {
            return Ok(LockAttempt::Held(Box::new(NoLock)));
        }
        // A whole-file lock on Windows would keep readers out, so only the signed file is locked.
        if !sign && !cfg!(unix) {
            let file = opened(path, options(Access::Read))?;
            let (key, file) = ((fork_generation(), FileId::default()), ManuallyDrop::new(file));
            return Ok(LockAttempt::Held(Box::new(DiskLock {
                #[cfg(unix)]
                not_inherited: None,
                file,
                key,
                signed: false,
            })));
        }
        let file = match dir {
            // Follow links, as the opening of every file in the directory does: one directory has
            // one lock, under any of its names.
            true => fs::File::open(path)?,
            false => opened(path, options(if sign { Access::Write } else { Access::Read }))?,
        };
        let key = (fork_generation(), id_of(&file)?);
        if !lock(&LOCKED_HERE).insert(key) {
            return Ok(LockAttempt::Busy(Some(std::process::id())));
        }
        // Register the descriptor before locking: a child forked in between would keep the lock.
        #[cfg(unix)]
        let not_inherited = Some(NotInherited::new(&file));
        let forget = || lock(&LOCKED_HERE).remove(&key);
        match file.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                forget();
                // Without a signature the file is the log.
                return Ok(LockAttempt::Busy(if sign { signature(&file) } else { None }));
            }
            Err(fs::TryLockError::Error(e)) => {
                forget();
                return Err(e);
            }
        }
        let guard = DiskLock {
            #[cfg(unix)]
            not_inherited,
            file: ManuallyDrop::new(file),
            key,
            signed: sign,
        };
        if sign {
            guard.file.set_len(0)?;
            io::Write::write_all(
                &mut &*guard.file,
                format!("{}\n", std::process::id()).as_bytes(),
            )?;
        }
        Ok(LockAttempt::Held(Box::new(guard)))
    }
}

impl LockGuard for DiskLock {}

impl LockGuard for NoLock {}

impl Drop for DiskLock {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        if self.key.0 != fork_generation() {
            #[cfg(unix)]
            std::mem::forget(self.not_inherited.take());
            return;
        }
        lock(&LOCKED_HERE).remove(&self.key);
        if self.signed {
            // The name of a former holder would mislead; the lock itself ends with the file.
            let _ = self.file.set_len(0);
        }
        let _ = self.file.unlock();
        #[cfg(unix)]
        drop(self.not_inherited.take());
        // SAFETY: nobody uses the file afterwards.
        unsafe { ManuallyDrop::drop(&mut self.file) };
    }
}
