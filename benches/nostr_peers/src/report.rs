//! The figures as JSON and as tables: our store next to the best peer, and all measurements.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::json;

use crate::facts::provisional;
use crate::figures::{Figure, Figures, Unit};
use crate::floor::PLAIN_FILE;
use crate::measure::{
    ARROW, ARROW_MAPPED, CHECKS, COMPACT, COUNT, DISK, FIND, IMPORT, IMPORT_LONG, IMPORT_MORE,
    KILLED, MAPPED, Measured, OPEN, PAGES, ROUNDS, SCAN, SCAN_BACK, row,
};
use crate::stores::{KINDS, OURS};

/// Facts that a reader of the figures needs.
pub struct About {
    pub quick: bool,
    pub events: usize,
    pub machine: String,
    pub date: String,
    pub commit: String,
    pub load: (f64, f64),
    pub seconds: u64,
}

/// The required rate, or the longest allowed time in ms, of a row.
const REQUIRED: [(&str, f64); 6] =
    [(IMPORT, 2e5), (SCAN, 5e5), (ARROW, 2e6), (ARROW_MAPPED, 2e6), (COMPACT, 2e5), (OPEN, 50.0)];

const ALT: &str = "Events by kind and by day, and how long queries take in each store";

/// The tables.
pub fn markdown(measured: &Measured, about: &About) -> String {
    let About { events, machine, date, commit, load, seconds, .. } = about;
    let mut text = String::new();
    let _ = writeln!(
        text,
        "# Speed of the event store beside its peers\n\n\
         Made by `make bench-nostr` on {date} at {commit}: {events} synthetic events, whose kinds, tags \
         and sizes are distributed as those of real ones (`benches/common/nostr_events.rs`), and \
         queries of {} of them. Opening, scanning, finding, compacting and queries: medians of \
         {ROUNDS} rounds in which the stores take turns; imports: one each. {machine}; load {} \
         before and {} after; {seconds} s in all. \
         Absolute figures move between machines; compare within the tables. All runs, kinds and \
         days: [nostr.json](nostr.json).\n",
        2 * events,
        load.0,
        load.1,
    );
    if about.quick {
        text.push_str("**A quick run: too small to judge by.**\n\n");
    }
    text.push_str(provisional(load.0));
    text.push_str(
        "| what | ours | best peer | ratio | required | met |\n|---|---|---|---|---|---|\n",
    );
    let rows = [
        IMPORT,
        IMPORT_MORE,
        IMPORT_LONG,
        SCAN,
        SCAN_BACK,
        MAPPED,
        ARROW,
        ARROW_MAPPED,
        FIND,
        OPEN,
        KILLED,
        DISK,
        COMPACT,
    ];
    let mut rows: Vec<String> = rows.map(String::from).into();
    rows.extend(CHECKS.iter().map(|(row, _)| (*row).into()));
    rows.extend(PAGES.iter().flat_map(|(row, disk, _)| [(*row).into(), (*disk).into()]));
    let questions = measured.found.iter();
    rows.extend(questions.flat_map(|(name, _)| [50, 99].map(|percentile| row(name, percentile))));
    rows.push(row(COUNT, 50));
    let again = |(name, _): &(&str, f64)| format!("{}, after a compaction", row(name, 50));
    rows.extend(measured.found.iter().map(again));
    for row in &rows {
        text.extend(compared(&measured.figures, row));
    }
    text.push_str(
        "\nA ratio above 1 says that ours is quicker, or smaller. A percentile is the median of those \
         of the rounds; a store that was asked fewer than 100 questions in the time has no \
         percentile 99.\n\n",
    );
    let _ = writeln!(
        text,
        "Signatures are those of the real events, as synthetic ones have none that is true. Opened after \
         kill -9 is a copy of the files as they were after the import, with {} entries of the write-ahead \
         log since the last checkpoint.\n",
        measured.replayed,
    );
    for row in [IMPORT, COMPACT] {
        text.extend(beside_floor(&measured.figures, row));
    }
    let _ = writeln!(
        text,
        "During the import ours gave the disk {} bytes an event: the write-ahead log, the segments and \
         the index.\n",
        measured.import_bytes / (*events as u64).max(1),
    );
    details(&mut text, measured);
    everything(&mut text, &measured.figures);
    let _ = writeln!(text, "\n![{ALT}](nostr.svg)");
    text
}

