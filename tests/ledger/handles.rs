//! Several handles on one directory, and several threads on one handle.
#![cfg(unix)]

use crate::prelude::*;
use crate::support::common::hooked::Event;

// Promise: ledger-several.
#[test]
fn fetch_skips_files_that_others_write_or_lease() {
    let dir = tempfile::tempdir().unwrap();
    let open = || LedgerStore::new(small(dir.path(), 1000)).unwrap();
    let (one, two) = (open(), open());
    one.append(&event(1, 0)).unwrap();
    two.append(&event(2, 0)).unwrap();
    assert!(one.has_data().unwrap());
    assert_eq!(fetch_all(&two), [(1, events(2..3, 0))]);
    one.append(&event(3, 0)).unwrap();
    assert_eq!(fetch_all(&one), [(0, [event(1, 0), event(3, 0)].to_vec())]);
    // Every handle may fetch a file that was never leased or was given back.
    two.close().unwrap();
    assert_eq!(fetch_all(&one).len(), 2);
    one.close().unwrap();
    let one = open();
    let by_link = dir.path().join("link");
    std::os::unix::fs::symlink(dir.path(), &by_link).unwrap();
    let three = LedgerStore::new(small(&by_link, 1000)).unwrap();
    one.append(&event(4, 0)).unwrap();
    assert_eq!(fetch_all(&three).len(), 2);
    assert_eq!(fetch_all(&one), [(2, events(4..5, 0))]);
    three.append(&event(5, 0)).unwrap();
    assert_eq!(fetch_all(&three).last().unwrap(), &(3, events(5..6, 0)));
}

// Promise: ledger-several.
#[test]
fn threads_append_and_send_each_event_once() {
    const EACH: u64 = 3000;
    for durability in [Durability::None, Durability::Rotate] {
        let dir = tempfile::tempdir().unwrap();
        let options = Options::new().durability(durability).file_records_max(50);
        let open = || options.open(small(dir.path(), 2000)).unwrap();
        let (handles, sender, done) = ([open(), open()], open(), AtomicBool::new(false));
        let (mut sent, indexes) = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..8)
                .map(|thread| {
                    let handle = &handles[thread as usize % 2];
                    scope.spawn(move || {
                        for i in 0..EACH / 10 {
                            let from = thread * EACH + 10 * i;
                            match i % 3 {
                                0 => {
                                    handle.append_many(events(from..from + 10, 60)).unwrap();
                                }
                                _ => (from..from + 10).for_each(|n| {
                                    handle.append(&event(n, 60)).unwrap();
                                }),
                            }
                        }
                    })
                })
                .collect();
            let sending = scope.spawn(|| {
                let (mut sent, mut indexes) = (Vec::new(), BTreeSet::new());
                loop {
                    let last = done.load(Ordering::Acquire);
                    while let Some(fetched) = sender.fetch(Some(7), None).unwrap() {
                        for (index, payloads) in shown(&fetched) {
                            assert!(indexes.insert(index), "index {index} came twice");
                            sent.extend(payloads.iter().map(|payload| number_of(payload)));
                        }
                        sender.remove(&fetched.removable.unwrap()).unwrap();
                    }
                    if last {
                        return (sent, indexes);
                    }
                }
            });
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            handles.iter().for_each(|handle| handle.close().unwrap());
            done.store(true, Ordering::Release);
            sending.join().unwrap()
        });
        sent.sort_unstable();
        assert_eq!(sent, (0..8 * EACH).collect::<Vec<_>>(), "{durability}");
        assert!(indexes.len() > 400, "{} files", indexes.len());
        assert!(!sender.has_data().unwrap());
    }
}

#[test]
fn a_directory_held_by_another_is_waited_for() {
    let (memory, ledger) = in_memory(1000);
    let LockAttempt::Held(guard) = memory.lock(Path::new(DIR), false).unwrap() else {
        panic!("not free");
    };
    std::thread::scope(|scope| {
        let appending = scope.spawn(|| ledger.append(&event(0, 0)));
        std::thread::sleep(std::time::Duration::from_millis(60));
        assert!(!appending.is_finished());
        drop(guard);
        appending.join().unwrap().unwrap();
    });
    assert_eq!(drain(&ledger).len(), 1);
}

