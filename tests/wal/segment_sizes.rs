//! The size of a log's segments: no guess, wrong option or wrong name removes anything.

use super::*;

/// Segments of 600 bytes: 33 records of 100 bytes, then the payloads `more`. Records before byte `head` are dropped.
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

fn files(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = snapshot(&Disk, path);
    files.retain(|file, _| file.parent() == Some(path));
    files
}

/// Without a sidecar, by a wrong size that the caller named, the first segment lay below the head, and was removed with
/// durable records; or the head lay further on in the only segment, and the whole log seemed torn.
#[test]
fn wrong_segment_sizes_are_refused_with_both_numbers() {
    // If the division is even, the head still lies at a record of the only segment.
    let lone = (501..600).filter(|wrong| 5 * (600 - wrong) % 100 != 0);
    let lone = (dropped(&[&[33; 92], &[34; 92]], 3400), false, lone.collect(), (3400, 1));
    let two = vec![500, 516, 520, 550, 599, 601, 620, 1200];
    let whole = vec![1, 32, 599, 601, 1200, 1 << 20];
    for ((_dir, path), sidecar, sizes, (head, records)) in [
        (two_segments(), false, two, (3100, 3)),
        lone,
        (dropped(&[], 0), true, whole.clone(), (0, 33)),
        (dropped(&[], 0), false, whole, (0, 33)),
    ] {
        if !sidecar {
            delete_sidecar(&path);
        }
        let before = files(&path);
        for wrong in sizes {
            for mode in [Mode::Append, Mode::Read] {
                let what = format!("{head}, {wrong}, {sidecar}, {mode:?}");
                let Err(error) = of_size(wrong).open(&path, mode) else {
                    // By a larger size, the two segments look torn by a crash.
                    assert!(mode == Mode::Read && (head != 3100 || wrong > 600), "{what}");
                    continue;
                };
                let kinds = [ErrorKind::InvalidArgument, ErrorKind::Corrupt, ErrorKind::NotALog];
                assert!(mode == Mode::Read || kinds.contains(&error.kind()), "{what}: {error:?}");
                if head == 3100 && wrong < 600 {
                    let said = error.to_string();
                    assert!(said.contains("600") && said.contains(&wrong.to_string()), "{said}");
                }
            }
            assert_eq!(files(&path), before, "{head}, {wrong}, {sidecar}");
        }
        let wal = of_size(600).open(&path, Mode::Append).unwrap();
        assert_eq!((wal.head().unwrap(), wal.len().unwrap()), (Lsn(head), records));
    }
}

/// A power cut tore the first segment of a log without a sidecar. Its length was taken for the segment size: by this
/// size the segment lay below the head, or the head pointed at another byte.
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
                assert_eq!(of_size(600).open(&path, Mode::Read).unwrap().len().unwrap(), 2);
            }
        }
    }
    assert_eq!(refused, 75);
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

/// A head marker near 2^64, with a correct checksum, made an addition overflow, and reading panicked.
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
