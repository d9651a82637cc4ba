//! Group commit: one leader's fsync for all waiters, and a failure that sticks.

use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Condvar, Mutex, MutexGuard, PoisonError, lock, yield_now};

use crate::error::{Durable, Error, ErrorKind, Result};

/// How often a leader lets others come, as long as more do.
const YIELDS_MAX: usize = 32;

/// Serialises the syncs of one log. Positions only grow.
#[derive(Debug, Default)]
pub struct GroupCommit {
    /// Whether a leader is at it; the others wait for `led`.
    leading: Mutex<bool>,
    led: Condvar,
    durable: AtomicU64,
    /// How many commits had to wait so far.
    arrived: AtomicU64,
    failed: Mutex<Option<String>>,
    /// Whether `failed` says why: every append asks.
    poisoned: AtomicBool,
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
        self.arrived.fetch_add(1, Ordering::Relaxed);
        let mut leading = self.leading();
        loop {
            self.check()?;
            if self.durable() >= target {
                return Ok(());
            }
            if !*leading {
                break;
            }
            leading = self.led.wait(leading).unwrap_or_else(PoisonError::into_inner);
        }
        *leading = true;
        drop(leading);
        let mut leader = Leader { commits: self, panicking: true };
        self.let_others_come();
        let done = sync();
        leader.panicking = false;
        match done {
            Ok(reached) => {
                self.durable.store(reached, Ordering::Release);
                Ok(())
            }
            Err(error) => {
                self.poison(&error.to_string());
                Err(error.with_durable(Durable::Unknown))
            }
        }
    }

    /// Those whom the last sync woke append first, so that this one serves them, too.
    fn let_others_come(&self) {
        for _ in 0..YIELDS_MAX {
            let arrived = self.arrived.load(Ordering::Relaxed);
            yield_now();
            if self.arrived.load(Ordering::Relaxed) == arrived {
                return;
            }
        }
    }

    fn leading(&self) -> MutexGuard<'_, bool> {
        lock(&self.leading)
    }

    /// Refuse everything from now on.
    pub fn poison(&self, reason: &str) {
        lock(&self.failed).get_or_insert_with(|| reason.to_string());
        self.poisoned.store(true, Ordering::Release);
    }

    /// Fail if an earlier write or sync failed.
    pub fn check(&self) -> Result<()> {
        if !self.poisoned.load(Ordering::Acquire) {
            return Ok(());
        }
        match &*lock(&self.failed) {
            None => Ok(()),
            Some(reason) => {
                let message = format!("an earlier write or sync failed, reopen to go on: {reason}");
                Err(Error::new(ErrorKind::Poisoned, message).with_durable(Durable::Unknown))
            }
        }
    }
}

/// Lets the waiters look, whatever became of the sync. A leader that panics must not leave waiters
/// that believe in it.
struct Leader<'a> {
    commits: &'a GroupCommit,
    panicking: bool,
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        if self.panicking {
            self.commits.poison("the thread that synced panicked");
        }
        *self.commits.leading() = false;
        self.commits.led.notify_all();
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
