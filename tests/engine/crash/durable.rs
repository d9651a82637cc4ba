//! Records reported as durable survive every power cut.

use std::thread;

use super::*;
use crate::support::report;

for_every_subject! {
    /// A sync reading its reach after the fsync acknowledges records appended in between.
    records_appended_during_a_sync_need_another_sync,
    what_any_thread_synced_survives_a_power_cut,
    /// No earlier test crashed a log that syncs in the background.
    what_the_background_synced_survives_a_power_cut,
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

/// Eight threads; a failing sync fails every waiting thread, and all later calls.
// Promise: wal-fsync-fails.
fn what_any_thread_synced_survives_a_power_cut(subject: &Subject) {
    let early = (1..12).map(|at| (Some(at), ALWAYS));
    let late = [(Some(7), MANUAL), (Some(40), ALWAYS), (Some(40), MANUAL)];
    for (failing, how) in [(None, MANUAL), (None, ALWAYS)].into_iter().chain(early).chain(late) {
        let disk = Sim::new();
        let log = subject.open(&disk, how).unwrap();
        if let Some(at) = failing {
            disk.inject(Fault::once(at, What::Error(io::ErrorKind::Other)).of(Call::Sync));
        }
        let acknowledged = Mutex::new(Vec::new());
        let refused = Mutex::new(Vec::new());
        let append = |thread: u8| {
            for n in 0..30u8 {
                let bytes = [thread, n].repeat(8 + usize::from(n));
                let mut appended = log.append(9, &bytes);
                if how == MANUAL {
                    appended = appended.and_then(|number| log.sync().map(|()| number));
                }
                match appended {
                    Ok(number) => acknowledged.lock().unwrap().push((number, bytes)),
                    // A poisoned handle refuses before it writes anything.
                    Err(error) if error.durable() == Some(Durable::No) => {
                        assert_eq!(error.kind(), ErrorKind::Poisoned, "{error:?}");
                        return refused.lock().unwrap().push(bytes);
                    }
                    Err(error) => {
                        assert_eq!(error.durable(), Some(Durable::Unknown), "{error:?}");
                        return;
                    }
                }
            }
        };
        let check = || {
            let acknowledged = acknowledged.lock().unwrap().clone();
            let left = log_of(subject, &worst(&disk));
            let left: BTreeMap<_, _> =
                left.iter().map(|record| (record.number(), &record.bytes)).collect();
            let is_left = |(number, bytes): &(u64, Vec<u8>)| left.get(number) == Some(&bytes);
            assert!(acknowledged.iter().all(is_left), "{failing:?}");
        };
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let append = &append;
                scope.spawn(move || append(thread));
            }
            (0..30).for_each(|_| check());
        });
        check();
        let left = log_of(subject, &disk.kill());
        let is_there = |bytes: &Vec<u8>| left.iter().any(|record| record.bytes == *bytes);
        assert!(!refused.lock().unwrap().iter().any(is_there), "{failing:?}");
        if failing.is_none() {
            let mut all = acknowledged.into_inner().unwrap();
            all.sort();
            let left = left.iter().map(|record| (record.number(), record.bytes.clone()));
            assert!(left.eq(all), "each record once, at the place that its append returned");
            views::check_all_durable(subject, &*log, &log.read_all().unwrap()).unwrap();
        }
        if failing.is_some_and(|_| disk.fired() > 0) {
            assert_eq!(log.append(0, b"late").unwrap_err().kind(), ErrorKind::Poisoned);
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
