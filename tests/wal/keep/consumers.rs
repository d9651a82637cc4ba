//! Consumers keep their records, whoever drops a prefix.

use super::*;

#[test]
fn truncation_never_passes_the_slowest_consumer_unless_forced() {
    let (dir, wal, lsns) = filled(&options());
    wal.set_consumer("slow", lsns[20]).unwrap();
    wal.set_consumer("fast", lsns[70]).unwrap();
    assert_eq!(wal.set_consumer("x", Lsn(1)).unwrap_err().kind(), ErrorKind::OutOfRange);
    assert_eq!(wal.set_consumer("a b", lsns[1]).unwrap_err().kind(), ErrorKind::InvalidArgument);
    let error = wal.truncate_before(lsns[21]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("\"slow\" needs lsn 800"), "{error}");
    wal.truncate_before(lsns[20]).unwrap();
    wal.close().unwrap();
    let wal = Wal::append_to(dir.path()).unwrap();
    let consumers: Vec<_> = wal.consumers().unwrap().into_iter().collect();
    assert_eq!(consumers, [("fast".into(), lsns[70]), ("slow".into(), lsns[20])]);
    wal.truncate_before_all(lsns[30]).unwrap();
    assert_eq!(wal.head().unwrap(), lsns[30]);
    assert_eq!(wal.consumers().unwrap()["slow"], lsns[30]);
    wal.remove_consumer("slow").unwrap();
    wal.truncate_before(lsns[70]).unwrap();
}

#[test]
fn a_readers_consumer_blocks_the_writers_truncation() {
    let (dir, wal, lsns) = filled(&options());
    let reader = Wal::open(dir.path()).unwrap();
    reader.set_consumer("reader", lsns[40]).unwrap();
    let error = wal.truncate_before(lsns[41]).unwrap_err();
    assert!(error.to_string().contains("\"reader\" needs lsn 1600"), "{error}");
    wal.truncate_before(lsns[40]).unwrap();
    // A reader cannot ask for dropped records, even with a handle from before.
    let error = reader.set_consumer("late", lsns[39]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfRange);
    assert!(error.to_string().contains("was dropped"), "{error}");
    reader.remove_consumer("reader").unwrap();
    wal.truncate_before(lsns[90]).unwrap();
    assert_eq!(reader.append(b"x").unwrap_err().kind(), ErrorKind::ReadOnly);
}

#[test]
fn a_racing_consumer_keeps_records_or_is_refused() {
    for round in 0..30 {
        let (dir, wal, lsns) = filled(&options());
        let reader = Wal::open(dir.path()).unwrap();
        let wanted = lsns[20];
        let asking = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_micros(40 * round));
            reader.set_consumer("reader", wanted)
        });
        std::thread::sleep(Duration::from_micros(300));
        let dropped = wal.truncate_before(lsns[60]);
        let asked = asking.join().unwrap();
        assert!(dropped.is_ok() != asked.is_ok(), "round {round}: {dropped:?}, {asked:?}");
        let head = if dropped.is_ok() { lsns[60] } else { lsns[0] };
        assert_eq!(wal.head().unwrap(), head);
    }
}

