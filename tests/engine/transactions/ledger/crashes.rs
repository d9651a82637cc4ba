//! Commits of a ledger die, or fail, at every step.

use super::*;

/// A commit died, and a sender removed the files published so far.
// Promise: transaction-ledger.
#[test]
fn finishing_a_commit_resends_no_record() {
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

/// The commit had claimed indexes, and readers took them for lost files.
#[test]
fn a_commit_without_stored_intent_leaves_no_gap() {
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
            // After a failed sync.
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

/// Finishing fails while a store is opened: the store appends and sends, and the store's next commit finishes.
#[test]
fn an_unfinished_commit_does_not_block_the_ledger() {
    let (states, parts) = begun();
    for state in [&states[0], &states[2]] {
        let calls = {
            let state = state.kill();
            drop(open(&state));
            state.calls()
        };
        for at in 4..=calls {
            let state = state.kill();
            state.inject(Fault::once(at, What::Error(io::ErrorKind::Other)));
            let store = open(&state);
            state.heal();
            store.append(b"after").unwrap();
            assert!(store.commit_staged(&of_query("q", 0), &parts).unwrap().repeated);
            let found = payloads(&state);
            assert_eq!(found.len(), Kind::Ledger.all().len() + 1, "call {at}: {found:?}");
        }
    }
}

/// A store took another user's unreadable record of transactions for a missing file, and appended a
/// batch twice. The next commit replaced an unreadable intent.
#[test]
fn unreadable_transaction_files_do_not_count_as_missing() {
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
            assert_eq!(payloads(&state), Kind::Ledger.all(), "{has_intent}, call {at}");
        }
        assert!(failed > 5, "{failed}");
    }
}

/// Spark calls `abort` also after a commit without an answer.
#[test]
fn an_abort_keeps_files_of_a_begun_commit() {
    let (states, parts) = begun();
    for state in states {
        let busy = state.lock(intent().parent().unwrap(), false).unwrap();
        let store = open(&state);
        assert!(is_begun(&state), "another store is at it");
        assert!(!store.discard_staged(JOB).unwrap());
        assert!(store.staged().unwrap().iter().all(|job| job.is_committing));
        drop(busy);
        assert!(open(&state).commit_staged(&of_query("q", 0), &parts).unwrap().repeated);
        assert_eq!(payloads(&state), Kind::Ledger.all());
    }
}

#[test]
fn a_damaged_intent_is_abandoned_only_on_request() {
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
