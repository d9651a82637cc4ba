//! A write-ahead log that is gone as a whole, which the manifest knows of, and one whose end was cut.

use std::path::Path;

use deedbook::nostr::{Check, Event, EventStore, Flags};
use deedbook::storage::Storage;
use deedbook::storage::sim::Sim;
use deedbook::{ErrorKind, Mode, Recovery};

use crate::rescue::{ACCEPT, DRY, PLAIN, events, logs, mended, on, open, remove_log};
use crate::support::{changed, event, note, read};
use crate::world::DIR;

const MANIFEST: &str = "/events/manifest.json";
const LOG: &str = "/events/wal/wal.log";

/// The last checkpoint by the manifest.
fn checkpoint(disk: &Sim) -> u64 {
    let manifest: serde_json::Value = serde_json::from_slice(&read(disk, MANIFEST)).unwrap();
    manifest["last_checkpoint_lsn"].as_u64().unwrap()
}

/// Events before and after a checkpoint, committed; then the process was killed.
fn killed() -> Sim {
    let disk = Sim::new();
    let store = open(&disk);
    store.append_many(&[1, 2, 4].map(note)).unwrap();
    store.checkpoint().unwrap();
    let versions: Vec<Event> =
        [1, 2].map(|at| event(9, at, 0, &[], &format!("profile {at}"))).into();
    store.append_many(&versions).unwrap();
    store.commit().unwrap();
    disk.kill()
}

fn by_the_letter(disk: &Sim) -> EventStore {
    on(disk).recovery(Recovery::Spec).open(DIR, Mode::Append).unwrap()
}

/// Without `wal.log` alone a store was refused; without `wal` it was opened without a word, and what only the
/// log had was gone.
#[test]
fn a_log_that_is_gone_is_refused_and_named() {
    let whole = killed();
    let known = checkpoint(&whole);
    assert!(known > 0);
    let disk = whole.kill();
    remove_log(&disk);
    let before = read(&disk, MANIFEST);
    let error = on(&disk).open(DIR, Mode::Append).unwrap_err();
    assert_eq!((error.kind(), error.path()), (ErrorKind::LostRecords, Some(Path::new(LOG))));
    let expected =
        format!("no file, and so no entry: the manifest says a checkpoint with lsn {known},");
    assert!(error.message().contains(&expected), "{error}");
    assert_eq!(read(&disk, MANIFEST), before);
    let reader = on(&disk).open(DIR, Mode::Read).unwrap();
    let report = reader.verify(Check::Id).unwrap();
    assert_eq!((report.faults, report.log_damages.len()), (1, 1), "{report:?}");
    assert!(report.log_damages[0].reason.contains(&expected), "{report:?}");
    let dry = mended(&disk, DRY).unwrap();
    assert!(dry.is_loss && dry.damages == report.log_damages, "{dry:?}");
    let refused = mended(&disk, PLAIN).unwrap();
    assert!(!refused.mended && on(&disk).open(DIR, Mode::Append).is_err(), "{refused:?}");
    for by_repair in [true, false] {
        let disk = disk.kill();
        let store = match by_repair {
            true => {
                assert!(mended(&disk, ACCEPT).unwrap().mended);
                open(&disk)
            }
            false => by_the_letter(&disk),
        };
        assert!(store.opening().is_loss && store.opening().saved.is_empty());
        let report = store.verify(Check::Id).unwrap();
        assert!(report.is_ok() && report.is_loss && report.live == 4, "{report:?}");
        // Which version counts the segments say, too.
        let flagged =
            |at: u32| events(&store)[&event(9, at, 0, &[], &format!("profile {at}")).id].1;
        assert_eq!([1, 2].map(flagged), [Flags::REPLACED, Flags::default()]);
        store.append(&note(5)).unwrap();
        store.close().unwrap();
        assert!(checkpoint(&disk) > known, "the numbers go on after those that were lost");
        assert_eq!(events(&open(&disk)).len(), 6);
    }
    // Another program may keep no such log.
    changed(&disk, MANIFEST, |bytes| {
        let text = String::from_utf8(bytes.clone()).unwrap();
        *bytes = text.replace("\"compactions\"", "\"generations\"").into_bytes();
    });
    assert_eq!(events(&open(&disk)).len(), 5);
}

/// The end of the log was cut and saved, and a line in the program's log said so, but not the store.
#[test]
fn the_saved_end_of_the_log_is_named() {
    let disk = Sim::new();
    let store = open(&disk);
    store.append(&note(1)).unwrap();
    store.commit().unwrap();
    store.append(&note(2)).unwrap();
    let disk = disk.kill();
    drop(store);
    let log = logs(&disk).pop().unwrap();
    changed(&disk, &log, |bytes| {
        let used = bytes.iter().rposition(|&byte| byte != 0).unwrap();
        bytes.truncate(used - 40);
    });
    let store = open(&disk);
    let saved = &store.opening().saved;
    assert_eq!(saved.len(), 1, "{:?}", store.opening());
    assert!(saved[0].starts_with("/events/wal") && saved[0].to_string_lossy().contains(".cut-"));
    assert!(disk.open(&saved[0], deedbook::storage::Access::Read).is_ok());
}
