//! Shared by the benches: data, medians, a table on stdout, `benches/results/rust.json`.
//!
//! Environment: `DEEDBOOK_BENCH_QUICK` set: one repetition with a tenth of the data. `DEEDBOOK_BENCH_CPU` set: the
//! times are processor time of all threads. `DEEDBOOK_BENCH_ONLY`: only measurements with this text in the name.
//! `DEEDBOOK_BENCH_RESULTS`: another file for the results. Without another file, a run with one of these variables, or
//! with `DEEDBOOK_BENCH_EVENTS`, only prints.

// Each bench uses a part of this module.
#![allow(dead_code)]

#[cfg(unix)]
#[allow(unsafe_code)]
mod facts;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Bytes of a record, as in `benches/python`.
pub const JAM_BYTES: usize = 256;
/// Size of the record in the log.
pub const DEED_BYTES: usize = JAM_BYTES + 24;
const REPETITIONS: usize = 5;

pub fn repetitions() -> usize {
    if quick() { 1 } else { REPETITIONS }
}

/// `full`, or a tenth of `full` in a quick run.
pub fn count(full: usize) -> usize {
    if quick() { full / 10 } else { full }
}

fn quick() -> bool {
    is_set("DEEDBOOK_BENCH_QUICK")
}

fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some()
}

/// Whether the run's figures must not replace the figures of a whole run.
fn only_prints() -> bool {
    let other = ["DEEDBOOK_BENCH_ONLY", "DEEDBOOK_BENCH_CPU", "DEEDBOOK_BENCH_EVENTS"];
    (quick() || other.into_iter().any(is_set)) && !is_set("DEEDBOOK_BENCH_RESULTS")
}

/// Pseudo-random bytes, the same in every run (SplitMix64).
pub fn random_bytes(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bytes.extend_from_slice(&(mixed ^ (mixed >> 31)).to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

type Run<'a> = Box<dyn FnMut(&Path) -> (u64, Duration) + 'a>;

/// One measurement: a repetition returns how much work it did and the time.
struct Case<'a> {
    name: &'static str,
    run: Run<'a>,
    /// Units of work per second.
    rates: Vec<f64>,
}

/// The measurements of one bench. The measurements take turns, because drift must hit all of them.
pub struct Bench<'a> {
    name: &'static str,
    cases: Vec<Case<'a>>,
    settle_bytes: usize,
}

impl<'a> Bench<'a> {
    pub fn new(name: &'static str) -> Self {
        Self { name, cases: Vec::new(), settle_bytes: 0 }
    }

    /// Write and remove a file of `bytes` bytes before each repetition, in single pages and in pieces of all sizes. The
    /// previous measurement decides which pages are free, and in what pieces. A virtual machine may return free memory
    /// to the host; then each piece costs a wait on its next use.
    pub fn settle(&mut self, bytes: usize) {
        self.settle_bytes = bytes;
    }

    /// Add a measurement. `run` gets an empty directory and returns how much it did and the time. The table compares
    /// all measurements with the first one.
    pub fn case(&mut self, name: &'static str, run: impl FnMut(&Path) -> (u64, Duration) + 'a) {
        let only = std::env::var("DEEDBOOK_BENCH_ONLY").unwrap_or_default();
        if name.contains(&only) {
            self.cases.push(Case { name, run: Box::new(run), rates: Vec::new() });
        }
    }

