//! Thousands of cases in one test: all are tried, and failures are reported by kind.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static TRYING: Cell<bool> = const { Cell::new(false) };
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
    static FAILED: RefCell<BTreeMap<String, (u64, String)>> =
        const { RefCell::new(BTreeMap::new()) };
}

/// Try one case of a kind, and note a panic.
pub fn attempt(kind: &str, case: impl FnOnce()) {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |info| match TRYING.get() {
            true => PLACE.set(info.location().map(ToString::to_string).unwrap_or_default()),
            false => usual(info),
        }));
    });
    TRYING.set(true);
    let result = catch_unwind(AssertUnwindSafe(case));
    TRYING.set(false);
    let Err(panic) = result else { return };
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
    let key = format!("{kind}, {}", PLACE.take());
    FAILED.with_borrow_mut(|failed| {
        failed.entry(key).or_insert((0, text.unwrap_or_default())).0 += 1;
    });
}

/// Panic if a case failed: with the number of failures of each kind, and the first failure.
#[track_caller]
pub fn all_passed() {
    let failed = FAILED.take();
    let lines = failed.iter().map(|(kind, (count, first))| format!("{count} x {kind}\n{first}\n"));
    let all = lines.collect::<Vec<_>>().join("\n");
    assert!(failed.is_empty(), "the cases that failed, the first of each kind:\n{all}");
}
