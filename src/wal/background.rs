//! The thread behind `interval`: nothing stays unsynced longer, even if no append follows.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::Shared;
use crate::locks::atomic::Ordering;

/// Sync every `interval` until the log is closed or dropped.
pub fn start(shared: &Arc<Shared>, interval: Duration) -> std::io::Result<()> {
    let weak = Arc::downgrade(shared);
    let name = "deedbook-sync".to_string();
    let thread = std::thread::Builder::new().name(name).spawn(move || run(&weak, interval))?;
    // Closing wakes it, so that no thread outlives its log.
    let _ = shared.background.set(thread.thread().clone());
    Ok(())
}

fn run(weak: &Weak<Shared>, interval: Duration) {
    loop {
        std::thread::park_timeout(interval);
        let Some(shared) = weak.upgrade() else { return };
        if shared.closed.load(Ordering::Acquire) {
            return;
        }
        let end = shared.state().tip.end;
        // A failure poisons the handle, so the next append tells it.
        if end > shared.commits.durable() && shared.sync_to(end).is_err() {
            return;
        }
    }
}
