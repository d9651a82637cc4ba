//! Backups next to a writer, which appends, rolls, drops or truncates before each call of the copy.

use super::*;

/// Backs a log up. Its writer does one round of work before call number `at`. Returns the calls.
fn beside(kind: Kind, rounds: u32, at: u64) -> u64 {
    let sim = disk();
    for round in 0..rounds {
        write(&sim, &kind, round);
        if round + 1 < rounds {
            back_up(on(&sim)).unwrap();
        }
    }
    let before = read(&sim, &kind, LOG).unwrap();
    let had = if rounds > 1 { read(&sim, &kind, COPY).unwrap() } else { Vec::new() };
    let writer = sim.clone();
    let (storage, calls) = before_call(on(&sim), at, move || write(&writer, &kind, rounds));
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
    let new = found.iter().filter(|one| !had.contains(one)).count() as u64;
    let counted = report.new_records.unwrap_or(new);
    assert!(counted >= new, "{}, call {at}: {counted} of {new} new records", kind.name);
    let report =
        back_up(on(&sim)).unwrap_or_else(|e| panic!("{}, call {at}, once more: {e:?}", kind.name));
    assert_eq!(read(&sim, &kind, COPY).unwrap(), after, "{}, call {at}: {report:?}", kind.name);
    (kind.append)(&on(&sim), Path::new(COPY))
        .unwrap_or_else(|e| panic!("{}, call {at}: {e:?}", kind.name));
    calls.load(Ordering::Relaxed)
}

// Promise: backup-beside.
fn has_what_was_acknowledged(name: &str) {
    let kind = Kind::named(name);
    // The other kinds make few calls, so every call is tried.
    let stride = if name == "store" { kind.stride() } else { 1 };
    for rounds in 1..=3 {
        let mut at = 1 + u64::from(rounds - 1) % stride;
        while at <= beside(kind, rounds, at) {
            at += stride;
        }
        assert!(at > 20, "{name}: {at} calls");
    }
}

of_each_kind! { has_what_was_acknowledged }

/// The end of a log is cut and written again before each call: the backup is refused or complete.
#[test]
fn a_backup_during_truncation_is_complete_or_refused() {
    for name in ["segments", "single"] {
        let kind = Kind::named(name);
        let (mut at, mut calls, mut refused) = (1, u64::MAX, 0);
        while at <= calls {
            let sim = disk();
            write(&sim, &kind, 0);
            back_up(on(&sim)).unwrap();
            let kept = read(&sim, &kind, COPY).unwrap();
            write(&sim, &kind, 1);
            let writer = on(&sim);
            let (storage, count) = before_call(on(&sim), at, move || {
                let options =
                    wal::Options::new().storage(writer.clone()).durability(Durability::Always);
                let log = options.open(LOG, Mode::Append).unwrap();
                let lsns: Vec<_> = log.iter(..).unwrap().map(|r| r.unwrap().lsn).collect();
                log.truncate_after(lsns[6]).unwrap();
                for n in 0..40 {
                    log.append(format!("anew {n}").as_bytes()).unwrap();
                }
                log.close().unwrap();
            });
            let done = back_up(storage);
            calls = count.load(Ordering::Relaxed);
            let (found, after) =
                (read(&sim, &kind, COPY).unwrap(), read(&sim, &kind, LOG).unwrap());
            if let Err(e) = done {
                refused += 1;
                let is_told = matches!(e.kind(), ErrorKind::InvalidArgument | ErrorKind::Corrupt);
                assert!(is_told, "{name}, {at}: {e:?}");
            }
            assert!(found.starts_with(&kept), "{name}, call {at}");
            assert!(after.starts_with(&kept) && after.len() > 40);
            at += 1;
        }
        assert!(at > 20 && refused < at, "{name}: {refused} of {at}");
    }
}

/// LMDB writes pages in place: a copy with pages from before and after a commit is neither state.
#[test]
fn a_backup_recopies_metadata_changed_during_the_copy() {
    let (sim, kind) = (disk(), Kind::named("pier"));
    write(&sim, &kind, 0);
    let metadata = |of: &str| Path::new(of).join(".urb/log/data.mdb");
    write_file(&sim, &metadata(LOG), b"old");
    back_up(on(&sim)).unwrap();
    assert_eq!(read_file(&sim, &metadata(COPY)), b"old");
    for times in [1, 3, u64::MAX] {
        let (writer, seen) = (sim.clone(), AtomicU64::new(0));
        // Another write follows each read of the file.
        write_file(&sim, &metadata(LOG), format!("begun {times}").as_bytes());
        let storage = changing(on(&sim), "data.mdb", move || {
            let number = seen.fetch_add(1, Ordering::Relaxed);
            if number < times {
                write_file(&writer, &metadata(LOG), format!("{times}: {number:4}").as_bytes());
            }
        });
        let done = back_up(storage);
        let copied = read_file(&sim, &metadata(COPY));
        if times == u64::MAX {
            assert_eq!(done.unwrap_err().kind(), ErrorKind::Locked);
            assert!(copied.starts_with(b"3: "), "it stays as it was");
        } else {
            done.unwrap();
            assert_eq!(copied, read_file(&sim, &metadata(LOG)));
        }
    }
    // If the source lost its metadata, the backup has the only copy.
    sim.remove(&metadata(LOG)).unwrap();
    back_up(on(&sim)).unwrap();
    assert!(read_file(&sim, &metadata(COPY)).starts_with(b"3: "));
}

/// A storage that calls a function after each opening of the named file.
fn changing(
    storage: Arc<dyn Storage>,
    name: &'static str,
    change: impl Fn() + Send + Sync + 'static,
) -> Arc<dyn Storage> {
    Arc::new(Around { storage, by: Changing { name, change: Arc::new(change) } })
}

#[derive(Clone)]
struct Changing {
    name: &'static str,
    change: Arc<dyn Fn() + Send + Sync>,
}

impl Between for Changing {
    fn opened(&self, path: &Path) {
        if path.starts_with(LOG) && path.ends_with(self.name) {
            (self.change)();
        }
    }
}
