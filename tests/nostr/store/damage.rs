//! Damaged files of a whole store: what opening, walks and verifying say of them, and what is there.

use std::path::Path;

use deedbook::nostr::{Check, Event, EventStore, Include, Location, Options};
use deedbook::storage::Storage;
use deedbook::storage::sim::Sim;
use deedbook::{Durability, Error, ErrorKind, Mode, OnCorrupt, Result};

use crate::store::rescue::{self, ACCEPT, DRY, PLAIN, disk_remove, logs, mended, world};
use crate::support::store::events::{all, changed, note, notes, read};
use crate::support::store::world::{DIR, options};

const PAGE: usize = 4096;
const SEGMENT: &str = "/events/data/segments/data.0.seg";
/// Where the header of a segment says what is free.
const NEXT_FREE_AT: usize = 24;

fn on(disk: &Sim) -> Options {
    options(disk, Durability::Manual).segment_bytes(40 * PAGE as u64)
}

fn open(disk: &Sim) -> Result<EventStore> {
    on(disk).open(DIR, Mode::Append)
}

/// Notes 0 to 4, of which 3 has pages 4 to 6; durable, and the log is empty.
fn five() -> Sim {
    let disk = Sim::new();
    let store = open(&disk).unwrap();
    store.append_many(&notes(0..5)).unwrap();
    store.close().unwrap();
    disk
}

/// A damaged segment costs the event that is damaged, and it is named.
#[test]
fn damaged_pages_are_named_by_walks_and_verify_and_stay_where_they_are() {
    type Change = fn(&mut Vec<u8>);
    let cases: [(&str, Change, u32, usize, usize, &str); 6] = [
        (
            "a lost page",
            |b| b[2 * PAGE..3 * PAGE].fill(0),
            1,
            2,
            3,
            "unwritten pages 1, expected before the last record 0",
        ),
        (
            "a lost page of a longer event",
            |b| b[5 * PAGE..6 * PAGE].fill(0),
            3,
            4,
            7,
            "magic of a continuation page 0, expected 1129270868",
        ),
        (
            "a damaged chunk length",
            |b| b[5 * PAGE + 4] ^= 1,
            3,
            4,
            7,
            "chunk_len 3834, left of the record 4090",
        ),
        (
            "the first page of a longer event lost",
            |b| b[4 * PAGE..5 * PAGE].fill(0),
            3,
            4,
            7,
            "unwritten pages 1, expected before the last record 0",
        ),
        ("a flipped bit", |b| b[PAGE + 60] ^= 4, 0, 1, 2, "checksum"),
        ("a length beyond the limit", |b| b[3 * PAGE] = 0x40, 2, 3, 4, "record_len"),
    ];
    for (what, change, lost, from, to, reason) in cases {
        let disk = five();
        changed(&disk, SEGMENT, change);
        let bytes = read(&disk, SEGMENT);
        let mut rest = notes(0..5);
        let lost = rest.remove(lost as usize);
        for (mode, round) in [(Mode::Read, 0), (Mode::Append, 1), (Mode::Append, 2)] {
            let what = format!("{what}, round {round}");
            let store = on(&disk).open(DIR, mode).unwrap();
            assert_eq!(store.opening().saved.len(), 0, "{what}");
            for reverse in [false, true] {
                let walk = |on_corrupt| match reverse {
                    false => store.iter(Include::All, on_corrupt).unwrap(),
                    true => store.iter_reverse(Include::All, on_corrupt).unwrap(),
                };
                let error = walk(OnCorrupt::Raise).find_map(Result::err).expect(&what);
                named(&error, from, reason, &what);
                #[cfg(feature = "arrow")]
                named(
                    &crate::support::store::columns::error_after_rows(|| walk(OnCorrupt::Raise)),
                    from,
                    reason,
                    &what,
                );
                let mut skips = walk(OnCorrupt::Skip);
                let mut found: Vec<Event> = skips.by_ref().map(|f| f.unwrap().event).collect();
                found.sort_by_key(|event| event.created_at);
                assert_eq!(found, rest, "{what}");
                let [(0, damage)] = skips.damage() else { panic!("{what}: {:?}", skips.damage()) };
                assert_eq!((damage.offset as usize, damage.end as usize), (from * PAGE, to * PAGE));
            }
            let report = store.verify(Check::Id).unwrap();
            assert_eq!((report.faults, report.live), (1, 4), "{what}");
            forget_note(&disk);
            let fault = &report.first_faults[0];
            assert_eq!(fault.location.offset as usize, from * PAGE, "{what}");
            assert_eq!(fault.end as usize, to * PAGE, "{what}");
            assert!(fault.reason.contains(reason), "{what}: {}", fault.reason);
            let place = Location { segment: 0, offset: (from * PAGE) as u32 };
            named(&store.read(place).unwrap_err(), from, "", &what);
            if mode == Mode::Append {
                for event in &rest {
                    assert_eq!(store.find(&event.id).unwrap().unwrap().event, *event, "{what}");
                }
                assert_eq!(store.find(&lost.id).unwrap(), None, "{what}");
                // Nothing is copied: the damaged one would be lost.
                let first = store.find(&rest[0].id).unwrap().unwrap().location;
                store.set_flags(first, deedbook::nostr::Flags::DELETED).unwrap();
                named(&store.compact(0.0, false).unwrap_err(), from, reason, &what);
                store.set_flags(first, Default::default()).unwrap();
            }
        }
        assert_eq!(read(&disk, SEGMENT)[PAGE..], bytes[PAGE..], "{what}: it was changed");
    }
}

