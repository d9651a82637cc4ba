//! Histories on a disk with faults: the k-th call fails, for every k, in every way that a disk can fail and stay
//! honest.

use crate::prelude::*;
use crate::support::harness::faulty::{HONEST, expect_typed};
use crate::support::ledger::oracle::{Run, options, recover};

const SCRIPTS: [&str; 3] = ["abasmafaxmbsz", "mmfxabrfxaas", "bbbsbfxbrz"];
const DURABILITIES: [&str; 3] = ["none", "rotate", "always"];
const STATES: u64 = 6;

fn on_a_disk(durability: Durability) -> (Sim, LedgerStore) {
    let disk = Sim::new();
    let ledger = options(&disk, durability).open(small(DIR, 100_000)).unwrap();
    (disk, ledger)
}

#[derive(Default)]
struct Met {
    fired: u64,
    no: u64,
    unknown: u64,
    poisoned: u64,
}

/// Run a script while a fault strikes. Every failure is a typed error, and every acknowledged event is there
/// afterwards.
fn run(script: &str, durability: Durability, fault: Fault, met: &mut Met) -> Result<bool, String> {
    let mut run = Run::new(durability);
    run.disk.inject(fault);
    for _ in 0..3 {
        match run.open() {
            Ok(()) => break,
            Err(error) => expect_typed(&error)?,
        }
    }
    for op in script.chars() {
        if run.store().ledger.is_none() {
            break;
        }
        let Err(error) = run.apply(op) else { continue };
        expect_typed(&error).map_err(|what| format!("step {op:?}: {what}"))?;
        match (error.kind(), error.durable()) {
            (ErrorKind::Poisoned, _) => met.poisoned += 1,
            (_, Some(Durable::No)) => met.no += 1,
            _ => met.unknown += 1,
        }
        if error.kind() == ErrorKind::Poisoned || run.store().ledger.is_none() {
            run.store().ledger = None;
            if let Err(error) = run.open() {
                expect_typed(&error)?;
                break;
            }
        }
    }
    let fired = run.disk.fired() > 0;
    met.fired += u64::from(fired);
    run.disk.heal();
    recover(&run.disk.kill(), &run.known, false).map_err(|what| format!("killed: {what}"))?;
    for choice in choices(&run.disk, STATES, 0) {
        let recovered = recover(&run.disk.crashes().build(&choice), &run.known, true);
        recovered.map_err(|what| format!("{choice:?}: {what}"))?;
    }
    Ok(fired)
}

// Promise: ledger-call-fails.
#[test]
fn failed_calls_lose_no_acknowledged_record() {
    let (mut met, mut failures) = (Met::default(), Vec::new());
    for (script, durability) in SCRIPTS.iter().flat_map(|s| DURABILITIES.map(|d| (s, d))) {
        let durability: Durability = durability.parse().unwrap();
        for (kind, &times) in
            HONEST.iter().flat_map(|kind| kind.times.iter().map(move |n| (kind, n)))
        {
            for k in 1..=400 {
                let what = kind.what(k);
                let done = match run(
                    script,
                    durability,
                    Fault { times, ..Fault::once(k, what) },
                    &mut met,
                ) {
                    // No call is left to strike at. The other kinds of fault strike at some calls only.
                    Ok(fired) => !fired && matches!(what, What::Error(_) | What::Crash),
                    Err(failed) => {
                        let there = format!("{what:?} at call {k}, {times} times");
                        failures.push(format!("{script} {durability}, {there}: {failed}"));
                        failures.len() > 5
                    }
                };
                if done {
                    break;
                }
            }
        }
    }
    let Met { fired, no, unknown, poisoned } = met;
    println!("{fired} faults: {no} not there, {unknown} unknown, {poisoned} refused after");
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
    assert!(fired > 2000 && no > 500 && unknown > 100 && poisoned > 100);
}

