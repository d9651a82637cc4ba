//! Repair and salvage of damaged stores.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use deedbook::nostr::{
    Check, Event, EventStore, Filter, Flags, Id, Include, Location, Options, StoreRepair,
    StoreSalvage, repair, salvage,
};
use deedbook::storage::Storage;
use deedbook::storage::sim::Sim;
use deedbook::{Durability, Error, ErrorKind, Mode, OnCorrupt, Repair};

use crate::support::store::events::{changed, event, note, notes, read, write};
use crate::support::store::world::{DIR, options};

pub const PAGE: usize = 4096;
pub const COPY_DIR: &str = "/rescued";
/// Of a checkpoint in the write-ahead log.
const CHECKPOINT_BYTES: usize = 29;

pub fn on(disk: &Sim) -> Options {
    options(disk, Durability::Manual)
        .segment_bytes(40 * PAGE as u64)
        .wal_segment_bytes(4 << 10)
        .checkpoint_bytes(1 << 20)
}

pub fn open(disk: &Sim) -> EventStore {
    on(disk).open(DIR, Mode::Append).unwrap()
}

pub fn segment(id: u32) -> String {
    format!("{DIR}/data/segments/data.{id}.seg")
}

/// All events with their flags.
pub type Events = BTreeMap<Id, (Event, Flags)>;

pub fn events(store: &EventStore) -> Events {
    let mut found = Events::new();
    for each in store.iter(Include::All, OnCorrupt::Skip).unwrap() {
        let each = each.unwrap();
        let before = found.insert(each.event.id, (each.event, each.flags));
        assert!(before.is_none(), "an event is there twice");
    }
    found
}

pub fn place(store: &EventStore, event: &Event) -> Location {
    store.find(&event.id).unwrap().unwrap().location
}

/// Segments, of which some were compacted; flags by hand, versions and a deletion request; and a
/// write-ahead log of several files, with events after the last checkpoint. The process died.
pub fn world() -> (Sim, Events) {
    let disk = Sim::new();
    let store = open(&disk);
    store.append_many(&notes(0..30)).unwrap();
    store.set_flags(place(&store, &note(2)), Flags::DELETED).unwrap();
    store.compact(0.0, false).unwrap();
    store.append_many(&notes(30..40)).unwrap();
    store.set_flags(place(&store, &note(31)), Flags::DELETED).unwrap();
    store.checkpoint().unwrap();
    let profiles = [1, 2].map(|at| event(9, at, 0, &[], &format!("profile {at}")));
    store.append_many(&profiles).unwrap();
    let request = event(0, 50, 5, &[&["e", &note(5).id.to_string()]], "");
    store.append(&request).unwrap();
    for note in notes(40..60).iter().filter(|note| note.content.len() < 100) {
        store.append(note).unwrap();
    }
    store.commit().unwrap();
    let all = events(&store);
    let hidden = all.values().filter(|(_, flags)| !flags.is_live()).count();
    assert!(all.len() > 45 && hidden == 3, "{} events, {hidden} hidden", all.len());
    let logs = disk.list(Path::new("/events/wal")).unwrap();
    assert!(logs.len() > 2, "{logs:?}");
    (disk.kill(), all)
}

pub fn salvaged(disk: &Sim) -> (StoreSalvage, Events) {
    let before = listed(disk, Path::new(DIR));
    let options = on(disk);
    let report =
        salvage(Path::new(DIR), Path::new(COPY_DIR), &options, &mut |_, _| Ok(())).unwrap();
    assert_eq!(listed(disk, Path::new(DIR)), before, "the source was changed");
    let store = options.open(COPY_DIR, Mode::Append).unwrap();
    assert!(store.verify(Check::Id).unwrap().is_ok());
    let found = events(&store);
    assert_eq!(report.events, found.len() as u64);
    let hidden = found.values().filter(|(_, flags)| !flags.is_live()).count();
    assert_eq!(report.hidden.min(1), hidden.min(1) as u64);
    let live = found.values().filter(|(_, flags)| flags.is_live()).count();
    assert_eq!(store.query(&[Filter::default()]).unwrap().count(), live);
    (report, found)
}

