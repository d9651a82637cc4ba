//! Processes die and the power fails at every step of a commit.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use deedbook::jobs::Part;
use deedbook::storage::sim::{Fault, Sim, What};
use deedbook::storage::{Access, Storage};
use deedbook::{Durable, ErrorKind, Mode, book};

use crate::support::crashes::{cuts, images};
use crate::support::watch::{Seen, watched};
use crate::transactions::store::{KINDS, Kind, PATH, Store};
use crate::transactions::{
    BEFORE, JOB, all, of_app, of_no_application, of_query, prepared, stage_all,
};

/// States after one power cut that are tried, of those there are.
const CUTS: u64 = 40;

fn is_prefix(short: &[String], long: &[String]) -> bool {
    long.starts_with(short)
}

/// The log after a crash: what a reader sees stays, and once the commit is tried again, all of the
/// transaction is there once.
fn check_after_crash(kind: Kind, sim: &Sim, parts: &[Part], what: &str) {
    let seen = kind.read(sim);
    let store = kind.open(sim, Mode::Append).unwrap_or_else(|e| panic!("{what}: {e}"));
    let opened = store.read();
    assert!(is_prefix(&seen, &opened), "{what}: {seen:?} vanished from {opened:?}");
    let kept = BEFORE.len() - usize::from(!opened.contains(&BEFORE[3].to_string()));
    let staged = opened.len() - kept;
    assert!(staged == 0 || staged == 5, "{what}: a part of the transaction: {opened:?}");
    let committed = store.commit(&of_query("q", 0), parts).unwrap();
    assert_eq!(committed.repeated, staged == 5, "{what}");
    let mut expected = all();
    if kept < BEFORE.len() {
        expected.remove(3);
    }
    assert_eq!(store.read(), expected, "{what}");
    assert_eq!(store.noted("etl"), Some(0));
    assert!(store.staged().is_empty(), "{what}");
    drop(store);
    assert_eq!(kind.read(sim), expected, "{what}: after closing");
}

/// Files in which an opening saved what it cut.
fn saved_tails(sim: &Sim) -> usize {
    let names = |dir: &str| sim.list(dir.as_ref()).unwrap_or_default();
    let names = names("/").into_iter().chain(names(PATH));
    names.filter(|name| name.to_string_lossy().contains(".cut-")).count()
}

// Promise: transaction-crash.
#[test]
fn a_crash_at_any_step_leaves_the_transaction_to_be_finished_or_repeated() {
    for kind in KINDS {
        let (sim, store, parts) = prepared(kind);
        sim.record();
        store.commit(&of_query("q", 0), &parts).unwrap();
        let steps = sim.recorded();
        assert!(steps.len() > 12, "{}", steps.len());
        for (step, state) in steps.iter().enumerate() {
            // Without a power cut, readers see all of it or nothing.
            let seen = kind.read(&state.kill()).len();
            assert!([BEFORE.len(), all().len()].contains(&seen), "{kind:?} step {step}: {seen}");
            let killed = state.kill();
            check_after_crash(kind, &killed, &parts, &format!("{kind:?} step {step}"));
            // What a killed commit had copied is staged: it was saved as a torn tail as well.
            assert_eq!(saved_tails(&killed), 0, "{kind:?} step {step}");
            for (cut, after) in cuts(state, CUTS).iter().enumerate() {
                let what = format!("{kind:?} step {step}, power cut {cut}");
                check_after_crash(kind, after, &parts, &what);
            }
        }
    }
}

// Promise: transaction-crash.
#[test]
fn a_crash_while_a_commit_is_finished_changes_nothing() {
    for kind in KINDS {
        let (sim, store, parts) = prepared(kind);
        sim.record();
        store.commit(&of_query("q", 0), &parts).unwrap();
        for (step, state) in sim.recorded().iter().enumerate() {
            for (cut, after) in cuts(state, CUTS).into_iter().take(6).enumerate() {
                after.record();
                drop(kind.open(&after, Mode::Append).unwrap());
                for (again, state) in after.recorded().iter().enumerate() {
                    let what = format!("{kind:?} step {step}, cut {cut}, then step {again}");
                    check_after_crash(kind, &state.kill(), &parts, &what);
                    let cut = cuts(state, CUTS).pop().unwrap();
                    check_after_crash(kind, &cut, &parts, &format!("{what} and a cut"));
                }
            }
        }
    }
}

/// An application without an id commits once, too, if it does not try again.
#[test]
fn a_transaction_without_an_application_is_finished_once() {
    for kind in KINDS {
        let (sim, store, parts) = prepared(kind);
        sim.record();
        store.commit(&of_no_application(), &parts).unwrap();
        for (step, state) in sim.recorded().iter().enumerate() {
            for after in images(state, CUTS) {
                let staged = kind.open(&after, Mode::Read).unwrap().staged();
                let has_begun = staged.iter().any(|job| job.is_committing);
                let seen = kind.read(&after).contains(&"bb".to_string());
                let store = kind.open(&after, Mode::Append).unwrap();
                let found = store.read().iter().filter(|payload| *payload == "bb").count();
                let expected = usize::from(has_begun || seen);
                assert_eq!(found, expected, "{kind:?} step {step}: {:?}", store.read());
            }
        }
    }
}