    /// Run, print the table, and write the results.
    pub fn run(mut self) {
        if self.cases.is_empty() {
            return;
        }
        for repetition in 0..repetitions() {
            for i in 0..self.cases.len() {
                let turn = (i + repetition) % self.cases.len();
                let case = &mut self.cases[turn];
                let dir = tempfile::tempdir().unwrap();
                let path = dir.path().join("settle");
                for size in [4 << 10, 256 << 10, 1020 << 10] {
                    let (mut file, block) = (fs::File::create(&path).unwrap(), vec![0; size]);
                    for _ in 0..self.settle_bytes / size {
                        file.write_all(&block).unwrap();
                    }
                    drop(file);
                    fs::remove_file(&path).unwrap();
                }
                let (done, time) = (case.run)(dir.path());
                case.rates.push(done as f64 / time.as_secs_f64());
            }
        }
        let floor = self.cases[0].median();
        println!("\n{}: medians of {}", self.name, repetitions());
        println!("{:52} {:>12} {:>12} {:>8}", "", "per s", "each", "ratio");
        for case in &self.cases {
            let rate = case.median();
            println!("{:52} {rate:12.0} {:>12} {:8.2}", case.name, each(rate), rate / floor);
        }
        self.write();
    }

    /// One line per figure: each bench replaces its own lines and keeps the others.
    fn write(&self) {
        let figures = self.cases.iter().map(|case| {
            let runs: Vec<String> = case.rates.iter().map(|rate| format!("{rate:.0}")).collect();
            let (median, runs) = (case.median(), runs.join(", "));
            let figure = format!("{{\"median_per_s\": {median:.0}, \"runs_per_s\": [{runs}]}}");
            (case.name.to_string(), figure)
        });
        write_figures(self.name, figures.collect());
    }
}

/// Replace the figures of one bench in the results, each a name and a JSON object, and the facts about the machine.
pub fn write_figures(bench: &str, figures: Vec<(String, String)>) {
    if only_prints() {
        return;
    }
    let path = results();
    let mine = format!("\"{bench}: ");
    let old = fs::read_to_string(&path).unwrap_or_default();
    let kept = old.lines().map(|line| line.trim().trim_end_matches(','));
    let mut lines: Vec<String> = kept
        .filter(|line| line.starts_with('"') && !line.starts_with(&mine))
        .map(String::from)
        .collect();
    lines.extend(figures.iter().map(|(name, figure)| format!("{mine}{name}\": {figure}")));
    #[cfg(unix)]
    lines.push(format!("{mine}measured on\": {}", measured_on()));
    lines.sort();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, format!("{{\n{}\n}}\n", lines.join(",\n"))).unwrap();
}

#[cfg(unix)]
fn measured_on() -> String {
    let (machine, load) = (facts::machine(&std::env::temp_dir()), facts::load());
    let (date, commit) = (facts::day(), facts::commit());
    format!(
        "{{\"machine\": \"{machine}\", \"load_after\": {load}, \"date\": \"{date}\", \
         \"commit\": \"{commit}\"}}"
    )
}

impl Case<'_> {
    fn median(&self) -> f64 {
        let mut rates = self.rates.clone();
        rates.sort_by(f64::total_cmp);
        let middle = rates.len() / 2;
        match rates.len() % 2 {
            1 => rates[middle],
            _ => (rates[middle - 1] + rates[middle]) / 2.0,
        }
    }
}

fn results() -> PathBuf {
    match std::env::var_os("DEEDBOOK_BENCH_RESULTS") {
        Some(path) => path.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/results/rust.json"),
    }
}

fn each(rate: f64) -> String {
    match 1e9 / rate {
        ns if ns < 1e3 => format!("{ns:.1} ns"),
        ns if ns < 1e6 => format!("{:.1} us", ns / 1e3),
        ns => format!("{:.2} ms", ns / 1e6),
    }
}

/// Time `work`; the closure returns how much work was done.
pub fn timed(work: impl FnOnce() -> usize) -> (u64, Duration) {
    let clock = clock();
    let begun = clock();
    let done = work();
    (done as u64, clock() - begun)
}

/// The chosen clock: the time since some moment.
fn clock() -> Box<dyn Fn() -> Duration> {
    #[cfg(unix)]
    if is_set("DEEDBOOK_BENCH_CPU") {
        return Box::new(facts::cpu_time);
    }
    let start = Instant::now();
    Box::new(move || start.elapsed())
}
