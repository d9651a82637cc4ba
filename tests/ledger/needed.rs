//! Each sync and each rename of a store is needed: see `tests/support/harness/mutated.rs`, and
//! `needed.txt` for what is caught.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use deedbook::Durability;
use deedbook::storage::sim::{Call, Fault, Sim, What};

use crate::support::crashes::choices;
use crate::support::harness::mutated::{At, Made, Mutated};
use crate::support::harness::mutations::Outcomes;
use crate::support::ledger::oracle::{Known, Run, options, recover};
use crate::support::ledger::spool::{DIR, small};
use crate::support::report;

/// How a history is run, the call at which a first store died, and its steps.
type History = (&'static str, Option<(Call, u64)>, &'static str);

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

/// A disk, a number for what is known then, and what that is.
type Moment = (Sim, usize, Known);

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

/// The names that people give to the files of a store.
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

/// A history on a disk that mutates one call: the moments with what is known then, the calls, and
/// whether it got to its end.
fn run(history: History, at: At) -> (Vec<Moment>, Vec<Made>, deedbook::Result<()>) {
    let (durability, died, steps) = history;
    let durability: Durability = durability.parse().unwrap();
    let mut run = Run::new(durability);
    if let Some((call, at)) = died {
        run.disk.inject(Fault::once(at, What::Crash).of(call));
        let _ = options(&run.disk, durability).open(small(DIR, 100_000));
        run.disk = run.disk.kill();
    }
    let mutated = Mutated::new(run.disk.clone(), Arc::new(kind), at);
    run.options = options(&run.disk, durability).storage(mutated.storage());
    run.disk.record();
    let mut moments = Vec::new();
    let mut step = |run: &mut Run, at: usize, op: char| {
        let before = run.known.clone();
        let done = match op {
            'o' => run.open(),
            op => {
                mutated.doing(doing(op));
                run.apply(op)
            }
        };
        let during = Known::during(&before, &run.known);
        let disks = run.disk.recorded().into_iter();
        moments.extend(disks.map(|disk| (disk, 2 * at, during.clone())));
        moments.push((run.disk.kill(), 2 * at + 1, run.known.clone()));
        done
    };
    let mut steps = std::iter::once('o').chain(steps.chars()).enumerate();
    let done = steps.try_for_each(|(at, op)| step(&mut run, at, op));
    (moments, mutated.made(), done)
}

#[test]
fn every_sync_and_rename_is_needed() {
    let states = report::of_tier("DEEDBOOK_MUTATION_STATES");
    let mut outcomes = Outcomes::default();
    for &history in HISTORIES {
        // States that are in order, each with what is known then.
        let mut good = BTreeSet::new();
        outcomes.try_all(&format!("{history:?}"), |at| {
            let (moments, made, done) = run(history, at);
            let mut judge = |(disk, number, known): &Moment| {
                let crashes = disk.crashes();
                for choice in choices(disk, states, 0) {
                    let image = crashes.build(&choice);
                    let key = (image.fingerprint(), *number);
                    if !good.contains(&key) {
                        recover(&image, known, true)?;
                        good.insert(key);
                    }
                }
                Ok(())
            };
            let judged = moments.iter().try_for_each(&mut judge);
            (made, judged.and(done.map_err(|error| format!("{error:?}"))))
        });
    }
    let wrong = outcomes.unlike(include_str!("needed.txt"), "ledger");
    assert!(wrong.is_empty(), "tests/ledger/needed.txt:\n{wrong}");
}
