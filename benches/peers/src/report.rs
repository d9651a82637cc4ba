//! The figures as JSON and as tables: what the project promises, and everything measured.

use std::fmt::Write;

use crate::harness::Figure;
use crate::rows::{
    APPEND, APPEND_8, BATCHES, COMMIT, COMMIT_16, GROWING, OPEN, OPEN_LARGE, PEER, PEER_SEGMENTED,
    PLAIN, SCAN, SCAN_SMALL, SEGMENTED, SINGLE,
};

/// What has to be known to read the figures.
pub struct About {
    pub quick: bool,
    pub repetitions: usize,
    pub records: usize,
    pub commits: usize,
    pub machine: String,
    pub load: (f64, f64),
}

/// What ours is held against.
enum Against {
    /// So many times the rate of a row's store.
    Times(f64, &'static str, &'static str),
    /// So many per second.
    Rate(f64),
}

struct Promise {
    row: &'static str,
    store: &'static str,
    against: Against,
}

const fn times(row: &'static str, store: &'static str, factor: f64, peer: &'static str) -> Promise {
    Promise { row, store, against: Against::Times(factor, row, peer) }
}

const fn rate(row: &'static str, rate: f64) -> Promise {
    Promise { row, store: SINGLE, against: Against::Rate(rate) }
}

const fn group(store: &'static str) -> Promise {
    Promise { row: COMMIT_16, store, against: Against::Times(10.0, COMMIT, store) }
}

/// The Speed table of the WAL's issue, and opening.
const PROMISES: [Promise; 19] = [
    times(APPEND, SINGLE, 5.0, PEER),
    times(APPEND, SEGMENTED, 5.0, PEER_SEGMENTED),
    times(APPEND_8, SINGLE, 8.0, PEER),
    times(APPEND_8, SEGMENTED, 8.0, PEER_SEGMENTED),
    times(BATCHES, SINGLE, 0.9, PLAIN),
    times(BATCHES, SEGMENTED, 0.9, PLAIN),
    times(COMMIT, SINGLE, 1.2, GROWING),
    times(COMMIT, SEGMENTED, 1.2, GROWING),
    group(SINGLE),
    group(SEGMENTED),
    times(COMMIT_16, SINGLE, 1.0, PEER),
    times(COMMIT_16, SEGMENTED, 1.0, PEER_SEGMENTED),
    rate(SCAN, 15e6),
    rate(SCAN_SMALL, 15e6),
    rate(OPEN, 200.0),
    rate(OPEN_LARGE, 200.0),
    Promise { row: OPEN_LARGE, store: SINGLE, against: Against::Times(0.5, OPEN, SINGLE) },
    times(OPEN, SINGLE, 1.0, PEER),
    times(OPEN_LARGE, SINGLE, 1.0, PEER),
];

fn find<'a>(figures: &'a [Figure], row: &str, store: &str) -> Option<&'a Figure> {
    figures.iter().find(|figure| figure.row == row && figure.store == store)
}

/// A rate in three digits.
fn per_second(rate: f64) -> String {
    match rate {
        rate if rate >= 1e6 => format!("{:.3} M/s", rate / 1e6),
        rate if rate >= 1e3 => format!("{:.2} k/s", rate / 1e3),
        rate => format!("{rate:.2} /s"),
    }
}

/// The time of one, in three digits.
fn each(rate: f64) -> String {
    match 1e9 / rate {
        ns if ns < 1e3 => format!("{ns:.1} ns"),
        ns if ns < 1e6 => format!("{:.1} us", ns / 1e3),
        ns => format!("{:.1} ms", ns / 1e6),
    }
}

