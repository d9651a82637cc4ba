//! The event store: import, scan, finding by id, queries, compaction, opening.
//! `cargo bench -p deedbook --features arrow,nostr --bench nostr_store`
//!
//! Events are synthetic (`common/nostr_events.rs`); `DEEDBOOK_BENCH_EVENTS` is their number (500,000).
//! `benches/nostr_peers` measures beside other stores.

#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing, clippy::print_stdout)]

mod common;
#[path = "common/nostr_events.rs"]
mod nostr_events;

use std::fs;
use std::io::BufReader;
use std::path::Path;
use std::time::{Duration, Instant};

use common::{count, write_figures};
use deedbook::nostr::{Batches, Column, EventStore, Id, ImportOptions, Include};
use deedbook::{Mode, OnCorrupt};
use nostr_events::{Numbers, Question, Synthetic, questions, real};

const BENCH: &str = "nostr store";

struct Report(Vec<(String, String)>);

impl Report {
    fn add(&mut self, what: &str, done: usize, time: Duration) {
        let rate = done as f64 / time.as_secs_f64();
        println!("{what:<44} {rate:>12.0} /s {:>10.1} ms", time.as_secs_f64() * 1e3);
        let figure = format!("{{\"per_s\": {rate:.0}, \"ms\": {:.1}}}", time.as_secs_f64() * 1e3);
        self.0.push((what.into(), figure));
    }

    fn percentiles(&mut self, what: &str, mut times: Vec<Duration>, found: usize) {
        times.sort();
        let at = |part: usize| times[(times.len() - 1) * part / 100].as_secs_f64() * 1e6;
        let (half, worst) = (at(50), at(99));
        println!("{what:<44} p50 {half:>8.0} us  p99 {worst:>8.0} us  ({found} found)");
        let figure = format!("{{\"p50_us\": {half:.0}, \"p99_us\": {worst:.0}}}");
        self.0.push((what.into(), figure));
    }
}

fn main() {
    let Some(real) = real(Path::new(env!("CARGO_MANIFEST_DIR"))) else { return };
    let events = std::env::var("DEEDBOOK_BENCH_EVENTS").ok().and_then(|text| text.parse().ok());
    let events = events.unwrap_or_else(|| count(500_000));
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("events.jsonl");
    let ids = Synthetic::new(&real, events).write(events, &json);
    let mut report = Report(Vec::new());
    let place = dir.path().join("store");
    let store = EventStore::create(&place).unwrap();

    let begun = Instant::now();
    let mut lines = BufReader::with_capacity(1 << 20, fs::File::open(&json).unwrap());
    let imported = store.import(&mut lines, &ImportOptions::default(), None, &mut |_| Ok(()));
    let imported = imported.unwrap();
    store.commit().unwrap();
    report.add("import JSON lines, ids checked", events, begun.elapsed());
    println!("{imported:?}");

    let begun = Instant::now();
    store.close().unwrap();
    report.add("close", 1, begun.elapsed());
    let begun = Instant::now();
    let store = EventStore::open(&place).unwrap();
    report.add("open after close", 1, begun.elapsed());

    let begun = Instant::now();
    let scanned = store.iter(Include::Live, OnCorrupt::Raise).unwrap().map(Result::unwrap).count();
    report.add("scan to events", scanned, begun.elapsed());
    let begun = Instant::now();
    let mut walk = store.iter(Include::Live, OnCorrupt::Raise).unwrap();
    let mut scanned = 0;
    while walk.next_with(|_, event| event.content.len()).unwrap().is_some() {
        scanned += 1;
    }
    report.add("scan, borrowed", scanned, begun.elapsed());
    for (what, checked) in
        [("scan to Arrow", true), ("scan to Arrow, checksums not compared", false)]
    {
        let begun = Instant::now();
        let walk = store.iter(Include::Live, OnCorrupt::Raise).unwrap();
        let walk = if checked { walk } else { walk.without_checksums() };
        let batches = Batches::new(walk, Column::DEFAULT.to_vec(), 65_536, 2 << 20);
        let scanned = batches.map(|batch| batch.unwrap().num_rows()).sum();
        report.add(what, scanned, begun.elapsed());
    }

    let mut numbers = Numbers(2);
    let wanted: Vec<Id> = (0..100_000).map(|_| ids[numbers.below(ids.len())]).collect();
    for (what, some) in [("find by id, cold", &wanted[..10_000]), ("find by id, warm", &wanted[..])]
    {
        let begun = Instant::now();
        some.iter().for_each(|id| drop(store.find(id).unwrap()));
        report.add(what, some.len(), begun.elapsed());
    }
    for question in questions(&real, events, 300) {
        ask(&store, question, &mut report);
    }

    let begun = Instant::now();
    let compacted = store.compact(0.0, false).unwrap();
    report.add("compact", compacted.kept as usize, begun.elapsed());
    println!("{compacted:?}");
    drop(store);
    let begun = Instant::now();
    let reader = deedbook::nostr::Options::default().open(&place, Mode::Read).unwrap();
    report.add("open for reading", 1, begun.elapsed());
    drop(reader);
    write_figures(BENCH, report.0);
}

fn ask(store: &EventStore, question: Question, report: &mut Report) {
    let (mut times, mut found) = (Vec::new(), 0);
    for filter in question.filters {
        let begun = Instant::now();
        found += store.query(&[filter]).unwrap().count();
        times.push(begun.elapsed());
    }
    report.percentiles(&format!("query: {}", question.name), times, found);
}