/// Every file below a directory, and its bytes; not what only the lock wrote.
pub fn listed(disk: &Sim, dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for name in disk.list(dir).unwrap() {
        let path = dir.join(&name);
        match disk.is_dir(&path) {
            true => found.extend(listed(disk, &path)),
            false if name == "lock" => {}
            false => drop(found.insert(path.clone(), read(disk, path.to_str().unwrap()))),
        }
    }
    found
}

pub fn ids(disk: &Sim) -> Vec<u32> {
    (0..40)
        .filter(|id| disk.open(Path::new(&segment(*id)), deedbook::storage::Access::Read).is_ok())
        .collect()
}

pub fn logs(disk: &Sim) -> Vec<String> {
    let names = disk.list(Path::new("/events/wal")).unwrap();
    let mut logs: Vec<String> = names
        .iter()
        .filter_map(|name| name.to_str())
        .filter(|name| name.ends_with(".log"))
        .map(|name| format!("/events/wal/{name}"))
        .collect();
    // That without a number is the first one.
    logs.sort_by_key(|path| (path.len(), path.clone()));
    logs
}

#[test]
fn a_salvage_of_a_store_that_died_copies_all_with_its_flags() {
    let (disk, all) = world();
    let (report, found) = salvaged(&disk);
    assert_eq!(found, all);
    assert!(report.is_complete(), "{report:?}");
    let error = salvage(Path::new(DIR), Path::new(COPY_DIR), &on(&disk), &mut |_, _| Ok(()));
    assert_eq!(error.unwrap_err().kind(), ErrorKind::AlreadyExists);
    let error = salvage(Path::new("/none"), Path::new("/to"), &on(&disk), &mut |_, _| Ok(()));
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Missing);
}

/// Of each damage, all comes over but what was in the damaged place.
#[test]
fn a_salvage_copies_all_that_is_intact_once() {
    let (disk, all) = world();
    for lost in [&["manifest.json"][..], &["manifest.json", ".deedbook/manifest"]] {
        let disk = disk.kill();
        for name in lost {
            disk.remove(&Path::new(DIR).join(name)).unwrap();
        }
        assert_eq!(salvaged(&disk).1, all, "{lost:?}");
    }
    for id in ids(&disk) {
        // A header that is lost is made up for by the pages.
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
            if let Some(byte) = bytes.get_mut(PAGE + 80) {
                *byte ^= 1;
            }
        });
        let (report, found) = salvaged(&flipped);
        assert!(found.len() + 1 >= all.len(), "segment {id}: {} events", found.len());
        assert!(found.iter().all(|(id, event)| all.get(id) == Some(event)));
        assert!(found.len() == all.len() || report.damages.len() == 1);
        let gone = disk.kill();
        disk_remove(&gone, &segment(id));
        let (report, found) = salvaged(&gone);
        assert_eq!(report.lost_segments, [id]);
        assert!(found.keys().all(|id| all.contains_key(id)));
    }
    for log in logs(&disk) {
        let gone = disk.kill();
        changed(&gone, &log, |bytes| bytes[..24].fill(0xEE));
        let (report, found) = salvaged(&gone);
        assert_eq!(found.keys().collect::<Vec<_>>(), all.keys().collect::<Vec<_>>(), "{log}");
        assert_eq!(report.damages.first().unwrap().path, Path::new(&log));
    }
}

pub fn disk_remove(disk: &Sim, path: &str) {
    disk.remove(Path::new(path)).unwrap();
}

/// Events after the last checkpoint that only the log has: a power cut took the segment's pages.
#[test]
fn a_salvage_takes_from_the_log_and_from_what_was_cut_off_what_the_segments_lack() {
    let (disk, all) = world();
    let last = *ids(&disk).last().unwrap();
    changed(&disk, &segment(last), |bytes| {
        let len = bytes.len();
        bytes[len - 3 * PAGE..].fill(0);
    });
    let (report, found) = salvaged(&disk);
    assert_eq!(found, all);
    assert_eq!(report.from_log, 3, "{report:?}");
    // The end of a segment that was cut off and saved.
    let (disk, mut all) = world();
    let other = Sim::new();
    let store = open(&other);
    let more = note(300);
    store.append(&more).unwrap();
    store.close().unwrap();
    let page = read(&other, &segment(0))[PAGE..].to_vec();
    write(&disk, &format!("{}.cut-{}", segment(last), 9 * PAGE), &page);
    all.insert(more.id, (more, Flags::default()));
    let (report, found) = salvaged(&disk);
    assert_eq!((found, report.from_saved), (all, 1));
}

