//! Group commit: one leader's fsync for all waiters, and a failure that sticks.

use std::time::{Duration, Instant};

use crate::ground::locks::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::ground::locks::{Condvar, Mutex, Patience, PoisonError, lock, yield_now};

use crate::error::{Durable, Error, ErrorKind, Result};

/// A leader waits for others at most half the time of the last sync. Threads just woken need some
/// 50 us to commit again, half of the quickest syncs.
const WAIT_DIVISOR: u32 = 2;
/// The upper limit of the wait. A thread without other work commits again within this time. Half of
/// a long sync is enough time for busy threads, too, at the price of latency.
///
/// Medians on two busy cores, so only rough, compared with leaders that never wait
/// (`benches/group_commit.rs`). Threads that only commit: 128 yields +28 to +65 %, by time +30 to
/// +68 %. 4 threads that work 0.5 to 1.5 ms between commits: 128 yields -5 to -16 % and median
/// latency +20 to +60 %, by time -4 to -9 % and +5 to +27 %, with this limit -7 % and +6 %.
const WAIT_MAX: Duration = Duration::from_micros(250);
/// After waits that did not pay, at most this many leaders skip the wait before one tries again.
const SKIPS_MAX: u32 = 64;

/// Serialises the syncs of one log. Positions only grow.
#[derive(Debug, Default)]
pub struct GroupCommit {
    queue: Mutex<Queue>,
    led: Condvar,
    durable: AtomicU64,
    /// How many commits had to wait so far.
    arrived: AtomicU64,
    /// How many there will be when all that the last sync served come again.
    expected: AtomicU64,
    failed: Mutex<Option<String>>,
    /// Held while a thread other than the leader fsyncs (rolling back a write): the kernel may report
    /// an error to that thread instead of the leader.
    rollback: Mutex<()>,
    /// Whether `failed` says why: every append asks.
    poisoned: AtomicBool,
}

/// The leader, if there is one, and the waiting commits.
#[derive(Debug, Default)]
struct Queue {
    /// Whether a leader is at it; the others wait for `led`.
    leading: bool,
    /// The position that each waiter wants durable.
    targets: Vec<u64>,
    pace: Pace,
}

/// Whether it pays to wait for others, learned from the syncs before.
#[derive(Debug)]
struct Pace {
    last_sync: Duration,
    wait_max: Duration,
    /// How many waits in a row did not pay.
    misses: u32,
    /// How many leaders begin at once because of that.
    skips: u32,
}

impl Default for Pace {
    fn default() -> Self {
        Self { last_sync: Duration::ZERO, wait_max: WAIT_MAX, misses: 0, skips: 0 }
    }
}

impl Pace {
    /// How long the next leader may wait.
    fn wait(&mut self) -> Option<Duration> {
        if self.skips > 0 {
            self.skips -= 1;
            return None;
        }
        Some((self.last_sync / WAIT_DIVISOR).min(self.wait_max))
    }

    fn learn(&mut self, paid: Option<bool>, sync: Option<Duration>) {
        self.last_sync = sync.unwrap_or(self.last_sync);
        match paid {
            None => {}
            Some(true) => self.misses = 0,
            Some(false) => {
                self.misses = self.misses.saturating_add(1);
                self.skips = 2u32.saturating_pow(self.misses).min(SKIPS_MAX);
            }
        }
    }
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
    /// The first caller leads and calls `sync`, which must make every byte appended so far durable
    /// and return the position reached. The other callers wait, and mostly find their work done. If
    /// `sync` fails or panics, this commit and all later ones fail.
    pub fn commit(&self, target: u64, sync: impl FnOnce() -> Result<u64>) -> Result<()> {
        if self.durable() >= target {
            return self.check();
        }
        self.arrived.fetch_add(1, Ordering::Relaxed);
        self.lead(target, true, sync)
    }

    /// Call `change` while no other thread syncs, as soon as the present leader is done: for
    /// closing and truncation. `change` returns the position up to which everything is then
    /// durable.
    pub fn exclusive(&self, change: impl FnOnce() -> Result<u64>) -> Result<()> {
        self.lead(u64::MAX, false, change)
    }

    fn lead(&self, target: u64, waits: bool, sync: impl FnOnce() -> Result<u64>) -> Result<()> {
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
        let wait = if waits { queue.pace.wait() } else { None };
        drop(queue);
        let mut leader =
            Leader { commits: self, comes_again: waits, paid: None, took: None, panicking: true };
        leader.paid = wait.and_then(|wait| self.let_others_come(wait));
        let begun = Instant::now();
        let done = sync();
        leader.took = Some(begun.elapsed()).filter(|_| waits);
        leader.panicking = false;
        match done {
            Ok(reached) => {
                self.durable.store(reached, Ordering::Release);
                Ok(())
            }
            Err(error) => {
                // Each later error names the log itself.
                self.poison(error.message());
                Err(error.with_durable(Durable::Unknown))
            }
        }
    }

