//! Importing any lines has the same result as importing line by line, also after a failed read of the lines. The report
//! names the line of every text without an event.

use std::io::BufReader;
use std::sync::LazyLock;

use deedbook::nostr::{BadLine, Check, Event, EventStore, ImportOptions, ImportReport, Include};
use deedbook::{Error, ErrorKind, OnCorrupt};

use super::kit::Input;
use super::nostr_store::events::{Torn, event, in_memory, open};

/// From this byte on, a byte stands for a known line, because no mutation would find the line.
const KNOWN: u8 = 0x10;
/// Stands for a line that fills most of a core's share of the text.
const LONG: u8 = 0x1F;
const LONG_BYTES: usize = 600_000;
/// More bytes and lines take time without finding more.
const TEXT_BYTES_MAX: usize = 4 * LONG_BYTES;
const LINES_MAX: usize = 300;

static LINES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let note = |number, len| event(1, number, 1, &[&["t", "note"]], &"x".repeat(len));
    let deletion = ["e", &note(1, 5).id.to_string()];
    let events = [
        note(1, 5),
        note(2, 9_000),
        event(2, 10, 0, &[], "a profile"),
        event(2, 20, 0, &[], "a newer one"),
        event(2, 15, 0, &[], "one between them"),
        event(3, 30, 30023, &[&["d", "a"]], "an article"),
        event(3, 40, 30023, &[&["d", "a"]], "again"),
        event(1, 50, 5, &[&deletion], "the first note"),
        event(4, 60, 20001, &[], "ephemeral"),
        event(4, 70, 1, &[&["expiration", "80"]], "its time is over"),
        event(4, 90, 1, &[&["expiration", "4000000000"]], "its time is not over"),
        event(4, 100, 1, &[&["long", &"y".repeat(70_000)], &[]], "in fragments"),
    ];
    events.iter().map(Event::to_json).chain(SIGNED.iter().map(Event::to_json)).collect()
});

/// Real events: mutations find no other signed events.
static SIGNED: LazyLock<Vec<Event>> = LazyLock::new(|| {
    let real = include_str!("../../tests/data/nostr/events.jsonl").lines().take(3);
    real.map(|line| Event::from_json(line.as_bytes()).unwrap()).collect()
});

/// The target.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let how = input.u8();
    let check = match how & 3 {
        0 | 1 => Check::None,
        2 => Check::Id,
        _ => Check::Signature,
    };
    let limit = match how >> 2 & 3 {
        0 => usize::from(input.u8()),
        1 => LINES[0].len(),
        _ => 128 << 20,
    };
    let threads = 1 + usize::from(how >> 4 & 1);
    let options = ImportOptions::new().check(check).line_bytes_max(limit).threads(threads);
    let cut = input.u32() as usize;
    let text = text(input.rest());
    let (expected, aside, one_by_one) = one_at_a_time(&text, &options);

    let store = new_store();
    let mut bad = Vec::new();
    let got = store.import(&mut &text[..], &options, Some(&mut bad), &mut |_| Ok(())).unwrap();
    assert_eq!(got, expected);
    assert_eq!(listed(&store), one_by_one);
    assert!(bad == aside, "other lines are written aside");

    let store = new_store();
    let begun = torn(&store, &text[..cut % (text.len() + 1)], &options);
    let rest = options.clone().after(begun);
    assert_eq!(store.import(&mut &text[..], &rest, None, &mut |_| Ok(())).unwrap(), expected);
    assert_eq!(listed(&store), one_by_one);

    // With `stop_at_bad` the first bad line ends the import, and the store has the lines before.
    let Some(first) = expected.bad_lines.first() else { return };
    let store = new_store();
    let options = options.stop_at_bad(true);
    let error = store.import(&mut &text[..], &options, None, &mut |_| Ok(())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains(&format!("line {}: {}", first.line, first.reason)), "{error}");
    let before: Vec<&[u8]> = lines(&text).take(first.line as usize - 1).collect();
    let (_, _, before) = one_at_a_time(&before.concat(), &options);
    assert_eq!(listed(&store), before);
}

