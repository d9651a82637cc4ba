//! What a salvage takes from the write-ahead log where segments are damaged.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

use deedbook::nostr::{Event, salvage};
use deedbook::storage::{Access, Storage};

use crate::rescue::{COPY_DIR, PAGE, segment};
use crate::support::{event, in_memory, open};
use crate::watch::{Seen, watched};
use crate::world::DIR;

/// All events of a file of the log, which may be a gibibyte long, were in memory before the first was
/// appended.
#[test]
fn a_salvage_appends_the_events_of_the_log_while_it_reads_it() {
    let (memory, options) = in_memory();
    let options = options.wal_segment_bytes(64 << 20).segment_bytes(64 << 20);
    let store = open(&options);
    let events: Vec<Event> =
        (0..2_000).map(|at| event(1, at, 1, &[], &format!("{at} {}", "x".repeat(1_000)))).collect();
    store.append_many(&events).unwrap();
    store.close().unwrap();
    memory.remove(Path::new(&segment(0))).unwrap();
    // How long the log of the copy is whenever a part of the source's log is read.
    let (lens, copy) = (Arc::new(Mutex::new(BTreeSet::new())), memory.clone());
    let seen = lens.clone();
    let storage = watched(Arc::new(memory), move |what| {
        if matches!(what, Seen::Read(bytes) if bytes > 4 * PAGE) {
            let log = copy.open(Path::new("/rescued/wal/wal.log"), Access::Read);
            seen.lock().unwrap().extend(log.ok().map(|log| log.len().unwrap()));
        }
    });
    let options = options.storage(storage);
    let report =
        salvage(Path::new(DIR), Path::new(COPY_DIR), &options, &mut |_, _| Ok(())).unwrap();
    assert_eq!(report.events, 2_000, "{report:?}");
    let lens = lens.lock().unwrap();
    assert!(lens.len() > 3, "{lens:?}");
}