/// The log had the flag, and a power cut took it from the segment.
#[test]
fn a_salvage_takes_flags_from_the_log() {
    let disk = Sim::new();
    let store = open(&disk);
    store.append_many(&notes(0..3)).unwrap();
    store.checkpoint().unwrap();
    let at = place(&store, &note(1));
    store.set_flags(at, Flags::DELETED).unwrap();
    store.commit().unwrap();
    let (disk, all) = (disk.kill(), events(&store));
    changed(&disk, &segment(at.segment), |bytes| bytes[at.offset as usize + 4] = 0);
    assert_eq!(salvaged(&disk).1, all);
}

/// The log still has what a compaction dropped. It was dropped on purpose.
// Promise: store-repair.
#[test]
fn a_salvage_brings_nothing_back_that_a_compaction_dropped() {
    let disk = Sim::new();
    let store = open(&disk);
    store.append_many(&notes(0..3)).unwrap();
    store.set_flags(place(&store, &note(1)), Flags::DELETED).unwrap();
    store.compact(0.0, false).unwrap();
    let all = events(&store);
    assert_eq!(all.len(), 2);
    let (report, found) = salvaged(&disk.kill());
    assert_eq!((found, report.from_log), (all, 0));
}

pub fn mended(disk: &Sim, may: Repair) -> Result<StoreRepair, Error> {
    repair(Path::new(DIR), &on(disk), may)
}

pub const DRY: Repair = Repair { dry_run: true, force: false, accept_loss: false };
pub const PLAIN: Repair = Repair { dry_run: false, force: false, accept_loss: false };
const FORCE: Repair = Repair { dry_run: false, force: true, accept_loss: false };
pub const ACCEPT: Repair = Repair { dry_run: false, force: false, accept_loss: true };
pub const ALL: Repair = Repair { dry_run: false, force: true, accept_loss: true };

#[test]
fn a_repair_of_a_sound_store_changes_nothing_of_its_events() {
    let (disk, all) = world();
    let before = listed(&disk, Path::new(DIR));
    let report = mended(&disk, DRY).unwrap();
    assert_eq!(listed(&disk, Path::new(DIR)), before);
    assert!(!report.mended && report.damages.is_empty() && !report.is_loss, "{report:?}");
    let report = mended(&disk, PLAIN).unwrap();
    assert!(report.mended && report.saved.is_empty() && report.cut_bytes == 0, "{report:?}");
    assert_eq!(events(&open(&disk)), all);
}

/// A damaged page is skipped by walks, but no compaction takes a segment with one: a repair takes the
/// page out, saves it, and says that an acknowledged event is lost.
// Promise: store-repair.
#[test]
fn a_repair_takes_damaged_pages_out_if_their_loss_is_accepted() {
    let (disk, all) = world();
    let first = ids(&disk)[0];
    changed(&disk, &segment(first), |bytes| bytes[PAGE + 80] ^= 1);
    let damaged = read(&disk, &segment(first))[PAGE..2 * PAGE].to_vec();
    let before = listed(&disk, Path::new(DIR));
    let report = mended(&disk, DRY).unwrap();
    assert_eq!(listed(&disk, Path::new(DIR)), before, "a dry run changed something");
    assert!(report.is_loss && !report.mended && report.cut_bytes == PAGE as u64, "{report:?}");
    let report = mended(&disk, FORCE).unwrap();
    assert!(report.is_loss && !report.mended, "{report:?}");
    assert_eq!(read(&disk, &segment(first)), before[Path::new(&segment(first))]);
    let report = mended(&disk, ACCEPT).unwrap();
    assert!(report.mended && !report.was_loss, "a refused repair noted a loss: {report:?}");
    let saved = report.saved.iter().map(|path| read(&disk, path.to_str().unwrap()));
    assert!(saved.into_iter().any(|bytes| bytes == damaged), "{report:?}");
    let store = open(&disk);
    let verified = store.verify(Check::Id).unwrap();
    assert!(verified.is_ok() && verified.is_loss, "{verified:?}");
    let live = |events: &Events| events.values().filter(|(_, flags)| flags.is_live()).count();
    assert_eq!(live(&events(&store)) + 1, live(&all));
    assert_eq!(store.query(&[Filter::default()]).unwrap().count() + 1, live(&all));
    store.compact(0.0, false).unwrap();
    store.close().unwrap();
    let again = mended(&disk, PLAIN).unwrap();
    assert!(again.mended && again.was_loss && again.damages.is_empty(), "{again:?}");
}

