//! Damaged files of a whole store: the reports of opening, walks and verifying, and the intact events.

use crate::store::prelude::*;

const NEXT_FREE_AT: usize = 24;

/// Notes 0 to 4, all durable, with an empty log. Note 3 has pages 4 to 6.
fn five() -> Sim {
    closed(&notes(0..5))
}

/// Damage in a segment costs only the damaged event, and every reader reports the damage.
#[test]
fn walks_and_verify_report_damaged_pages_in_place() {
    type Change = fn(&mut Vec<u8>);
    // The lost event, and the damaged pages.
    let cases: [(&str, Change, usize, Range<usize>); 6] = [
        ("a lost page", |b| b[2 * PAGE..3 * PAGE].fill(0), 1, 2..3),
        ("a lost page of a longer event", |b| b[5 * PAGE..6 * PAGE].fill(0), 3, 4..7),
        ("a damaged chunk length", |b| b[5 * PAGE + 4] ^= 1, 3, 4..7),
        ("the first page of a longer event lost", |b| b[4 * PAGE..5 * PAGE].fill(0), 3, 4..7),
        ("a flipped bit", |b| b[PAGE + 60] ^= 4, 0, 1..2),
        ("a length beyond the limit", |b| b[3 * PAGE] = 0x40, 2, 3..4),
    ];
    for (what, change, lost, pages) in cases {
        let disk = five();
        changed(&disk, FIRST, change);
        let bytes = read(&disk, FIRST);
        let mut rest = notes(0..5);
        let lost = rest.remove(lost);
        let (from, to) = (pages.start * PAGE, pages.end * PAGE);
        for (mode, round) in [(Mode::Read, 0), (Mode::Append, 1), (Mode::Append, 2)] {
            let what = format!("{what}, round {round}");
            let store = on(&disk).open(DIR, mode).unwrap();
            assert_eq!(store.opening().saved.len(), 0, "{what}");
            let report = store.verify(Check::Id).unwrap();
            assert_eq!((report.faults, report.live), (1, 4), "{what}");
            // Otherwise the store could not open for writing again.
            remove(&disk, "/events/.deedbook/damage");
            let fault = &report.first_faults[0];
            assert_eq!((fault.offset as usize, fault.end as usize), (from, to), "{what}");
            let named = |error: &Error, reason: &str| {
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}");
                assert_eq!(error.offset(), Some(from as u64), "{what}: {error}");
                assert_eq!(error.path(), Some(Path::new(FIRST)), "{what}: {error}");
                assert!(error.message().contains(reason), "{what}: {error}");
            };
            for reverse in [false, true] {
                let walk = |on_corrupt| match reverse {
                    false => store.iter(Include::All, on_corrupt).unwrap(),
                    true => store.iter_reverse(Include::All, on_corrupt).unwrap(),
                };
                let error = walk(OnCorrupt::Raise).find_map(Result::err).expect(&what);
                named(&error, &fault.reason);
                #[cfg(feature = "arrow")]
                named(
                    &crate::support::store::columns::error_after_rows(|| walk(OnCorrupt::Raise)),
                    &fault.reason,
                );
                let mut skips = walk(OnCorrupt::Skip);
                let mut found: Vec<Event> = skips.by_ref().map(|f| f.unwrap().event).collect();
                found.sort_by_key(|event| event.created_at);
                assert_eq!(found, rest, "{what}");
                let [damage] = skips.damage() else { panic!("{what}: {:?}", skips.damage()) };
                let of_first = (damage.segment, damage.offset as usize, damage.end as usize);
                assert_eq!(of_first, (Some(0), from, to), "{what}");
            }
            named(&store.read(location(fault)).unwrap_err(), "");
            if mode == Mode::Append {
                for event in &rest {
                    assert_eq!(store.find(&event.id).unwrap().unwrap().event, *event, "{what}");
                }
                assert_eq!(store.find(&lost.id).unwrap(), None, "{what}");
                // A compaction copies nothing, because it would lose the damaged event.
                let first = place(&store, &rest[0]);
                store.set_flags(first, Flags::DELETED).unwrap();
                named(&store.compact(0.0, false).unwrap_err(), &fault.reason);
                store.set_flags(first, Default::default()).unwrap();
            }
        }
        assert_eq!(read(&disk, FIRST)[PAGE..], bytes[PAGE..], "{what}: it was changed");
    }
}

/// Notes 0 to 4 before the last checkpoint, 5 to 8 after it, by a killed process.
fn nine() -> Sim {
    let disk = five();
    let store = writer(&disk);
    one_by_one(&store, &notes(5..9));
    store.sync().unwrap();
    disk.kill()
}

/// Replay trusted the header alone, whose counters are hints. If the header named a later byte, opening appended the
/// log's events twice. If the header named a byte within an event, opening cut the event.
#[test]
fn wrong_header_neither_doubles_nor_cuts_events() {
    let end = read(&nine(), FIRST).len() as u32;
    let page = PAGE as u32;
    let ends = [0, 1, page, 2 * page, 3 * page + 7, 5 * page, 6 * page, 7 * page, 9 * page, end];
    for next_free in ends.into_iter().chain([end + page, u32::MAX]) {
        for lost in [None, Some(8), Some(9)] {
            let disk = nine();
            changed(&disk, FIRST, |bytes| {
                bytes[NEXT_FREE_AT..NEXT_FREE_AT + 4].copy_from_slice(&next_free.to_be_bytes());
            });
            if let Some(lost) = lost {
                zero_pages(&disk, lost..lost + 1);
            }
            let store = writer(&disk);
            assert_eq!(all(&store), notes(0..9), "{next_free}, page {lost:?} lost");
            let opening = store.opening();
            assert_eq!(opening.replayed, 4, "{next_free}");
            let saved = usize::from(lost.is_some());
            assert_eq!(opening.saved.len(), saved, "{next_free}, page {lost:?} lost");
        }
    }
}

