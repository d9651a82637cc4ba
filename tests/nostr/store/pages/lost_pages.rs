//! Segments that lost durable pages of a checkpoint: the manifest knows the old size.

use crate::store::prelude::*;

fn four() -> (Sim, Events) {
    let (disk, store) = fresh();
    append(&store, 0..4);
    let all = events(&store);
    store.close().unwrap();
    (disk, all)
}

const LOSSES: [fn(&mut Vec<u8>, usize); 2] =
    [|bytes, at| bytes.truncate(at), |bytes, at| bytes[at..].fill(0)];

/// Two of four events were cut off or zeroed. The store opened without a report, `verify` found no fault, and opening
/// replaced the manifest, the last witness of the lost events.
#[test]
fn lost_pages_refuse_writers_and_readers_report_them() {
    let (whole, all) = four();
    for loss in LOSSES {
        let disk = whole.kill();
        changed(&disk, FIRST, |bytes| loss(bytes, 3 * PAGE));
        let before = read(&disk, MANIFEST);
        for recovery in [Recovery::Valid, Recovery::Spec] {
            let error = on(&disk).recovery(recovery).open(DIR, Mode::Append).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::LostRecords, "{error}");
            assert_eq!(error.path(), Some(Path::new(FIRST)));
            assert_eq!(error.offset(), Some(12_288));
            let expected = "segment 0 ends at byte 12288, the manifest says 20480";
            assert!(error.message().contains(expected), "{error}");
        }
        assert_eq!(read(&disk, MANIFEST), before, "what knows of the loss");
        let reader = reader(&disk);
        assert!(reader.opening().is_loss);
        let report = reader.verify(Check::Id).unwrap();
        let fault = &report.first_faults[0];
        assert_eq!((report.faults, report.live, report.bytes), (1, 2, 3 * PAGE as u64));
        assert_eq!((fault.segment, fault.offset, fault.end), (Some(0), 12_288, 20_480));
        let reason = "pages are missing from byte 12288, events were stored up to 20480";
        assert_eq!(fault.reason, reason);
        let walks = [
            reader.iter(Include::All, OnCorrupt::Raise).unwrap().collect::<Vec<_>>(),
            reader.iter_reverse(Include::All, OnCorrupt::Raise).unwrap().collect(),
        ];
        for walk in walks {
            let wrong = walk.into_iter().find_map(Result::err).unwrap();
            assert_eq!((wrong.kind(), wrong.offset()), (ErrorKind::Corrupt, Some(12_288)));
        }
        let split = reader.splits(1 << 20).unwrap().remove(0);
        let checked = EventStore::verify_part(&split, &on(&disk), Check::Id, &mut |_, _| Ok(()));
        assert_eq!(checked.unwrap().faults, 1);
        assert_eq!(events(&reader).len(), 2);
        // The log still has the lost events.
        let copied = copied(&disk, COPY_DIR).unwrap();
        assert_eq!((copied.events, copied.from_log, copied.damages.len()), (4, 2, 1));
        assert_eq!(events(&on(&disk).open(COPY_DIR, Mode::Read).unwrap()), all);
    }
}

/// A segment in the middle lost its second half. The index still had the lost events: a query failed, and another
/// append of a lost event returned a duplicate.
#[test]
fn middle_segment_without_its_half_is_repaired() {
    let (_place, dir) = on_real_disk();
    let on = on_storage(Arc::new(Disk)).index_on_disk(true);
    let store = on.open(&dir, Mode::Append).unwrap();
    notes(0..120).chunks(10).for_each(|some| drop(store.append_many(some).unwrap()));
    assert!(store.segments().unwrap().len() > 2);
    store.close().unwrap();
    let path = dir.join("data/segments/data.1.seg");
    let bytes = fs::read(&path).unwrap();
    let half = bytes.len() / PAGE / 2 * PAGE;
    fs::write(&path, &bytes[..half]).unwrap();
    refused(on.open(&dir, Mode::Append), ErrorKind::LostRecords, "");
    assert!(on.repair(&dir, ACCEPT).unwrap().mended);
    let store = on.open(&dir, Mode::Append).unwrap();
    let left = events(&store);
    assert!((80..120).contains(&left.len()), "{}", left.len());
    assert_eq!(queried(&store), left.len());
    for note in notes(0..120) {
        let is_there = left.contains_key(&note.id);
        assert_eq!(store.find(&note.id).unwrap().is_some(), is_there);
        assert_eq!(store.append(&note).unwrap().is_stored(), !is_there);
    }
    assert_eq!(queried(&store), 120);
    assert!(store.verify(Check::Id).unwrap().ok());
}

