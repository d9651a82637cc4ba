//! Opening with `recovery="spec"` cuts a damaged write-ahead log at the start of its damage.

use super::worlds::{Damaged, Left, at_every_call, given, of_logs};
use crate::store::prelude::*;

fn by_the_letter(disk: &Sim) -> Result<EventStore, Error> {
    on(disk).recovery(Recovery::Spec).open(DIR, Mode::Append)
}

/// The store has all events, and takes one more.
fn goes_on(disk: &Sim, store: &EventStore, all: &Events, what: &str) -> EventStore {
    assert!(events(store).keys().eq(all.keys()), "{what}");
    store.append(&note(200)).unwrap();
    store.close().unwrap();
    let store = writer(disk);
    assert_eq!(events(&store).len(), all.len() + 1, "{what}");
    store
}

/// With one flipped bit in the write-ahead log, opening failed. No repair helped, and stores lacked the recovery of
/// ruling 2.
#[test]
fn spec_recovery_cuts_log_and_keeps_segment_events() {
    let (disk, all) = world();
    let (mut refused, mut lossy) = (0, 0);
    for (what, disk) in flipped_logs(&disk, 101) {
        let is_refused = on(&disk).open(DIR, Mode::Append).is_err();
        let dry = mended(&disk, DRY).unwrap();
        // The segments have every event of the log.
        assert_eq!(dry.cut_records, 0, "{what}: {dry:?}");
        let repaired = disk.kill();
        let mut report = mended(&repaired, PLAIN).unwrap();
        if !report.mended {
            assert!(report.loss.is_some(), "{what}: {report:?}");
            report = mended(&repaired, ACCEPT).unwrap();
        }
        assert!(report.mended, "{what}: {report:?}");
        goes_on(&repaired, &writer(&repaired), &all, &what);
        let store = by_the_letter(&disk).unwrap_or_else(|e| panic!("{what}: {e:?}"));
        let opening = store.opening();
        let is_loss = is_refused && dry.loss.is_some();
        assert_eq!((opening.is_loss, opening.cut_events), (is_loss, 0), "{what}: {opening:?}");
        assert!(!is_refused || !opening.saved.is_empty(), "{what}: {opening:?}");
        assert_eq!(store.verify(Check::Id).unwrap().is_loss, is_loss, "{what}");
        let store = goes_on(&disk, &store, &all, &what);
        assert_eq!(store.opening().is_loss, is_loss, "{what}: the note of the loss is gone");
        refused += u32::from(is_refused);
        lossy += u32::from(is_loss);
    }
    assert!(refused > 40 && lossy > 10, "{refused} refused, {lossy} with a loss");
}

/// The cut removes and counts the events after the damage that only the log has. A salvage finds the events.
#[test]
fn spec_recovery_counts_and_saves_cut_events() {
    let (disk, all) = damaged_log_alone();
    let dry = mended(&disk, DRY).unwrap();
    let store = by_the_letter(&disk).unwrap();
    let opening = store.opening().clone();
    assert_eq!((opening.cut_events, opening.cut_bytes), (dry.cut_records, dry.cut_bytes));
    assert!(opening.cut_events > 0 && opening.cut_bytes > 0, "{opening:?}");
    let left = events(&store);
    assert!(opening.is_loss && store.verify(Check::Id).unwrap().is_loss, "{opening:?}");
    // The damaged entry was the only copy of another event.
    assert_eq!(left.len() as u64 + opening.cut_events + 1, all.len() as u64, "{opening:?}");
    store.close().unwrap();
    let report = copied(&disk, COPY_DIR).unwrap();
    assert_eq!(report.from_saved, opening.cut_events, "{report:?}");
}

