//! The common interface of the stores. The lifecycle of the specification is an example of `TransientDB`.

use deedbook::ledger::{DataStore, MemoryStore, TransientDB};
use serde_json::json;

use crate::prelude::*;

/// Append from threads, fetch in parts, remove each sent part: one test for every store.
fn lifecycle<S: DataStore>(store: S, sent: impl Fn(S::Output) -> Vec<Vec<u8>>) {
    let db = TransientDB::new(store);
    assert!(!db.has_data().unwrap());
    let error = db.append_bytes(b"").unwrap_err();
    assert_eq!((error.kind(), error.durable()), (ErrorKind::InvalidArgument, Some(Durable::No)));
    assert_eq!(error.message(), "record of 0 bytes, at least 1");
    assert!(!db.has_data().unwrap());
    assert!(db.fetch(None, None).unwrap().is_none());
    db.append(json!({"event": "page_view"})).unwrap();
    db.append_bytes(br#"{"event":"bytes"}"#).unwrap();
    assert!(db.has_data().unwrap());
    let mut seen = Vec::new();
    while let Some(result) = db.fetch(Some(1), None).unwrap() {
        seen.extend(sent(result.data.unwrap()));
        db.remove(&result.removable.unwrap()).unwrap();
    }
    assert_eq!(seen, [&br#"{"event":"page_view"}"#[..], br#"{"event":"bytes"}"#]);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let db = db.clone();
            scope.spawn(move || {
                for payload in events(100 * thread..100 * (thread + 1), 30) {
                    db.append_bytes(&payload).unwrap();
                }
            });
        }
    });
    let mut all = Vec::new();
    while let Some(result) = db.fetch(None, Some(700)).unwrap() {
        all.extend(sent(result.data.unwrap()));
        db.remove(&result.removable.unwrap()).unwrap();
    }
    all.sort();
    assert_eq!(all, events(0..400, 30));
    db.append("{}").unwrap();
    db.reset().unwrap();
    assert!(!db.has_data().unwrap());
    assert!(db.fetch(None, None).unwrap().is_none());
}

#[test]
fn ledger_and_memory_store_behave_alike() {
    lifecycle(MemoryStore::new(), |records| records);
    let (_, ledger) = in_memory(300);
    lifecycle(ledger, |readers| readers.iter().flat_map(payloads).collect());
}

#[test]
fn what_was_not_removed_is_fetched_again() {
    let store = MemoryStore::new();
    events(0..3, 0).iter().for_each(|payload| store.append(payload).unwrap());
    let first = store.fetch(Some(2), None).unwrap().unwrap();
    store.remove(&first.removable.unwrap()[1..]).unwrap();
    let left = store.fetch(None, None).unwrap().unwrap().data.unwrap();
    assert_eq!(left, [events(0..1, 0), events(2..3, 0)].concat());
}

/// Threads and other languages depend on these bounds.
#[test]
fn handles_and_readers_may_go_to_other_threads() {
    fn shared<T: Send + Sync + 'static>() {}
    shared::<LedgerStore>();
    shared::<LedgerReader>();
    shared::<TransientDB<LedgerStore>>();
    shared::<TransientDB<MemoryStore>>();
}
