//! Directories written by the real transientdb crate, migrated to a ledger: finished files, the file being written,
//! files of a store that died at any byte and was opened again, once or more often.
//!
//! `DEEDBOOK_WRITE_VECTORS=1` writes `tests/data/directory_store`, for the tests of the crate.

use std::fs;
use std::path::{Path, PathBuf};

use deedbook::ledger::{FileMigration, LedgerConfig, LedgerStore, Migration, Options};
use serde_json::{Value, json};
use tempfile::TempDir;
use transientdb::{DataStore, DirectoryConfig, DirectoryStore};

#[path = "../../support/mix.rs"]
mod mix;
use mix::mix;

/// Events of all shapes: nested, with quotes, brackets and escapes in their strings, and arrays
/// that a footer could close.
fn event(number: u64) -> Value {
    match mix(number) % 6 {
        0 => json!({"event": "page_view", "n": number}),
        1 => {
            json!({"n": number, "text": "],\"sentAt\":\"\\ }{ \u{1}\u{e9}\u{1f600}", "none": null})
        }
        2 => json!({"a": [number, [1.5, -2e-7], [], {}], "deep": {"b": {"c": [true, false]}}}),
        3 => json!([number, "x", [[number]]]),
        4 => json!({"n": number, "tail": [1, 2, 3]}),
        _ => json!({"fill": "x".repeat((mix(number) % 400) as usize), "n": number}),
    }
}

fn store(dir: &Path, max_file_size: usize) -> DirectoryStore {
    let config = DirectoryConfig {
        write_key: "key-17".into(),
        storage_location: dir.into(),
        base_filename: "events".into(),
        max_file_size,
    };
    DirectoryStore::new(config).unwrap()
}

/// Appends, and leaves the last file as a crash of the process does.
fn written(dir: &Path, numbers: std::ops::Range<u64>, max_file_size: usize) {
    let mut store = store(dir, max_file_size);
    numbers.for_each(|number| { store.append(event(number)).unwrap(); });
}

fn migrated(dir: &Path) -> (Vec<FileMigration>, Vec<Value>) {
    let target = TempDir::new().unwrap();
    let config = LedgerConfig::lines(target.path().join("spool"), "events");
    let reports = Migration::new(dir, "events").run(config, &Options::default(), |_, _| Ok(()));
    let config = LedgerConfig::lines(target.path().join("spool"), "events");
    let ledger = LedgerStore::new(config).unwrap();
    let mut events = Vec::new();
    for reader in ledger.fetch(None, None).unwrap().and_then(|f| f.data).unwrap_or_default() {
        for payload in reader.payloads() {
            events.push(serde_json::from_slice(&payload.unwrap()).unwrap());
        }
    }
    (reports.unwrap(), events)
}

fn expected(numbers: std::ops::Range<u64>) -> Vec<Value> {
    numbers.map(event).collect()
}

fn only_file(dir: &Path) -> PathBuf {
    let mut files = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let file = files.next().unwrap();
    assert!(files.next().is_none());
    file
}

#[test]
fn all_events_come_over_in_their_order() {
    for max_file_size in [100, 3000, 1 << 20] {
        let dir = TempDir::new().unwrap();
        written(dir.path(), 0..500, max_file_size);
        let (reports, events) = migrated(dir.path());
        assert_eq!(events, expected(0..500));
        assert!(reports.last().unwrap().active, "the file that was being written");
        assert!(reports.iter().all(|file| file.rest_from.is_none() && file.removed));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}

#[test]
fn files_finished_by_a_later_store_are_migrated() {
    let dir = TempDir::new().unwrap();
    written(dir.path(), 0..10, 1 << 20);
    written(dir.path(), 10..20, 1 << 20);
    let mut last = store(dir.path(), 1 << 20);
    (20..30).for_each(|number| { last.append(event(number)).unwrap(); });
    assert_eq!(last.fetch(None, None).unwrap().unwrap().data.unwrap().len(), 3);
    drop(last);
    let (reports, events) = migrated(dir.path());
    assert_eq!(events, expected(0..30));
    assert!(reports.iter().all(|file| !file.active && file.rest_from.is_none()));
}

/// The next store completes the file with its own footer, after any last byte. If its validator
/// refuses the result, the file stays unchanged, and the next store completes it again.
#[test]
fn a_dead_store_loses_only_the_torn_event() {
    let dir = TempDir::new().unwrap();
    written(dir.path(), 0..13, 1 << 20);
    let whole = fs::read(only_file(dir.path())).unwrap();
    let ends: Vec<usize> = {
        let mut at = "{ \"batch\": [".len();
        (0..13)
            .map(|n| {
                at += event(n).to_string().len() + 1;
                at - 1
            })
            .collect()
    };
    let mut set_aside = 0;
    for cut in 0..=whole.len() {
        for opened in 0..3 {
            let dir = TempDir::new().unwrap();
            let path = dir.path().join("1-events");
            fs::write(&path, &whole[..cut]).unwrap();
            for again in 0..opened {
                if again > 0 {
                    // As if the renaming had not reached stable storage.
                    fs::rename(dir.path().join("1-events.temp"), &path).unwrap();
                }
                drop(store(dir.path(), 1 << 20));
            }
            let complete = ends.iter().filter(|end| **end <= cut).count() as u64;
            let (reports, events) = migrated(dir.path());
            assert_eq!(events, expected(0..complete), "cut at {cut}, opened {opened} times");
            let report = &reports[0];
            let torn = cut > 12
                && complete < 13
                && (complete == 0 || cut > ends[complete as usize - 1] + 1);
            if cut >= 12 {
                assert_eq!(report.rest_from.is_some(), torn, "cut at {cut}, opened {opened}");
                assert_eq!(report.set_aside.is_some(), torn);
                assert!(report.removed);
            } else if cut > 0 && opened > 0 {
                assert!(report.is_foreign() && !report.removed, "a torn header: it stays");
            }
            set_aside += u64::from(torn);
        }
    }
    assert!(set_aside > 1000);
}

#[test]
fn the_stored_vectors_match_the_real_store() {
    let dir = TempDir::new().unwrap();
    written(dir.path(), 0..9, 300);
    let mut names: Vec<_> =
        fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/directory_store");
    if std::env::var_os("DEEDBOOK_WRITE_VECTORS").is_some() {
        fs::create_dir_all(&vectors).unwrap();
        for name in &names {
            fs::copy(dir.path().join(name), vectors.join(name)).unwrap();
        }
    }
    // Compares everything except the time of the footer.
    let shape = |path: PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        let at = text.rfind("],\"sentAt\":\"").filter(|_| text.ends_with("\"}"));
        let untimed = |at: usize| format!("{}{}", &text[..at + 12], &text[at + 36..]);
        at.map_or(text.clone(), untimed)
    };
    for name in &names {
        assert_eq!(shape(dir.path().join(name)), shape(vectors.join(name)), "{name:?}");
    }
    assert_eq!(fs::read_dir(&vectors).unwrap().count(), names.len());
}
