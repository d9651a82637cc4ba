//! The limit of all files together.

use crate::prelude::*;

/// A ledger of at most 1,000 bytes in files of 100; an event takes 32.
fn limited(when_full: WhenFull) -> (Memory, LedgerStore) {
    let (memory, options) = memory();
    let options = options.bytes_total_max(1000).when_full(when_full);
    (memory, options.open(small(DIR, 100)).unwrap())
}

fn held(storage: &dyn Storage) -> usize {
    listing(storage, Path::new(DIR)).values().map(Vec::len).sum()
}

// Promise: ledger-full.
#[test]
fn full_ledger_rejects_appends_and_keeps_its_events() {
    let (memory, ledger) = limited(WhenFull::Reject);
    let fitting = events(0..31, 0);
    append_each(&ledger, &fitting);
    for _ in 0..3 {
        let error = refused(ledger.append(&event(31, 0)), ErrorKind::Io);
        assert_eq!(error.io_source().unwrap().kind(), Io::QuotaExceeded);
        assert_eq!(error.durable(), Some(Durable::No));
        for value in ["32", "992", "1,000"] {
            assert!(error.message().contains(value), "{error}");
        }
    }
    refused(ledger.append_many(events(31..33, 0)), ErrorKind::Io);
    assert_eq!((held(&memory), drain(&ledger)), (992, fitting));
    let stats = ledger.stats();
    assert_eq!(
        (stats.rejected_records, stats.rejected_bytes),
        (5, 160),
        "three alone, two at once"
    );
    assert_eq!(stats.dropped_files, 0);
    let fetched = ledger.fetch(Some(1), None).unwrap().unwrap();
    ledger.remove(&fetched.removable.unwrap()).unwrap();
    ledger.append_many(events(31..35, 0)).unwrap();
    refused(ledger.append(&event(35, 0)), ErrorKind::Io);
    assert_eq!(drain(&ledger), events(4..35, 0));
}

// Promise: ledger-full.
#[test]
fn full_ledger_drops_and_counts_the_oldest_events() {
    let (memory, ledger) = limited(WhenFull::DropOldest);
    for number in 0..500 {
        match number % 7 {
            0 => ledger.append_many(events(number..number + 1, 0)).map(drop).unwrap(),
            _ => ledger.append(&event(number, 0)).map(drop).unwrap(),
        }
        assert!(held(&memory) <= 1000, "{} bytes after event {number}", held(&memory));
    }
    let left = drain(&ledger);
    let first = number_of(&left[0]);
    assert_eq!(left, events(first..500, 0), "the newest are kept");
    assert!(left.len() >= 27, "{} are left", left.len());
    let stats = ledger.stats();
    assert_eq!(stats.dropped_records, first, "every event that is missing was counted");
    assert_eq!((stats.dropped_bytes, stats.dropped_files), (32 * first, first / 4));
    assert_eq!((stats.records, stats.rejected_records), (500, 0));
    assert_eq!(u64::from(fetch_all(&ledger)[0].0), first / 4);
}

#[test]
fn what_another_store_writes_is_not_dropped() {
    let (memory, ledger) = limited(WhenFull::DropOldest);
    let other = on(memory.clone()).open(small(DIR, 2000)).unwrap();
    other.append_many(events(0..29, 0)).unwrap();
    ledger.append(&event(50, 0)).unwrap();
    // The store can drop only its own file, and does.
    ledger.append_many(events(51..53, 0)).unwrap();
    assert_eq!(ledger.stats().dropped_records, 1);
    let error = refused(ledger.append_many(events(60..63, 0)), ErrorKind::Io);
    assert_eq!(error.durable(), Some(Durable::No));
    assert_eq!(drain(&other), events(0..29, 0));
}

#[test]
fn batch_larger_than_the_limit_is_too_large() {
    for when_full in [WhenFull::Reject, WhenFull::DropOldest] {
        let (_, ledger) = limited(when_full);
        ledger.append(&event(0, 0)).unwrap();
        let error = refused(ledger.append_many(events(1..40, 0)), ErrorKind::TooLarge);
        assert!(error.message().contains("1,248") && error.message().contains("1,000"), "{error}");
        refused(ledger.append(&[b'x'; 1000]), ErrorKind::TooLarge);
        let stats = ledger.stats();
        assert_eq!((stats.rejected_records, stats.rejected_bytes), (40, 1248 + 1008));
        assert_eq!(drain(&ledger), events(0..1, 0));
    }
}

#[test]
fn existing_files_count_and_readers_survive_a_drop() {
    let (memory, options) = memory();
    put(&memory, 4, &file_of(&events(0..25, 0)));
    let options = options.bytes_total_max(1000).when_full(WhenFull::DropOldest);
    let ledger = options.open(small(DIR, 100)).unwrap();
    let fetched = ledger.fetch(None, None).unwrap().unwrap();
    append_each(&ledger, &events(25..40, 0));
    assert_eq!(ledger.stats().dropped_records, 25);
    let mut body = String::new();
    fetched.data.unwrap()[0].read_to_string(&mut body).unwrap();
    assert_eq!(body.lines().count(), 25);
    ledger.remove(&fetched.removable.unwrap()).unwrap();
    assert_eq!(drain(&ledger), events(25..40, 0));
}

