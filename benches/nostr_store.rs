//! The event store: import, scan, finding by id, queries, compaction, opening.
//! `cargo bench -p deedbook --features nostr --bench nostr_store`
//!
//! Events are synthetic: each is a real one of `../shared/data/nostr-events.jsonl` with an author,
//! a time and a text of its own and its true id, so that kinds, tags and sizes are distributed as in
//! the real ones. `DEEDBOOK_BENCH_EVENTS` is their number (500,000).

#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing, clippy::print_stdout)]

mod common;

use std::fs;
use std::io::BufReader;
use std::path::Path;
use std::time::{Duration, Instant};

use common::{count, write_figures};
use deedbook::nostr::{Event, EventStore, Filter, Id, ImportOptions, Include};
use deedbook::{Mode, OnCorrupt};

const BENCH: &str = "nostr store";

struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % end as u64) as usize
    }
}

/// Write events as JSON lines, each after a real one; gives their ids.
fn generate(real: &[Event], events: usize, path: &Path) -> Vec<Id> {
    let mut out = Vec::new();
    let (mut ids, mut numbers) = (Vec::with_capacity(events), Numbers(1));
    // As many events of an author as in the real ones.
    let copies = (events / real.len()).max(1);
    for number in 0..events {
        let mut event = real[numbers.below(real.len())].clone();
        event.pubkey[..4].copy_from_slice(&(numbers.below(copies) as u32).to_be_bytes());
        event.created_at = event.created_at.saturating_sub(numbers.below(30 * 86_400) as u32);
        event.content.push_str(&format!(" {number}"));
        event.id = event.canonical_id();
        event.write_json(&mut out);
        out.push(b'\n');
        ids.push(event.id);
    }
    fs::write(path, out).unwrap();
    ids
}

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
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/nostr-events.jsonl");
    let Ok(text) = fs::read_to_string(&path) else {
        println!("skipped: {} is not there", path.display());
        return;
    };
    let real: Vec<Event> =
        text.lines().filter_map(|line| Event::from_json(line.as_bytes()).ok()).collect();
    let events = std::env::var("DEEDBOOK_BENCH_EVENTS").ok().and_then(|text| text.parse().ok());
    let events = events.unwrap_or_else(|| count(500_000));
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("events.jsonl");
    let ids = generate(&real, events, &json);
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

    let mut numbers = Numbers(2);
    let wanted: Vec<Id> = (0..100_000).map(|_| ids[numbers.below(ids.len())]).collect();
    for (what, some) in [("find by id, cold", &wanted[..10_000]), ("find by id, warm", &wanted[..])]
    {
        let begun = Instant::now();
        some.iter().for_each(|id| drop(store.find(id).unwrap()));
        report.add(what, some.len(), begun.elapsed());
    }
    queries(&store, &real, &mut report);

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

fn queries(store: &EventStore, real: &[Event], report: &mut Report) {
    let mut numbers = Numbers(3);
    let authors: Vec<[u8; 32]> = store
        .iter(Include::Live, OnCorrupt::Raise)
        .unwrap()
        .take(20_000)
        .map(|found| found.unwrap().event.pubkey)
        .collect();
    let referred: Vec<String> = real
        .iter()
        .flat_map(|event| &event.tags)
        .filter(|tag| tag.len() > 1 && tag[0] == "e")
        .map(|tag| tag[1].clone())
        .collect();
    let latest = real.iter().map(|event| u64::from(event.created_at)).max().unwrap();
    let mut ask = |what: &str, make: &mut dyn FnMut(&mut Numbers) -> Filter| {
        let (mut times, mut found) = (Vec::new(), 0);
        for _ in 0..300 {
            let filter = [make(&mut numbers)];
            let begun = Instant::now();
            found += store.query(&filter).unwrap().count();
            times.push(begun.elapsed());
        }
        report.percentiles(what, times, found);
    };
    ask("query: a profile", &mut |numbers| Filter {
        authors: Some([authors[numbers.below(authors.len())]].into()),
        kinds: Some([0].into()),
        limit: Some(1),
        ..Filter::default()
    });
    ask("query: a thread by #e", &mut |numbers| Filter {
        kinds: Some([1].into()),
        tags: [(b'e', [referred[numbers.below(referred.len())].clone()].into())].into(),
        limit: Some(100),
        ..Filter::default()
    });
    ask("query: 100 notes of 50 authors", &mut |numbers| Filter {
        authors: Some((0..50).map(|_| authors[numbers.below(authors.len())]).collect()),
        kinds: Some([1].into()),
        limit: Some(100),
        ..Filter::default()
    });
    ask("query: a kind within a day", &mut |numbers| {
        let until = latest - numbers.below(20 * 86_400) as u64;
        Filter {
            kinds: Some([7].into()),
            since: Some(until - 86_400),
            until: Some(until),
            limit: Some(500),
            ..Filter::default()
        }
    });
}
