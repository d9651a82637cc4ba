//! Where a log lies and how large its segments are: no guess or wrong option removes anything,
//! no second writer is let in, and nothing that is not there is acknowledged.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use deedbook::ErrorKind;
use deedbook::book::Book;
use deedbook::storage::sim::Sim;
use deedbook::storage::{Access, Memory, Storage};
use deedbook::wal::{Layout, Lsn, Mode, Options, Wal, repair, segment_name};
use tempfile::TempDir;

use crate::support::common::{in_role, role};
use crate::support::formats::book::BOOK;
use crate::support::formats::subject::{At, Format, MANUAL, refused};
use crate::support::formats::views::plain;
use crate::support::formats::wal::{SEGMENTS, SINGLE, head_marker};

fn of_size(segment_bytes: u64) -> Options {
    Options::new().layout(Layout::Segmented { segment_bytes })
}

fn on(storage: impl Storage + 'static, segment_bytes: u64) -> Options {
    of_size(segment_bytes).storage(Arc::new(storage))
}

/// Records of 100 bytes each up to byte 3300, one of 708 after them, and the head at 3100: segment 5
/// is the first one, and segment 6 the last.
fn dropped(path: &Path) {
    let wal = of_size(600).open(path, Mode::Create).unwrap();
    (0..33).for_each(|n| assert!(wal.append(&[n; 92]).is_ok()));
    wal.append(&[0xee; 700]).unwrap();
    wal.sync().unwrap();
    wal.truncate_before(Lsn(3100)).unwrap();
    wal.close().unwrap();
}

fn delete_sidecar(path: &Path) {
    fs::remove_dir_all(path.join(".deedbook")).unwrap();
}

/// Names and bytes of everything but the sidecar.
fn files(path: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries
        .filter(|path| path.is_file())
        .map(|path| (path.clone(), fs::read(&path).unwrap()))
        .collect();
    files.sort();
    files
}

/// Found by a reviewer: the sidecar was deleted, and the caller named a segment size that was not the
/// log's. By that size the first segment lay below the head, and was removed with what was durable.
#[test]
fn a_wrong_segment_size_that_is_named_is_refused_with_both_numbers() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("log");
    dropped(&path);
    delete_sidecar(&path);
    let before = files(&path);
    for wrong in [500, 516, 520, 550, 599, 601, 620, 1200] {
        for mode in [Mode::Append, Mode::Read] {
            let Err(error) = of_size(wrong).open(&path, mode) else {
                // A size by which the log looks like one that a crash tore.
                assert_eq!((mode, wrong > 600), (Mode::Read, true), "{wrong}");
                continue;
            };
            if wrong < 600 {
                let said = error.to_string();
                assert!(said.contains("600") && said.contains(&wrong.to_string()), "{said}");
            }
        }
        assert_eq!(files(&path), before, "{wrong}");
    }
    let wal = of_size(600).open(&path, Mode::Append).unwrap();
    assert_eq!((wal.head().unwrap(), wal.len().unwrap()), (Lsn(3100), 3));
}

/// The same with a single segment, in which the head of another size stands further on: all of
/// the log seemed torn.
#[test]
fn a_wrong_segment_size_that_is_named_does_not_cut_a_single_segment() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("log");
    let wal = of_size(600).open(&path, Mode::Create).unwrap();
    (0..35).for_each(|n| assert!(wal.append(&[n; 92]).is_ok()));
    wal.sync().unwrap();
    wal.truncate_before(Lsn(3400)).unwrap();
    wal.close().unwrap();
    delete_sidecar(&path);
    let before = files(&path);
    for wrong in 501..600 {
        // Where it divides evenly, the head stands at a record all the same.
        if 5 * (600 - wrong) % 100 != 0 {
            let error = of_size(wrong).open(&path, Mode::Append).unwrap_err();
            assert!(!matches!(error.kind(), ErrorKind::Io), "{wrong}: {error}");
            assert_eq!(files(&path), before, "{wrong}");
        }
    }
    assert_eq!(of_size(600).open(&path, Mode::Append).unwrap().len().unwrap(), 1);
}

