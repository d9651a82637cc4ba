//! Group commit, for every kind of log, and the segmented log under a model checker. The models
//! walk the users' code through thousands of schedules of its threads.
//!
//! `make models` builds this with `--cfg shuttle`; any other build has nothing here. A failure
//! prints the kind and the schedule; `SHUTTLE_KIND` and `SHUTTLE_REPLAY` (see `check`) run the
//! schedule again.
#![cfg(shuttle)]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

#[path = "../support/around.rs"]
#[allow(dead_code)]
mod around;
mod disk;
mod logs;
#[path = "../../examples/rust/toy.rs"]
#[allow(dead_code)]
mod toy;

use std::sync::Arc;

use deedbook::{ErrorKind, Result};
use disk::Disk;
use logs::{KINDS, Kind, Log};
use shuttle::thread;

const PAYLOAD_BYTES: usize = 40;

/// Runs a model for each kind of log. Segments and slots get most of the schedules, because they do the most work
/// between two changes of threads. Every kind walks through the shared code.
fn check(model: impl Fn(Kind, Disk, Arc<dyn Log>) + Send + Sync + Clone + 'static) {
    check_kinds(&KINDS, move |kind| {
        let disk = Disk::default();
        let log = kind.open(&disk);
        model(kind, disk, log);
    });
}

fn check_kinds(kinds: &[Kind], model: impl Fn(Kind) + Send + Sync + Clone + 'static) {
    let only = std::env::var("SHUTTLE_KIND").ok();
    let is_meant = |kind: &&Kind| only.as_ref().is_none_or(|only| *only == format!("{kind:?}"));
    for &kind in kinds.iter().filter(is_meant) {
        eprintln!("of the kind {kind:?}:");
        let model = model.clone();
        let share = match kind {
            _ if kinds.len() == 1 => 1.0,
            Kind::Segments | Kind::Slots => 0.4,
            _ => 0.6 / (kinds.len() - 2).max(1) as f64,
        };
        check_share(share, move || model(kind));
    }
}

/// Runs a model through a share of the random schedules, and of others that favour rare orders.
fn check_share(share: f64, model: impl Fn() + Send + Sync + Clone + 'static) {
    if let Ok(schedule) = std::env::var("SHUTTLE_REPLAY") {
        shuttle::replay(model, &schedule);
        return;
    }
    let schedules =
        std::env::var("SHUTTLE_SCHEDULES").map_or(1500, |count| count.parse().expect("a number"));
    let schedules = (f64::from(schedules) * share).ceil() as usize;
    shuttle::check_random(model.clone(), schedules);
    shuttle::check_pct(model, schedules, 3);
}

fn payload(thread: u8, i: u8) -> Vec<u8> {
    let mut payload = vec![thread; PAYLOAD_BYTES];
    payload[0] = i;
    payload
}

impl Kind {
    /// An acknowledged record survives a power cut at the very moment of its acknowledgement.
    fn acknowledged(self, disk: &Disk, place: u64, payload: &[u8]) {
        let found = self.records(&disk.after_power_cut());
        let is_there = found.iter().any(|(at, bytes)| *at == place && bytes == payload);
        assert!(is_there, "{self:?}: record {place} is lost");
    }
}

