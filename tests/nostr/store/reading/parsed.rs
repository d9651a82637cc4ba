//! Lines as Arrow columns: the same lines are bad for the same reasons as in an import, and the other lines give the
//! columns of a store.

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use deedbook::nostr::{BadLine, Batches, ParsedLines};

use crate::store::prelude::*;
use crate::support::store::columns::odd;

const REAL: &str = include_str!("../../../data/nostr/events.jsonl");
const COLUMNS: [&str; 7] = ["id", "pubkey", "created_at", "kind", "tags", "content", "sig"];

fn checking(check: Check) -> ImportOptions {
    ImportOptions::new().check(check).line_bytes_max(200_000)
}

fn parsed(lines: &[Vec<u8>], options: &ImportOptions) -> RecordBatch {
    let mut parsed = ParsedLines::new(options.clone(), Options::default());
    lines.iter().for_each(|line| parsed.push(line).unwrap());
    assert_eq!(parsed.len(), lines.len());
    parsed.finish().unwrap()
}

fn errors(batch: &RecordBatch) -> Vec<BadLine> {
    let errors = batch.column(COLUMNS.len()).as_string::<i32>().iter();
    let bad = |(line, error): (u64, Option<&str>)| {
        error.map(|reason| BadLine { line, reason: reason.to_owned() })
    };
    (1..).zip(errors).filter_map(bad).collect()
}

fn imported(lines: &[Vec<u8>], options: &ImportOptions, event_bytes_max: u32) -> Vec<BadLine> {
    let (_, of_store) = in_memory();
    let text = lines.join(&b'\n');
    let store = open(&of_store.event_bytes_max(event_bytes_max));
    store.import(&mut &text[..], options, None, &mut |_| Ok(())).unwrap().bad_lines
}

/// Real lines, and damaged versions of them.
fn damaged() -> Vec<Vec<u8>> {
    let mut lines: Vec<Vec<u8>> = Vec::new();
    for (number, line) in REAL.lines().enumerate() {
        let line = line.as_bytes();
        lines.push(line.to_vec());
        let mut flipped = line.to_vec();
        flipped[number * 37 % line.len()] ^= 1;
        lines.push(flipped);
        lines.push(line[..number * 101 % line.len()].to_vec());
        lines.push([line, b"\r"].concat());
        lines.push([b" ", line, b" x"].concat());
    }
    lines.extend([b"".to_vec(), b" \t\r".to_vec(), b"{}".to_vec(), b"[1]".to_vec()]);
    lines.push(vec![b' '; 200_000]);
    lines.push(vec![b'x'; 200_000]);
    lines.push(b"\xff\xfe".to_vec());
    // A true id, and the signature of another event.
    lines.extend(notes(0..3).iter().map(|note| note.to_json().into_bytes()));
    lines.retain(|line| !line.contains(&b'\n'));
    lines.push(b"{".to_vec());
    lines
}

#[test]
fn parsed_lines_report_the_errors_of_an_import() {
    let lines = damaged();
    let mut counts = Vec::new();
    for check in [Check::None, Check::Id, Check::Signature] {
        let options = checking(check);
        let batch = parsed(&lines, &options);
        assert_eq!(batch.schema(), ParsedLines::schema());
        let found = errors(&batch);
        assert_eq!(found, imported(&lines, &options, Options::default().event_bytes_max));
        let is_event = |line: &Vec<u8>| !line.trim_ascii().is_empty();
        let events = lines.iter().filter(|line| is_event(line)).count() - found.len();
        for column in 0..COLUMNS.len() {
            let nulls = batch.column(column).null_count();
            assert_eq!(lines.len() - nulls, events, "column {column}");
        }
        counts.push(found.len());
    }
    // Each stricter check finds more.
    assert!(counts[0] > 0 && counts.is_sorted_by(|less, more| less < more), "{counts:?}");
}

#[test]
fn the_columns_are_those_of_a_store() {
    let (_, store) = memory_store();
    let events = [odd(), notes(0..50)].concat();
    store.append_many(&events).unwrap();
    let walk = store.iter(Include::All, OnCorrupt::Raise).unwrap();
    let mut batches = Batches::new(walk, &COLUMNS, usize::MAX, usize::MAX).unwrap();
    let stored = batches.next().unwrap().unwrap();
    assert_eq!((stored.num_rows(), batches.next().is_none()), (events.len(), true));

    let json = |event: &Event| event.to_json().into_bytes();
    let options = ImportOptions::default();
    let batch = parsed(&events.iter().map(json).collect::<Vec<_>>(), &options);
    assert_eq!(batch.num_columns(), COLUMNS.len() + 1);
    for (column, name) in COLUMNS.iter().enumerate() {
        assert_eq!(batch.column(column), stored.column(column), "{name:?}");
    }
    assert_eq!(batch.column(COLUMNS.len()).null_count(), events.len());

    // The same between bad and empty lines.
    let lines = events.iter().flat_map(|event| [b"{}".to_vec(), json(event), Vec::new()]);
    let batch = parsed(&lines.collect::<Vec<_>>(), &options);
    for (column, name) in COLUMNS.iter().enumerate() {
        for row in 0..events.len() {
            let found = batch.column(column).slice(3 * row + 1, 1);
            assert_eq!(&found, &stored.column(column).slice(row, 1), "{name:?} {row}");
        }
    }
}

/// An import ended at the event.
#[test]
fn event_above_store_limit_is_a_bad_line() {
    const LIMIT: u32 = 5_000;
    let mut events = notes(0..5);
    let tag: &[&str] = &["t", "x"];
    events.push(event(1, 5, 1, &vec![tag; 65_536], ""));
    let store = Options::new().event_bytes_max(LIMIT);
    let options = ImportOptions::default();
    let mut parsed = ParsedLines::new(options.clone(), store);
    let lines: Vec<Vec<u8>> = events.iter().map(|event| event.to_json().into_bytes()).collect();
    lines.iter().for_each(|line| parsed.push(line).unwrap());
    let found = errors(&parsed.finish().unwrap());
    assert_eq!(found.iter().map(|bad| bad.line).collect::<Vec<_>>(), [4, 6]);
    let (id, reason) = (events[3].id, &found[0].reason);
    assert!(reason.contains(&id.to_string()) && reason.contains("limit 5000"), "{reason}");
    assert_eq!(found, imported(&lines, &options, LIMIT));
}
