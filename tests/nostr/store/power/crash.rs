//! Power cuts and process crashes at every storage call of every short history, on the simulated disk.

use crate::store::prelude::*;
use crate::support::report::number;

const STEPS: &str = "amvdfckxr";
/// The steps of longer histories, with a checkpoint by time, steps during a compaction, and retention.
const STEPS_BY_CHANCE: &str = "amvdfckxrtyzn";
/// The durability of appends, and by how many steps its histories are shorter; `None` is the default.
const DURABILITIES: [(Option<Durability>, usize); 4] = [
    (Some(Durability::Manual), 0),
    (Some(Durability::Always), 0),
    (None, 1),
    (Some(Durability::None), 1),
];

/// A store on each disk that a crash leaves, without the `lost` files.
struct Store<'a> {
    options: &'a Options,
    lost: &'static [&'static str],
}

impl World for Store<'_> {
    type Known = Known;

    fn recover(&self, disk: &Sim, known: &Known, crash: Crash) -> Result<(), String> {
        recover(disk, self.options, known, crash.is_of_power()).map(drop)
    }

    fn begin(&self, disk: &Sim) -> Result<(), String> {
        let on = self.options.clone().storage(Arc::new(disk.clone()));
        on.open(DIR, Mode::Append).map(drop).map_err(|e| format!("opening: {e:?}"))
    }

    fn lose(&self, disk: Sim) -> Sim {
        for path in self.lost {
            drop(disk.remove(Path::new(path)));
        }
        disk
    }
}

pub fn crashed(histories: &[&str], durability: Durability, checksums: bool) {
    crashed_in(of_tier("DEEDBOOK_NOSTR_STATES"), histories, durability, checksums);
}

pub fn crashed_in(states: u64, histories: &[&str], durability: Durability, checksums: bool) {
    for history in histories {
        let mut explorer = Explorer::default();
        crash(history, Run::new(durability, checksums), &[], Plan::of(states), &mut explorer);
        finish(None, explorer);
    }
}

/// The same with second crashes in the calls of the next opening, each in a number of states.
pub fn crashed_twice(history: &str, second_calls: usize, second_states: u64) {
    let plan = Plan { second_calls, second_states, ..Plan::of(2) };
    let mut explorer = Explorer::default();
    crash(history, Run::new(Durability::Manual, true), &[], plan, &mut explorer);
    finish(None, explorer);
}

fn crash(
    history: &str,
    mut run: Run,
    lost: &'static [&'static str],
    plan: Plan,
    explorer: &mut Explorer,
) {
    let Options { durability, checksums, page_bytes, .. } = &run.options;
    let what =
        format!("{durability:?} {history:?}, checksums {checksums}, pages of {page_bytes:?}");
    let last = history.chars().count();
    // Opening is also a step.
    for (at, step) in std::iter::once('o').chain(history.chars()).enumerate() {
        let before = run.known.clone();
        if at == last {
            run.disk.record();
        }
        match step {
            'o' => run.open().unwrap(),
            step => run.apply(step).unwrap_or_else(|e| panic!("{what}, {step}: {e:?}")),
        }
        if at < last {
            continue;
        }
        let during = Known::during(&before, &run.known);
        let mut moments: Vec<_> = run.disk.recorded().into_iter().map(|d| (d, &during)).collect();
        moments.push((run.disk.kill(), &run.known));
        let store = Store { options: &run.options, lost };
        explorer.explore(&what, &store, &moments, &plan);
    }
}

/// Print the counts. With a name, also write them for the published table.
fn finish(name: Option<&str>, explorer: Explorer) {
    println!("{}", explorer.json());
    if let Some(name) = name {
        report::write(&format!("store-crash-{name}"), &explorer.json());
    }
    let Explorer { failures, counts, .. } = explorer;
    let Counts { histories, moments, states, second, .. } = counts;
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
    assert!(moments > histories && states > moments && second > moments);
}

// Promise: store-power-loss.
#[test]
fn every_short_history_survives_every_crash() {
    let states = of_tier("DEEDBOOK_NOSTR_STATES").min(4);
    let steps = of_tier("DEEDBOOK_NOSTR_STEPS") as usize;
    let mut explorer = Explorer::default();
    for (durability, fewer) in DURABILITIES {
        for history in all_after("", steps.saturating_sub(fewer), STEPS) {
            let run = Run::new(durability, true);
            crash(&history, run, &[], Plan::of(states), &mut explorer);
            if explorer.failures.len() > 5 {
                break;
            }
        }
    }
    finish(Some("short"), explorer);
}

/// A checkpoint on request, and one by time.
// Promise: store-compaction, store-power-loss.
#[test]
fn a_checkpoint_survives_a_crash_at_every_call() {
    crashed(&["mk", "cmak", "vfvk", "mt", "cmat", "vfvt", "mtat"], Durability::Manual, true);
}

// Promise: store-compaction.
#[test]
fn a_compaction_survives_a_crash_at_every_call() {
    crashed(&["afx", "mmfx", "mvfvmdx"], Durability::Manual, true);
}

// Promise: store-compaction.
#[test]
fn retained_events_survive_every_crash() {
    let plan = Plan::of(of_tier("DEEDBOOK_NOSTR_STATES"));
    let mut explorer = Explorer::default();
    for durability in [Durability::Manual, Durability::Always] {
        for history in ["aamnc", "mvndnc", "mnyank"] {
            crash(history, Run::new(durability, true), &[], plan, &mut explorer);
        }
    }
    finish(None, explorer);
}

// Promise: store-compaction.
#[test]
fn appends_beside_a_compaction_survive_every_crash() {
    crashed(&["afy", "mvfz"], Durability::Manual, true);
}

/// Without its manifest, a store opened the old and the new segments of an interrupted compaction: every event was
/// there twice.
#[test]
fn interrupted_compaction_doubles_nothing_without_a_manifest() {
    let states = of_tier("DEEDBOOK_NOSTR_STATES").min(16);
    let histories = ["mmfx", "mmfxr", "afx", "mmmmfx", "mvfvmdx", "mfxmmfx"];
    for history in &histories[..of_tier("DEEDBOOK_NOSTR_INTERRUPTED") as usize] {
        for lost in [&[MANIFEST][..], &[COPY], &[MANIFEST, COPY]] {
            let mut explorer = Explorer::default();
            let run = Run::new(Durability::Manual, true);
            crash(history, run, lost, Plan::of(states), &mut explorer);
            finish(None, explorer);
        }
    }
}

// Promise: store-power-loss.
#[test]
fn longer_random_histories_survive_crashes_in_last_step() {
    let states = of_tier("DEEDBOOK_NOSTR_STATES").min(8);
    let seed = number("DEEDBOOK_SEED", 1);
    let mut explorer = Explorer::default();
    for round in 0..of_tier("DEEDBOOK_NOSTR_HISTORIES") {
        let chance = mix(seed ^ mix(round));
        let (history, durability) =
            (by_chance(STEPS_BY_CHANCE, chance), DURABILITIES[(mix(chance) % 4) as usize].0);
        let mut run = Run::new(durability, mix(chance ^ 1).is_multiple_of(2));
        run.options.page_bytes = [None, Some(1024)][(mix(chance ^ 2) % 2) as usize];
        crash(&history, run, &[], Plan::of(states), &mut explorer);
    }
    finish(Some("chance"), explorer);
}
