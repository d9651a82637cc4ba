//! Backups beside a writer, which appends, rolls, drops or truncates before each call of the copy.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use deedbook::ErrorKind;

use super::kinds::{KINDS, Kind};
use super::{COPY, LOG, back_up, disk, on, read, write};
use crate::support::watch::{Seen, watched};

/// Back a log up while its writer does one round of work before call number `at`; returns the calls.
fn beside(kind: Kind, rounds: u32, at: u64) -> u64 {
    let sim = disk();
    for round in 0..rounds {
        write(&sim, &kind, round);
        if round + 1 < rounds {
            back_up(on(&sim)).unwrap();
        }
    }
    let before = read(&sim, &kind, LOG).unwrap();
    let calls = Arc::new(AtomicU64::new(0));
    let (writer, count) = (sim.clone(), calls.clone());
    let storage = watched(on(&sim), move |seen| {
        if seen == Seen::Calling && count.fetch_add(1, Ordering::Relaxed) + 1 == at {
            write(&writer, &kind, rounds);
        }
    });
    let report = back_up(storage).unwrap_or_else(|e| panic!("{}, call {at}: {e:?}", kind.name));
    let (found, after) = (read(&sim, &kind, COPY), read(&sim, &kind, LOG).unwrap());
    let found = found.unwrap_or_else(|e| panic!("{}, call {at}: {e:?}, {report:?}", kind.name));
    for one in before.iter().filter(|one| after.contains(one)) {
        let shown = String::from_utf8_lossy(one);
        assert!(found.contains(one), "{}, call {at}: {shown} is missing", kind.name);
    }
    assert!(
        found.iter().all(|one| before.contains(one) || after.contains(one)),
        "{}, call {at}",
        kind.name
    );
    let report =
        back_up(on(&sim)).unwrap_or_else(|e| panic!("{}, call {at}, once more: {e:?}", kind.name));
    assert_eq!(read(&sim, &kind, COPY).unwrap(), after, "{}, call {at}: {report:?}", kind.name);
    kind.append(&on(&sim), Path::new(COPY))
        .unwrap_or_else(|e| panic!("{}, call {at}: {e:?}", kind.name));
    calls.load(Ordering::Relaxed)
}

// Promise: backup-beside-a-writer.
#[test]
fn a_backup_beside_a_writer_has_what_was_acknowledged() {
    for kind in KINDS {
        for rounds in 1..=3 {
            let mut at = 1;
            while at <= beside(kind, rounds, at) {
                at += 1;
            }
            assert!(at > 20, "{}: {at} calls", kind.name);
        }
    }
}

/// The end of a log is cut and written again before each call: the backup is refused, or it is whole.
#[test]
fn a_log_that_is_truncated_under_its_backup_is_copied_whole_or_not_at_all() {
    use deedbook::{Durability, Mode, wal};

    for name in ["segments", "single"] {
        let kind = Kind::named(name);
        let (mut at, mut calls, mut refused) = (1, u64::MAX, 0);
        while at <= calls {
            let sim = disk();
            write(&sim, &kind, 0);
            back_up(on(&sim)).unwrap();
            let kept = read(&sim, &kind, COPY).unwrap();
            write(&sim, &kind, 1);
            let count = Arc::new(AtomicU64::new(0));
            let (writer, counted) = (on(&sim), count.clone());
            let storage = watched(on(&sim), move |seen| {
                if seen == Seen::Calling && counted.fetch_add(1, Ordering::Relaxed) + 1 == at {
                    let options =
                        wal::Options::new().storage(writer.clone()).durability(Durability::Always);
                    let log = options.open(LOG, Mode::Append).unwrap();
                    let lsns: Vec<_> =
                        log.iter(None).unwrap().map(|record| record.unwrap().lsn).collect();
                    log.truncate_after(lsns[6]).unwrap();
                    for number in 0..40 {
                        log.append(format!("anew {number}").as_bytes()).unwrap();
                    }
                    log.close().unwrap();
                }
            });
            let done = back_up(storage);
            calls = count.load(Ordering::Relaxed);
            let (found, after) =
                (read(&sim, &kind, COPY).unwrap(), read(&sim, &kind, LOG).unwrap());
            match done {
                Ok(_) => assert!(found.starts_with(&kept), "{name}, call {at}"),
                Err(e) => {
                    refused += 1;
                    assert!(
                        [ErrorKind::InvalidArgument, ErrorKind::Corrupt].contains(&e.kind()),
                        "{name}, {at}: {e:?}"
                    );
                    assert!(found.starts_with(&kept), "{name}, call {at}");
                }
            }
            assert!(after.starts_with(&kept) && after.len() > 40);
            at += 1;
        }
        assert!(at > 20 && refused < at, "{name}: {refused} of {at}");
    }
}