#[test]
fn a_repair_makes_a_lost_header_again_and_loses_nothing() {
    let (disk, all) = world();
    let last = *ids(&disk).last().unwrap();
    let whole = disk.kill();
    open(&whole).close().unwrap();
    for id in [ids(&disk)[0], last] {
        let disk = disk.kill();
        changed(&disk, &segment(id), |bytes| bytes[..PAGE].fill(0xEE));
        assert!(on(&disk).open(DIR, Mode::Append).is_err());
        let report = mended(&disk, PLAIN).unwrap();
        assert!(report.mended && !report.is_loss && report.saved.len() == 1, "{report:?}");
        let counted = |disk: &Sim| read(disk, &segment(id))[20..24].to_vec();
        assert_eq!(counted(&disk), counted(&whole), "segment {id}");
        assert_eq!(events(&open(&disk)), all);
    }
}

#[test]
fn a_repair_goes_on_without_a_missing_segment_if_its_loss_is_accepted() {
    let (disk, all) = world();
    for id in ids(&disk) {
        let disk = disk.kill();
        let reader = on(&disk).open(DIR, Mode::Read).unwrap();
        let lost = reader.iter(Include::All, OnCorrupt::Raise).unwrap();
        let in_it = |found: &deedbook::nostr::StoredEvent| found.location.segment == id;
        let lost: Vec<Id> =
            lost.map(Result::unwrap).filter(in_it).map(|found| found.event.id).collect();
        disk_remove(&disk, &segment(id));
        let report = mended(&disk, PLAIN).unwrap();
        assert_eq!((report.lost_segments.as_slice(), report.mended), (&[id][..], false));
        assert!(on(&disk).open(DIR, Mode::Append).is_err());
        assert!(mended(&disk, ACCEPT).unwrap().mended);
        let store = open(&disk);
        let found = events(&store);
        // The log has what came after the last checkpoint.
        assert!(all.keys().filter(|id| !found.contains_key(id)).all(|id| lost.contains(id)));
        let live = found.values().filter(|(_, flags)| flags.is_live()).count();
        assert_eq!(store.query(&[Filter::default()]).unwrap().count(), live, "segment {id}");
    }
}

/// A flipped bit in any file of the write-ahead log refused the whole store, and nothing mended it.
#[test]
fn a_repair_cuts_a_damaged_log_and_brings_nothing_back_or_twice() {
    let (disk, all) = world();
    let (mut refused, mut lossy) = (0, 0);
    for log in logs(&disk) {
        let whole = read(&disk, &log);
        let used = whole.iter().rposition(|&byte| byte != 0).unwrap();
        for at in (0..used).step_by(211) {
            let disk = disk.kill();
            changed(&disk, &log, |bytes| bytes[at] ^= 0x10);
            let what = format!("{log}, byte {at}");
            let dry = mended(&disk, DRY).unwrap();
            // The segments have all that the log has.
            assert_eq!(dry.cut_events, 0, "{what}: {dry:?}");
            refused += u32::from(on(&disk).open(DIR, Mode::Append).is_err());
            let mut report = mended(&disk, PLAIN).unwrap();
            if !report.mended {
                lossy += 1;
                assert!(report.is_loss, "{what}: {report:?}");
                report = mended(&disk, ACCEPT).unwrap();
            }
            assert!(report.mended, "{what}: {report:?}");
            let store = open(&disk);
            let found = events(&store);
            let same = |map: &Events| map.keys().copied().collect::<Vec<_>>();
            assert_eq!(same(&found), same(&all), "{what}");
            store.append(&note(200)).unwrap();
            store.close().unwrap();
            assert_eq!(events(&open(&disk)).len(), all.len() + 1, "{what}");
        }
    }
    println!("{refused} refused, {lossy} with a loss");
    assert!(refused > 20, "{refused}");
}

