//! Imports of lines that cannot be read to their end, and of a store that is repaired meanwhile.

use std::io::BufReader;
use std::path::Path;

use deedbook::nostr::{Event, EventStore, ImportOptions, ImportReport, Include};
use deedbook::storage::sim::Sim;
use deedbook::storage::{Access, Storage};
use deedbook::{Error, ErrorKind, OnCorrupt};

use crate::store::rescue::{ACCEPT, DRY, PAGE, PLAIN, ids, listed, mended, segment, world};
use crate::support::store::events::{Torn, changed, in_memory, note, open, read, write};
use crate::support::store::world::DIR;

/// The error of an import, and what it said last of what it did.
fn torn(store: &EventStore, text: &[u8], options: &ImportOptions) -> (Error, ImportReport) {
    let mut last = options.after.clone();
    let mut tell = |report: &ImportReport| {
        last = report.clone();
        Ok(())
    };
    let mut lines = BufReader::with_capacity(8192, Torn(text));
    let error = store.import(&mut lines, options, None, &mut tell).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    assert!(error.message().contains("torn"), "{error}");
    assert_eq!(error.path(), Some(options.source.as_path()), "{error}");
    (error, last)
}

fn stored(store: &EventStore) -> Vec<Event> {
    let walk = store.iter(Include::All, OnCorrupt::Raise).unwrap();
    walk.map(|found| found.unwrap().event).collect()
}

/// What was read before the tear, and not stored yet, was dropped, at every try: up to some megabytes.
#[test]
fn the_whole_lines_before_a_tear_are_stored_and_the_error_is_given() {
    let notes: Vec<Event> = (0..2_000).map(note).collect();
    let text: String = notes.iter().map(|note| note.to_json() + "\n").collect();
    let text = text.as_bytes();
    assert!(text.len() > 3 << 20);
    let first_line = text.iter().position(|&byte| byte == b'\n').unwrap() + 1;
    // Within the first line, at its end, in the first part and in a later one, before and after the last byte.
    let cuts = [0, 9, first_line, 300_000, text.len() / 2, text.len() - 1, text.len()];
    for threads in [1, 3] {
        for cut in cuts {
            let (_, options) = in_memory();
            let store = open(&options.segment_bytes(64 << 20).checkpoint_bytes(64 << 20));
            let importing = ImportOptions::new().threads(threads).source("some.jsonl".into());
            let whole = text[..cut].iter().filter(|&&byte| byte == b'\n').count();
            let bytes = text[..cut].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
            let (_, done) = torn(&store, &text[..cut], &importing);
            let what = format!("{threads} threads, cut at {cut}");
            assert_eq!((done.lines, done.stored), (whole as u64, whole as u64), "{what}");
            assert_eq!((done.bytes, done.bad), (bytes as u64, 0), "{what}");
            assert!(stored(&store) == notes[..whole], "{what}");
            // Once more there is nothing new; and once it is whole, the rest comes.
            let (_, again) = torn(&store, &text[..cut], &importing);
            assert_eq!((again.stored, again.duplicates), (0, whole as u64), "{what}");
            let importing = importing.after(done);
            let (_, none) = torn(&store, &text[..cut], &importing);
            assert_eq!(none, importing.after, "{what}");
            let mut lines = text;
            let all = store.import(&mut lines, &importing, None, &mut |_| Ok(())).unwrap();
            assert_eq!((all.lines, all.stored), (2_000, 2_000), "{what}");
            assert!(stored(&store) == notes, "{what}");
        }
    }
}

