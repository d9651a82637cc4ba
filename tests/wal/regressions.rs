//! Bugs that were found in the write-ahead log, each with its story.

use std::fs;
use std::io::ErrorKind::{Other, StorageFull};
use std::path::Path;

use deedbook::storage::sim::{Call, Fault, Sim, What};
use deedbook::storage::{Access, Storage};
use deedbook::wal::{
    Layout, Lsn, Mode, OnCorrupt, Options, Wal, repair, salvage, segment_name, verify,
};
use deedbook::{Durable, ErrorKind, Recovery, Repair, Verdict};

use crate::support::common::{read_file, write_file};
use crate::support::formats::wal::read_all;
use crate::support::harness::files::damage;
use crate::support::harness::subjects::{SEGMENTS, SINGLE, TINY};
use crate::support::harness::{MANUAL, states, worst};
use crate::tools::{at_every_call, found, synced, synced_on};

/// Kill the process after every call of a truncation of five records, and cut the power after every
/// call of the recovery: the log opens and holds five records, or as many as the truncation leaves.
fn survives_two_crashes(disk: Sim, left: u64, truncate: fn(&Wal, &[Lsn])) {
    let (disk, wal, lsns) = synced_on(disk, &TINY, MANUAL, 5, 50);
    disk.record();
    truncate(&wal, &lsns);
    let moments = disk.recorded();
    assert!(moments.len() > 3);
    for (at, killed) in moments.iter().enumerate() {
        for (call, after) in at_every_call(killed, 32, || TINY.wal(killed, MANUAL).unwrap()) {
            let what = format!("killed at {at}, power cut at {call}");
            let wal = TINY.wal(&after, MANUAL).unwrap_or_else(|error| panic!("{what}: {error:?}"));
            let len = wal.len().unwrap();
            assert!([5, left].contains(&len), "{what}: {len}");
        }
    }
}

/// Found by the enumerator: a process was killed in the middle of `truncate_after`, after the
/// removal of the segments. The next one found nothing left to cut, and removed the intent without
/// a sync of the directory; a power cut then brought the segments back, and nothing said that they
/// were to go.
// Promise: wal-recovery.
#[test]
fn a_truncation_that_recovery_ends_is_durable_before_its_intent_goes() {
    survives_two_crashes(Sim::new(), 1, |wal, lsns| {
        wal.truncate_after(lsns[0]).unwrap();
    });
}

/// Found by the enumerator: between the new head and its mark no mark is believed, and recovery cut
/// the segments reserved ahead. With the power gone half-way, one of them came back after a gap,
/// and the log was refused as corrupt, though all that was torn was empty.
// Promise: wal-recovery.
#[test]
fn segments_reserved_ahead_that_come_back_behind_a_gap_are_torn() {
    let disk = Sim::new();
    disk.set_allocates(true);
    survives_two_crashes(disk, 0, |wal, _| {
        wal.truncate_before(wal.end().unwrap()).unwrap();
    });
}

