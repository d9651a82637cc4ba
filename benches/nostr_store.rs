//! The event store: import, scan, finding by id, queries, compaction, opening.
//! `cargo bench -p deedbook --features arrow,nostr --bench nostr_store`
//!
//! Events are synthetic (`common/nostr_events.rs`); `DEEDBOOK_BENCH_EVENTS` sets the number (500,000).
//! `benches/nostr_peers` compares with other stores.

#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing, clippy::print_stdout)]

mod common;
#[path = "common/nostr_events.rs"]
mod nostr_events;

use std::fs;
use std::io::BufReader;
use std::path::Path;
use std::time::{Duration, Instant};

use common::{count, write_figures};
use deedbook::nostr::{Batches, Event, EventStore, Filter, Id, ImportOptions, Include};
use deedbook::{Mode, OnCorrupt};
use nostr_events::{Numbers, Question, Synthetic, questions, real};

const BENCH: &str = "nostr store";

/// The start of a measurement. A busy machine stretches the time, and processor time less.
struct Begun {
    wall: Instant,
    cpu: Duration,
}

fn begin() -> Begun {
    Begun { wall: Instant::now(), cpu: cpu() }
}

/// Processor time of all threads of this process; zero without `/proc`.
fn cpu() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    // User and system, in hundredths of a second.
    let ticks: u64 = fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

struct Report(Vec<(String, String)>);

impl Report {
    fn add(&mut self, what: &str, done: usize, begun: Begun) {
        let (time, cpu) = (begun.wall.elapsed().as_secs_f64(), (cpu() - begun.cpu).as_secs_f64());
        let rate = done as f64 / time;
        let (time, cpu) = (time * 1e3, cpu * 1e3);
        println!("{what:<44} {rate:>12.0} /s {time:>10.1} ms {cpu:>10.0} ms of CPU");
        let figure = format!("{{\"per_s\": {rate:.0}, \"ms\": {time:.1}, \"cpu_ms\": {cpu:.0}}}");
        self.0.push((what.into(), figure));
    }

    fn percentiles(&mut self, what: &str, mut times: Vec<Duration>, found: usize) {
        times.sort();
        let at = |part: usize| times[(times.len() - 1) * part / 1000].as_secs_f64() * 1e6;
        let (half, most, nearly, longest) = (at(500), at(990), at(999), at(1000));
        println!(
            "{what:<44} p50 {half:>8.0} us  p99 {most:>8.0} us  p99.9 {nearly:>8.0} us  longest {longest:>8.0} us  \
             ({found} found)"
        );
        let figure = format!(
            "{{\"p50_us\": {half:.0}, \"p99_us\": {most:.0}, \"p999_us\": {nearly:.0}, \"max_us\": {longest:.0}}}"
        );
        self.0.push((what.into(), figure));
    }
}

/// With this variable, the program is the second process.
const READER: &str = "DEEDBOOK_BENCH_READER";

