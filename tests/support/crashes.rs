//! The crashes of a history: at each of its calls the process dies, or a power cut ends it. The first calls of the next
//! process crash as well.

use std::collections::HashSet;

use deedbook::storage::sim::{Choice, Sim};

use super::mix::mix;

/// States of a second crash at each call.
const SECOND_STATES: u64 = 3;

/// A kind of log that crashes: ledgers, event stores, piers.
pub trait World {
    /// The records that a reader may find.
    type Known;
    /// Open the log after a crash, judge it, append to it.
    fn recover(&self, disk: &Sim, known: &Self::Known, power: bool) -> Result<(), String>;
    /// The first calls of the next process, which crash as well.
    fn begin(&self, _disk: &Sim) -> Result<(), String> {
        Ok(())
    }
    /// Remove the files that the crash deletes.
    fn lose(&self, disk: Sim) -> Sim {
        disk
    }
}

/// How many crashes there were.
#[derive(Debug, Default)]
pub struct Counts {
    pub histories: u64,
    pub moments: u64,
    pub states: u64,
    pub second: u64,
    /// Disks that were judged after a power cut.
    pub distinct: HashSet<u64>,
    pub failures: Vec<String>,
}

impl Counts {
    /// As JSON, for the published table.
    pub fn json(&self) -> String {
        let Self { histories, moments, states, second, distinct, failures } = self;
        format!(
            "{{\"histories\": {histories}, \"moments\": {moments}, \"power_cuts\": {states}, \
             \"distinct_power_cuts\": {}, \"second_power_cuts\": {second}, \"failures\": {}}}\n",
            distinct.len(),
            failures.len()
        )
    }

    /// Crash at each of these moments, in at most `states` states of each, and note the first failure.
    pub fn explore<W: World>(
        &mut self,
        what: &str,
        world: &W,
        moments: &[(Sim, &W::Known)],
        states: u64,
    ) {
        self.histories += 1;
        for (call, (disk, known)) in moments.iter().enumerate() {
            if let Err(why) = self.moment(world, disk, known, states) {
                self.failures.push(format!("{what}, call {call} of {}: {why}", moments.len()));
                break;
            }
        }
    }

    fn moment<W: World>(
        &mut self,
        world: &W,
        disk: &Sim,
        known: &W::Known,
        states: u64,
    ) -> Result<(), String> {
        self.moments += 1;
        let killed = || world.lose(disk.kill());
        world.recover(&killed(), known, false).map_err(|why| format!("killed: {why}"))?;
        // The next process finds the writes of the dead one in the cache. Then a power cut ends it.
        self.second(world, &killed(), known).map_err(|why| format!("killed, cut: {why}"))?;
        let crashes = disk.crashes();
        let choices = choices(disk, states, 0);
        for (index, choice) in choices.iter().enumerate() {
            self.states += 1;
            let state = world.lose(crashes.build(choice));
            self.distinct.insert(state.fingerprint());
            world
                .recover(&state, known, true)
                .map_err(|why| format!("state {index}, {choice:?}: {why}"))?;
        }
        let Some(last) = choices.last() else { return Ok(()) };
        self.second(world, &world.lose(crashes.build(last)), known)
            .map_err(|why| format!("{last:?}, second crash: {why}"))
    }

    /// Crash the next process at some of its first calls.
    fn second<W: World>(&mut self, world: &W, disk: &Sim, known: &W::Known) -> Result<(), String> {
        disk.record();
        world.begin(disk)?;
        let moments = disk.recorded();
        let every = (moments.len() / 5).max(1);
        for (call, moment) in moments.iter().enumerate().step_by(every) {
            let crashes = moment.crashes();
            for choice in choices(moment, SECOND_STATES, self.second) {
                self.second += 1;
                world
                    .recover(&crashes.build(&choice), known, true)
                    .map_err(|why| format!("call {call}, {choice:?}: {why}"))?;
            }
        }
        Ok(())
    }
}

/// The states that a power cut at this moment may leave: all, or `states` of them. The first keeps no write that was not
/// synced, the second keeps all of them, and each other one keeps some by chance.
pub fn choices(disk: &Sim, states: u64, seed: u64) -> Vec<Choice> {
    let crashes = disk.crashes();
    let count = crashes.count();
    let choice = |index| match index {
        _ if count <= states => crashes.nth(index),
        0 => crashes.nth(0),
        1 => crashes.nth(count - 1),
        _ => crashes.sample(mix(seed ^ mix(index))),
    };
    (0..count.min(states)).map(choice).collect()
}

/// The disk after a power cut at this moment, in each of those states.
pub fn cuts(disk: &Sim, states: u64) -> Vec<Sim> {
    let crashes = disk.crashes();
    choices(disk, states, 0).iter().map(|choice| crashes.build(choice)).collect()
}

/// The disk after the death of the process at this moment, and after those power cuts.
pub fn images(disk: &Sim, states: u64) -> Vec<Sim> {
    std::iter::once(disk.kill()).chain(cuts(disk, states)).collect()
}

/// The disk after a power cut that takes all that it may.
pub fn worst(disk: &Sim) -> Sim {
    let crashes = disk.crashes();
    crashes.build(&crashes.nth(0))
}

/// All histories of at most so many steps of an alphabet, after those of `prefix`.
pub fn all_after(prefix: &str, steps: usize, alphabet: &str) -> Vec<String> {
    let mut all = vec![prefix.to_string()];
    let mut from = 0;
    for _ in 0..steps {
        let to = all.len();
        for at in from..to {
            let longer: Vec<_> = alphabet.chars().map(|op| format!("{}{op}", all[at])).collect();
            all.extend(longer);
        }
        from = to;
    }
    all
}

/// A history of 4 to 12 of these steps by chance.
pub fn by_chance(steps: &str, seed: u64) -> String {
    let steps: Vec<char> = steps.chars().collect();
    let count = 4 + mix(seed) % 9;
    let step = |at: u64| steps[(mix(seed ^ mix(at + 1)) % steps.len() as u64) as usize];
    (0..count).map(step).collect()
}