/// Forget what a check noted, so that the store opens for writing once more.
fn forget_note(disk: &Sim) {
    disk.remove(&Path::new(DIR).join(".deedbook/damage")).unwrap();
}

fn named(error: &Error, page: usize, reason: &str, what: &str) {
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}");
    assert_eq!(error.offset(), Some((page * PAGE) as u64), "{what}: {error}");
    assert_eq!(error.path(), Some(Path::new(SEGMENT)), "{what}: {error}");
    assert!(error.message().contains(reason), "{what}: {error}");
}

/// The reference leaves the last page as long as its record.
#[test]
fn a_last_page_that_is_not_padded_is_read_and_appended_to() {
    let disk = five();
    changed(&disk, SEGMENT, |bytes| {
        let used = bytes.iter().rposition(|&byte| byte != 0).unwrap() + 1;
        bytes.truncate(used);
    });
    let store = open(&disk).unwrap();
    assert_eq!(all(&store), notes(0..5));
    assert!(store.verify(Check::Id).unwrap().is_ok());
    store.append(&note(5)).unwrap();
    store.close().unwrap();
    assert_eq!(all(&open(&disk).unwrap()), notes(0..6));
}

/// Notes 0 to 4 before the last checkpoint, 5 to 8 after it, by a process that died.
fn nine() -> Sim {
    let disk = five();
    let store = open(&disk).unwrap();
    for note in notes(5..9) {
        store.append(&note).unwrap();
    }
    store.commit().unwrap();
    disk.kill()
}

/// Replaying went by the header alone, whose counters are hints: where that named a later byte, the
/// events of the log were appended a second time; a byte within an event cut that event.
#[test]
fn a_wrong_or_old_header_neither_doubles_nor_cuts_events() {
    let end = read(&nine(), SEGMENT).len() as u32;
    let page = PAGE as u32;
    let ends = [0, 1, page, 2 * page, 3 * page + 7, 5 * page, 6 * page, 7 * page, 9 * page, end];
    for next_free in ends.into_iter().chain([end + page, u32::MAX]) {
        for lost in [None, Some(8), Some(9)] {
            let disk = nine();
            changed(&disk, SEGMENT, |bytes| {
                bytes[NEXT_FREE_AT..NEXT_FREE_AT + 4].copy_from_slice(&next_free.to_be_bytes());
                if let Some(lost) = lost {
                    bytes[lost * PAGE..(lost + 1) * PAGE].fill(0);
                }
            });
            let store = open(&disk).unwrap();
            assert_eq!(all(&store), notes(0..9), "{next_free}, page {lost:?} lost");
            let opening = store.opening();
            assert_eq!(opening.replayed, 4, "{next_free}");
            let saved = usize::from(lost.is_some());
            assert_eq!(opening.saved.len(), saved, "{next_free}, page {lost:?} lost");
        }
    }
}

/// The same where an old event is damaged: what follows it is not cut, whatever the hints say.
#[test]
fn old_damage_stays_where_it_is_when_the_log_is_replayed() {
    for manifest in [true, false] {
        for lost in [None, Some(7), Some(9)] {
            let disk = nine();
            changed(&disk, SEGMENT, |bytes| bytes[2 * PAGE + 60] ^= 1);
            if let Some(lost) = lost {
                changed(&disk, SEGMENT, |b| b[lost * PAGE..(lost + 1) * PAGE].fill(0));
            }
            if !manifest {
                disk.remove(Path::new("/events/manifest.json")).unwrap();
            }
            let store = open(&disk).unwrap();
            let mut walk = store.iter(Include::All, OnCorrupt::Skip).unwrap();
            let found: Vec<Event> = walk.by_ref().map(|found| found.unwrap().event).collect();
            let mut rest = notes(0..9);
            rest.remove(1);
            if lost == Some(7) {
                // Note 4 is old as well.
                rest.remove(3);
            }
            let what = format!("manifest {manifest}, page {lost:?} lost");
            assert_eq!(found, rest, "{what}");
            assert_eq!(walk.damage().len(), 1 + usize::from(lost == Some(7)), "{what}");
        }
    }
}

