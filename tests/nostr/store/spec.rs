//! Opening with `recovery="spec"`: a damaged write-ahead log is cut where its damage begins.

use std::path::Path;

use deedbook::nostr::{Check, EventStore, Flags};
use deedbook::storage::Storage;
use deedbook::storage::sim::Sim;
use deedbook::{Error, ErrorKind, Mode, Recovery};

use crate::store::mend::{Damaged, copied, given, is_cut, of_logs, states};
use crate::store::rescue::{
    COPY_DIR, DRY, Events, PAGE, damaged_log_alone, disk_remove, events, ids, listed, logs, mended,
    on, open, remove_sidecar, segment, world,
};
use crate::support::store::events::{changed, event, note, read, write};
use crate::support::store::world::DIR;

fn by_the_letter(disk: &Sim) -> Result<EventStore, Error> {
    on(disk).recovery(Recovery::Spec).open(DIR, Mode::Append)
}

fn same_ids(found: &Events, all: &Events) -> bool {
    found.keys().eq(all.keys())
}

/// Ruling 2 gives every format this recovery, and a store had none: a log with one flipped bit could not be
/// gone on with, except by a repair.
#[test]
fn a_log_that_is_refused_is_cut_and_saved_and_the_events_of_the_segments_stay() {
    let (disk, all) = world();
    let (mut refused, mut lossy) = (0, 0);
    for log in logs(&disk) {
        let used = read(&disk, &log).iter().rposition(|&byte| byte != 0).unwrap();
        for at in (0..used).step_by(101) {
            let disk = disk.kill();
            changed(&disk, &log, |bytes| bytes[at] ^= 0x10);
            let what = format!("{log}, byte {at}");
            let is_refused = on(&disk).open(DIR, Mode::Append).is_err();
            let dry = mended(&disk, DRY).unwrap();
            let store = by_the_letter(&disk).unwrap_or_else(|e| panic!("{what}: {e:?}"));
            assert!(same_ids(&events(&store), &all), "{what}");
            let opening = store.opening();
            let is_loss = is_refused && dry.is_loss;
            assert_eq!((opening.is_loss, opening.cut_events), (is_loss, 0), "{what}: {opening:?}");
            assert!(!is_refused || !opening.saved.is_empty(), "{what}: {opening:?}");
            assert_eq!(store.verify(Check::Id).unwrap().is_loss, is_loss, "{what}");
            store.append(&note(200)).unwrap();
            store.close().unwrap();
            let store = open(&disk);
            assert_eq!(events(&store).len(), all.len() + 1, "{what}");
            assert_eq!(store.opening().is_loss, is_loss, "{what}: the note of the loss is gone");
            refused += u32::from(is_refused);
            lossy += u32::from(is_loss);
        }
    }
    assert!(refused > 40 && lossy > 10, "{refused} refused, {lossy} with a loss");
}

/// What only the log has after its damage goes with the cut, is counted, and is found by a salvage.
#[test]
fn intact_events_that_only_the_log_has_are_counted_and_saved() {
    let (disk, all) = damaged_log_alone();
    let dry = mended(&disk, DRY).unwrap();
    let store = by_the_letter(&disk).unwrap();
    let opening = store.opening().clone();
    assert_eq!((opening.cut_events, opening.cut_bytes), (dry.cut_events, dry.cut_bytes));
    assert!(opening.cut_events > 0 && opening.cut_bytes > 0, "{opening:?}");
    let left = events(&store);
    assert!(opening.is_loss && store.verify(Check::Id).unwrap().is_loss, "{opening:?}");
    // The damaged entry is the only copy of one more.
    assert_eq!(left.len() as u64 + opening.cut_events + 1, all.len() as u64, "{opening:?}");
    store.close().unwrap();
    let report = copied(&disk, COPY_DIR).unwrap();
    assert_eq!(report.from_saved, opening.cut_events, "{report:?}");
}

/// Without marks nothing says that the damaged entries were acknowledged; the damage itself says what is missing.
#[test]
fn a_loss_is_noted_without_marks_too() {
    let (disk, _) = damaged_log_alone();
    remove_sidecar(&disk);
    let opening = by_the_letter(&disk).unwrap().opening().clone();
    assert!(opening.cut_events > 0 && opening.is_loss, "{opening:?}");
    // Both copies of an event are damaged, and a flag follows it in the log.
    let disk = Sim::new();
    let store = open(&disk);
    store.append(&note(1)).unwrap();
    let flagged = store.find(&note(1).id).unwrap().unwrap().location;
    store.checkpoint().unwrap();
    store.append(&note(2)).unwrap();
    store.set_flags(flagged, Flags::DELETED).unwrap();
    store.commit().unwrap();
    let disk = disk.kill();
    remove_sidecar(&disk);
    for path in [segment(0), logs(&disk).pop().unwrap()] {
        changed(&disk, &path, |bytes| {
            let id = note(2).id.0;
            let at = bytes.windows(32).position(|window| window == id).unwrap();
            bytes[at] ^= 1;
        });
    }
    assert!(on(&disk).open(DIR, Mode::Append).is_err());
    let store = by_the_letter(&disk).unwrap();
    assert_eq!((store.opening().cut_events, store.opening().is_loss), (0, true));
    assert!(!events(&store).contains_key(&note(2).id));
}

