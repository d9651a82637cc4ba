//! Commits of a ledger die, or fail, at every step.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use deedbook::jobs::Part;
use deedbook::storage::sim::{Call, Fault, Sim, What};
use deedbook::storage::{Access, Storage};
use deedbook::{Durable, ErrorKind};

use super::{BASE, CUTS, DIR, begun, intent, is_begun, open, payloads, prepared, read};
use crate::support::crashes::cuts;
use crate::transactions::{BEFORE, JOB, STAGED, all, of_query};

/// Of a file that may not be opened nothing says that it is gone.
const FAILURES: [io::ErrorKind; 3] =
    [io::ErrorKind::Other, io::ErrorKind::StorageFull, io::ErrorKind::PermissionDenied];

/// What a reader sees stays where it is, and once the commit is tried again, all of the transaction
/// is there once.
fn check_after_crash(sim: &Sim, parts: &[Part], what: &str) {
    let seen = read(sim);
    let store = open(sim);
    let opened = read(sim);
    assert!(seen.iter().all(|record| opened.contains(record)), "{what}: {seen:?}, {opened:?}");
    assert!(!is_begun(sim), "{what}");
    let is_kept = opened.iter().any(|(_, payload)| payload == BEFORE[3]);
    let staged = opened.len() - 3 - usize::from(is_kept);
    assert!(staged == 0 || staged == 5, "{what}: a part of the transaction: {opened:?}");
    let committed = store.commit_staged(&of_query("q", 0), parts).unwrap();
    assert_eq!(committed.repeated, staged == 5, "{what}");
    let mut expected = all();
    expected.retain(|payload| is_kept || payload != BEFORE[3]);
    assert_eq!(payloads(sim), expected, "{what}");
    assert_eq!(store.transactions().unwrap()["etl"].version, 0);
    assert!(store.staged().unwrap().is_empty(), "{what}");
    let highest = read(sim).last().unwrap().0;
    store.reset().unwrap();
    store.append(b"next").unwrap();
    assert!(read(sim)[0].0 > highest, "{what}: an index came twice");
}

// Promise: transaction-crash.
#[test]
fn a_crash_at_any_step_leaves_the_transaction_to_be_finished_or_repeated() {
    let (sim, store, parts) = prepared();
    sim.record();
    store.commit_staged(&of_query("q", 0), &parts).unwrap();
    let steps = sim.recorded();
    assert!(steps.len() > 15, "{}", steps.len());
    for (step, state) in steps.iter().enumerate() {
        check_after_crash(&state.kill(), &parts, &format!("step {step}"));
        for (cut, after) in cuts(state, CUTS).iter().enumerate() {
            let what = format!("step {step}, power cut {cut}");
            check_after_crash(&after.kill(), &parts, &what);
            if cut % 8 != 0 {
                continue;
            }
            after.record();
            drop(open(after));
            for (again, state) in after.recorded().iter().enumerate() {
                let what = format!("{what}, then step {again}");
                check_after_crash(&state.kill(), &parts, &what);
                check_after_crash(&cuts(state, 2)[0], &parts, &format!("{what} and a cut"));
            }
        }
    }
}

/// A commit died, and a sender removed what it had put there so far.
// Promise: transaction-ledger.
#[test]
fn what_was_sent_before_a_commit_is_finished_is_not_sent_again() {
    let (states, parts) = begun();
    let mut removed = 0;
    for (step, state) in states.iter().enumerate() {
        for most in 1..=3 {
            let state = state.kill();
            let mut sent: Vec<_> = read(&state);
            sent.retain(|(index, _)| (2..2 + most).contains(index));
            let indexes: BTreeSet<_> = sent.iter().map(|(index, _)| *index).collect();
            removed += indexes.len();
            for index in indexes {
                state.remove(format!("{DIR}/{index}-{BASE}").as_ref()).unwrap();
            }
            state.sync_dir(DIR.as_ref()).unwrap();
            for after in cuts(&state, CUTS).iter().chain([&state]) {
                let store = open(after);
                assert!(store.commit_staged(&of_query("q", 0), &parts).unwrap().repeated);
                let mut found = sent.clone();
                found.extend(read(after).into_iter().filter(|(index, _)| *index > 1));
                let found: Vec<_> = found.into_iter().map(|(_, payload)| payload).collect();
                assert_eq!(found, STAGED.concat(), "step {step}, {most} sent");
            }
        }
    }
    assert!(removed > 10, "{removed}");
}

// Promise: transaction-call-fails.
#[test]
fn a_failing_call_leaves_nothing_or_what_can_be_finished() {
    let calls = {
        let (sim, store, parts) = prepared();
        let before = sim.calls();
        store.commit_staged(&of_query("q", 0), &parts).unwrap();
        sim.calls() - before
    };
    let (mut left_nothing, mut had_begun) = (0, 0);
    for at in 1..=calls {
        for failure in FAILURES {
            let (sim, store, parts) = prepared();
            sim.inject(Fault::once(at, What::Error(failure)));
            let what = format!("call {at} fails: {failure}");
            let result = store.commit_staged(&of_query("q", 0), &parts);
            sim.heal();
            let seen = read(&sim);
            if let Err(error) = &result {
                let is_none = error.durable() == Some(Durable::No);
                assert!(!is_none || !is_begun(&sim) && seen.len() == 4, "{what}: {error}");
                left_nothing += u64::from(is_none);
                had_begun += u64::from(!is_none && is_begun(&sim));
            }
            drop(store);
            let store = open(&sim);
            assert!(seen.iter().all(|record| read(&sim).contains(record)), "{what}: {seen:?}");
            store.commit_staged(&of_query("q", 0), &parts).unwrap();
            assert_eq!(payloads(&sim), all(), "{what}");
        }
    }
    assert!(left_nothing > 10 && had_begun > 10, "{left_nothing}, {had_begun} of {calls}");
}

