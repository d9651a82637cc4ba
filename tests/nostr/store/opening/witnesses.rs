//! Segments, write-ahead log and manifest that do not match.
//!
//! A bug hunt removed files, or put older and foreign files in their place. Somewhere the store trusted each witness
//! alone: a salvage left out events that only the log had and reported `complete`, a repair removed intact events, and
//! opening went on without acknowledged events.

use crate::store::prelude::*;

/// A store of notes, closed or with a process crash after the commit.
fn made(numbers: Range<u32>, is_closed: bool) -> Sim {
    let (disk, store) = fresh();
    append(&store, numbers);
    store.sync().unwrap();
    if is_closed {
        store.close().unwrap();
    }
    disk.kill()
}

fn has_all(disk: &Sim, numbers: Range<u32>) {
    let found = events(&writer(disk));
    for number in numbers {
        assert!(found.contains_key(&short(number).id), "note {number}");
    }
}

/// After a power cut a reader returned 0 of 3 committed events, and `verify` reported no fault: the log had the events,
/// but the segment had lost them.
#[test]
fn reader_returns_committed_events_only_in_the_log() {
    let disk = made(0..3, true);
    let store = writer(&disk);
    append(&store, 3..9);
    store.sync().unwrap();
    let died = disk.kill();
    for pages in 4..10 {
        let image = died.kill();
        changed(&image, FIRST, |bytes| bytes.truncate(pages * PAGE));
        let before = files(&image);
        let reader = reader(&image);
        assert_eq!(reader.opening().appended_again as usize, 10 - pages);
        let found = live(&reader);
        assert_eq!(found, (0..9).map(short).collect::<Vec<_>>(), "{pages} pages");
        assert_eq!(reader.find(&short(8).id).unwrap().unwrap().event, short(8));
        let report = reader.verify(Check::Id).unwrap();
        assert!(report.ok() && report.live == 9, "{report:?}");
        let splits = reader.splits(2 * PAGE as u64).unwrap();
        // Before and after a writer has appended the events to the segment.
        for is_written in [false, true] {
            let parts = splits.iter().flat_map(|split| part(split, &on(&image), Include::Live));
            assert_eq!(parts.collect::<Vec<_>>(), found, "{pages} pages, by parts");
            if !is_written {
                assert!(files(&image) == before, "a reader wrote");
                writer(&image).close().unwrap();
            }
        }
    }
}

/// The changes after which the segment of a store has fewer events than the log.
fn shorter() -> Vec<Sim> {
    let cut: [fn(&mut Vec<u8>); 2] =
        [|bytes| bytes.truncate(4 * PAGE), |bytes| bytes[5 * PAGE..].fill(0)];
    let mut disks = Vec::new();
    for cut in cut {
        let disk = made(0..8, true);
        remove_manifests(&disk);
        changed(&disk, FIRST, cut);
        disks.push(disk);
    }
    // The segment and the manifest of a backup with the current log.
    let disk = made(0..4, true);
    let older = [MANIFEST, FIRST].map(|path| (path, read(&disk, path)));
    let store = writer(&disk);
    append(&store, 4..8);
    store.close().unwrap();
    older.iter().for_each(|(path, bytes)| write(&disk, path, bytes));
    disks.push(disk);
    disks
}

#[test]
fn log_only_events_are_salvaged_and_repaired() {
    for (number, disk) in shorter().into_iter().enumerate() {
        let report = copied(&disk.kill(), COPY_DIR).unwrap();
        assert_eq!((report.events, report.uncertain), (8, 0), "{number}: {report:?}");
        assert!(!report.is_complete(), "{number}: {report:?}");
        let report = reader(&disk).verify(Check::Id).unwrap();
        // The log has every event after the checkpoint of the backup's manifest.
        if number == 2 {
            assert!(report.ok() && report.live == 8, "{report:?}");
        } else {
            assert!(!report.ok(), "{number}");
            refused(on(&disk).open(DIR, Mode::Append), ErrorKind::LostRecords, "");
            let report = mended(&disk, PLAIN).unwrap();
            assert!(report.mended && report.loss.is_none(), "{number}: {report:?}");
        }
        has_all(&disk, 0..8);
    }
}

/// One page is damaged, and the log is lost or shorter.
#[test]
fn intact_events_after_a_damaged_page_stay() {
    let cut_log: [fn(&Sim); 2] = [
        |disk| logs(disk).iter().for_each(|log| remove(disk, log)),
        |disk| changed(disk, &logs(disk)[0], |bytes| bytes.truncate(900)),
    ];
    for cut_log in cut_log {
        for how in ["repair", "spec"] {
            let disk = made(0..10, false);
            changed(&disk, FIRST, |bytes| bytes[3 * PAGE + 100] ^= 1);
            cut_log(&disk);
            let store = match how {
                "repair" => {
                    let report = mended(&disk, ACCEPT).unwrap();
                    assert!(report.mended && report.loss.is_some(), "{report:?}");
                    writer(&disk)
                }
                _ => on(&disk).recovery(Recovery::Spec).open(DIR, Mode::Append).unwrap(),
            };
            assert!(events(&store).len() >= 9, "{how}: {}", events(&store).len());
            assert!(store.verify(Check::Id).unwrap().ok(), "{how}");
        }
    }
}

/// A repair reported a loss, needed permission to accept a loss, and noted the loss permanently.
#[test]
fn damaged_page_with_log_copy_is_no_loss() {
    let disk = made(0..10, false);
    changed(&disk, FIRST, |bytes| bytes[3 * PAGE + 100] ^= 1);
    let report = mended(&disk, DRY).unwrap();
    assert!(report.loss.is_none() && !report.damages.is_empty(), "{report:?}");
    assert!(mended(&disk, PLAIN).unwrap().mended);
    has_all(&disk, 0..10);
    assert!(!writer(&disk).opening().is_loss);
}

/// Opening cut the space reserved after the log's entries, and a torn entry, and then refused the store.
#[test]
fn a_refused_opening_changes_no_file() {
    let damages: [fn(&Sim); 3] = [
        |disk| changed(disk, &logs(disk)[0], |bytes| bytes[300] ^= 1),
        |disk| {
            remove(disk, FIRST);
            remove_manifests(disk);
            changed(disk, &logs(disk)[0], |bytes| bytes.truncate(last_byte(bytes) - 30));
        },
        |disk| {
            remove_manifests(disk);
            writer(disk).close().unwrap();
            remove_manifests(disk);
            changed(disk, FIRST, |bytes| bytes.truncate(4 * PAGE));
            changed(disk, &logs(disk)[0], |bytes| bytes.extend([1; 40]));
        },
    ];
    for (number, damage) in damages.into_iter().enumerate() {
        let disk = made(0..10, false);
        damage(&disk);
        let files = || {
            let mut files = files(&disk);
            files.retain(|path, _| !path.to_string_lossy().contains("/.deedbook/"));
            files
        };
        let before = files();
        assert!(on(&disk).open(DIR, Mode::Append).is_err(), "{number}");
        assert_eq!(files(), before, "{number}");
    }
}
