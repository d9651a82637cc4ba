//! Bugs found in truncations of the write-ahead log: crashes in the middle, and changes left by a refused truncation.

use std::io::ErrorKind::{Other, StorageFull};
use std::sync::atomic::Ordering::Relaxed;

use super::*;
use crate::support::formats::wal::SEGMENTS as LONG_SEGMENTS;

/// Segments with room for blocks of the index, each of 66 records of 1,000 bytes.
const LARGE: WalSubject = WalSubject::segments(&LONG_SEGMENTS);

fn beside(subject: &WalSubject, name: &str) -> PathBuf {
    subject.sidecar().join(name)
}

/// Truncate at the 350th record, both ways, and check the count of the remaining records.
fn counts_what_is_left(disk: &Sim, how: How, lsns: &[Lsn], what: &str) {
    for front in [true, false] {
        let disk = disk.kill();
        let wal = LARGE.wal(&disk, how).unwrap();
        let want = match front {
            true => 250,
            false => wal.len().unwrap() - 249,
        };
        let truncate = if front { Wal::truncate_before } else { Wal::truncate_after };
        truncate(&wal, lsns[350]).unwrap_or_else(|e| panic!("{what}, front {front}: {e}"));
        assert_eq!(wal.len().unwrap(), want, "{what}, front {front}");
        wal.append(&[7; 992]).unwrap();
        wal.close().unwrap();
        let wal = LARGE.wal(&disk, how).unwrap();
        assert_eq!(wal.recovery().mark, MarkUse::Used, "{what}, front {front}");
        assert_eq!(wal.len().unwrap(), want + 1, "{what}, front {front}");
        assert_eq!(read_all(&wal).unwrap().len() as u64, want + 1, "{what}, front {front}");
    }
}

/// After a kill between the new head and its mark, the next process numbered records from 0, but continued the index of
/// the old mark: the next truncation subtracted mixed ordinals, and panicked or left a log of 2^64 records.
#[test]
fn ordinals_agree_after_a_crashed_prefix_truncation() {
    for how in [MANUAL, ACKNOWLEDGED] {
        let (disk, wal, lsns) = synced(&LARGE, how, 600, 992);
        disk.record();
        wal.truncate_before(lsns[100]).unwrap();
        let mut moved = 0;
        for (call, killed) in disk.recorded().iter().enumerate() {
            counts_what_is_left(killed, how, &lsns, &format!("call {call}"));
            // Kill the next process, too, and also a process that dropped a prefix again.
            let next = killed.kill();
            let wal = LARGE.wal(&next, how).unwrap();
            let later = next.kill();
            counts_what_is_left(&later, how, &lsns, &format!("call {call}, opened"));
            moved += u64::from(wal.head().unwrap() == lsns[100]);
            wal.append(&[7; 80_000]).unwrap();
            wal.sync().unwrap();
            next.record();
            wal.truncate_before(lsns[200]).unwrap();
            let moments = next.recorded();
            let last = moments.len() - 3;
            let again = LARGE.wal(&moments[last].kill(), how).unwrap();
            assert_eq!((again.head().unwrap(), again.len().unwrap()), (lsns[200], 401));
            again.truncate_before(lsns[350]).unwrap();
            assert_eq!(again.len().unwrap(), 251);
        }
        assert!(moved > 5);
    }
}