/// Found by a reviewer: a power cut tore the first segment of a log whose prefix was dropped, and the
/// sidecar was deleted. The torn segment's length was taken for the segment size: by it that segment
/// lay below the head, or the head stood at another byte of it.
#[test]
fn a_segment_size_guessed_from_a_torn_segment_removes_nothing() {
    let dir = TempDir::new().unwrap();
    let whole = dir.path().join("whole");
    dropped(&whole);
    delete_sidecar(&whole);
    let path = dir.path().join("log");
    let mut refused = 0;
    for torn in (300..=600).step_by(4) {
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        for (file, bytes) in files(&whole) {
            fs::write(path.join(file.file_name().unwrap()), bytes).unwrap();
        }
        let first = path.join(segment_name(5));
        fs::File::options().write(true).open(&first).unwrap().set_len(torn).unwrap();
        let before = files(&path);
        match Wal::append_to(&path) {
            Ok(wal) => assert_eq!((torn, wal.len().unwrap()), (600, 3)),
            Err(_) => {
                refused += 1;
                assert_eq!(files(&path), before, "{torn}");
                if torn <= 516 {
                    let error = Wal::open(&path).unwrap_err();
                    assert!(error.to_string().contains("segment_bytes"), "{torn}: {error}");
                }
                // And with the size named all of them are there.
                assert_eq!(of_size(600).open(&path, Mode::Read).unwrap().len().unwrap(), 2);
            }
        }
    }
    assert_eq!(refused, 75);
}

/// A torn segment that ends exactly after a record, and the head of the size that this makes stands
/// at a record, too: nothing is damaged by that size, only that the records do not go on.
#[test]
fn a_segment_size_that_the_records_do_not_bear_out_cuts_nothing() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("log");
    let wal = of_size(600).open(&path, Mode::Create).unwrap();
    (0..33).for_each(|n| assert!(wal.append(&[n; 92]).is_ok()));
    wal.append(&[0xdd; 272]).unwrap();
    wal.append(&[0xee; 700]).unwrap();
    wal.sync().unwrap();
    wal.truncate_before(Lsn(3100)).unwrap();
    wal.close().unwrap();
    delete_sidecar(&path);
    fs::File::options().write(true).open(path.join(segment_name(5))).unwrap().set_len(580).unwrap();
    fs::File::options().write(true).open(path.join(segment_name(6))).unwrap().set_len(90).unwrap();
    fs::remove_file(path.join(segment_name(7))).unwrap();
    let before = files(&path);
    let error = Wal::append_to(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(error.to_string().contains("580"), "{error}");
    assert_eq!(files(&path), before);
}

/// A removal below the head that a crash undid is done again, also if the size has to be named.
#[test]
fn segments_below_the_head_go_once_the_size_is_certain() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("log");
    dropped(&path);
    let below = path.join(segment_name(4));
    for deleted in [false, true] {
        fs::write(&below, vec![1; 600]).unwrap();
        if deleted {
            delete_sidecar(&path);
            for error in [Wal::append_to(&path).unwrap_err(), Wal::open(&path).unwrap_err()] {
                assert_eq!(error.kind(), ErrorKind::InvalidArgument);
                assert!(error.to_string().contains("pass segment_bytes="), "{error}");
            }
        }
        let wal = of_size(600).open(&path, Mode::Append).unwrap();
        assert_eq!((wal.len().unwrap(), below.exists()), (3, false));
        assert_eq!(wal.recovery().removed_segments, [4]);
    }
    fs::write(&below, vec![1; 599]).unwrap();
    let error = Wal::append_to(&path).unwrap_err().to_string();
    assert!(error.contains("599") && error.contains("600"), "{error}");
    assert!(below.exists());
}