/// Spark calls `abort` also after a commit of which it had no answer.
// Promise: transaction-abort.
#[test]
fn an_abort_after_a_commit_that_had_begun_removes_nothing() {
    let (sim, store, parts) = prepared(Kind::Book);
    sim.record();
    store.commit(&of_query("q", 0), &parts).unwrap();
    let mut refused = 0;
    for state in sim.recorded() {
        let state = state.kill();
        let reader = Kind::Book.open(&state, Mode::Read).unwrap();
        let is_gone = reader.discard(JOB);
        refused += usize::from(!is_gone);
        let store = Kind::Book.open(&state, Mode::Append).unwrap();
        let len = store.read().len();
        assert!(is_gone || len == all().len(), "the commit was not finished");
        let parts = stage_all(&store);
        assert_eq!(store.commit(&of_query("q", 0), &parts).unwrap().repeated, len > BEFORE.len());
        assert_eq!(store.read(), all());
    }
    assert!(refused > 3, "{refused}");
}

/// An abort looked for an intent just before it was stored, and took the files that it named.
// Promise: transaction-abort.
#[test]
fn an_abort_beside_a_commit_takes_no_file_that_its_intent_names() {
    let mut aborted = 0;
    for at in 1.. {
        let (sim, store, parts) = prepared(Kind::Book);
        drop(store);
        let reader = Arc::new(Kind::Book.open(&sim, Mode::Read).unwrap());
        let (calls, called) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let threads = Arc::new(Mutex::new(Vec::new()));
        let storage = {
            let (calls, called, threads) = (calls.clone(), called.clone(), threads.clone());
            watched(Arc::new(sim.clone()), move |seen| {
                let is_commit = called.load(Relaxed) && seen == Seen::Calling;
                if is_commit && calls.fetch_add(1, Relaxed) + 1 == at {
                    let reader = reader.clone();
                    let abort = std::thread::spawn(move || reader.discard(JOB));
                    let until = Instant::now() + Duration::from_millis(20);
                    while !abort.is_finished() && Instant::now() < until {
                        std::thread::yield_now();
                    }
                    threads.lock().unwrap().push(abort);
                }
            })
        };
        let options = book::Options::new().storage(storage);
        let book = options.open(PATH, Mode::Append).unwrap();
        sim.record();
        called.store(true, Relaxed);
        let committed = book.commit_staged(&of_query("q", 0), &parts);
        called.store(false, Relaxed);
        let Some(abort) = threads.lock().unwrap().pop() else { break };
        aborted += usize::from(abort.join().unwrap());
        for (step, state) in sim.recorded().iter().enumerate() {
            let opened = Kind::Book.open(&state.kill(), Mode::Append);
            assert!(opened.is_ok(), "abort at call {at}, then step {step}: {:?}", opened.err());
        }
        let records = if committed.is_ok() { all().len() } else { BEFORE.len() };
        assert_eq!(Kind::Book.read(&sim).len(), records, "abort at call {at}: {committed:?}");
    }
    assert!(aborted > 3, "{aborted}");
}

// Promise: transaction-call-fails.
#[test]
fn a_failing_call_leaves_nothing_or_what_can_be_finished() {
    let kinds = [std::io::ErrorKind::Other, std::io::ErrorKind::StorageFull];
    for kind in KINDS {
        let calls = {
            let (sim, store, parts) = prepared(kind);
            let before = sim.calls();
            store.commit(&of_query("q", 0), &parts).unwrap();
            sim.calls() - before
        };
        for at in 1..=calls {
            for failure in kinds {
                let (sim, store, parts) = prepared(kind);
                sim.inject(Fault::once(at, What::Error(failure)));
                let what = format!("{kind:?} call {at} fails: {failure}");
                let result = store.commit(&of_query("q", 0), &parts);
                sim.heal();
                let seen = kind.read(&sim);
                if let Err(error) = &result
                    && error.durable() == Some(Durable::No)
                {
                    assert_eq!(seen, BEFORE, "{what}: {error}");
                }
                drop(store);
                let store = kind.open(&sim, Mode::Append).unwrap_or_else(|e| panic!("{what}: {e}"));
                let opened = store.read();
                assert!(is_prefix(&seen, &opened), "{what}: {seen:?}, then {opened:?}");
                store.commit(&of_query("q", 0), &parts).unwrap();
                assert_eq!(store.read(), all(), "{what}");
            }
        }
    }
}

