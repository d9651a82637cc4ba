//! Transactions of the event store: what tasks staged is stored once, whatever dies.

use std::collections::HashSet;
use std::io::ErrorKind as Io;
use std::sync::Arc;

use deedbook::nostr::{Event, EventStore, Id, Include, Options};
use deedbook::storage::sim::{Fault, Sim, What};
use deedbook::storage::{Access, Storage};
use deedbook::{Durability, Durable, ErrorKind, Mode, OnCorrupt, Part, Result};

use crate::{JOB, of_app, of_nobody, of_query};

/// Pages of a segment: a transaction fits one, or spans some.
const SEGMENTS: [u64; 2] = [40, 4];
/// States after one power cut that are tried, of those there are.
const CUTS: u64 = 12;
const STAGED_DIR: &str = "/events/.deedbook/staged";

fn options(sim: &Sim, pages: u64) -> Options {
    Options {
        storage: Arc::new(sim.clone()),
        durability: Some(Durability::Manual),
        segment_bytes: pages * 4096,
        wal_segment_bytes: 32 << 10,
        checkpoint_bytes: 64 << 10,
        index_on_disk: false,
        small: true,
        ..Options::default()
    }
}

fn open(sim: &Sim, pages: u64, mode: Mode) -> Result<EventStore> {
    options(sim, pages).open("/events", mode)
}

fn event(kind: u16, tags: &[&[&str]], content: &str) -> Event {
    let tags = tags.iter().map(|tag| tag.iter().map(|&part| part.to_owned()).collect());
    let mut event = Event {
        id: Id([0; 32]),
        pubkey: [3; 32],
        created_at: 1_700_000_000,
        kind,
        tags: tags.collect(),
        content: content.to_owned(),
        sig: [7; 64],
    };
    event.id = event.canonical_id();
    event
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
    store.commit().unwrap();
    store.append(&before()[3]).unwrap();
    let parts = stage_all(&store);
    (sim, store, parts)
}

/// The states of the disk during a commit, and the parts.
fn recorded(pages: u64) -> (Vec<Sim>, Vec<Part>) {
    let (sim, store, parts) = prepared(pages);
    sim.record();
    store.commit_staged(&of_query("q", 0), &parts).unwrap();
    (sim.recorded(), parts)
}

fn cuts(sim: &Sim, most: u64) -> Vec<Sim> {
    let crashes = sim.crashes();
    let choices: Vec<_> = match crashes.count() <= most {
        true => (0..crashes.count()).map(|index| crashes.nth(index)).collect(),
        // Nothing kept is where most is lost.
        false => std::iter::once(crashes.nth(0))
            .chain((1..most).map(|seed| crashes.sample(seed)))
            .collect(),
    };
    choices.iter().map(|choice| crashes.build(choice)).collect()
}

/// The store after a crash: what a reader saw of the transaction stays, and once the commit is tried
/// again, all of it is there once.
fn check_after_crash(sim: &Sim, pages: u64, parts: &[Part], seen: &[(Id, bool)], what: &str) {
    let store = open(sim, pages, Mode::Append).unwrap_or_else(|e| panic!("{what}: {e}"));
    let opened = ids(&read(&store));
    let new: Vec<Id> = new().iter().map(|event| event.id).collect();
    for id in ids(seen).iter().filter(|id| new.contains(id)) {
        assert!(opened.contains(id), "{what}: {id} vanished");
    }
    let there = new.iter().filter(|id| opened.contains(id)).count();
    assert!(there == 0 || there == new.len(), "{what}: {there} of {}", new.len());
    let committed = store.commit_staged(&of_query("q", 0), parts).unwrap();
    assert_eq!(committed.repeated, there > 0, "{what}");
    let mut expected = all();
    let lost = before()[3].id;
    if !opened.contains(&lost) {
        expected.retain(|(id, _)| *id != lost);
    }
    assert_eq!(read(&store), expected, "{what}");
    assert_eq!(store.transactions().unwrap()["etl"].version, 0);
    assert!(store.staged().unwrap().is_empty(), "{what}");
    drop(store);
    assert_eq!(read_disk(sim, pages), expected, "{what}: after closing");
}

#[test]
fn a_crash_at_any_step_leaves_the_transaction_to_be_finished_or_repeated() {
    for pages in SEGMENTS {
        let (steps, parts) = recorded(pages);
        assert!(steps.len() > 20, "{}", steps.len());
        for (step, state) in steps.iter().enumerate() {
            let killed = state.kill();
            let seen = read_disk(&killed, pages);
            let what = format!("{pages} pages, step {step}");
            check_after_crash(&killed, pages, &parts, &seen, &what);
            for (cut, after) in cuts(state, CUTS).iter().enumerate() {
                let what = format!("{what}, power cut {cut}");
                check_after_crash(after, pages, &parts, &seen, &what);
            }
        }
    }
}