/// Found by a reviewer: deleting the sidecar of an open log deleted the lock with it. A second
/// writer was let in, and both were acknowledged at the same LSN.
#[test]
fn a_log_whose_sidecar_is_deleted_keeps_its_writer() {
    for format in [&SINGLE as &dyn Format, &SEGMENTS, &BOOK] {
        let dir = TempDir::new().unwrap();
        let at = At::disk(format.path_in(dir.path()));
        let log = format.create(&at, &plain(1, 5));
        fs::remove_dir_all(format.sidecar(&at.path)).unwrap();
        let error = refused(format.open(&at, Mode::Append, MANUAL), ErrorKind::Locked);
        assert_eq!(error.holder(), Some(std::process::id()), "{}", format.name());
        #[cfg(unix)]
        {
            let out = in_role("places::child", format.name(), &at.path).output().unwrap();
            let said = String::from_utf8(out.stderr).unwrap();
            assert!(said.contains("opened: Some(Locked)"), "{}: {said}", format.name());
        }
        log.commit(1, b"second").unwrap();
        drop(log);
        assert_eq!(format.open(&at, Mode::Append, MANUAL).unwrap().len().unwrap(), 2);
    }
}

/// Not a test of its own: what the other process runs.
#[test]
fn child() {
    let Some((format, path)) = role() else { return };
    let error = match format.as_str() {
        "book" => Book::append_to(path).err(),
        _ => Wal::append_to(path).err(),
    };
    eprintln!("opened: {:?}", error.map(|error| error.kind()));
}

/// Only a log of segments has its directory for itself.
#[test]
fn logs_in_single_files_of_one_directory_are_written_at_once() {
    let dir = TempDir::new().unwrap();
    let single = Options::new().layout(Layout::Single);
    let logs = ["a", "b"].map(|name| single.open(dir.path().join(name), Mode::Create).unwrap());
    let around = Options::default().open(dir.path(), Mode::Append).unwrap();
    logs.iter().chain([&around]).for_each(|wal| assert!(wal.commit(b"mine").is_ok()));
    assert_eq!(Wal::append_to(dir.path()).unwrap_err().kind(), ErrorKind::Locked);
}

/// The directory's lock is the directory's, by whatever name.
#[cfg(unix)]
#[test]
fn a_log_in_a_linked_directory_is_opened_and_locked() {
    let dir = TempDir::new().unwrap();
    let (path, link) = (dir.path().join("log"), dir.path().join("link"));
    fs::create_dir(&path).unwrap();
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let wal = Wal::create(&link).unwrap();
    wal.commit(b"beyond a link").unwrap();
    delete_sidecar(&path);
    assert_eq!(Wal::append_to(&path).unwrap_err().kind(), ErrorKind::Locked);
    drop(wal);
    assert_eq!(Wal::append_to(&path).unwrap().len().unwrap(), 1);
}

#[test]
fn directories_are_locked_by_every_storage() {
    let sim = Sim::new();
    let storages: [Arc<dyn Storage>; 2] = [Arc::new(sim.clone()), Arc::new(Memory::new())];
    for storage in storages {
        let options = of_size(600).storage(storage.clone());
        let wal = options.open("/log", Mode::Append).unwrap();
        let sidecar = Path::new("/log/.deedbook");
        for name in storage.list(sidecar).unwrap() {
            storage.remove(&sidecar.join(name)).unwrap();
        }
        let error = options.open("/log", Mode::Append).unwrap_err();
        assert_eq!((error.kind(), error.holder()), (ErrorKind::Locked, Some(std::process::id())));
        drop(wal);
        options.open("/log", Mode::Append).unwrap();
    }
    // And a process that died holds nothing.
    let _wal = on(sim.clone(), 600).open("/log", Mode::Append).unwrap();
    on(sim.kill(), 600).open("/log", Mode::Append).unwrap();
}

