//! Repair and salvage of damaged stores.

use crate::store::prelude::*;

const CHECKPOINT_BYTES: usize = 29;

/// For each damage, the salvage copies every event except the damaged ones.
#[test]
fn a_salvage_copies_all_that_is_intact_once() {
    let (disk, all) = world();
    for lost in [&[][..], &[MANIFEST], &[MANIFEST, COPY]] {
        let disk = disk.kill();
        lost.iter().for_each(|path| remove(&disk, path));
        let (report, found) = salvaged(&disk);
        assert_eq!((found, report.is_complete()), (all.clone(), true), "{lost:?}");
        refused(copied(&disk, COPY_DIR), ErrorKind::AlreadyExists, "");
    }
    let none = on(&disk).salvage(Path::new("/none"), Path::new("/to"));
    refused(none, ErrorKind::Missing, "");
    for id in ids(&disk) {
        // The pages make up for a lost header.
        let headless = disk.kill();
        changed(&headless, &segment(id), |bytes| bytes[..PAGE].fill(0));
        if read(&disk, &segment(id)).len() > PAGE {
            let (report, found) = salvaged(&headless);
            assert_eq!((found, report.damages.len()), (all.clone(), 1), "segment {id}");
        }
        let twin = disk.kill();
        write(&twin, &segment(id).replace(".seg", ""), &read(&disk, &segment(id)));
        assert_eq!(salvaged(&twin).1, all, "segment {id} twice");
        let flipped = disk.kill();
        changed(&flipped, &segment(id), |bytes| {
            bytes.get_mut(PAGE + 80).into_iter().for_each(|byte| *byte ^= 1);
        });
        let (report, found) = salvaged(&flipped);
        assert!(found.len() + 1 >= all.len(), "segment {id}: {} events", found.len());
        assert!(found.iter().all(|(id, event)| all.get(id) == Some(event)));
        assert!(found.len() == all.len() || report.damages.len() == 1);
        let gone = disk.kill();
        remove(&gone, &segment(id));
        let (report, found) = salvaged(&gone);
        assert_eq!(report.lost_segments, [id]);
        assert!(found.keys().all(|id| all.contains_key(id)));
    }
    for log in logs(&disk) {
        let gone = disk.kill();
        changed(&gone, &log, |bytes| bytes[..24].fill(0xEE));
        let (report, found) = salvaged(&gone);
        assert!(found.keys().eq(all.keys()), "{log}");
        assert_eq!(report.damages.first().unwrap().path.as_deref(), Some(Path::new(&log)));
    }
}

/// Only the log has the events after the last checkpoint: a power cut lost the segment's pages.
#[test]
fn salvage_completes_segments_from_log_and_saved_ends() {
    let (disk, all) = world();
    zero_last(&disk, 0..3);
    let (report, found) = salvaged(&disk);
    assert_eq!((found, report.from_log), (all, 3));
    // The saved end of a segment that was cut.
    let (disk, mut all) = world();
    let more = note(300);
    let page = &read(&closed(std::slice::from_ref(&more)), FIRST)[PAGE..];
    write(&disk, &format!("{}.cut-{}", last_segment(&disk), 9 * PAGE), page);
    all.insert(more.id, (more, Flags::default()));
    let (report, found) = salvaged(&disk);
    assert_eq!((found, report.from_saved), (all, 1));
}

/// The log had the flag, and a power cut lost the segment's copy.
#[test]
fn a_salvage_takes_flags_from_the_log() {
    let (disk, store) = fresh();
    store.append_many(&notes(0..3)).unwrap();
    store.checkpoint().unwrap();
    let at = place(&store, &note(1));
    store.set_flags(at, Flags::DELETED).unwrap();
    store.sync().unwrap();
    let (disk, all) = (disk.kill(), events(&store));
    changed(&disk, &segment(at.segment), |bytes| bytes[at.offset as usize + 4] = 0);
    assert_eq!(salvaged(&disk).1, all);
}

/// The log still has events that a compaction dropped on purpose.
// Promise: store-repair.
#[test]
fn salvage_restores_nothing_that_a_compaction_dropped() {
    let (disk, store) = fresh();
    store.append_many(&notes(0..3)).unwrap();
    delete(&store, &note(1));
    store.compact(0.0, false).unwrap();
    let all = events(&store);
    assert_eq!(all.len(), 2);
    let (report, found) = salvaged(&disk.kill());
    assert_eq!((found, report.from_log), (all, 0));
}

