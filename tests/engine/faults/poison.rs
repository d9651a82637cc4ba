//! After a failed sync, the handle refuses everything until somebody opens the log again.

use std::sync::mpsc::Receiver;
use std::thread::Builder;

use super::*;

for_every_subject! {
    a_failed_sync_refuses_calls_until_reopening,
    /// An opening cut a torn end, and the sync after it failed: only the disk kept the torn end. Unless the next
    /// opening cuts again, a power cut may leave an old, unacknowledged record after new ones.
    opening_repeats_a_cut_whose_sync_failed,
    /// Linux reports a failed fsync once, here to the append under rollback. A leader with a
    /// successful fsync of its own must not acknowledge before the append has poisoned the handle.
    a_leader_waits_for_a_failing_append,
}

const EIO: What = What::Error(io::ErrorKind::Other);
/// Seeds of a failed sync: the seed decides if the sync writes none, all or some of the dirty sectors.
const OUTCOMES: u64 = 8;

// Promise: fsync-fails, wal-fsync-fails.
fn a_failed_sync_refuses_calls_until_reopening(subject: &Subject) {
    // The number of the sync to fail, with several files.
    for at in 1..=2 {
        let disk = Sim::new();
        let log = subject.open(&disk, MANUAL).unwrap();
        log.append(1, &[1; 700]).unwrap();
        log.sync().unwrap();
        let durable = log.durable().unwrap();
        let mut written = log.read_all().unwrap();
        written.push(subject.record(written.last(), 2, &[2; 700]));
        log.append(2, &[2; 700]).unwrap();
        disk.inject(Fault::once(at, EIO).of(Call::Sync));
        let error = match log.sync() {
            Err(error) => error,
            Ok(()) if at > 1 => continue,
            Ok(()) => panic!("synced"),
        };
        assert_eq!((error.kind(), error.durable()), (ErrorKind::Io, Some(Durable::Unknown)));
        assert_eq!(log.durable().unwrap(), durable);
        // An append refused before its begin reported a record that may be in the log; the event
        // store did not. A writer that believed the report looked for records nobody had written.
        let record = |n: u8| (u32::from(n), vec![n; 9]);
        for (error, durable) in [
            (log.append_all(&[record(3)]).unwrap_err(), Durable::No),
            (log.append_all(&[record(3), record(4)]).unwrap_err(), Durable::No),
            (log.sync().unwrap_err(), Durable::Unknown),
            (log.close().unwrap_err(), Durable::Unknown),
        ] {
            let met = (error.kind(), error.durable());
            assert_eq!(met, (ErrorKind::Poisoned, Some(durable)), "{error}");
        }
        assert_eq!(log.read(written[0].number()).unwrap_err().kind(), ErrorKind::Closed);
        let log = subject.open(&disk, MANUAL).unwrap();
        assert_eq!(log.read_all().unwrap(), written);
    }
}

fn opening_repeats_a_cut_whose_sync_failed(subject: &Subject) {
    for seed in 0..OUTCOMES {
        for at in 1..=4 {
            let disk = Sim::new();
            disk.set_seed(seed);
            let log = subject.open(&disk, MANUAL).unwrap();
            log.append(1, b"kept").unwrap();
            log.sync().unwrap();
            // The torn record ends with a sector, or else the record in its place changes the next record.
            let torn = log.end().unwrap();
            let end = (torn + 700).next_multiple_of(SECTOR_BYTES);
            let len = (end - torn - subject.format.framing_bytes()) as usize;
            log.append(2, &vec![2; len]).unwrap();
            log.append(3, &[3; 100]).unwrap();
            let disk = disk.kill();
            damage(subject, &disk, torn + subject.format.head_bytes() + 1);
            disk.inject(Fault::once(at, EIO).of(Call::Sync));
            let opened = subject.open(&disk, MANUAL);
            disk.heal();
            drop(opened);
            let log = subject.open(&disk, MANUAL).unwrap();
            log.append(4, &vec![4; len]).unwrap();
            log.sync().unwrap();
            let written = log.read_all().unwrap();
            assert_eq!(written.len(), 2);
            for after in states(&disk, 20) {
                let left = subject.open(&after, MANUAL).unwrap().read_all().unwrap();
                assert_eq!(left, written, "seed {seed}, sync {at}");
            }
        }
    }
}

/// Longer than an undisturbed thread needs.
const LONG: Duration = Duration::from_millis(300);

fn a_leader_waits_for_a_failing_append(subject: &Subject) {
    let disk = Sim::new();
    let (arrived, arrives) = channel();
    let (go_on, goes_on) = channel::<()>();
    let (done, is_done): (_, Receiver<()>) = channel();
    let leading = Mutex::new(Some((arrived, goes_on)));
    let appending = Mutex::new(Some((go_on, is_done)));
    let hook = move |seen| match (seen, std::thread::current().name()) {
        // Both waits end by a timeout: with one lock for both threads, either order is right.
        (Seen::Syncing, Some("leader")) => {
            let gate = leading.lock().unwrap().take();
            if let Some((arrived, goes_on)) = gate {
                let _ = arrived.send(());
                let _ = goes_on.recv_timeout(LONG);
            }
        }
        (Seen::NotSynced, Some("appender")) => {
            let gate = appending.lock().unwrap().take();
            if let Some((go_on, is_done)) = gate {
                drop(go_on);
                let _ = is_done.recv_timeout(LONG);
            }
        }
        _ => {}
    };
    let storage = watched(Arc::new(disk.clone()), hook);
    let log: Arc<dyn Log> = Arc::from(subject.open_on(storage, MANUAL).unwrap());
    log.append(1, &[1; 50]).unwrap();
    let leader = {
        let log = log.clone();
        let lead = move || {
            let synced = log.sync();
            let _ = done.send(());
            synced
        };
        Builder::new().name("leader".into()).spawn(lead).unwrap()
    };
    arrives.recv().unwrap();
    for call in [Call::Write, Call::Sync] {
        disk.inject(Fault::once(1, EIO).of(call));
    }
    let appender = {
        let log = log.clone();
        let append = move || log.append(2, b"fails");
        Builder::new().name("appender".into()).spawn(append).unwrap()
    };
    let met = leader.join().unwrap().map_err(|error| error.kind());
    assert!(matches!(met, Err(ErrorKind::Poisoned | ErrorKind::Io)), "{met:?}");
    let durable = appender.join().unwrap().unwrap_err().durable();
    // An append that waited for the leader was rolled back after the leader's sync.
    let waited = subject.appends_wait_for_syncs && durable == Some(Durable::No);
    assert!(waited || durable == Some(Durable::Unknown), "{durable:?}");
    for after in states(&disk, 20) {
        subject.open(&after, MANUAL).unwrap();
    }
}
