//! Work over all events reports its progress, whose error ends the work. Reindexing restores the index.

use deedbook::nostr::{Index, VerifyReport};

use crate::store::disks;
use crate::store::prelude::*;

fn ended<T>() -> Result<T> {
    Err(Error::new(ErrorKind::InvalidArgument, "ended"))
}

fn is_ended<T: std::fmt::Debug>(result: Result<T>) {
    assert_eq!(result.unwrap_err().message(), "ended");
}

fn come_to_their_end(reports: &[(u64, u64)], total: u64) {
    assert!(reports.windows(2).all(|pair| pair[0].0 < pair[1].0), "{reports:?}");
    assert_eq!(reports.last(), Some(&(total, total)));
}

fn asked(store: &EventStore) -> Vec<Event> {
    found(store, r##"{"#t": ["note"]}"##)
}

#[test]
fn progress_is_reports_and_ends_the_work() {
    let (_, options) = in_memory();
    // Much smaller segments would report no progress on the way.
    let options = options.segment_bytes(64 << 20);
    let store = open(&options);
    store.append_many(&notes(0..2500)).unwrap();
    store.checkpoint().unwrap();
    let mut reports = Vec::new();
    let mut tell = |done, total| {
        reports.push((done, total));
        Ok(())
    };
    let report = store.verify_with(Check::Id, &mut tell).unwrap();
    assert_eq!(report, store.verify(Check::Id).unwrap());
    assert!(reports.len() > 5);
    come_to_their_end(&reports, report.bytes);
    is_ended(store.verify_with(Check::None, &mut |_, _| ended()));

    let mut counts = Vec::new();
    let mut count = |events| {
        counts.push(events);
        Ok(())
    };
    assert_eq!(store.census_with(OnCorrupt::Raise, &mut count).unwrap(), store.census().unwrap());
    assert_eq!(counts, [1024, 2048]);
    is_ended(store.census_with(OnCorrupt::Raise, &mut |_| ended()));

    let reader = options.open("/events", Mode::Read).unwrap();
    let filters = Filter::parse_any("{}").unwrap();
    is_ended(reader.query_with(&filters, OnCorrupt::Raise, &mut ended));
    assert_eq!(asked(&reader), asked(&store));
}

// Promise: store-index.
#[test]
fn an_index_made_again_has_everything() {
    let directory = tempfile::tempdir().unwrap();
    for on_disk in [false, true] {
        let (_, mut options) = in_memory();
        let path = directory.path().join(on_disk.to_string());
        if on_disk {
            options = Options::new().small(true);
        }
        let store = options.open(&path, Mode::Create).unwrap();
        store.append_many(&notes(0..300)).unwrap();
        let before = asked(&store);
        assert_eq!(before.len(), 300);
        assert_eq!(store.reindex().unwrap(), 300);
        assert_eq!(asked(&store), before);
        store.append(&note(300)).unwrap();
        assert_eq!(asked(&store).len(), 301);
        store.close().unwrap();
        refused(store.reindex(), ErrorKind::Closed, "");
        let reader = options.open(&path, Mode::Read).unwrap();
        refused(reader.reindex(), ErrorKind::ReadOnly, "");
    }
}

/// An interrupted reindex left an index without its covered position. After a power cut, the index named lost events.
#[test]
fn partial_index_reports_its_covered_position() {
    let (_place, path) = on_real_disk();
    let options = Options::new().small(true);
    let store = options.open(&path, Mode::Create).unwrap();
    let outcomes = store.append_many(&notes(0..1000)).unwrap();
    is_ended(store.reindex_with(&mut |_, _| ended()));
    drop(store);
    let index = Index::open(&path.join(".deedbook/events")).unwrap();
    let covered = index.covered().unwrap().expect("it says what it covers");
    let end = u32::from_be_bytes(covered[12..16].try_into().unwrap());
    let mut known = 0;
    for (number, outcome) in outcomes.into_iter().enumerate() {
        let Outcome::Stored(at) = outcome else { panic!("{outcome:?}") };
        let found = index.location(&note(number as u32).id).unwrap();
        assert_eq!(found, (at.offset < end).then_some(at), "event {number}");
        known += usize::from(found.is_some());
    }
    assert!((100..900).contains(&known), "{known}");
    drop(index);
    assert_eq!(asked(&options.open(&path, Mode::Append).unwrap()).len(), 1000);
}

/// Cores check parts in parallel: the report equals the report of sequential walks.
#[test]
fn parallel_verify_reports_like_sequential_walks() {
    let (memory, options) = in_memory();
    let store = open(&options);
    for part in notes(0..2500).chunks(25) {
        store.append_many(part).unwrap();
    }
    let another = place(&store, &note(2200));
    let mut report = store.verify(Check::Signature).unwrap();
    // No signature is right, and the report names the first 1,000.
    assert_eq!((report.live, report.faults, report.first_faults.len()), (2500, 2500, 1000));
    assert!(report.first_faults.is_sorted_by_key(location));
    store.close().unwrap();
    let segment =
        |number: u32| memory.open(Path::new(&disks::segment(number)), Access::Write).unwrap();
    for (number, page) in [(0, 3), (0, 4), (7, 1), (20, 30), (33, 11), (another.segment, 0)] {
        let at = if page == 0 { another.offset.into() } else { page * 4096 };
        assert_eq!(segment(number).write_at(&[0xFF; 4096], at).unwrap(), 4096);
    }
    let reader = options.open("/events", Mode::Read).unwrap();
    for check in [Check::None, Check::Id, Check::Signature] {
        report = reader.verify(check).unwrap();
        let mut expected = VerifyReport::default();
        for part in reader.splits(u64::MAX).unwrap() {
            let found = EventStore::verify_part(&part, &options, check, &mut |_, _| Ok(()));
            let found = found.unwrap();
            expected.live += found.live;
            expected.faults += found.faults;
            expected.first_faults.extend(found.first_faults);
        }
        expected.first_faults.truncate(1000);
        assert_eq!((report.live, report.faults), (expected.live, expected.faults));
        assert!(report.faults >= 5 && report.live < 2500, "{report:?}");
        assert_eq!(report.first_faults, expected.first_faults);
        assert!(report.first_faults.is_sorted_by_key(location));
    }
}

#[test]
fn progress_callback_ends_compaction_and_reindex() {
    let (options, store) = memory_store();
    for part in notes(0..1500).chunks(25) {
        store.append_many(part).unwrap();
    }
    let live = |store: &EventStore| asked(store).len();
    for number in (0..1500).step_by(2) {
        delete(&store, &note(number));
    }
    let found = store.fragmentation(&mut |_, _| Ok(())).unwrap();
    assert_eq!(found.iter().map(|share| share.deleted).sum::<u64>(), 750);
    assert!(found.iter().all(|share| share.share() > 0.3), "{found:?}");
    is_ended(store.fragmentation(&mut |_, _| ended()));
    assert!(store.compaction_due().unwrap());

    // Whichever call ends the compaction, the live events stay, and the next compaction goes on.
    let mut reports = Vec::new();
    for fail_at in 1.. {
        reports.clear();
        let mut tell = |done, total| {
            reports.push((done, total));
            if reports.len() == fail_at { ended() } else { Ok(()) }
        };
        match store.compact_with(None, false, &mut tell) {
            Err(error) => assert_eq!(error.message(), "ended"),
            // The previous error came from the last call, after the work was done.
            Ok(report) => {
                assert!(fail_at > 3 && report.segments.is_empty(), "{fail_at}: {report:?}");
                break;
            }
        }
        assert_eq!(live(&store), 750);
    }
    come_to_their_end(&reports, reports.last().unwrap().1);
    assert!(!store.compaction_due().unwrap());
    assert_eq!(store.compact(None, false).unwrap().segments, [0u32; 0]);
    assert_eq!(live(&store), 750);

    reports.clear();
    let mut tell = |done, total| {
        reports.push((done, total));
        Ok(())
    };
    assert_eq!(store.reindex_with(&mut tell).unwrap(), 750);
    assert!(reports.len() > 2);
    come_to_their_end(&reports, reports[0].1);
    is_ended(store.reindex_with(&mut |_, _| ended()));
    assert_eq!(store.append(&note(1)).unwrap_err().kind(), ErrorKind::Poisoned);
    drop(store);
    assert_eq!(live(&open(&options)), 750);
}

/// On the real disk: in memory there are no maps.
#[test]
fn mapped_reads_return_the_same_as_plain() {
    let (_place, path) = on_real_disk();
    let options = Options::new().small(true).mapped_reads(true).segment_bytes(40 * 4096);
    let plain = options.clone().mapped_reads(false);
    let store = options.open(&path, Mode::Create).unwrap();
    let all = notes(0..300);
    for part in all.chunks(7) {
        store.append_many(part).unwrap();
        // Full segments are mapped, and the current segment grows.
        assert_eq!(store.find(&part[0].id).unwrap().unwrap().event, part[0]);
    }
    let reader = options.open(&path, Mode::Read).unwrap();
    for number in (0..300).step_by(3) {
        delete(&store, &note(number));
    }
    store.sync().unwrap();
    // Flags that are written under the map.
    assert_eq!((asked(&store).len(), asked(&reader).len()), (200, 200));
    let report = store.verify(Check::Id).unwrap();
    assert_eq!((report.live, report.deleted, report.faults), (200, 100, 0));
    assert_eq!(store.compact(0.0, false).unwrap().deleted, 100);
    store.append(&note(300)).unwrap();
    for store in [&store, &plain.open(&path, Mode::Read).unwrap()] {
        assert_eq!(store.verify(Check::Id).unwrap().live, 201);
        assert_eq!(asked(store).len(), 201);
        let parts = store.splits(8 * 4096).unwrap();
        let found = parts.iter().flat_map(|each| part(each, &options, Include::All));
        assert_eq!(found.count(), 201);
    }
    // The files that the reader has are gone.
    assert_eq!(reader.verify(Check::Id).unwrap().live, 200);
    store.close().unwrap();

    // Mapped reads report damage and truncation like plain reads.
    let last = std::fs::read_dir(path.join("data/segments")).unwrap();
    let last = last.map(|found| found.unwrap().path()).max().unwrap();
    let mut bytes = std::fs::read(&last).unwrap();
    bytes[4096 + 100] ^= 1;
    std::fs::write(&last, &bytes).unwrap();
    let verified =
        |options: &Options| options.open(&path, Mode::Read).unwrap().verify(Check::Id).unwrap();
    let found = verified(&options);
    assert_eq!((found.faults, &found), (1, &verified(&plain)));
    let store = options.open(&path, Mode::Read).unwrap();
    std::fs::OpenOptions::new().write(true).open(&last).unwrap().set_len(8192).unwrap();
    let report = store.verify(Check::Id).unwrap();
    assert!(report.live < found.live, "{report:?}");
}
