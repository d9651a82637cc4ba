//! The size of a log's segments: no guess, wrong option or wrong name removes anything.

use deedbook::wal::{HEAD_NAME, Layout, Lsn, Options, Wal, segment_name};
use tempfile::TempDir;

use crate::support::common::snapshot;
use crate::support::formats::wal::head_marker;
use crate::support::prelude::*;

fn of_size(segment_bytes: u64) -> Options {
    Options::new().layout(Layout::Segmented { segment_bytes })
}

/// A log in segments of 600 bytes: 33 records of 100 bytes, and then records with the payloads `more`. The records
/// before byte `head` were dropped.
fn dropped(more: &[&[u8]], head: u64) -> (TempDir, PathBuf) {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("log");
    let wal = of_size(600).open(&path, Mode::Create).unwrap();
    (0..33).for_each(|n| assert!(wal.append(&[n; 92]).is_ok()));
    more.iter().for_each(|payload| assert!(wal.append(payload).is_ok()));
    wal.sync().unwrap();
    wal.truncate_before(Lsn(head)).unwrap();
    wal.close().unwrap();
    (dir, path)
}

/// Segment 5 is the first segment, and segment 6 the last.
fn two_segments() -> (TempDir, PathBuf) {
    dropped(&[&[0xee; 700]], 3100)
}

fn delete_sidecar(path: &Path) {
    fs::remove_dir_all(path.join(".deedbook")).unwrap();
}

fn cut(path: &Path, segment: u64, len: u64) {
    let file = fs::File::options().write(true).open(path.join(segment_name(segment)));
    file.unwrap().set_len(len).unwrap();
}

/// Names and bytes of everything but the sidecar.
fn files(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = snapshot(&Disk, path);
    files.retain(|file, _| file.parent() == Some(path));
    files
}

/// A review found this: the sidecar was deleted, and the caller named a wrong segment size. By the wrong size the first
/// segment lay below the head, and was removed with durable records.
#[test]
fn wrong_segment_sizes_are_refused_with_both_numbers() {
    let (_dir, path) = two_segments();
    delete_sidecar(&path);
    let before = files(&path);
    for wrong in [500, 516, 520, 550, 599, 601, 620, 1200] {
        for mode in [Mode::Append, Mode::Read] {
            let Err(error) = of_size(wrong).open(&path, mode) else {
                // By this size the log looks torn by a crash.
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

/// The same with a single segment, in which the head by the wrong size lies further on: the whole log seemed torn.
#[test]
fn a_wrong_segment_size_truncates_no_lone_segment() {
    let (_dir, path) = dropped(&[&[33; 92], &[34; 92]], 3400);
    delete_sidecar(&path);
    let before = files(&path);
    for wrong in 501..600 {
        // If the division is even, the head still lies at a record.
        if 5 * (600 - wrong) % 100 != 0 {
            let error = of_size(wrong).open(&path, Mode::Append).unwrap_err();
            assert!(!matches!(error.kind(), ErrorKind::Io), "{wrong}: {error}");
            assert_eq!(files(&path), before, "{wrong}");
        }
    }
    assert_eq!(of_size(600).open(&path, Mode::Append).unwrap().len().unwrap(), 1);
}

/// Also in a log without dropped records, with a sidecar or without.
#[test]
fn a_whole_log_refuses_a_wrong_segment_size() {
    let (_dir, path) = dropped(&[], 0);
    for sidecar in [true, false] {
        if !sidecar {
            delete_sidecar(&path);
        }
        let before = files(&path);
        for wrong in [1, 32, 599, 601, 1200, 1 << 20] {
            let kind = of_size(wrong).open(&path, Mode::Append).unwrap_err().kind();
            let kinds = [ErrorKind::InvalidArgument, ErrorKind::Corrupt, ErrorKind::NotALog];
            assert!(kinds.contains(&kind), "{wrong}, {sidecar}: {kind:?}");
            assert_eq!(files(&path), before, "{wrong}, {sidecar}");
        }
    }
}

/// A review found this: a power cut tore the first segment of a log with a dropped prefix, and the sidecar was deleted.
/// The torn segment's length was taken for the segment size: by this size the segment lay below the head, or the head
/// pointed at another byte.
#[test]
fn a_size_guessed_from_torn_segments_removes_nothing() {
    let (_dir, path) = two_segments();
    let mut refused = 0;
    for torn in (300..=600).rev().step_by(4) {
        let _ = fs::remove_dir_all(path.join(".deedbook"));
        cut(&path, 5, torn);
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
                // With the right size, all records are there.
                assert_eq!(of_size(600).open(&path, Mode::Read).unwrap().len().unwrap(), 2);
            }
        }
    }
    assert_eq!(refused, 75);
}

/// A torn segment ends exactly after a record, and by its length the head points at a record, too. No record is damaged
/// by this size, but the records do not continue.
#[test]
fn a_size_contradicting_the_records_removes_nothing() {
    let (_dir, path) = dropped(&[&[0xdd; 272], &[0xee; 700]], 3100);
    delete_sidecar(&path);
    cut(&path, 5, 580);
    cut(&path, 6, 90);
    fs::remove_file(path.join(segment_name(7))).unwrap();
    let before = files(&path);
    let error = Wal::append_to(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(error.to_string().contains("580"), "{error}");
    assert_eq!(files(&path), before);
}

/// A crash undid a removal below the head. The next writer repeats it, even if the caller has to name the size.
#[test]
fn a_certain_size_removes_segments_below_the_head() {
    let (_dir, path) = two_segments();
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

/// A review found this: a head marker near 2^64, with a correct checksum, made an addition overflow, and reading the
/// log panicked.
#[test]
fn heads_and_segments_near_2_64_are_refused() {
    let dir = TempDir::new().unwrap();
    let half = 1 << 63;
    let heads = [half - 1, half, half + 1, u64::MAX - 100, u64::MAX - 64, u64::MAX - 63, u64::MAX];
    for head in heads {
        for (len, size) in [(1, 64), (40, 64), (63, 64), (64, 64), (5, 1 << 62), (5, u64::MAX)] {
            let path = dir.path().join(format!("{head}-{len}-{size}"));
            fs::create_dir(&path).unwrap();
            fs::write(path.join(HEAD_NAME), head_marker(head)).unwrap();
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

/// Only the name is high: no log is so long.
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
