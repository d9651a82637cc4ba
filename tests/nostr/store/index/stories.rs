//! Regressions of the index, each with its story.

use crate::store::prelude::*;

/// The covered position of the index does not include flags. If a power cut lost the last change of the index, queries
/// never found an event with a removed flag.
// Promise: store-index.
#[test]
fn index_learns_missing_flags_from_the_log() {
    let place = tempfile::tempdir().unwrap();
    let (dir, kept) = (place.path().join("events"), place.path().join("kept"));
    let on = on_storage(Arc::new(Disk)).index_on_disk(true);
    let store = on.open(&dir, Mode::Append).unwrap();
    let at = stored(&store, &note(0));
    store.append(&note(1)).unwrap();
    store.set_flags(at, Flags::DELETED).unwrap();
    store.close().unwrap();
    copy(&dir.join(".deedbook/events"), &kept);
    let store = on.open(&dir, Mode::Append).unwrap();
    store.set_flags(at, Flags::default()).unwrap();
    store.append(&note(2)).unwrap();
    store.sync().unwrap();
    // After a power cut: the log and the segments are durable, and the index is older.
    let cut = place.path().join("cut");
    copy(&dir, &cut);
    fs::remove_dir_all(cut.join(".deedbook/events")).unwrap();
    copy(&kept, &cut.join(".deedbook/events"));
    crate::support::common::index_files::vouch_for(&cut.join(".deedbook/events"));
    drop(store);
    let store = on.open(&cut, Mode::Append).unwrap();
    assert_eq!(found(&store, "{}"), [note(2), note(1), note(0)]);
    assert_eq!(store.opening().indexed, 1);
}

/// A thread sends the appended events to the index. Meanwhile, such an event is found by its id, is a duplicate, and is
/// replaced and deleted like any other.
#[test]
fn events_queued_for_the_index_are_found() {
    let place = tempfile::tempdir().unwrap();
    let on = Options::new().small(true);
    let store = on.open(place.path().join("store"), Mode::Append).unwrap();
    let mut live = Vec::new();
    for number in 0..400u32 {
        let author = (number % 7) as u8;
        let next = match number % 3 {
            0 => event(author, number, 0, &[], "profile"),
            _ => event(author, number, 1, &[], "note"),
        };
        assert!(store.append(&next).unwrap().is_stored(), "{number}");
        assert!(matches!(store.append(&next).unwrap(), Outcome::Duplicate(_)), "{number}");
        live.retain(|event: &Event| (next.kind, event.kind, event.pubkey) != (0, 0, next.pubkey));
        live.push(next);
        if number % 50 == 49 {
            let gone = live.remove(live.len() - 20);
            let request = request(number_of(&gone.pubkey), number, &gone);
            store.append(&request).unwrap();
            live.push(request);
        }
        let is_found = |event: &Event| store.find(&event.id).unwrap().is_some();
        assert!(live.iter().rev().take(30).all(is_found), "{number}");
    }
    live.sort_by_key(|event| (std::cmp::Reverse(event.created_at), event.id));
    assert_eq!(found(&store, "{}"), live);
    store.compact(0.0, false).unwrap();
    assert_eq!(found(&store, "{}"), live);
    let next = event(3, 1_000, 0, &[], "profile");
    store.append(&next).unwrap();
    live.retain(|event| (event.kind, event.pubkey) != (0, next.pubkey));
    live.insert(0, next);
    assert_eq!(found(&store, "{}"), live);
    store.close().unwrap();
    assert_eq!(found(&on.open(place.path().join("store"), Mode::Append).unwrap(), "{}"), live);
}

/// A look-up that meets another event than the index names makes the index again from all events.
#[test]
fn the_index_knows_where_a_compaction_put_events() {
    let disk = Sim::new();
    let (storage, counts) = counting(&disk);
    let store = open(&on(&disk).storage(storage));
    append(&store, 0..30);
    delete(&store, &short(0));
    store.compact(0.0, false).unwrap();
    let before = counts[1].load(Ordering::Relaxed);
    assert_eq!(store.find(&short(20).id).unwrap().unwrap().event, short(20));
    let read = counts[1].load(Ordering::Relaxed) - before;
    assert!(read <= 2 * PAGE, "{read} bytes for one event");
}
