//! Transactions of the event store: what a commit stores, recognises and refuses.

mod beside;
mod crashes;

use std::collections::HashSet;
use std::sync::Arc;

use deedbook::jobs::Part;
use deedbook::nostr::{Check, Event, EventStore, Id, Include, Options};
use deedbook::storage::sim::Sim;
use deedbook::storage::{Access, Storage};
use deedbook::{Durability, Durable, ErrorKind, Mode, OnCorrupt, Result};

use crate::support::common;
use crate::support::crashes::cuts;
use crate::support::store::nostr_keys;
use crate::transactions::{JOB, of_app, of_no_application};

/// Pages of a segment: a transaction fits one, or spans some.
const SEGMENTS: [u64; 2] = [40, 4];
const STAGED_DIR: &str = "/events/.deedbook/staged";

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

fn open(sim: &Sim, pages: u64, mode: Mode) -> Result<EventStore> {
    options(sim, pages).open("/events", mode)
}

fn event(kind: u16, tags: &[&[&str]], content: &str) -> Event {
    let tags = tags.iter().map(|tag| tag.iter().map(|&part| part.to_owned()).collect());
    nostr_keys::sealed(Event {
        id: Id([0; 32]),
        pubkey: nostr_keys::author(3),
        created_at: 1_700_000_000,
        kind,
        tags: tags.collect(),
        content: content.to_owned(),
        sig: [7; 64],
    })
}

fn note(content: &str) -> Event {
    event(1, &[&["t", "note"]], content)
}

/// Events that are there before, the first three of them synced.
fn before() -> Vec<Event> {
    ["one", "two", "three", "not synced"].map(note).to_vec()
}

/// What a job stages, by its partitions: also what is there, what is staged twice, more than a page,
/// and a request to delete what is there.
fn staged() -> Vec<Vec<Event>> {
    let deletes = event(5, &[&["e", &note("two").id.to_string()]], "");
    let long = note(&"x".repeat(9000));
    let last = vec![long, note("a"), deletes, note("three"), note("d")];
    vec![vec![note("a"), note("bb")], vec![], last]
}

/// Of the transaction, what is new.
fn new() -> Vec<Event> {
    let (mut seen, staged) = (HashSet::new(), staged().concat());
    let known: HashSet<Id> = before().iter().map(|event| event.id).collect();
    staged.into_iter().filter(|e| !known.contains(&e.id) && seen.insert(e.id)).collect()
}

fn all() -> Vec<(Id, bool)> {
    let events = [before(), new()].concat();
    events.iter().map(|event| (event.id, event.content != "two")).collect()
}

fn before_only() -> Vec<(Id, bool)> {
    before().iter().map(|event| (event.id, true)).collect()
}

/// All events in their order, and which of them count.
fn read(store: &EventStore) -> Vec<(Id, bool)> {
    let walk = store.iter(Include::All, OnCorrupt::Raise).unwrap();
    walk.map(Result::unwrap).map(|found| (found.event.id, found.flags.is_live())).collect()
}

fn read_disk(sim: &Sim, pages: u64) -> Vec<(Id, bool)> {
    read(&open(sim, pages, Mode::Read).unwrap())
}

fn ids(found: &[(Id, bool)]) -> Vec<Id> {
    found.iter().map(|&(id, _)| id).collect()
}

fn stage(store: &EventStore, partition: u32, attempt: u64, events: &[Event]) -> Part {
    let mut stage = store.stage(JOB, partition, attempt).unwrap();
    events.iter().for_each(|event| stage.push(event).unwrap());
    assert_eq!((stage.len(), stage.is_empty()), (events.len() as u64, events.is_empty()));
    stage.finish().unwrap()
}

fn stage_all(store: &EventStore) -> Vec<Part> {
    // An attempt that is not committed.
    stage(store, 0, 90, &[note("dead")]);
    let numbered = staged().into_iter().enumerate().rev();
    numbered.map(|(i, events)| stage(store, i as u32, 10 + i as u64, &events)).collect()
}

/// A store with its events, and the parts of the job, the last of them first.
fn prepared(pages: u64) -> (Sim, EventStore, Vec<Part>) {
    let sim = Sim::new();
    let store = open(&sim, pages, Mode::Create).unwrap();
    store.append_many(&before()[..3]).unwrap();
    store.sync().unwrap();
    store.append(&before()[3]).unwrap();
    let parts = stage_all(&store);
    (sim, store, parts)
}

fn change_byte(sim: &Sim, path: &str) {
    let file = sim.open(path.as_ref(), Access::Write).unwrap();
    let (mut byte, middle) = ([0], file.len().unwrap() / 2);
    file.read_at(&mut byte, middle).unwrap();
    file.write_at(&[byte[0] ^ 1], middle).unwrap();
}

#[test]
fn events_are_stored_in_the_order_of_their_partitions_and_once() {
    for pages in SEGMENTS {
        let (sim, store, parts) = prepared(pages);
        let committed = store.commit_staged(&of_no_application(), &parts).unwrap();
        assert_eq!((committed.records, committed.repeated, committed.first), (5, false, None));
        assert_eq!(read(&store), all());
        // Durable, also where the writer syncs by itself.
        for cut in cuts(&sim, 50) {
            assert_eq!(read(&open(&cut, pages, Mode::Append).unwrap()), all());
        }
        assert!(store.staged().unwrap().is_empty(), "also the attempt that was not committed");
        // Without an id nothing says that it was committed, but the events are there.
        let again = store.commit_staged(&of_no_application(), &stage_all(&store)).unwrap();
        assert_eq!((again.records, again.repeated), (0, false));
        drop(store);
        assert_eq!(read_disk(&sim, pages), all());
    }
}

