//! Crashes while a prefix is dropped or the end is cut.

use super::*;

/// After a crash at any call of `change`, the log holds the old or the new records; after the last, the new ones.
fn old_or_new(subject: &WalSubject, disk: &Sim, wal: &Wal, change: impl FnOnce() -> Dropped) {
    let old = read_all(wal).unwrap();
    let left = at_every_call(disk, 40, change);
    let new = read_all(wal).unwrap();
    assert_ne!(old, new);
    for (call, after) in left {
        let got = found(subject, &after);
        assert!(got == old || got == new, "{} {call}: {} records", subject.name, got.len());
    }
    for after in states(disk, 40) {
        assert_eq!(found(subject, &after), new);
    }
}

/// Appends continue while a truncation syncs. The records are synced before a mark vouches for the records.
#[test]
fn records_appended_during_a_truncation_survive() {
    // In tiny segments an append creates a segment, which waits for this thread's sync.
    let subject = &SEGMENTS;
    let disk = Sim::new();
    let other: Arc<Mutex<Option<Wal>>> = Arc::default();
    let storage = watched(Arc::new(disk.clone()), {
        let other = other.clone();
        move |seen| {
            let writer = match seen {
                Seen::Synced => other.lock().unwrap().take(),
                _ => None,
            };
            if let Some(wal) = writer {
                (5..7).for_each(|n| assert!(wal.append(&[n; 200]).is_ok()));
            }
        }
    });
    let options = Options::new().layout(subject.layout).storage(storage);
    let wal = options.durability(MANUAL.durability).open(subject.path, Mode::Append).unwrap();
    let synced: Vec<_> = (0..4).map(|n| wal.append(&[n; 200]).unwrap()).collect();
    wal.sync().unwrap();
    wal.append(&[4; 200]).unwrap();
    *other.lock().unwrap() = Some(wal.clone());
    let left = at_every_call(&disk, 60, || wal.truncate_before(synced[2]).unwrap());
    for (call, after) in left {
        let got = found(subject, &after);
        let kept = if got.first().is_some_and(|it| it.bytes == [0; 200]) { 4 } else { 2 };
        assert!(got.len() >= kept, "{call}: {got:?}");
    }
    assert!(other.lock().unwrap().is_none(), "it synced nothing");
    let new = read_all(&wal).unwrap();
    assert_eq!(new.len(), 5);
    for after in states(&disk, 60) {
        assert_eq!(found(subject, &after), new);
    }
}

/// The mark of a new head is on disk when the truncation returns, or the next opening reads up to an older mark.
#[test]
fn opening_after_a_prefix_truncation_scans_no_record() {
    for subject in [&SEGMENTS, &TINY] {
        let (disk, wal, lsns) = synced(subject, MANUAL, 9, 100);
        wal.truncate_before(lsns[3]).unwrap();
        for after in states(&disk, 40) {
            let wal = subject.wal(&after, MANUAL).unwrap();
            assert_eq!((wal.len().unwrap(), wal.recovery().scanned_records), (6, 0));
        }
    }
}

/// New records have the sizes of the dropped ones: stale bytes would fit. Some cuts lie exactly on a border.
// Promise: wal-truncate.
#[test]
fn truncated_records_never_return_under_equal_appends() {
    for subject in [&SINGLE, &SEGMENTS, &TINY] {
        let border = subject.border_bytes as usize;
        for len in [border - 8, border / 2 - 8, 30, 2 * border - 8] {
            let (disk, wal, lsns) = synced(subject, MANUAL, 6, len);
            for round in 0..3u8 {
                old_or_new(subject, &disk, &wal, || wal.truncate_after(lsns[2]).unwrap());
                let kept = read_all(&wal).unwrap();
                assert_eq!(wal.end().unwrap(), lsns[3]);
                let mut written = kept.clone();
                for n in 3..6u8 {
                    let bytes = vec![50 + round * 10 + n; len];
                    assert_eq!(wal.append(&bytes).unwrap(), lsns[usize::from(n)]);
                    written.push(subject.record(written.last(), 0, &bytes));
                    for after in states(&disk, 60) {
                        judge(&found(subject, &after), &written, kept.len(), false).unwrap();
                    }
                }
                wal.sync().unwrap();
                assert_eq!(found(subject, &worst(&disk)), written);
            }
        }
    }
}

