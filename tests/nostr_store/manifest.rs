//! Manifests and segments that are missing, wrong or older.

use std::path::Path;

use deedbook::storage::Storage;
use deedbook::storage::sim::Sim;
use deedbook::{Durability, ErrorKind, Mode};

use crate::support::{all, note, notes, read, write};
use crate::world::{DIR, options};

const SEGMENT: &str = "/events/data/segments/data.0.seg";
const MANIFEST: &str = "/events/manifest.json";

#[test]
fn a_manifest_that_is_missing_wrong_or_older_is_made_from_the_segments() {
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
        Some(text.replace("\"version\": 1", "\"version\": 9").into_bytes()),
        Some(text.replace("\"id\": 0", "\"id\": 1").into_bytes()),
    ];
    for (number, wrong) in wrong.into_iter().enumerate() {
        let disk = disk.kill();
        match &wrong {
            None => disk.remove(Path::new(MANIFEST)).unwrap(),
            Some(bytes) => write(&disk, MANIFEST, bytes),
        }
        let on = options(&disk, Durability::Manual);
        let rebuilt = number != 1;
        // An older one does not name all: those have events of their own, and stay.
        let store = on.open(DIR, Mode::Append).unwrap();
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
        for mode in [Mode::Read, Mode::Append] {
            let error = options(&disk, Durability::Manual).open(DIR, mode).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::LostRecords, "{error}");
            let expected = format!("segment {id} is missing, the manifest says 3 events");
            assert!(error.message().contains(&expected), "{error}");
        }
    }
    let twin = disk.kill();
    write(&twin, "/events/data/segments/data.0", &read(&twin, SEGMENT));
    let error = options(&twin, Durability::Manual).open(DIR, Mode::Append).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.message().contains("segment 0 has two files"), "{error}");
}