/// After a short write, a reader could take the next bytes of the file for a part of the record.
// Promise: ledger-call-fails.
#[test]
fn file_gets_no_append_after_failed_write() {
    for what in [What::Error(Io::Other), What::Partial(Io::StorageFull), What::Short, What::Zero] {
        let (disk, ledger) = on_a_disk(Durability::None);
        ledger.append(&event(0, 0)).unwrap();
        disk.inject(Fault::once(1, what).of(Call::Write));
        let error = refused(ledger.append(&event(1, 900)), ErrorKind::Io);
        assert_eq!(error.durable(), Some(Durable::No), "{what:?}: {error}");
        assert_eq!(error.offset(), Some(32), "{error}");
        ledger.append(&event(2, 0)).unwrap();
        let sizes: Vec<_> = listing(&disk, Path::new(DIR)).values().map(Vec::len).collect();
        assert_eq!(sizes, [32, 32], "{what:?}");
        assert_eq!(drain(&ledger), [event(0, 0), event(2, 0)], "{what:?}");
    }
    // The error was a short write, without the number of the full disk.
    let (disk, ledger) = on_a_disk(Durability::None);
    disk.inject(Fault::once(1, What::Short).of(Call::Write));
    disk.inject(Fault::once(2, What::Error(Io::StorageFull)).of(Call::Write));
    let error = refused(ledger.append(&event(0, 900)), ErrorKind::Io);
    assert_eq!(error.io_source().unwrap().kind(), Io::StorageFull, "{error}");
    assert_eq!(error.durable(), Some(Durable::No));
}

/// Each append on a full disk left an empty file, and in the end used up all inodes. It also used up an index: readers
/// took the gap for lost files.
// Promise: ledger-full.
#[test]
fn full_disk_gets_no_files_and_appends_resume() {
    for stored in [0, 4] {
        let (disk, ledger) = on_a_disk(Durability::None);
        append_each(&ledger, &events(0..stored, 0));
        let before = names(&disk, DIR);
        disk.inject(Fault::ever(1, What::Error(Io::StorageFull)).of(Call::Write));
        for number in 10..60 {
            let error = refused(ledger.append(&event(number, 0)), ErrorKind::Io);
            assert_eq!(error.io_source().unwrap().kind(), Io::StorageFull);
            assert_eq!(error.durable(), Some(Durable::No));
        }
        assert_eq!(names(&disk, DIR), before);
        disk.heal();
        append_each(&ledger, &events(stored..stored + 4, 0));
        assert_eq!(drain(&ledger), events(0..stored + 4, 0));
        let indexes = names(&disk, DIR).len() as u64;
        assert_eq!((indexes, u64::from(last_index(&ledger)) + 1), (stored / 2 + 2, indexes));
    }
}

// Promise: ledger-fsync-fails.
#[test]
fn failed_sync_refuses_appends_but_allows_sending() {
    for durability in [Durability::Always, Durability::Rotate] {
        let (disk, ledger) = on_a_disk(durability);
        ledger.append_many(events(0..2, 0)).unwrap();
        disk.inject(Fault::once(1, What::Error(Io::Other)).of(Call::Sync));
        let error = refused(ledger.append_many(events(2..4, 0)), ErrorKind::Io);
        assert_eq!(error.durable(), Some(Durable::Unknown), "{error}");
        // The error of a later append said "perhaps in the ledger", though the append had not begun.
        for (refusal, durable) in [
            (refused(ledger.append(&event(4, 0)), ErrorKind::Poisoned), Durable::No),
            (refused(ledger.append_many(events(4..6, 0)), ErrorKind::Poisoned), Durable::No),
            (refused(ledger.sync(), ErrorKind::Poisoned), Durable::Unknown),
        ] {
            assert_eq!(refusal.durable(), Some(durable), "{refusal}");
        }
        assert_eq!(drain(&ledger), events(0..4, 0), "the cache still has them");
        ledger.close().unwrap_err();
        assert!(ledger.is_closed());
        let again = options(&disk, durability).open(small(DIR, 100_000)).unwrap();
        again.append(&event(5, 0)).unwrap();
    }
}

