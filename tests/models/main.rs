//! Group commit, for every kind of log, and the segmented log under a model checker. The models
//! walk the users' code through thousands of schedules of its threads.
//!
//! `make models` builds this with `--cfg shuttle`; any other build has nothing here. A failure
//! prints the kind and the schedule; `SHUTTLE_KIND` and `SHUTTLE_REPLAY` (see `check`) run the
//! schedule again.
#![cfg(shuttle)]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod disk;
mod logs;
mod slots;
#[path = "../../examples/rust/toy.rs"]
#[allow(dead_code)]
mod toy;

use deedbook::{ErrorKind, Result};
use disk::{Disk, Trouble};
use logs::{KINDS, Kind, Log};
use shuttle::thread;

const PAYLOAD_BYTES: usize = 40;

/// Runs a model for each kind of log. Segments get most of the schedules, because they do the most
/// work between two changes of threads. Every kind walks through the shared code.
fn check(model: impl Fn(Kind) + Send + Sync + Clone + 'static) {
    check_kinds(&KINDS, model);
}

fn check_kinds(kinds: &[Kind], model: impl Fn(Kind) + Send + Sync + Clone + 'static) {
    let only = std::env::var("SHUTTLE_KIND").ok();
    let is_meant = |kind: &&Kind| only.as_ref().is_none_or(|only| *only == format!("{kind:?}"));
    for &kind in kinds.iter().filter(is_meant) {
        eprintln!("of the kind {kind:?}:");
        let model = model.clone();
        let share = match kind {
            _ if kinds.len() == 1 => 1.0,
            Kind::Segments => 0.4,
            _ => 0.6 / (kinds.len() - 1) as f64,
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

/// The segmented fsync window: a leader syncs some segments while others append to these and to new
/// ones. No record is reported as durable if its segment was synced before the write.
#[test]
fn a_commit_that_returned_survives_a_power_cut() {
    check(|kind| {
        let disk = Disk::new(Trouble::None);
        let log = kind.open(&disk);
        let threads: Vec<_> = (0..3u8)
            .map(|number| {
                let (log, disk) = (log.clone(), disk.clone());
                thread::spawn(move || {
                    for i in 0..2 {
                        let place = log.commit(&payload(number, i)).unwrap();
                        kind.acknowledged(&disk, place, &payload(number, i));
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(kind.records(&disk).len(), 6);
    });
}

/// Some threads append, another syncs: each thread that waits for a record gets the record.
#[test]
fn waiting_for_a_record_waits_for_its_bytes() {
    check(|kind| {
        let disk = Disk::new(Trouble::None);
        let log = kind.open(&disk);
        let syncer = {
            let log = log.clone();
            thread::spawn(move || (0..2).for_each(|_| log.sync().unwrap()))
        };
        let appenders: Vec<_> = (0..2u8)
            .map(|number| {
                let (log, disk) = (log.clone(), disk.clone());
                thread::spawn(move || {
                    let place = log.append(&payload(number, 0)).unwrap();
                    let last = log.append(&payload(number, 1)).unwrap();
                    log.wait_durable(last).unwrap();
                    kind.acknowledged(&disk, place, &payload(number, 0));
                    kind.acknowledged(&disk, last, &payload(number, 1));
                })
            })
            .collect();
        syncer.join().unwrap();
        appenders.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

/// A sync fails once and would succeed the next time, while eight threads wait. No record missing
/// on the disk is acknowledged, and the log accepts nothing more.
#[test]
fn a_sync_that_fails_once_fails_every_waiter() {
    check(|kind| {
        let disk = Disk::new(Trouble::None);
        let log = kind.open(&disk);
        disk.trouble(Trouble::Fails(1));
        let threads: Vec<_> = (0..8u8)
            .map(|number| {
                let (log, disk) = (log.clone(), disk.clone());
                thread::spawn(move || match log.commit(&payload(number, 0)) {
                    Ok(place) => {
                        kind.acknowledged(&disk, place, &payload(number, 0));
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
            let error = log.append(b"more").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Poisoned, "{error}");
            assert_eq!(log.sync().unwrap_err().kind(), ErrorKind::Poisoned);
        }
    });
}

/// The leader panics in the sync: the waiting threads wake with an error.
#[test]
fn a_leader_that_panics_wakes_the_others() {
    check(|kind| {
        let disk = Disk::new(Trouble::None);
        let log = kind.open(&disk);
        disk.trouble(Trouble::Panics(0));
        let threads: Vec<_> = (0..4u8)
            .map(|number| {
                let log = log.clone();
                thread::spawn(move || {
                    let commit = std::panic::AssertUnwindSafe(|| log.commit(&payload(number, 0)));
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
        assert_eq!(log.append(b"more").unwrap_err().kind(), ErrorKind::Poisoned);
    });
}

/// Closing also syncs records already under a leader's sync. A call that returns success keeps its
/// promise, also if another sync fails.
#[test]
fn closing_and_syncing_acknowledge_only_what_is_durable() {
    for trouble in [Trouble::None, Trouble::Fails(0), Trouble::Fails(1), Trouble::Fails(2)] {
        check(move |kind| {
            let disk = Disk::new(Trouble::None);
            let log = kind.open(&disk);
            let place = log.append(&payload(7, 0)).unwrap();
            disk.trouble(trouble);
            let ends: [fn(&dyn Log) -> Result<()>; 3] =
                [|log| log.sync(), |log| log.close(), |log| log.close()];
            let threads: Vec<_> = ends
                .into_iter()
                .map(|end| {
                    let (log, disk) = (log.clone(), disk.clone());
                    thread::spawn(move || {
                        if end(&*log).is_ok() {
                            kind.acknowledged(&disk, place, &payload(7, 0));
                        }
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
    }
}

/// Truncation lowers the durable end: a record appended below the old end is not durable yet.
#[test]
fn a_commit_after_a_cut_is_synced() {
    check_kinds(&[Kind::Segments, Kind::Single], |kind| {
        let disk = Disk::new(Trouble::None);
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

/// Threads drop a prefix, cut the end, append and sync: no thread waits forever, and the rest is a
/// valid log.
#[test]
fn truncation_excludes_appends_and_syncs() {
    check_kinds(&[Kind::Segments], |kind| {
        let disk = Disk::new(Trouble::None);
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
