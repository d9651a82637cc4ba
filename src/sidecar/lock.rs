//! One writer: an exclusive lock with the holder's process id.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fmt, io};

use super::dir::PRIVATE_MODE;
use crate::error::{Error, ErrorKind, Result};
use crate::ground::interrupt::Check;
use crate::storage::{Access, LockAttempt, LockGuard, Storage};

/// The file that is locked.
pub const LOCK_NAME: &str = "lock";
/// The advice for a log that another process writes.
const ONE_WRITER: &str =
    "a log has one writer: wait for it with a lock timeout, or open the log for reading";
/// The advice if this process has the log open for writing.
const CLOSE_FIRST: &str = "a log has one writer: close it first, or open the log for reading";
/// The longest pause between two looks at a lock that is waited for.
const PAUSE_MAX: Duration = Duration::from_millis(5);

/// How long opening for writing waits for the lock of another writer. By default not at all: a log
/// that is open for writing is refused at once.
#[derive(Clone, Default)]
pub struct LockTimeout {
    limit: Duration,
    check: Option<Arc<Check>>,
}

impl LockTimeout {
    /// Call `check` now and then. An error of `check` ends the wait, and also an opening that reads
    /// much of a log.
    #[must_use]
    pub fn checking(self, check: impl Fn() -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self { check: Some(Arc::new(check)), ..self }
    }

    /// The function, for other work than the wait.
    pub(crate) fn check(&self) -> Option<&Arc<Check>> {
        self.check.as_ref()
    }

    /// The remaining time.
    pub(crate) fn less(&self, spent: Duration) -> Self {
        Self { limit: self.limit.saturating_sub(spent), check: self.check.clone() }
    }

    fn lock(
        &self,
        begun: Instant,
        storage: &dyn Storage,
        path: &Path,
        sign: bool,
    ) -> io::Result<LockAttempt> {
        let mut pause = Duration::from_micros(50);
        loop {
            match storage.lock(path, sign)? {
                LockAttempt::Busy(_) if begun.elapsed() < self.limit => {}
                tried => return Ok(tried),
            }
            if let Some(check) = &self.check {
                check()?;
            }
            std::thread::sleep(pause);
            pause = (2 * pause).min(PAUSE_MAX);
        }
    }
}

impl From<Duration> for LockTimeout {
    fn from(limit: Duration) -> Self {
        Self { limit, check: None }
    }
}

impl fmt::Debug for LockTimeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.limit.fmt(f)
    }
}

/// Whether a file has hard links elsewhere.
fn has_other_names(storage: &dyn Storage, log: &Path) -> io::Result<bool> {
    match storage.open(log, Access::Read) {
        // A directory.
        Err(e) if e.kind() == io::ErrorKind::InvalidInput => Ok(false),
        file => Ok(file?.names()? > 1),
    }
}

/// Lock a directory that others hold only briefly. Waits; fails after `wait`.
pub fn lock_within(
    storage: &dyn Storage,
    dir: &Path,
    wait: Duration,
) -> Result<Box<dyn LockGuard>> {
    match LockTimeout::from(wait).lock(Instant::now(), storage, dir, false) {
        Ok(LockAttempt::Held(guard)) => Ok(guard),
        Ok(LockAttempt::Busy(holder)) => {
            let message = format!("the directory was locked for {wait:?}");
            Err(Error::new(ErrorKind::Locked, message).at(dir).with_holder(holder))
        }
        Err(e) => Err(Error::io("lock the directory", dir, e)),
    }
}

/// Held by the one writer of a log; released when dropped.
#[derive(Debug)]
pub struct WriterLock {
    guards: Vec<Box<dyn LockGuard>>,
    timeout: LockTimeout,
    /// The timeout is that of all locks together.
    begun: Instant,
    /// Whether there was no lock file.
    is_new: bool,
    has_log: bool,
}

impl WriterLock {
    /// Lock `.deedbook/lock`, creating the file if missing, in a place without a log.
    pub fn of_sidecar(
        storage: &dyn Storage,
        sidecar: &Path,
        timeout: &LockTimeout,
    ) -> Result<Self> {
        let (guards, timeout, begun) = (Vec::new(), timeout.clone(), Instant::now());
        let mut lock = Self { guards, timeout, begun, is_new: false, has_log: false };
        lock.take_sidecar(storage, sidecar)?;
        Ok(lock)
    }

    /// Lock `.deedbook/lock`, creating the file if missing, and the log itself, its file or
    /// directory. Deleting the sidecar deletes the lock file, and two directories may hold hard
    /// links to one log.
    ///
    /// A program that can read a log can lock the log, and must not keep a writer out. So the log's
    /// own lock decides only if a writer may hold it without the lock file: if the lock file was
    /// missing, or the log has several names. Nobody creates the lock file without the log's own
    /// lock.
    pub fn acquire(
        storage: &dyn Storage,
        sidecar: &Path,
        log: &Path,
        timeout: &LockTimeout,
    ) -> Result<Self> {
        let (guards, timeout, begun) = (Vec::new(), timeout.clone(), Instant::now());
        let opened = storage.open(&sidecar.join(LOCK_NAME), Access::Read);
        let is_new = opened.is_err_and(|e| e.kind() == io::ErrorKind::NotFound);
        let mut lock = Self { guards, timeout, begun, is_new, has_log: false };
        if is_new {
            lock.add_log(storage, log)?;
        }
        lock.take_sidecar(storage, sidecar)?;
        lock.add_log(storage, log)?;
        Ok(lock)
    }

    /// Lock the log itself, if it exists and is not locked yet.
    pub fn add_log(&mut self, storage: &dyn Storage, log: &Path) -> Result<()> {
        if self.has_log {
            return Ok(());
        }
        let fail = |e| Error::io("lock", log, e);
        let tried = match storage.lock(log, false) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            tried => tried.map_err(fail)?,
        };
        self.has_log = match tried {
            LockAttempt::Held(guard) => {
                self.guards.push(guard);
                true
            }
            LockAttempt::Busy(holder) => {
                let is_ours = holder == Some(std::process::id());
                if self.is_new || is_ours || has_other_names(storage, log).map_err(fail)? {
                    self.take(storage, log, false)?;
                }
                true
            }
        };
        Ok(())
    }

    fn take_sidecar(&mut self, storage: &dyn Storage, sidecar: &Path) -> Result<()> {
        let path = sidecar.join(LOCK_NAME);
        match storage.create_new(&path, PRIVATE_MODE) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
                return Err(Error::io("create the lock file", &path, e));
            }
            _ => {}
        }
        self.take(storage, &path, true)
    }

    fn take(&mut self, storage: &dyn Storage, path: &Path, sign: bool) -> Result<()> {
        let tried = self.timeout.lock(self.begun, storage, path, sign);
        match tried.map_err(|e| Error::io("lock", path, e))? {
            LockAttempt::Held(guard) => {
                self.guards.push(guard);
                Ok(())
            }
            LockAttempt::Busy(holder) => {
                let mut message = match holder {
                    Some(pid) if pid == std::process::id() => {
                        format!("this process ({pid}) has it open for writing already")
                    }
                    Some(pid) => format!("process {pid} has it open for writing"),
                    None => "another process has it open for writing".into(),
                };
                if !self.timeout.limit.is_zero() {
                    message += &format!("; waited {:?}", self.timeout.limit);
                }
                let is_own = holder == Some(std::process::id());
                let advice = if is_own { CLOSE_FIRST } else { ONE_WRITER };
                let error = Error::new(ErrorKind::Locked, message).with_advice(advice);
                Err(error.at(path).with_holder(holder))
            }
        }
    }
}