/// The last segment was shorter than its checkpoint, and later events were only in the log. Opening appended the events
/// again at lower offsets than the log's flags name: the flags hid other events.
#[test]
fn log_flags_after_lost_pages_hide_no_event() {
    let (disk, store) = fresh();
    append(&store, 0..2);
    store.checkpoint().unwrap();
    let (older, header) = (read(&disk, MANIFEST), read(&disk, FIRST)[..PAGE].to_vec());
    append(&store, 2..4);
    store.checkpoint().unwrap();
    let versions = [1, 2].map(|at| event(9, at, 0, &[], &format!("profile {at}")));
    let later: Vec<Event> = (10..14).map(short).collect();
    one_by_one(&store, &versions);
    one_by_one(&store, &later);
    store.append(&short(20)).unwrap();
    delete(&store, &short(20));
    store.sync().unwrap();
    let all = events(&store);
    let disk = disk.kill();
    // Unchanged; with the header of an earlier checkpoint, as after a power cut; and with an earlier manifest, which
    // does not have the places of the log's events.
    let cases = [(0, 2), (1, 2), (2, 1)];
    for ((case, kept), loss) in cases.into_iter().flat_map(|case| LOSSES.map(|loss| (case, loss))) {
        let disk = disk.kill();
        changed(&disk, FIRST, |bytes| {
            loss(bytes, (1 + kept) * PAGE);
            if case > 0 {
                bytes[..PAGE].copy_from_slice(&header);
            }
        });
        if case == 2 {
            write(&disk, MANIFEST, &older);
        }
        refused(on(&disk).open(DIR, Mode::Append), ErrorKind::LostRecords, "");
        assert!(mended(&disk, ACCEPT).unwrap().mended, "{case}");
        let found = events(&writer(&disk));
        for number in kept as u32..4 {
            // The log has every event after the manifest's checkpoint.
            let is_logged = case == 2 && number >= 2;
            assert_eq!(found.contains_key(&short(number).id), is_logged, "{case}: {number}");
        }
        for event in (0..kept as u32).map(short).chain(later.iter().cloned()) {
            assert_eq!(found.get(&event.id), all.get(&event.id), "{case}: {}", event.content);
        }
        // Writing a segment again drops flagged events.
        assert!(found.contains_key(&versions[1].id) && !found.contains_key(&versions[0].id));
        assert!(!found.contains_key(&short(20).id), "{case}");
    }
}

/// A page before the last checkpoint was damaged, and a power cut had kept an old header. Opening cut the segment
/// there, and the log's flags named wrong places for the later events.
#[test]
fn damage_before_the_checkpoint_moves_no_later_event() {
    let (disk, store) = fresh();
    store.append(&short(0)).unwrap();
    store.checkpoint().unwrap();
    let header = read(&disk, FIRST)[..PAGE].to_vec();
    store.append(&short(1)).unwrap();
    store.checkpoint().unwrap();
    append(&store, 2..5);
    delete(&store, &short(3));
    store.sync().unwrap();
    let disk = disk.kill();
    changed(&disk, FIRST, |bytes| {
        bytes[..PAGE].copy_from_slice(&header);
        bytes[2 * PAGE + 80] ^= 1;
        // The pages after the checkpoint were in the cache only.
        bytes.truncate(3 * PAGE);
    });
    let found = events(&writer(&disk));
    let flagged = |number: u32| found.get(&short(number).id).map(|(_, flags)| *flags);
    let live = Some(Flags::default());
    assert_eq!([0, 2, 4].map(flagged), [live; 3]);
    assert_eq!((flagged(1), flagged(3)), (None, Some(Flags::DELETED)));
}

/// The log is of another time than the manifest: a copy of the store went on with the log. The log's first event is
/// before a damaged page, and the lost pages are after the damage.
#[test]
fn a_repair_appends_again_after_the_lost_pages() {
    let (disk, store) = fresh();
    append(&store, 0..1);
    store.checkpoint().unwrap();
    let copied = disk.kill();
    let copy = writer(&copied);
    for number in [1].into_iter().chain(10..16) {
        copy.append(&short(number)).unwrap();
    }
    copy.sync().unwrap();
    append(&store, 1..5);
    store.close().unwrap();
    remove_log(&disk);
    for (path, bytes) in listed(&copied.kill(), Path::new("/events/wal")) {
        write(&disk, path.to_str().unwrap(), &bytes);
    }
    changed(&disk, FIRST, |bytes| bytes.truncate(4 * PAGE));
    flip_page(&disk, FIRST, 3);
    assert!(mended(&disk, ACCEPT).unwrap().mended);
    let left = [0, 1].into_iter().chain(10..16).map(short);
    assert_eq!(live(&writer(&disk)), left.collect::<Vec<_>>());
}
