//! Bugs found in the write-ahead log, each with its story.

use std::io::ErrorKind::StorageFull;

use super::*;

/// The benchmark of group commit found this: a sync read the file's length, an append of another thread reserved more
/// space, and the sync took the difference for a truncation by another process. Every later call failed.
#[test]
fn a_sync_during_a_space_reservation_succeeds() {
    for _ in 0..5 {
        let dir = tempfile::tempdir().unwrap();
        let wal = Wal::create(dir.path().join("log")).unwrap();
        let end = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !end.load(Ordering::Relaxed) {
                    wal.sync().unwrap();
                }
            });
            let appended = (0..20_000).try_for_each(|_| wal.append(&[7; 4000]).map(drop));
            end.store(true, Ordering::Relaxed);
            appended.unwrap();
        });
    }
}

/// A comparison with wal-db found this: a wal-db process killed in its first append leaves only a torn record. Every
/// `recovery`, and repair, called the file "not a log".
#[test]
fn a_log_with_only_torn_bytes_is_repairable() {
    let torn = [&[1, 2, 3, 4, 50, 0, 0, 0][..], &[9; 9]].concat();
    let dir = tempfile::tempdir().unwrap();
    let layouts = [
        ("log", "", 17, true),
        ("x.wal", "", 17, true),
        ("x.wal", "", 3, true),
        ("x", "", 3, false),
        ("dir", "00000000000000000000.wal", 17, true),
        ("dir", "00000000000000000000.wal", 3, true),
    ];
    for (name, segment, len, is_log) in layouts {
        for way in ["repair", "spec"] {
            let path = dir.path().join(format!("{way}{len}")).join(name);
            let file = if segment.is_empty() { path.clone() } else { path.join(segment) };
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, &torn[..len]).unwrap();
            let spec = Options::new().recovery(Recovery::Spec);
            if !is_log {
                for error in [Wal::open(&path).unwrap_err(), Wal::append_to(&path).unwrap_err()] {
                    assert_eq!(error.kind(), ErrorKind::NotALog, "{error}");
                }
                assert!(spec.open(&path, Mode::Append).is_err());
                continue;
            }
            let report = Options::new().verify(&path).unwrap();
            assert_eq!(report.verdict, Verdict::Torn);
            assert_eq!(Wal::open(&path).unwrap().len().unwrap(), 0);
            for recovery in [Recovery::Valid, Recovery::Acknowledged] {
                let refused = Options::new().recovery(recovery).open(&path, Mode::Append);
                let error = refused.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
                assert!(error.to_string().contains("repair it"), "{error}");
            }
            assert_eq!(fs::read(&file).unwrap(), torn[..len]);
            let saved = match way {
                "repair" => Options::new().repair(&path, Repair::default()).unwrap().saved.pop(),
                _ => spec.open(&path, Mode::Append).unwrap().recovery().saved_to.clone(),
            };
            assert_eq!(fs::read(saved.unwrap()).unwrap(), torn[..len]);
            let wal = Wal::append_to(&path).unwrap();
            assert_eq!(wal.recovery().verdict, Verdict::Clean);
            assert_eq!(wal.commit(b"x").unwrap(), Lsn(0));
        }
    }
}

/// Without room for the head marker or the intent, a truncation changed nothing but poisoned the handle.
#[test]
fn a_truncation_on_a_full_disk_poisons_nothing() {
    for what in [Call::Create, Call::Rename] {
        let (disk, wal, lsns) = synced(&SEGMENTS, MANUAL, 5, 50);
        for truncate in [Wal::truncate_before, Wal::truncate_from] {
            disk.inject(Fault::once(1, What::Error(StorageFull)).of(what));
            let error = truncate(&wal, lsns[2]).unwrap_err();
            assert_eq!((error.kind(), error.durable()), (ErrorKind::Io, Some(Durable::No)));
            disk.heal();
            assert_eq!(wal.len().unwrap(), 5);
        }
        wal.commit(b"goes on").unwrap();
        drop(wal);
        let wal = SEGMENTS.wal(&disk, MANUAL).unwrap();
        assert_eq!(wal.len().unwrap(), 6);
        wal.truncate_before(lsns[2]).unwrap();
        wal.truncate_from(lsns[4]).unwrap();
        assert_eq!(wal.len().unwrap(), 2);
        assert!(disk.list("/log".as_ref()).unwrap().iter().all(|name| name != "head.tmp"));
    }
}
