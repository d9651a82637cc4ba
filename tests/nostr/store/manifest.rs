//! Manifests and segments that are missing, wrong or older.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use deedbook::nostr::{Check, Event, EventStore, Filter, Flags, Include, Options, repair, salvage};
use deedbook::storage::sim::Sim;
use deedbook::storage::{Access, Disk, Storage};
use deedbook::{Durability, ErrorKind, Mode, OnCorrupt, Repair};

use crate::support::store::events::{
    all, changed, event, note, notes, options as options_on, read, write,
};
use crate::support::store::world::{DIR, options};

const SEGMENT: &str = "/events/data/segments/data.0.seg";
const MANIFEST: &str = "/events/manifest.json";
const COPY: &str = "/events/.deedbook/manifest";

fn segment(id: u32) -> String {
    format!("/events/data/segments/data.{id}.seg")
}

/// A manifest of a later version counted as missing and was written over, and what it alone said was lost.
#[test]
fn a_manifest_of_another_version_is_refused_and_nothing_changes() {
    for name in ["manifest.json", ".deedbook/manifest"] {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("events");
        let on = options_on(Arc::new(Disk));
        let store = on.open(&dir, Mode::Append).unwrap();
        store.append_many(&notes(0..12)).unwrap();
        store.close().unwrap();
        drop(store);
        let mut text = fs::read_to_string(dir.join(name)).unwrap();
        text = text.replace("\"version\": 1", "\"version\": 2");
        if name != "manifest.json" {
            let at = text.trim_end_matches('\n').rfind('\n').unwrap();
            let sum = crc32fast::hash(&text.as_bytes()[..at]);
            text.replace_range(at.., &format!("\ncrc {sum:08x}\n"));
        }
        fs::write(dir.join(name), text).unwrap();
        let before = files(&dir);
        let target = place.path().join("target");
        for error in [
            on.open(&dir, Mode::Read).err(),
            on.open(&dir, Mode::Append).err(),
            repair(&dir, &on, Repair::default()).err(),
            salvage(&dir, &target, &on, &mut |_, _| Ok(())).err(),
        ] {
            let error = error.unwrap();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
            assert!(error.to_string().contains("version 2, known is 1"), "{error}");
        }
        assert_eq!(files(&dir), before);
        assert!(!target.exists());
    }
}

/// Every file below a directory with its bytes.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let read = |path: PathBuf| match path.is_dir() {
        true => files(&path),
        false => [(path.clone(), fs::read(path).unwrap())].into(),
    };
    entries.flat_map(read).collect()
}

/// The number after the last one wrapped around, and the manifest contradicted itself.
#[test]
fn no_segment_is_made_after_the_last_number() {
    let disk = Sim::new();
    let on = options(&disk, Durability::Manual);
    let store = on.open(DIR, Mode::Append).unwrap();
    store.append_many(&notes(0..12)).unwrap();
    store.close().unwrap();
    drop(store);
    for path in [MANIFEST, COPY] {
        changed(&disk, path, |bytes| {
            let text = String::from_utf8(bytes.clone()).unwrap();
            let at = text.find("\"next_segment_id\": ").unwrap();
            let end = at + text[at..].find(',').unwrap();
            *bytes = [&text[..at], "\"next_segment_id\": 4294967295", &text[end..]]
                .concat()
                .into_bytes();
        });
    }
    disk.remove(Path::new(COPY)).unwrap();
    let store = on.open(DIR, Mode::Append).unwrap();
    let error = (12..2000).find_map(|number| store.append(&note(number)).err()).unwrap();
    assert!(error.to_string().contains("segment 4294967295 is the last number"), "{error}");
    drop(store);
    let store = on.open(DIR, Mode::Read).unwrap();
    assert_eq!(all(&store)[..12], notes(0..12));
}

// Promise: store-manifest.
#[test]
fn a_manifest_that_is_missing_wrong_or_older_is_made_again() {
    for copied in [true, false] {
        made_again(copied);
    }
}