/// The log was cut before its last checkpoint. It went on from its beginning then, and an event came back
/// that a compaction had dropped.
#[test]
fn a_repair_keeps_the_last_checkpoint_of_the_log() {
    let disk = Sim::new();
    let store = open(&disk);
    store.append_many(&notes(0..3)).unwrap();
    store.set_flags(place(&store, &note(1)), Flags::DELETED).unwrap();
    store.compact(0.0, false).unwrap();
    store.append(&note(4)).unwrap();
    store.commit().unwrap();
    let (disk, all) = (disk.kill(), events(&store));
    let (log, mut mends) = (logs(&disk)[0].clone(), 0);
    let used = read(&disk, &log).iter().rposition(|&byte| byte != 0).unwrap();
    for at in (0..used).step_by(31) {
        let disk = disk.kill();
        changed(&disk, &log, |bytes| bytes[at] ^= 0x10);
        let is_refused = on(&disk).open(DIR, Mode::Append).is_err();
        let report = mended(&disk, ACCEPT).unwrap();
        assert!(report.mended, "byte {at}: {report:?}");
        assert_eq!(events(&open(&disk)), all, "byte {at}");
        mends += u32::from(is_refused);
    }
    assert!(mends > 5, "{mends}");
}

/// The last entry of the log of a closed store was damaged: it is a checkpoint, and the log went on from
/// the one before. Every event since was there twice, and what was deleted counted again.
#[test]
fn events_are_there_once_after_the_last_checkpoint_of_the_log_is_lost() {
    lost_checkpoint(4);
}

/// Where the log had been rotated, too, verify said ok, opening refused it, and repair found nothing.
#[test]
fn a_rotated_log_that_lost_its_last_checkpoint_is_opened() {
    lost_checkpoint(20);
}

fn lost_checkpoint(first: u32) {
    let disk = Sim::new();
    let store = open(&disk);
    store.append_many(&notes(9..first.max(9))).unwrap();
    store.append_many(&notes(4..9)).unwrap();
    store.set_flags(place(&store, &note(5)), Flags::DELETED).unwrap();
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
        // There the header names an older one. It must not where the first entries are gone.
        let older = (!is_rotated).then(|| flipped.kill());
        if let Some(older) = &older {
            changed(older, log, |bytes| bytes[12..20].copy_from_slice(&1u64.to_be_bytes()));
        }
        for disk in [flipped, cut].into_iter().chain(older) {
            let without = disk.kill();
            assert!(on(&disk).open(DIR, Mode::Append).is_err(), "byte {at}");
            assert_eq!(salvaged(&disk.kill()).1, all, "byte {at}");
            assert!(mended(&disk, ACCEPT).unwrap().mended, "byte {at}");
            assert_eq!(events(&open(&disk)), all, "byte {at}");
            // Nothing tells the damage from a torn end there.
            remove_sidecar(&without);
            let reader = on(&without).open(DIR, Mode::Read).unwrap();
            assert_eq!(reader.verify_log().unwrap(), [], "byte {at}");
            let store = open(&without);
            assert_eq!(events(&store), all, "byte {at}, opened: {:?}", store.opening());
            store.append(&note(70)).unwrap();
            store.close().unwrap();
            assert_eq!(events(&open(&without)).len(), all.len() + 1, "byte {at}");
        }
    }
}