/// A commit stops half-way, and what it staged is gone.
fn stopped(kind: Kind) -> (Sim, Vec<Part>) {
    let (sim, store, parts) = prepared(kind);
    sim.record();
    store.commit(&of_app(1), &parts).unwrap();
    let state = sim.recorded().into_iter().find(|state| {
        let reader = kind.open(&state.kill(), Mode::Read).unwrap();
        reader.staged().iter().any(|job| job.is_committing)
    });
    (state.unwrap(), parts)
}

// Promise: transaction-call-fails.
#[test]
fn a_commit_that_cannot_be_finished_is_given_up_on_request_only() {
    for kind in KINDS {
        let (sim, parts) = stopped(kind);
        let reader = kind.open(&sim, Mode::Read).unwrap();
        assert!(!reader.discard(JOB), "an abort must not");
        let directory = match kind {
            Kind::Single => "/.deedbook/log/staged",
            _ => "/log/.deedbook/staged",
        };
        sim.remove(format!("{directory}/{JOB}.2.0.12").as_ref()).unwrap();
        let error = kind.open(&sim, Mode::Append).map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Missing);
        assert!(error.to_string().contains("deedbook vacuum --abandon"), "{error}");
        assert_eq!(kind.read(&sim), BEFORE, "reading goes on");
        let given_up = reader.abandon().unwrap().unwrap();
        assert_eq!(given_up, of_app(1));
        let store = kind.open(&sim, Mode::Append).unwrap();
        assert!(store.discard(JOB));
        let again = stage_all(&store);
        assert_eq!(again.len(), parts.len());
        assert!(!store.commit(&of_app(1), &again).unwrap().repeated);
        assert_eq!(store.read(), all());
    }
}

#[test]
fn what_no_commit_copied_is_saved_before_it_is_cut() {
    let (_, parts) = stopped(Kind::Book);
    let copied: u64 = parts.iter().map(|part| part.bytes).sum();
    // More than was staged; and no more, but after a record that came later.
    for (later, len) in [(false, copied + 1), (true, copied)] {
        let (sim, _) = stopped(Kind::Book);
        let file = sim.open("/log/book.log".as_ref(), Access::Write).unwrap();
        if later {
            let end = file.len().unwrap();
            let mut deed = vec![0; 64];
            file.read_at(&mut deed, 16).unwrap();
            let deed_len = 24 + BEFORE[0].len();
            file.write_at(&deed[..deed_len], end).unwrap();
        }
        file.write_at(&vec![1; len as usize], file.len().unwrap()).unwrap();
        drop(Kind::Book.open(&sim, Mode::Append).unwrap());
        assert_eq!(saved_tails(&sim), 1, "after another record: {later}");
    }
}

#[test]
fn a_copy_of_what_is_not_staged_any_more_is_saved_before_it_is_cut() {
    let (sim, parts) = stopped(Kind::Book);
    let file = sim.open("/log/book.log".as_ref(), Access::Write).unwrap();
    file.write_at(&vec![1; parts[0].bytes as usize], file.len().unwrap()).unwrap();
    sim.remove(format!("/log/.deedbook/staged/{JOB}.2.0.12").as_ref()).unwrap();
    let error = Kind::Book.open(&sim, Mode::Append).map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Missing);
    assert_eq!(saved_tails(&sim), 1);
}

/// The log was replaced after a crash, and the intent was left beside the new one.
#[test]
fn a_commit_that_had_begun_in_another_log_is_dropped() {
    for (kind, file) in [(Kind::Book, "/log/book.log"), (Kind::Single, "/log")] {
        for (is_empty, is_other_empty) in
            [(false, false), (true, false), (true, true), (false, true)]
        {
            let sim = Sim::new();
            let store = kind.open(&sim, Mode::Create).unwrap();
            if !is_empty {
                BEFORE.iter().for_each(|payload| store.append(payload));
            }
            let parts = stage_all(&store);
            sim.record();
            store.commit(&of_app(1), &parts).unwrap();
            let begun = |state: &Sim| {
                let reader = kind.open(&state.kill(), Mode::Read).unwrap();
                reader.staged().iter().any(|job| job.is_committing)
            };
            let state = sim.recorded().into_iter().find(begun).unwrap();
            let other = Sim::new();
            let store = kind.open(&other, Mode::Create).unwrap();
            let records = if is_other_empty { &[][..] } else { &["other", "log"] };
            records.iter().for_each(|payload| store.append(payload));
            drop(store);
            let from = other.open(file.as_ref(), Access::Read).unwrap();
            let mut bytes = vec![0; from.len().unwrap() as usize];
            from.read_at(&mut bytes, 0).unwrap();
            state.remove(file.as_ref()).unwrap();
            state.create_new(file.as_ref(), 0o600).unwrap().write_at(&bytes, 0).unwrap();
            let store: Store = kind.open(&state, Mode::Append).unwrap();
            let empty = format!("{kind:?}, empty: before {is_empty}, now {is_other_empty}");
            assert_eq!(store.read(), records, "{empty}");
        }
    }
}