#[test]
fn repair_of_an_intact_store_changes_no_event() {
    let (disk, all) = world();
    let before = files(&disk);
    let report = mended(&disk, DRY).unwrap();
    assert_eq!(files(&disk), before);
    assert!(!report.mended && report.damages.is_empty() && report.loss.is_none(), "{report:?}");
    let report = mended(&disk, PLAIN).unwrap();
    assert!(report.mended && report.saved.is_empty() && report.cut_bytes == 0, "{report:?}");
    assert_eq!(events(&writer(&disk)), all);
}

/// Walks skip a damaged page, but no compaction takes its segment. A repair removes and saves the page, and reports the
/// loss of an acknowledged event.
// Promise: store-repair.
#[test]
fn repair_removes_damaged_pages_on_request() {
    let (disk, all) = world();
    let first = &segment(ids(&disk)[0]);
    flip_page(&disk, first, 1);
    let damaged = read(&disk, first)[PAGE..2 * PAGE].to_vec();
    let before = files(&disk);
    let report = mended(&disk, DRY).unwrap();
    assert_eq!(files(&disk), before, "a dry run changed something");
    assert!(
        report.loss.is_some() && !report.mended && report.cut_bytes == PAGE as u64,
        "{report:?}"
    );
    let report = mended(&disk, FORCE).unwrap();
    assert!(report.loss.is_some() && !report.mended, "{report:?}");
    assert_eq!(read(&disk, first), before[Path::new(first)]);
    let report = mended(&disk, ACCEPT).unwrap();
    assert!(
        report.mended && report.earlier_loss.is_none(),
        "a refused repair noted a loss: {report:?}"
    );
    let saved = report.saved.iter().map(|path| read(&disk, path.to_str().unwrap()));
    assert!(saved.into_iter().any(|bytes| bytes == damaged), "{report:?}");
    let store = writer(&disk);
    let verified = store.verify(Check::Id).unwrap();
    assert!(verified.ok() && verified.is_loss, "{verified:?}");
    assert_eq!(live_in(&events(&store)) + 1, live_in(&all));
    assert_eq!(queried(&store) + 1, live_in(&all));
    store.compact(0.0, false).unwrap();
    store.close().unwrap();
    let again = mended(&disk, PLAIN).unwrap();
    assert!(again.mended && again.earlier_loss.is_some() && again.damages.is_empty(), "{again:?}");
}

#[test]
fn repair_rebuilds_a_lost_header_without_loss() {
    let (disk, all) = world();
    let whole = disk.kill();
    writer(&whole).close().unwrap();
    for segment in [segment(ids(&disk)[0]), last_segment(&disk)] {
        let disk = disk.kill();
        changed(&disk, &segment, |bytes| bytes[..PAGE].fill(0xEE));
        assert!(on(&disk).open(DIR, Mode::Append).is_err());
        let report = mended(&disk, PLAIN).unwrap();
        assert!(report.mended && report.loss.is_none() && report.saved.len() == 1, "{report:?}");
        let counted = |disk: &Sim| read(disk, &segment)[20..24].to_vec();
        assert_eq!(counted(&disk), counted(&whole), "{segment}");
        assert_eq!(events(&writer(&disk)), all);
    }
}

/// A repair cut the log before its last checkpoint. Replay started at the beginning of the log, and restored an event
/// that a compaction had dropped.
#[test]
fn repair_keeps_the_logs_last_checkpoint() {
    let (disk, store) = fresh();
    store.append_many(&notes(0..3)).unwrap();
    delete(&store, &note(1));
    store.compact(0.0, false).unwrap();
    store.append(&note(4)).unwrap();
    store.sync().unwrap();
    let (disk, all) = (disk.kill(), events(&store));
    let mut mends = 0;
    for (what, disk) in flipped_logs(&disk, 31) {
        mends += u32::from(on(&disk).open(DIR, Mode::Append).is_err());
        let report = mended(&disk, ACCEPT).unwrap();
        assert!(report.mended, "{what}: {report:?}");
        assert_eq!(events(&writer(&disk)), all, "{what}");
    }
    assert!(mends > 5, "{mends}");
}

/// The last entry of a closed store's log, a checkpoint, was damaged, and replay started at the previous checkpoint.
/// Every later event was there twice, and deleted events counted again. If the log was also rotated, verify reported no
/// fault, opening failed, and repair found nothing.
#[test]
fn losing_the_logs_last_checkpoint_doubles_no_event() {
    [4, 20].into_iter().for_each(lost_checkpoint);
}