/// A consumer stood at 3,600 when the log was truncated to 2,000. New records took bytes 2,000 to 5,600, and a
/// truncation dropped records that the consumer had never seen.
// Promise: wal-consumer.
#[test]
fn a_truncation_lowers_consumers_to_the_end() {
    let (_dir, wal, lsns) = filled(&options());
    wal.set_consumer("c", lsns[90]).unwrap();
    wal.truncate_from(lsns[50]).unwrap();
    assert_eq!(wal.consumers().unwrap()["c"], lsns[50]);
    let new: Vec<_> = (0..60).map(|_| wal.append(&[7; 52]).unwrap()).collect();
    wal.sync().unwrap();
    assert_eq!(wal.truncate_before(new[20]).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

/// A log whose last whole record ends at byte 400, as after a power cut, with the consumer "c" after byte 400.
fn cut_below_a_consumer() -> Sim {
    let disk = Sim::new();
    let wal = LARGE.wal(&disk, MANUAL).unwrap();
    (0..10).for_each(|_| assert!(wal.append(&[1; 32]).is_ok()));
    wal.sync().unwrap();
    let unsynced: Vec<_> = (0..50).map(|_| wal.append(&[2; 32]).unwrap()).collect();
    wal.set_consumer("c", unsynced[40]).unwrap();
    let disk = disk.kill();
    cut(&LARGE, &disk, 410);
    disk
}

/// An opening lowered consumers without their lock: a consumer that a reader was setting was lost. Or the reader asked
/// for the end before the cut, and stored its consumer after the opening had looked.
// Promise: wal-consumer.
#[test]
fn opening_lowers_consumers_only_under_their_lock() {
    let file = LARGE.sidecar().join("consumers");
    for is_stored in [true, false] {
        let disk = cut_below_a_consumer();
        let above = read_file(&disk, &file);
        if !is_stored {
            disk.remove(&file).unwrap();
        }
        let LockAttempt::Held(busy) = disk.lock(&LARGE.sidecar(), false).unwrap() else {
            panic!("locked by another");
        };
        let opened = disk.clone();
        let opening = std::thread::spawn(move || LARGE.wal(&opened, MANUAL).unwrap());
        std::thread::sleep(Duration::from_millis(200));
        match is_stored {
            true => assert_eq!(read_file(&disk, &file), above),
            false => write_file(&disk, &file, &above),
        }
        drop(busy);
        let stands = opening.join().unwrap().consumers().unwrap()["c"];
        assert_eq!(stands, Lsn(400), "stored before: {is_stored}");
    }
}

/// The consumer stood above the end, and skipped the records appended below.
#[test]
fn a_stale_reader_sets_no_consumer_past_end() {
    let (dir, wal, lsns) = filled(&options());
    let reader = Wal::open(dir.path()).unwrap();
    wal.truncate_from(lsns[50]).unwrap();
    let error = reader.set_consumer("c", lsns[90]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfRange, "{error}");
    assert!(wal.consumers().unwrap().is_empty());
    let reader = Wal::open(dir.path()).unwrap();
    reader.set_consumer("c", lsns[50]).unwrap();
    assert_eq!(wal.consumers().unwrap()["c"], lsns[50]);
}

/// A review found this: a consumer stood above the end after a truncation or a crash. New records took the bytes below
/// its position, and dropping a prefix removed them unseen.
// Promise: wal-consumer.
#[test]
fn crashes_leave_no_consumer_above_unseen_records() {
    for subject in [&SEGMENTS, &TINY] {
        let (disk, wal, lsns) = synced(subject, MANUAL, 5, 50);
        let unsynced = wal.end().unwrap();
        let left = at_every_call(&disk, 20, || {
            assert_eq!(wal.append(&[5; 50]).unwrap(), unsynced);
            wal.set_consumer("c", unsynced).unwrap();
            wal.sync().unwrap();
            wal.truncate_from(lsns[2]).unwrap();
            (100..105).for_each(|n| assert!(wal.append(&[n; 50]).is_ok()));
            wal.sync().unwrap();
        });
        let mut lowered = 0;
        for (call, after) in left {
            let wal = subject.wal(&after, MANUAL).unwrap();
            (200..205).for_each(|n| assert!(wal.append(&[n; 50]).is_ok()));
            let Some(&stands) = wal.consumers().unwrap().get("c") else { continue };
            for record in read_all(&wal).unwrap() {
                let seen = record.bytes[0] < 100;
                assert!(seen || record.number() >= stands.0, "{}, {call}", subject.name);
            }
            lowered += u64::from(stands < unsynced);
        }
        assert!(lowered > 20);
    }
}