/// Without marks nothing proves that the damaged entries were acknowledged. The damage itself shows the loss.
#[test]
fn a_loss_is_noted_without_marks_too() {
    let (disk, _) = damaged_log_alone();
    remove_sidecar(&disk);
    let opening = by_the_letter(&disk).unwrap().opening().clone();
    assert!(opening.cut_events > 0 && opening.is_loss, "{opening:?}");
    // Both copies of an event are damaged, and a flag follows the event in the log.
    let (disk, store) = fresh();
    store.append(&note(1)).unwrap();
    store.checkpoint().unwrap();
    store.append(&note(2)).unwrap();
    delete(&store, &note(1));
    store.sync().unwrap();
    let disk = disk.kill();
    remove_sidecar(&disk);
    for path in [FIRST.to_owned(), newest_log(&disk)] {
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

/// Opening cuts only the log. It refuses damaged segments, and then leaves the log unchanged, too.
#[test]
fn only_spec_recovery_cuts_and_only_the_log() {
    let lost = [ErrorKind::LostRecords, ErrorKind::Corrupt];
    let no_log = b"a journal of another program, which is no log of a store";
    type Damage = fn(&Sim);
    let cases: [(&[ErrorKind], Recovery, Damage); 5] = [
        (&lost[..1], Recovery::Spec, |disk| remove(disk, &segment(ids(disk)[0]))),
        (&[ErrorKind::Corrupt, ErrorKind::NotALog], Recovery::Spec, |disk| {
            changed(disk, &segment(ids(disk)[0]), |bytes| bytes[..PAGE].fill(0xEE));
        }),
        (&lost, Recovery::Valid, |_| {}),
        // Without a segment there is no store for the log.
        (&lost, Recovery::Spec, |disk| {
            ids(disk).iter().for_each(|id| remove(disk, &segment(*id)));
            remove_manifests(disk);
        }),
        (&[ErrorKind::InvalidArgument], Recovery::Acknowledged, |_| {}),
    ];
    let refused = |disk: &Sim, recovery, kinds: &[ErrorKind]| {
        let opened = on(disk).recovery(recovery).open(DIR, Mode::Append);
        let kind = opened.map(drop).unwrap_err().kind();
        assert!(kinds.contains(&kind), "{kind:?}");
        assert!(!files(disk).keys().any(|path| is_cut(path)), "{kind:?}");
    };
    let (whole, _) = world();
    flip_log(&whole);
    for (kinds, recovery, damage) in cases {
        let disk = whole.kill();
        damage(&disk);
        refused(&disk, recovery, kinds);
    }
    let other = Sim::new();
    ["/events", "/events/wal"].iter().for_each(|dir| other.create_dir(Path::new(dir)).unwrap());
    write(&other, WAL, no_log);
    refused(&other, Recovery::Spec, &[ErrorKind::NotALog]);
    // A reader writes nothing, whatever its options.
    let before = files(&whole);
    on(&whole).recovery(Recovery::Spec).open(DIR, Mode::Read).unwrap();
    assert_eq!(files(&whole), before);
}

/// Whether each replacing or deleting event hides its target, although the log lost the flags.
fn hides(found: &Events) -> Result<(), String> {
    let [old, new] = [1, 2].map(|at| event(9, at, 0, &[], &format!("profile {at}")).id);
    let request = request(0, 50, &note(5)).id;
    for (id, by) in [(old, new), (note(5).id, request)] {
        let is_live = found.get(&id).is_some_and(|(_, flags)| flags.is_live());
        if is_live && found.contains_key(&by) {
            return Err(format!("event {id} counts beside {by}"));
        }
    }
    Ok(())
}

/// Judge a store after an interrupted opening: the store opens, and the removed events were saved.
fn judge(damaged: &Damaged, disk: &Sim) -> Result<(), String> {
    let store = by_the_letter(disk).map_err(|e| format!("opening: {e:?}"))?;
    let found = given(&store)?;
    // Flags that only the log had may be lost.
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
fn crash_during_spec_recovery_loses_nothing_intact() {
    let mut count = 0;
    for damaged in of_logs() {
        let name = damaged.name;
        let opened = |disk: &Sim| drop(by_the_letter(disk).unwrap());
        for Left { call, ended, disk, .. } in at_every_call(&damaged.disk, opened) {
            count += 1;
            judge(&damaged, &disk)
                .unwrap_or_else(|why| panic!("{name}, call {call}, {ended}: {why}"));
        }
    }
    assert!(count > 200, "{count}");
}