#[test]
fn a_crash_while_a_commit_is_finished_changes_nothing() {
    for pages in SEGMENTS {
        let (steps, parts) = recorded(pages);
        for (step, state) in steps.iter().enumerate().step_by(2) {
            for (cut, after) in cuts(state, 2).into_iter().chain([state.kill()]).enumerate() {
                after.record();
                drop(open(&after, pages, Mode::Append).unwrap());
                for (again, state) in after.recorded().iter().enumerate().step_by(3) {
                    let what = format!("{pages} pages, step {step}, cut {cut}, then step {again}");
                    check_after_crash(&state.kill(), pages, &parts, &[], &what);
                    let cut = cuts(state, 1).pop().unwrap();
                    check_after_crash(&cut, pages, &parts, &[], &format!("{what} and a cut"));
                }
            }
        }
    }
}

/// Spark calls `abort` also after a commit of which it had no answer.
#[test]
fn an_abort_after_a_commit_that_had_begun_removes_nothing() {
    let (steps, _) = recorded(40);
    let mut refused = 0;
    for state in steps {
        let state = state.kill();
        let is_gone = open(&state, 40, Mode::Read).unwrap().discard_staged(JOB).unwrap();
        refused += usize::from(!is_gone);
        let store = open(&state, 40, Mode::Append).unwrap();
        let found = read(&store);
        assert!(is_gone || found == all(), "the commit was not finished");
        let again = store.commit_staged(&of_query("q", 0), &stage_all(&store)).unwrap();
        assert_eq!(again.repeated, found.len() > before().len());
        assert_eq!(read(&store), all());
    }
    assert!(refused > 3, "{refused}");
}

#[test]
fn a_failing_call_leaves_nothing_or_what_can_be_finished() {
    for pages in SEGMENTS {
        let calls = {
            let (sim, store, parts) = prepared(pages);
            let before = sim.calls();
            store.commit_staged(&of_query("q", 0), &parts).unwrap();
            sim.calls() - before
        };
        let (mut nothing, mut begun) = (0, 0);
        for (at, failure) in (1..=calls).flat_map(|at| [(at, Io::Other), (at, Io::StorageFull)]) {
            let (sim, store, parts) = prepared(pages);
            sim.inject(Fault::once(at, What::Error(failure)));
            let what = format!("{pages} pages, call {at} of {calls} fails: {failure}");
            let result = store.commit_staged(&of_query("q", 0), &parts);
            sim.heal();
            let seen = ids(&read(&store));
            match result.map_err(|error| (error.durable(), error)) {
                Err((Some(Durable::No), error)) => {
                    nothing += 1;
                    assert_eq!(read(&store), before_only(), "{what}: {error}");
                }
                done => begun += usize::from(done.is_err()),
            }
            drop(store);
            let store = open(&sim, pages, Mode::Append).unwrap_or_else(|e| panic!("{what}: {e}"));
            let opened = ids(&read(&store));
            assert!(opened.starts_with(&seen), "{what}: {seen:?}, then {opened:?}");
            store.commit_staged(&of_query("q", 0), &parts).unwrap();
            assert_eq!(read(&store), all(), "{what}");
        }
        assert!(nothing > 5 && begun > 5, "{nothing} {begun}");
    }
}

/// A handle that failed half-way is opened again, or goes on: the next commit ends the one before.
#[test]
fn a_failure_after_the_first_piece_is_brought_to_its_end() {
    let events: Vec<Event> = (0..4200).map(|n| note(&format!("note {n}"))).collect();
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
        sim.inject(Fault::once(at, What::Error(Io::Other)));
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
        assert_eq!(ids(&read(&store)), events.iter().map(|e| e.id).collect::<Vec<_>>());
    }
    assert!(met > 0, "no call between the pieces failed");
}

/// A commit stops half-way.
fn stopped(pages: u64) -> Sim {
    let (sim, store, parts) = prepared(pages);
    sim.record();
    store.commit_staged(&of_app(1), &parts).unwrap();
    let begun = |state: &Sim| {
        let reader = open(&state.kill(), pages, Mode::Read).unwrap();
        reader.staged().unwrap().iter().any(|job| job.is_committing)
    };
    sim.recorded().into_iter().find(begun).unwrap().kill()
}

fn change_byte(sim: &Sim, path: &str) {
    let file = sim.open(path.as_ref(), Access::Write).unwrap();
    let (mut byte, middle) = ([0], file.len().unwrap() / 2);
    file.read_at(&mut byte, middle).unwrap();
    file.write_at(&[byte[0] ^ 1], middle).unwrap();
}