/// A kill at any step of a truncation leaves no gap between segments: other programs end their scan at a gap.
// Promise: wal-truncate.
#[test]
fn a_killed_truncation_leaves_no_segment_gap() {
    for front in [true, false] {
        let (disk, wal, lsns) = synced(&TINY, MANUAL, 12, 50);
        disk.record();
        match front {
            true => wal.truncate_before(lsns[8]).unwrap(),
            false => wal.truncate_after(lsns[3]).unwrap(),
        };
        let mut fewer = 0;
        for moment in disk.recorded() {
            let indices = segments(&moment);
            assert!(indices.windows(2).all(|pair| pair[1] == pair[0] + 1), "{indices:?}");
            fewer += u64::from(indices.len() < 11);
        }
        assert!(fewer > 3);
    }
}

/// A crash undid the removal of segments at the front: the log ignores the segments, and the next writer removes the files.
// Promise: wal-truncate.
#[test]
fn restored_segments_below_the_head_are_removed() {
    for subject in [&SEGMENTS, &TINY] {
        let disk = Sim::new();
        let wal = subject.wal(&disk, ALWAYS).unwrap();
        let lsns: Vec<_> = (0..9).map(|n| wal.append(&[n; 300]).unwrap()).collect();
        let before = disk.kill();
        wal.truncate_before(lsns[6]).unwrap();
        let expected = read_all(&wal).unwrap();
        let (all, left) = (segments(&before), segments(&disk));
        let gone: Vec<_> = all.iter().filter(|index| !left.contains(index)).collect();
        assert!(gone.len() > 2);
        drop(wal);
        for pick in 1..(1u64 << gone.len().min(6)) {
            let disk = disk.kill();
            let back = gone.iter().enumerate().filter(|(at, _)| pick >> (at % 6) & 1 == 1);
            for (_, index) in back {
                let path = Path::new("/log").join(segment_name(**index));
                let bytes = read_file(&before, &path);
                disk.create_new(&path, 0o600).unwrap().write_at(&bytes, 0).unwrap();
            }
            assert_eq!(subject.peek(&disk).unwrap(), expected);
            let wal = subject.wal(&disk, MANUAL).unwrap();
            assert_eq!(read_all(&wal).unwrap(), expected);
            assert!(!wal.recovery().removed_segments.is_empty());
            assert_eq!(segments(&disk), left);
            assert_eq!(segments(&worst(&disk)), left);
        }
    }
}

// Promise: wal-acknowledged.
#[test]
fn acknowledged_recovery_keeps_exactly_the_acknowledged_records() {
    for (subject, kept) in [(&SINGLE, 3), (&SEGMENTS, 1), (&TINY, 1)] {
        let (disk, wal, lsns) = synced(subject, ACKNOWLEDGED, 4, 200);
        if kept == 1 {
            wal.truncate_before(lsns[2]).unwrap();
        }
        wal.truncate_after(lsns[2]).unwrap();
        let acknowledged = read_all(&wal).unwrap();
        assert_eq!(acknowledged.len(), kept);
        (50..53).for_each(|n| assert!(wal.append(&[n; 200]).is_ok()));
        for after in states(&disk, 100).into_iter().chain([disk.kill()]) {
            let wal = subject.wal(&after, ACKNOWLEDGED).unwrap();
            assert_eq!(read_all(&wal).unwrap(), acknowledged);
        }
    }
}

