//! The thread that syncs at intervals meets a failing disk.

use super::*;

for_every_subject! {
    /// Only the background thread met the failure, and did not report it. Appends went on. Linux
    /// let the next sync succeed, and the sync vouched for records missing on the disk.
    a_background_sync_that_fails_poisons,
}

/// Appends, a tenth of a millisecond apart, before the thread has had its chance to poison.
const TAKEN_MAX: u64 = 30_000;

fn a_background_sync_that_fails_poisons(subject: &Subject) {
    let how = How { durability: Durability::Interval(Duration::from_millis(1)), ..MANUAL };
    for at in 1..=4 {
        let disk = Sim::new();
        let synced_after = Arc::new(AtomicU64::new(0));
        let storage = {
            let (disk, synced_after) = (disk.clone(), synced_after.clone());
            watched(Arc::new(disk.clone()), move |seen| {
                if seen == Seen::Synced && disk.fired() > 0 {
                    synced_after.fetch_add(1, Ordering::SeqCst);
                }
            })
        };
        let log = subject.open_on(storage, how).unwrap();
        disk.inject(Fault::once(at, What::Error(io::ErrorKind::Other)).of(Call::Sync));
        let mut taken_after = 0;
        let error = loop {
            match log.append(1, &[1; 40]) {
                Ok(_) => taken_after += u64::from(disk.fired() > 0),
                // An append to small segments has to sync a full segment itself.
                Err(error) if error.kind() == ErrorKind::Io => {}
                Err(error) => break error,
            }
            let synced = synced_after.load(Ordering::SeqCst);
            assert_eq!(synced, 0, "synced after a failed sync");
            assert!(taken_after < TAKEN_MAX, "{taken_after} appends after a failed sync");
            std::thread::sleep(Duration::from_micros(100));
        };
        let met = (error.kind(), error.durable());
        assert_eq!(met, (ErrorKind::Poisoned, Some(Durable::No)), "{error}");
        let written = log.read_all().unwrap();
        let durable = log.durable().unwrap().unwrap();
        let acked = written.iter().take_while(|record| record.number() < durable).count();
        assert_eq!(log.sync().unwrap_err().kind(), ErrorKind::Poisoned);
        assert_eq!(log.close().unwrap_err().kind(), ErrorKind::Poisoned);
        for after in states(&disk, 40) {
            let log = subject.open(&after, MANUAL).unwrap();
            let got = log.read_all().unwrap();
            judge(&got, &written, acked, false).unwrap();
            views::check_all_durable(subject, &*log, &got).unwrap();
        }
    }
}