/// A count from before another store sent everything made the store drop newer events.
#[test]
fn files_sent_by_another_store_make_room() {
    let (memory, ledger) = limited(WhenFull::DropOldest);
    let sender = on(memory).open(small(DIR, 100)).unwrap();
    ledger.append_many(events(0..28, 0)).unwrap();
    assert_eq!(send(&sender).len(), 7, "all of them");
    // Within the second in which a count is valid.
    append_each(&ledger, &events(28..48, 0));
    let stats = ledger.stats();
    assert_eq!((stats.dropped_records, stats.rejected_records), (0, 0));
    assert_eq!(drain(&ledger), events(28..48, 0));
}

/// The store did not count the files dropped before the error. The next append dropped as much again.
#[test]
fn partly_failed_drop_counts_the_dropped_files() {
    let disk = Sim::new();
    let options = on(disk.clone()).durability(Durability::None);
    let options = options.bytes_total_max(1000).when_full(WhenFull::DropOldest);
    let ledger = options.open(small(DIR, 100)).unwrap();
    append_each(&ledger, &events(0..31, 0));
    // 288 bytes take three files of 128.
    disk.inject(Fault::ever(3, What::Error(Io::Other)).of(Call::Remove));
    refused(ledger.append_many(events(31..40, 0)), ErrorKind::Io);
    disk.heal();
    assert!((1..3).contains(&ledger.stats().dropped_files));
    ledger.append_many(events(31..40, 0)).unwrap();
    assert_eq!(ledger.stats().dropped_files, 3);
    assert_eq!(drain(&ledger), events(12..40, 0));
}

/// The store counted the quarantined bytes for another second, and refused records that fit.
#[test]
fn what_goes_to_the_quarantine_makes_room() {
    let (memory, ledger) = limited(WhenFull::Reject);
    put(&memory, 0, &[1; 500]);
    append_each(&ledger, &events(0..15, 0));
    refused(ledger.append(&event(15, 0)), ErrorKind::Io);
    ledger.fetch(None, None).unwrap();
    ledger.append(&event(15, 0)).unwrap();
    assert_eq!(drain(&ledger), events(0..16, 0));
}

#[test]
fn drop_spares_the_active_file_if_possible() {
    let (memory, options) = memory();
    let full = options.clone().bytes_total_max(992).when_full(WhenFull::DropOldest);
    let ledger = full.open(small(DIR, 992)).unwrap();
    ledger.append(&event(0, 0)).unwrap();
    let other = options.open(small(DIR, 300)).unwrap();
    other.append_many(events(50..60, 0)).unwrap();
    assert_eq!(held(&memory), 32 + 320);
    // After a second the files are counted again.
    std::thread::sleep(Duration::from_millis(1100));
    ledger.append_many(events(1..31, 0)).unwrap();
    assert_eq!(ledger.stats().dropped_records, 10, "what the other store had finished");
    assert_eq!(drain(&ledger), events(0..31, 0));
}

#[test]
fn try_append_opens_no_other_file() {
    let (_, ledger) = limited(WhenFull::Reject);
    ledger.append(&event(0, 0)).unwrap();
    assert!(ledger.try_append(&event(1, 0)).unwrap().is_some());
    let fetched = ledger.fetch(None, None).unwrap().unwrap();
    ledger.append(&event(2, 0)).unwrap();
    assert!(ledger.try_append(&event(3, 0)).unwrap().is_some());
    ledger.remove(&fetched.removable.unwrap()).unwrap();
    assert!(ledger.try_append(&event(4, 0)).unwrap().is_some(), "there is room");
}

#[test]
fn try_append_drops_and_rejects_nothing() {
    for when_full in [WhenFull::Reject, WhenFull::DropOldest] {
        let (memory, options) = memory();
        put(&memory, 0, &file_of(&events(50..60, 0)));
        let options = options.bytes_total_max(1000).when_full(when_full);
        let ledger = options.open(small(DIR, 1000)).unwrap();
        ledger.append_many(events(0..20, 0)).unwrap();
        assert!(ledger.try_append(&event(20, 0)).unwrap().is_some());
        // The file has room, but the total limit has none.
        assert_eq!(held(&memory), 992);
        assert!(ledger.try_append(&event(21, 0)).unwrap().is_none());
        let stats = ledger.stats();
        assert_eq!((stats.rejected_records, stats.dropped_records), (0, 0));
    }
}

/// After each removal the next append opened every file in the ledger: draining took quadratic time.
#[test]
fn append_after_a_removal_opens_no_other_file() {
    let (memory, opened) = (Memory::new(), Arc::new(AtomicUsize::new(0)));
    let storage = watched(Arc::new(memory.clone()), {
        let opened = opened.clone();
        move |seen| {
            opened.fetch_add(usize::from(seen == Seen::Opened), Ordering::Relaxed);
        }
    });
    (0..20).for_each(|index| put(&memory, index, &file_of(&events(0..1, 0))));
    let ledger =
        Options::new().storage(storage).bytes_total_max(1000).open(small(DIR, 100)).unwrap();
    ledger.append(&event(20, 0)).unwrap();
    let mut counts = 0;
    for number in 21..51 {
        let fetched = ledger.fetch(Some(1), None).unwrap().unwrap();
        ledger.remove(&fetched.removable.unwrap()).unwrap();
        let before = opened.load(Ordering::Relaxed);
        ledger.append(&event(number, 0)).unwrap();
        counts += usize::from(opened.load(Ordering::Relaxed) - before >= 20);
    }
    assert_eq!(held(&memory), 21 * 32);
    // If the old count leaves no room, the store counts again.
    assert!((1..15).contains(&counts), "{counts} of 30");
}