fn truncate(wal: &Wal, cut: Cut) -> Result<Dropped> {
    match cut {
        Cut::Before(lsn) => wal.truncate_before(lsn),
        Cut::BeforeAll(lsn) => wal.truncate_before_all(lsn),
        Cut::After(lsn) => wal.truncate_after(lsn),
        Cut::From(lsn) => wal.truncate_from(lsn),
    }
}

/// The records that `cut` drops: a reader and the writer predict them, and the truncation returns the same.
fn dropped(subject: &WalSubject, disk: &Sim, wal: &Wal, cut: Cut) -> Dropped {
    let before = read_all(wal).unwrap();
    let reader = subject.options(disk, MANUAL).open(subject.path, Mode::Read).unwrap();
    let would = reader.would_drop(cut).unwrap();
    assert_eq!(wal.would_drop(cut).unwrap(), would, "{cut:?}: a reader says the same");
    assert_eq!(read_all(wal).unwrap(), before, "{cut:?}: changed");
    let done = truncate(wal, cut).unwrap();
    assert_eq!(done, would, "{cut:?}");
    assert_eq!(done.records as usize, before.len() - read_all(wal).unwrap().len(), "{cut:?}");
    assert_eq!((done.head, done.end), (wal.head().unwrap(), wal.end().unwrap()), "{cut:?}");
    done
}

/// Nothing reported the records that a truncation drops, neither before nor after it.
#[test]
fn a_truncation_drops_what_was_said_beforehand() {
    for subject in [&SEGMENTS, &TINY, &SINGLE] {
        let (disk, wal, lsns) = synced(subject, MANUAL, 12, 50);
        let framed = lsns[1].0 - lsns[0].0;
        let mut cuts = vec![(Cut::After(lsns[10]), 1), (Cut::After(lsns[10]), 0)];
        cuts.extend([(Cut::From(lsns[9]), 2), (Cut::From(lsns[8]), 1)]);
        if subject.name != SINGLE.name {
            cuts.extend([(Cut::Before(lsns[2]), 2), (Cut::Before(lsns[2]), 0)]);
            cuts.extend([(Cut::BeforeAll(lsns[5]), 3), (Cut::Before(lsns[8]), 3)]);
        }
        for (cut, records) in cuts {
            let done = dropped(subject, &disk, &wal, cut);
            assert_eq!((done.records, done.bytes), (records, records * framed), "{cut:?}");
        }
    }
}

/// Records dropped for an unsynced record: a power cut could leave a log with its end before its head.
#[test]
fn what_a_truncation_refuses_is_refused_beforehand() {
    for subject in [&SEGMENTS, &TINY, &SINGLE] {
        let (_disk, wal, lsns) = synced(subject, MANUAL, 4, 50);
        wal.set_consumer("slow", lsns[1]).unwrap();
        let unsynced = [5, 6].map(|n| wal.append(&[n; 50]).unwrap());
        let written = read_all(&wal).unwrap();
        let prefix = match subject.name == SINGLE.name {
            true => ErrorKind::Unsupported,
            false => ErrorKind::InvalidArgument,
        };
        let refused = [
            (Cut::Before(lsns[2]), prefix),
            (Cut::BeforeAll(unsynced[1]), prefix),
            (Cut::After(unsynced[0]), ErrorKind::InvalidArgument),
            (Cut::From(unsynced[1]), ErrorKind::InvalidArgument),
            (Cut::From(wal.end().unwrap()), ErrorKind::OutOfRange),
            (Cut::After(Lsn(lsns[1].0 + 1)), ErrorKind::OutOfRange),
        ];
        for (cut, kind) in refused {
            let would = wal.would_drop(cut).unwrap_err();
            let done = truncate(&wal, cut).unwrap_err();
            assert_eq!((would.kind(), would.to_string()), (kind, done.to_string()), "{cut:?}");
            assert_eq!(done.durable(), Some(Durable::No), "{cut:?}: {done}");
            assert_eq!(read_all(&wal).unwrap(), written, "{cut:?}");
        }
    }
}
