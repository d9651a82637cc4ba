//! Missing, wrong or older manifests and segments.

use crate::store::prelude::*;

/// Opening took a manifest of a later version for missing, overwrote it, and lost its contents.
#[test]
fn manifest_of_another_version_is_refused_unchanged() {
    for path in [MANIFEST, COPY] {
        let disk = closed(&notes(0..12));
        changed(&disk, path, |bytes| {
            let text = String::from_utf8(bytes.clone()).unwrap();
            let mut text = text.replace("\"version\": 1", "\"version\": 2");
            if path == COPY {
                let at = text.trim_end_matches('\n').rfind('\n').unwrap();
                let sum = crc32fast::hash(&text.as_bytes()[..at]);
                text.replace_range(at.., &format!("\ncrc {sum:08x}\n"));
            }
            *bytes = text.into_bytes();
        });
        let before = files(&disk);
        for refused_by in [
            on(&disk).open(DIR, Mode::Read).map(drop),
            on(&disk).open(DIR, Mode::Append).map(drop),
            mended(&disk, PLAIN).map(drop),
            copied(&disk, COPY_DIR).map(drop),
        ] {
            refused(refused_by, ErrorKind::Unsupported, "version 2, known is 1");
        }
        assert_eq!(files(&disk), before);
        assert!(!disk.is_dir(Path::new(COPY_DIR)));
    }
}

/// The number after the last one wrapped around, and the manifest contradicted itself.
#[test]
fn no_segment_is_made_after_the_last_number() {
    let (disk, on, store) = small();
    store.append_many(&notes(0..12)).unwrap();
    store.close().unwrap();
    drop(store);
    let mut last = manifest(&disk);
    last["next_segment_id"] = u32::MAX.into();
    write(&disk, MANIFEST, last.to_string().as_bytes());
    remove(&disk, COPY);
    let store = open(&on);
    let error = (12..2000).find_map(|number| store.append(&note(number)).err()).unwrap();
    assert!(error.to_string().contains("segment 4294967295 is the last number"), "{error}");
    drop(store);
    let store = on.open(DIR, Mode::Read).unwrap();
    assert_eq!(all(&store)[..12], notes(0..12));
}

// Promise: store-manifest.
#[test]
fn missing_wrong_or_older_manifest_is_rebuilt() {
    for copied in [true, false] {
        made_again(copied);
    }
}

fn made_again(copied: bool) {
    let (disk, on, store) = small();
    store.append_many(&notes(0..2)).unwrap();
    store.checkpoint().unwrap();
    let older = read(&disk, MANIFEST);
    one_by_one(&store, &notes(2..12));
    drop(store);
    let now = read(&disk, MANIFEST);
    let text = String::from_utf8(now.clone()).unwrap();
    let with = |from: &str, to: &str| Some(text.replace(from, to).into_bytes());
    let wrong = [
        None,
        Some(older),
        Some(vec![]),
        Some(b"{}".to_vec()),
        Some(now[..now.len() / 2].to_vec()),
        Some(vec![0; now.len()]),
        with("\"version\": 1", "\"version\": \"1\""),
        // The store's next compaction would have been number 0, older than the copy.
        with("\"compactions\": 0", "\"compactions\": 18446744073709551615"),
        with("\"total_deleted\": 0", "\"total_deleted\": 9223372036854775807"),
        with("\"id\": 0", "\"id\": 1"),
    ];
    for (number, wrong) in wrong.into_iter().enumerate() {
        let disk = disk.kill();
        match &wrong {
            None => remove(&disk, MANIFEST),
            Some(bytes) => write(&disk, MANIFEST, bytes),
        }
        if !copied {
            remove(&disk, COPY);
        }
        let on = on_disk(&on, &disk);
        let reader = on.open(DIR, Mode::Read).unwrap();
        assert_eq!(all(&reader), notes(0..12), "manifest {number}, a reader");
        // An older manifest does not name the last segments, which have events of their own, and stay.
        let rebuilt = copied || number != 1;
        let store = open(&on);
        everything(&store);
        assert_eq!(live(&store), notes(0..12), "manifest {number}");
        assert_eq!(store.opening().manifest_rebuilt, rebuilt, "manifest {number}");
        assert_eq!(store.opening().removed.len(), 0, "manifest {number}");
        store.append(&note(12)).unwrap();
        drop(store);
        let store = open(&on);
        assert_eq!(all(&store), notes(0..13), "manifest {number}");
        assert!(!store.opening().manifest_rebuilt);
    }
}