#[test]
fn a_commit_that_cannot_be_finished_is_given_up_on_request_only() {
    let path = format!("{STAGED_DIR}/{JOB}.2.0.12");
    for kind in [ErrorKind::Missing, ErrorKind::Corrupt] {
        let sim = stopped(40);
        let reader = open(&sim, 40, Mode::Read).unwrap();
        assert!(!reader.discard_staged(JOB).unwrap(), "an abort must not");
        match kind {
            ErrorKind::Missing => sim.remove(path.as_ref()).unwrap(),
            _ => change_byte(&sim, &path),
        }
        let error = open(&sim, 40, Mode::Append).unwrap_err();
        assert_eq!((error.kind(), error.format()), (kind, Some("nostr")));
        assert_eq!(error.path().unwrap().to_str().unwrap(), path, "{error}");
        assert!(error.to_string().contains("deedbook vacuum --abandon"), "{error}");
        assert_eq!(read_disk(&sim, 40), before_only(), "reading goes on");
        assert_eq!(reader.abandon_transaction().unwrap(), Some(of_app(1)));
        let store = open(&sim, 40, Mode::Append).unwrap();
        assert!(store.discard_staged(JOB).unwrap());
        assert!(!store.commit_staged(&of_app(1), &stage_all(&store)).unwrap().repeated);
        assert_eq!(read(&store), all());
    }
}

#[test]
fn events_are_stored_in_the_order_of_their_partitions_and_once() {
    for pages in SEGMENTS {
        let (sim, store, parts) = prepared(pages);
        let committed = store.commit_staged(&of_nobody(), &parts).unwrap();
        assert_eq!((committed.records, committed.repeated, committed.first), (5, false, None));
        assert_eq!(read(&store), all());
        // Durable, also where the writer syncs by itself.
        for cut in cuts(&sim, 50) {
            assert_eq!(read(&open(&cut, pages, Mode::Append).unwrap()), all());
        }
        assert!(store.staged().unwrap().is_empty(), "also the attempt that was not committed");
        // Without an id nothing says that it was committed, but the events are there.
        let again = store.commit_staged(&of_nobody(), &stage_all(&store)).unwrap();
        assert_eq!((again.records, again.repeated), (0, false));
        drop(store);
        assert_eq!(read_disk(&sim, pages), all());
    }
}

#[test]
fn a_repeat_a_gap_and_another_query_are_recognised() {
    let (sim, store, parts) = prepared(40);
    let gap = store.commit_staged(&of_query("q", 3), &parts).unwrap_err();
    assert_eq!((gap.kind(), gap.format()), (ErrorKind::Contiguity, Some("nostr")));
    store.commit_staged(&of_query("q", 0), &parts).unwrap();
    // Without its staged files, whose removal was the end of the first one.
    assert!(store.commit_staged(&of_query("q", 0), &parts).unwrap().repeated);
    let dropped = stage(&store, 0, 7, &[note("of a repeat")]);
    assert!(store.commit_staged(&of_query("q", 0), &[dropped]).unwrap().repeated);
    assert!(store.staged().unwrap().is_empty());
    let other = store.commit_staged(&of_query("p", 1), &[]).unwrap_err();
    assert!(other.to_string().contains("give another txnAppId"), "{other}");
    drop(store);
    let store = open(&sim, 40, Mode::Append).unwrap();
    assert!(store.commit_staged(&of_query("q", 0), &parts).unwrap().repeated);
    store.commit_staged(&of_query("q", 1), &[]).unwrap();
    assert_eq!(store.transactions().unwrap()["etl"].version, 1);
    assert_eq!(read(&store), all());
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
    let other = Options { page_bytes: 8192, checksums: false, ..options(&sim, 40) };
    let small = Options { event_bytes_max: 4096, ..other.clone() };
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
    assert!(store.verify(deedbook::nostr::Check::Id).unwrap().is_ok());
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

#[test]
fn threads_commit_one_after_the_other_and_a_close_waits() {
    let sim = Sim::new();
    let store = open(&sim, 4000, Mode::Create).unwrap();
    let commit = |thread: u32| {
        let transaction = deedbook::Transaction {
            job: format!("job-{thread}"),
            id: Some(deedbook::TransactionId {
                app: format!("app-{thread}"),
                query: None,
                version: 1,
            }),
        };
        let mut stage = store.stage(&transaction.job, 0, 1).unwrap();
        (0..100).for_each(|n| stage.push(&note(&format!("{thread} {n}"))).unwrap());
        store.commit_staged(&transaction, &[stage.finish().unwrap()]).unwrap()
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || commit(thread))).collect();
        threads.into_iter().for_each(|thread| assert_eq!(thread.join().unwrap().records, 100));
    });
    assert_eq!(store.transactions().unwrap().len(), 4);
    let parts = [stage(&store, 0, 1, &[note("last")])];
    std::thread::scope(|scope| {
        let closing = scope.spawn(|| store.close());
        let committed = store.commit_staged(&of_app(1), &parts);
        closing.join().unwrap().unwrap();
        let is_noted = open(&sim, 4000, Mode::Read).unwrap().transactions().unwrap();
        assert_eq!(is_noted.contains_key("etl"), committed.is_ok());
    });
    assert!(!sim.list("/events/.deedbook".as_ref()).unwrap().contains(&"transaction".into()));
}
