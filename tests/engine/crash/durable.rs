//! Records reported as durable survive every power cut.

use std::collections::HashSet;
use std::thread;

use crate::support::harness::config::Config;
use crate::support::harness::files::copied;
use crate::support::harness::history::Run;
use crate::support::harness::{
    ALWAYS, How, Log, MANUAL, Record, Subject, judge, states, views, worst,
};
use crate::support::prelude::*;
use crate::support::report;

for_every_subject! {
    /// The engine took a copied log for durable because of the mark in its sidecar. A power cut
    /// before the copy reached the disk made the engine refuse the log for lost acknowledged
    /// records. All segments need a sync, not only the last one.
    a_copied_log_is_synced_before_its_mark,
    /// A sync reading its reach after the fsync acknowledges records appended in between. Segments
    /// already synced are written again meanwhile.
    records_appended_during_a_sync_need_another_sync,
    what_any_thread_synced_survives_a_power_cut,
    /// No earlier test crashed a log that syncs in the background.
    what_the_background_synced_survives_a_power_cut,
}

fn a_copied_log_is_synced_before_its_mark(subject: &Subject) {
    let disk = Sim::new();
    let log = subject.open(&disk, MANUAL).unwrap();
    for n in 0..9u8 {
        log.append(u32::from(n), &[n; 200]).unwrap();
    }
    log.close().unwrap();
    let written = log_of(subject, &disk);
    let copy = copied(&disk);
    let log = subject.open(&copy, MANUAL).unwrap();
    views::check_all_durable(subject, &*log, &written).unwrap();
    for after in states(&copy, 100) {
        assert_eq!(log_of(subject, &after), written);
    }
}

fn log_of(subject: &Subject, disk: &Sim) -> Vec<Record> {
    subject.open(disk, MANUAL).unwrap().read_all().unwrap()
}

/// Expects the durable records, and no foreign record, in every state after a power cut.
fn expect_durable(subject: &Subject, log: &dyn Log, disk: &Sim, count: u64) {
    let written = log.read_all().unwrap();
    let durable = log.durable().unwrap().unwrap();
    let acked = written.iter().take_while(|record| record.number() < durable).count();
    for after in states(disk, count) {
        judge(&log_of(subject, &after), &written, acked, false).unwrap();
    }
}

// Promise: wal-segments-sync.
fn records_appended_during_a_sync_need_another_sync(subject: &Subject) {
    for len in [3, 20, 70, 300] {
        let disk = Sim::new();
        // The hook appends after every sync of a file, but not after the syncs of its own appends.
        let late: Arc<Mutex<Option<Arc<dyn Log>>>> = Arc::default();
        let count = Arc::new(AtomicU64::new(0));
        let waiting: Arc<Mutex<Vec<thread::JoinHandle<()>>>> = Arc::default();
        let waits = subject.appends_wait_for_syncs;
        let hook = {
            let (late, count, waiting) = (late.clone(), count.clone(), waiting.clone());
            move |seen| {
                let (Seen::Synced, Ok(log)) = (seen, late.try_lock()) else { return };
                let Some(log) = log.clone() else { return };
                if count.fetch_add(1, Ordering::Relaxed) < 12 {
                    let append = move || log.append(7, &vec![7; len]).map(drop).unwrap();
                    match waits {
                        true => {
                            waiting.lock().unwrap().push(thread::spawn(append));
                            // An append without a wait would be done by then.
                            thread::sleep(Duration::from_millis(20));
                        }
                        false => append(),
                    }
                }
            }
        };
        let storage = watched(Arc::new(disk.clone()), hook);
        let log: Arc<dyn Log> = Arc::from(subject.open_on(storage, MANUAL).unwrap());
        for n in 0..8 {
            log.append(1, &[n; 100]).unwrap();
        }
        *late.lock().unwrap() = Some(log.clone());
        for _ in 0..3 {
            log.sync().unwrap();
            let threads = std::mem::take(&mut *waiting.lock().unwrap());
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            expect_durable(subject, &*log, &disk, 30);
        }
        assert!(count.load(Ordering::Relaxed) >= 3);
        late.lock().unwrap().take();
        log.sync().unwrap();
        assert_eq!(log_of(subject, &worst(&disk)), log.read_all().unwrap());
    }
}

