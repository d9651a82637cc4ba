//! Lines for the `log` facade. A line waits until its thread holds no lock of a log, because a
//! handler of log lines may use the same log.

use std::cell::{Cell, RefCell};
use std::fmt::Display;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use log::Level;

use crate::error::Plain;
use crate::ground::locks::{Mutex, MutexGuard, lock, try_lock};

thread_local! {
    static HOLDS: Cell<u32> = const { Cell::new(0) };
    static WAITS: Cell<bool> = const { Cell::new(false) };
    static WAITING: RefCell<Vec<(Level, String)>> = const { RefCell::new(Vec::new()) };
}

/// Log a warning for the user.
pub fn warn(line: impl Display) {
    tell(Level::Warn, &line);
}

/// Something that an operator may want to follow.
pub fn info(line: impl Display) {
    tell(Level::Info, &line);
}

fn tell(level: Level, line: &dyn Display) {
    let line = Plain(line);
    if HOLDS.get() == 0 {
        log::log!(target: "deedbook", level, "{line}");
        return;
    }
    // An ending thread has no list any more: drop the line.
    let waits = WAITING.try_with(|waiting| waiting.borrow_mut().push((level, line.to_string())));
    WAITS.set(waits.is_ok());
}

/// While a `Held` lives, the lines of the thread wait. Create a `Held` before taking a lock: Rust
/// then drops the lock first.
#[derive(Debug)]
pub struct Held(PhantomData<*const ()>);

/// Make the lines of the thread wait.
#[inline]
pub fn hold() -> Held {
    HOLDS.set(HOLDS.get() + 1);
    Held(PhantomData)
}

impl Drop for Held {
    #[inline]
    fn drop(&mut self) {
        let left = HOLDS.get() - 1;
        HOLDS.set(left);
        if left == 0 && WAITS.get() {
            tell_all();
        }
    }
}

#[cold]
fn tell_all() {
    WAITS.set(false);
    let lines = WAITING.try_with(RefCell::take).unwrap_or_default();
    for (level, line) in lines {
        log::log!(target: "deedbook", level, "{line}");
    }
}

/// A lock; log lines wait while the lock is held. Rust drops the fields in this order.
#[derive(Debug)]
pub struct Locked<'a, T> {
    guard: MutexGuard<'a, T>,
    _held: Held,
}

/// Take a lock.
#[inline]
pub fn locked<T>(mutex: &Mutex<T>) -> Locked<'_, T> {
    let held = hold();
    Locked { guard: lock(mutex), _held: held }
}

/// Take a lock if that takes no waiting.
pub fn try_locked<T>(mutex: &Mutex<T>) -> Option<Locked<'_, T>> {
    let held = hold();
    try_lock(mutex).map(|guard| Locked { guard, _held: held })
}

impl<T> Deref for Locked<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for Locked<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}
