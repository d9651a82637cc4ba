//! The locks of whatever runs concurrently: the standard library's, or those of the model checker.
//!
//! `tests/models` builds the crate with `--cfg shuttle`, and the very code that users run is walked
//! through thousands of schedules.

#[cfg(not(shuttle))]
pub use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
#[cfg(not(shuttle))]
pub use std::thread::yield_now;

#[cfg(shuttle)]
pub use shuttle::sync::{Condvar, Mutex, MutexGuard};
#[cfg(shuttle)]
pub use shuttle::thread::yield_now;
#[cfg(shuttle)]
pub use std::sync::PoisonError;

/// Atomics, as above.
pub mod atomic {
    #[cfg(shuttle)]
    pub use shuttle::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    #[cfg(not(shuttle))]
    pub use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
}

/// Lock, whatever became of a thread that held it: what the locks here guard is changed in one
/// step, or poisons its log by itself.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