#[test]
fn bases_in_one_directory_are_separate_ledgers() {
    let (_, options) = memory();
    let config = |base: &str| deedbook::ledger::LedgerConfig::lines(DIR, base);
    let (a, b) = (options.open(config("a")).unwrap(), options.open(config("b-a")).unwrap());
    for number in 0..3 {
        a.append(&event(number, 0)).unwrap();
        b.append(&event(10 + number, 0)).unwrap();
        assert_eq!(fetch_all(&a).last().unwrap().0, number as u32);
    }
    a.reset().unwrap();
    assert_eq!(drain(&b), events(10..13, 0));
    assert_eq!(a.base_filename(), "a");
}

// Promise: ledger-odd-files.
#[test]
fn what_is_no_regular_file_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("elsewhere");
    std::fs::write(&target, crate::support::ledger::spool::file_of(&events(0..1, 0))).unwrap();
    std::os::unix::fs::symlink(&target, dir.path().join("0-events")).unwrap();
    std::fs::create_dir(dir.path().join("1-events")).unwrap();
    let fifo = std::process::Command::new("mkfifo").arg(dir.path().join("2-events")).status();
    assert!(fifo.unwrap().success());
    let ledger = LedgerStore::new(small(dir.path(), 1000)).unwrap();
    ledger.append(&event(7, 0)).unwrap();
    assert_eq!(fetch_all(&ledger), [(3, events(7..8, 0))]);
    ledger.reset().unwrap();
    assert!(target.exists() && dir.path().join("1-events").is_dir());
    assert!(dir.path().join("0-events").is_symlink());
    let linked = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(&target, linked.path().join(".deedbook")).unwrap();
    refused(LedgerStore::new(small(linked.path(), 1000)), ErrorKind::NotALog);
}

/// Another program removed the file of a store: no sender can fetch records synced into the file.
// Promise: ledger-fsync-fails.
#[test]
fn sync_into_a_removed_file_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new().durability(Durability::Always);
    let ledger = options.open(small(dir.path(), 1000)).unwrap();
    ledger.append(&event(0, 0)).unwrap();
    std::fs::remove_file(dir.path().join(format!("0-{BASE}"))).unwrap();
    refused(ledger.append(&event(1, 0)), ErrorKind::Io);
    refused(ledger.append(&event(2, 0)), ErrorKind::Poisoned);
    let again = options.open(small(dir.path(), 1000)).unwrap();
    again.append(&event(3, 0)).unwrap();
    assert_eq!(drain(&again), events(3..4, 0));
}

/// A sync poisoned the store if a sender finished, sent and removed the file meanwhile.
#[test]
fn file_sent_during_its_sync_is_no_loss() {
    let storage = Hooked::default();
    let options = on(storage.clone()).durability(Durability::Always);
    let ledger = options.open(small(DIR, 1000)).unwrap();
    let (sender, sent) = (ledger.clone(), Arc::new(Mutex::new(Vec::new())));
    let (begun, seen) = (AtomicBool::new(false), sent.clone());
    storage.watch(move |call| {
        if call == Event::Sync && !begun.swap(true, Ordering::AcqRel) {
            seen.lock().unwrap().extend(send(&sender));
        }
        false
    });
    ledger.append(&event(0, 0)).unwrap();
    assert_eq!(*sent.lock().unwrap(), [(0, events(0..1, 0))]);
    ledger.append(&event(1, 0)).unwrap();
    assert_eq!(fetch_all(&ledger), [(1, events(1..2, 0))]);
    storage.unwatch();
}

