//! Group commit and the segmented log under a model checker: the very code that users run, walked
//! through thousands of schedules of its threads.
//!
//! `make models` builds this with `--cfg shuttle`; in any other build there is nothing here. A
//! failure prints the schedule, and `SHUTTLE_REPLAY` (see `check`) runs that schedule again.
#![cfg(shuttle)]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod disk;
mod slots;

use std::sync::Arc;

use deedbook::wal::{Layout, Lsn, Mode, Options, Wal};
use deedbook::{Durability, ErrorKind};
use disk::{Disk, Trouble};
use shuttle::thread;

const PAYLOAD_BYTES: usize = 40;

/// Run a model through random schedules, and through others that favour rare orders.
fn check(model: impl Fn() + Send + Sync + Clone + 'static) {
    if let Ok(schedule) = std::env::var("SHUTTLE_REPLAY") {
        shuttle::replay(model, &schedule);
        return;
    }
    let schedules =
        std::env::var("SHUTTLE_SCHEDULES").map_or(1500, |count| count.parse().expect("a number"));
    shuttle::check_random(model.clone(), schedules);
    shuttle::check_pct(model, schedules, 3);
}

/// A log in segments so small that nearly every record spans two.
fn open(disk: &Disk, durability: Durability) -> Wal {
    let options = Options {
        durability,
        layout: Some(Layout::Segmented { segment_bytes: 64 }),
        storage: Arc::new(disk.clone()),
        ..Options::default()
    };
    options.open("/log", Mode::Append).expect("the log opens")
}

fn records(disk: &Disk) -> Vec<(Lsn, Vec<u8>)> {
    let options = Options { storage: Arc::new(disk.clone()), ..Options::default() };
    let wal = options.open("/log", Mode::Append).expect("recovery");
    wal.iter(None).unwrap().map(|r| r.unwrap()).map(|r| (r.lsn, r.payload)).collect()
}

fn payload(thread: u8, i: u8) -> Vec<u8> {
    let mut payload = vec![thread; PAYLOAD_BYTES];
    payload[0] = i;
    payload
}

/// What was acknowledged is there after a power cut at that very moment.
fn acknowledged(disk: &Disk, lsn: Lsn, payload: &[u8]) {
    let found = records(&disk.after_power_cut());
    assert!(found.iter().any(|(at, bytes)| *at == lsn && bytes == payload), "lsn {lsn} is lost");
}

