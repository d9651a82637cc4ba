//! Syncs of one segment after the other, and of one record.

use super::*;

/// Also truncations, and waiting for records in the log.
#[test]
fn a_failed_sync_refuses_truncations_and_waits() {
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

/// The oldest of too many unsynced segments is synced and closed. No later sync may hide a failure of it.
#[test]
fn an_unsynced_segment_is_synced_before_closing() {
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
