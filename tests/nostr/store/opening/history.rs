//! The store keeps its history setting: an opening without the option changes nothing.

use deedbook::nostr::History;

use crate::store::prelude::*;

const LIVE: Flags = Flags(0);

fn version(at: u32) -> Event {
    event(9, at, 0, &[], &format!("profile {at}"))
}

fn keeping(disk: &Sim) -> EventStore {
    on(disk).history(History::Keep).open(DIR, Mode::Append).unwrap()
}

fn versions(store: &EventStore) -> Vec<(u32, Flags)> {
    let mut all = walked(store, Include::All);
    all.retain(|found| found.event.kind == 0);
    let live = all.iter().filter(|found| found.flags.is_live()).count();
    assert_eq!(found(store, r#"{"kinds": [0]}"#).len(), live);
    all.iter().map(|found| (found.event.created_at, found.flags)).collect()
}

const BOTH: [(u32, Flags); 2] = [(1, LIVE), (2, LIVE)];

/// A note before a checkpoint, and two kept versions of a profile after it, all durable. Then the process was killed.
fn kept() -> Sim {
    let disk = Sim::new();
    let store = keeping(&disk);
    store.append(&note(0)).unwrap();
    store.checkpoint().unwrap();
    store.append_many(&[version(1), version(2)]).unwrap();
    store.sync().unwrap();
    let killed = disk.kill();
    assert_eq!(versions(&store), BOTH);
    killed
}

/// The disks that a process crash and power cuts may leave.
fn states(disk: &Sim) -> Vec<Sim> {
    let crashes = disk.crashes();
    let ends = [crashes.nth(0), crashes.nth(crashes.count() - 1)];
    let choices = ends.into_iter().chain((0..4).map(|seed| crashes.sample(mix(seed))));
    choices.map(|choice| crashes.build(&choice)).chain([disk.kill()]).collect()
}

/// The store forgot its history setting. After a crash of the writer, an opening without the option flagged all
/// versions but the newest, and a compaction dropped them.
#[test]
fn kept_versions_stay_at_every_later_opening() {
    for lost in [&[][..], &[MANIFEST], &[COPY], &[COPY, "/events/.deedbook/lock"]] {
        for disk in states(&kept()) {
            lost.iter().for_each(|path| drop(disk.remove(Path::new(path))));
            let store = writer(&disk);
            assert_eq!((store.history(), store.options().history), (History::Keep, None));
            assert_eq!(versions(&store), BOTH, "{lost:?}");
            assert_eq!(store.compact(0.0, false).unwrap().segments, [0u32; 0], "{lost:?}");
            stored(&store, &version(3));
            store.sync().unwrap();
            let next = disk.kill();
            drop(store);
            let store = writer(&next);
            assert_eq!(versions(&store), [(1, LIVE), (2, LIVE), (3, LIVE)], "{lost:?}");
        }
    }
}

/// Another program writes a manifest without the setting, but the copy has the setting.
#[test]
fn foreign_manifest_does_not_change_the_history() {
    let disk = kept();
    changed(&disk, MANIFEST, |bytes| {
        let mut value: serde_json::Value = serde_json::from_slice(bytes).unwrap();
        let object = value.as_object_mut().unwrap();
        assert!(object.remove("compactions").is_some());
        assert_eq!(object.remove("history").unwrap(), "keep");
        *bytes = value.to_string().into_bytes();
    });
    let store = writer(&disk);
    assert_eq!((store.history(), versions(&store)), (History::Keep, BOTH.to_vec()));
    store.close().unwrap();
    for path in [MANIFEST, COPY] {
        let text = String::from_utf8(read(&disk, path)).unwrap();
        assert!(text.contains("\"history\": \"keep\""), "{text}");
    }
}

/// A flipped bit renamed one field: the manifest lost the history setting, and only the checksummed copy had the
/// setting. The next append hid the versions, and a compaction dropped them.
#[test]
fn flipped_manifest_bit_does_not_change_the_history() {
    let disk = Sim::new();
    let store = keeping(&disk);
    store.append_many(&[version(1), version(2)]).unwrap();
    store.close().unwrap();
    let text = String::from_utf8(read(&disk, MANIFEST)).unwrap();
    let at = text.find("\"history\"").unwrap() + 5;
    changed(&disk, MANIFEST, |bytes| bytes[at] ^= 1);
    let reader = reader(&disk);
    assert_eq!((reader.history(), reader.opening().manifest_rebuilt), (History::Keep, true));
    let store = writer(&disk);
    assert_eq!((store.history(), store.opening().manifest_rebuilt), (History::Keep, true));
    store.append(&version(3)).unwrap();
    assert_eq!(store.compact(0.0, false).unwrap().replaced, 0);
    assert_eq!(versions(&store), [(1, LIVE), (2, LIVE), (3, LIVE)]);
    store.close().unwrap();
    assert_eq!(String::from_utf8(read(&disk, COPY)).unwrap().matches("\"keep\"").count(), 1);
    assert!(!writer(&disk).opening().manifest_rebuilt);
}

#[test]
fn a_repair_keeps_what_the_store_keeps() {
    for is_damaged in [false, true] {
        for lost in [None, Some(MANIFEST)] {
            let disk = kept();
            lost.iter().for_each(|path| remove(&disk, path));
            if is_damaged {
                changed(&disk, &segment(0), |bytes| bytes[PAGE + 80] ^= 1);
            }
            let may = if is_damaged { ACCEPT } else { PLAIN };
            let report = mended(&disk, may).unwrap();
            assert!(report.mended && report.loss.is_some() == is_damaged, "{report:?}");
            let store = writer(&disk);
            assert_eq!((store.history(), versions(&store)), (History::Keep, BOTH.to_vec()));
        }
    }
}

#[test]
fn salvage_keeps_the_history_unless_asked_otherwise() {
    let dropped = vec![(1, Flags::REPLACED), (2, LIVE)];
    for lost in [&[][..], &[MANIFEST], &[COPY]] {
        let asked = [
            (None, History::Keep, BOTH.to_vec()),
            (Some(History::Drop), History::Drop, dropped.clone()),
        ];
        for (asked, history, expected) in asked {
            let disk = kept();
            lost.iter().for_each(|path| remove(&disk, path));
            let mut options = on(&disk);
            options.history = asked;
            let report = salvaged_by(&options);
            assert_eq!(report.events, 3, "{report:?}");
            let copy = on(&disk).open(COPY_DIR, Mode::Append).unwrap();
            assert_eq!((copy.history(), versions(&copy)), (history, expected), "{lost:?}");
        }
    }
}

#[test]
fn new_history_applies_from_its_opening_on() {
    let disk = Sim::new();
    let store = writer(&disk);
    assert_eq!(store.history(), History::Drop);
    store.append_many(&[version(1), version(2)]).unwrap();
    store.close().unwrap();
    let reader = on(&disk).history(History::Keep).open(DIR, Mode::Read).unwrap();
    assert_eq!(reader.history(), History::Drop, "a reader asks for nothing");
    let store = keeping(&disk);
    store.append(&version(3)).unwrap();
    store.sync().unwrap();
    let kept = [(1, Flags::REPLACED), (2, LIVE), (3, LIVE)];
    for disk in states(&disk) {
        let store = writer(&disk);
        assert_eq!((store.history(), versions(&store)), (History::Keep, kept.to_vec()));
    }
    drop(store);
    let store = on(&disk).history(History::Drop).open(DIR, Mode::Append).unwrap();
    assert_eq!(versions(&store), kept);
    store.append(&version(4)).unwrap();
    assert_eq!(versions(&store)[2..], [(3, Flags::REPLACED), (4, LIVE)]);
    store.close().unwrap();
    assert_eq!(writer(&disk).history(), History::Drop);
}

/// The opening completes the log's events under the old history, and then stores the new history.
#[test]
fn crash_in_a_history_change_drops_nothing_kept() {
    let disk = kept();
    disk.record();
    let store = on(&disk).history(History::Drop).open(DIR, Mode::Append).unwrap();
    let moments = disk.recorded();
    assert_eq!((store.history(), versions(&store)), (History::Drop, BOTH.to_vec()));
    assert!(moments.len() > 10);
    for (call, moment) in moments.iter().enumerate() {
        for state in states(moment) {
            let store = writer(&state);
            assert_eq!(versions(&store), BOTH, "call {call}");
        }
    }
}