fn made_again(copied: bool) {
    let disk = Sim::new();
    let on = options(&disk, Durability::Manual);
    let store = on.open(DIR, Mode::Append).unwrap();
    store.append_many(&notes(0..2)).unwrap();
    store.checkpoint().unwrap();
    let older = read(&disk, MANIFEST);
    for note in notes(2..12) {
        store.append(&note).unwrap();
    }
    drop(store);
    let now = read(&disk, MANIFEST);
    let text = String::from_utf8(now.clone()).unwrap();
    let wrong = [
        None,
        Some(older),
        Some(vec![]),
        Some(b"{}".to_vec()),
        Some(now[..now.len() / 2].to_vec()),
        Some(vec![0; now.len()]),
        Some(text.replace("\"version\": 1", "\"version\": \"1\"").into_bytes()),
        // Its next compaction would have been number 0, older than the copy.
        Some(
            text.replace("\"compactions\": 0", "\"compactions\": 18446744073709551615")
                .into_bytes(),
        ),
        Some(
            text.replace("\"total_deleted\": 0", "\"total_deleted\": 9223372036854775807")
                .into_bytes(),
        ),
        Some(text.replace("\"id\": 0", "\"id\": 1").into_bytes()),
    ];
    for (number, wrong) in wrong.into_iter().enumerate() {
        let disk = disk.kill();
        match &wrong {
            None => disk.remove(Path::new(MANIFEST)).unwrap(),
            Some(bytes) => write(&disk, MANIFEST, bytes),
        }
        if !copied {
            disk.remove(Path::new(COPY)).unwrap();
        }
        let on = options(&disk, Durability::Manual);
        let reader = on.open(DIR, Mode::Read).unwrap();
        assert_eq!(all(&reader), notes(0..12), "manifest {number}, a reader");
        // An older one does not name all. Those have events of their own, and stay.
        let rebuilt = copied || number != 1;
        let store = on.open(DIR, Mode::Append).unwrap();
        for note in notes(0..12) {
            assert!(store.find(&note.id).unwrap().is_some(), "manifest {number}: not found");
        }
        assert_eq!(all(&store), notes(0..12), "manifest {number}");
        assert_eq!(store.opening().manifest_rebuilt, rebuilt, "manifest {number}");
        assert_eq!(store.opening().removed.len(), 0, "manifest {number}");
        store.append(&note(12)).unwrap();
        drop(store);
        let store = on.open(DIR, Mode::Append).unwrap();
        assert_eq!(all(&store), notes(0..13), "manifest {number}");
        assert!(!store.opening().manifest_rebuilt);
    }
}

// Promise: store-manifest.
#[test]
fn a_missing_segment_is_named_with_the_events_it_had() {
    let disk = Sim::new();
    let on = options(&disk, Durability::Manual);
    let store = on.open(DIR, Mode::Append).unwrap();
    store.append_many(&notes(0..3)).unwrap();
    store.append_many(&notes(3..6)).unwrap();
    drop(store);
    for id in [0, 1] {
        let disk = disk.kill();
        disk.remove(Path::new(&format!("/events/data/segments/data.{id}.seg"))).unwrap();
        let on = options(&disk, Durability::Manual);
        let error = on.open(DIR, Mode::Append).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LostRecords, "{error}");
        let expected = format!("segment {id} is missing, the manifest says 3 events");
        assert!(error.message().contains(&expected), "{error}");
        reports_missing(&on.open(DIR, Mode::Read).unwrap(), id);
    }
    let twin = disk.kill();
    write(&twin, "/events/data/segments/data.0", &read(&twin, SEGMENT));
    let error = options(&twin, Durability::Manual).open(DIR, Mode::Append).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.message().contains("segment 0 has two files"), "{error}");
}