fn text(program: &[u8]) -> Vec<u8> {
    let (mut text, mut lines) = (Vec::new(), 0);
    for &byte in program {
        lines += usize::from(byte == b'\n');
        if text.len() > TEXT_BYTES_MAX || lines > LINES_MAX {
            break;
        }
        match byte {
            LONG => text.resize(text.len() + LONG_BYTES, b'x'),
            KNOWN..LONG => {
                let known = &LINES[usize::from(byte - KNOWN)];
                text.extend_from_slice(known.as_bytes());
            }
            byte => text.push(byte),
        }
    }
    text
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|&byte| byte == b'\n')
}

fn new_store() -> EventStore {
    let (_, options) = in_memory();
    open(&options)
}

/// The store's events and flags.
fn listed(store: &EventStore) -> Vec<(Event, u8)> {
    let walk = store.iter(Include::All, OnCorrupt::Raise).unwrap();
    walk.map(|found| found.unwrap()).map(|found| (found.event, found.flags.0)).collect()
}

/// Import lines one at a time. Returns the report, the bad lines, and the store's events.
fn one_at_a_time(
    text: &[u8],
    options: &ImportOptions,
) -> (ImportReport, Vec<u8>, Vec<(Event, u8)>) {
    let (store, mut sum, mut aside) = (new_store(), ImportReport::default(), Vec::new());
    for line in lines(text) {
        let mut bad = Vec::new();
        let mut rest = line;
        let one = store.import(&mut rest, options, Some(&mut bad), &mut |_| Ok(())).unwrap();
        assert_eq!((one.lines, one.bytes), (1, line.len() as u64));
        check(line, options, one.bad_lines.first(), &bad);
        sum.lines += 1;
        sum.bytes += one.bytes;
        sum.stored += one.stored;
        sum.superseded += one.superseded;
        sum.duplicates += one.duplicates;
        sum.deleted += one.deleted;
        sum.expired += one.expired;
        sum.ephemeral += one.ephemeral;
        sum.bad += one.bad;
        let reasons = one.bad_lines.into_iter().map(|bad| bad.reason);
        sum.bad_lines.extend(reasons.map(|reason| BadLine { line: sum.lines, reason }));
        sum.bad_lines.truncate(1000);
        aside.extend(bad);
    }
    let listed = listed(&store);
    (sum, aside, listed)
}

/// Check the result for a line against the line's text.
fn check(line: &[u8], options: &ImportOptions, bad: Option<&BadLine>, aside: &[u8]) {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() > options.line_bytes_max {
        let reason = format!("longer than {} bytes", options.line_bytes_max);
        assert_eq!(bad.map(|bad| &bad.reason), Some(&reason));
        let kept = aside.strip_suffix(b"\n").expect("a line");
        assert!(line.starts_with(kept) && kept.len() > options.line_bytes_max);
        return;
    }
    assert_eq!(aside, bad.map_or_else(Vec::new, |_| [line, b"\n"].concat()));
    if line.iter().all(u8::is_ascii_whitespace) {
        return assert_eq!(bad, None);
    }
    let is_bad = match (Event::from_json(line), options.check) {
        (Err(_), _) => true,
        (Ok(_), Check::None) => false,
        (Ok(event), Check::Id) => event.canonical_id() != event.id,
        // An unsigned request to delete asks for nothing.
        (Ok(event), _) => !SIGNED.contains(&event) && event.kind != 5,
    };
    assert_eq!(bad.is_some(), is_bad, "{bad:?}");
}

/// The report of an import with a read error at the end of the text.
fn torn(store: &EventStore, text: &[u8], options: &ImportOptions) -> ImportReport {
    let mut last = ImportReport::default();
    let mut lines = BufReader::with_capacity(100, Torn(text));
    let done = store.import(&mut lines, options, None, &mut |report| {
        last = report.clone();
        Ok(())
    });
    let error: Error = done.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    last
}
