//! One writer: an exclusive lock with the holder's process id.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::error::{Error, ErrorKind, Result};
use crate::storage::{LockAttempt, LockGuard, Storage};

const LOCK_NAME: &str = "lock";
/// The longest pause between two looks at a lock that is waited for.
const PAUSE_MAX: Duration = Duration::from_millis(5);

/// Lock a directory that others hold for short, waiting for them; fails after `wait`.
pub fn lock_within(
    storage: &dyn Storage,
    dir: &Path,
    wait: Duration,
) -> Result<Box<dyn LockGuard>> {
    let (begun, mut pause) = (Instant::now(), Duration::from_micros(50));
    loop {
        match storage.lock(dir, false) {
            Ok(LockAttempt::Held(guard)) => return Ok(guard),
            Ok(LockAttempt::Busy(_)) if begun.elapsed() < wait => {}
            Ok(LockAttempt::Busy(holder)) => {
                let message = format!("the directory was locked for {wait:?}");
                return Err(Error::new(ErrorKind::Locked, message).at(dir).with_holder(holder));
            }
            Err(e) => return Err(Error::io("lock the directory", dir, e)),
        }
        std::thread::sleep(pause);
        pause = (2 * pause).min(PAUSE_MAX);
    }
}

/// Held by the one writer of a log; released when dropped.
#[derive(Debug)]
pub struct WriterLock {
    guards: Vec<Box<dyn LockGuard>>,
}

impl WriterLock {
    /// Lock `.deedbook/lock`, creating it if it is missing.
    pub fn acquire(storage: &dyn Storage, sidecar: &Path, mode: u32) -> Result<Self> {
        let path = sidecar.join(LOCK_NAME);
        match storage.create_new(&path, mode) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
                return Err(Error::io("create the lock file", &path, e));
            }
            _ => {}
        }
        let mut lock = Self { guards: Vec::new() };
        lock.take(storage, &path, true)?;
        Ok(lock)
    }

    /// Lock the log's own file too: two directories may hold hard links to one log.
    pub fn add_log(&mut self, storage: &dyn Storage, log: &Path) -> Result<()> {
        self.take(storage, log, false)
    }

    fn take(&mut self, storage: &dyn Storage, path: &Path, sign: bool) -> Result<()> {
        match storage.lock(path, sign).map_err(|e| Error::io("lock", path, e))? {
            LockAttempt::Held(guard) => {
                self.guards.push(guard);
                Ok(())
            }
            LockAttempt::Busy(holder) => {
                let message = match holder {
                    Some(pid) if pid == std::process::id() => {
                        format!("this process ({pid}) has it open for writing already")
                    }
                    Some(pid) => format!("process {pid} has it open for writing"),
                    None => "another process has it open for writing".into(),
                };
                Err(Error::new(ErrorKind::Locked, message).at(path).with_holder(holder))
            }
        }
    }
}
