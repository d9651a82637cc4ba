//! Processes die and the power fails at every step of a commit.

use std::sync::atomic::Ordering::Relaxed;

use super::*;
use crate::support::crashes::images;

const CUTS: u64 = 40;
/// No error of this list proves that a file is gone.
const FAILURES: [io::ErrorKind; 3] =
    [io::ErrorKind::Other, io::ErrorKind::StorageFull, io::ErrorKind::PermissionDenied];

fn saved_tails(sim: &Sim) -> usize {
    let names = |dir: &str| sim.list(dir.as_ref()).unwrap_or_default();
    let names = names("/").into_iter().chain(names(PATH));
    names.filter(|name| name.to_string_lossy().contains(".cut-")).count()
}

struct Commit {
    kind: Kind,
    parts: Vec<Part>,
}

impl World for Commit {
    type Known = Vec<String>;

    fn begin(&self, disk: &Sim) -> Result<(), String> {
        self.kind.open(disk, Mode::Append).map(drop).map_err(|error| error.to_string())
    }

    /// A transaction seen by a reader stays. After a repeated commit, its records are there exactly once.
    fn recover(&self, disk: &Sim, known: &Vec<String>, crash: Crash) -> Result<(), String> {
        let kind = self.kind;
        let (seen, all) = (kind.read(disk), kind.all());
        let store = kind.open(disk, Mode::Append).map_err(|error| error.to_string())?;
        let opened = store.read();
        let expect = |holds: bool, what: &str| match holds {
            true => Ok(()),
            false => Err(format!("{kind:?}: {what}: {known:?}, {seen:?}, then {opened:?}")),
        };
        let is_killed = crash == Crash::Killed;
        let (is_whole, is_gone) = (seen.len() == all.len(), seen.len() == BEFORE.len());
        if LOGS.contains(&kind) {
            expect(!is_killed || is_whole || is_gone, "a reader saw a part of it")?;
            expect(opened.starts_with(&seen), "records vanished")?;
        }
        let is_new = |payload: &&String| !BEFORE.contains(&payload.trim_matches(['(', ')']));
        let earlier = if let Kind::Events(_) = kind { known } else { &seen };
        expect(earlier.iter().filter(is_new).all(|new| opened.contains(new)), "it vanished")?;
        let there = opened.iter().filter(is_new).count();
        expect(there == 0 || there == 5, "a part of the transaction")?;
        let committed = store.commit(&of_query("q", 0), &self.parts);
        let committed =
            committed.map_err(|error| format!("{kind:?}, {seen:?}, then {opened:?}: {error}"))?;
        expect(committed.repeated == (there == 5), "repeated")?;
        let is_kept = |payload: &String| payload != BEFORE[3] || opened.contains(payload);
        let expected: Vec<String> = all.into_iter().filter(is_kept).collect();
        let in_order = |mut found: Vec<String>| {
            // A power cut may leave a later event of the commit whole in the segment: the earlier ones come after it.
            if !is_killed && let Kind::Events(_) = kind {
                found.sort();
            }
            found
        };
        let expected = in_order(expected);
        expect(in_order(store.read()) == expected, "after the commit")?;
        expect(store.noted("etl") == Some(0) && store.staged().is_empty(), "it is noted")?;
        // A copy begun by a killed commit is staged, and not also saved as a torn end.
        expect(!is_killed || saved_tails(disk) == 0, "a saved tail")?;
        if let Store::Ledger(ledger, _) = &store {
            let highest = ledger::read(disk).last().unwrap().0;
            ledger.reset().unwrap();
            ledger.append(b"next").unwrap();
            return expect(ledger::read(disk)[0].0 > highest, "an index came twice");
        }
        drop(store);
        expect(in_order(kind.read(disk)) == expected, "after closing")
    }
}

// Promise: transaction-crash.
#[test]
fn a_transaction_survives_a_crash_at_any_step() {
    for kind in KINDS {
        let (sim, store, parts) = prepared(kind);
        sim.record();
        store.commit(&of_query("q", 0), &parts).unwrap();
        let steps = sim.recorded();
        assert!(steps.len() > 12, "{}", steps.len());
        let known: Vec<_> = steps.iter().map(|state| kind.read(&state.kill())).collect();
        let moments: Vec<_> = steps.into_iter().zip(&known).collect();
        let states = if let Kind::Events(_) = kind { 12 } else { CUTS };
        let plan =
            Plan { second_every: Some(8), second_calls: 12, second_states: 2, ..Plan::of(states) };
        let mut explorer = Explorer::default();
        explorer.explore(&format!("{kind:?}"), &Commit { kind, parts }, &moments, &plan);
        assert!(explorer.failures.is_empty(), "{:#?}", explorer.failures);
        assert!(explorer.counts.second > 50, "{:?}", explorer.counts);
    }
}

/// An application without an id commits once, too, if it does not retry.
#[test]
fn a_transaction_without_an_application_is_finished_once() {
    for kind in LOGS {
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

/// Spark calls `abort` also after a commit without an answer.
// Promise: transaction-abort.
#[test]
fn an_abort_removes_nothing_of_a_begun_commit() {
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
        assert!(is_gone || len == Kind::Book.all().len(), "the commit was not finished");
        let parts = stage_all(Kind::Book, &store);
        assert_eq!(store.commit(&of_query("q", 0), &parts).unwrap().repeated, len > BEFORE.len());
        assert_eq!(store.read(), Kind::Book.all());
    }
    assert!(refused > 3, "{refused}");
}

/// An abort looked for an intent just before the commit stored it, and took the files named in the intent.
// Promise: transaction-abort.
#[test]
fn an_abort_during_commits_removes_no_committed_file() {
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
        let records = if committed.is_ok() { Kind::Book.all().len() } else { BEFORE.len() };
        assert_eq!(Kind::Book.read(&sim).len(), records, "abort at call {at}: {committed:?}");
    }
    assert!(aborted > 3, "{aborted}");
}

