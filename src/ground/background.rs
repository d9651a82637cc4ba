//! The thread of a handle that syncs now and then.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::Duration;

use crate::ground::lines;

/// Call `sync` every `interval` until `sync` returns false, or the handle is dropped. `begun` gets
/// the thread. Closing wakes the thread, and the thread ends before its handle does.
///
/// A panic in the caller's hook or logger does not end the thread.
pub fn every<S: Send + Sync + 'static>(
    shared: &Arc<S>,
    begun: &OnceLock<Thread>,
    interval: Duration,
    sync: impl Fn(&S) -> bool + Send + 'static,
) -> io::Result<()> {
    let weak = Arc::downgrade(shared);
    let work = move || {
        loop {
            std::thread::park_timeout(interval);
            let Some(shared) = weak.upgrade() else { return };
            match seeded!(catch_unwind(AssertUnwindSafe(|| sync(&shared))), "hook-ends-syncs" => Ok(sync(&shared)))
            {
                Ok(true) => {}
                Ok(false) => return,
                Err(_) => warn(),
            }
        }
    };
    let thread = std::thread::Builder::new().name("deedbook-sync".into()).spawn(work)?;
    let _ = begun.set(thread.thread().clone());
    Ok(())
}

fn warn() {
    // The logger itself may panic.
    let logged = catch_unwind(|| {
        lines::warn(format_args!(
            "a hook or a logger panicked in the thread of syncs, which goes on"
        ));
    });
    drop(logged);
}