/// A line beyond the limit is bad once all of it was read, and not before.
#[test]
fn a_line_that_is_too_long_and_torn_is_none() {
    let (_, options) = in_memory();
    let store = open(&options);
    let text = [note(1).to_json(), "x".repeat(5_000), note(2).to_json(), String::new()].join("\n");
    let importing = ImportOptions::new().line_bytes_max(1_000);
    let first = note(1).to_json().len() + 1;
    for (cut, lines, bad) in [(first + 500, 1, 0), (first + 3_000, 1, 0), (first + 5_001, 2, 1)] {
        let (_, done) = torn(&store, &text.as_bytes()[..cut], &importing);
        assert_eq!((done.lines, done.bad), (lines, bad), "cut at {cut}");
    }
    assert_eq!(stored(&store), [note(1)]);
}

/// A line as long as the limit was refused as longer. Of a longer one the beginning was looked at: blanks made it
/// an empty line, and an event before a carriage return was stored.
#[test]
fn only_a_line_beyond_the_limit_is_too_long() {
    let json = note(1).to_json();
    let limit = json.len();
    for end in ["", "\n", "\r\n"] {
        let blank = " ".repeat(limit);
        let lines = [
            (json.clone(), Some(None)),
            (json.clone() + " ", None),
            (json.clone() + "\r ", None),
            (json[1..].to_owned() + "  ", None),
            (blank.clone(), Some(None)),
            (blank + &json, None),
            ("x".repeat(limit), Some(Some("expected value"))),
        ];
        for (line, other) in lines {
            let (_, options) = in_memory();
            let store = open(&options);
            let importing = ImportOptions::new().line_bytes_max(limit);
            let text = line + end;
            let done = store.import(&mut text.as_bytes(), &importing, None, &mut |_| Ok(()));
            let done = done.unwrap();
            assert_eq!((done.lines, done.bytes), (1, text.len() as u64));
            let reason = done.bad_lines.first().map(|bad| bad.reason.as_str());
            match other {
                None => assert_eq!(reason, Some(format!("longer than {limit} bytes").as_str())),
                Some(None) => assert_eq!(reason, None),
                Some(Some(part)) => assert!(reason.unwrap().contains(part), "{reason:?}"),
            }
        }
    }
}

/// Only the first repair that lost events ended what an import had noted as stored: it goes with each since,
/// before anything else does.
#[test]
fn a_repair_forgets_what_an_import_noted_before_anything_goes() {
    const NOTE: &str = "/events/.deedbook/imports.json";
    let (disk, _) = world();
    let is_noted = |disk: &Sim| {
        let files = listed(disk, Path::new(DIR));
        let is_cut = files.keys().any(|path| path.to_string_lossy().contains(".cut-"));
        (files.contains_key(Path::new(NOTE)), is_cut)
    };
    for round in 0..2 {
        write(&disk, NOTE, b"{}");
        disk.open(Path::new(NOTE), Access::Write).unwrap().sync_data().unwrap();
        disk.sync_dir(Path::new(NOTE).parent().unwrap()).unwrap();
        let has_event = |id: &u32| read(&disk, &segment(*id)).len() > PAGE + 80;
        let damaged = ids(&disk).into_iter().find(has_event).unwrap();
        changed(&disk, &segment(damaged), |bytes| bytes[PAGE + 80] ^= 1);
        for may in [DRY, PLAIN] {
            assert!(!mended(&disk, may).unwrap().mended && is_noted(&disk).0, "round {round}");
        }
        disk.record();
        let report = mended(&disk, ACCEPT).unwrap();
        assert!(report.mended && report.is_loss, "{report:?}");
        assert_eq!(report.was_loss, round > 0, "{report:?}");
        assert!(!is_noted(&disk).0, "round {round}");
        for (call, moment) in disk.recorded().iter().enumerate() {
            let crashes = moment.crashes();
            for state in [moment.kill(), crashes.build(&crashes.nth(0))] {
                // What an earlier repair cut is there from the beginning.
                assert!(round > 0 || is_noted(&state) != (true, true), "call {call}");
            }
        }
    }
    write(&disk, NOTE, b"{}");
    assert!(mended(&disk, PLAIN).unwrap().mended && is_noted(&disk).0, "nothing goes");
}
