//! Threads that share a log.

use deedbook::nostr::wal::{Entry, WalOptions};

use crate::support::prelude::*;

/// A thread asked for a sync while the append of another one finished the newest file. It found that file
/// closed, and its commit failed, though all was durable.
#[test]
fn sync_survives_another_threads_new_file() {
    let options = WalOptions::new().segment_bytes(100).small(true);
    let wal = options.storage(Arc::new(Memory::new())).open("/wal", Mode::Append).unwrap();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                while !is_done.load(Ordering::Acquire) {
                    let durable = wal.next_lsn();
                    wal.sync().unwrap();
                    assert!(wal.durable().unwrap() >= Some(durable));
                }
            });
        }
        // Each has a file of its own.
        let mut lsns = 0..2_000;
        let appended =
            lsns.try_for_each(|_| wal.append(&Entry::Insert { record: &[1; 80] }, 7).map(drop));
        is_done.store(true, Ordering::Release);
        appended.unwrap();
    });
}