/// It had claimed its indexes, and readers took them for files that were lost.
#[test]
fn a_commit_whose_intent_could_not_be_stored_leaves_no_gap() {
    let mut refused = BTreeMap::new();
    let calls = [Call::Create, Call::SyncDir];
    for (call, at) in calls.into_iter().flat_map(|call| (1..=8).map(move |at| (call, at))) {
        let (sim, store, parts) = prepared();
        sim.inject(Fault::once(at, What::Error(io::ErrorKind::StorageFull)).of(call));
        let result = store.commit_staged(&of_query("q", 0), &parts);
        sim.heal();
        let is_none = result.is_err_and(|error| error.durable() == Some(Durable::No));
        if !is_none {
            continue;
        }
        *refused.entry(format!("{call:?}")).or_insert(0) += 1;
        let store = match store.append(b"next") {
            Ok(_) => store,
            // After a sync that failed.
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Poisoned, "{call:?} {at}");
                drop(store);
                let store = open(&sim);
                store.append(b"next").unwrap();
                store
            }
        };
        let there = read(&sim);
        let (last, payload) = there.last().unwrap();
        assert_eq!(payload, "next", "{call:?} {at}");
        let is_gap = |pair: &[(u32, String)]| pair[1].0 > pair[0].0 + 1;
        assert!(!there.windows(2).any(is_gap), "{call:?} {at}: {there:?}");
        let first = u64::from(last + 1);
        assert_eq!(store.commit_staged(&of_query("q", 0), &parts).unwrap().first, Some(first));
    }
    let enough = refused.len() == 2 && refused.values().all(|refused| *refused >= 2);
    assert!(enough, "the counter, and the intent: {refused:?}");
}

/// Finishing fails while a store is opened: the store appends and sends, and its commit finishes.
#[test]
fn a_commit_that_cannot_be_finished_keeps_no_program_from_using_the_ledger() {
    let (states, parts) = begun();
    for state in [&states[0], &states[2]] {
        let calls = {
            let state = state.kill();
            drop(open(&state));
            state.calls()
        };
        for at in 4..=calls {
            let state = state.kill();
            state.inject(Fault::once(at, What::Error(std::io::ErrorKind::Other)));
            let store = open(&state);
            state.heal();
            store.append(b"after").unwrap();
            assert!(store.commit_staged(&of_query("q", 0), &parts).unwrap().repeated);
            let found = payloads(&state);
            assert_eq!(found.len(), all().len() + 1, "call {at}: {found:?}");
        }
    }
}

/// A record of transactions that another user had written was taken for none, and a batch appended
/// twice; an intent that could not be read was replaced by that of the next commit.
#[test]
fn what_cannot_be_read_is_not_taken_for_missing() {
    let (states, parts) = begun();
    let committed = states[0].kill();
    drop(open(&committed));
    for (state, has_intent) in [(&states[0], true), (&committed, false)] {
        let mut failed = 0;
        for at in 1..=40 {
            let state = state.kill();
            let busy = state.lock(intent().parent().unwrap(), false).unwrap();
            let store = open(&state);
            drop(busy);
            state.inject(Fault::once(at, What::Error(io::ErrorKind::PermissionDenied)));
            let result = store.commit_staged(&of_query("q", 0), &parts);
            state.heal();
            failed += u64::from(result.is_err());
            assert!(result.is_err() || result.unwrap().repeated, "{has_intent}, call {at}");
            assert!(open(&state).commit_staged(&of_query("q", 0), &parts).unwrap().repeated);
            assert_eq!(payloads(&state), all(), "{has_intent}, call {at}");
        }
        assert!(failed > 5, "{failed}");
    }
}

/// Spark calls `abort` also after a commit of which it had no answer.
#[test]
fn an_abort_removes_nothing_that_is_to_be_committed() {
    let (states, parts) = begun();
    for state in states {
        let busy = state.lock(intent().parent().unwrap(), false).unwrap();
        let store = open(&state);
        assert!(is_begun(&state), "another store is at it");
        assert!(!store.discard_staged(JOB).unwrap());
        assert!(store.staged().unwrap().iter().all(|job| job.is_committing));
        drop(busy);
        assert!(open(&state).commit_staged(&of_query("q", 0), &parts).unwrap().repeated);
        assert_eq!(payloads(&state), all());
    }
}

#[test]
fn a_commit_whose_intent_is_damaged_is_given_up_on_request_only() {
    let (states, _) = begun();
    let state = states.iter().find(|state| read(state).len() == 6).unwrap();
    state.open(&intent(), Access::Write).unwrap().write_at(b"?", 5).unwrap();
    let store = open(state);
    let error = store.commit_staged(&of_query("q", 0), &[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("deedbook vacuum --abandon"), "{error}");
    assert_eq!(store.discard_staged(JOB).unwrap_err().kind(), ErrorKind::Corrupt);
    store.append(b"after").unwrap();
    assert_eq!(store.abandon_transaction().unwrap(), None);
    assert!(store.discard_staged(JOB).unwrap());
    assert_eq!(payloads(state).len(), 7, "what was there stays");
    let (states, _) = begun();
    let busy = states[0].lock(intent().parent().unwrap(), false).unwrap();
    let store = open(&states[0]);
    drop(busy);
    assert_eq!(store.abandon_transaction().unwrap(), Some(of_query("q", 0)));
    assert_eq!((store.abandon_transaction().unwrap(), payloads(&states[0]).len()), (None, 4));
}
