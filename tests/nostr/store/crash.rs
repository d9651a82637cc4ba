//! Power cuts and deaths at every storage call of every short history, on the simulated disk.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use deedbook::nostr::Options;
use deedbook::storage::Storage;
use deedbook::storage::sim::Sim;
use deedbook::{Durability, Mode};

use crate::support::report::{self, number, of_tier};
use crate::support::store::events::mix;
use crate::support::store::judge::recover;
use crate::support::store::known::Known;
use crate::support::store::world::{DIR, Run};

const STEPS: &str = "amvdfckxr";
/// How appends are synced, and how many steps fewer all histories have; `None` is the default.
const DURABILITIES: [(Option<Durability>, usize); 4] = [
    (Some(Durability::Manual), 0),
    (Some(Durability::Always), 0),
    (None, 1),
    (Some(Durability::None), 1),
];

#[derive(Default)]
struct Counts {
    histories: u64,
    moments: u64,
    states: u64,
    second: u64,
    /// Disks that were judged.
    distinct: HashSet<u64>,
    failures: Vec<String>,
    /// Files that are lost with each crash.
    lost: &'static [&'static str],
}

impl Counts {
    /// A disk as the next process finds it.
    fn found(&self, disk: Sim) -> Sim {
        for path in self.lost {
            drop(disk.remove(Path::new(path)));
        }
        disk
    }
}

/// Crash one history at every call of its last step, in many states.
pub fn crashed(history: &str, durability: Durability, checksums: bool) {
    let states = of_tier("DEEDBOOK_NOSTR_STATES");
    let (begun, mut counts) = (Instant::now(), Counts::default());
    crash(history, durability, checksums, states, &mut counts);
    finish(None, begun, counts);
}

/// The same where files are lost with the crash.
pub fn crashed_without(history: &str, lost: &'static [&'static str]) {
    let states = of_tier("DEEDBOOK_NOSTR_STATES").min(16);
    let (begun, mut counts) = (Instant::now(), Counts { lost, ..Counts::default() });
    crash(history, Durability::Manual, true, states, &mut counts);
    finish(None, begun, counts);
}

/// Crash a history at every call of its last step.
fn crash(
    history: &str,
    durability: impl Into<Option<Durability>>,
    checksums: bool,
    states: u64,
    counts: &mut Counts,
) {
    let durability = durability.into();
    let mut run = Run::new(durability, checksums);
    let how = durability.map_or_else(|| "default".into(), |durability| durability.to_string());
    let what = format!("{how} {history:?}, checksums {checksums}");
    let last = history.chars().count();
    // Opening is a step as well.
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
        for (call, (disk, known)) in moments.iter().enumerate() {
            let judged = judge_moment(disk, &run.options, known, states, counts);
            if let Err(why) = judged {
                counts.failures.push(format!("{what}, call {call} of {}: {why}", moments.len()));
                break;
            }
        }
    }
    counts.histories += 1;
}

/// Kill the process, and cut the power, at this moment.
fn judge_moment(
    disk: &Sim,
    options: &Options,
    known: &Known,
    states: u64,
    counts: &mut Counts,
) -> Result<(), String> {
    counts.moments += 1;
    let killed = counts.found(disk.kill());
    recover(&killed, options, known, false).map_err(|why| format!("killed: {why}"))?;
    // The next process finds in the cache what the dead one had written, and the power is cut.
    second(&counts.found(disk.kill()), options, known, counts)
        .map_err(|why| format!("killed, cut: {why}"))?;
    let crashes = disk.crashes();
    let count = states.min(crashes.count());
    for index in 0..count {
        let choice = match index {
            // Nothing kept, all kept, and between them.
            0 => crashes.nth(0),
            1 => crashes.nth(crashes.count() - 1),
            _ if crashes.count() <= states => crashes.nth(index),
            _ => crashes.sample(mix(index)),
        };
        counts.states += 1;
        let state = counts.found(crashes.build(&choice));
        counts.distinct.insert(state.fingerprint());
        recover(&state, options, known, true)
            .map_err(|why| format!("state {index}, {choice:?}: {why}"))?;
        if index == count - 1 {
            second(&counts.found(crashes.build(&choice)), options, known, counts)
                .map_err(|why| format!("state {index}, {choice:?}, second crash: {why}"))?;
        }
    }
    Ok(())
}