/// Ask a store that another process writes; print the microseconds of each answer.
fn read_beside(place: &Path) {
    let reader = EventStore::open(place).unwrap();
    let newest = Filter::parse_any(r#"{"kinds": [1], "limit": 100}"#).unwrap();
    for _ in 0..1_000 {
        let begun = Instant::now();
        assert_eq!(reader.query(&newest).unwrap().len(), 100);
        println!("{}", begun.elapsed().as_micros());
    }
}

/// The waits of the second process for its first query and for its later queries.
fn second_process(store: &EventStore, report: &mut Report) {
    let reading = || {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        let output = command.env(READER, store.path()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let text = beside(store, 1 << 22, "a reader", report, reading);
    let waits = text.lines().map(|line| Duration::from_micros(line.parse().unwrap()));
    let mut waits: Vec<Duration> = waits.collect();
    report.percentiles("reader: first query, index copied", waits.drain(..1).collect(), 100);
    report.percentiles("reader: newest 100 notes", waits, 100);
}

fn main() {
    if let Some(place) = std::env::var_os(READER) {
        return read_beside(Path::new(&place));
    }
    let Some(real) = real(Path::new(env!("CARGO_MANIFEST_DIR"))) else { return };
    let events = std::env::var("DEEDBOOK_BENCH_EVENTS").ok().and_then(|text| text.parse().ok());
    let events = events.unwrap_or_else(|| count(500_000));
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("events.jsonl");
    let ids = Synthetic::new(&real, events).write(events, &json);
    let mut report = Report(Vec::new());
    let place = dir.path().join("store");
    let store = EventStore::create(&place).unwrap();

    let begun = begin();
    let mut lines = BufReader::with_capacity(1 << 20, fs::File::open(&json).unwrap());
    let imported = store.import(&mut lines, &ImportOptions::default(), None, &mut |_| Ok(()));
    let imported = imported.unwrap();
    store.sync().unwrap();
    report.add("import JSON lines, ids checked", events, begun);
    println!("{imported:?}");

    let begun = begin();
    store.close().unwrap();
    report.add("close", 1, begun);
    let begun = begin();
    let store = EventStore::append_to(&place).unwrap();
    report.add("open after close", 1, begun);

    let begun = begin();
    let scanned = store.iter(Include::Live, OnCorrupt::Raise).unwrap().map(Result::unwrap).count();
    report.add("scan to events", scanned, begun);
    let begun = begin();
    let mut walk = store.iter(Include::Live, OnCorrupt::Raise).unwrap();
    let mut scanned = 0;
    while walk.next_with(|_, event| event.content.len()).unwrap().is_some() {
        scanned += 1;
    }
    report.add("scan, borrowed", scanned, begun);
    for (what, checked) in
        [("scan to Arrow", true), ("scan to Arrow, checksums not compared", false)]
    {
        let begun = begin();
        let walk = store.iter(Include::Live, OnCorrupt::Raise).unwrap();
        let walk = if checked { walk } else { walk.without_checksums() };
        let batches = Batches::new(walk, Batches::DEFAULT, 65_536, 2 << 20).unwrap();
        let scanned = batches.map(|batch| batch.unwrap().num_rows()).sum();
        report.add(what, scanned, begun);
    }

    let mut numbers = Numbers(2);
    let wanted: Vec<Id> = (0..100_000).map(|_| ids[numbers.below(ids.len())]).collect();
    for what in ["find by id, the first time", "find by id, warm"] {
        let begun = begin();
        wanted.iter().for_each(|id| drop(store.find(id).unwrap()));
        report.add(what, wanted.len(), begun);
    }
    for question in questions(&real, events, 300) {
        ask(&store, question, &mut report);
    }

    let rest = Duration::from_secs(count(10) as u64);
    beside(&store, 0, "a pause", &mut report, || std::thread::sleep(rest));
    second_process(&store, &mut report);
    let begun = begin();
    let compacted =
        beside(&store, 1 << 20, "a compaction", &mut report, || store.compact(0.0, false).unwrap());
    report.add("compact", compacted.kept as usize, begun);
    println!("{compacted:?}");
    drop(store);
    let begun = begin();
    let reader = deedbook::nostr::Options::default().open(&place, Mode::Read).unwrap();
    report.add("open for reading", 1, begun);
    drop(reader);
    write_figures(BENCH, report.0);
}

/// The waits of appends and queries next to some work.
fn beside<T: Send>(
    store: &EventStore,
    first: u32,
    what: &str,
    report: &mut Report,
    work: impl FnOnce() -> T + Send,
) -> T {
    let newest = Filter::parse_any(r#"{"kinds": [1], "limit": 100}"#).unwrap();
    let (mut appends, mut queries, mut number) = (Vec::new(), Vec::new(), first);
    let done = std::thread::scope(|scope| {
        let working = scope.spawn(work);
        while !working.is_finished() {
            let mut event = Event {
                id: Id([0; 32]),
                pubkey: [7; 32],
                created_at: 1_700_000_000 + number,
                kind: 1,
                tags: Vec::new(),
                content: "x".repeat(200),
                sig: [0; 64],
            };
            event.id = event.canonical_id();
            number += 1;
            let begun = Instant::now();
            store.append(&event).unwrap();
            appends.push(begun.elapsed());
            if number.is_multiple_of(10) {
                let begun = Instant::now();
                assert_eq!(store.query(&newest).unwrap().len(), 100);
                queries.push(begun.elapsed());
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        working.join().unwrap()
    });
    let counts = (appends.len(), queries.len());
    report.percentiles(&format!("append beside {what}"), appends, counts.0);
    report.percentiles(&format!("newest 100 beside {what}"), queries, counts.1);
    done
}

fn ask(store: &EventStore, question: Question, report: &mut Report) {
    let (mut times, mut found) = (Vec::new(), 0);
    for filter in question.filters {
        let begun = Instant::now();
        found += store.query(&[filter]).unwrap().len();
        times.push(begun.elapsed());
    }
    report.percentiles(&format!("query: {}", question.name), times, found);
}