/// To a reader, a missing segment is damage.
fn reports_missing(reader: &EventStore, id: u32) {
    assert!(reader.opening().is_loss);
    let report = reader.verify(Check::Id).unwrap();
    assert!(report.first_faults.iter().any(|fault| fault.location.segment == id), "{report:?}");
}

/// A store of many segments, in some of which something is flagged, and its notes without those.
fn flagged(disk: &Sim) -> (Options, Vec<Event>) {
    let on = options(disk, Durability::Manual);
    let store = on.open(DIR, Mode::Append).unwrap();
    for note in notes(0..30) {
        store.append(&note).unwrap();
    }
    let gone = [1, 4, 11, 12];
    for number in gone {
        let at = store.find(&note(number).id).unwrap().unwrap().location;
        store.set_flags(at, Flags::DELETED).unwrap();
    }
    store.close().unwrap();
    let left = (0..30).filter(|number| !gone.contains(number)).map(note).collect();
    (on, left)
}

fn sorted(store: &EventStore) -> Vec<Event> {
    let mut found: Vec<Event> = store
        .iter(Include::Live, OnCorrupt::Raise)
        .unwrap()
        .map(|found| found.unwrap().event)
        .collect();
    found.sort_by_key(|event| event.created_at);
    found
}

/// Without a manifest, a missing segment was not noticed: its events were gone in silence.
#[test]
fn a_missing_segment_is_noticed_without_a_manifest() {
    let disk = Sim::new();
    let (_, left) = flagged(&disk);
    let ids: Vec<u32> = (0..60).filter(|id| is_there(&disk, *id)).collect();
    assert!(ids.len() > 5);
    for &id in &ids {
        for copied in [true, false] {
            let disk = disk.kill();
            disk.remove(Path::new(MANIFEST)).unwrap();
            if !copied {
                disk.remove(Path::new(COPY)).unwrap();
            }
            disk.remove(Path::new(&segment(id))).unwrap();
            // What no other file names may be missing at the end.
            if !copied && Some(&id) == ids.last() {
                continue;
            }
            let on = options(&disk, Durability::Manual);
            let error = on.open(DIR, Mode::Append).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::LostRecords, "{id}, {copied}: {error}");
            let expected = format!("segment {id} is missing");
            assert!(error.message().contains(&expected), "{error}");
            reports_missing(&on.open(DIR, Mode::Read).unwrap(), id);
        }
    }
    // A gap that a compaction left is none.
    let store = options(&disk, Durability::Manual).open(DIR, Mode::Append).unwrap();
    let report = store.compact(0.0, false).unwrap();
    assert!(report.segments.len() > 2 && !report.written.is_empty());
    store.close().unwrap();
    disk.remove(Path::new(MANIFEST)).unwrap();
    disk.remove(Path::new(COPY)).unwrap();
    for mode in [Mode::Read, Mode::Append] {
        let store = options(&disk, Durability::Manual).open(DIR, mode).unwrap();
        assert_eq!(sorted(&store), left);
    }
}

fn is_there(disk: &Sim, id: u32) -> bool {
    disk.open(Path::new(&segment(id)), Access::Read).is_ok()
}

/// The last segments held nothing but deleted events and went without a new one: what was left looked
/// like a store that had lost them.
#[test]
fn a_compaction_that_leaves_nothing_is_told_from_a_loss() {
    let disk = Sim::new();
    let on = options(&disk, Durability::Manual);
    let store = on.open(DIR, Mode::Append).unwrap();
    for note in notes(0..9) {
        store.append(&note).unwrap();
    }
    let first = store.find(&note(0).id).unwrap().unwrap().location.segment;
    let of_first = |number: &u32| {
        let found = store.find(&note(*number).id).unwrap().unwrap();
        found.location.segment == first
    };
    let (gone, left): (Vec<u32>, Vec<u32>) = (0..9).partition(of_first);
    assert!(!gone.is_empty() && !left.is_empty());
    for number in gone {
        let at = store.find(&note(number).id).unwrap().unwrap().location;
        store.set_flags(at, Flags::DELETED).unwrap();
    }
    assert_eq!(store.compact(0.0, false).unwrap().segments, [first]);
    store.close().unwrap();
    disk.remove(Path::new(MANIFEST)).unwrap();
    disk.remove(Path::new(COPY)).unwrap();
    let left: Vec<Event> = left.into_iter().map(note).collect();
    assert_eq!(sorted(&on.open(DIR, Mode::Read).unwrap()), left);
    assert_eq!(sorted(&on.open(DIR, Mode::Append).unwrap()), left);
}

