//! Syncs of one segment after the other, and of one record.

use std::io;
use std::sync::Mutex;

use deedbook::storage::sim::{Call, Fault, Sim, What};
use deedbook::wal::Lsn;
use deedbook::{Durable, ErrorKind};

use crate::support::formats::wal::read_all;
use crate::support::harness::limit::within;
use crate::support::harness::subjects::{SEGMENTS, SINGLE, TINY};
use crate::support::harness::{MANUAL, worst};

/// What a call of any thread acknowledged is durable, whichever thread's sync made it so, over
/// segments.
// Promise: wal-segments-sync.
#[test]
fn what_any_thread_was_told_survives_a_power_cut() {
    within(|| [None, Some(1), Some(7), Some(40)].into_iter().for_each(any_thread_was_told));
}

/// Four threads, and a sync that fails, if any.
fn any_thread_was_told(failing: Option<u64>) {
    let disk = Sim::new();
    let wal = TINY.wal(&disk, MANUAL).unwrap();
    if let Some(at) = failing {
        disk.inject(Fault::once(at, What::Error(io::ErrorKind::Other)).of(Call::Sync));
    }
    let acknowledged = Mutex::new(Vec::new());
    let append = |thread: u8| {
        for n in 0..40usize {
            let payload = vec![thread; 20 + n];
            let appended = match n % 3 {
                0 => wal.append(&payload).and_then(|lsn| wal.wait_durable(lsn).map(|()| lsn)),
                1 => wal.append(&payload).and_then(|lsn| wal.sync().map(|()| lsn)),
                _ => wal.commit(&payload),
            };
            match appended {
                Ok(lsn) => acknowledged.lock().unwrap().push((lsn, payload)),
                Err(_) => return,
            }
        }
    };
    let check = || {
        let acknowledged = acknowledged.lock().unwrap().clone();
        let after = TINY.wal(&worst(&disk), MANUAL).unwrap();
        for (lsn, payload) in acknowledged.iter().rev().take(20) {
            assert_eq!(after.read(*lsn).unwrap().payload, *payload, "{failing:?}");
        }
    };
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let append = &append;
            scope.spawn(move || append(thread));
        }
        (0..60).for_each(|_| check());
    });
    check();
    if failing.is_some() {
        assert_eq!(wal.append(b"late").unwrap_err().kind(), ErrorKind::Poisoned);
    }
}

/// Whatever else is asked: truncations, waiting for what is in the log.
#[test]
fn after_a_failed_sync_truncations_and_waiting_are_refused() {
    for subject in [&SINGLE, &SEGMENTS, &TINY] {
        let disk = Sim::new();
        let wal = subject.wal(&disk, MANUAL).unwrap();
        let one = wal.append(&[1; 700]).unwrap();
        wal.sync().unwrap();
        let two = wal.append(&[2; 700]).unwrap();
        disk.inject(Fault::once(1, What::Error(io::ErrorKind::Other)).of(Call::Sync));
        wal.sync().unwrap_err();
        for (error, durable) in [
            (wal.commit(b"three").unwrap_err(), Durable::No),
            (wal.wait_durable(two).unwrap_err(), Durable::Unknown),
            (wal.wait_durable(one).unwrap_err(), Durable::Unknown),
            (wal.truncate_after(one).unwrap_err(), Durable::No),
            (wal.truncate_from(two).unwrap_err(), Durable::No),
        ] {
            let failed = (error.kind(), error.durable());
            assert_eq!(failed, (ErrorKind::Poisoned, Some(durable)), "{error}");
        }
    }
}

/// More segments are unsynced than may be open, so the oldest is synced and closed. If that fails,
/// no later sync may make up for it.
#[test]
fn a_segment_is_synced_before_it_is_closed_for_want_of_handles() {
    for failing in [None, Some(1), Some(2), Some(5)] {
        let disk = Sim::new();
        let wal = TINY.wal(&disk, MANUAL).unwrap();
        if let Some(at) = failing {
            disk.inject(Fault::once(at, What::Error(io::ErrorKind::Other)).of(Call::Sync));
        }
        let mut refused = 0;
        for n in 0..40 {
            refused += u64::from(wal.append(&[n; 56]).is_err());
        }
        assert_eq!(refused > 0, failing.is_some());
        let synced = wal.sync();
        assert_eq!(synced.is_err(), failing.is_some());
        let Lsn(durable) = wal.durable_end().unwrap().unwrap();
        let after = TINY.wal(&worst(&disk), MANUAL).unwrap();
        assert!(after.end().unwrap().0 >= durable, "{failing:?}");
        if synced.is_ok() {
            assert_eq!(read_all(&after).unwrap(), read_all(&wal).unwrap());
        }
    }
}
