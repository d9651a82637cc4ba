//! The crashes of a history: at each call the process crashes, or the power fails. The first calls of the next process
//! crash as well.

use std::collections::HashSet;

use deedbook::storage::sim::{Choice, Sim};

use super::mix::mix;

/// Most hashes of states in memory; beyond, some states are judged and counted again.
const SEEN_MAX: usize = 1 << 23;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// The process crashed, and the disk has all its writes.
    Killed,
    Power,
    /// The power was cut, and again during the first calls of the next process; the explorer judges both states.
    PowerTwice,
    /// The power was cut during the first calls of the process after a crash.
    Second,
}

impl Crash {
    /// Whether the disk may lack unsynced writes.
    pub fn is_of_power(self) -> bool {
        self != Self::Killed
    }
}

/// A kind of log that crashes.
pub trait World {
    /// The records that a reader may find.
    type Known;
    /// Open the log after a crash, judge the contents, append.
    fn recover(&self, disk: &Sim, known: &Self::Known, crash: Crash) -> Result<(), String>;
    /// The first calls of the next process, which crash as well.
    fn begin(&self, _disk: &Sim) -> Result<(), String> {
        Ok(())
    }
    fn lose(&self, disk: Sim) -> Sim {
        disk
    }
    /// Moments with the same number allow the same contents, and a disk is judged once for each; without one, always.
    fn context(&self, _known: &Self::Known) -> Option<u64> {
        None
    }
    /// A number for a moment, the same in each run, which chooses the tried states; without one, the call's number.
    fn place(&self, _known: &Self::Known) -> Option<u64> {
        None
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub seed: u64,
    /// Most states of each moment: all if there are no more, otherwise by chance.
    pub states: u64,
    /// The next process crashes after one of so many distinct states; `None`: after the last state of each moment.
    pub second_every: Option<u64>,
    /// At how many of its calls the next process crashes.
    pub second_calls: usize,
    /// States of a second crash at each of these calls.
    pub second_states: u64,
}

impl Plan {
    /// A few second crashes after each moment.
    pub fn of(states: u64) -> Self {
        Self { seed: 0, states, second_every: None, second_calls: 5, second_states: 3 }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub histories: u64,
    pub moments: u64,
    pub states: u64,
    /// Disks that were judged after a power cut.
    pub distinct: u64,
    pub second: u64,
    pub distinct_second: u64,
}

impl Counts {
    pub fn add(&mut self, other: &Self) {
        self.histories += other.histories;
        self.moments += other.moments;
        self.states += other.states;
        self.distinct += other.distinct;
        self.second += other.second;
        self.distinct_second += other.distinct_second;
    }

    pub fn json(&self) -> String {
        let Self { histories, moments, states, distinct, second, distinct_second } = self;
        format!(
            "{{\"histories\": {histories}, \"moments\": {moments}, \"power_cuts\": {states}, \
             \"distinct_power_cuts\": {distinct}, \"second_power_cuts\": {second}, \
             \"distinct_second_power_cuts\": {distinct_second}}}"
        )
    }
}

/// Crashes histories, and counts and remembers the states.
#[derive(Debug, Default)]
pub struct Explorer {
    pub counts: Counts,
    pub failures: Vec<String>,
    seen: HashSet<u64>,
    seen_second: HashSet<u64>,
}

impl Explorer {
    pub fn explore<W: World>(
        &mut self,
        what: &str,
        world: &W,
        moments: &[(Sim, &W::Known)],
        plan: &Plan,
    ) {
        self.counts.histories += 1;
        if self.seen.len() + self.seen_second.len() > SEEN_MAX {
            self.seen.clear();
            self.seen_second.clear();
        }
        for (call, (disk, known)) in moments.iter().enumerate() {
            let place = world.place(known).unwrap_or(call as u64);
            let seed = mix(plan.seed ^ mix(place));
            let plan = Plan { seed, ..*plan };
            if let Err(why) = self.moment(world, disk, known, &plan) {
                self.failures.push(format!("{what}, call {call} of {}: {why}", moments.len()));
                break;
            }
        }
    }

    pub fn json(&self) -> String {
        let counts = self.counts.json();
        let counts = counts.trim_end_matches('}');
        format!("{counts}, \"failures\": {}}}\n", self.failures.len())
    }