/// Found by a reviewer: a second repair renamed its segments over those that the first one had saved.
#[test]
fn a_second_repair_keeps_what_the_first_one_saved() {
    let disk = Sim::new();
    let options = on(disk.clone(), 600);
    let saved = |name: &str| {
        let file = disk.open(&Path::new("/log").join(name), Access::Read).unwrap();
        let mut byte = [0; 9];
        assert_eq!(file.read_at(&mut byte, 300).unwrap(), 9);
        byte[8]
    };
    for round in 1..=3 {
        let wal = options.open("/log", Mode::Append).unwrap();
        while wal.end().unwrap().0 < 2400 {
            wal.append(&[round; 92]).unwrap();
        }
        wal.close().unwrap();
        drop(wal);
        disk.remove(&Path::new("/log").join(segment_name(2))).unwrap();
        repair(
            "/log",
            &options,
            deedbook::Repair { force: true, accept_loss: true, dry_run: false },
        )
        .unwrap();
        let cut = format!("{}.cut", segment_name(3));
        let names = [cut.clone(), format!("{cut}.2"), format!("{cut}.3")];
        for (name, by) in names.iter().zip(1..=round) {
            assert_eq!(saved(name), by, "round {round}, {name}");
        }
    }
}

/// A segment was gone, and the one before it ended with a whole record. Repair renamed the segments after
/// the gap and reported that it had cut 0 bytes.
#[test]
fn a_repair_names_the_segments_that_it_sets_aside() {
    let disk = Sim::new();
    let options = on(disk.clone(), 600);
    let wal = options.open("/log", Mode::Append).unwrap();
    (0..28).for_each(|n| assert!(wal.append(&[n; 92]).is_ok()));
    drop(wal);
    disk.remove(Path::new("/log/.deedbook/mark")).unwrap();
    [2, 4].iter().for_each(|&n| disk.remove(&Path::new("/log").join(segment_name(n))).unwrap());
    let segment = Path::new("/log").join(segment_name(3));
    let mut how = deedbook::Repair { force: true, accept_loss: true, dry_run: true };
    let would = repair("/log", &options, how).unwrap();
    assert_eq!((would.valid_end, &would.set_aside), (1200, &vec![segment.clone()]));
    how.dry_run = false;
    let report = repair("/log", &options, how).unwrap();
    let aside = segment.with_file_name(format!("{}.cut", segment_name(3)));
    assert_eq!((report.cut_bytes, report.saved_to, &report.set_aside), (0, None, &vec![aside]));
    assert_eq!(disk.open(&report.set_aside[0], Access::Read).unwrap().len().unwrap(), 600);
    assert!(repair("/log", &options, how).unwrap().set_aside.is_empty());
}

/// Found by a reviewer: only the last segment was asked whether it still has its name. An older one,
/// not yet synced, was removed, and the sync of what it had held succeeded.
#[test]
fn a_segment_that_is_removed_before_it_is_synced_fails_the_sync() {
    let dir = TempDir::new().unwrap();
    // Of 40 segments most were synced and closed meanwhile, to have few files open.
    for (records, gone) in [(20, 1), (230, 30)] {
        let path = dir.path().join(records.to_string());
        let wal = of_size(600).open(&path, Mode::Create).unwrap();
        (0..records).for_each(|n| assert!(wal.append(&[n; 92]).is_ok()));
        fs::remove_file(path.join(segment_name(gone))).unwrap();
        let error = wal.sync().unwrap_err().to_string();
        assert!(error.contains(&segment_name(gone)), "{error}");
        assert!(wal.append(b"more").is_err());
    }
}

