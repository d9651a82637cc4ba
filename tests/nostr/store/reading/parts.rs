//! Parts of a store, read separately: together the same events as a walk over the store.

use deedbook::nostr::{Events, VerifyReport};

use crate::store::prelude::*;

/// Notes in several segments; every seventh has three pages.
fn made() -> Sim {
    closed(&notes(0..100))
}

/// The events of a walk with their places, and the skipped damage.
type Read = (Vec<(Id, Location)>, Vec<Damage>);

fn all_of(mut walk: Events) -> deedbook::Result<Read> {
    let mut found = Vec::new();
    while let Some(one) = walk.next_with(|at, event| (event.id, at))? {
        found.push(one);
    }
    Ok((found, walk.damage().to_vec()))
}

fn of_part(disk: &Sim, split: &Split) -> deedbook::Result<Read> {
    all_of(EventStore::read_split(split, &on(disk), Include::All, OnCorrupt::Skip)?)
}

#[test]
fn parts_together_match_the_store_around_damage() {
    type Change = fn(&mut Vec<u8>);
    let damage: [(&str, Change); 5] = [
        ("none", |_| {}),
        ("the first page of the segment", |b| b[PAGE..2 * PAGE].fill(0)),
        ("a run of pages", |b| b[7 * PAGE..19 * PAGE].fill(0)),
        ("a chunk of a longer event", |b| b[5 * PAGE + 4] ^= 1),
        ("every other page", |b| b.chunks_exact_mut(2 * PAGE).for_each(|two| two[PAGE + 70] ^= 1)),
    ];
    for (what, change) in damage {
        let disk = made();
        changed(&disk, FIRST, change);
        let store = reader(&disk);
        let expected = all_of(store.iter(Include::All, OnCorrupt::Skip).unwrap()).unwrap();
        assert_eq!(expected.1.is_empty(), what == "none");
        for pages in [1, 2, 3, 8, 39, 1000] {
            let splits = store.splits((pages * PAGE) as u64).unwrap();
            let parts = splits.iter().map(|part| of_part(&disk, part).unwrap());
            let (found, passed): (Vec<_>, Vec<_>) = parts.unzip();
            assert_eq!(
                (found.concat(), passed.concat()),
                expected,
                "{what}, parts of {pages} pages"
            );
            let segments = store.splits(u64::MAX).unwrap().len();
            assert!(pages < 1000 || splits.len() == segments, "{what}");
            assert!(pages > 8 || splits.len() > segments, "{what}, parts of {pages} pages");
        }
    }
}

/// Together, the reports of all parts equal the store's report, except for duplicate events.
#[test]
fn reports_of_parts_add_up_to_the_stores() {
    for (what, wrong, lost) in [("none", 0, 0), ("ids", 9, 0), ("pages", 0, 12), ("both", 9, 12)] {
        let (disk, store) = fresh();
        let mut events = notes(0..100);
        (0..wrong).for_each(|i| events[11 * i].created_at += 1);
        let lines: String = events.iter().map(|event| event.to_json() + "\n").collect();
        let unchecked = ImportOptions::new().check(Check::None);
        import(&store, &lines, &unchecked);
        store.close().unwrap();
        changed(&disk, FIRST, |bytes| bytes[7 * PAGE..(7 + lost) * PAGE].fill(0));
        let store = reader(&disk);
        let alone = store.verify(Check::Id).unwrap();
        let pages = store.verify(Check::None).unwrap();
        assert_eq!((alone.faults > pages.faults, pages.faults > 0), (wrong > 0, lost > 0));
        for part_pages in [1, 8, 1000] {
            let segments = store.segments().unwrap();
            let bytes = segments.iter().map(|(_, bytes)| bytes).sum();
            let mut together = VerifyReport::default();
            (together.segments, together.bytes) = (segments.len() as u64, bytes);
            let mut ids = Vec::new();
            for part in store.splits((part_pages * PAGE) as u64).unwrap() {
                let bytes = part.end - part.offset;
                let mut seen = (0, 0);
                let mut tell = |done, all| {
                    seen = (done, all);
                    Ok(())
                };
                let options = on(&disk);
                let found = EventStore::verify_part(&part, &options, Check::Id, &mut tell);
                assert_eq!(seen, (bytes, bytes), "{part:?}");
                let report = found.unwrap();
                assert_eq!((report.segments, report.bytes), (1, bytes), "{part:?}");
                together.live += report.live;
                together.deleted += report.deleted;
                together.replaced += report.replaced;
                together.recovered += report.recovered;
                together.lossy += report.lossy;
                together.faults += report.faults;
                together.first_faults.extend(report.first_faults);
                ids.extend(report.ids);
            }
            // Only a check of the whole store notes its result.
            together.noted = alone.noted;
            assert_eq!(together, alone, "{what}, parts of {part_pages} pages");
            let mut walk = store.iter(Include::Live, OnCorrupt::Skip).unwrap();
            for id in ids {
                let next = walk.next_with(|_, event| event.id).unwrap();
                assert_eq!(id.to_be_bytes()[..], next.unwrap().0[..8]);
            }
            assert_eq!(walk.next_with(|_, _| ()).unwrap(), None);
        }
    }
}

#[test]
fn parts_refuse_another_segment_and_report_lost_pages() {
    let disk = made();
    let splits = reader(&disk).splits(8 * PAGE as u64).unwrap();
    let second = &splits[1];
    // Appends and damage do not make it another segment.
    writer(&disk).append_many(&notes(100..103)).unwrap();
    let at = second.offset as usize;
    changed(&disk, FIRST, |bytes| bytes[at + 60] ^= 1);
    let (_, passed) = of_part(&disk, second).unwrap();
    assert_eq!(passed[0].offset, second.offset);
    changed(&disk, FIRST, |bytes| bytes.truncate(at + PAGE));
    let (found, passed) = of_part(&disk, second).unwrap();
    assert!(found.is_empty(), "{found:?}");
    let last = passed.last().unwrap();
    // The lost pages and the damaged page before them form one stretch.
    assert_eq!((last.offset as usize, last.end), (at, second.end));
    let raised = EventStore::read_split(second, &on(&disk), Include::All, OnCorrupt::Raise);
    assert_eq!(raised.unwrap().next().unwrap().unwrap_err().kind(), ErrorKind::Corrupt);
    // A segment with another event at the place, or from another time.
    let disk = made();
    let other = closed(&notes(1000..1100));
    write(&disk, FIRST, &read(&other, FIRST));
    assert_eq!(of_part(&disk, second).unwrap_err().kind(), ErrorKind::NotALog);
    let disk = made();
    changed(&disk, FIRST, |bytes| bytes[8] ^= 1);
    assert_eq!(of_part(&disk, second).unwrap_err().kind(), ErrorKind::NotALog);
    remove(&disk, FIRST);
    assert_eq!(of_part(&disk, second).unwrap_err().kind(), ErrorKind::Missing);
}
