//! Readers, salvages and repairs of files that are missing, torn or replaced by another file.

use crate::store::prelude::*;

fn long(number: u32) -> Event {
    event(1, 1000 + number, 1, &[], &format!("{number} {}", "x".repeat(2000)))
}

fn notes(numbers: Range<u32>) -> Vec<Event> {
    numbers.map(long).collect()
}

fn without_sums(disk: &Sim) -> Options {
    on(disk).checksums(false)
}

fn killed(options: impl Fn(&Sim) -> Options, numbers: Range<u32>) -> Sim {
    let disk = Sim::new();
    let store = open(&options(&disk));
    store.append_many(&notes(numbers)).unwrap();
    store.sync().unwrap();
    disk.kill()
}

/// The reference implementation deletes the old segments, and writes neither a manifest nor a marker.
#[test]
fn a_store_that_the_reference_compacted_opens() {
    let disk = Sim::new();
    append_and_close(&without_sums(&disk), &notes(0..3));
    let log_path = newest_log(&disk);
    let [mut pages, log] = [FIRST, &log_path].map(|path| read(&disk, path));
    pages[19] = 1;
    let disk = Sim::new();
    for dir in ["", "/data", "/data/segments", "/wal"] {
        disk.create_dir(Path::new(&format!("{DIR}{dir}"))).unwrap();
    }
    write(&disk, &segment(1), &pages);
    write(&disk, &log_path, &log);
    assert_eq!(all(&reader(&disk)), notes(0..3));
    let store = open(&without_sums(&disk));
    assert_eq!(all(&store), notes(0..3));
    drop(store);
    append_and_close(&without_sums(&disk), &[long(7)]);
    assert_eq!(all(&reader(&disk)).len(), 4);
}

/// The repair reported success, and the events of the copied segment were there twice.
#[test]
fn repair_sets_a_copied_segment_aside() {
    let (disk, _) = world();
    let there = ids(&disk);
    write(&disk, &segment(there[1]), &read(&disk, &segment(there[0])));
    let report = mended(&disk, ALL).unwrap();
    assert!(report.mended && report.loss.is_some(), "{report:?}");
    assert_eq!(report.lost_segments, [there[1]]);
    let store = writer(&disk);
    assert!(store.verify(Check::Id).unwrap().ok());
    assert!(!events(&store).is_empty());
}

/// The next append filled the page of a torn record with zeros, and walks returned an event with NULs.
#[test]
fn no_append_makes_a_torn_record_whole() {
    let disk = Sim::new();
    append_and_close(&without_sums(&disk), &notes(0..3));
    changed(&disk, FIRST, |bytes| bytes.truncate(3 * PAGE + 1500));
    let store = open(&without_sums(&disk));
    assert_eq!(store.opening().saved.len(), 1);
    store.append(&long(9)).unwrap();
    let (found, damage) = skipping(&store);
    assert_eq!(found, [long(0), long(1), long(9)]);
    assert_eq!(damage.len(), 1);
}

/// A salvage copied the segment's damaged version of an event.
#[test]
fn salvage_takes_the_logs_intact_copy() {
    let disk = killed(without_sums, 0..3);
    changed(&disk, FIRST, |bytes| bytes[2 * PAGE + 500] ^= 1);
    let options = without_sums(&disk);
    let report = salvaged_by(&options);
    assert!(!report.is_complete(), "{report:?}");
    assert_eq!(sorted(&options.open(COPY_DIR, Mode::Read).unwrap()), notes(0..3));
}

/// A store with a missing segment did not open for reading. Without any segment, the error was "no event store there".
#[test]
fn readers_skip_a_missing_segment_as_damage() {
    let (disk, all) = world();
    let there = ids(&disk);
    for gone in [&there[..1], &there[1..2], &there[..]] {
        let disk = disk.kill();
        gone.iter().for_each(|id| remove(&disk, &segment(*id)));
        let store = reader(&disk);
        assert!(store.opening().is_loss);
        assert!(!store.verify(Check::Id).unwrap().ok());
        assert!(store.iter(Include::All, OnCorrupt::Raise).unwrap().any(|found| found.is_err()));
        let (found, damage) = skipping(&store);
        assert!(found.len() < all.len() && (gone.len() > 1 || !found.is_empty()), "{gone:?}");
        assert!(damage.iter().filter_map(|damage| damage.segment.as_ref()).eq(gone));
        for split in store.splits(1 << 20).unwrap() {
            let part = EventStore::read_split(&split, &on(&disk), Include::All, OnCorrupt::Skip);
            assert!(part.unwrap().all(|found| found.is_ok()));
        }
    }
}

/// Opening reported the gap, and a salvage reported `complete`.
#[test]
fn a_salvage_without_a_manifest_names_a_gap() {
    let disk = killed(on, 0..3);
    let mut third = read(&killed(on, 3..6), FIRST);
    third[19] = 2;
    write(&disk, &segment(2), &third);
    remove_manifests(&disk);
    let (report, _) = salvaged(&disk);
    assert_eq!(report.lost_segments, [1], "{report:?}");
    assert!(!report.is_complete());
}

/// A checkpoint removed the first file of the log, and a power cut brought back its sidecar. The repair leaves no file
/// of the log, so the next log begins with the same name.
#[test]
fn a_repair_forgets_the_sidecars_of_removed_logs() {
    let (disk, store) = fresh();
    store.append_many(&notes(0..6)).unwrap();
    store.sync().unwrap();
    let beside = listed(&disk, Path::new("/events/wal/.deedbook/wal.log"));
    assert!(!beside.is_empty());
    store.close().unwrap();
    for log in logs(&disk) {
        assert_ne!(log, WAL);
        changed(&disk, &log, |bytes| bytes.fill(0xEE));
    }
    beside.iter().for_each(|(path, bytes)| write(&disk, path.to_str().unwrap(), bytes));
    remove_manifests(&disk);
    assert!(mended(&disk, ACCEPT).unwrap().mended);
    assert_eq!(live(&writer(&disk)), notes(0..6));
}
