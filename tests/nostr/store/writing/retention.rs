//! Events that are too old or too many, and the archive for the segments that a compaction replaces.

use crate::store::prelude::*;

const NOW: u64 = 1_700_000_100;
const PAGE: u64 = 4096;

fn store() -> (Options, EventStore) {
    let (_, options) = in_memory();
    let options = options.clock(|| NOW);
    (options.clone(), open(&options))
}

fn younger_than(seconds: u64) -> Retention {
    Retention::new().age_max(Duration::from_secs(seconds))
}

fn old_kinds() -> Vec<Event> {
    vec![event(9, 1, 0, &[], "profile"), event(9, 2, 5, &[], ""), event(9, 3, 7, &[], "+")]
}

#[test]
fn events_beyond_their_age_are_hidden_and_dropped() {
    let (on, store) = store();
    one_by_one(&store, &[old_kinds(), notes(0..20)].concat());
    // Notes 0 to 9 are older than 90 seconds.
    assert_eq!(store.retain_with(&younger_than(90), &[], true, &mut |_| Ok(())).unwrap(), 11);
    assert_eq!(live(&store).len(), 23);
    assert_eq!(store.retain(&younger_than(90), &[]).unwrap(), 11);
    let left = [&old_kinds()[..2], &notes(10..20)].concat();
    assert_eq!((sorted(&store), found(&store, "{}").len()), (left.clone(), 12));
    assert_eq!(store.retain(&younger_than(90), &[]).unwrap(), 0, "hidden events go once");
    store.close().unwrap();
    let store = open(&on);
    assert_eq!(sorted(&store), left);
    assert_eq!(store.compact(0.0, false).unwrap().deleted, 11);
    assert_eq!(walked(&store, Include::All).len(), 12);
    // A dropped event is stored again, and goes again.
    one_by_one(&store, &notes(3..4));
    assert_eq!(store.retain(&younger_than(90), &[]).unwrap(), 1);
}

#[test]
fn retention_by_kind_takes_these_kinds_alone() {
    let (_, store) = store();
    one_by_one(&store, &[old_kinds(), notes(0..20)].concat());
    assert_eq!(store.retain(&younger_than(90), &[0, 7]).unwrap(), 2);
    assert_eq!(sorted(&store).len(), 21);
    assert_eq!(store.retain(&younger_than(90), &[5]).unwrap(), 1);
    // Two rules hide the events of either rule.
    let few = younger_than(90).bytes_max(4 * PAGE);
    assert_eq!(store.retain(&few, &[1]).unwrap(), 17);
    assert_eq!(store.retain(&Retention::new(), &[]).unwrap(), 0);
}

#[test]
fn retention_by_bytes_keeps_the_newest() {
    let (_, store) = store();
    one_by_one(&store, &[old_kinds(), notes(0..20)].concat());
    // Notes 3, 10 and 17 have three pages each, the others one.
    for (pages, first) in
        [(1_000, 0), (18, 6), (17, 7), (4, 17), (3, 17), (2, 18), (1, 19), (0, 20)]
    {
        store.retain(&Retention::new().bytes_max(pages * PAGE), &[1]).unwrap();
        assert_eq!(sorted(&store), [old_kinds(), notes(first..20)].concat(), "{pages} pages");
    }
}

#[test]
fn retention_of_many_events_goes_in_portions() {
    let (on, store) = store();
    let many: Vec<Event> = (0..1_300).map(|at| event(1, at, 1, &[], "")).collect();
    store.append_many(&many).unwrap();
    std::thread::scope(|scope| {
        let appending = scope.spawn(|| one_by_one(&store, &notes(0..50)));
        assert_eq!(store.retain(&younger_than(1_000), &[]).unwrap(), 1_300);
        appending.join().unwrap();
    });
    store.close().unwrap();
    assert_eq!(sorted(&open(&on)), notes(0..50));
}

#[test]
fn thread_keeps_to_retention_without_compacting() {
    let (_place, path) = on_real_disk();
    let mut on = Options::new().small(true).auto_compact(false).clock(|| NOW);
    on.compaction_wait = Duration::from_millis(20);
    let store = on.open(&path, Mode::Append).unwrap();
    one_by_one(&store, &[old_kinds(), notes(0..20)].concat());
    store.close().unwrap();
    let store = on
        .retention([], younger_than(90))
        .retention([0], younger_than(90))
        .open(&path, Mode::Append)
        .unwrap();
    let begun = Instant::now();
    while live(&store).len() > 11 && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(sorted(&store), [&old_kinds()[1..2], &notes(10..20)].concat());
    assert_eq!(walked(&store, Include::All).len(), 23);
}

#[test]
fn retention_by_consumers_is_refused() {
    let (on, store) = store();
    let by_consumers = Retention::new().consumed(true);
    refused(store.retain(&by_consumers, &[]), ErrorKind::InvalidArgument, "has none");
    let opened = on.retention([1], by_consumers).open("/other", Mode::Append);
    refused(opened, ErrorKind::InvalidArgument, "has none");
}

fn archived(segment: &[u8]) -> Vec<Event> {
    let (_, on) = memory_of(&[("/copy/data/segments/data.0.seg", segment)]);
    let store = on.open("/copy", Mode::Read).unwrap();
    walked(&store, Include::All).into_iter().map(|found| found.event).collect()
}

/// A compaction deleted the old segments, and nobody could keep the dropped events.
#[test]
fn archive_gets_each_segment_before_its_removal() {
    let (memory, on) = in_memory();
    let kept: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
    let (to, disk) = (kept.clone(), memory.clone());
    let on = on.archive(move |id, path| {
        let file = disk.open(path, Access::Read)?;
        let mut bytes = vec![0; file.len()? as usize];
        file.read_at(&mut bytes, 0)?;
        assert_eq!(id, 0);
        to.lock().unwrap().push(bytes);
        Ok(())
    });
    let store = open(&on);
    one_by_one(&store, &notes(0..10));
    delete(&store, &note(4));
    store.compact(0.0, false).unwrap();
    assert_eq!(store.compact(0.0, false).unwrap().segments, [0u32; 0], "nothing is left to drop");
    let kept = kept.lock().unwrap();
    assert_eq!(kept.len(), 1);
    assert_eq!(archived(&kept[0]), notes(0..10));
}

#[test]
fn failed_archive_leaves_segments_as_they_are() {
    let (_, on) = in_memory();
    let refusing =
        on.clone().archive(|id, _| Err(std::io::Error::other(format!("no room for {id}"))));
    let store = open(&refusing);
    one_by_one(&store, &notes(0..10));
    delete(&store, &note(4));
    let failed = store.compact(0.0, false).unwrap_err();
    assert_eq!((failed.kind(), walked(&store, Include::All).len()), (ErrorKind::Io, 10));
    assert!(failed.message().contains("archive segment 0"), "{failed}");
    one_by_one(&store, &notes(10..12));
    store.close().unwrap();
    let store = open(&on);
    assert_eq!(store.compact(0.0, false).unwrap().deleted, 1);
}