// Promise: transaction-call-fails.
#[test]
fn a_failing_call_leaves_no_unfinishable_commit() {
    for kind in KINDS {
        let calls = {
            let (sim, store, parts) = prepared(kind);
            let before = sim.calls();
            store.commit(&of_query("q", 0), &parts).unwrap();
            sim.calls() - before
        };
        let (mut left_nothing, mut had_begun) = (0, 0);
        for (at, failure) in (1..=calls).flat_map(|at| FAILURES.map(|failure| (at, failure))) {
            let (sim, store, parts) = prepared(kind);
            sim.inject(Fault::once(at, What::Error(failure)));
            let what = format!("{kind:?} call {at} of {calls} fails: {failure}");
            let result = store.commit(&of_query("q", 0), &parts);
            sim.heal();
            let seen = kind.read(&sim);
            if let Err(error) = &result {
                let is_none = error.durable() == Some(Durable::No);
                assert!(!is_none || seen == BEFORE, "{what}: {seen:?}: {error}");
                assert!(!is_none || kind != Kind::Ledger || !kind.is_begun(&sim), "{what}");
                left_nothing += u64::from(is_none);
                had_begun += u64::from(!is_none);
            }
            // The same handle goes on, or reports the reason for a refusal.
            if at % 2 == 0
                && let Err(error) = store.commit(&of_query("q", 0), &parts)
            {
                let is_finished_later = matches!(error.kind(), ErrorKind::Poisoned);
                assert!(is_finished_later, "{what}: {error}");
            }
            drop(store);
            let store = kind.open(&sim, Mode::Append).unwrap_or_else(|e| panic!("{what}: {e}"));
            let opened = store.read();
            let is_kept =
                |seen: &String| opened.contains(seen) || opened.contains(&format!("({seen})"));
            assert!(seen.iter().all(is_kept), "{what}: {seen:?}, then {opened:?}");
            store.commit(&of_query("q", 0), &parts).unwrap();
            assert_eq!(store.read(), kind.all(), "{what}");
        }
        assert!(left_nothing > 5 && had_begun > 5, "{kind:?}: {left_nothing}, {had_begun}");
    }
}

// Promise: transaction-call-fails.
#[test]
fn an_unfinishable_commit_is_abandoned_only_on_request() {
    let kinds = KINDS.into_iter().filter(|kind| *kind != Kind::Ledger);
    let damages = [ErrorKind::Missing, ErrorKind::Corrupt];
    for (kind, damage) in kinds.flat_map(|kind| damages.map(|damage| (kind, damage))) {
        let (sim, parts) = stopped(kind);
        let reader = kind.open(&sim, Mode::Read).unwrap();
        assert!(!reader.discard(JOB), "an abort must not");
        let path = kind.last_staged();
        match damage {
            ErrorKind::Missing => sim.remove(path.as_ref()).unwrap(),
            _ => change_byte(&sim, &path),
        }
        let error = kind.open(&sim, Mode::Append).map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), damage, "{kind:?}: {error}");
        assert_eq!(error.path().unwrap().to_str(), Some(&*path), "{error}");
        assert!(error.to_string().contains("deedbook vacuum --abandon"), "{error}");
        assert_eq!(kind.read(&sim), BEFORE, "reading goes on");
        assert_eq!(reader.abandon().unwrap(), Some(of_app(1)));
        let store = kind.open(&sim, Mode::Append).unwrap();
        assert!(store.discard(JOB));
        let again = stage_all(kind, &store);
        assert_eq!(again.len(), parts.len());
        assert!(!store.commit(&of_app(1), &again).unwrap().repeated);
        assert_eq!(store.read(), kind.all());
    }
}

#[test]
fn opening_saves_foreign_bytes_before_removing_them() {
    let (_, parts) = stopped(Kind::Book);
    let copied: u64 = parts.iter().map(|part| part.bytes).sum();
    // More bytes than the staged ones; as many, but after a record appended later; and a copy without its staged file.
    for (later, len, staged) in
        [(false, copied + 1, true), (true, copied, true), (false, parts[0].bytes, false)]
    {
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
        if !staged {
            sim.remove(Kind::Book.last_staged().as_ref()).unwrap();
        }
        let refused = Kind::Book.open(&sim, Mode::Append).err().map(|error| error.kind());
        assert_eq!(refused, (!staged).then_some(ErrorKind::Missing));
        assert_eq!(saved_tails(&sim), 1, "after another record: {later}, staged: {staged}");
    }
}

/// The log was replaced after a crash, and the intent was left next to the new one.
#[test]
fn a_begun_commit_of_another_log_is_dropped() {
    for (kind, file) in [(Kind::Book, "/log/book.log"), (Kind::Single, "/log")] {
        for (is_empty, is_other_empty) in
            [(false, false), (true, false), (true, true), (false, true)]
        {
            let sim = Sim::new();
            let store = kind.open(&sim, Mode::Create).unwrap();
            if !is_empty {
                BEFORE.iter().for_each(|payload| store.append(payload));
            }
            let parts = stage_all(kind, &store);
            sim.record();
            store.commit(&of_app(1), &parts).unwrap();
            let state = sim.recorded().into_iter().find(|s| kind.is_begun(&s.kill())).unwrap();
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