fn in_threads<T: Send + 'static>(
    count: u8,
    (log, disk): (&Arc<dyn Log>, &Disk),
    work: impl Fn(&dyn Log, &Disk, u8) -> T + Send + Clone + 'static,
) -> Vec<T> {
    let start = |number| {
        let (log, disk, work) = (log.clone(), disk.clone(), work.clone());
        thread::spawn(move || work(&*log, &disk, number))
    };
    let threads: Vec<_> = (0..count).map(start).collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

/// The segmented fsync window: a leader syncs some segments while others append to these and to new
/// ones. No record is reported as durable if its segment was synced before the write. In slots, the next append must
/// not change a header under sync: a power cut in the middle of the sync would leave neither header.
// Promise: slots-threads.
#[test]
fn a_commit_that_returned_survives_a_power_cut() {
    check(|kind, disk, log| {
        in_threads(3, (&log, &disk), move |log, disk, number| {
            for i in 0..2 {
                let place = log.commit(&payload(number, i)).unwrap();
                kind.acknowledged(disk, place, &payload(number, i));
            }
        });
        assert_eq!(kind.records(&disk.after_kill()).len(), 6);
    });
}

// Promise: slots-threads.
#[test]
fn synced_records_survive_concurrent_appends() {
    check(|kind, disk, log| {
        in_threads(3, (&log, &disk), move |log, disk, number| {
            let place = log.append(&payload(number, 0)).unwrap();
            log.sync().unwrap();
            kind.acknowledged(disk, place, &payload(number, 0));
            log.append(&payload(number, 1)).unwrap();
        });
        log.close().unwrap();
        assert_eq!(kind.records(&disk.after_power_cut()).len(), 6);
    });
}

/// Some threads append, another syncs: each thread that waits for a record gets the record.
#[test]
fn waiting_for_a_record_waits_for_its_bytes() {
    check(|kind, disk, log| {
        in_threads(3, (&log, &disk), move |log, disk, number| {
            if number == 2 {
                return (0..2).for_each(|_| log.sync().unwrap());
            }
            let place = log.append(&payload(number, 0)).unwrap();
            let last = log.append(&payload(number, 1)).unwrap();
            log.wait_durable(last).unwrap();
            kind.acknowledged(disk, place, &payload(number, 0));
            kind.acknowledged(disk, last, &payload(number, 1));
        });
    });
}

/// A sync fails once and would succeed the next time, while eight threads wait. No record missing
/// on the disk is acknowledged, and the log accepts nothing more.
#[test]
fn a_sync_that_fails_once_fails_every_waiter() {
    check(|kind, disk, log| {
        disk.fail_sync_after(1);
        let failed = in_threads(8, (&log, &disk), move |log, disk, number| {
            match log.commit(&payload(number, 0)) {
                Ok(place) => {
                    kind.acknowledged(disk, place, &payload(number, 0));
                    false
                }
                Err(e) => {
                    assert!(matches!(e.kind(), ErrorKind::Io | ErrorKind::Poisoned), "{e}");
                    true
                }
            }
        });
        if failed.contains(&true) {
            let error = log.append(b"more").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Poisoned, "{error}");
            assert_eq!(log.sync().unwrap_err().kind(), ErrorKind::Poisoned);
        }
    });
}

#[test]
fn a_leader_that_panics_wakes_the_others() {
    check(|_, disk, log| {
        disk.panic_in_sync();
        let panicked = in_threads(4, (&log, &disk), |log, _, number| {
            let commit = std::panic::AssertUnwindSafe(|| log.commit(&payload(number, 0)));
            let Ok(committed) = std::panic::catch_unwind(commit) else { return 1 };
            let error = committed.expect_err("nothing was synced");
            assert_eq!(error.kind(), ErrorKind::Poisoned, "{error}");
            0
        });
        assert_eq!(panicked.iter().sum::<u32>(), 1);
        assert_eq!(log.append(b"more").unwrap_err().kind(), ErrorKind::Poisoned);
    });
}

/// Closing also syncs records already under a leader's sync; a success holds also if another sync fails.
#[test]
fn closing_and_syncing_acknowledge_only_what_is_durable() {
    let ends: [fn(&dyn Log) -> Result<()>; 3] =
        [|log| log.sync(), |log| log.close(), |log| log.close()];
    for failing in [None, Some(0), Some(1), Some(2)] {
        check(move |kind, disk, log| {
            let place = log.append(&payload(7, 0)).unwrap();
            failing.into_iter().for_each(|syncs| disk.fail_sync_after(syncs));
            in_threads(3, (&log, &disk), move |log, disk, number| {
                if ends[usize::from(number)](log).is_ok() {
                    kind.acknowledged(disk, place, &payload(7, 0));
                }
            });
        });
    }
}

/// Truncation lowers the durable end: a record appended below the old end is not durable yet.
#[test]
fn a_commit_after_a_cut_is_synced() {
    check_kinds(&[Kind::Segments, Kind::Single], |kind| {
        let disk = Disk::default();
        let wal = kind.open_wal(&disk).expect("the log opens");
        let lsns: Vec<_> = (0..4).map(|i| wal.append(&payload(9, i)).unwrap()).collect();
        wal.sync().unwrap();
        let committer = {
            let (wal, disk, last) = (wal.clone(), disk.clone(), lsns[3]);
            thread::spawn(move || {
                // The first commits may come before the cut and be cut off.
                for i in 0..3 {
                    let lsn = wal.commit(&payload(1, i)).unwrap();
                    if lsn < last {
                        return kind.acknowledged(&disk, lsn.0, &payload(1, i));
                    }
                }
            })
        };
        wal.truncate_from(lsns[1]).unwrap();
        committer.join().unwrap();
    });
}

/// Threads drop a prefix, cut the end, append and sync: none waits forever, and the rest is a valid log.
#[test]
fn truncation_excludes_appends_and_syncs() {
    check_kinds(&[Kind::Segments], |kind| {
        let disk = Disk::default();
        let wal = kind.open_wal(&disk).expect("the log opens");
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
        let left = kind.records(&disk.after_power_cut());
        assert_eq!(left[0], (lsns[2].0, payload(9, 2)));
        // The append came before the cut and was cut off, or came after the cut.
        let after: Vec<_> = left[1..].iter().map(|(_, bytes)| bytes.clone()).collect();
        assert!(after.is_empty() || after == [payload(1, 0)], "{after:?}");
    });
}