/// Found by a reviewer: a head marker near 2^64, with the checksum right, made counting on from there
/// overflow, and reading the log panicked.
#[test]
fn heads_and_segments_near_the_end_of_all_numbers_are_refused() {
    let dir = TempDir::new().unwrap();
    let half = 1 << 63;
    let heads = [half - 1, half, half + 1, u64::MAX - 100, u64::MAX - 64, u64::MAX - 63, u64::MAX];
    for head in heads {
        for (len, size) in [(1, 64), (40, 64), (63, 64), (64, 64), (5, 1 << 62), (5, u64::MAX)] {
            let path = dir.path().join(format!("{head}-{len}-{size}"));
            fs::create_dir(&path).unwrap();
            fs::write(path.join("head"), head_marker(head)).unwrap();
            fs::write(path.join(segment_name(head / size)), vec![7; len]).unwrap();
            for mode in [Mode::Read, Mode::Append] {
                for options in [of_size(size), Options::default()] {
                    match options.open(&path, mode) {
                        Ok(wal) => {
                            assert!(head <= half || mode == Mode::Read, "{head} {len} {size}");
                            let _ = (wal.refresh(), wal.append(b"more"), wal.sync(), wal.end());
                        }
                        Err(error) if head > half && size == 64 && options.layout.is_some() => {
                            let said = error.to_string();
                            assert!(said.contains(&format!("byte {head}, beyond")), "{said}");
                        }
                        Err(_) => {}
                    }
                }
            }
        }
    }
}

/// Only a name: no log is that long.
#[test]
fn segments_whose_names_are_too_high_are_refused() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("log");
    of_size(64).open(&path, Mode::Create).unwrap().close().unwrap();
    for index in [1 << 58, u64::MAX / 64, u64::MAX / 64 + 1, u64::MAX] {
        let name = path.join(segment_name(index));
        fs::write(&name, b"7").unwrap();
        let error = Options::default().open(&path, Mode::Append).unwrap_err();
        assert!(error.to_string().contains(&index.to_string()), "{error}");
        let reader = Options::default().open(&path, Mode::Read).unwrap();
        let damage = reader.recovery().damage.clone().unwrap();
        assert!(damage.reason.contains(&index.to_string()), "{damage:?}");
        fs::remove_file(&name).unwrap();
    }
    Wal::append_to(&path).unwrap();
}

#[test]
fn a_layout_that_is_not_the_logs_is_refused() {
    let dir = TempDir::new().unwrap();
    let (log, file) = (dir.path().join("log"), dir.path().join("plain"));
    let wal = of_size(64).open(&log, Mode::Create).unwrap();
    (0..8).for_each(|_| assert!(wal.append(&[7; 40]).is_ok()));
    wal.close().unwrap();
    fs::write(&file, b"").unwrap();
    let kind = |opened: deedbook::Result<Wal>| opened.unwrap_err().kind();
    assert_eq!(kind(of_size(64).open(&file, Mode::Append)), ErrorKind::InvalidArgument);
    let single = Options::new().layout(Layout::Single);
    assert_eq!(kind(single.open(&log, Mode::Append)), ErrorKind::InvalidArgument);
    let of_a_segment = kind(Wal::append_to(log.join(segment_name(3))));
    assert_eq!(of_a_segment, ErrorKind::InvalidArgument);
    for sidecar in [true, false] {
        if !sidecar {
            delete_sidecar(&log);
        }
        let before = files(&log);
        for wrong in [1, 32, 63, 65, 128, 1 << 20] {
            let kind = kind(of_size(wrong).open(&log, Mode::Append));
            let kinds = [ErrorKind::InvalidArgument, ErrorKind::Corrupt, ErrorKind::NotALog];
            assert!(kinds.contains(&kind), "{wrong}, {sidecar}: {kind:?}");
            assert_eq!(files(&log), before, "{wrong}, {sidecar}");
        }
    }
}

#[test]
fn a_directory_holds_a_log_of_one_format() {
    let (books, wals) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    Book::create(books.path()).unwrap().close().unwrap();
    Wal::create(wals.path()).unwrap().close().unwrap();
    assert_eq!(Wal::append_to(books.path()).unwrap_err().kind(), ErrorKind::NotALog);
    assert_eq!(Book::append_to(wals.path()).unwrap_err().kind(), ErrorKind::NotALog);
}
