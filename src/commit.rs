//! Group commit: one leader's fsync for all waiters, and a failure that sticks.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::error::{Durable, Error, ErrorKind, Result};

/// Serialises the syncs of one log. Positions only grow.
#[derive(Debug, Default)]
pub struct GroupCommit {
    leader: Mutex<()>,
    durable: AtomicU64,
    failed: OnceLock<String>,
}

impl GroupCommit {
    /// Everything up to `durable` is on stable storage already.
    pub fn new(durable: u64) -> Self {
        Self { durable: AtomicU64::new(durable), ..Self::default() }
    }

    /// The position up to which everything is on stable storage.
    pub fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    /// Return when everything up to `target` is durable.
    ///
    /// The first to come is the leader and calls `sync`, which must make everything appended so far
    /// durable and return that position; the others wait and mostly find their work done. If `sync`
    /// fails, or panics, this commit and all later ones fail.
    pub fn commit(&self, target: u64, sync: impl FnOnce() -> Result<u64>) -> Result<()> {
        if self.durable() >= target {
            return self.check();
        }
        let leader = self.leader.lock().unwrap_or_else(PoisonError::into_inner);
        self.check()?;
        if self.durable() >= target {
            return Ok(());
        }
        let panicking = PoisonOnPanic(self);
        let done = sync();
        std::mem::forget(panicking);
        let result = match done {
            Ok(reached) => {
                self.durable.store(reached, Ordering::Release);
                Ok(())
            }
            Err(error) => {
                self.poison(&error.to_string());
                Err(error.with_durable(Durable::Unknown))
            }
        };
        drop(leader);
        result
    }

    /// Refuse everything from now on.
    pub fn poison(&self, reason: &str) {
        let _ = self.failed.set(reason.to_string());
    }

    /// Fail if an earlier write or sync failed.
    pub fn check(&self) -> Result<()> {
        match self.failed.get() {
            None => Ok(()),
            Some(reason) => {
                let message = format!("an earlier write or sync failed, reopen to go on: {reason}");
                Err(Error::new(ErrorKind::Poisoned, message).with_durable(Durable::Unknown))
            }
        }
    }
}

/// A leader that panics must not leave waiters that believe in it.
struct PoisonOnPanic<'a>(&'a GroupCommit);

impl Drop for PoisonOnPanic<'_> {
    fn drop(&mut self) {
        self.0.poison("the thread that synced panicked");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure() -> Error {
        Error::new(ErrorKind::Io, "no")
    }

    #[test]
    fn a_failed_sync_fails_all_later_ones() {
        let commits = GroupCommit::new(0);
        commits.commit(5, || Ok(7)).unwrap();
        commits.commit(7, || panic!("already durable")).unwrap();
        assert_eq!(commits.commit(8, || Err(failure())).unwrap_err().kind(), ErrorKind::Io);
        for target in [1, 8, 9] {
            let error = commits.commit(target, || Ok(100)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Poisoned);
        }
        assert_eq!(commits.durable(), 7);
    }

    #[test]
    fn a_panicking_leader_fails_the_waiters() {
        let commits = GroupCommit::new(0);
        let leader = std::panic::AssertUnwindSafe(|| commits.commit(1, || panic!("leader")));
        assert!(std::panic::catch_unwind(leader).is_err());
        assert_eq!(commits.commit(1, || Ok(1)).unwrap_err().kind(), ErrorKind::Poisoned);
    }

    #[test]
    fn waiters_share_one_sync() {
        let commits = GroupCommit::new(0);
        let syncs = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let sync = || {
                        syncs.fetch_add(1, Ordering::Relaxed);
                        Ok(10)
                    };
                    commits.commit(10, sync).unwrap();
                });
            }
        });
        assert_eq!(syncs.load(Ordering::Relaxed), 1);
    }
}
