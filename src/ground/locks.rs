//! The locks of all code that runs concurrently: the standard library's, or the model checker's.
//!
//! `tests/models` builds the crate with `--cfg shuttle` and runs it through thousands of schedules:
//! the code that users run, except for the choices here.

use std::time::Duration;
#[cfg(not(shuttle))]
use std::time::Instant;

#[cfg(not(shuttle))]
pub use std::sync::{
    Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
    TryLockError,
};
#[cfg(not(shuttle))]
pub use std::thread::yield_now;

#[cfg(shuttle)]
pub use shuttle::sync::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
#[cfg(shuttle)]
pub use shuttle::thread::yield_now;
#[cfg(shuttle)]
pub use std::sync::{PoisonError, TryLockError};

/// Atomics, as above.
pub mod atomic {
    #[cfg(shuttle)]
    pub use shuttle::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    #[cfg(not(shuttle))]
    pub use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
}

/// How long a thread may yield.
#[derive(Debug)]
pub struct Patience {
    #[cfg(not(shuttle))]
    begun: Instant,
    #[cfg(not(shuttle))]
    wait: Duration,
    /// The model checker needs the same schedule every time, so count instead of measuring time.
    #[cfg(shuttle)]
    left: u32,
}

#[cfg(not(shuttle))]
impl Patience {
    /// From now on.
    pub fn new(wait: Duration) -> Self {
        Self { begun: Instant::now(), wait }
    }

    /// Whether the time is over.
    pub fn is_over(&mut self) -> bool {
        self.begun.elapsed() >= self.wait
    }

    /// Whether it took more than twice the time, because others had the processor.
    pub fn is_overdrawn(&self) -> bool {
        self.begun.elapsed() > 2 * self.wait
    }
}

#[cfg(shuttle)]
impl Patience {
    /// From now on.
    pub fn new(_wait: Duration) -> Self {
        Self { left: 16 }
    }

    /// Whether the wait is over.
    pub fn is_over(&mut self) -> bool {
        self.left -= u32::from(self.left > 0);
        self.left == 0
    }

    /// Never: there is no time.
    pub fn is_overdrawn(&self) -> bool {
        false
    }
}

/// Lock, even after a thread with the lock panicked. A change under a lock here is one step, or
/// else poisons the log.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lock if no other thread holds the lock.
pub fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}