fn promise(figures: &[Figure], promise: &Promise) -> Option<String> {
    let own = find(figures, promise.row, promise.store)?;
    let ours = own.median();
    let (peer, ratio, by_cpu, required, met) = match promise.against {
        Against::Times(factor, row, store) => {
            let other = find(figures, row, store)?;
            let peer = other.median();
            let name = if row == promise.row { store.into() } else { format!("{row}, {store}") };
            let shown = format!("{name}: {}", per_second(peer));
            let ratio = ours / peer;
            let by_cpu = format!("{:.2}", own.median_by_cpu() / other.median_by_cpu());
            (shown, format!("{ratio:.2}"), by_cpu, format!("{factor} x"), ratio >= factor)
        }
        Against::Rate(rate) => {
            let by_cpu = per_second(own.median_by_cpu());
            (String::new(), String::new(), by_cpu, per_second(rate), ours >= rate)
        }
    };
    let Promise { row, store, .. } = promise;
    let (ours, met) = (per_second(ours), if met { "yes" } else { "**no**" });
    Some(format!("| {row} | {store} | {ours} | {peer} | {ratio} | {by_cpu} | {required} | {met} |"))
}

/// The tables.
pub fn markdown(figures: &[Figure], about: &About) -> String {
    let About { repetitions, records, commits, machine, load, .. } = about;
    let mut text = String::new();
    let _ = writeln!(
        text,
        "# Speed of the write-ahead log beside its peers\n\n\
         Made by `make bench`: {records} records of 256 bytes, {commits} commits a thread, medians \
         of {repetitions} repetitions in which the stores of a row take turns. {machine}; load {} \
         before and {} after. Absolute figures move between machines; compare within the tables. \
         Rust, wal-db 1.1.0, okaywal 0.3.1. All runs: [wal.json](wal.json); Python: \
         [python.md](python.md).\n",
        load.0, load.1,
    );
    if about.quick {
        text.push_str("**A quick run: too small to judge by.**\n\n");
    }
    if load.0 > 1.0 {
        text.push_str("**The machine was busy with other work: provisional figures.**\n\n");
    }
    text.push_str(
        "| what | which | ours | peer | ratio | by CPU time | required | met |\n|---|---|---|---|---|---|---|---|\n",
    );
    for line in PROMISES.iter().filter_map(|kept| promise(figures, kept)) {
        let _ = writeln!(text, "{line}");
    }
    text.push_str(
        "\nAppends survive kill -9 when they return; commits a power cut. `append_batch` is given \
         encoded batches, as the plain write is; with encoding see below. A scan opens for reading \
         without the sidecar, warm; records are checksummed. okaywal syncs every entry, so it has \
         commits only.\n\n## Everything\n\n| what | who | per second | each | each by CPU time | slowest run | quickest run |\n|---|---|---|---|---|---|---|\n",
    );
    for figure in figures {
        let rate = figure.median();
        let slowest = figure.rates.iter().copied().fold(f64::INFINITY, f64::min);
        let quickest = figure.rates.iter().copied().fold(0.0, f64::max);
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} |",
            figure.row,
            figure.store,
            per_second(rate),
            each(rate),
            each(figure.median_by_cpu()),
            per_second(slowest),
            per_second(quickest),
        );
    }
    text
}

/// Everything, one line per figure.
pub fn json(figures: &[Figure], about: &About) -> String {
    let lines: Vec<String> = figures
        .iter()
        .map(|figure| {
            let list = |rates: &[f64]| {
                let shown: Vec<String> = rates.iter().map(|rate| format!("{rate:.1}")).collect();
                shown.join(", ")
            };
            format!(
                "  {{\"row\": \"{}\", \"store\": \"{}\", \"median_per_s\": {:.1}, \
                 \"runs_per_s\": [{}], \
                 \"runs_per_cpu_s\": [{}]}}",
                figure.row,
                figure.store,
                figure.median(),
                list(&figure.rates),
                list(&figure.by_cpu)
            )
        })
        .collect();
    format!(
        "{{\n \"machine\": \"{}\",\n \"load\": [{}, {}],\n \"quick\": {},\n \"repetitions\": {},\n \
         \"records\": {},\n \"commits_per_thread\": {},\n \"figures\": [\n{}\n ]\n}}\n",
        about.machine,
        about.load.0,
        about.load.1,
        about.quick,
        about.repetitions,
        about.records,
        about.commits,
        lines.join(",\n")
    )
}
