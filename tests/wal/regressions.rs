//! Bugs that were found in the write-ahead log, each with its story.

use std::io::ErrorKind::{Other, StorageFull};

use deedbook::wal::{Lsn, Options, Wal, segment_name};

use crate::support::harness::subjects::{SEGMENTS, SINGLE, TINY};
use crate::support::harness::{MANUAL, states};
use crate::support::prelude::*;
use crate::tools::{at_every_call, found, synced, synced_on};

/// Found by the enumerator: between the new head and its mark no mark is believed, and recovery cut
/// the segments reserved ahead. With the power gone half-way, one of them came back after a gap,
/// and the log was refused as corrupt, though all that was torn was empty.
// Promise: wal-recovery.
#[test]
fn segments_reserved_ahead_that_come_back_behind_a_gap_are_torn() {
    let disk = Sim::new();
    disk.set_allocates(true);
    let (disk, wal, _) = synced_on(disk, &TINY, MANUAL, 5, 50);
    disk.record();
    wal.truncate_before(wal.end().unwrap()).unwrap();
    let moments = disk.recorded();
    assert!(moments.len() > 3);
    for (at, killed) in moments.iter().enumerate() {
        for (call, after) in at_every_call(killed, 32, || TINY.wal(killed, MANUAL).unwrap()) {
            let what = format!("killed at {at}, power cut at {call}");
            let wal = TINY.wal(&after, MANUAL).unwrap_or_else(|error| panic!("{what}: {error:?}"));
            let len = wal.len().unwrap();
            assert!([5, 0].contains(&len), "{what}: {len}");
        }
    }
}

/// Found by the fault loops: the cut of a truncation was in the cache only, because its sync had
/// failed. The next writer found nothing left to cut, synced nothing, and removed the intent; a
/// power cut brought the dropped records back.
// Promise: wal-fsync-fails.
#[test]
fn a_cut_whose_sync_failed_is_made_again() {
    for subject in [&SINGLE, &TINY] {
        for at in 1..8 {
            let (disk, wal, lsns) = synced(subject, MANUAL, 5, 50);
            disk.inject(Fault::once(at, What::Error(Other)).of(Call::Sync));
            if wal.truncate_after(lsns[1]).is_ok() {
                assert!(at > 3);
                break;
            }
            drop(wal);
            let len = found(subject, &disk).len();
            for after in states(&disk, 32) {
                assert_eq!(found(subject, &after).len(), len, "{} sync {at}", subject.name);
            }
        }
    }
}

/// Found by the fault loops: a truncation that could not even read the log changed nothing, and did
/// not say so.
// Promise: wal-read-error.
#[test]
fn a_truncation_that_was_refused_says_that_nothing_changed() {
    let (disk, wal, lsns) = synced(&TINY, MANUAL, 5, 50);
    disk.inject(Fault::once(1, What::Error(Other)).of(Call::Read));
    let error = wal.truncate_after(lsns[1]).unwrap_err();
    assert_eq!((error.kind(), error.durable()), (ErrorKind::Io, Some(Durable::No)));
    assert_eq!(wal.len().unwrap(), 5);
    wal.truncate_after(lsns[1]).unwrap();
    assert_eq!(wal.len().unwrap(), 2);
}

/// Found by the benchmark of group commit: a sync read the file's length, an append of another
/// thread reserved more space, and the sync took the difference for a truncation by another
/// process. Every later call failed, though nothing was wrong.
#[test]
fn a_sync_beside_an_append_that_reserves_space_succeeds() {
    use std::sync::atomic::{AtomicBool, Ordering};
    for _ in 0..5 {
        let dir = tempfile::tempdir().unwrap();
        let wal = Wal::create(dir.path().join("log")).unwrap();
        let end = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !end.load(Ordering::Relaxed) {
                    wal.sync().unwrap();
                }
            });
            let appended = (0..20_000).try_for_each(|_| wal.append(&[7; 4000]).map(drop));
            end.store(true, Ordering::Relaxed);
            appended.unwrap();
        });
    }
}

