//! Processes die, the power fails and calls fail at every step of a commit of events.

use std::io::ErrorKind as Io;

use deedbook::jobs::Part;
use deedbook::nostr::{Event, Id, Include};
use deedbook::storage::Storage;
use deedbook::storage::sim::{Fault, Sim, What};
use deedbook::{Durable, ErrorKind, Mode, OnCorrupt};

use super::{
    SEGMENTS, STAGED_DIR, all, before, before_only, change_byte, ids, new, note, open, prepared,
    read, read_disk, stage, stage_all,
};
use crate::support::crashes::cuts;
use crate::transactions::{JOB, of_app, of_query};

/// States after one power cut that are tried, of those there are.
const CUTS: u64 = 12;

/// The states of the disk during a commit, and the parts.
fn recorded(pages: u64) -> (Vec<Sim>, Vec<Part>) {
    let (sim, store, parts) = prepared(pages);
    sim.record();
    store.commit_staged(&of_query("q", 0), &parts).unwrap();
    (sim.recorded(), parts)
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
    let (is_killed, in_order) = (!what.contains("cut"), expected.clone());
    // A power cut may leave a later event of the commit whole in the segment: it stays there, and the earlier
    // ones come after it.
    expected.sort_unstable_by_key(|(id, _)| id.0);
    let sorted = |mut found: Vec<(Id, bool)>| {
        found.sort_unstable_by_key(|(id, _)| id.0);
        found
    };
    let found = read(&store);
    assert!(!is_killed || found == in_order, "{what}: another order");
    assert_eq!(sorted(found), expected, "{what}");
    assert_eq!(store.transactions().unwrap()["etl"].version, 0);
    assert!(store.staged().unwrap().is_empty(), "{what}");
    drop(store);
    assert_eq!(sorted(read_disk(sim, pages)), expected, "{what}: after closing");
}

// Promise: transaction-crash.
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

// Promise: transaction-crash.
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

// Promise: transaction-call-fails.
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
            // The same handle goes on, or says why not.
            if at % 2 == 0
                && let Err(error) = store.commit_staged(&of_query("q", 0), &parts)
            {
                assert_eq!(error.kind(), ErrorKind::Poisoned, "{what}: {error}");
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

// Promise: transaction-call-fails.
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
