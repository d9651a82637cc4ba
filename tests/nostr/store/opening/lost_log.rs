//! A lost write-ahead log that the manifest knows, and a truncated log.

use crate::store::prelude::*;

fn checkpoint(disk: &Sim) -> u64 {
    manifest(disk)["last_checkpoint_lsn"].as_u64().unwrap()
}

fn killed() -> Sim {
    let (disk, store) = fresh();
    store.append_many(&[1, 2, 4].map(note)).unwrap();
    store.checkpoint().unwrap();
    store.append_many(&[1, 2].map(|at| event(9, at, 0, &[], "profile"))).unwrap();
    store.sync().unwrap();
    disk.kill()
}

/// The store after a repair, or opened by the letter of the specification. Both go on without the log.
fn gone_on(disk: &Sim, by_repair: bool) -> EventStore {
    if by_repair {
        assert!(mended(disk, ACCEPT).unwrap().mended);
        return writer(disk);
    }
    on(disk).recovery(Recovery::Spec).open(DIR, Mode::Append).unwrap()
}

/// Opening fails and changes nothing. A reader, a check and a repair report the lost or truncated log. A writer that
/// goes on without the log has the events of the segments, and uses new numbers after the lost ones.
fn is_refused_and_goes_on(disk: &Sim, said: &str, left: &[u32]) {
    let (known, before, is_gone) = (checkpoint(disk), read(disk, MANIFEST), logs(disk).is_empty());
    let error = on(disk).open(DIR, Mode::Append).unwrap_err();
    assert_eq!((error.kind(), error.path()), (ErrorKind::LostRecords, Some(Path::new(WAL))));
    let expected = format!("; the manifest names the checkpoint with lsn {known},");
    assert!(error.message().starts_with(said) && error.message().contains(&expected), "{error}");
    assert_eq!(read(disk, MANIFEST), before);
    let report = reader(disk).verify(Check::Id).unwrap();
    assert_eq!((report.faults, report.log_damages.len()), (1, 1), "{report:?}");
    assert!(error.message().starts_with(&report.log_damages[0].reason), "{report:?}");
    let dry = mended(disk, DRY).unwrap();
    assert!(dry.loss.is_some() && dry.damages == report.log_damages, "{dry:?}");
    let plain = mended(disk, PLAIN).unwrap();
    assert!(!plain.mended && plain.loss.is_some() && plain.cut_records == 0, "{plain:?}");
    assert!(on(disk).open(DIR, Mode::Append).is_err());
    for by_repair in [true, false] {
        let disk = disk.kill();
        let store = gone_on(&disk, by_repair);
        assert!(store.opening().is_loss, "{:?}", store.opening());
        assert!(!is_gone || store.opening().saved.is_empty(), "{:?}", store.opening());
        let report = store.verify(Check::Id).unwrap();
        assert!(report.ok() && report.is_loss, "{report:?}");
        assert_eq!(sorted(&store).iter().map(|e| e.created_at).collect::<Vec<_>>(), left);
        store.append(&note(8)).unwrap();
        store.close().unwrap();
        assert!(checkpoint(&disk) > known);
        assert!(mended(&disk, PLAIN).unwrap().damages.is_empty());
        assert_eq!(live(&writer(&disk)).len(), left.len() + 1);
    }
}

fn at(number: u32) -> u32 {
    note(number).created_at
}

/// Without only `wal.log`, opening failed. Without the whole `wal`, opening reported nothing, and the events that only
/// the log had were lost.
#[test]
fn missing_log_is_refused_and_reported() {
    let disk = killed();
    assert!(checkpoint(&disk) > 0);
    remove_log(&disk);
    // The segments also know which version of the profile counts.
    is_refused_and_goes_on(
        &disk,
        "the write-ahead log has no file, and so no entry",
        &[2, at(1), at(2), at(4)],
    );
    let copied = disk.kill();
    remove(&copied, MANIFEST);
    let said = "no entry; the copy of the manifest names the checkpoint with lsn ";
    refused(on(&copied).open(DIR, Mode::Append), ErrorKind::LostRecords, said);
    // Another program may keep no such log.
    changed(&disk, MANIFEST, |bytes| {
        let text = String::from_utf8(bytes.clone()).unwrap();
        *bytes = text.replace("\"compactions\"", "\"generations\"").into_bytes();
    });
    assert_eq!(events(&writer(&disk)).len(), 5);
}

/// A user put back an older `wal`. Opening appended the events after its checkpoint again, even events dropped by a
/// compaction since, and gave the same numbers to other entries.
#[test]
fn log_older_than_the_manifests_checkpoint_is_refused() {
    let (disk, store) = fresh();
    store.append_many(&[1, 2].map(note)).unwrap();
    store.checkpoint().unwrap();
    store.append_many(&[4, 5].map(note)).unwrap();
    store.sync().unwrap();
    let older = listed(&disk, Path::new("/events/wal"));
    delete(&store, &note(4));
    store.compact(0.0, false).unwrap();
    store.append(&note(6)).unwrap();
    store.close().unwrap();
    older.iter().for_each(|(path, bytes)| write(&disk, path.to_str().unwrap(), bytes));
    is_refused_and_goes_on(&disk, "the write-ahead log ends with lsn ", &[1, 2, 5, 6].map(at));
    // A crashed repair left this manifest, and has not cut the log yet.
    changed(&disk, MANIFEST, |bytes| {
        let text = String::from_utf8(bytes.clone()).unwrap();
        *bytes = text.replace("\"compactions\"", "\"log_cut\": true, \"compactions\"").into_bytes();
    });
    is_refused_and_goes_on(&disk, "the write-ahead log ends with lsn ", &[1, 2, 5, 6].map(at));
}

/// Opening cut and saved the end of the log. The program's log had a line about it, but the report of the store did
/// not. The segment ends where the log does, so its rest is saved, too.
#[test]
fn the_saved_end_of_the_log_is_named() {
    let (disk, store) = fresh();
    store.append(&note(1)).unwrap();
    store.sync().unwrap();
    store.append(&note(2)).unwrap();
    let disk = disk.kill();
    changed(&disk, &newest_log(&disk), |bytes| bytes.truncate(last_byte(bytes) - 40));
    let store = writer(&disk);
    let saved = &store.opening().saved;
    assert_eq!(saved.len(), 2, "{:?}", store.opening());
    for (saved, dir) in saved.iter().zip(["/events/wal", "/events/data/segments"]) {
        assert!(saved.starts_with(dir) && is_cut(saved));
        assert!(disk.open(saved, Access::Read).is_ok());
    }
    assert_eq!(live(&store), [note(1)]);
}
