//! Transactions of the event store: stored, recognised and refused commits.

mod beside;

use deedbook::nostr::{Check, Event, Id, Include, Options};

use super::*;
use crate::support::store::nostr_keys;

/// Pages of a segment: a transaction fits one, or spans some.
pub const SEGMENTS: [u64; 2] = [40, 4];
const KIND: Kind = Kind::Events(40);

fn options(sim: &Sim, pages: u64) -> Options {
    Options::new()
        .storage(Arc::new(sim.clone()))
        .durability(Durability::Manual)
        .segment_bytes(pages * 4096)
        .wal_segment_bytes(32 << 10)
        .checkpoint_bytes(64 << 10)
        .index_on_disk(false)
        .small(true)
}

pub fn open(sim: &Sim, pages: u64, mode: Mode) -> Result<EventStore> {
    options(sim, pages).open("/events", mode)
}

/// An event with this content: a note, or a request to delete another note, `delete CONTENT`.
pub fn event(content: &str) -> Event {
    let (kind, tag) = match content.strip_prefix("delete ") {
        Some(deleted) => (5, ["e".to_owned(), event(deleted).id.to_string()]),
        None => (1, ["t".to_owned(), "note".to_owned()]),
    };
    nostr_keys::sealed(Event {
        id: Id([0; 32]),
        pubkey: nostr_keys::author(3),
        created_at: 1_700_000_000,
        kind,
        tags: std::iter::once(tag.to_vec()).collect(),
        content: content.to_owned(),
        sig: [7; 64],
    })
}

pub fn read(store: &EventStore) -> Vec<String> {
    let walk = store.iter(Include::All, OnCorrupt::Raise).unwrap().map(Result::unwrap);
    walk.map(|found| match found.flags.is_live() {
        true => found.event.content,
        false => format!("({})", found.event.content),
    })
    .collect()
}

pub fn stage(store: &EventStore, partition: u32, attempt: u64, events: &[Event]) -> Part {
    let mut stage = store.stage(JOB, partition, attempt).unwrap();
    events.iter().for_each(|event| stage.push(event).unwrap());
    assert_eq!((stage.len(), stage.is_empty()), (events.len() as u64, events.is_empty()));
    stage.finish().unwrap()
}

fn prepared() -> (Sim, EventStore, Vec<Part>) {
    match crate::transactions::prepared(KIND) {
        (sim, Store::Events(store), parts) => (sim, store, parts),
        _ => unreachable!(),
    }
}

// Promise: transaction-store.
#[test]
fn staging_refuses_an_event_with_a_wrong_id() {
    let (_, store, _) = prepared();
    let mut stage = store.stage("other", 0, 1).unwrap();
    let (good, mut bad) = (event("good"), event("bad"));
    bad.id = good.id;
    stage.push(&good).unwrap();
    let error = stage.push(&bad).unwrap_err();
    assert_eq!((error.kind(), error.durable()), (ErrorKind::InvalidArgument, Some(Durable::No)));
    for id in [good.id, event("bad").id] {
        assert!(error.to_string().contains(&id.to_string()), "{error}");
    }
    assert_eq!(stage.len(), 1);
    drop(stage);
    let jobs: Vec<_> = store.staged().unwrap().into_iter().map(|job| job.job).collect();
    assert_eq!(jobs, [JOB], "a file that is not finished goes with its stage");
}

/// Tasks stage with the options of their process, the driver commits with its own.
#[test]
fn a_commit_encodes_events_for_its_own_store() {
    let sim = Sim::new();
    let store = open(&sim, 40, Mode::Create).unwrap();
    let events = [event("short"), event(&"x".repeat(5000)), event(&"y".repeat(9000))];
    let part = stage(&store, 0, 1, &events);
    drop(store);
    let other = options(&sim, 40).page_bytes(8192).checksums(false);
    let small = other.clone().event_bytes_max(4096);
    let store = small.open("/events", Mode::Append).unwrap();
    let error = store.commit_staged(&of_app(1), std::slice::from_ref(&part)).unwrap_err();
    assert_eq!((error.kind(), error.durable()), (ErrorKind::TooLarge, Some(Durable::No)));
    assert!(error.to_string().contains(&events[1].id.to_string()), "{error}");
    assert!(read(&store).is_empty());
    drop(store);
    let store = other.open("/events", Mode::Append).unwrap();
    assert_eq!(store.commit_staged(&of_app(1), &[part]).unwrap().records, 3);
    let found: Vec<_> = store.iter(Include::All, OnCorrupt::Raise).unwrap().collect();
    let found: Vec<Event> = found.into_iter().map(|found| found.unwrap().event).collect();
    assert_eq!(found, events);
    assert!(store.verify(Check::Id).unwrap().ok());
}