/// The same with an old damaged event: opening never cuts the events after it, whatever the hints say.
#[test]
fn log_replay_leaves_old_damage_in_place() {
    for manifest in [true, false] {
        for lost in [None, Some(7), Some(9)] {
            let disk = nine();
            changed(&disk, FIRST, |bytes| bytes[2 * PAGE + 60] ^= 1);
            if let Some(lost) = lost {
                zero_pages(&disk, lost..lost + 1);
            }
            if !manifest {
                remove(&disk, MANIFEST);
            }
            let store = writer(&disk);
            let (found, damage) = skipping(&store);
            let mut rest = notes(0..9);
            rest.remove(1);
            if lost == Some(7) {
                // Note 4 is old as well.
                rest.remove(3);
            }
            let what = format!("manifest {manifest}, page {lost:?} lost");
            assert_eq!(found, rest, "{what}");
            assert_eq!(damage.len(), 1 + usize::from(lost == Some(7)), "{what}");
        }
    }
}

/// The events that the segment lost come back from the log up to the end of its intact part.
#[test]
fn torn_log_restores_events_and_flipped_is_refused() {
    let whole = nine();
    let wal = &newest_log(&whole);
    let used = last_byte(&read(&whole, wal)) + 1;
    let is_named = |disk: &Sim, what: &str| {
        let error = on(disk).open(DIR, Mode::Append).expect_err(what);
        let expected = [ErrorKind::Corrupt, ErrorKind::LostRecords];
        assert!(expected.contains(&error.kind()), "{what}: {error}");
        assert!(
            error.path().is_some_and(|path| path.starts_with("/events/wal")),
            "{what}: {error}"
        );
    };
    for cut in (24..=used).step_by(13).chain([used - 1, used]) {
        let disk = whole.kill();
        changed(&disk, wal, |bytes| bytes[cut..].fill(0));
        // Acknowledged by a commit: the log's mark has the durable length.
        match cut < used {
            true => is_named(&disk, &format!("cut at {cut}")),
            false => assert_eq!(all(&writer(&disk)), notes(0..9)),
        }
    }
    for at in (24..used).step_by(17) {
        let disk = whole.kill();
        changed(&disk, wal, |bytes| bytes[at] ^= 0x10);
        is_named(&disk, &format!("flipped at {at}"));
        // A reader needs no log.
        assert_eq!(all(&reader(&disk)), notes(0..9), "flipped at {at}");
    }
}

/// `verify` reported no fault in a damaged write-ahead log, and opening for writing refused the store.
#[test]
fn verify_reports_log_damage_that_refuses_writers() {
    let (whole, stored) = world();
    let verified = |disk: &Sim| {
        let reader = reader(disk);
        assert_eq!(events(&reader).len(), stored.len());
        let report = reader.verify(Check::Id).unwrap();
        assert_eq!(report.log_damages, reader.verify_log().unwrap());
        assert_eq!(report.faults, report.log_damages.len() as u64, "{report:?}");
        report.log_damages
    };
    assert_eq!(verified(&whole), []);
    let is_refused = |disk: &Sim| on(&disk.kill()).open(DIR, Mode::Append).is_err();
    let mut refused = 0;
    for (what, disk) in flipped_logs(&whole, 7) {
        let damages = verified(&disk);
        assert_eq!(damages, mended(&disk, DRY).unwrap().damages, "{what}");
        if is_refused(&disk) {
            refused += 1;
            assert!(
                what.starts_with(&format!("{},", damages[0].path.as_ref().unwrap().display())),
                "{what}"
            );
        }
    }
    for log in logs(&whole) {
        let used = last_byte(&read(&whole, &log));
        // A cut end: the end of the newest file may be torn.
        for left in [used / 2, 10] {
            let disk = whole.kill();
            changed(&disk, &log, |bytes| bytes.truncate(left));
            assert_eq!(verified(&disk).is_empty(), !is_refused(&disk), "{log}, {left} bytes left");
        }
        // A torn end does not hide a missing file.
        if let Some(newest) = logs(&whole).last().filter(|newest| **newest != log) {
            let disk = whole.kill();
            remove(&disk, &log);
            changed(&disk, newest, |bytes| {
                bytes.truncate(last_byte(bytes) + 1);
                bytes.extend([0xff; 20]);
            });
            assert!(is_refused(&disk) && verified(&disk)[0].reason.contains("missing"), "{log}");
            assert!(mended(&disk, ACCEPT).unwrap().mended && !is_refused(&disk), "{log}");
            assert_eq!(events(&writer(&disk)), stored, "{log} removed");
        }
        let disk = whole.kill();
        remove(&disk, &log);
        let damages = verified(&disk);
        assert_eq!(damages, mended(&disk, DRY).unwrap().damages, "{log} removed");
        assert!(is_refused(&disk) && damages[0].reason.contains("missing"), "{log}: {damages:?}");
        assert!(!mended(&disk, PLAIN).unwrap().mended, "{log} removed");
        // The segments have every event.
        let report = mended(&disk, ACCEPT).unwrap();
        assert!(
            report.mended && report.loss.is_some() && report.earlier_loss.is_none(),
            "{log}: {report:?}"
        );
        assert_eq!(verified(&disk), []);
        assert_eq!(events(&writer(&disk)), stored, "{log} removed");
    }
    assert!(refused > 100, "{refused}");
}
