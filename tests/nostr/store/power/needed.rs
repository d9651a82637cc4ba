//! Each sync and each rename of an event store is needed: see `tests/support/needed.rs`, and `needed.txt` for what is
//! caught.

use std::ffi::OsStr;

use crate::store::prelude::*;
use crate::support::needed::{self, History, shown, unlike};

/// How many of the disks are opened by a writer and a reader, written, and opened again after a second power cut.
const WHOLE_EVERY: u64 = 8;

const HISTORIES: &[History] = &[
    ("manual", None, "amcmkac"),
    ("always", None, "amvdr"),
    ("manual", None, "mmcfxac"),
    ("manual", None, "amcrmr"),
    ("always", Some((Call::SyncDir, 1)), "a"),
    ("always", Some((Call::Rename, 1)), "a"),
];

impl needed::Run for Run {
    type Known = Known;

    fn on(disk: &Sim, how: &str) -> Self {
        Self::on(disk.clone(), how.parse::<Durability>().unwrap(), true)
    }

    fn mutate(&mut self, storage: Arc<dyn Storage>) {
        self.options.storage = storage;
    }

    fn step(&mut self, op: char) -> deedbook::Result<()> {
        if op == 'o' { self.open() } else { self.apply(op) }
    }

    fn doing(op: char) -> &'static str {
        match op {
            'c' => "sync",
            'f' => "flag",
            'k' => "checkpoint",
            'x' => "compact",
            'r' => "reopen",
            _ => "append",
        }
    }

    fn kind(path: &Path) -> String {
        let Ok(inside) = path.strip_prefix(DIR) else { return "/".into() };
        let name = |part: &OsStr| match part.to_str().unwrap() {
            part if part.starts_with("data.") => part.replace(|c: char| c.is_ascii_digit(), ""),
            part if part.starts_with("wal.") => part.replace(|c: char| c.is_ascii_digit(), ""),
            part => part.into(),
        };
        let parts: Vec<_> = inside.iter().map(name).collect();
        match parts.is_empty() {
            true => "store".into(),
            false => parts.join("/").replace("..", "."),
        }
    }

    fn known(&self) -> Known {
        self.known.clone()
    }

    fn during(before: &Known, after: &Known) -> Known {
        Known::during(before, after)
    }

    /// Most mutations show at the first opening: one of a few disks gets the whole judgement.
    fn recover(&self, disk: &Sim, known: &Known) -> Result<(), String> {
        if disk.fingerprint().is_multiple_of(WHOLE_EVERY) {
            return recover(disk, &self.options, known, true).map(drop);
        }
        let opened = on_disk(&self.options, disk).open(DIR, Mode::Append);
        let store = opened.map_err(|error| format!("opening: {error:?}"))?;
        known.judge(&look(&store, known, "after the crash")?, true)
    }
}

#[test]
fn every_sync_and_rename_is_needed() {
    let states = of_tier("DEEDBOOK_NOSTR_MUTATION_STATES");
    let wrong = unlike::<Run>(HISTORIES, states, include_str!("needed.txt"), "store");
    assert!(wrong.is_empty(), "tests/nostr/store/power/needed.txt:\n{wrong}");
}

/// Only the manifest says how much of the last segment a checkpoint covers. Without it, a page that a crash tore is damage.
#[test]
fn disk_that_drops_the_manifests_sync_is_caught() {
    let sync = "checkpoint: sync manifest.json.tmp";
    let why = shown::<Run>(("manual", None, "akm"), sync, 200);
    assert!(why.is_some());
}
