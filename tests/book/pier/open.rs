//! Directories that are piers, and directories that are refused.

use crate::pier::support::*;

fn refused(disk: &Sim) -> Error {
    let [reading, writing] =
        [Mode::Read, Mode::Append].map(|mode| options(disk).open_pier(PIER, mode).unwrap_err());
    assert_eq!((reading.kind(), reading.message()), (writing.kind(), writing.message()));
    assert_eq!(reading.format(), Some("book"));
    reading
}

#[test]
fn a_pier_orders_its_epochs_by_events() {
    // By name, 0i10 comes before 0i9.
    let disk = epochs(&[(0, 9), (9, 1), (10, 90), (100, 2)]);
    for path in [PIER, LOG] {
        let pier = options(&disk).open_pier(path, Mode::Read).unwrap();
        assert_eq!(numbers(&pier), [0, 9, 10, 100]);
        assert_eq!(pier.log_dir(), Path::new(LOG));
        assert_eq!(all(&pier), (1..=102).collect::<Vec<_>>());
        assert_eq!((pier.epoch().unwrap(), pier.last().unwrap()), (0, 102));
        assert_eq!(pier.bounds().unwrap(), Some(1..=102));
        assert_eq!(pier.len().unwrap(), 102);
        let epochs = pier.epochs().unwrap();
        assert_eq!(epochs[2].bounds, Some((11, 100)));
        assert_eq!((epochs[1].deeds, &*epochs[1].path), (1, &*epoch(9)));
        assert_eq!(epochs[3].verdict, Verdict::Clean);
    }
}

/// A directory `.urb/log` without epochs is the place of the epochs. It is not a pier with a `.urb/log` below.
#[test]
fn a_new_pier_opens_at_any_log_directory() {
    let empty = epochs(&[]);
    assert_eq!(options(&empty).open_pier(LOG, Mode::Append).unwrap().log_dir(), Path::new(LOG));
    assert_eq!(numbers(&reading(&empty)), [0]);
    let elsewhere = Sim::new();
    elsewhere.create_dir(Path::new("/epochs")).unwrap();
    options(&elsewhere).open("/epochs/0i4", Mode::Create).unwrap().close().unwrap();
    let pier = options(&elsewhere).open_pier("/epochs", Mode::Read).unwrap();
    assert_eq!((pier.log_dir(), numbers(&pier)), (Path::new("/epochs"), vec![4]));
}

/// The first epoch refused the durability, after the pier had made the directories, the lock and an epoch.
#[test]
fn a_pier_refused_for_durability_creates_nothing() {
    let disk = Sim::new();
    let options = options(&disk).durability(Durability::Rotate);
    let error = options.open_pier(PIER, Mode::Create).unwrap_err();
    assert_eq!((error.kind(), error.path()), (ErrorKind::InvalidArgument, Some(Path::new(PIER))));
    assert!(!disk.is_dir(Path::new(PIER)));
}

/// The error of a refused write says that nothing is durable. The errors of a closed pier and of a closed log did not.
#[test]
fn what_a_closed_pier_refuses_is_not_durable() {
    let disk = epochs(&[(0, 2)]);
    let pier = options(&disk).open_pier(PIER, Mode::Append).unwrap();
    pier.close().unwrap();
    let book = options(&disk).open(epoch(0), Mode::Append).unwrap();
    book.close().unwrap();
    for error in [pier.append(1, b"x").unwrap_err(), book.append(1, b"x").unwrap_err()] {
        assert_eq!((error.kind(), error.durable()), (ErrorKind::Closed, Some(Durable::No)));
    }
}

// Promise: pier-gaps.
#[test]
fn an_empty_epoch_may_only_be_the_last() {
    let disk = epochs(&[(0, 3), (3, 0)]);
    let pier = appending(&disk);
    assert_eq!((numbers(&pier), pier.last().unwrap()), (vec![0, 3], 3));
    append(&pier, 4..=4);
    assert_eq!(all(&pier), [1, 2, 3, 4]);
    let gap = refused(&epochs(&[(0, 3), (3, 0), (5, 1)]));
    assert_eq!((gap.kind(), gap.path()), (ErrorKind::Contiguity, Some(&*epoch(5))));
    assert!(gap.message().ends_with("events 4 to 5 are missing"), "{gap}");
}