/// Another thread finished the file being written before the sync reached the file. With durability none, no file is
/// noted, and the sync acknowledged records that a power cut lost.
#[test]
fn file_finished_during_a_sync_is_synced() {
    let storage = Hooked::default();
    let options = on(storage.clone()).durability(Durability::None);
    let open = || options.open(small(DIR, 1000)).unwrap();
    let (ledger, other) = (open(), open());
    ledger.append(&event(0, 0)).unwrap();
    other.append(&event(1, 0)).unwrap();
    other.close().unwrap();
    let (sender, syncs) = (ledger.clone(), Arc::new(AtomicU64::new(0)));
    let (begun, fetching, counted) =
        (AtomicBool::new(false), AtomicBool::new(false), syncs.clone());
    storage.watch(move |call| {
        // The fetch stores and syncs the next index.
        if call != Event::Sync || fetching.load(Ordering::Acquire) {
            return false;
        }
        counted.fetch_add(1, Ordering::AcqRel);
        if !begun.swap(true, Ordering::AcqRel) {
            fetching.store(true, Ordering::Release);
            assert_eq!(fetch_all(&sender).len(), 2);
            fetching.store(false, Ordering::Release);
        }
        false
    });
    ledger.sync().unwrap();
    storage.unwatch();
    assert!(syncs.load(Ordering::Acquire) >= 2, "the file of the other store, and ours");
}

/// An event loop makes this call.
#[test]
fn try_append_writes_once_or_not_at_all() {
    let durabilities = ["none", "rotate", "manual", "always", "bytes:200", "interval:3600000"];
    for (durability, limit) in durabilities.iter().flat_map(|d| [(d, None), (d, Some(1 << 20))]) {
        let (storage, calls) = (Hooked::default(), Arc::new(Mutex::new(Vec::new())));
        let (durability, noted) = (durability.parse().unwrap(), calls.clone());
        let options = on(storage.clone()).durability(durability).bytes_total_max(limit);
        let ledger = options.open(small(DIR, 300)).unwrap();
        storage.watch(move |event| {
            noted.lock().unwrap().push(event);
            false
        });
        let mut at_once = 0;
        for number in 0..100 {
            let (payload, files) = (event(number, 60), fetch_count(&storage));
            calls.lock().unwrap().clear();
            let done = ledger.try_append(&payload).unwrap().is_some();
            let expected = [Event::Write(payload.len() + 8)];
            let seen = std::mem::take(&mut *calls.lock().unwrap());
            assert_eq!(seen, if done { &expected[..] } else { &[] }, "{durability}, {number}");
            assert_eq!(fetch_count(&storage), files, "{durability}: a file came or went");
            match done {
                true => at_once += 1,
                false => {
                    ledger.append(&payload).unwrap();
                }
            }
        }
        assert_eq!(drain(&ledger), events(0..100, 60), "{durability}");
        assert!((30..=80).contains(&at_once), "{durability}: {at_once}");
    }
}

fn fetch_count(storage: &dyn Storage) -> usize {
    storage.list(Path::new(DIR)).unwrap().len()
}

#[test]
fn try_append_does_not_wait_for_a_thread() {
    let (storage, turn) = (Hooked::default(), Arc::new(std::sync::Barrier::new(2)));
    let ledger = on(storage.clone()).open(small(DIR, 1000)).unwrap();
    ledger.append(&event(0, 0)).unwrap();
    let reached = turn.clone();
    storage.watch(move |event| {
        if matches!(event, Event::Write(_)) {
            reached.wait();
            reached.wait();
        }
        false
    });
    std::thread::scope(|scope| {
        let appending = scope.spawn(|| ledger.append(&event(1, 0)));
        turn.wait();
        assert!(ledger.try_append(&event(2, 0)).unwrap().is_none());
        storage.unwatch();
        turn.wait();
        appending.join().unwrap().unwrap();
    });
    assert_eq!(drain(&ledger), events(0..2, 0));
}

#[test]
fn append_unsynced_leaves_the_sync_to_its_caller() {
    let (storage, syncs) = (Hooked::default(), Arc::new(Mutex::new(0)));
    let options = on(storage.clone()).durability(Durability::Always);
    let ledger = options.open(small(DIR, 10_000)).unwrap();
    let counted = syncs.clone();
    storage.watch(move |event| {
        *counted.lock().unwrap() += u64::from(event == Event::Sync);
        false
    });
    let mut batch = deedbook::Batch::<deedbook::ledger::LedgerFormat>::new(1000);
    for number in 0..5 {
        batch.clear();
        batch.push(&event(number, 0)).unwrap();
        ledger.append_unsynced(&batch).unwrap();
    }
    assert_eq!(*syncs.lock().unwrap(), 0);
    ledger.sync().unwrap();
    assert_eq!(*syncs.lock().unwrap(), 1);
    assert_eq!(drain(&ledger), events(0..5, 0));
}