/// Found by the enumerator: a writer opened a log that was closed exactly on a segment's border,
/// created the next segment, and was killed. The next writer found a clean log, appended into the
/// segment it found, and synced that, but not the directory: a power cut took what it acknowledged.
#[test]
fn a_segment_that_a_killed_writer_created_is_made_durable() {
    let disk = Sim::new();
    let wal = TINY.wal(&disk, MANUAL).unwrap();
    wal.append(&[1; 56]).unwrap();
    wal.close().unwrap();
    let wal = TINY.wal(&disk, MANUAL).unwrap();
    disk.inject(Fault::once(1, What::Crash).of(Call::Write));
    wal.append(b"killed").unwrap_err();
    let disk = disk.kill();
    let wal = TINY.wal(&disk, MANUAL).unwrap();
    assert_eq!(wal.append(b"acknowledged").unwrap(), Lsn(64));
    wal.sync().unwrap();
    let wal = TINY.wal(&worst(&disk), MANUAL).unwrap();
    assert_eq!(wal.read(Lsn(64)).unwrap().payload, b"acknowledged");
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

/// Everything was dropped up to the end, and the mark of the new head was in the cache only. After a
/// power cut the mark on the disk ended at the head, so it was taken for another log's, and a record
/// torn since, which held whole records, was refused as corrupt.
#[test]
fn a_torn_record_after_a_new_head_is_torn() {
    let nested = SEGMENTS.nested();
    let disk = Sim::new();
    let wal = SEGMENTS.wal(&disk, MANUAL).unwrap();
    for n in 0..5 {
        wal.append(&[n; 200]).unwrap();
    }
    wal.sync().unwrap();
    wal.truncate_before(wal.end().unwrap()).unwrap();
    wal.append(&nested.repeat(3)).unwrap();
    for after in states(&disk, 300) {
        assert!(found(&SEGMENTS, &after).len() <= 1);
    }
}

/// The book's find, here too: a power cut lost one page in the middle of what was
/// never acknowledged, and after it lay intact records. Every way of reading stops before it.
// Promise: wal-torn.
#[test]
fn a_torn_tail_ends_at_its_first_damage_for_all_who_look() {
    for subject in [&SINGLE, &SEGMENTS] {
        let (disk, wal, _) = synced(subject, MANUAL, 5, 50);
        // Up to the end of a segment of 600 bytes, and then three to each.
        assert_eq!(wal.append(&[9; 302]).unwrap().0 + 310, 600);
        (5..25).for_each(|n| assert!(wal.append(&[n; 192]).is_ok()));
        let all = read_all(&wal).unwrap();
        let mut shorter = 0;
        for (index, after) in states(&disk, 100).into_iter().enumerate() {
            let options = subject.options(&after, MANUAL);
            let reader = options.open(subject.path, Mode::Read).unwrap();
            let kept = reader.len().unwrap() as usize;
            let mut skipping = reader.cursor(None, None, OnCorrupt::Skip).unwrap();
            let mut read = 0;
            while skipping.next().unwrap().is_some() {
                read += 1;
            }
            let report = verify(subject.path, &options, |_, _| Ok(())).unwrap();
            let copied = salvage(subject.path, "/copy", &options, |_, _| Ok(())).unwrap();
            let seen = [read, report.records as usize, copied.records as usize];
            assert_eq!(seen, [kept; 3], "{}, {index}: {report:?}", subject.name);
            assert_ne!(report.verdict, Verdict::Corrupt, "{}, {index}: {report:?}", subject.name);
            drop(reader);
            assert_eq!(found(subject, &after), all[..kept], "{}, {index}", subject.name);
            shorter += usize::from(report.verdict == Verdict::Torn);
        }
        assert!(shorter > 50);
    }
}

/// Found by a slip of the hand: the arguments of `deedbook append` in the wrong order name a file of
/// lines as the log. Nothing in it is a record, so all of it was a torn tail, and was cut away.
#[test]
fn a_file_that_never_was_a_log_is_refused_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let zip = [&b"PK\x03\x04\x14\0\0\0"[..], &[9; 500]].concat();
    let image = [&[0; 600][..], b"data beyond an empty first block"].concat();
    for (name, bytes) in
        [("lines", &b"{\"n\":1}\n{\"n\":2}\n"[..]), ("zip", &zip), ("image", &image)]
    {
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        for error in [Wal::append_to(&path).unwrap_err(), Wal::open(&path).unwrap_err()] {
            assert_eq!(error.kind(), ErrorKind::NotALog, "{error}");
            assert!(error.to_string().contains("does not begin with a record"), "{error}");
        }
        assert_eq!(fs::read(&path).unwrap(), bytes);
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
            let report = verify(&path, &Options::new(), |_, _| Ok(())).unwrap();
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
                "repair" => repair(&path, &Options::new(), Repair::default()).unwrap().saved_to,
                _ => spec.open(&path, Mode::Append).unwrap().recovery().saved_to.clone(),
            };
            assert_eq!(fs::read(saved.unwrap()).unwrap(), torn[..len]);
            let wal = Wal::append_to(&path).unwrap();
            assert_eq!(wal.recovery().verdict, Verdict::Clean);
            assert_eq!(wal.commit(b"x").unwrap(), Lsn(0));
        }
    }
}

/// Found on the command line: a single file was gone, what lay beside it was not, and opening for
/// writing made a log of segments in its place as if nothing had been lost.
#[test]
fn a_single_file_that_is_gone_is_reported_and_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let single = Options::new().layout(Layout::Single);
    let wal = single.open(&path, Mode::Create).unwrap();
    wal.commit(b"acknowledged").unwrap();
    wal.close().unwrap();
    fs::remove_file(&path).unwrap();
    assert_eq!(Wal::append_to(&path).unwrap_err().kind(), ErrorKind::LostRecords);
    assert_eq!(Wal::open(&path).unwrap_err().kind(), ErrorKind::LostRecords);
    assert!(!path.exists());
}

/// Found by random histories: of the records after a damaged one, the first was passed over, by
/// `verify`, `salvage` and skipping cursors, if it began at a border that the index knows.
#[test]
fn an_intact_record_at_a_border_of_the_index_is_found_after_damage() {
    for subject in [&SINGLE, &SEGMENTS] {
        let disk = Sim::new();
        let wal = subject.wal(&disk, MANUAL).unwrap();
        wal.append(&[1; (64 << 10) - 8]).unwrap();
        wal.append(b"intact 1").unwrap();
        wal.append(b"intact 2").unwrap();
        wal.close().unwrap();
        damage(subject, &disk, 100);
        let options = subject.options(&disk, MANUAL);
        let report = verify(subject.path, &options, |_, _| Ok(())).unwrap();
        assert_eq!(report.records, 2, "{report:?}");
        assert_eq!(report.damages[0].next_intact, Some(64 << 10));
        let copied = salvage(subject.path, "/copy", &options, |_, _| Ok(())).unwrap();
        assert_eq!(copied.records, 2);
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