/// Only the log is cut. What is wrong with segments is refused, and then the log stays as it is, too.
#[test]
fn nothing_is_cut_for_another_damage_and_by_another_recovery() {
    let (whole, _) = world();
    let newest = logs(&whole).pop().unwrap();
    let damage = |disk: &Sim| changed(disk, &newest, |bytes| bytes[24 + 60] ^= 1);
    let refused = |disk: &Sim, opened: Result<EventStore, Error>, kinds: &[ErrorKind]| {
        let kind = opened.map(drop).unwrap_err().kind();
        assert!(kinds.contains(&kind), "{kind:?}");
        let files = listed(disk, Path::new(DIR));
        assert!(!files.keys().any(|path| is_cut(path)), "{:?}", files.keys());
    };
    let disk = whole.kill();
    disk_remove(&disk, &segment(ids(&disk)[0]));
    damage(&disk);
    refused(&disk, by_the_letter(&disk), &[ErrorKind::LostRecords]);
    let disk = whole.kill();
    changed(&disk, &segment(ids(&whole)[0]), |bytes| bytes[..PAGE].fill(0xEE));
    damage(&disk);
    refused(&disk, by_the_letter(&disk), &[ErrorKind::Corrupt, ErrorKind::NotALog]);
    let disk = whole.kill();
    damage(&disk);
    refused(
        &disk,
        on(&disk).open(DIR, Mode::Append),
        &[ErrorKind::Corrupt, ErrorKind::LostRecords],
    );
    // Without a segment there is no store that the log would be of.
    let disk = Sim::new();
    disk.create_dir(Path::new(DIR)).unwrap();
    disk.create_dir(Path::new("/events/wal")).unwrap();
    write(
        &disk,
        "/events/wal/wal.log",
        b"a journal of another program, which is no log of a store",
    );
    refused(&disk, by_the_letter(&disk), &[ErrorKind::NotALog]);
    let disk = whole.kill();
    damage(&disk);
    for id in ids(&disk) {
        disk_remove(&disk, &segment(id));
    }
    for name in ["manifest.json", ".deedbook/manifest"] {
        disk_remove(&disk, &format!("{DIR}/{name}"));
    }
    let kinds = [ErrorKind::LostRecords, ErrorKind::Corrupt];
    refused(&disk, by_the_letter(&disk), &kinds);
    let disk = whole.kill();
    damage(&disk);
    let other = on(&disk).recovery(Recovery::Acknowledged).open(DIR, Mode::Append);
    refused(&disk, other, &[ErrorKind::InvalidArgument]);
    // A reader writes nothing, whatever it is told.
    let before = listed(&disk, Path::new(DIR));
    on(&disk).recovery(Recovery::Spec).open(DIR, Mode::Read).unwrap();
    assert_eq!(listed(&disk, Path::new(DIR)), before);
}

/// Whether what is there hides what it replaces or deletes, although the log lost the flags.
fn hides(found: &Events) -> Result<(), String> {
    let [old, new] = [1, 2].map(|at| event(9, at, 0, &[], &format!("profile {at}")).id);
    let request = event(0, 50, 5, &[&["e", &note(5).id.to_string()]], "").id;
    for (id, by) in [(old, new), (note(5).id, request)] {
        let is_live = found.get(&id).is_some_and(|(_, flags)| flags.is_live());
        if is_live && found.contains_key(&by) {
            return Err(format!("event {id} counts beside {by}"));
        }
    }
    Ok(())
}

/// Judge a store whose opening was interrupted: it opens, and what is not in it any more was saved.
fn judge(damaged: &Damaged, disk: &Sim) -> Result<(), String> {
    let store = by_the_letter(disk).map_err(|e| format!("opening: {e:?}"))?;
    let found = given(&store)?;
    // Flags that only the log had go with it.
    for (id, (event, flags)) in &found {
        if damaged.left.get(id).map(|(event, _)| event) != Some(event) {
            return Err(format!("event {id}, flags {flags:?}, is none of the store's"));
        }
    }
    hides(&found)?;
    if damaged.is_loss && !store.opening().is_loss {
        return Err("the loss is not noted".into());
    }
    drop(store);
    copied(disk, COPY_DIR).map_err(|e| format!("salvage: {e:?}"))?;
    let copy = on(disk).open(COPY_DIR, Mode::Append).map_err(|e| format!("the copy: {e:?}"))?;
    let copy = events(&copy);
    match damaged.safe.iter().find(|id| !copy.contains_key(id)) {
        Some(id) => Err(format!("event {id} is lost")),
        None => Ok(()),
    }
}

#[test]
fn an_opening_that_crashes_at_any_call_of_the_cut_loses_nothing_intact() {
    let mut count = 0;
    for damaged in of_logs() {
        let name = damaged.name;
        let disk = damaged.disk.kill();
        disk.record();
        drop(by_the_letter(&disk).unwrap());
        let mut recorded = disk.recorded();
        recorded.push(disk.kill());
        for (call, moment) in recorded.iter().enumerate() {
            for (which, state) in states(moment, call as u64) {
                count += 1;
                judge(&damaged, &state)
                    .unwrap_or_else(|why| panic!("{name}, call {call}, {which}: {why}"));
            }
        }
    }
    assert!(count > 200, "{count}");
}