/// On a full disk, the next index cannot be stored. Fetches failed, so the sender could not make room.
// Promise: ledger-full.
#[test]
fn sending_from_a_full_disk_frees_space() {
    for durability in [Durability::None, Durability::Always] {
        let (disk, ledger) = on_a_disk(durability);
        ledger.append(&event(0, 0)).unwrap();
        send(&ledger);
        ledger.append(&event(1, 0)).unwrap();
        disk.inject(Fault::ever(1, What::Error(Io::StorageFull)).of(Call::Create));
        let fetched = ledger.fetch(None, None).unwrap().unwrap();
        let shown_last = shown(&fetched).last().unwrap().0;
        // The fetch has shown the index, so no later file may have the index, not even after a power cut.
        let comes_never_again = |is_sent: bool| {
            for choice in choices(&disk, 1000, 0) {
                let disk = disk.crashes().build(&choice);
                let again = options(&disk, Durability::Always).open(small(DIR, 100_000)).unwrap();
                assert!(!is_sent || again.fetch(None, None).unwrap().is_none(), "{durability:?}");
                again.append(&event(7, 0)).unwrap();
                let next = last_index(&again);
                assert!(next > shown_last, "{durability:?}: {next} after {shown_last}");
            }
        };
        comes_never_again(false);
        // The index takes the space of the sent records. If the space is too small (XFS), the name stays without the
        // records. Removal failed, and a disk filled by the ledger stayed full.
        ledger.remove(&fetched.removable.unwrap()).unwrap();
        let sizes: Vec<_> = listing(&disk, Path::new(DIR)).values().map(Vec::len).collect();
        assert_eq!(sizes, [0], "{durability:?}");
        comes_never_again(true);
        disk.heal();
        assert!(ledger.fetch(None, None).unwrap().is_none());
        assert!(names(&disk, DIR).is_empty(), "{durability:?}");
        ledger.append(&event(8, 0)).unwrap();
        assert!(last_index(&ledger) > shown_last);
    }
}

/// The store ignored a counter that it could not open or read, and used a sent index again.
#[test]
fn index_never_repeats_after_an_unreadable_counter() {
    for why in [Io::Other, Io::PermissionDenied] {
        let mut refusals = 0;
        for k in 1..10 {
            let (disk, ledger) = on_a_disk(Durability::None);
            ledger.append(&event(0, 0)).unwrap();
            let first = send(&ledger)[0].0;
            drop(ledger);
            disk.inject(Fault::once(k, What::Error(why)).of(Call::Open));
            let append = || {
                let ledger = options(&disk, Durability::None).open(small(DIR, 100_000))?;
                ledger.append(&event(1, 0))?;
                Ok(ledger)
            };
            let again = append().or_else(|error: Error| {
                assert_eq!(error.kind(), ErrorKind::Io);
                refusals += 1;
                disk.heal();
                append()
            });
            disk.heal();
            assert!(last_index(&again.unwrap()) > first, "open {k}: {why}");
        }
        assert!(refusals > 0, "{why}");
    }
}

/// An append failed if another program took the name after the directory was listed. A disk too full for a new file was
/// reported as a lock.
#[test]
fn taken_name_is_skipped_and_full_disk_reported() {
    let mut passed_over = 0;
    for k in 1..8 {
        let (disk, ledger) = on_a_disk(Durability::None);
        disk.inject(Fault::once(k, What::Error(Io::AlreadyExists)).of(Call::Create));
        let appended = ledger.append(&event(0, 0));
        disk.heal();
        passed_over += usize::from(appended.is_ok() && last_index(&ledger) == 1);
    }
    assert_eq!(passed_over, 1);
    let (disk, ledger) = on_a_disk(Durability::None);
    disk.inject(Fault::ever(1, What::Error(Io::StorageFull)).of(Call::Create));
    let error = refused(ledger.append(&event(0, 0)), ErrorKind::Io);
    assert_eq!(error.io_source().unwrap().kind(), Io::StorageFull);
    // The same for the file after a full one, without a second try.
    disk.heal();
    ledger.append_many(events(0..2, 0)).unwrap();
    disk.inject(Fault::once(1, What::Error(Io::StorageFull)).of(Call::Create));
    refused(ledger.append(&event(2, 0)), ErrorKind::Io);
}