fn lost_checkpoint(first: u32) {
    let (disk, store) = fresh();
    store.append_many(&notes(9..first.max(9))).unwrap();
    store.append_many(&notes(4..9)).unwrap();
    delete(&store, &note(5));
    let all = events(&store);
    store.close().unwrap();
    let [log] = &logs(&disk)[..] else { panic!("{:?}", logs(&disk)) };
    let is_rotated = !log.ends_with("wal.log");
    assert_eq!(is_rotated, first > 9, "{log}");
    let end = read(&disk, log).len();
    for at in end - CHECKPOINT_BYTES..end {
        let flipped = disk.kill();
        changed(&flipped, log, |bytes| bytes[at] ^= 0x10);
        let cut = disk.kill();
        changed(&cut, log, |bytes| bytes.truncate(at));
        // The header names an older checkpoint, which it must not if the first entries are gone.
        let older = (!is_rotated).then(|| flipped.kill());
        if let Some(older) = &older {
            changed(older, log, |bytes| bytes[12..20].copy_from_slice(&1u64.to_be_bytes()));
        }
        for disk in [flipped, cut].into_iter().chain(older) {
            does_without_checkpoint(&disk, &all, &format!("byte {at}"));
        }
    }
}

/// After the loss of the log's last checkpoint, no event is missing or there twice.
fn does_without_checkpoint(disk: &Sim, all: &Events, what: &str) {
    let without = disk.kill();
    assert!(on(disk).open(DIR, Mode::Append).is_err(), "{what}");
    assert_eq!(salvaged(&disk.kill()).1, *all, "{what}");
    assert!(mended(disk, ACCEPT).unwrap().mended, "{what}");
    assert_eq!(events(&writer(disk)), *all, "{what}");
    // Only the manifest can distinguish the damage from a torn end there.
    remove_sidecar(&without);
    assert_eq!(reader(&without).verify_log().unwrap().len(), 1, "{what}");
    let said = "the write-ahead log ends with lsn ";
    refused(on(&without).open(DIR, Mode::Append), ErrorKind::LostRecords, said);
    assert!(mended(&without, ACCEPT).unwrap().mended, "{what}");
    let store = writer(&without);
    assert_eq!(events(&store), *all, "{what}, opened: {:?}", store.opening());
    store.append(&note(70)).unwrap();
    store.close().unwrap();
    assert_eq!(events(&writer(&without)).len(), all.len() + 1, "{what}");
}

/// The same after a compaction: moved events were there twice, and dropped events came back.
#[test]
fn compaction_stays_done_without_the_logs_last_checkpoint() {
    let (disk, store) = fresh();
    store.append_many(&notes(4..9)).unwrap();
    delete(&store, &note(5));
    store.compact(0.0, false).unwrap();
    let (disk, all) = (disk.kill(), events(&store));
    let log = &logs(&disk)[0];
    let end = last_byte(&read(&disk, log));
    changed(&disk, log, |bytes| bytes[end] ^= 0x10);
    does_without_checkpoint(&disk, &all, "a compaction");
}

/// The cut removes the events that only the log has after its damage, unless a salvage comes first.
// Promise: store-repair.
#[test]
fn repair_asks_before_cutting_events_only_in_log() {
    let (disk, all) = damaged_log_alone();
    let dry = mended(&disk, DRY).unwrap();
    assert!(dry.cut_records > 0 && dry.cut_records <= 3, "{dry:?}");
    let before = files(&disk);
    let error = mended(&disk, ACCEPT).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    let expected = format!("{} intact event", dry.cut_records);
    assert!(error.message().contains(&expected) && error.message().contains("salvage"), "{error}");
    assert_eq!(files(&disk), before);
    let rescued = disk.kill();
    let report = mended(&disk, ALL).unwrap();
    assert!(report.mended && !report.saved.is_empty(), "{report:?}");
    let found = events(&writer(&disk));
    assert!(found.len() as u64 >= all.len() as u64 - 3, "{}", found.len());
    // The cut bytes are next to the log, and a salvage finds them.
    let (report, found) = salvaged(&disk.kill());
    assert!(report.from_saved >= dry.cut_records, "{report:?}");
    assert!(salvaged(&rescued).1.len() >= found.len());
}

/// Opening cuts a segment at damage after the last checkpoint, because the log has the later events. A repair also cut
/// the log: with a lost or shorter log, all intact events after the damage were lost, and the repair counted none.
#[test]
fn repair_keeps_intact_events_following_damage() {
    let (disk, all) = world();
    zero_last(&disk, 2..3);
    flip_log(&disk);
    let dry = mended(&disk, DRY).unwrap();
    assert!(dry.cut_records <= 1, "{dry:?}");
    assert!(mended(&disk, ALL).unwrap().mended);
    let found = events(&writer(&disk));
    assert!(found.len() + 1 >= all.len(), "{} of {}", found.len(), all.len());
}
