//! Bugs that were found in the write-ahead log, each with its story.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![allow(clippy::print_stdout)]

mod harness;

use deedbook::storage::sim::{Call, Fault, Sim, What};
use deedbook::wal::{Lsn, Wal};
use deedbook::{Durability, Durable, ErrorKind};

use harness::wal::{SINGLE, TINY, WalSubject};
use harness::{How, mix};

const MANUAL: How = How { durability: Durability::Manual, acknowledged: false };
const ACKNOWLEDGED: How = How { durability: Durability::Manual, acknowledged: true };

/// Kill the process behind every call of `change`, and cut the power behind every call of the
/// recovery: the log opens and holds as many records as before or as after.
fn survives_two_crashes(
    subject: &WalSubject,
    how: How,
    disk: &Sim,
    change: impl FnOnce(),
    lens: [u64; 2],
) {
    disk.record();
    change();
    let moments = disk.recorded();
    assert!(moments.len() > 3);
    for (call, killed) in moments.iter().enumerate() {
        killed.record();
        drop(subject.wal(killed, how).unwrap());
        for (second, disk) in killed.recorded().iter().enumerate() {
            let crashes = disk.crashes();
            for index in 0..crashes.count().min(32) {
                let choice = match crashes.count() <= 32 {
                    true => crashes.nth(index),
                    false => crashes.sample(mix(index)),
                };
                let wal = subject.wal(&crashes.build(&choice), how).unwrap_or_else(|error| {
                    panic!("killed at {call}, power cut at {second}, {choice:?}: {error:?}")
                });
                let len = wal.len().unwrap();
                assert!(lens.contains(&len), "killed at {call}, power cut at {second}: {len}");
            }
        }
    }
}

fn five(subject: &WalSubject, disk: &Sim, how: How) -> (Wal, Vec<Lsn>) {
    let wal = subject.wal(disk, how).unwrap();
    let lsns = (0..5).map(|n| wal.append(&[n; 50]).unwrap()).collect();
    wal.sync().unwrap();
    (wal, lsns)
}

/// Found by the enumerator: a process was killed in the middle of `truncate_after`, behind the
/// removal of the segments. The next one found nothing left to cut, and removed the intent without
/// a sync of the directory; a power cut then brought the segments back, and nobody knew that they
/// were to go.
#[test]
fn a_truncation_that_recovery_ends_is_durable_before_its_intent_goes() {
    let disk = Sim::new();
    let (wal, lsns) = five(&TINY, &disk, MANUAL);
    survives_two_crashes(&TINY, MANUAL, &disk, || wal.truncate_after(lsns[0]).unwrap(), [5, 1]);
}

/// Found by the enumerator: killed in `truncate_after` behind the rename of the lowered mark, whose
/// directory was not synced. The next process took the mark in the cache for durable, cut, and
/// removed the intent; a power cut brought the old mark back, which says that records are missing.
#[test]
fn a_mark_lowered_in_the_cache_only_is_lowered_again_before_the_cut() {
    for how in [MANUAL, ACKNOWLEDGED] {
        for subject in [&SINGLE, &TINY] {
            let disk = Sim::new();
            let (wal, lsns) = five(subject, &disk, how);
            survives_two_crashes(
                subject,
                how,
                &disk,
                || wal.truncate_from(lsns[4]).unwrap(),
                [5, 4],
            );
        }
    }
}

/// Found by the enumerator: between the new head and its mark no mark is believed, and recovery cut
/// the segments reserved ahead. With the power gone half-way, one of them came back behind a gap,
/// and the log was refused as corrupt, though all that was torn was empty.
#[test]
fn segments_reserved_ahead_that_come_back_behind_a_gap_are_torn() {
    let disk = Sim::new();
    disk.set_allocates(true);
    let (wal, _) = five(&TINY, &disk, MANUAL);
    let end = wal.end().unwrap();
    survives_two_crashes(&TINY, MANUAL, &disk, || wal.truncate_before(end).unwrap(), [5, 0]);
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
    let crashes = disk.crashes();
    let wal = TINY.wal(&crashes.build(&crashes.nth(0)), MANUAL).unwrap();
    assert_eq!(wal.read(Lsn(64)).unwrap(), b"acknowledged");
}

/// Found by the fault loops: the cut of a truncation was in the cache only, because its sync had
/// failed. The next writer found nothing left to cut, synced nothing, and removed the intent; a
/// power cut brought the dropped records back.
#[test]
fn a_cut_whose_sync_failed_is_made_again() {
    for subject in [&SINGLE, &TINY] {
        for at in 1..8 {
            let disk = Sim::new();
            let (wal, lsns) = five(subject, &disk, MANUAL);
            let eio = What::Error(std::io::ErrorKind::Other);
            disk.inject(Fault::once(at, eio).of(Call::Sync));
            if wal.truncate_after(lsns[1]).is_ok() {
                assert!(at > 3);
                break;
            }
            drop(wal);
            let len = subject.wal(&disk, MANUAL).unwrap().len().unwrap();
            let crashes = disk.crashes();
            for index in 0..crashes.count().min(32) {
                let after = subject.wal(&crashes.build(&crashes.nth(index)), MANUAL).unwrap();
                assert_eq!(after.len().unwrap(), len, "{} sync {at}", subject.name);
            }
        }
    }
}

/// Found by the fault loops: a truncation that could not even read the log changed nothing, and did
/// not say so.
#[test]
fn a_truncation_that_was_refused_says_that_nothing_changed() {
    let disk = Sim::new();
    let (wal, lsns) = five(&TINY, &disk, MANUAL);
    let eio = What::Error(std::io::ErrorKind::Other);
    disk.inject(Fault::once(1, eio).of(Call::Read));
    let error = wal.truncate_after(lsns[1]).unwrap_err();
    assert_eq!((error.kind(), error.durable()), (ErrorKind::Io, Some(Durable::No)));
    assert_eq!(wal.len().unwrap(), 5);
    wal.truncate_after(lsns[1]).unwrap();
    assert_eq!(wal.len().unwrap(), 2);
}
