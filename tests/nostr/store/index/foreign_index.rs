//! The index of another store in the directory of a store.
//!
//! A bug hunt copied `.deedbook` of one store to another store with pages of the same sizes. The store trusted the
//! index: `get` found none of the stored events, or returned a wrong event, and a deletion request for events of the
//! other store deleted live events.
#![cfg(unix)]

use crate::store::prelude::*;

fn events_of(name: &str) -> Vec<Event> {
    let tag: &[&str] = &["t", name];
    (0..6).map(|n| event(1, 1000 + n, 1, &[tag], &format!("{name} {n}"))).collect()
}

fn store(dir: &Path, events: &[Event]) {
    let store = Options::new().open(dir, Mode::Create).unwrap();
    store.append_many(events).unwrap();
    store.close().unwrap();
}

fn open(dir: &Path) -> EventStore {
    Options::new().open(dir, Mode::Append).unwrap()
}

/// A store, with the index of another store.
fn mixed(place: &Path, own: &[Event], other: &[Event]) -> EventStore {
    store(&place.join("own"), own);
    store(&place.join("other"), other);
    let [index, foreign] = ["own", "other"].map(|name| place.join(name).join(".deedbook/events"));
    fs::remove_dir_all(&index).unwrap();
    copy(&foreign, &index);
    vouch_for(&index);
    open(&place.join("own"))
}

fn finds_all(store: &EventStore, events: &[Event], others: &[Event]) {
    for event in events {
        assert_eq!(store.find(&event.id).unwrap().map(|found| found.event).as_ref(), Some(event));
    }
    for event in others {
        assert_eq!(store.find(&event.id).unwrap(), None);
    }
    assert_eq!(queried(store), events.len());
}

#[test]
fn an_index_of_another_store_is_made_again() {
    let place = tempfile::tempdir().unwrap();
    let (own, other) = (events_of("own"), events_of("other"));
    let store = mixed(place.path(), &own, &other);
    assert_eq!(store.opening().indexed, 6);
    finds_all(&store, &own, &other);
    let ids: Vec<String> = other.iter().map(|event| event.id.to_string()).collect();
    let tags: Vec<Vec<&str>> = ids.iter().map(|id| vec!["e", id]).collect();
    let tags: Vec<&[&str]> = tags.iter().map(|tag| &tag[..]).collect();
    store.append(&event(1, 5000, 5, &tags, "delete")).unwrap();
    assert!(matches!(store.append(&own[4]).unwrap(), Outcome::Duplicate(_)));
    store.compact(0.0, false).unwrap();
    assert_eq!(all(&store).len(), 7);
}

/// Two branches of a copy, with equal first and last events.
#[test]
fn lookup_that_meets_wrong_event_rebuilds_index() {
    let common = events_of("common");
    let branch = |name| {
        let mut events = common.clone();
        events[1..5].clone_from_slice(&events_of(name)[1..5]);
        events
    };
    let (own, other) = (branch("own"), branch("other"));
    type Ask = fn(&EventStore, &[Event], &[Event]);
    let asks: [Ask; 4] = [
        |store, _, other| assert_eq!(store.find(&other[2].id).unwrap(), None),
        |store, own, _| assert_eq!(queried(store), own.len()),
        |store, _, other| {
            let outcome = store.append(&other[2]).unwrap();
            assert!(matches!(outcome, Outcome::Stored(_)), "{outcome:?}");
        },
        |store, _, other| {
            let id = other[2].id.to_string();
            store.append(&event(1, 5000, 5, &[&["e", &id]], "delete")).unwrap();
        },
    ];
    for (number, ask) in asks.into_iter().enumerate() {
        let place = tempfile::tempdir().unwrap();
        let store = mixed(place.path(), &own, &other);
        assert_eq!(store.opening().indexed, 0, "it names the same ends");
        ask(&store, &own, &other);
        for event in &own {
            let found = store.find(&event.id).unwrap().map(|found| found.event);
            assert_eq!(found.as_ref(), Some(event), "ask {number}");
        }
        assert_eq!(all(&store)[..6], own[..]);
    }
}

/// Two segments had swapped names. The repair rewrote their headers, but kept the index.
#[test]
fn a_repair_makes_the_index_again() {
    let (_place, dir) = on_real_disk();
    store(&dir, &events_of("own"));
    let marker = dir.join(".deedbook/events/marker");
    fs::write(&marker, "of another store").unwrap();
    Options::new().repair(&dir, Repair::default()).unwrap();
    assert!(!marker.exists());
    finds_all(&open(&dir), &events_of("own"), &[]);
}
