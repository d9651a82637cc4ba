//! The figures as JSON and as tables: the promises of the project, and all measurements.

use std::fmt::Write;

use crate::facts::provisional;
use crate::harness::Figure;

/// Facts that a reader of the figures needs.
pub struct About {
    pub quick: bool,
    pub repetitions: usize,
    pub records: usize,
    pub commits: usize,
    pub machine: String,
    pub date: String,
    pub commit: String,
    pub load: (f64, f64),
}

/// The measurements of one page of results.
pub struct Page {
    /// Name of the result files.
    pub file: &'static str,
    pub title: &'static str,
    /// The peers, with their versions.
    pub peers: &'static str,
    /// The page of the same measurements in Python.
    pub python: &'static str,
    pub promises: &'static [Promise],
    /// Facts about the rows that a reader needs.
    pub notes: &'static str,
}

/// The required rate.
pub enum Against {
    /// A multiple of the rate of a row's store.
    Times(f64, &'static str, &'static str),
    /// A rate per second.
    Rate(f64),
}

/// A row of the Speed table.
pub struct Promise {
    pub row: &'static str,
    pub store: &'static str,
    pub against: Against,
}

fn find<'a>(figures: &'a [Figure], row: &str, store: &str) -> Option<&'a Figure> {
    figures.iter().find(|figure| figure.row == row && figure.store == store)
}

/// A rate with three digits.
fn per_second(rate: f64) -> String {
    match rate {
        rate if rate >= 1e9 => format!("{:.3} G/s", rate / 1e9),
        rate if rate >= 1e6 => format!("{:.3} M/s", rate / 1e6),
        rate if rate >= 1e3 => format!("{:.2} k/s", rate / 1e3),
        rate => format!("{rate:.2} /s"),
    }
}

/// The time of one unit, with three digits.
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
pub fn markdown(page: &Page, figures: &[Figure], about: &About) -> String {
    let Page { file, title, peers, python, notes, .. } = page;
    let About { repetitions, records, commits, machine, date, commit, load, .. } = about;
    let mut text = String::new();
    let _ = writeln!(
        text,
        "# {title}\n\n\
         Made by `make bench` on {date} at {commit}: {records} records of 256 bytes (durable: {commits} \
         a thread), medians of {repetitions} repetitions in which the stores of a row take turns. \
         {machine}; load {} before and {} after. Absolute figures move between machines; compare \
         within the tables. {peers}. All runs: [{file}.json]({file}.json); Python: [{python}]({python}).\n",
        load.0, load.1,
    );
    if about.quick {
        text.push_str("**A quick run: too small to judge by.**\n\n");
    }
    text.push_str(provisional(load.0));
    text.push_str(
        "| what | which | ours | peer | ratio | by CPU time | required | met |\n|---|---|---|---|---|---|---|---|\n",
    );
    for line in page.promises.iter().filter_map(|kept| promise(figures, kept)) {
        let _ = writeln!(text, "{line}");
    }
    let _ = write!(
        text,
        "\n{notes}\n\n## Everything\n\n| what | who | per second | each | each by CPU time | \
         slowest run | quickest run |\n|---|---|---|---|---|---|---|\n",
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

/// All figures, one per line.
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
        "{{\n \"machine\": \"{}\",\n \"date\": \"{}\",\n \"commit\": \"{}\",\n \"load\": [{}, {}],\n \
         \"quick\": {},\n \"repetitions\": {},\n \"records\": {},\n \"commits_per_thread\": {},\n \
         \"figures\": [\n{}\n ]\n}}\n",
        about.machine,
        about.date,
        about.commit,
        about.load.0,
        about.load.1,
        about.quick,
        about.repetitions,
        about.records,
        about.commits,
        lines.join(",\n")
    )
}
