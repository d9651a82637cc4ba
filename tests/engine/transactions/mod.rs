//! Transactions: staged records are appended once and completely, after every crash.

mod crashes;
mod ledger;
mod nostr;
mod places;
mod rules;
mod store;

use store::{KINDS, Kind, LOGS, PATH, Store};

use crate::support::common::{crc32, refused};
use crate::support::prelude::*;

/// The records before the transaction, the first three of them synced.
const BEFORE: [&str; 4] = ["one", "two", "three", "not synced"];
const STAGED: [&[&str]; 3] = [&["a", "bb"], &[], &["ccc ccc ccc ccc ccc", "d", "a"]];
const JOB: &str = "job-1";

fn of_app(version: u64) -> Transaction {
    let id = TransactionId { app: "etl".into(), query: None, version };
    Transaction { job: JOB.into(), id: Some(id) }
}

fn of_query(query: &str, version: u64) -> Transaction {
    let id = TransactionId { app: "etl".into(), query: Some(query.into()), version };
    Transaction { job: JOB.into(), id: Some(id) }
}

fn of_no_application() -> Transaction {
    Transaction { job: JOB.into(), id: None }
}

fn prepared(kind: Kind) -> (Sim, Store, Vec<Part>) {
    let sim = Sim::new();
    let store = kind.open(&sim, Mode::Create).unwrap();
    BEFORE[..3].iter().for_each(|payload| store.append(payload));
    store.sync();
    store.append(BEFORE[3]);
    let parts = stage_all(kind, &store);
    (sim, store, parts)
}

fn stage_all(kind: Kind, store: &Store) -> Vec<Part> {
    store.stage(0, 90, &["dead"]);
    let stage = |(i, payloads): (usize, &Vec<String>)| {
        let payloads: Vec<&str> = payloads.iter().map(String::as_str).collect();
        store.stage(i as u32, 10 + i as u64, &payloads)
    };
    kind.staged().iter().enumerate().rev().flat_map(stage).collect()
}

/// A commit stops half-way, without losing a written byte.
fn stopped(kind: Kind) -> (Sim, Vec<Part>) {
    let (sim, store, parts) = prepared(kind);
    sim.record();
    store.commit(&of_app(1), &parts).unwrap();
    let state = sim.recorded().iter().map(Sim::kill).find(|state| kind.is_begun(state));
    (state.unwrap(), parts)
}

fn change_byte(sim: &Sim, path: &str) {
    let file = sim.open(path.as_ref(), Access::Write).unwrap();
    let (mut byte, middle) = ([0], file.len().unwrap() / 2);
    file.read_at(&mut byte, middle).unwrap();
    file.write_at(&[byte[0] ^ 1], middle).unwrap();
}
