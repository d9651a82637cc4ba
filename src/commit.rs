//! Group commit: one leader's fsync for all waiters, and a failure that sticks.

use crate::locks::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::locks::{Condvar, Mutex, PoisonError, lock, yield_now};

use crate::error::{Durable, Error, ErrorKind, Result};

/// How often a leader lets others run before it begins without those who do not come.
const YIELDS_MAX: usize = 128;

/// Serialises the syncs of one log. Positions only grow.
#[derive(Debug, Default)]
pub struct GroupCommit {
    queue: Mutex<Queue>,
    led: Condvar,
    durable: AtomicU64,
    /// How many commits had to wait so far.
    arrived: AtomicU64,
    /// How many there will be when all whom the last sync served come again.
    expected: AtomicU64,
    failed: Mutex<Option<String>>,
    /// Held while somebody who is not the leader syncs, and may be told of a failure in its stead.
    doubt: Mutex<()>,
    /// Whether `failed` says why: every append asks.
    poisoned: AtomicBool,
}

/// Who syncs, and who waits for that.
#[derive(Debug, Default)]
struct Queue {
    /// Whether a leader is at it; the others wait for `led`.
    leading: bool,
    /// What those who wait want to be durable.
    targets: Vec<u64>,
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
        let mut queue = lock(&self.queue);
        loop {
            self.check()?;
            if self.durable() >= target {
                return Ok(());
            }
            if !queue.leading {
                break;
            }
            queue.targets.push(target);
            queue = self.led.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        queue.leading = true;
        drop(queue);
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

    /// Those whom the last sync served mostly come again at once: let them, so that this one serves
    /// them all, and not half of them in turn.
    fn let_others_come(&self) {
        for _ in 0..YIELDS_MAX {
            let expected = self.expected.load(Ordering::Relaxed);
            if self.arrived.load(Ordering::Relaxed) >= expected {
                return;
            }
            yield_now();
        }
    }

    /// Say what is durable now, before others may ask: where a change takes back some of it.
    pub fn set_durable(&self, reached: u64) {
        self.durable.store(reached, Ordering::Release);
    }

    /// Take back a write that failed with `error`: `undo` cuts it off and syncs that, or a power cut
    /// could bring back what the caller is told is not in the log. If that fails too, all is refused
    /// from now on. The system tells a failed sync only once, and here perhaps not to the leader, so
    /// nothing is acknowledged until this is settled.
    pub fn roll_back(&self, error: Error, undo: impl FnOnce() -> std::io::Result<()>) -> Error {
        let _doubt = lock(&self.doubt);
        match undo() {
            Ok(()) => error.with_durable(Durable::No),
            Err(e) => {
                self.poison(&format!("{error}, and cutting it off again failed: {e}"));
                error.with_durable(Durable::Unknown)
            }
        }
    }

    /// For a leader whose sync succeeded: fail if that of somebody else beside it failed.
    pub fn settled(&self) -> Result<()> {
        drop(lock(&self.doubt));
        self.check()
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
        let mut queue = lock(&self.commits.queue);
        let durable = self.commits.durable();
        // Who was not served waits anew, and is there already.
        let served = queue.targets.drain(..).filter(|&target| target <= durable).count() as u64;
        let arrived = self.commits.arrived.load(Ordering::Relaxed);
        self.commits.expected.store(arrived + served + 1, Ordering::Relaxed);
        queue.leading = false;
        drop(queue);
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