/// The segmented fsync window: a leader syncs some segments while others append to these and to
/// new ones. No record is reported as durable if its segment was synced before the write.
#[test]
fn a_commit_that_returned_survives_a_power_cut() {
    check(|| {
        let disk = Disk::new(Trouble::None);
        let wal = open(&disk, Durability::Manual);
        let threads: Vec<_> = (0..3u8)
            .map(|number| {
                let (wal, disk) = (wal.clone(), disk.clone());
                thread::spawn(move || {
                    for i in 0..2 {
                        let lsn = wal.commit(&payload(number, i)).unwrap();
                        acknowledged(&disk, lsn, &payload(number, i));
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(records(&disk).len(), 6);
    });
}

/// Appends by some, syncs by others: each thread that waits for an LSN gets it.
#[test]
fn waiting_for_an_lsn_waits_for_its_segments() {
    check(|| {
        let disk = Disk::new(Trouble::None);
        let wal = open(&disk, Durability::Manual);
        let syncer = {
            let wal = wal.clone();
            thread::spawn(move || (0..2).for_each(|_| wal.sync().unwrap()))
        };
        let appenders: Vec<_> = (0..2u8)
            .map(|number| {
                let (wal, disk) = (wal.clone(), disk.clone());
                thread::spawn(move || {
                    let lsn = wal.append(&payload(number, 0)).unwrap();
                    let last = wal.append(&payload(number, 1)).unwrap();
                    wal.wait_durable(last).unwrap();
                    acknowledged(&disk, lsn, &payload(number, 0));
                    acknowledged(&disk, last, &payload(number, 1));
                })
            })
            .collect();
        syncer.join().unwrap();
        appenders.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

/// A sync fails once and would succeed the next time. Eight wait: no record is acknowledged that is not
/// on the disk, and nothing is taken any more.
#[test]
fn a_sync_that_fails_once_fails_every_waiter() {
    check(|| {
        let disk = Disk::new(Trouble::None);
        let wal = open(&disk, Durability::Manual);
        disk.trouble(Trouble::Fails(1));
        let threads: Vec<_> = (0..8u8)
            .map(|number| {
                let (wal, disk) = (wal.clone(), disk.clone());
                thread::spawn(move || match wal.commit(&payload(number, 0)) {
                    Ok(lsn) => {
                        acknowledged(&disk, lsn, &payload(number, 0));
                        0
                    }
                    Err(e) => {
                        assert!(matches!(e.kind(), ErrorKind::Io | ErrorKind::Poisoned), "{e}");
                        1
                    }
                })
            })
            .collect();
        let failed: u32 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        if failed > 0 {
            let error = wal.append(b"more").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Poisoned, "{error}");
            assert_eq!(wal.sync().unwrap_err().kind(), ErrorKind::Poisoned);
        }
    });
}

/// The thread that syncs for all panics: the others are woken with an error, not left waiting.
#[test]
fn a_leader_that_panics_wakes_the_others() {
    check(|| {
        let disk = Disk::new(Trouble::None);
        let wal = open(&disk, Durability::Manual);
        disk.trouble(Trouble::Panics(0));
        let threads: Vec<_> = (0..4u8)
            .map(|number| {
                let wal = wal.clone();
                thread::spawn(move || {
                    let commit = std::panic::AssertUnwindSafe(|| wal.commit(&payload(number, 0)));
                    match std::panic::catch_unwind(commit) {
                        Err(_) => 1,
                        Ok(committed) => {
                            let error = committed.expect_err("nothing was synced");
                            assert_eq!(error.kind(), ErrorKind::Poisoned, "{error}");
                            0
                        }
                    }
                })
            })
            .collect();
        let panicked: u32 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert_eq!(panicked, 1);
        assert_eq!(wal.append(b"more").unwrap_err().kind(), ErrorKind::Poisoned);
    });
}

/// Closing syncs what a leader has begun to sync as well, and each call that returns success can be
/// relied on, also where one of the syncs fails.
#[test]
fn closing_and_syncing_acknowledge_only_what_is_durable() {
    for trouble in [Trouble::None, Trouble::Fails(0), Trouble::Fails(1), Trouble::Fails(2)] {
        check(move || {
            let disk = Disk::new(Trouble::None);
            let wal = open(&disk, Durability::Manual);
            let lsn = wal.append(&payload(7, 0)).unwrap();
            disk.trouble(trouble);
            let threads: Vec<_> = [Wal::sync, Wal::close, Wal::close]
                .into_iter()
                .map(|end| {
                    let (wal, disk) = (wal.clone(), disk.clone());
                    thread::spawn(move || {
                        if end(&wal).is_ok() {
                            acknowledged(&disk, lsn, &payload(7, 0));
                        }
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
    }
}

/// What is appended where the log was durable before a cut is not durable: that is lowered with it.
#[test]
fn a_commit_after_a_cut_is_synced() {
    check(|| {
        let disk = Disk::new(Trouble::None);
        let wal = open(&disk, Durability::Manual);
        let lsns: Vec<_> = (0..4).map(|i| wal.append(&payload(9, i)).unwrap()).collect();
        wal.sync().unwrap();
        let committer = {
            let (wal, disk, last) = (wal.clone(), disk.clone(), lsns[3]);
            thread::spawn(move || {
                // The first ones may come before the cut and go with it.
                for i in 0..3 {
                    let lsn = wal.commit(&payload(1, i)).unwrap();
                    if lsn < last {
                        return acknowledged(&disk, lsn, &payload(1, i));
                    }
                }
            })
        };
        wal.truncate_from(lsns[1]).unwrap();
        committer.join().unwrap();
    });
}

/// A prefix is dropped and the end is cut while others append and sync: no thread waits for ever, and
/// what is left is a log.
#[test]
fn truncation_excludes_appends_and_syncs() {
    check(|| {
        let disk = Disk::new(Trouble::None);
        let wal = open(&disk, Durability::Manual);
        let lsns: Vec<_> = (0..4).map(|i| wal.append(&payload(9, i)).unwrap()).collect();
        wal.sync().unwrap();
        let appender = {
            let wal = wal.clone();
            thread::spawn(move || wal.commit(&payload(1, 0)).map(drop).unwrap())
        };
        let dropper = {
            let (wal, lsn) = (wal.clone(), lsns[2]);
            thread::spawn(move || wal.truncate_before(lsn).map(drop).unwrap())
        };
        let cutter = {
            let (wal, lsn) = (wal.clone(), lsns[2]);
            thread::spawn(move || wal.truncate_after(lsn).map(drop).unwrap())
        };
        [appender, dropper, cutter].into_iter().for_each(|thread| thread.join().unwrap());
        let left = records(&disk.after_power_cut());
        assert_eq!(left[0], (lsns[2], payload(9, 2)));
        // The append came before the cut and went with it, or after it.
        let after: Vec<_> = left[1..].iter().map(|(_, bytes)| bytes.clone()).collect();
        assert!(after.is_empty() || after == [payload(1, 0)], "{after:?}");
    });
}
