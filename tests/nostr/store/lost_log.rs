//! A write-ahead log that is gone as a whole, which the manifest knows of, and one whose end was cut.

use std::path::Path;

use deedbook::nostr::{Check, Event, EventStore, Flags};
use deedbook::storage::Storage;
use deedbook::storage::sim::Sim;
use deedbook::{ErrorKind, Mode, Recovery};

use crate::store::rescue::{
    ACCEPT, DRY, PLAIN, events, listed, logs, mended, on, open, place, remove_log,
};
use crate::support::store::events::{changed, event, note, read, write};
use crate::support::store::world::DIR;

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

/// The store after a repair, or opened by the letter, both of which go on without the log.
fn gone_on(disk: &Sim, by_repair: bool) -> EventStore {
    if by_repair {
        assert!(mended(disk, ACCEPT).unwrap().mended);
        return open(disk);
    }
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
        format!("no file, and so no entry; the manifest names the checkpoint with lsn {known},");
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
        let store = gone_on(&disk, by_repair);
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
    let copied = disk.kill();
    copied.remove(Path::new(MANIFEST)).unwrap();
    let error = on(&copied).open(DIR, Mode::Append).unwrap_err();
    let said = "no entry; the copy of the manifest names the checkpoint with lsn ";
    assert!(error.message().contains(said), "{error}");
    // Another program may keep no such log.
    changed(&disk, MANIFEST, |bytes| {
        let text = String::from_utf8(bytes.clone()).unwrap();
        *bytes = text.replace("\"compactions\"", "\"generations\"").into_bytes();
    });
    assert_eq!(events(&open(&disk)).len(), 5);
}

/// An older `wal` was put back: what it had after its checkpoint was appended again, also what a compaction had
/// dropped since, and the numbers of its entries came a second time.
#[test]
fn a_log_that_ends_before_the_checkpoint_of_the_manifest_is_refused_and_named() {
    let disk = Sim::new();
    let store = open(&disk);
    store.append_many(&[1, 2].map(note)).unwrap();
    store.checkpoint().unwrap();
    store.append_many(&[4, 5].map(note)).unwrap();
    store.commit().unwrap();
    let older: Vec<_> = listed(&disk, Path::new("/events/wal")).into_iter().collect();
    store.set_flags(place(&store, &note(4)), Flags::DELETED).unwrap();
    store.compact(0.0, false).unwrap();
    store.append(&note(6)).unwrap();
    store.close().unwrap();
    let (known, manifest) = (checkpoint(&disk), read(&disk, MANIFEST));
    older.iter().for_each(|(path, bytes)| write(&disk, path.to_str().unwrap(), bytes));
    let error = on(&disk).open(DIR, Mode::Append).unwrap_err();
    assert_eq!((error.kind(), error.path()), (ErrorKind::LostRecords, Some(Path::new(LOG))));
    let message = error.message().to_owned();
    let said = format!("; the manifest names the checkpoint with lsn {known},");
    assert!(message.starts_with("the write-ahead log ends with lsn "), "{error}");
    assert!(message.contains(&said), "{error}");
    assert_eq!(read(&disk, MANIFEST), manifest);
    let reader = on(&disk).open(DIR, Mode::Read).unwrap();
    let report = reader.verify(Check::Id).unwrap();
    assert_eq!((report.faults, report.log_damages.len()), (1, 1), "{report:?}");
    assert!(message.starts_with(&report.log_damages[0].reason), "{report:?}");
    let refused = mended(&disk, PLAIN).unwrap();
    assert!(!refused.mended && refused.is_loss && refused.cut_events == 0, "{refused:?}");
    assert!(on(&disk).open(DIR, Mode::Append).is_err());
    for by_repair in [true, false] {
        let disk = disk.kill();
        let store = gone_on(&disk, by_repair);
        assert!(store.opening().is_loss);
        let mut left: Vec<_> = events(&store).into_values().map(|(event, _)| event).collect();
        left.sort_by_key(|event| event.created_at);
        assert_eq!(left, [1, 2, 5, 6].map(note));
        store.append(&note(8)).unwrap();
        store.close().unwrap();
        assert!(checkpoint(&disk) > known, "the numbers go on after those that were lost");
        assert!(mended(&disk, PLAIN).unwrap().damages.is_empty());
    }
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
