//! The crashes of a history: at each of its calls the process dies, or the power is cut. What the next process does
//! first is crashed, too.

use std::collections::HashSet;

use deedbook::storage::sim::{Choice, Sim};

use super::mix::mix;

/// States of a second crash at each call.
const SECOND_STATES: u64 = 3;

/// What is crashed: a ledger, an event store, a pier.
pub trait World {
    /// What may be found.
    type Known;
    /// Open what a crash left, judge it, go on with it.
    fn recover(&self, disk: &Sim, known: &Self::Known, power: bool) -> Result<(), String>;
    /// What the next process does first, where that is crashed as well.
    fn begin(&self, _disk: &Sim) -> Result<(), String> {
        Ok(())
    }
    /// What a crash takes along.
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

    /// Crash each of these moments, at most so many states of each; note the first failure.
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
        // The next process finds in the cache what the dead one had written, and the power is cut.
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

    /// Crash what the next process does first, at some of its calls.
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

/// The states that a power cut at this moment may leave: all, or so many of them. Nothing that was not synced is kept
/// in the first, all of it in the second, and a part by chance in the others.
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

/// What is left if the power cut takes everything that it may.
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
