//! Regressions of writing, each with its story.

use crate::store::prelude::*;

/// A failed or killed compaction began again from its start, and never ended if time or space was short. Now a
/// compaction keeps its finished steps, and the next compaction does the rest.
#[test]
fn failed_compaction_keeps_its_finished_steps() {
    let (disk, _, store) = small();
    let notes = notes(0..90);
    one_by_one(&store, &notes);
    notes.iter().step_by(3).for_each(|note| delete(&store, note));
    let left = live(&store);
    assert_eq!(left.len(), 60);
    store.close().unwrap();
    let (mut failed, mut kept) = (0, 0);
    for k in (1..).step_by(5) {
        let disk = disk.kill();
        let on = options(&disk, Durability::Manual);
        let store = open(&on);
        disk.inject(Fault::once(k, What::Error(Io::StorageFull)).of(Call::Write));
        if store.compact(0.0, false).is_ok() {
            break;
        }
        drop(store);
        let store = open(&on);
        let count = all(&store).len();
        assert!((left.len()..=notes.len()).contains(&count), "write {k}: {count} events");
        failed += 1;
        kept += u32::from(count < notes.len() && count > left.len());
        let report = store.compact(0.0, false).unwrap();
        assert!(!report.segments.is_empty() || count == left.len(), "write {k}");
        assert_eq!((sorted(&store), all(&store).len()), (left.clone(), left.len()), "write {k}");
    }
    assert!(failed > 5 && kept > 2, "{failed} failed, {kept} kept some");
}

/// Each deletion request ended the current write, so an import with a third of requests took as many writes as
/// requests. Now a request counts within one write, also for later events of the same write.
#[test]
fn requests_delete_earlier_and_later_events_in_call() {
    let (on, store) = memory_store();
    let page = |at: u32| event(9, at, 30_023, &[&["d", "page"]], "page");
    let author: String = page(2).pubkey.iter().map(|byte| format!("{byte:02x}")).collect();
    let address = format!("30023:{author}:page");
    let profile = |at: u32| event(9, at, 0, &[], "profile");
    let stored = [event(9, 1, 1, &[], "note"), page(2), profile(3), event(8, 4, 1, &[], "other's")];
    store.append_many(&stored).unwrap();
    let ids: Vec<String> = stored.iter().map(|event| event.id.to_string()).collect();
    let late = event(9, 5, 1, &[], "late");
    let late_id = late.id.to_string();
    let asks = |at: u32, tags: &[&[&str]]| event(9, at, 5, tags, "");
    let given = [
        asks(10, &[&["e", &ids[0]], &["e", &ids[3]]]),
        asks(11, &[&["e", &ids[0]], &["e", &late_id]]),
        late.clone(),
        asks(12, &[&["a", &address]]),
        page(9),
        page(13),
        asks(14, &[&["e", &ids[2]]]),
        profile(2),
        // An event of the same call.
        event(9, 15, 1, &[], "own"),
        asks(16, &[&["e", &event(9, 15, 1, &[], "own").id.to_string()]]),
    ];
    let became = store.append_many(&given).unwrap();
    let is_deleted = |at: usize| became[at] == Outcome::Deleted;
    assert!(is_deleted(2) && is_deleted(4), "{became:?}");
    assert_eq!(became.iter().filter(|outcome| outcome.is_stored()).count(), 8, "{became:?}");
    assert_eq!(queried(&store), 8);
    let left = |store: &EventStore| found(store, r#"{"kinds": [0, 1, 30023]}"#);
    let expected = [page(13), stored[3].clone(), profile(2)];
    assert_eq!(left(&store), expected);
    store.close().unwrap();
    assert_eq!(left(&open(&on)), expected);
}

/// Each replaced event waited for a sync of the log, so an import of profiles took thirty times as long as one of
/// notes. Now flags wait in memory: the handle sees them at once, and the segment gets them after the log is durable.
#[test]
fn flags_apply_before_sync_and_reach_segments_after() {
    let (disk, on, store) = small();
    let versions: Vec<Event> = (1..4).map(|at| event(9, at, 0, &[], "profile")).collect();
    let long = event(9, 4, 0, &[], &"long ".repeat(2000));
    // The segment alone: a reader would also look into the log.
    let in_file = || {
        let image = disk.kill();
        let wal = Path::new("/events/wal");
        let logs = image.list(wal).unwrap().into_iter().filter(|name| name != ".deedbook");
        logs.for_each(|name| image.remove(&wal.join(name)).unwrap());
        live(&on_disk(&on, &image).open(DIR, Mode::Read).unwrap())
    };
    store.append_many(&versions).unwrap();
    assert_eq!((live(&store), in_file()), (versions[2..].to_vec(), versions.clone()));
    let mut back = store.iter_reverse(Include::Live, OnCorrupt::Raise).unwrap();
    let Some(Ok(newest)) = back.next() else { panic!() };
    assert!(back.next().is_none() && store.find(&versions[0].id).unwrap().is_none());
    store.sync().unwrap();
    assert_eq!((live(&store), in_file()), (versions[2..].to_vec(), versions[2..].to_vec()));
    store.append(&long).unwrap();
    store.append(&event(9, 5, 0, &[], "last")).unwrap();
    let flags = store.read(newest.location).unwrap().flags;
    assert_eq!((flags, in_file().len()), (Flags::REPLACED, 3));
    // The same for flags set by hand: the last call counts.
    store.set_flags(newest.location, Flags::default()).unwrap();
    assert_eq!(live(&store).len(), 2);
    store.checkpoint().unwrap();
    assert_eq!(in_file(), live(&store));
    store.set_flags(newest.location, Flags::DELETED).unwrap();
    assert_eq!((live(&store).len(), in_file().len()), (1, 2));
    store.close().unwrap();
    assert_eq!(in_file().len(), 1);
}

/// Closing again after a failure reported success.
#[test]
fn closing_that_failed_fails_again() {
    let (disk, on, store) = small();
    store.append(&note(1)).unwrap();
    disk.inject(Fault::once(1, What::Error(Io::Other)).of(Call::Sync));
    assert_eq!(store.close().unwrap_err().kind(), ErrorKind::Io);
    let again = store.close().unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Poisoned);
    assert!(again.message().contains("closing failed: "), "{again}");
    // The lock is free.
    disk.heal();
    let store = open(&on);
    assert_eq!(live(&store), [note(1)]);
    store.close().unwrap();
    store.close().unwrap();
}