/// Older versions left a mark that numbers 200 records from 0, where the index says 550 for the middle one.
#[test]
fn a_foreign_ordinal_is_neither_subtracted_nor_used() {
    for front in [true, false] {
        let (disk, wal, lsns) = synced(&LARGE, MANUAL, 600, 992);
        wal.truncate_before(lsns[400]).unwrap();
        wal.close().unwrap();
        let path = beside(&LARGE, "mark");
        let mut mark = read_file(&disk, &path);
        for slot in [0, 512] {
            mark[slot + 16..slot + 24].fill(0);
            let crc = crc32(&mark[slot..slot + 124]);
            mark[slot + 124..slot + 128].copy_from_slice(&crc.to_le_bytes());
        }
        write_file(&disk, &path, &mark);
        let wal = LARGE.wal(&disk, MANUAL).unwrap();
        assert_eq!((wal.recovery().mark, wal.len().unwrap()), (MarkUse::Used, 200));
        match front {
            true => wal.truncate_before(lsns[550]).unwrap(),
            false => wal.truncate_after(lsns[550]).unwrap(),
        };
        assert_eq!(wal.len().unwrap(), if front { 50 } else { 151 });
    }
}

/// A review found this: if the intent had no room, or the directory with the lowered consumers could not be synced, the
/// cut was refused without a change, but the consumers stayed lowered.
#[test]
fn a_refused_cut_puts_the_consumers_back() {
    for (what, kth, kind, times) in [
        // Without room the consumers cannot be lowered, so nothing must be put back.
        (Call::Create, 1, StorageFull, u64::MAX),
        (Call::Create, 1, StorageFull, 1),
        (Call::Create, 2, StorageFull, 1),
        (Call::Write, 2, StorageFull, 1),
        (Call::Rename, 1, Other, 1),
        (Call::Rename, 2, Other, 1),
        (Call::Sync, 1, Other, 1),
        (Call::Sync, 2, Other, 1),
        (Call::SyncDir, 1, Other, 1),
    ] {
        let (disk, wal, lsns) = synced(&SEGMENTS, MANUAL, 5, 50);
        wal.set_consumer("low", lsns[1]).unwrap();
        wal.set_consumer("high", lsns[4]).unwrap();
        let before = wal.consumers().unwrap();
        disk.inject(Fault { times, ..Fault::once(kth, What::Error(kind)).of(what) });
        let error = wal.truncate_from(lsns[2]).unwrap_err();
        disk.heal();
        assert_eq!(error.durable(), Some(Durable::No), "{what:?} {kth}: {error}");
        assert_eq!((wal.len().unwrap(), wal.consumers().unwrap()), (5, before.clone()), "{what:?}");
        // A power cut may lose positions without harm, but here it loses none.
        for after in states(&disk, 64) {
            let wal = SEGMENTS.wal(&after, MANUAL).unwrap();
            assert_eq!(wal.consumers().unwrap(), before, "{what:?} {kth}, power cut");
        }
        wal.truncate_from(lsns[2]).unwrap();
        assert_eq!((wal.len().unwrap(), wal.consumers().unwrap()["high"]), (2, lsns[2]));
    }
}

/// If the consumers cannot be put back, the error does not claim that nothing changed.
#[test]
fn unrestored_consumers_leave_a_truncation_in_doubt() {
    for (what, at) in [(Call::Create, 2), (Call::Rename, 2), (Call::SyncDir, 1)] {
        let (disk, wal, lsns) = synced(&SEGMENTS, MANUAL, 5, 50);
        wal.set_consumer("high", lsns[4]).unwrap();
        disk.inject(Fault::ever(at, What::Error(StorageFull)).of(what));
        let error = wal.truncate_from(lsns[2]).unwrap_err();
        disk.heal();
        assert_eq!(error.durable(), Some(Durable::Unknown), "{what:?}: {error}");
        assert!(wal.append(b"poisoned").is_err());
        drop(wal);
        assert_eq!(SEGMENTS.wal(&disk, MANUAL).unwrap().len().unwrap(), 5);
    }
}

