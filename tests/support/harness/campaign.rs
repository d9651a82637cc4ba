//! A campaign of crashes against a subject, over all cores, and the result as JSON.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::config::Config;
use super::explore::{Crashed, moments};
use super::{Steps, Subject, hash, mix};
use crate::support::prelude::*;
use crate::support::report;

/// The configurations, and by how many steps their short histories are shorter.
const CONFIGS: [(&str, usize); 8] = [
    ("manual", 0),
    ("always", 0),
    ("manual-acknowledged", 0),
    ("manual-reserve", 1),
    ("always-reserve", 1),
    ("always-acknowledged", 1),
    ("bytes", 1),
    ("none", 1),
];
/// States of a moment with a block of the index in flight: hundreds of sectors.
const PER_MOMENT_BLOCKS: u64 = 4;
/// Most steps after the steps that close blocks: each makes many calls.
const STEPS_BLOCKS_MAX: usize = 2;

/// A history, the first step with crashes, and the states tried of each moment.
struct Task {
    history: String,
    from: usize,
    per_moment: u64,
}

struct Outcome {
    config: &'static str,
    short: Counts,
    all: Counts,
    seconds: f64,
    failures: Vec<String>,
}

/// Crash all short histories, then longer ones by chance; write the counts. A failure says how to repeat it.
pub fn crash(subject: &Subject) {
    let share = subject.steps.share;
    let states = report::of_tier("DEEDBOOK_CRASH_STATES") / share;
    let seed = report::number("DEEDBOOK_CRASH_SEED", 1);
    let steps = report::of_tier("DEEDBOOK_CRASH_STEPS") as usize;
    let only = std::env::var("DEEDBOOK_CRASH_HISTORY").ok();
    let only = only.as_deref().map(|only| only.split_once(':').expect("CONFIG:STEPS"));
    let began = Instant::now();
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::new());
    let work = || {
        while let Some(&(config, fewer)) = CONFIGS.get(next.fetch_add(1, Ordering::Relaxed)) {
            if subject.appends_sync && Config::named(config).how.acknowledged() {
                // A crash within an append may leave more records than were acknowledged before.
                continue;
            }
            let campaign = Campaign { subject, config, states, seed };
            let tasks = match only {
                None => campaign.tasks(steps.saturating_sub(fewer)),
                Some((name, history)) if name == config => campaign.only(history),
                Some(_) => continue,
            };
            outcomes.lock().unwrap().push(campaign.run(tasks, only.is_none()));
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
        (0..threads).for_each(|_| drop(scope.spawn(work)));
    });
    let mut outcomes = outcomes.into_inner().unwrap();
    outcomes.sort_by_key(|outcome: &Outcome| CONFIGS.iter().position(|c| c.0 == outcome.config));
    publish(subject, &outcomes, seed, steps, states, began.elapsed().as_secs_f64());
    let failures: Vec<_> = outcomes.into_iter().flat_map(|outcome| outcome.failures).collect();
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

struct Campaign<'a> {
    subject: &'a Subject,
    config: &'static str,
    states: u64,
    seed: u64,
}