/// Crash the opening that follows a crash, at each of its calls.
fn second(disk: &Sim, options: &Options, known: &Known, counts: &mut Counts) -> Result<(), String> {
    disk.record();
    let on = options.clone().storage(Arc::new(disk.clone()));
    drop(on.open(DIR, Mode::Append).map_err(|e| format!("opening: {e:?}"))?);
    let moments = disk.recorded();
    let every = (moments.len() / 5).max(1);
    for (call, moment) in moments.iter().enumerate().step_by(every) {
        let crashes = moment.crashes();
        for choice in [crashes.nth(0), crashes.sample(mix(counts.second))] {
            counts.second += 1;
            recover(&crashes.build(&choice), options, known, true)
                .map_err(|why| format!("call {call}, {choice:?}: {why}"))?;
        }
    }
    Ok(())
}

fn histories(steps: usize) -> Vec<String> {
    let (mut all, mut from) = (vec![String::new()], 0);
    for _ in 0..steps {
        let to = all.len();
        for at in from..to {
            let longer: Vec<_> = STEPS.chars().map(|step| format!("{}{step}", all[at])).collect();
            all.extend(longer);
        }
        from = to;
    }
    all
}

/// Say what was tried; with a name, also for the published table.
fn finish(name: Option<&str>, begun: Instant, counts: Counts) {
    let Counts { histories, moments, states, second, failures, distinct, .. } = counts;
    if let Some(name) = name {
        let json = format!(
            "{{\"histories\": {histories}, \"moments\": {moments}, \"power_cuts\": {states}, \
             \"distinct_power_cuts\": {}, \"second_power_cuts\": {second}, \"failures\": {}}}\n",
            distinct.len(),
            failures.len()
        );
        report::write(&format!("store-crash-{name}"), &json);
    }
    println!(
        "{histories} histories, {moments} moments, {states} power cuts, {second} second ones, {:.1} s",
        begun.elapsed().as_secs_f32()
    );
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
    assert!(moments > histories && states > moments && second > moments);
}

// Promise: store-power-loss.
#[test]
fn every_short_history_survives_every_crash() {
    let states = of_tier("DEEDBOOK_NOSTR_STATES").min(4);
    let steps = of_tier("DEEDBOOK_NOSTR_STEPS") as usize;
    let (begun, mut counts) = (Instant::now(), Counts::default());
    for (durability, fewer) in DURABILITIES {
        for history in histories(steps.saturating_sub(fewer)) {
            crash(&history, durability, true, states, &mut counts);
            if counts.failures.len() > 5 {
                break;
            }
        }
    }
    finish(Some("short"), begun, counts);
}

// Promise: store-compaction.
#[test]
fn a_checkpoint_survives_a_crash_at_every_call() {
    for history in ["mk", "cmak", "vfvk"] {
        crashed(history, Durability::Manual, true);
    }
}

// Promise: store-compaction.
#[test]
fn a_compaction_survives_a_crash_at_every_call() {
    for history in ["afx", "mmfx", "mvfvmdx"] {
        crashed(history, Durability::Manual, true);
    }
}

/// Without its manifest, a store took the old segments of an interrupted compaction and the new ones:
/// every event was there twice.
#[test]
fn a_compaction_that_a_crash_interrupted_doubles_nothing_without_a_manifest() {
    const MANIFEST: &str = "/events/manifest.json";
    const COPY: &str = "/events/.deedbook/manifest";
    let histories = ["mmfx", "mmfxr", "afx", "mmmmfx", "mvfvmdx", "mfxmmfx"];
    for history in &histories[..of_tier("DEEDBOOK_NOSTR_INTERRUPTED") as usize] {
        crashed_without(history, &[MANIFEST]);
        crashed_without(history, &[COPY]);
        crashed_without(history, &[MANIFEST, COPY]);
    }
}

// Promise: store-power-loss.
#[test]
fn longer_histories_by_chance_survive_every_crash_of_their_last_step() {
    let states = of_tier("DEEDBOOK_NOSTR_STATES").min(8);
    let seed = number("DEEDBOOK_SEED", 1);
    let (begun, mut counts) = (Instant::now(), Counts::default());
    for round in 0..of_tier("DEEDBOOK_NOSTR_HISTORIES") {
        let draw = |at: u64| mix(seed ^ mix(round) ^ mix(at));
        let step = |at| STEPS.as_bytes()[(draw(at) % STEPS.len() as u64) as usize] as char;
        let history: String = (0..3 + draw(99) % 9).map(step).collect();
        let durability = DURABILITIES[(draw(98) % 4) as usize].0;
        crash(&history, durability, draw(97) % 2 == 0, states, &mut counts);
    }
    finish(Some("chance"), begun, counts);
}