// Promise: store-manifest.
#[test]
fn missing_segment_is_reported_with_its_event_count() {
    let (disk, on, store) = small();
    store.append_many(&notes(0..3)).unwrap();
    store.append_many(&notes(3..6)).unwrap();
    drop(store);
    for id in [0, 1] {
        let disk = disk.kill();
        remove(&disk, &segment(id));
        is_missed(&on_disk(&on, &disk), id, ", the manifest says 3 events");
    }
    let twin = disk.kill();
    write(&twin, "/events/data/segments/data.0", &read(&twin, FIRST));
    let said = "segment 0 has two files";
    refused(on_disk(&on, &twin).open(DIR, Mode::Append), ErrorKind::Corrupt, said);
}

/// Opening refuses a missing segment, and a reader reports damage.
fn is_missed(on: &Options, id: u32, said: &str) {
    let expected = format!("segment {id} is missing{said}");
    refused(on.open(DIR, Mode::Append), ErrorKind::LostRecords, &expected);
    let reader = on.open(DIR, Mode::Read).unwrap();
    assert!(reader.opening().is_loss);
    let report = reader.verify(Check::Id).unwrap();
    assert!(report.first_faults.iter().any(|fault| fault.segment == Some(id)), "{report:?}");
}

/// A store of many segments, some with flagged events, and the notes without flags.
fn flagged() -> (Sim, Options, Vec<Event>) {
    let (disk, on, store) = small();
    one_by_one(&store, &notes(0..30));
    let gone = [1, 4, 11, 12];
    for number in gone {
        delete(&store, &note(number));
    }
    store.close().unwrap();
    let left = (0..30).filter(|number| !gone.contains(number)).map(note).collect();
    (disk, on, left)
}

/// Without a manifest, opening did not notice a missing segment: its events were lost silently.
#[test]
fn a_missing_segment_is_noticed_without_a_manifest() {
    let (disk, on, left) = flagged();
    let ids = ids(&disk);
    assert!(ids.len() > 5);
    for &id in &ids {
        for copied in [true, false] {
            let disk = disk.kill();
            remove(&disk, MANIFEST);
            if !copied {
                remove(&disk, COPY);
            }
            remove(&disk, &segment(id));
            // The store cannot notice a missing last segment that no other file names.
            if !copied && Some(&id) == ids.last() {
                continue;
            }
            is_missed(&on_disk(&on, &disk), id, "");
        }
    }
    // A compaction leaves gaps, which are no loss.
    let store = open(&on);
    let report = store.compact(0.0, false).unwrap();
    assert!(report.segments.len() > 2 && !report.written.is_empty());
    store.close().unwrap();
    remove_manifests(&disk);
    for mode in [Mode::Read, Mode::Append] {
        assert_eq!(sorted(&on.open(DIR, mode).unwrap()), left);
    }
}

/// The last segments contained only deleted events, and the compaction wrote no new segment: the rest looked like a
/// store that had lost segments.
#[test]
fn compaction_without_output_is_no_loss() {
    let (disk, on, store) = small();
    one_by_one(&store, &notes(0..9));
    let first = place(&store, &note(0)).segment;
    let of_first = |note: &Event| place(&store, note).segment == first;
    let (gone, left): (Vec<Event>, Vec<Event>) = notes(0..9).into_iter().partition(of_first);
    assert!(!gone.is_empty() && !left.is_empty());
    gone.iter().for_each(|note| delete(&store, note));
    assert_eq!(store.compact(0.0, false).unwrap().segments, [first]);
    store.close().unwrap();
    remove_manifests(&disk);
    assert_eq!(sorted(&on.open(DIR, Mode::Read).unwrap()), left);
    assert_eq!(sorted(&open(&on)), left);
}

/// An older manifest named segments that a compaction had removed: opening refused the store, though nothing was lost.
#[test]
fn an_older_manifest_does_not_undo_a_compaction() {
    let (disk, on, left) = flagged();
    let older = read(&disk, MANIFEST);
    let store = open(&on);
    store.compact(0.0, false).unwrap();
    store.append(&note(30)).unwrap();
    store.close().unwrap();
    let mut expected = left;
    expected.push(note(30));
    write(&disk, MANIFEST, &older);
    assert_eq!(sorted(&on.open(DIR, Mode::Read).unwrap()), expected);
    let without = disk.kill();
    let store = open(&on);
    assert!(store.opening().manifest_rebuilt);
    assert_eq!(store.opening().removed.len(), 0);
    assert_eq!(sorted(&store), expected);
    // Without the copy, nothing proves the compaction.
    remove(&without, COPY);
    refused(
        options(&without, Durability::Manual).open(DIR, Mode::Append),
        ErrorKind::LostRecords,
        "",
    );
}

/// The store ignores a copy older than the manifest, such as a copy from a backup.
#[test]
fn an_older_copy_is_passed_over() {
    let (disk, on, left) = flagged();
    let older = read(&disk, COPY);
    let store = open(&on);
    store.compact(0.0, false).unwrap();
    store.close().unwrap();
    assert_ne!(read(&disk, COPY), older);
    write(&disk, COPY, &older);
    let store = open(&on);
    assert!(!store.opening().manifest_rebuilt);
    assert_eq!(sorted(&store), left);
}

