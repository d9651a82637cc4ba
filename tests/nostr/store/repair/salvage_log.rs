//! The events that a salvage of damaged segments takes from the write-ahead log.

use crate::store::prelude::*;

/// Three notes, the first damaged, and one more in the log after the checkpoint. A compaction may have dropped the
/// second note.
fn damaged(was_compacted: bool) -> Sim {
    let (disk, store) = fresh();
    store.append_many(&notes(0..3)).unwrap();
    if was_compacted {
        delete(&store, &note(1));
        assert_eq!(store.compact(0.0, false).unwrap().deleted, 1);
    } else {
        store.checkpoint().unwrap();
    }
    store.append(&note(4)).unwrap();
    store.sync().unwrap();
    let disk = disk.kill();
    changed(&disk, &last_segment(&disk), |bytes| {
        bytes[PAGE + 80] ^= 1;
        bytes.truncate(bytes.len() - PAGE);
    });
    disk
}

/// Because of one damaged page, the salvage restored dropped events from the log, and called the events certain.
#[test]
fn salvage_marks_possibly_dropped_events_as_uncertain() {
    let (report, found) = salvaged(&damaged(true));
    assert_eq!((report.events, report.from_log, report.uncertain), (4, 3, 2), "{report:?}");
    assert!(found.contains_key(&note(1).id));
    // Nothing was ever dropped. Without a manifest, segment numbers from 0 without a marker prove the fact.
    for has_manifest in [true, false] {
        let disk = damaged(false);
        if !has_manifest {
            remove_manifests(&disk);
        }
        let (report, _) = salvaged(&disk);
        assert_eq!((report.events, report.from_log, report.uncertain), (4, 2, 0), "{report:?}");
    }
}

/// The salvage loaded all events of a log file, which may be a gibibyte long, before it appended the first.
#[test]
fn salvage_appends_log_events_while_reading() {
    let (memory, options) = in_memory();
    let options = options.wal_segment_bytes(64 << 20).segment_bytes(64 << 20);
    let store = open(&options);
    let events: Vec<Event> =
        (0..2_000).map(|at| event(1, at, 1, &[], &format!("{at} {}", "x".repeat(1_000)))).collect();
    store.append_many(&events).unwrap();
    store.close().unwrap();
    memory.remove(Path::new(FIRST)).unwrap();
    // The lengths of the copy's log at each read of the source's log.
    let (lens, copy) = (Arc::new(Mutex::new(BTreeSet::new())), memory.clone());
    let seen = lens.clone();
    let storage = watched(Arc::new(memory), move |what| {
        if matches!(what, Seen::Read(bytes) if bytes > 4 * PAGE) {
            let log = copy.open(Path::new("/rescued/wal/wal.log"), Access::Read);
            seen.lock().unwrap().extend(log.ok().map(|log| log.len().unwrap()));
        }
    });
    let report = salvaged_by(&options.storage(storage));
    assert_eq!(report.events, 2_000, "{report:?}");
    let lens = lens.lock().unwrap();
    assert!(lens.len() > 3, "{lens:?}");
}