// Promise: pier-gaps.
#[test]
fn an_lmdb_epoch_is_refused_by_name() {
    for (version, and) in [(Some("1"), false), (Some("2\n"), true), (None, true)] {
        let disk = epochs(&[(3, 1)]);
        disk.create_dir(&epoch(0)).unwrap();
        if let Some(version) = version {
            put(&disk, epoch(0).join("epoc.txt"), version.as_bytes());
        }
        if and {
            put(&disk, epoch(0).join("data.mdb"), b"");
        }
        let lmdb = refused(&disk);
        assert_eq!(lmdb.kind(), ErrorKind::Unsupported);
        assert_eq!(
            lmdb.message(),
            "epoch 0i0 is in LMDB (data.mdb); 'deedbook migrate' makes books of them"
        );
        assert_eq!(lmdb.path(), Some(&*epoch(0)));
    }
}

#[test]
fn a_missing_pier_is_created_only_for_appending() {
    let disk = Sim::new();
    let missing = options(&disk).open_pier(PIER, Mode::Read).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::Missing);
    let calls = disk.fingerprint();
    assert!(!disk.is_dir(Path::new(PIER)));
    let pier = options(&disk).open_pier(PIER, Mode::Create).unwrap();
    assert_ne!(disk.fingerprint(), calls);
    assert_eq!((numbers(&pier), pier.bounds().unwrap()), (vec![0], None));
    assert_eq!(pier.read(1).unwrap_err().message(), "no deed 1, the pier is empty");
    drop(pier);
    let exists = options(&disk).open_pier(PIER, Mode::Create).unwrap_err();
    assert_eq!(exists.kind(), ErrorKind::AlreadyExists);
    let after = Sim::new();
    let begin = options(&after).epoch(41);
    let pier = begin.open_pier(PIER, Mode::Append).unwrap();
    assert_eq!(pier.append(0, b"").unwrap(), 42);
    drop(pier);
    assert!(begin.open_pier(PIER, Mode::Append).is_ok());
    let other = options(&after).epoch(42);
    let contradicts = other.open_pier(PIER, Mode::Append).unwrap_err();
    assert_eq!(contradicts.message(), "epoch 42 asked for, but the pier begins with 0i41");
}

#[test]
fn verify_checks_every_epoch_and_what_lies_between() {
    let mut steps = Vec::new();
    let report = options(&three_epochs()).verify_pier_with(PIER, |done, total| {
        steps.push((done, total));
        Ok(())
    });
    let report = report.unwrap();
    assert!(report.ok());
    let found: Vec<_> =
        report.epochs.iter().map(|(number, report)| (*number, report.bounds)).collect();
    assert_eq!(found, [(0, Some((1, 3))), (3, Some((4, 5))), (5, Some((6, 9)))]);
    let total = steps[0].1;
    assert!(steps.is_sorted() && steps.iter().all(|step| step.1 == total), "{steps:?}");
    assert_eq!(steps.last(), Some(&(total, total)));
    let report = options(&epochs(&[(0, 3), (4, 1)])).verify_pier(PIER).unwrap();
    assert!(!report.ok());
    assert_eq!(
        report.gaps,
        ["epoch 0i4 begins with event 5, but epoch 0i0 ends with event 3: event 4 is missing"]
    );
    let missing = options(&Sim::new()).verify_pier("/none").unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::Missing);
}

/// A failed listing does not mean "no epochs": an empty pier would begin there. An unreadable text is not a missing
/// text.
#[test]
fn a_failed_call_while_opening_hides_nothing() {
    for (mode, version) in [(Mode::Read, "3"), (Mode::Append, "3"), (Mode::Read, "4")] {
        for call in 1.. {
            let disk = three_epochs();
            put(&disk, epoch(3).join("epoc.txt"), version.as_bytes());
            disk.inject(Fault::once(call, What::Error(std::io::ErrorKind::Other)));
            let opened = options(&disk).open_pier(PIER, mode);
            let struck = disk.fired() > 0;
            disk.heal();
            match opened {
                Ok(pier) if version == "3" => {
                    assert_eq!(all(&pier), (1..=9).collect::<Vec<_>>(), "call {call}");
                }
                Ok(_) => panic!("call {call} hides the version"),
                Err(error) => {
                    let kind = if struck { ErrorKind::Io } else { ErrorKind::Unsupported };
                    assert_eq!(error.kind(), kind, "call {call}: {error}");
                }
            }
            if !struck {
                assert!(call > 10 || version == "4", "{call}");
                break;
            }
        }
    }
}

#[test]
fn a_text_has_at_most_4096_bytes() {
    let disk = three_epochs();
    let mut text = vec![b' '; 4096];
    text[0] = b'3';
    put(&disk, epoch(3).join("epoc.txt"), &text);
    assert_eq!(all(&reading(&disk)).len(), 9);
    text.push(b' ');
    put(&disk, epoch(3).join("epoc.txt"), &text);
    let error = refused(&disk);
    assert_eq!(error.message(), "epoc.txt has 4097 bytes or more, limit 4096");
}
