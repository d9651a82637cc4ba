//! A test that waits forever fails.

use std::panic::resume_unwind;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::Builder;
use std::time::Duration;

use crate::support::report;

/// Run a test, which fails after `DEEDBOOK_TEST_SECONDS` (default 1800), for example because a thread never wakes up or
/// a lock is never released. A hanging thread ends with the test binary.
pub fn within(test: impl FnOnce() + Send + 'static) {
    let seconds = report::number("DEEDBOOK_TEST_SECONDS", 1800);
    let (done, is_done) = channel();
    let name = std::thread::current().name().unwrap_or("test").to_string();
    let run = move || {
        test();
        let _ = done.send(());
    };
    let thread = Builder::new().name(name).spawn(run).expect("a thread can be started");
    match is_done.recv_timeout(Duration::from_secs(seconds)) {
        Err(RecvTimeoutError::Timeout) => panic!("not done after {seconds} s: it hangs"),
        // Done, or the panic dropped the sender.
        Ok(()) | Err(RecvTimeoutError::Disconnected) => {
            if let Err(panic) = thread.join() {
                resume_unwind(panic);
            }
        }
    }
}