    /// Give the threads of the last sync time to commit again. Most do so at once, and this sync
    /// then serves all of them, instead of each half in turn. Returns whether most came in time, if
    /// there was any thread to wait for.
    fn let_others_come(&self, wait: Duration) -> Option<bool> {
        let expected = self.expected.load(Ordering::Relaxed);
        let missing =
            |arrived: &AtomicU64| expected.saturating_sub(arrived.load(Ordering::Relaxed));
        let begun = missing(&self.arrived);
        if begun == 0 {
            return None;
        }
        let mut patience = Patience::new(wait);
        let mut left = begun;
        while left > 0 && !patience.is_over() {
            yield_now();
            left = missing(&self.arrived);
        }
        Some(has_paid(begun, left, patience.is_overdrawn()))
    }

    /// Lower the durable position, before a waiter may ask: for a change that takes back a part.
    pub fn set_durable(&self, reached: u64) {
        self.durable.store(reached, Ordering::Release);
    }

    /// Take back a write that failed with `error`. `undo` cuts the write off and syncs the cut:
    /// otherwise a power cut could bring back bytes that the caller takes for absent. If `undo`
    /// fails, too, the log refuses everything from now on. Linux reports a failed sync only once,
    /// and here perhaps not to the leader, so nobody acknowledges anything until `undo` has
    /// returned.
    pub fn roll_back(&self, error: Error, undo: impl FnOnce() -> std::io::Result<()>) -> Error {
        let _rollback = lock(&self.rollback);
        match undo() {
            Ok(()) => error.with_durable(Durable::No),
            Err(e) => {
                self.poison(&format!("{}, and cutting it off again failed: {e}", error.message()));
                error.with_durable(Durable::Unknown)
            }
        }
    }

