//! Appends that fail half-way are rolled back as a whole, or nothing more is accepted.

use super::*;

for_every_subject! {
    /// A failed append was cut off again, but not on the disk: a power cut brought it back, after an error that denied
    /// it. In segments, the rollback also removes files made for the append, even after a gap.
    a_rolled_back_append_never_comes_back,
    an_append_that_cannot_be_rolled_back_poisons,
    /// Another program cut the log below the writer's end. A rollback to the writer's end fills the
    /// missing bytes with zeros, and the next sync vouches for them.
    a_rollback_fills_no_cut_of_another_program,
    a_failed_creation_leaves_nothing_in_the_way,
    /// A record beyond 1 MiB is written in parts; a failure of any part rolls back all.
    a_long_record_is_whole_or_absent,
}

const FULL: io::ErrorKind = io::ErrorKind::StorageFull;

// Promise: call-fails, wal-call-fails.
fn a_rolled_back_append_never_comes_back(subject: &Subject) {
    // The first half of the batch is a whole record.
    let batch = [(2, vec![2; 400]), (3, vec![3; 1500])];
    for call in [Call::Write, Call::Create] {
        for what in [What::Partial(FULL), What::Error(FULL), What::Zero] {
            for at in 1..8 {
                let disk = Sim::new();
                let log = subject.open(&disk, MANUAL).unwrap();
                log.append(1, b"one").unwrap();
                log.sync().unwrap();
                let one = log.read_all().unwrap();
                disk.inject(Fault { at, of: Some(call), what, times: 1 });
                let Err(error) = log.append_all(&batch) else { continue };
                assert_eq!((error.kind(), error.durable()), (ErrorKind::Io, Some(Durable::No)));
                for (number, after) in states(&disk, 200).into_iter().enumerate() {
                    let log = subject.open(&after, MANUAL).unwrap();
                    assert_eq!(log.read_all().unwrap(), one, "{what:?} {at}, state {number}");
                }
                disk.heal();
                log.append(4, b"goes on").unwrap();
                log.sync().unwrap();
                let two = log.read_all().unwrap();
                assert_eq!(two.len(), 2);
                views::check_all(subject, &*log, &two).unwrap();
                let after = subject.open(&worst(&disk), MANUAL).unwrap();
                assert_eq!(after.read_all().unwrap(), two);
            }
        }
    }
}

// Promise: wal-call-fails.
fn an_append_that_cannot_be_rolled_back_poisons(subject: &Subject) {
    for call in [Call::SetLen, Call::Sync] {
        let disk = Sim::new();
        let log = subject.open(&disk, MANUAL).unwrap();
        log.append(1, b"one").unwrap();
        log.sync().unwrap();
        let one = log.read_all().unwrap();
        disk.inject(Fault::ever(1, What::Partial(FULL)).of(Call::Write));
        disk.inject(Fault::ever(1, What::Error(io::ErrorKind::Other)).of(call));
        let error = log.append(7, &[7; 50]).unwrap_err();
        assert_eq!(error.durable(), Some(Durable::Unknown), "{call:?}");
        disk.heal();
        let late = log.append(8, b"late").unwrap_err();
        assert_eq!(late.kind(), ErrorKind::Poisoned);
        drop(log);
        let log = subject.open(&disk, MANUAL).unwrap();
        assert_eq!(log.read_all().unwrap()[..1], one);
    }
}

fn a_rollback_fills_no_cut_of_another_program(subject: &Subject) {
    for allocates in [false, true] {
        let disk = Sim::new();
        disk.set_allocates(allocates);
        let log = subject.open(&disk, MANUAL).unwrap();
        for n in 1..6u8 {
            log.append(u32::from(n), &[n; 50]).unwrap();
        }
        log.sync().unwrap();
        if allocates && subject.files(&disk).len() > 1 {
            // The next segment already exists, and its length does not show a cut of earlier ones.
            continue;
        }
        let left = log.end().unwrap() - 100;
        cut(subject, &disk, left);
        disk.inject(Fault::once(1, What::Error(FULL)).of(Call::Write));
        let error = log.append(7, &[7; 50]).unwrap_err();
        assert_eq!(error.durable(), Some(Durable::Unknown), "{error}");
        assert_eq!(log_bytes(subject, &disk).len() as u64, left, "allocates: {allocates}");
        disk.heal();
        let late = log.append(8, b"late").unwrap_err();
        assert_eq!(late.kind(), ErrorKind::Poisoned);
        drop(log);
        let lost = subject.open(&disk, MANUAL).err().map(|error| error.kind());
        assert_eq!(lost, Some(ErrorKind::LostRecords), "allocates: {allocates}");
    }
}

// Promise: create-fails, wal-create-fails.
fn a_failed_creation_leaves_nothing_in_the_way(subject: &Subject) {
    for kind in &HONEST {
        for at in 1..60 {
            let disk = Sim::new();
            let times = *kind.times.last().unwrap();
            disk.inject(Fault { at, of: None, what: kind.what(at), times });
            let created = subject.open(&disk, ALWAYS);
            disk.heal();
            drop(created);
            for disk in [disk.kill(), worst(&disk)] {
                let log = subject.open(&disk, ALWAYS).unwrap();
                log.append(1, b"one").unwrap();
                let first = log.read_all().unwrap();
                assert_eq!(first, [subject.record(None, 1, b"one")]);
            }
        }
    }
}

fn a_long_record_is_whole_or_absent(subject: &Subject) {
    // With small segments, the record would need thousands of files.
    let len = if subject.border_bytes < 512 { 3_000 } else { (1 << 20) + 700 };
    let long: Vec<u8> = (0..len).map(|at| mix(at) as u8).collect();
    for what in [What::Partial(FULL), What::Zero, What::Short, What::Crash] {
        for at in 1..6 {
            let disk = Sim::new();
            let log = subject.open(&disk, MANUAL).unwrap();
            log.append(1, b"one").unwrap();
            log.sync().unwrap();
            let one = log.read_all().unwrap();
            disk.inject(Fault::once(at, what).of(Call::Write));
            let appended = log.append(2, &long);
            let crashes = disk.crashes();
            for seed in 0..8 {
                let after = crashes.state_by_chance(seed);
                let got = subject.open(&after, MANUAL).unwrap().read_all().unwrap();
                assert_eq!(got[..1], one);
                let second = got.get(1).map(|record| &record.bytes);
                let no = appended.as_ref().is_err_and(|e| e.durable() == Some(Durable::No));
                assert!(second.is_none() || (!no && second == Some(&long)), "{what:?} {at}");
            }
        }
    }
}