/// An older manifest named what a compaction had removed since: the store was refused, though it lacked
/// nothing.
#[test]
fn an_older_manifest_does_not_undo_a_compaction() {
    let disk = Sim::new();
    let (on, left) = flagged(&disk);
    let older = read(&disk, MANIFEST);
    let store = on.open(DIR, Mode::Append).unwrap();
    store.compact(0.0, false).unwrap();
    store.append(&note(30)).unwrap();
    store.close().unwrap();
    let mut expected = left;
    expected.push(note(30));
    write(&disk, MANIFEST, &older);
    assert_eq!(sorted(&on.open(DIR, Mode::Read).unwrap()), expected);
    let without = disk.kill();
    let store = on.open(DIR, Mode::Append).unwrap();
    assert!(store.opening().manifest_rebuilt);
    assert_eq!(store.opening().removed.len(), 0);
    assert_eq!(sorted(&store), expected);
    // Nothing proves it without the copy.
    without.remove(Path::new(COPY)).unwrap();
    let error = options(&without, Durability::Manual).open(DIR, Mode::Append).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LostRecords, "{error}");
}

/// A copy that is older than the manifest, as one from a backup, says nothing.
#[test]
fn an_older_copy_is_passed_over() {
    let disk = Sim::new();
    let (on, left) = flagged(&disk);
    let older = read(&disk, COPY);
    let store = on.open(DIR, Mode::Append).unwrap();
    store.compact(0.0, false).unwrap();
    store.close().unwrap();
    assert_ne!(read(&disk, COPY), older);
    write(&disk, COPY, &older);
    let store = on.open(DIR, Mode::Append).unwrap();
    assert!(!store.opening().manifest_rebuilt);
    assert_eq!(sorted(&store), left);
}

/// A compaction dropped an event whose time was over, and died before it deleted the old segments. In
/// these that event was one of their own, so that they stayed, and the others were there twice.
#[test]
fn an_expired_event_does_not_keep_the_segments_of_a_finished_compaction() {
    let disk = Sim::new();
    let on = options(&disk, Durability::Manual);
    let soon = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + 2;
    let expiring = event(4, 5, 1, &[&["expiration", &soon.to_string()]], "for a moment");
    let store = on.open(DIR, Mode::Append).unwrap();
    store.append_many(&notes(0..2)).unwrap();
    assert!(store.append(&expiring).unwrap().is_stored());
    store.close().unwrap();
    let old = read(&disk, SEGMENT);
    std::thread::sleep(Duration::from_secs(3));
    let store = on.open(DIR, Mode::Append).unwrap();
    assert_eq!(store.compact(0.0, false).unwrap().expired, 1);
    store.close().unwrap();
    // As a crash leaves it.
    write(&disk, SEGMENT, &old);
    for lost in [&[][..], &[COPY], &[MANIFEST, COPY]] {
        let disk = disk.kill();
        lost.iter().for_each(|path| disk.remove(Path::new(path)).unwrap());
        let on = options(&disk, Durability::Manual);
        for mode in [Mode::Read, Mode::Append] {
            let store = on.open(DIR, mode).unwrap();
            let found: Vec<Event> = sorted(&store);
            let notes: Vec<Event> = found.into_iter().filter(|e| e.id != expiring.id).collect();
            assert_eq!(notes, self::notes(0..2), "{lost:?}, {mode:?}");
        }
    }
}