/// A batch that fails in its second file is partly in the ledger.
// Promise: ledger-call-fails.
#[test]
fn partly_stored_batch_reports_unknown_durability() {
    let (disk, ledger) = on_a_disk(Durability::None);
    disk.inject(Fault::once(3, What::Error(Io::StorageFull)).of(Call::Write));
    let error = refused(ledger.append_many(events(0..7, 0)), ErrorKind::Io);
    assert_eq!(error.durable(), Some(Durable::Unknown));
    assert!(error.message().contains("4 of 7 records"), "{error}");
    assert_eq!(drain(&ledger), events(0..4, 0));
}

/// One unreadable file would have kept all later files from being sent.
// Promise: ledger-call-fails.
#[test]
fn unreadable_file_blocks_no_other_file() {
    let (disk, ledger) = on_a_disk(Durability::None);
    ledger.append_many(events(0..6, 0)).unwrap();
    disk.inject(Fault::once(1, What::Error(Io::Other)).of(Call::Read));
    // The limit's file is read first, if there is one.
    assert_eq!(drain(&ledger), events(2..6, 0));
    assert_eq!(drain(&ledger), events(0..6, 0));
    disk.inject(Fault::ever(1, What::Error(Io::Other)).of(Call::Read));
    refused(ledger.fetch(None, None), ErrorKind::Io);
    disk.heal();
    assert_eq!(drain(&ledger), events(0..6, 0), "nothing was removed");
}

/// The file could not go to the quarantine, and no fetch returned anything.
#[test]
fn torn_file_blocks_no_other_on_full_disk() {
    let (disk, ledger) = on_a_disk(Durability::None);
    put(&disk, 0, &file_of(&events(0..1, 0))[..20]);
    ledger.append(&event(1, 0)).unwrap();
    disk.inject(Fault::ever(1, What::Error(Io::StorageFull)).of(Call::Create));
    assert_eq!(drain(&ledger), events(1..2, 0));
    assert_eq!(names(&disk, DIR), ["0-events", "1-events"]);
    disk.heal();
    assert_eq!(drain(&ledger), events(1..2, 0));
    assert_eq!(names(&disk, DIR), ["1-events"]);
}

/// If the next index could not be read, the removal emptied the file, as on a full disk.
#[test]
fn failed_removal_leaves_the_file_unchanged() {
    let (disk, ledger) = on_a_disk(Durability::None);
    ledger.append_many(events(0..3, 0)).unwrap();
    let fetched = ledger.fetch(None, None).unwrap().unwrap();
    disk.inject(Fault::ever(1, What::Error(Io::Other)).of(Call::Read));
    refused(ledger.remove(&fetched.removable.unwrap()), ErrorKind::Io);
    disk.heal();
    assert_eq!(drain(&ledger), events(0..3, 0));
}

/// A full ledger could not drop the file being written, and no sync reached the file any more.
#[test]
fn file_is_synced_after_its_drop_failed() {
    let disk = Sim::new();
    let options = on(disk.clone()).durability(Durability::Bytes(1 << 30));
    let options = options.bytes_total_max(1000).when_full(WhenFull::DropOldest);
    let ledger = options.open(small(DIR, 1000)).unwrap();
    append_each(&ledger, &events(0..31, 0));
    disk.inject(Fault::ever(1, What::Error(Io::Other)).of(Call::Remove));
    refused(ledger.append(&event(31, 0)), ErrorKind::Io);
    disk.heal();
    ledger.sync().unwrap();
    for choice in choices(&disk, 1000, 0) {
        let again = on(disk.crashes().build(&choice)).open(small(DIR, 1000)).unwrap();
        assert_eq!(drain(&again), events(0..31, 0));
    }
}

/// Another store may remove a file after the open and before the lock.
#[test]
fn file_removed_before_its_lock_is_no_error() {
    let mut passed_over = 0;
    for k in 1..6 {
        let (disk, ledger) = on_a_disk(Durability::None);
        ledger.append(&event(0, 0)).unwrap();
        disk.inject(Fault::once(k, What::Error(Io::NotFound)).of(Call::Lock));
        passed_over += usize::from(ledger.fetch(None, None).is_ok_and(|found| found.is_none()));
    }
    assert_eq!(passed_over, 1);
}