fn what_any_thread_synced_survives_a_power_cut(subject: &Subject) {
    for (failing, how) in [
        (None, MANUAL),
        (None, ALWAYS),
        (Some(1), ALWAYS),
        (Some(7), MANUAL),
        (Some(40), ALWAYS),
        (Some(40), MANUAL),
    ] {
        let disk = Sim::new();
        let log = subject.open(&disk, how).unwrap();
        if let Some(at) = failing {
            disk.inject(Fault::once(at, What::Error(std::io::ErrorKind::Other)).of(Call::Sync));
        }
        let acknowledged = Mutex::new(Vec::new());
        let refused = Mutex::new(Vec::new());
        let append = |thread: u8| {
            for n in 0..60u8 {
                let bytes = vec![[thread, n]; 8 + usize::from(n)].concat();
                let mut synced = log.append(9, &bytes).map(drop);
                if how == MANUAL {
                    synced = synced.and_then(|()| log.sync());
                }
                match synced {
                    Ok(()) => acknowledged.lock().unwrap().push(bytes),
                    // A poisoned handle refuses before it writes anything.
                    Err(error) if error.durable() == Some(deedbook::Durable::No) => {
                        assert_eq!(error.kind(), ErrorKind::Poisoned, "{error:?}");
                        return refused.lock().unwrap().push(bytes);
                    }
                    Err(error) => {
                        let durable = error.durable();
                        assert_eq!(durable, Some(deedbook::Durable::Unknown), "{error:?}");
                        return;
                    }
                }
            }
        };
        let check = || {
            let acknowledged = acknowledged.lock().unwrap().clone();
            let left = log_of(subject, &worst(&disk));
            let left: HashSet<_> = left.iter().map(|record| &record.bytes[..]).collect();
            assert!(acknowledged.iter().all(|bytes| left.contains(&bytes[..])), "{failing:?}");
        };
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let append = &append;
                scope.spawn(move || append(thread));
            }
            (0..30).for_each(|_| check());
        });
        check();
        let left = log_of(subject, &disk.kill());
        let is_there = |bytes: &Vec<u8>| left.iter().any(|record| record.bytes == *bytes);
        assert!(!refused.lock().unwrap().iter().any(is_there), "{failing:?}");
        if failing.is_some() {
            let refused = log.append(0, b"refused").unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Poisoned);
        }
    }
}

fn what_the_background_synced_survives_a_power_cut(subject: &Subject) {
    let nested = subject.nested();
    for script in ["1wLw", "bw>", "Lbw1w", "w", "KwHwB"] {
        let mut run = Run::new(subject, Config::named("interval"), &nested);
        run.open().unwrap();
        script.chars().for_each(|op| run.apply(op).unwrap());
        expect_durable(subject, run.log(), &run.disk, 40);
        run.log().close().unwrap();
    }
    // The caller never syncs, for long enough that the thread is between syncs.
    let how = How { durability: Durability::Interval(Duration::from_millis(1)), ..MANUAL };
    let disk = Sim::new();
    let log = subject.open(&disk, how).unwrap();
    for n in 0..report::number("DEEDBOOK_INTERVAL_ROUNDS", 20) {
        log.append(1, &[n as u8; 90]).unwrap();
        let durable = log.durable().unwrap();
        let left = log_of(subject, &worst(&disk));
        let last = left.last().map(|last| subject.ordinal_after(last));
        assert!(last.max(Some(subject.first)) >= durable, "{n}");
        std::thread::yield_now();
    }
}
