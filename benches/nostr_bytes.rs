//! The bytes of the event store: JSON lines to checked events, events to records, scans of a segment
//! both ways. `cargo bench -p deedbook --features nostr,sim --bench nostr_bytes`
//!
//! The events are the real ones of `../shared/data/nostr-events.jsonl`, over and over.

#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing, clippy::print_stdout)]

use std::path::Path;
use std::time::Instant;

use deedbook::engine::nostr::{Found, Segment, encode};
use deedbook::nostr::{Event, Flags};
use deedbook::storage::{Access, Disk};

const ROUNDS: usize = 40;
const RUNS: usize = 5;

/// Print the best of some runs.
fn measure(what: &str, mut run: impl FnMut() -> usize) {
    let mut best = f64::MAX;
    let mut events = 0;
    for _ in 0..RUNS {
        let start = Instant::now();
        events = run();
        best = best.min(start.elapsed().as_secs_f64());
    }
    println!("{what:<40} {:>10.0} events/s", events as f64 / best);
}

fn main() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/nostr-events.jsonl");
    if !path.exists() {
        println!("skipped: ../shared/data/nostr-events.jsonl is not there");
        return;
    }
    let text = std::fs::read(path).unwrap();
    let lines: Vec<&[u8]> = text.split(|&b| b == b'\n').filter(|line| !line.is_empty()).collect();
    let events: Vec<Event> = lines.iter().map(|line| Event::from_json(line).unwrap()).collect();

    measure("JSON line to event", || {
        lines
            .iter()
            .map(|line| usize::from(Event::from_json(line).unwrap().kind < 9))
            .sum::<usize>();
        lines.len()
    });
    let mut scratch = Vec::new();
    measure("JSON line to event, id checked", || {
        for line in &lines {
            Event::from_json(line).unwrap().check_id(&mut scratch).unwrap();
        }
        lines.len()
    });
    let mut record = Vec::new();
    for trailer in [false, true] {
        let what = if trailer { "event to record, with CRC" } else { "event to record" };
        measure(what, || {
            for event in &events {
                record.clear();
                encode(event, Flags(0), trailer, 4096, &mut record).unwrap();
            }
            events.len()
        });
    }

    for trailer in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data.0.seg");
        let mut segment = Segment::create(&Disk::default(), &path, 0, 4096, 0, 0o600).unwrap();
        let records: Vec<Vec<u8>> = events
            .iter()
            .map(|event| {
                let mut record = Vec::new();
                encode(event, Flags(0), trailer, 4096, &mut record).unwrap();
                record
            })
            .collect();
        let slices: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
        (0..ROUNDS).for_each(|_| drop(segment.append(&slices).unwrap()));
        let name = if trailer { "with CRC" } else { "without CRC" };
        println!("segment of {} bytes, {name}", segment.end());
        measure("  opened", || {
            Segment::open(&Disk::default(), &path, Access::Read).unwrap();
            1
        });
        let mut block = vec![0; 256 << 10];
        measure("  plain reads of the file", || {
            use std::io::Read;
            let mut file = std::fs::File::open(&path).unwrap();
            while file.read(&mut block).unwrap() > 0 {}
            ROUNDS * events.len()
        });
        measure("  forwards, borrowed", || {
            let (mut scan, mut count) = (segment.scan(0), 0);
            while let Some(Found::Record(record)) = scan.next().unwrap() {
                count += usize::from(!record.event.content.is_empty()) | 1;
            }
            count
        });
        measure("  forwards, owned", || {
            let (mut scan, mut count) = (segment.scan(0), 0);
            while let Some(Found::Record(record)) = scan.next().unwrap() {
                count += usize::from(!record.event.to_event().content.is_empty()) | 1;
            }
            count
        });
        measure("  backwards, borrowed", || {
            let (mut scan, mut count) = (segment.reverse(), 0);
            while let Some(Found::Record(record)) = scan.next().unwrap() {
                count += usize::from(!record.event.content.is_empty()) | 1;
            }
            count
        });
        let offsets: Vec<u32> = {
            let (mut scan, mut offsets) = (segment.scan(0), Vec::new());
            while let Some(Found::Record(record)) = scan.next().unwrap() {
                offsets.push(record.offset);
            }
            offsets
        };
        let mut buf = Vec::new();
        measure("  one by one, anywhere", || {
            for i in 0..50_000 {
                let offset = offsets[i * 7919 % offsets.len()];
                segment.read(offset, &mut buf).unwrap();
            }
            50_000
        });
    }
}
