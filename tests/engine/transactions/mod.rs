//! Transactions: what tasks staged is appended once and whole, whatever dies.

mod crashes;
mod ledger;
mod nostr;
mod places;
mod rules;
mod store;

use deedbook::Mode;
use deedbook::jobs::{Part, Transaction, TransactionId};
use deedbook::storage::sim::Sim;

use store::{Kind, Store};

/// Records that are there before, the first three of them synced.
const BEFORE: [&str; 4] = ["one", "two", "three", "not synced"];
/// What a job stages, by its partitions.
const STAGED: [&[&str]; 3] = [&["a", "bb"], &[], &["ccc ccc ccc ccc ccc", "d", "a"]];
const JOB: &str = "job-1";

fn all() -> Vec<String> {
    let staged = STAGED.concat();
    BEFORE.iter().chain(&staged).map(ToString::to_string).collect()
}

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

/// A log with its records, and the parts of the job, the last of them first.
fn prepared(kind: Kind) -> (Sim, Store, Vec<Part>) {
    let sim = Sim::new();
    let store = kind.open(&sim, Mode::Create).unwrap();
    BEFORE[..3].iter().for_each(|payload| store.append(payload));
    store.sync();
    store.append(BEFORE[3]);
    let parts = stage_all(&store);
    (sim, store, parts)
}

fn stage_all(store: &Store) -> Vec<Part> {
    // An attempt that is not committed.
    store.stage(JOB, 0, 90, &["dead"]);
    let numbered = STAGED.iter().enumerate().rev();
    numbered.map(|(i, payloads)| store.stage(JOB, i as u32, 10 + i as u64, payloads)).collect()
}