/// Found by a comparison with wal-db: a process of it that was killed in its first append leaves a
/// torn record and nothing else. That was "not a log" for every `recovery`, and for a repair.
#[test]
fn a_log_torn_in_its_first_record_can_be_cut() {
    let torn = [&[1, 2, 3, 4, 50, 0, 0, 0][..], &[9; 9]].concat();
    let dir = tempfile::tempdir().unwrap();
    let layouts = [
        ("log", "", 17, true),
        ("x.wal", "", 17, true),
        ("x.wal", "", 3, true),
        ("x", "", 3, false),
        ("dir", "00000000000000000000.wal", 17, true),
        ("dir", "00000000000000000000.wal", 3, true),
    ];
    for (name, segment, len, is_log) in layouts {
        for way in ["repair", "spec"] {
            let path = dir.path().join(format!("{way}{len}")).join(name);
            let file = if segment.is_empty() { path.clone() } else { path.join(segment) };
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, &torn[..len]).unwrap();
            let spec = Options::new().recovery(Recovery::Spec);
            if !is_log {
                for error in [Wal::open(&path).unwrap_err(), Wal::append_to(&path).unwrap_err()] {
                    assert_eq!(error.kind(), ErrorKind::NotALog, "{error}");
                }
                assert!(spec.open(&path, Mode::Append).is_err());
                continue;
            }
            let report = Options::new().verify(&path).unwrap();
            assert_eq!(report.verdict, Verdict::Torn);
            assert_eq!(Wal::open(&path).unwrap().len().unwrap(), 0);
            for recovery in [Recovery::Valid, Recovery::Acknowledged] {
                let refused = Options::new().recovery(recovery).open(&path, Mode::Append);
                let error = refused.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
                assert!(error.to_string().contains("repair it"), "{error}");
            }
            assert_eq!(fs::read(&file).unwrap(), torn[..len]);
            let saved = match way {
                "repair" => Options::new().repair(&path, Repair::default()).unwrap().saved_to,
                _ => spec.open(&path, Mode::Append).unwrap().recovery().saved_to.clone(),
            };
            assert_eq!(fs::read(saved.unwrap()).unwrap(), torn[..len]);
            let wal = Wal::append_to(&path).unwrap();
            assert_eq!(wal.recovery().verdict, Verdict::Clean);
            assert_eq!(wal.commit(b"x").unwrap(), Lsn(0));
        }
    }
}

/// Found by filling real disks: where not even the head marker, or the intent of a cut, had room any
/// more, nothing was changed, and the handle was poisoned all the same.
#[test]
fn a_truncation_that_finds_no_room_is_refused_and_the_handle_goes_on() {
    for what in [Call::Create, Call::Rename] {
        let (disk, wal, lsns) = synced(&SEGMENTS, MANUAL, 5, 50);
        for truncate in [Wal::truncate_before, Wal::truncate_from] {
            disk.inject(Fault::once(1, What::Error(StorageFull)).of(what));
            let error = truncate(&wal, lsns[2]).unwrap_err();
            assert_eq!((error.kind(), error.durable()), (ErrorKind::Io, Some(Durable::No)));
            disk.heal();
            assert_eq!(wal.len().unwrap(), 5);
        }
        wal.commit(b"goes on").unwrap();
        drop(wal);
        let wal = SEGMENTS.wal(&disk, MANUAL).unwrap();
        assert_eq!(wal.len().unwrap(), 6);
        // And with room again it is done.
        wal.truncate_before(lsns[2]).unwrap();
        wal.truncate_from(lsns[4]).unwrap();
        assert_eq!(wal.len().unwrap(), 2);
        assert!(disk.list("/log".as_ref()).unwrap().iter().all(|name| name != "head.tmp"));
    }
}

/// Found by failing every call: all records were dropped, and the mark of the new head was not yet
/// stored when the power was cut. The mark before it ends at the head, but was taken for another
/// log's, and so a segment that was only reserved made the log corrupt.
#[test]
fn a_mark_that_ends_at_the_new_head_is_the_logs() {
    let disk = Sim::new();
    let wal = TINY.wal(&disk, MANUAL).unwrap();
    wal.append(&[7; 92]).unwrap();
    wal.sync().unwrap();
    let mark = read_file(&disk, &TINY.sidecar().join("mark"));
    let head = wal.end().unwrap();
    wal.truncate_before(head).unwrap();
    let disk = disk.kill();
    write_file(&disk, &TINY.sidecar().join("mark"), &mark);
    let segment = |index| Path::new(TINY.path).join(segment_name(index));
    disk.open(&segment(1), Access::Write).unwrap().set_len(36).unwrap();
    write_file(&disk, &segment(2), &[0; 64]);
    let wal = TINY.wal(&disk, MANUAL).unwrap();
    assert_eq!((wal.len().unwrap(), wal.end().unwrap()), (0, head));
    assert_eq!(wal.append(b"on").unwrap(), head);
}