#[test]
fn a_reader_stages_and_commits_nothing() {
    let (sim, store, _) = prepared();
    let reader = open(&sim, 40, Mode::Read).unwrap();
    let part = stage(&reader, 7, 1, &[event("from a reader")]);
    let error = reader.commit_staged(&of_app(1), std::slice::from_ref(&part)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ReadOnly);
    assert_eq!(reader.abandon_transaction().unwrap_err().kind(), ErrorKind::Locked);
    assert_eq!(store.commit_staged(&of_app(1), &[part]).unwrap().records, 1);
    store.close().unwrap();
    let closed = store.commit_staged(&of_app(2), &[]).unwrap_err();
    assert_eq!(closed.kind(), ErrorKind::Closed);
    assert_eq!(reader.transactions().unwrap()["etl"].version, 1);
}

/// On a real disk, with the index: the intent as left by a dead process.
// Promise: transaction-store.
#[test]
fn opening_a_store_finishes_a_stored_intent() {
    let dir = tempfile::TempDir::new().unwrap();
    let path = dir.path().join("events");
    let store = EventStore::create(&path).unwrap();
    store.append_many(&BEFORE.map(event)).unwrap();
    let part = stage(&store, 0, 1, &[event("one"), event("a"), event("b")]);
    store.close().unwrap();
    let Part { bytes, sum, .. } = part;
    let lines = format!("job {JOB}\nid etl 4 -\nplace -\npart 0 0 1 {bytes} 3 {sum:08x} -\n");
    let intent = format!("{lines}crc {:08x}\n", crc32(lines.as_bytes()));
    std::fs::write(path.join(".deedbook/transaction"), intent).unwrap();
    let store = EventStore::append_to(&path).unwrap();
    assert_eq!(read(&store), [&BEFORE[..], &["a", "b"]].concat());
    assert_eq!(store.find(&event("b").id).unwrap().unwrap().event, event("b"));
    assert!(store.commit_staged(&of_app(4), &[part]).unwrap().repeated);
    assert!(!path.join(".deedbook/transaction").exists());
}

#[test]
fn a_commit_finishes_after_a_failed_second_piece() {
    let events: Vec<Event> = (0..4200).map(|n| event(&format!("note {n}"))).collect();
    let begun = || {
        let sim = Sim::new();
        let store = open(&sim, 20_000, Mode::Create).unwrap();
        let part = stage(&store, 0, 1, &events);
        (sim, store, part)
    };
    let (sim, store, part) = begun();
    let calls = sim.calls();
    assert_eq!(store.commit_staged(&of_app(1), &[part]).unwrap().records, 4200);
    let calls = sim.calls() - calls;
    let mut met = 0;
    for at in (1..=calls).rev().step_by(3).take(40) {
        let (sim, store, part) = begun();
        sim.inject(Fault::once(at, What::Error(io::ErrorKind::Other)));
        let result = store.commit_staged(&of_app(1), std::slice::from_ref(&part));
        sim.heal();
        let seen = store.iter(Include::All, OnCorrupt::Raise).unwrap().count();
        if let Err(error) = &result {
            assert!(seen == 0 || error.durable() != Some(Durable::No), "{seen} seen: {error}");
            met += usize::from((4096..4200).contains(&seen));
        }
        drop(store);
        let store = open(&sim, 20_000, Mode::Append).unwrap();
        store.commit_staged(&of_app(1), &[part]).unwrap();
        assert!(read(&store).iter().eq(events.iter().map(|event| &event.content)));
    }
    assert!(met > 0, "no call between the pieces failed");
}