impl Campaign<'_> {
    /// Every state of nearly every moment, unless the campaign wants only a few.
    fn per_moment(&self) -> u64 {
        (self.states / 1000).clamp(16, 1 << 12)
    }

    /// All short histories. Their first steps are the last steps of shorter histories.
    fn tasks(&self, steps: usize) -> Vec<Task> {
        let Steps { alphabet, families, blocks, .. } = self.subject.steps;
        let task = |per_moment| {
            move |history: String| {
                let from = history.chars().count();
                Task { history, from, per_moment }
            }
        };
        let mut tasks = Vec::new();
        for (prefix, fewer) in families {
            let all = all_after(prefix, steps.saturating_sub(*fewer), alphabet).into_iter();
            // Only the empty history is crashed from its creation on.
            let new = all.skip(usize::from(!prefix.is_empty()));
            tasks.extend(new.map(task(self.per_moment())));
        }
        if !blocks.0.is_empty() {
            let steps = steps.saturating_sub(1).min(STEPS_BLOCKS_MAX);
            let all = all_after(blocks.0, steps, blocks.1).into_iter();
            tasks.extend(all.map(task(PER_MOMENT_BLOCKS)));
        }
        tasks
    }

    fn only(&self, history: &str) -> Vec<Task> {
        vec![Task { history: history.into(), from: 0, per_moment: self.per_moment() }]
    }

    fn run(&self, tasks: Vec<Task>, then_longer: bool) -> Outcome {
        let began = Instant::now();
        let mut explorer = Explorer::default();
        let nested = self.subject.nested();
        let check = |explorer: &mut Explorer, task: &Task| {
            let history = AssertUnwindSafe(|| self.history(explorer, &nested, task));
            let done = catch_unwind(history).unwrap_or_else(|_| Err("panicked, see above".into()));
            let failure = done.err().map(|what| format!("{}: {what}", self.named(task)));
            explorer.failures.extend(failure);
            explorer.failures.len() < 3
        };
        let going_on = tasks.iter().all(|task| check(&mut explorer, task));
        let short = explorer.counts;
        let configs = CONFIGS.len() as u64;
        let enough = self.states.max(short.states * configs + self.states / 4) / configs;
        let longer = self.subject.steps.longer;
        let mut number = 0;
        while going_on && then_longer && explorer.counts.states < enough {
            number += 1;
            let history = by_chance(longer, mix(self.seed ^ number));
            let per_moment = self.per_moment().min(1 << 8);
            if !check(&mut explorer, &Task { history, from: 0, per_moment }) {
                break;
            }
        }
        let (config, seconds) = (self.config, began.elapsed().as_secs_f64());
        Outcome { config, short, all: explorer.counts, seconds, failures: explorer.failures }
    }

    fn history(&self, explorer: &mut Explorer, nested: &[u8], task: &Task) -> Result<(), String> {
        let crashed = Crashed { subject: self.subject, config: Config::named(self.config) };
        let of = moments(self.subject, crashed.config, nested, &task.history, task.from)?;
        let known: Vec<_> = of.iter().map(|moment| (moment.disk.clone(), moment)).collect();
        let seed = self.seed ^ hash(task.history.as_bytes());
        let (states, second_every) = (task.per_moment, Some(16));
        let plan = Plan { seed, states, second_every, second_calls: usize::MAX, second_states: 3 };
        explorer.explore(&self.named(task), &crashed, &known, &plan);
        Ok(())
    }

    fn named(&self, task: &Task) -> String {
        format!(
            "{}: DEEDBOOK_CRASH_SEED={} DEEDBOOK_CRASH_HISTORY='{}:{}'",
            self.subject.name, self.seed, self.config, task.history
        )
    }
}

fn publish(
    subject: &Subject,
    outcomes: &[Outcome],
    seed: u64,
    steps: usize,
    states: u64,
    seconds: f64,
) {
    let mut total = Counts::default();
    let mut lines = Vec::new();
    for Outcome { config, short, all, seconds, .. } in outcomes {
        total.add(all);
        let line = format!(
            "    \"{config}\": {{\"seconds\": {seconds:.1},\n      \"short\": {},\n      \
             \"all\": {}}}",
            short.json(),
            all.json()
        );
        println!("{line}");
        lines.push(line);
    }
    let (name, total) = (subject.name, total.json());
    println!("{name}, {seconds:.1} s: {total}");
    let failures: usize = outcomes.iter().map(|outcome| outcome.failures.len()).sum();
    let json = format!(
        "{{\n  \"format\": \"{name}\",\n  \"seed\": {seed},\n  \"steps\": {steps},\n  \
         \"states_wanted\": {states},\n  \"seconds\": {seconds:.1},\n  \"failures\": {failures},\n  \
         \"configs\": {{\n{}\n  }},\n  \"total\": {total}\n}}\n",
        lines.join(",\n")
    );
    report::write(&format!("crash-{name}"), &json);
}