    /// For a leader whose sync succeeded: fail if the concurrent sync of a rollback failed.
    pub fn check_rollback(&self) -> Result<()> {
        drop(lock(&self.rollback));
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

/// Whether waiting for the `missing` commits paid: at least half came, so at most half are `left`.
/// The wait did not pay if a yield took long enough for the commits to come without a wait.
fn has_paid(missing: u64, left: u64, overdrawn: bool) -> bool {
    left <= missing / 2 && !overdrawn
}

/// Wakes the waiters when dropped, also after a panic: no waiter may trust in a dead leader.
struct Leader<'a> {
    commits: &'a GroupCommit,
    /// Whether the leader commits; a commit is likely to be followed by another.
    comes_again: bool,
    /// Whether waiting for others paid.
    paid: Option<bool>,
    /// How long its sync took.
    took: Option<Duration>,
    panicking: bool,
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        if self.panicking {
            self.commits.poison("the thread that synced panicked");
        }
        let mut queue = lock(&self.commits.queue);
        let durable = self.commits.durable();
        // A commit that was not served waits again, and is counted already.
        let served = queue.targets.drain(..).filter(|&target| target <= durable).count() as u64;
        let arrived = self.commits.arrived.load(Ordering::Relaxed);
        let expected = arrived + served + u64::from(self.comes_again);
        self.commits.expected.store(expected, Ordering::Relaxed);
        queue.pace.learn(self.paid, self.took);
        queue.leading = false;
        drop(queue);
        self.commits.led.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Much longer than a test may take.
    const LONG: Duration = Duration::from_secs(3600);
    const HANGS: Duration = Duration::from_secs(20);

    fn failure() -> Error {
        Error::new(ErrorKind::Io, "no")
    }

    // Promise: fsync-fails.
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

    // Promise: panic.
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

    /// A leader counted 128 yields. On a busy machine 128 yields took milliseconds; on an idle
    /// machine they ended before the expected threads came.
    #[test]
    fn a_leader_waits_for_recently_served_threads() {
        let commits = GroupCommit::new(0);
        lock(&commits.queue).pace = Pace { last_sync: LONG, wait_max: LONG, ..Pace::default() };
        commits.expected.store(2, Ordering::Relaxed);
        let (syncs, appended) = (AtomicU64::new(0), AtomicU64::new(1));
        let sync = || {
            syncs.fetch_add(1, Ordering::Relaxed);
            Ok(appended.load(Ordering::Relaxed))
        };
        std::thread::scope(|scope| {
            scope.spawn(|| commits.commit(1, sync).unwrap());
            while !lock(&commits.queue).leading {
                yield_now();
            }
            (0..1000).for_each(|_| yield_now());
            appended.store(2, Ordering::Relaxed);
            commits.commit(2, sync).unwrap();
        });
        assert_eq!(syncs.load(Ordering::Relaxed), 1);
        assert_eq!(lock(&commits.queue).pace.skips, 0, "it paid");
    }

    #[test]
    fn waiting_pays_if_half_of_the_missing_come() {
        for (missing, left, paid) in [(1, 0, true), (1, 1, false), (4, 2, true), (4, 3, false)] {
            assert_eq!(has_paid(missing, left, false), paid, "{left} of {missing} left");
            assert!(!has_paid(missing, left, true));
        }
        let commits = GroupCommit::new(0);
        assert_eq!(commits.let_others_come(LONG), None, "nobody is missing");
        commits.expected.store(2, Ordering::Relaxed);
        let (wait, begun) = (Duration::from_millis(20), Instant::now());
        assert_eq!(commits.let_others_come(wait), Some(false), "nobody comes");
        assert!(begun.elapsed() >= wait);
    }

    /// A served commit comes again, and the leader's does, too. An unserved commit is already in
    /// the queue.
    #[test]
    fn a_leader_foretells_who_comes_again() {
        for (comes_again, expected) in [(true, 4 + 2 + 1), (false, 4 + 2)] {
            let commits = GroupCommit::new(3);
            commits.arrived.store(4, Ordering::Relaxed);
            lock(&commits.queue).targets = vec![1, 3, 5];
            let took = Some(LONG);
            drop(Leader { commits: &commits, comes_again, paid: None, took, panicking: false });
            assert_eq!(commits.expected.load(Ordering::Relaxed), expected);
            assert!(lock(&commits.queue).targets.is_empty());
            assert_eq!(lock(&commits.queue).pace.last_sync, LONG);
        }
    }

    #[test]
    fn a_change_reports_durability_before_others_ask() {
        let commits = GroupCommit::new(9);
        commits.set_durable(4);
        assert_eq!(commits.durable(), 4);
    }

    /// Closing and truncation waited for commits that could no longer come.
    #[test]
    fn an_exclusive_change_waits_for_no_commits() {
        let commits = std::sync::Arc::new(GroupCommit::new(0));
        lock(&commits.queue).pace = Pace { last_sync: LONG, wait_max: LONG, ..Pace::default() };
        commits.expected.store(2, Ordering::Relaxed);
        let (done, wait) = mpsc::channel();
        std::thread::spawn(move || {
            commits.exclusive(|| Ok(3)).unwrap();
            done.send(commits.durable()).unwrap();
        });
        assert_eq!(wait.recv_timeout(HANGS), Ok(3));
    }

    /// The leader waited each time for four threads with work between their commits, and the four
    /// never came in time.
    #[test]
    fn a_leader_stops_waiting_for_absent_threads() {
        let mut pace = Pace { wait_max: LONG, ..Pace::default() };
        let mut waits = 0;
        for _ in 0..1000 {
            let wait = pace.wait();
            assert!(wait.is_none_or(|wait| wait == pace.last_sync / WAIT_DIVISOR));
            waits += u32::from(wait.is_some());
            pace.learn(wait.map(|_| false), Some(LONG));
        }
        assert_eq!(waits, 20);
        while pace.wait().is_none() {}
        pace.learn(Some(true), Some(LONG));
        assert_eq!(pace.wait(), Some(LONG / WAIT_DIVISOR));
        assert_eq!(Pace { last_sync: LONG, ..Pace::default() }.wait(), Some(WAIT_MAX));
    }

    /// Linux reports a failed fsync once: here to the thread that rolled a write back, while the
    /// leader's own fsync of the same file succeeded. With the lock dropped at once, the leader
    /// acknowledged lost records.
    #[test]
    fn a_rollback_acknowledges_nothing_meanwhile() {
        let commits = GroupCommit::new(0);
        let ((began, has_begun), (acked, is_acked)) = (mpsc::channel(), mpsc::channel());
        let (report, reported) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let commits = &commits;
            scope.spawn(move || {
                let error = commits.roll_back(failure(), || {
                    began.send(()).unwrap();
                    reported.recv().unwrap();
                    Err(std::io::Error::other("the fsync failed"))
                });
                assert_eq!(error.durable(), Some(Durable::Unknown));
            });
            has_begun.recv_timeout(HANGS).unwrap();
            scope.spawn(move || {
                acked.send(commits.commit(1, || commits.check_rollback().map(|()| 1))).unwrap();
            });
            // Time for a leader that does not wait.
            let early = is_acked.recv_timeout(Duration::from_millis(100));
            report.send(()).unwrap();
            let acknowledged = early.or_else(|_| is_acked.recv_timeout(HANGS)).unwrap();
            assert_eq!(acknowledged.unwrap_err().kind(), ErrorKind::Poisoned);
        });
    }
}