#[test]
fn what_cannot_be_committed_whole_leaves_the_store_as_it_was() {
    let path = format!("{STAGED_DIR}/{JOB}.2.0.12");
    for (what, kind) in [
        ("changed", ErrorKind::Corrupt),
        ("cut", ErrorKind::Corrupt),
        ("missing", ErrorKind::Missing),
        ("both attempts", ErrorKind::InvalidArgument),
    ] {
        let (sim, store, mut parts) = prepared(40);
        match what {
            "changed" => change_byte(&sim, &path),
            "cut" => sim.open(path.as_ref(), Access::Write).unwrap().set_len(100).unwrap(),
            "missing" => sim.remove(path.as_ref()).unwrap(),
            _ => parts.push(stage(&store, 0, 99, &[note("a")])),
        }
        let error = store.commit_staged(&of_app(1), &parts).unwrap_err();
        assert_eq!((error.kind(), error.durable()), (kind, Some(Durable::No)), "{error}");
        if what != "both attempts" {
            assert_eq!(error.path().unwrap().to_str().unwrap(), path, "{error}");
        }
        assert_eq!(read_disk(&sim, 40), before_only());
        // The same handle goes on, and the batch is staged again.
        assert!(store.discard_staged(JOB).unwrap(), "{what}");
        assert_eq!(store.commit_staged(&of_app(1), &stage_all(&store)).unwrap().records, 5);
        assert_eq!(read_disk(&sim, 40), all());
    }
}

// Promise: transaction-store.
#[test]
fn an_event_whose_id_is_not_its_hash_is_not_staged() {
    let (_, store, _) = prepared(40);
    let mut stage = store.stage("other", 0, 1).unwrap();
    let (good, mut bad) = (note("good"), note("bad"));
    bad.id = good.id;
    stage.push(&good).unwrap();
    let error = stage.push(&bad).unwrap_err();
    assert_eq!((error.kind(), error.durable()), (ErrorKind::InvalidArgument, Some(Durable::No)));
    for id in [good.id, note("bad").id] {
        assert!(error.to_string().contains(&id.to_string()), "{error}");
    }
    assert_eq!(stage.len(), 1);
    drop(stage);
    let jobs: Vec<_> = store.staged().unwrap().into_iter().map(|job| job.job).collect();
    assert_eq!(jobs, [JOB], "a file that is not finished goes with its stage");
}

/// Tasks stage with the options of their process, the driver commits with its own.
#[test]
fn events_are_encoded_for_the_store_that_commits_them() {
    let sim = Sim::new();
    let store = open(&sim, 40, Mode::Create).unwrap();
    let events = [note("short"), note(&"x".repeat(5000)), note(&"y".repeat(9000))];
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
    let (sim, store, _) = prepared(40);
    let reader = open(&sim, 40, Mode::Read).unwrap();
    let part = stage(&reader, 7, 1, &[note("from a reader")]);
    let error = reader.commit_staged(&of_app(1), std::slice::from_ref(&part)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ReadOnly);
    assert_eq!(reader.abandon_transaction().unwrap_err().kind(), ErrorKind::Locked);
    assert_eq!(store.commit_staged(&of_app(1), &[part]).unwrap().records, 1);
    store.close().unwrap();
    let closed = store.commit_staged(&of_app(2), &[]).unwrap_err();
    assert_eq!(closed.kind(), ErrorKind::Closed);
    assert_eq!(reader.transactions().unwrap()["etl"].version, 1);
}

/// On a real disk, with the index there, too: the intent as a dead process leaves it.
// Promise: transaction-store.
#[test]
fn an_intent_that_is_found_is_finished_once_the_index_can_be_asked() {
    let dir = tempfile::TempDir::new().unwrap();
    let path = dir.path().join("events");
    let store = EventStore::create(&path).unwrap();
    store.append_many(&before()).unwrap();
    let part = stage(&store, 0, 1, &[note("one"), note("a"), note("b")]);
    store.close().unwrap();
    let Part { bytes, sum, .. } = part;
    let lines = format!("job {JOB}\nid etl 4 -\nplace -\npart 0 0 1 {bytes} 3 {sum:08x} -\n");
    let intent = format!("{lines}crc {:08x}\n", common::crc32(lines.as_bytes()));
    std::fs::write(path.join(".deedbook/transaction"), intent).unwrap();
    let store = EventStore::append_to(&path).unwrap();
    let expected = [before(), vec![note("a"), note("b")]].concat();
    assert_eq!(ids(&read(&store)), expected.iter().map(|event| event.id).collect::<Vec<_>>());
    assert_eq!(store.find(&note("b").id).unwrap().unwrap().event, note("b"));
    assert!(store.commit_staged(&of_app(4), &[part]).unwrap().repeated);
    assert!(!path.join(".deedbook/transaction").exists());
}
