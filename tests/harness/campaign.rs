//! A campaign of crashes against one subject, over all cores, and its result as JSON.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use super::explore::{Counts, Explorer, Plan};
use super::history::{self, Config};
use super::{Subject, mix, report};

/// What is tried of one subject.
#[derive(Clone, Copy)]
pub struct Campaign<'a> {
    pub subject: &'a dyn Subject,
    /// Names of configurations, see [`Config::named`].
    pub configs: &'a [&'static str],
    /// First steps, the steps of which all short histories are tried behind them, and how many
    /// steps fewer than the longest histories have.
    pub families: &'a [(&'static str, &'static str, usize)],
    /// Steps of longer histories by chance.
    pub longer: &'static str,
    /// States to check, about.
    pub states: u64,
    /// Of them at least so many in longer histories.
    pub states_longer: u64,
}

impl Campaign<'_> {
    /// Crash all short histories, and longer ones by chance until there are states enough; write
    /// what was counted. Panics with how to see each failure again.
    pub fn run(&self) {
        explore(self);
    }
}

fn explore(campaign: &Campaign<'_>) {
    let Campaign { subject, families, longer, states, states_longer, .. } = *campaign;
    let seed = report::number("DEEDBOOK_CRASH_SEED", 1);
    let steps = report::number("DEEDBOOK_CRASH_STEPS", 3) as usize;
    let behind = |(prefix, alphabet, fewer): &(&str, &str, usize)| {
        let all = history::all_behind(prefix, steps.saturating_sub(*fewer), alphabet);
        // Only the empty history is crashed from its creation on.
        all.into_iter().skip(usize::from(!prefix.is_empty())).collect::<Vec<_>>()
    };
    let mut histories: Vec<_> = families.iter().flat_map(behind).collect();
    let mut configs = campaign.configs.to_vec();
    let only = std::env::var("DEEDBOOK_CRASH_HISTORY").ok();
    if let Some(only) = &only {
        let (config, history) = only.split_once(':').expect("CONFIG:STEPS");
        configs.retain(|name| *name == config);
        histories = vec![history.to_string()];
    }
    let share = states / configs.len() as u64;
    let share_longer = states_longer / configs.len() as u64;
    // Every state of nearly every moment, unless only a few are wanted.
    let per_moment = (states / 1000).clamp(16, 1 << 12);
    let plan = Plan { seed, per_moment, per_second: 3, second_every: 16 };
    let began = Instant::now();
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    let work = || {
        while let Some(name) = configs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let began = Instant::now();
            let mut explorer = Explorer::new(subject, Config::named(name), plan);
            let mut failures = Vec::new();
            let mut check = |explorer: &mut Explorer<'_>, history: &str, from| {
                if let Err(what) = explorer.history(history, from) {
                    failures.push(format!(
                        "DEEDBOOK_CRASH_SEED={seed} DEEDBOOK_CRASH_STATES={states} \
                         DEEDBOOK_CRASH_HISTORY='{name}:{history}': {what}"
                    ));
                }
                failures.len() < 3
            };
            // All short ones: their first steps are the last steps of shorter ones.
            for history in &histories {
                let from = if only.is_some() { 0 } else { history.chars().count() };
                if !check(&mut explorer, history, from) {
                    break;
                }
            }
            let short = explorer.counts;
            // Longer ones by chance, until there are states enough.
            explorer.plan = Plan { per_moment: per_moment.min(1 << 8), ..plan };
            let mut number = 0u64;
            let enough = share.max(short.checked + share_longer);
            while only.is_none() && explorer.counts.checked < enough {
                number += 1;
                let history = history::by_chance(longer, mix(seed ^ number));
                if !check(&mut explorer, &history, 0) {
                    break;
                }
            }
            let took = began.elapsed().as_secs_f64();
            results.lock().unwrap().push((*name, short, explorer.counts, took, failures));
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
        (0..threads.min(configs.len())).for_each(|_| drop(scope.spawn(work)));
    });
    let mut results = results.into_inner().unwrap();
    results.sort_by_key(|(name, ..)| configs.iter().position(|config| config == name));
    let mut total = Counts::default();
    let mut lines = Vec::new();
    for (name, short, counts, took, _) in &results {
        total.add(counts);
        let line = format!(
            "    \"{name}\": {{\"seconds\": {took:.1},\n      \"short\": {},\n      \"all\": {}}}",
            short.json(),
            counts.json()
        );
        println!("{line}");
        lines.push(line);
    }
    let took = began.elapsed().as_secs_f64();
    println!("in all, {took:.1} s: {}", total.json());
    let failures: Vec<_> = results.into_iter().flat_map(|(.., failures)| failures).collect();
    let json = format!(
        "{{\n  \"format\": \"{}\",\n  \"seed\": {seed},\n  \"steps\": {steps},\n  \
         \"states_wanted\": {states},\n  \"seconds\": {took:.1},\n  \"failures\": {},\n  \
         \"configs\": {{\n{}\n  }},\n  \"total\": {}\n}}\n",
        subject.name(),
        failures.len(),
        lines.join(",\n"),
        total.json()
    );
    let name = subject.name();
    report::write(&format!("crash-{name}"), &json);
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}