/// Two segments with the same events, of which each has one that the other lost: none may go, and both
/// would double what they share.
#[test]
fn damaged_copies_are_refused_and_not_doubled() {
    let disk = Sim::new();
    let on = options(&disk, Durability::Manual);
    let store = on.open(DIR, Mode::Append).unwrap();
    store.append_many(&notes(0..3)).unwrap();
    store.close().unwrap();
    let mut twin = read(&disk, SEGMENT);
    twin[16..20].copy_from_slice(&1u32.to_be_bytes());
    twin[2 * 4096 + 60] ^= 1;
    write(&disk, &segment(1), &twin);
    changed(&disk, SEGMENT, |bytes| bytes[4096 + 60] ^= 1);
    disk.remove(Path::new(MANIFEST)).unwrap();
    disk.remove(Path::new(COPY)).unwrap();
    for mode in [Mode::Read, Mode::Append] {
        let error = on.open(DIR, mode).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert!(error.message().contains("segments {0} and {1} have the same events"), "{error}");
    }
    assert!(is_there(&disk, 0) && is_there(&disk, 1));
}

/// An older manifest did not name a segment in the middle. Its events came back, but the index, which
/// went on after it, had none of them: queries did not find them.
#[test]
fn a_segment_that_joins_is_found_by_queries() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("events");
    let on = options_on(std::sync::Arc::new(deedbook::storage::Disk)).index_on_disk(true);
    let store = on.open(&dir, Mode::Append).unwrap();
    for note in notes(0..120) {
        store.append(&note).unwrap();
    }
    store.close().unwrap();
    let manifest = dir.join("manifest.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let segments = value["active_segments"].as_array_mut().unwrap();
    assert!(segments.len() > 2);
    segments.remove(1);
    std::fs::write(&manifest, value.to_string()).unwrap();
    std::fs::remove_file(dir.join(".deedbook/manifest")).unwrap();
    // What the index knows of it is gone, too.
    std::fs::remove_dir_all(dir.join(".deedbook/events")).unwrap();
    let without = dir.join("data/segments/data.1.seg");
    let aside = place.path().join("aside");
    std::fs::rename(&without, &aside).unwrap();
    on.open(&dir, Mode::Append).unwrap().close().unwrap();
    std::fs::rename(&aside, &without).unwrap();
    let store = on.open(&dir, Mode::Append).unwrap();
    for note in notes(0..120) {
        assert!(store.find(&note.id).unwrap().is_some(), "{}", note.content);
    }
    assert_eq!(store.query(&[Filter::default()]).unwrap().count(), 120);
}

/// They stood in the manifest as zeros, whatever was dropped.
#[test]
fn the_manifest_counts_what_compactions_dropped() {
    let disk = Sim::new();
    let on = options(&disk, Durability::Manual);
    let mut dropped = [0, 0];
    for round in 0..3u32 {
        let store = on.open(DIR, Mode::Append).unwrap();
        let at = 100 * round;
        let note = event(1, at, 1, &[], "a note");
        let deletion = event(1, at + 1, 5, &[&["e", &note.id.to_string()]], "");
        let profiles = (2..5).map(|later| event(2, at + later, 0, &[], "a profile"));
        let events: Vec<Event> = [note, deletion].into_iter().chain(profiles).collect();
        store.append_many(&events).unwrap();
        let report = store.compact(0.0, false).unwrap();
        assert_eq!(report.deleted, 1);
        assert_eq!(report.replaced, if round == 0 { 2 } else { 3 });
        dropped = [dropped[0] + report.deleted, dropped[1] + report.replaced];
        drop(store);
        let text: serde_json::Value = serde_json::from_slice(&read(&disk, MANIFEST)).unwrap();
        assert_eq!([&text["total_deleted"], &text["total_replaced"]], [dropped[0], dropped[1]]);
    }
}