/// The same after a compaction: what it moved came back beside its copies, and what it dropped came back.
#[test]
fn a_compaction_stays_done_after_the_last_checkpoint_of_the_log_is_lost() {
    let disk = Sim::new();
    let store = open(&disk);
    store.append_many(&notes(4..9)).unwrap();
    store.set_flags(place(&store, &note(5)), Flags::DELETED).unwrap();
    store.compact(0.0, false).unwrap();
    let (disk, all) = (disk.kill(), events(&store));
    let log = &logs(&disk)[0];
    let end = read(&disk, log).iter().rposition(|&byte| byte != 0).unwrap();
    changed(&disk, log, |bytes| bytes[end] ^= 0x10);
    let without = disk.kill();
    assert!(on(&disk).open(DIR, Mode::Append).is_err());
    assert_eq!(salvaged(&disk.kill()).1, all);
    assert!(mended(&disk, ACCEPT).unwrap().mended);
    assert_eq!(events(&open(&disk)), all);
    remove_sidecar(&without);
    let store = open(&without);
    assert_eq!(events(&store), all, "{:?}", store.opening());
}

/// Have no file in the sidecar of the write-ahead log.
pub fn remove_sidecar(disk: &Sim) {
    let sidecar = Path::new("/events/wal/.deedbook");
    for path in listed(disk, sidecar).into_keys() {
        disk.remove(&path).unwrap();
    }
}

/// Have no write-ahead log, and nothing beside it.
pub fn remove_log(disk: &Sim) {
    for path in listed(disk, Path::new("/events/wal")).into_keys() {
        disk.remove(&path).unwrap();
    }
}

/// The world without the last three pages of its last segment, and with the first entry of the newest file
/// of the log damaged: intact events after that are in the log only.
pub fn damaged_log_alone() -> (Sim, Events) {
    let (disk, all) = world();
    let last = *ids(&disk).last().unwrap();
    changed(&disk, &segment(last), |bytes| {
        let len = bytes.len();
        bytes[len - 3 * PAGE..].fill(0);
    });
    let newest = logs(&disk).pop().unwrap();
    changed(&disk, &newest, |bytes| bytes[24 + 60] ^= 1);
    (disk, all)
}

/// What only the log has after its damage goes with the cut, unless it is salvaged before.
// Promise: store-repair.
#[test]
fn a_repair_asks_before_it_cuts_events_that_only_the_log_has() {
    let (disk, all) = damaged_log_alone();
    let dry = mended(&disk, DRY).unwrap();
    assert!(dry.cut_events > 0 && dry.cut_events <= 3, "{dry:?}");
    let before = listed(&disk, Path::new(DIR));
    let error = mended(&disk, ACCEPT).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    let expected = format!("{} intact event", dry.cut_events);
    assert!(error.message().contains(&expected) && error.message().contains("salvage"), "{error}");
    assert_eq!(listed(&disk, Path::new(DIR)), before);
    let rescued = disk.kill();
    let report = mended(&disk, ALL).unwrap();
    assert!(report.mended && !report.saved.is_empty(), "{report:?}");
    let found = events(&open(&disk));
    assert!(found.len() as u64 >= all.len() as u64 - 3, "{}", found.len());
    // What was cut is beside the log, and a salvage finds it there.
    let (report, found) = salvaged(&disk.kill());
    assert!(report.from_saved >= dry.cut_events, "{report:?}");
    assert!(salvaged(&rescued).1.len() >= found.len());
}

/// Opening cuts a segment at damage after the last checkpoint, because the log has what follows. A repair
/// cut the log as well: with the log lost or shorter, all intact events after the damage went, and it counted none.
#[test]
fn a_repair_keeps_events_that_follow_damage_after_the_last_checkpoint() {
    let (disk, all) = world();
    let last = *ids(&disk).last().unwrap();
    changed(&disk, &segment(last), |bytes| {
        let len = bytes.len();
        bytes[len - 3 * PAGE..len - 2 * PAGE].fill(0);
    });
    let newest = logs(&disk).pop().unwrap();
    changed(&disk, &newest, |bytes| bytes[24 + 60] ^= 1);
    let dry = mended(&disk, DRY).unwrap();
    assert!(dry.cut_events <= 1, "{dry:?}");
    assert!(mended(&disk, ALL).unwrap().mended);
    let found = events(&open(&disk));
    assert!(found.len() + 1 >= all.len(), "{} of {}", found.len(), all.len());
}
