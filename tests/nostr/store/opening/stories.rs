//! Regressions of opening, each with its story.

use crate::store::prelude::*;

/// A reader that opened a store during the write of a long event raised an error about damage.
#[test]
fn unfinished_event_is_no_damage_for_a_reader() {
    let (disk, on, store) = small();
    let events = [note(0), note(1), event(9, 4, 0, &[], &"long ".repeat(2000))];
    store.append_many(&events).unwrap();
    let file = disk.open(Path::new(FIRST), Access::Write).unwrap();
    let whole = file.len().unwrap();
    let reader = || on.open(DIR, Mode::Read).unwrap();
    for missing in [3000, 4096, 8192] {
        file.set_len(whole - missing).unwrap();
        assert_eq!(live(&reader()), events, "{missing}");
        assert!(reader().verify(Check::Id).unwrap().ok(), "{missing}");
    }
    // After a checkpoint acknowledged the event, a cut event is damage.
    store.checkpoint().unwrap();
    assert!(!reader().verify(Check::Id).unwrap().ok());
}

/// With a smaller limit, the store took larger events for damage: opening reported a damaged store, a new index did not
/// have the events, and appends stored them twice.
#[test]
fn a_smaller_limit_is_for_new_events_alone() {
    let (_place, dir) = on_real_disk();
    let on = Options::new().small(true).segment_bytes(10 * 4096);
    let small = on.clone().event_bytes_max(4096);
    let stored = [note(1), note(2), note(3)];
    let long = &stored[2];
    let store = on.open(&dir, Mode::Append).unwrap();
    store.append_many(&stored).unwrap();
    store.close().unwrap();
    let store = small.open(&dir, Mode::Append).unwrap();
    assert_eq!(store.reindex().unwrap(), 3);
    assert_eq!(live(&store), stored);
    assert!(store.verify(Check::Id).unwrap().ok());
    assert!(store.find(&long.id).unwrap().is_some());
    refused(store.append(&note(10)), ErrorKind::TooLarge, "");
    delete(&store, &note(1));
    assert_eq!(store.compact(0.0, false).unwrap().kept, 2);
    store.close().unwrap();
    let store = on.open(&dir, Mode::Append).unwrap();
    assert!(store.find(&long.id).unwrap().is_some());
    assert!(matches!(store.append(long).unwrap(), Outcome::Duplicate(_)));
    assert_eq!(live(&store), stored[1..]);
}

/// The same for an event in the write-ahead log, and for a rescue.
#[test]
fn a_smaller_limit_leaves_what_the_log_has() {
    let (disk, on, store) = small();
    let stored = [note(1), note(2), note(3)];
    store.append_many(&stored).unwrap();
    store.sync().unwrap();
    for is_torn in [false, true] {
        let disk = disk.kill();
        if is_torn {
            changed(&disk, FIRST, |bytes| bytes.truncate(4 * PAGE));
        }
        let small = on_disk(&on, &disk).event_bytes_max(4096);
        let report = salvaged_by(&small);
        assert_eq!((report.events, report.damages.len()), (3, usize::from(is_torn)), "{report:?}");
        assert_eq!(live(&small.open(COPY_DIR, Mode::Append).unwrap()).len(), 3);
        let store = open(&small);
        assert_eq!(store.opening().appended_again, u64::from(is_torn));
        assert_eq!(live(&store), stored);
    }
}

/// The header of a segment did not count the events after the last checkpoint, and a killed process counted none. The
/// next opening took the segment for empty, the segment grew beyond its size, and the counters stayed wrong.
#[test]
fn opening_counts_events_that_no_checkpoint_counted() {
    for was_killed in [true, false] {
        let (mut disk, on, store) = small();
        one_by_one(&store, &notes(4..9));
        if was_killed {
            disk = disk.kill();
        } else {
            // An older version left this state.
            store.close().unwrap();
            changed(&disk, FIRST, |bytes| bytes[20..24].fill(0));
        }
        // The reference appends at the end that the header names, also after a kill.
        let field = |at: usize| read(&disk, FIRST)[at..at + 4].to_vec();
        assert_eq!(field(20), (5 * u32::from(was_killed)).to_be_bytes());
        assert_eq!(field(24), (6 * PAGE as u32).to_be_bytes());
        let store = open(&on_disk(&on, &disk));
        assert_eq!(stored(&store, &note(9)).segment, 1);
        store.close().unwrap();
        assert_eq!(manifest(&disk)["total_records"], 6);
        assert_eq!(read(&disk, FIRST)[20..24], 5u32.to_be_bytes());
    }
}
