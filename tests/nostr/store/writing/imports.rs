//! Imports of lines that cannot be read to the end, and of a store with a repair in between.

use std::io::BufReader;

use crate::store::prelude::*;

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

/// At every try, the import dropped up to some megabytes of lines that it had read before the tear, but not stored.
#[test]
fn import_stores_whole_lines_before_a_read_error() {
    let notes = notes(0..2_000);
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
            assert!(all(&store) == notes[..whole], "{what}");
            // A second import stores nothing new, and an import of the whole file stores the rest.
            let (_, again) = torn(&store, &text[..cut], &importing);
            assert_eq!((again.stored, again.duplicates), (0, whole as u64), "{what}");
            let importing = importing.after(done);
            let (_, none) = torn(&store, &text[..cut], &importing);
            assert_eq!(none, importing.after, "{what}");
            let done = import(&store, std::str::from_utf8(text).unwrap(), &importing);
            assert_eq!((done.lines, done.stored), (2_000, 2_000), "{what}");
            assert!(all(&store) == notes, "{what}");
        }
    }
}

/// A line beyond the limit is bad only after the import has read all of it.
#[test]
fn long_line_cut_short_is_not_counted() {
    let (_, store) = memory_store();
    let text = [note(1).to_json(), "x".repeat(5_000), note(2).to_json(), String::new()].join("\n");
    let importing = ImportOptions::new().line_bytes_max(1_000);
    let first = note(1).to_json().len() + 1;
    for (cut, lines, bad) in [(first + 500, 1, 0), (first + 3_000, 1, 0), (first + 5_001, 2, 1)] {
        let (_, done) = torn(&store, &text.as_bytes()[..cut], &importing);
        assert_eq!((done.lines, done.bad), (lines, bad), "cut at {cut}");
    }
    assert_eq!(all(&store), [note(1)]);
}

/// The import refused a line as long as the limit, and checked only the beginning of a longer line: blanks counted as
/// an empty line, and an event before a carriage return was stored.
#[test]
fn only_lines_beyond_the_limit_are_too_long() {
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
            let (_, store) = memory_store();
            let importing = ImportOptions::new().line_bytes_max(limit);
            let text = line + end;
            let done = import(&store, &text, &importing);
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

/// Only the first repair with a loss removed the note of stored lines. Now every such repair removes the note first.
#[test]
fn repair_forgets_import_notes_before_removing_events() {
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
        assert!(report.mended && report.loss.is_some(), "{report:?}");
        assert_eq!(report.earlier_loss.is_some(), round > 0, "{report:?}");
        assert!(!is_noted(&disk).0, "round {round}");
        for (call, moment) in disk.recorded().iter().enumerate() {
            let crashes = moment.crashes();
            for state in [moment.kill(), crashes.state(0)] {
                // The saved bytes of an earlier repair are there from the beginning.
                assert!(round > 0 || is_noted(&state) != (true, true), "call {call}");
            }
        }
    }
    write(&disk, NOTE, b"{}");
    assert!(mended(&disk, PLAIN).unwrap().mended && is_noted(&disk).0, "nothing goes");
}

#[test]
fn import_reports_or_stops_at_bad_lines() {
    let (_, store) = memory_store();
    let mut wrong = note(2);
    wrong.content.push('!');
    let lines = [note(1).to_json(), "{}".into(), wrong.to_json(), String::new(), note(3).to_json()];
    let text = lines.join("\n");
    let stopping = ImportOptions::new().stop_at_bad(true);
    let stopped = store.import(&mut text.as_bytes(), &stopping, None, &mut |_| Ok(())).unwrap_err();
    assert!(stopped.message().starts_with("line 2: "), "{stopped}");
    assert_eq!(all(&store), [note(1)]);
    let mut aside = Vec::new();
    let whole = ImportOptions::default();
    let report =
        store.import(&mut text.as_bytes(), &whole, Some(&mut aside), &mut |_| Ok(())).unwrap();
    assert_eq!((report.lines, report.stored, report.duplicates, report.bad), (5, 1, 1, 2));
    assert_eq!(report.bad_lines.iter().map(|bad| bad.line).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(aside, format!("{{}}\n{}\n", wrong.to_json()).into_bytes());
    let mut out = Vec::new();
    let count = store.export(&mut out, Include::Live, OnCorrupt::Raise, &mut |_| Ok(())).unwrap();
    assert_eq!((count.events, count.lossy), (2, 0));
    assert_eq!(out, format!("{}\n{}\n", note(1).to_json(), note(3).to_json()).into_bytes());
}

/// The skipped bytes of a long line count. Otherwise the next import would begin at a wrong place.
#[test]
fn import_continues_after_its_last_report() {
    let (_, store) = memory_store();
    let line = |number| note(number).to_json() + "\n";
    let first = [line(1), "x".repeat(5000) + "\n", line(2)].concat();
    let text = [&first, "oops\n", &line(1), "\n", &line(4)].concat();
    let go_on = |text: &str, after: ImportReport| {
        import(&store, text, &ImportOptions::new().line_bytes_max(1000).after(after))
    };
    let begun = go_on(&first, ImportReport::default());
    assert_eq!((begun.lines, begun.stored, begun.bad), (3, 2, 1));
    assert_eq!(begun.bytes, first.len() as u64);
    let done = go_on(&text, begun);
    assert_eq!((done.lines, done.stored, done.duplicates, done.bad), (7, 3, 1, 2));
    assert_eq!(done.bytes, text.len() as u64);
    assert_eq!(done.bad_lines.iter().map(|bad| bad.line).collect::<Vec<_>>(), [2, 4]);
    // A shorter file has no more lines.
    assert_eq!(go_on(&first, done.clone()), done);
}
