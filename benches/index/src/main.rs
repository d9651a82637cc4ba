//! The event store's index, then fjall next to redb with the same keys.
//!
//! `cargo run --release -- EVENTS.jsonl [COUNT] [BATCH]`: a table on standard output.

mod events;
mod own;
mod stores;

use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use events::{Event, Numbers};
use stores::{AUTHOR_KIND, Fjall, KIND, Redb, Store, TAG, View};

const LIMIT: usize = 100;
const QUERIES: usize = 2_000;
const GETS: usize = 500_000;
const DAY: u32 = 86_400;

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let number = |at: usize, default| words.get(at).map_or(default, |word| word.parse().unwrap());
    let real = PathBuf::from(words.get(1).expect("a file of events"));
    let (count, batch) = (number(2, 1_000_000), number(3, 20_000));
    let events = events::synthetic(&real, count);
    if let (Some(child), Some(dir)) = (words.get(4), words.get(5)) {
        match child.as_str() {
            Fjall::NAME => die_filling::<Fjall>(Path::new(dir), &events, batch),
            _ => die_filling::<Redb>(Path::new(dir), &events, batch),
        }
    }
    println!("{count} synthetic events, batches of {batch}");
    println!("entries per event: {:.2}", entries_per_event(&events));
    own::measure(&events, batch);
    if words.get(4).is_some_and(|only| only == "own") {
        return;
    }
    measure::<Fjall>(&words, &events, batch);
    measure::<Redb>(&words, &events, batch);
}

fn entries_per_event(events: &[Event]) -> f64 {
    5.0 + events.iter().map(|event| event.tags.len()).sum::<usize>() as f64 / events.len() as f64
}

/// Fill a store, and abort without closing it.
fn die_filling<S: Store>(dir: &Path, events: &[Event], batch: usize) -> ! {
    fill(&S::open(dir), events, batch);
    std::process::abort();
}

fn fill<S: Store>(store: &S, events: &[Event], batch: usize) -> Duration {
    let begin = Instant::now();
    for (i, part) in events.chunks(batch).enumerate() {
        store.insert(stores::entries(part, i * batch));
    }
    begin.elapsed()
}

fn measure<S: Store>(words: &[String], events: &[Event], batch: usize) {
    println!("\n{}", S::NAME);
    let scratch = tempfile::tempdir_in(".").unwrap();
    let dir = scratch.path();
    let before = memory();
    let store = S::open(dir);
    let took = fill(&store, events, batch);
    println!("  insert            {:>9.0} events/s", events.len() as f64 / took.as_secs_f64());
    println!("  memory            {:>9} MB more", (memory() - before) / 1_000_000);
    let begin = Instant::now();
    store.close();
    println!("  close             {:>9.1} ms", begin.elapsed().as_secs_f64() * 1e3);
    println!("  disk              {:>9} MB", size(dir) / 1_000_000);
    let begin = Instant::now();
    let store = S::open(dir);
    println!("  open, clean       {:>9.1} ms", begin.elapsed().as_secs_f64() * 1e3);
    reads(&store, events);
    println!("  memory, read      {:>9} MB more", (memory() - before) / 1_000_000);
    drop(store);
    drop(scratch);

    let scratch = tempfile::tempdir_in(".").unwrap();
    let status = Command::new(std::env::current_exe().unwrap())
        .args([&words[1], &events.len().to_string(), &batch.to_string()])
        .args([S::NAME, scratch.path().to_str().unwrap()])
        .status();
    assert!(!status.unwrap().success());
    let begin = Instant::now();
    drop(S::open(scratch.path()));
    println!("  open, after dying {:>9.1} ms", begin.elapsed().as_secs_f64() * 1e3);
}

fn reads<S: Store>(store: &S, events: &[Event]) {
    let view = store.view();
    let mut numbers = Numbers::new(2);
    for warm in [true, false] {
        let begin = cpu_seconds();
        for _ in 0..GETS {
            view.get(&events[numbers.below(events.len())].id).expect("an event");
        }
        if !warm {
            println!("  get by id         {:>9.0} /s", GETS as f64 / (cpu_seconds() - begin));
        }
    }
    let pick = |numbers: &mut Numbers| numbers.below(events.len());
    let mut profile = |numbers: &mut Numbers| {
        vec![span(AUTHOR_KIND, &[&events[pick(numbers)].author, &0_u16.to_be_bytes()])]
    };
    time("profile", &view, &mut numbers, &mut profile);
    let mut thread = |numbers: &mut Numbers| {
        loop {
            let event = &events[pick(numbers)];
            if let Some((letter, value)) = event.tags.iter().find(|(letter, _)| *letter == b'e') {
                return vec![span(TAG, &[&[*letter], value])];
            }
        }
    };
    time("thread", &view, &mut numbers, &mut thread);
    let mut notes = |numbers: &mut Numbers| {
        let one = |_| span(AUTHOR_KIND, &[&events[pick(numbers)].author, &1_u16.to_be_bytes()]);
        (0..50).map(one).collect()
    };
    time("notes of 50", &view, &mut numbers, &mut notes);
    let mut day = |numbers: &mut Numbers| {
        let event = &events[pick(numbers)];
        let (kind, at) = (event.kind.to_be_bytes(), event.at);
        let key = |at: u32| [&kind[..], &(!at).to_be_bytes()[..]].concat();
        vec![(KIND, key(at), key(at - DAY))]
    };
    time("kind in a day", &view, &mut numbers, &mut day);
}

type Span = (usize, Vec<u8>, Vec<u8>);

fn span(table: usize, parts: &[&[u8]]) -> Span {
    let from = parts.concat();
    let end = [&from[..], &[0xFF; 40][..]].concat();
    (table, from, end)
}

/// The newest [`LIMIT`] entries of some ranges, each looked up by its id.
fn time(
    name: &str,
    view: &impl View,
    numbers: &mut Numbers,
    spans: &mut dyn FnMut(&mut Numbers) -> Vec<Span>,
) {
    let mut took = Vec::new();
    let mut found = 0;
    for round in 0..2 * QUERIES {
        let spans = spans(numbers);
        let begin = Instant::now();
        let mut ranges: Vec<_> =
            spans.into_iter().map(|(table, from, end)| view.keys(table, from, end)).collect();
        let mut heap = BinaryHeap::new();
        let order = |key: Vec<u8>| std::cmp::Reverse(key[key.len() - 36..].to_vec());
        for (i, range) in ranges.iter_mut().enumerate() {
            heap.extend(range.next().map(|key| (order(key), i)));
        }
        let mut given = 0;
        while given < LIMIT {
            let Some((key, i)) = heap.pop() else { break };
            view.get(key.0[4..].try_into().unwrap()).expect("an event");
            given += 1;
            heap.extend(ranges[i].next().map(|key| (order(key), i)));
        }
        if round >= QUERIES {
            took.push(begin.elapsed());
            found += given;
        }
    }
    report(name, took, found);
}

fn report(name: &str, mut took: Vec<Duration>, found: usize) {
    took.sort_unstable();
    let us = |at: usize| took[at * took.len() / 100].as_secs_f64() * 1e6;
    let mean = found as f64 / took.len() as f64;
    println!("  {name:<17} {:>9.0} us p50, {:.0} us p99 ({mean:.1} found)", us(50), us(99));
}

/// Processor time of this thread; other work on the machine does not count.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    stat.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
}

fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() * 1024
}

fn size(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries
        .map(|path| match path.is_dir() {
            true => size(&path),
            false => std::os::unix::fs::MetadataExt::blocks(&path.metadata().unwrap()) * 512,
        })
        .sum()
}
