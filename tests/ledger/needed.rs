//! Each sync and each rename of a store is needed: see `tests/support/needed.rs`, and `needed.txt` for what is caught.

use crate::prelude::*;
use crate::support::ledger::oracle::{Known, Run, recover};
use crate::support::needed::{self, History, unlike};

const HISTORIES: &[History] = &[
    ("manual", None, "abmsafxar"),
    ("always", None, "abfxaz"),
    ("rotate", None, "mabfxm"),
    ("bytes:300", None, "aabmr"),
    ("none", None, "amsfx"),
    ("manual", None, "amwmafxs"),
    ("manual", None, "abmsfxwabsfxzas"),
    ("always", None, "abfza"),
    ("always", None, "mfrz"),
    ("always", None, "wawafxwfxa"),
    ("always", Some((Call::SyncDir, 1)), "a"),
    ("always", Some((Call::SyncDir, 1)), "fxafx"),
    ("rotate", Some((Call::SyncDir, 1)), "mm"),
    ("rotate", Some((Call::SyncDir, 1)), "ar"),
    ("manual", Some((Call::SyncDir, 1)), "as"),
];

impl needed::Run for Run {
    type Known = Known;

    fn on(disk: &Sim, how: &str) -> Self {
        Self::on(disk.clone(), how.parse::<Durability>().unwrap())
    }

    fn mutate(&mut self, storage: Arc<dyn Storage>) {
        self.options.storage = storage;
    }

    fn step(&mut self, op: char) -> deedbook::Result<()> {
        if op == 'o' { self.open() } else { self.apply(op) }
    }

    fn doing(op: char) -> &'static str {
        match op {
            's' => "sync",
            'f' => "fetch",
            'x' => "remove",
            'r' => "reopen",
            'z' => "reset",
            'w' => "open",
            _ => "append",
        }
    }

    fn kind(path: &Path) -> String {
        let name = path.file_name().unwrap_or("/".as_ref()).to_string_lossy();
        match path.components().count() {
            1 => "/".into(),
            2 => "directory".into(),
            3 if name == ".deedbook" => "sidecar".into(),
            3 => "file".into(),
            4 if name.ends_with(".tmp") => "next index.tmp".into(),
            4 if name.starts_with("next-") => "next index".into(),
            4 => "leases".into(),
            _ => "lease".into(),
        }
    }

    fn known(&self) -> Known {
        self.known.clone()
    }

    fn during(before: &Known, after: &Known) -> Known {
        Known::during(before, after)
    }

    fn recover(&self, disk: &Sim, known: &Known) -> Result<(), String> {
        recover(disk, known, true).map(drop)
    }
}

// Promise: ledger-names.
#[test]
fn every_sync_and_rename_is_needed() {
    let states = report::of_tier("DEEDBOOK_MUTATION_STATES");
    let wrong = unlike::<Run>(HISTORIES, states, include_str!("needed.txt"), "ledger");
    assert!(wrong.is_empty(), "tests/ledger/needed.txt:\n{wrong}");
}