/// A truncation crashed before its mark was stored, and then the last record rotted. The older mark also counts dropped
/// records: the report said 4 lost, but 3 of the 4 had been dropped.
#[test]
fn records_dropped_by_truncation_are_not_lost() {
    let (disk, wal, lsns) = synced(&TINY, MANUAL, 5, 50);
    let mark = beside(&TINY, "mark");
    let before = read_file(&disk, &mark);
    wal.truncate_before(lsns[3]).unwrap();
    let disk = disk.kill();
    write_file(&disk, &mark, &before);
    damage(&TINY, &disk, lsns[4].0 + 20);
    let dry_run = Repair { dry_run: true, ..Repair::default() };
    let report = TINY.options(&disk, MANUAL).repair(TINY.path, dry_run).unwrap();
    let (loss, damage) = (report.loss.unwrap(), &report.damages[0]);
    // 0: how many is not known.
    assert_eq!((loss.records, loss.offset), (0, lsns[4].0));
    assert_eq!((damage.records_lost, damage.offset), (None, lsns[4].0));
}

/// The older of two exact marks, which counts from another head, came back after a truncation.
#[test]
fn an_exact_mark_before_a_truncation_removes_nothing() {
    for subject in [&TINY, &SEGMENTS] {
        let (disk, wal, mut lsns) = synced(subject, ACKNOWLEDGED, 5, 50);
        let mark = read_file(&disk, &beside(subject, "mark"));
        wal.truncate_before(lsns[2]).unwrap();
        lsns.extend((5..7).map(|n| wal.append(&[n; 50]).unwrap()));
        wal.sync().unwrap();
        drop(wal);
        write_file(&disk, &beside(subject, "mark"), &mark);
        let wal = subject.wal(&disk, ACKNOWLEDGED).unwrap();
        let found = read_all(&wal).unwrap();
        assert!(found.iter().map(|record| Lsn(record.number())).eq(lsns.drain(2..)));
        assert_eq!(wal.recovery().cut_records, 0, "{}", subject.name);
    }
}

/// Records cut or dropped during a check counted as "acknowledged and lost", or as a missing file.
#[test]
fn verify_during_a_truncation_reports_no_loss() {
    for subject in [SINGLE, SEGMENTS, TINY] {
        // A single file has no prefix to drop.
        let is_single = subject.layout == Layout::Single;
        for cuts_the_end in [true, false].into_iter().filter(|cuts| *cuts || !is_single) {
            for at_call in 0.. {
                let (disk, wal, lsns) = synced(&subject, MANUAL, 5, 50);
                let calls = Arc::new(AtomicU64::new(0));
                let change = {
                    let calls = calls.clone();
                    move |seen| {
                        if seen == Seen::Calling && calls.fetch_add(1, Relaxed) == at_call {
                            let cut = match cuts_the_end {
                                true => wal.truncate_after(lsns[1]),
                                false => wal.truncate_before(lsns[3]),
                            };
                            cut.unwrap();
                        }
                    }
                };
                let options = subject.options(&disk, MANUAL);
                let options = options.storage(watched(Arc::new(disk.clone()), change));
                let report = options.verify(subject.path).unwrap();
                let what = format!("{}, {cuts_the_end}, call {at_call}: {report:?}", subject.name);
                assert!(!report.lost_acknowledged && report.damages.is_empty(), "{what}");
                if calls.load(Relaxed) <= at_call {
                    break;
                }
            }
        }
    }
}

/// A crash in the middle of a cut leaves a mark above the new end, which does not count.
#[test]
fn a_begun_cut_knows_the_head() {
    let (disk, wal, lsns) = synced(&TINY, MANUAL, 5, 50);
    wal.truncate_before(lsns[1]).unwrap();
    // The first rename stores the intent, the second the lowered mark.
    disk.inject(Fault::once(2, What::Crash).of(Call::Rename));
    wal.truncate_after(lsns[3]).unwrap_err();
    let disk = disk.kill();
    write_file(&disk, &Path::new(TINY.path).join(HEAD_NAME), &[7; 12]);
    let wal = TINY.wal(&disk, MANUAL).unwrap();
    assert_eq!((wal.head().unwrap(), wal.len().unwrap()), (lsns[1], 3));
    assert!(wal.recovery().finished_truncation);
}