/// A compaction dropped an expired event, and crashed before it deleted the old segments. Only the old segments had the
/// event, so opening kept them, and doubled the other events.
#[test]
fn expired_event_keeps_no_compacted_segments() {
    let disk = Sim::new();
    let on = options(&disk, Durability::Manual).clock(clock);
    NOW.set(10);
    let expiring = event(4, 5, 1, &[&["expiration", "20"]], "for a moment");
    append_and_close(&on, &[note(0), note(1), expiring.clone()]);
    NOW.set(20);
    let store = open(&on);
    disk.record();
    assert_eq!(store.compact(0.0, false).unwrap().expired, 1);
    for moment in disk.recorded() {
        for lost in [&[][..], &[COPY], &[MANIFEST, COPY]] {
            let disk = moment.kill();
            lost.iter().for_each(|path| drop(disk.remove(Path::new(path))));
            for mode in [Mode::Read, Mode::Append] {
                let mut found = sorted(&on_disk(&on, &disk).open(DIR, mode).unwrap());
                found.retain(|event| event.id != expiring.id);
                assert_eq!(found, notes(0..2), "{lost:?}, {mode:?}");
            }
        }
    }
}

/// Opening cannot know the copy among two equal segments, and removes none.
#[test]
fn verify_reports_events_of_equal_segments() {
    let disk = closed(&notes(0..3));
    let mut twin = read(&disk, FIRST);
    twin[16..20].copy_from_slice(&1u32.to_be_bytes());
    write(&disk, &segment(1), &twin);
    remove_manifests(&disk);
    let report = reader(&disk).verify(Check::Id).unwrap();
    assert_eq!(report.faults, 3, "{report:?}");
    assert!(report.first_faults.iter().all(|fault| fault.reason.ends_with("is stored twice")));
    // The report names the second places.
    assert!(report.first_faults.iter().all(|fault| fault.segment == Some(1)), "{report:?}");
    let (report, found) = salvaged(&disk);
    assert_eq!((found.len(), report.copies), (3, 3 + 3), "{report:?}");
    drop(writer(&disk));
    assert_eq!(ids(&disk), [0, 1]);
}

/// An older manifest did not name a segment in the middle. The segment joined again, but the index had none of its
/// events, and queries did not find them.
#[test]
fn a_segment_that_joins_is_found_by_queries() {
    let (place, dir) = on_real_disk();
    let on = on_storage(Arc::new(Disk)).index_on_disk(true);
    let store = on.open(&dir, Mode::Append).unwrap();
    one_by_one(&store, &notes(0..120));
    store.close().unwrap();
    let manifest = dir.join("manifest.json");
    let text = fs::read(&manifest).unwrap();
    let mut value: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let segments = value["active_segments"].as_array_mut().unwrap();
    assert!(segments.len() > 2);
    segments.remove(1);
    fs::write(&manifest, value.to_string()).unwrap();
    fs::remove_file(dir.join(".deedbook/manifest")).unwrap();
    // Also remove the index.
    fs::remove_dir_all(dir.join(".deedbook/events")).unwrap();
    let without = dir.join("data/segments/data.1.seg");
    let aside = place.path().join("aside");
    fs::rename(&without, &aside).unwrap();
    on.open(&dir, Mode::Append).unwrap().close().unwrap();
    fs::rename(&aside, &without).unwrap();
    let store = on.open(&dir, Mode::Append).unwrap();
    for note in notes(0..120) {
        assert!(store.find(&note.id).unwrap().is_some(), "{}", note.content);
    }
    assert_eq!(queried(&store), 120);
}

/// The counts in the manifest were always 0.
#[test]
fn the_manifest_counts_what_compactions_dropped() {
    let disk = Sim::new();
    let on = options(&disk, Durability::Manual);
    let mut dropped = [0, 0];
    for round in 0..3u32 {
        let store = open(&on);
        let at = 100 * round;
        let note = event(1, at, 1, &[], "a note");
        let deletion = request(1, at + 1, &note);
        let profiles = (2..5).map(|later| event(2, at + later, 0, &[], "a profile"));
        let events: Vec<Event> = [note, deletion].into_iter().chain(profiles).collect();
        store.append_many(&events).unwrap();
        let report = store.compact(0.0, false).unwrap();
        assert_eq!(report.deleted, 1);
        assert_eq!(report.replaced, if round == 0 { 2 } else { 3 });
        dropped = [dropped[0] + report.deleted, dropped[1] + report.replaced];
        drop(store);
        let counts = manifest(&disk);
        assert_eq!([&counts["total_deleted"], &counts["total_replaced"]], [dropped[0], dropped[1]]);
    }
}