fn compared(figures: &Figures, row: &str) -> Option<String> {
    let ours = figures.find(row, OURS)?;
    let unit = ours.unit;
    // Above 1 if the first is better.
    let ratio = |one: f64, other: f64| if unit.is_rate() { one / other } else { other / one };
    let peers = KINDS[1..].iter().filter_map(|kind| figures.find(row, kind.name));
    let best = peers.max_by(|a, b| ratio(a.median(), b.median()).total_cmp(&1.0));
    let (peer, by) = best.map_or(("none".into(), String::new()), |best| {
        let by = format!("{:.2}", ratio(ours.median(), best.median()));
        (format!("{} {}", best.store, unit.shown(best.median())), by)
    });
    let required = REQUIRED.iter().find(|(of, _)| *of == row);
    let (required, met) = required.map_or((String::new(), ""), |&(_, bound)| {
        let met = if ratio(ours.median(), bound) >= 1.0 { "yes" } else { "**no**" };
        (unit.shown(bound), met)
    });
    let ours = unit.shown(ours.median());
    Some(format!("| {row} | {ours} | {peer} | {by} | {required} | {met} |\n"))
}

/// Our rate next to the rate of the disk alone.
fn beside_floor(figures: &Figures, row: &str) -> Option<String> {
    let (ours, floor) = (figures.find(row, OURS)?, figures.find(row, PLAIN_FILE)?);
    let (ours, floor) = (ours.median(), floor.median());
    let shown = |rate| Unit::PerSecond.shown(rate);
    Some(format!(
        "{row}: {} is {:.2} of what the disk alone allowed, {}: that is a plain file of as many bytes, \
         synced once.\n\n",
        shown(ours),
        ours / floor,
        shown(floor),
    ))
}

/// The use of each store in the measurements.
fn details(text: &mut String, measured: &Measured) {
    text.push_str("| store | version | import | events that count |\n|---|---|---|---|\n");
    for kind in &KINDS {
        let count = measured.stored.get(kind.name).copied().unwrap_or_default();
        let _ =
            writeln!(text, "| {} | {} | {} | {count} |", kind.name, (kind.version)(), kind.import);
    }
    text.push_str(
        "\nAll parse and check on all cores while they store. SQLite has a table of events with \
         indexes by id, by author, kind and time, by kind and time, and by time, which end with the \
         id, so that a query reads the rows of its answer only, and one of tags by name, value and \
         time; 128 MiB of cache, as our index has, and its file mapped. Like the \
         others it keeps the newest replaceable event, and does what deletion requests ask for. \
         nostr-sqlite's import is that of the last 2,000 events, one by one; the others are copied \
         from plain SQLite's tables. rust-nostr's databases are asked through their asynchronous \
         interface, which hands each call to another thread, and have no scan: all events are \
         queried. Before they are timed, all answers are compared with ours: the same events (of \
         nostr-sqlite's, which leaves the order within a second open, those of a cut last second may \
         be others).\n\n| question | events of an answer |\n|---|---|\n",
    );
    for (name, found) in &measured.found {
        let _ = writeln!(text, "| {name} | {found:.1} |");
    }
    for (name, store, count) in &measured.fewer {
        let _ = writeln!(
            text,
            "\n{store} was asked for {name} only {count} times a round, because it takes long."
        );
    }
    for (store, kinds) in &measured.lacking {
        let _ = writeln!(text, "\nBy its own rules {store} lacks events of the kinds {kinds:?}.");
    }
}

fn everything(text: &mut String, figures: &Figures) {
    text.push_str(
        "\n## Everything\n\n| what | store | median | by processor time | lowest | highest |\n\
         |---|---|---|---|---|---|\n",
    );
    for figure in &figures.0 {
        let Figure { row, store, unit, runs, by_cpu } = figure;
        let lowest = runs.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = runs.iter().copied().fold(0.0, f64::max);
        let by_cpu = match by_cpu.as_slice() {
            [] => String::new(),
            some => unit.shown(crate::facts::median(some)),
        };
        let _ = writeln!(
            text,
            "| {row} | {store} | {} | {by_cpu} | {} | {} |",
            unit.shown(figure.median()),
            unit.shown(lowest),
            unit.shown(highest),
        );
    }
}

/// All figures, for the picture and for comparing runs.
pub fn json(measured: &Measured, about: &About) -> String {
    let stores = KINDS.iter().map(|kind| {
        let facts = json!({
            "version": (kind.version)(),
            "import": kind.import,
            "events": measured.stored.get(kind.name),
        });
        (kind.name.to_owned(), facts)
    });
    let value = json!({
        "machine": about.machine,
        "date": about.date,
        "commit": about.commit,
        "load": [about.load.0, about.load.1],
        "quick": about.quick,
        "events": about.events,
        "events_queried": 2 * about.events,
        "rounds": ROUNDS,
        "seconds": about.seconds,
        "stores": stores.collect::<serde_json::Map<_, _>>(),
        "kinds": measured.kinds,
        "days": measured.days,
        "found": measured.found.iter().copied().collect::<BTreeMap<_, _>>(),
        "fewer_questions": measured.fewer,
        "kinds_lacking": measured.lacking,
        "figures": measured.figures.0.iter().map(Figure::to_json).collect::<Vec<_>>(),
    });
    serde_json::to_string_pretty(&value).unwrap() + "\n"
}