/// What the segment lost comes back from the log as far as the log is whole, and no further.
#[test]
fn a_torn_log_gives_what_it_has_and_a_flipped_one_is_refused() {
    let names = nine().list(Path::new("/events/wal")).unwrap();
    let names = names.iter().filter_map(|name| name.to_str());
    // That without a number is the first one.
    let newest = names.filter(|name| name.ends_with("log")).max_by_key(|name| name.len());
    let wal = &format!("/events/wal/{}", newest.unwrap());
    let whole = read(&nine(), wal);
    let used = whole.iter().rposition(|&byte| byte != 0).unwrap() + 1;
    let mut counts = [0; 5];
    for cut in (24..=used).step_by(13).chain([used - 1, used]) {
        let disk = nine();
        changed(&disk, wal, |bytes| bytes[cut..].fill(0));
        // Acknowledged by a commit: its mark says how much was durable.
        let refused = match open(&disk) {
            Ok(_) if cut < used => panic!("cut at {cut}: durable entries are lost silently"),
            Ok(store) => {
                assert_eq!(all(&store), notes(0..9));
                continue;
            }
            Err(error) => error,
        };
        assert!(
            matches!(refused.kind(), ErrorKind::LostRecords | ErrorKind::Corrupt),
            "cut at {cut}: {refused}"
        );
        assert!(refused.path().is_some(), "{refused}");
        counts[0] += 1;
    }
    assert!(counts[0] > 20);
    for at in (24..used).step_by(17) {
        let disk = nine();
        changed(&disk, wal, |bytes| bytes[at] ^= 0x10);
        match open(&disk) {
            Ok(store) => panic!("flipped at {at}: {:?}", store.opening()),
            Err(error) => {
                let expected = [ErrorKind::Corrupt, ErrorKind::LostRecords];
                assert!(expected.contains(&error.kind()), "flipped at {at}: {error}");
                assert!(error.path().is_some_and(|path| path.starts_with("/events/wal")));
            }
        }
        // Who only reads needs no log.
        assert_eq!(all(&on(&disk).open(DIR, Mode::Read).unwrap()), notes(0..9), "flipped at {at}");
    }
}

/// `verify` said ok of a store whose write-ahead log was damaged, and opening for writing refused it.
#[test]
fn verify_names_the_damage_in_the_log_for_which_opening_refuses_a_store() {
    let (whole, events) = world();
    let verified = |disk: &Sim| {
        let reader = rescue::on(disk).open(DIR, Mode::Read).unwrap();
        assert_eq!(rescue::events(&reader).len(), events.len());
        let report = reader.verify(Check::Id).unwrap();
        assert_eq!(report.log_damages, reader.verify_log().unwrap());
        assert_eq!(report.faults, report.log_damages.len() as u64, "{report:?}");
        report.log_damages
    };
    assert_eq!(verified(&whole), []);
    let is_refused = |disk: &Sim| rescue::on(&disk.kill()).open(DIR, Mode::Append).is_err();
    let mut refused = 0;
    for log in logs(&whole) {
        let used = read(&whole, &log).iter().rposition(|&byte| byte != 0).unwrap();
        for at in (0..used).step_by(7) {
            let disk = whole.kill();
            changed(&disk, &log, |bytes| bytes[at] ^= 4);
            let damages = verified(&disk);
            assert_eq!(damages, mended(&disk, DRY).unwrap().damages, "{log}, byte {at}");
            if is_refused(&disk) {
                refused += 1;
                assert_eq!(damages.first().unwrap().path, Path::new(&log), "byte {at}");
            }
        }
        // A cut end: of the newest file it may be a torn one.
        for left in [used / 2, 10] {
            let disk = whole.kill();
            changed(&disk, &log, |bytes| bytes.truncate(left));
            assert_eq!(verified(&disk).is_empty(), !is_refused(&disk), "{log}, {left} bytes left");
        }
        // And such an end hides no file that is missing.
        if let Some(newest) = logs(&whole).last().filter(|newest| **newest != log) {
            let disk = whole.kill();
            disk_remove(&disk, &log);
            changed(&disk, newest, |bytes| {
                let end = bytes.iter().rposition(|&byte| byte != 0).unwrap() + 1;
                bytes.truncate(end);
                bytes.extend([0xff; 20]);
            });
            assert!(is_refused(&disk) && verified(&disk)[0].reason.contains("missing"), "{log}");
            assert!(mended(&disk, ACCEPT).unwrap().mended && !is_refused(&disk), "{log}");
            assert_eq!(rescue::events(&rescue::open(&disk)), events, "{log} removed");
        }
        let disk = whole.kill();
        disk_remove(&disk, &log);
        let damages = verified(&disk);
        assert_eq!(damages, mended(&disk, DRY).unwrap().damages, "{log} removed");
        assert!(is_refused(&disk) && damages[0].reason.contains("missing"), "{log}: {damages:?}");
        assert!(!mended(&disk, PLAIN).unwrap().mended, "{log} removed");
        // The segments have all.
        let report = mended(&disk, ACCEPT).unwrap();
        assert!(report.mended && report.is_loss && !report.was_loss, "{log}: {report:?}");
        assert_eq!(verified(&disk), []);
        assert_eq!(rescue::events(&rescue::open(&disk)), events, "{log} removed");
    }
    assert!(refused > 100, "{refused}");
}