    fn moment<W: World>(
        &mut self,
        world: &W,
        disk: &Sim,
        known: &W::Known,
        plan: &Plan,
    ) -> Result<(), String> {
        self.counts.moments += 1;
        let context = world.context(known);
        let killed = || world.lose(disk.kill());
        let is_new =
            context.is_none_or(|of| self.seen.insert(mix(killed().fingerprint() ^ of ^ 1)));
        if is_new {
            world
                .recover(&killed(), known, Crash::Killed)
                .map_err(|why| format!("killed: {why}"))?;
            // The next process finds the dead process's writes in the cache. Then a power cut ends it.
            self.second(world, &killed(), known, plan)
                .map_err(|why| format!("killed, cut: {why}"))?;
        }
        let crashes = disk.crashes();
        let choices = choices(disk, plan.states, plan.seed);
        for (index, choice) in choices.iter().enumerate() {
            self.counts.states += 1;
            let state = || world.lose(crashes.build(choice));
            let here = state();
            let key = mix(here.fingerprint() ^ context.unwrap_or(0));
            let is_new = self.seen.insert(key);
            self.counts.distinct += u64::from(is_new);
            let is_last = index + 1 == choices.len();
            let twice = plan.second_every.map_or(is_last, |every| key.is_multiple_of(every));
            if context.is_some() && !is_new {
                continue;
            }
            let there = |why| format!("state {index} of {}, {choice:?}: {why}", crashes.count());
            let crash = if twice { Crash::PowerTwice } else { Crash::Power };
            world.recover(&here, known, crash).map_err(there)?;
            if twice {
                self.second(world, &state(), known, &Plan { seed: key, ..*plan })
                    .map_err(|why| there(format!("second crash: {why}")))?;
            }
        }
        Ok(())
    }

    fn second<W: World>(
        &mut self,
        world: &W,
        disk: &Sim,
        known: &W::Known,
        plan: &Plan,
    ) -> Result<(), String> {
        disk.record();
        world.begin(disk)?;
        let moments = disk.recorded();
        let every = (moments.len() / plan.second_calls).max(1);
        let context = world.context(known);
        for (call, moment) in moments.iter().enumerate().step_by(every) {
            let crashes = moment.crashes();
            let seed = context.map_or(self.counts.second, |_| plan.seed ^ mix(call as u64));
            for choice in choices(moment, plan.second_states, seed) {
                self.counts.second += 1;
                let state = crashes.build(&choice);
                let key = mix(state.fingerprint() ^ context.unwrap_or(0));
                let is_new = !self.seen.contains(&key) && self.seen_second.insert(key);
                self.counts.distinct_second += u64::from(is_new);
                if context.is_some() && !is_new {
                    continue;
                }
                world
                    .recover(&state, known, Crash::Second)
                    .map_err(|why| format!("call {call}, {choice:?}: {why}"))?;
            }
        }
        Ok(())
    }
}

/// A log that functions open and judge; they panic.
struct Judged<B, J>(B, J);

impl<B: Fn(&Sim), J: Fn(&Sim)> World for Judged<B, J> {
    type Known = ();
    fn recover(&self, disk: &Sim, (): &(), _crash: Crash) -> Result<(), String> {
        (self.1)(disk);
        Ok(())
    }
    fn begin(&self, disk: &Sim) -> Result<(), String> {
        (self.0)(disk);
        Ok(())
    }
}

/// Crash at each recorded call, and again in the next process's `begin`.
pub fn crash_each(disk: &Sim, states: u64, begin: impl Fn(&Sim), judge: impl Fn(&Sim)) -> Counts {
    let moments: Vec<_> = disk.recorded().into_iter().map(|moment| (moment, &())).collect();
    let mut explorer = Explorer::default();
    explorer.explore("", &Judged(begin, judge), &moments, &Plan::of(states));
    explorer.counts
}

/// The disks that a kill and power cuts leave at each recorded call.
pub fn recorded_images(disk: &Sim, states: u64) -> impl Iterator<Item = Sim> {
    disk.recorded().into_iter().flat_map(move |moment| images(&moment, states))
}

/// The states that a power cut at this moment may leave: all, or `states` of them. The first state keeps no unsynced
/// write, the second keeps all, and each other state keeps some by chance.
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

/// The disk after a power cut at this moment, in each of the states.
pub fn cuts(disk: &Sim, states: u64) -> Vec<Sim> {
    let crashes = disk.crashes();
    choices(disk, states, 0).iter().map(|choice| crashes.build(choice)).collect()
}

pub fn images(disk: &Sim, states: u64) -> Vec<Sim> {
    std::iter::once(disk.kill()).chain(cuts(disk, states)).collect()
}

pub fn worst(disk: &Sim) -> Sim {
    let crashes = disk.crashes();
    crashes.state(0)
}

/// All histories of at most `steps` steps of an alphabet, after the steps of `prefix`.
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

pub fn by_chance(steps: &str, seed: u64) -> String {
    let steps: Vec<char> = steps.chars().collect();
    let count = 4 + mix(seed) % 9;
    let step = |at: u64| steps[(mix(seed ^ mix(at + 1)) % steps.len() as u64) as usize];
    (0..count).map(step).collect()
}
