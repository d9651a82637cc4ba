//! Compactions that a crash ended: names and intent say which segments are the copies.

use deedbook::BackupOptions;

use crate::store::prelude::*;

const INTENT: &str = "/events/.deedbook/compaction";

fn compacting() -> (Vec<Sim>, Options, Vec<Event>) {
    let (disk, on, store) = small();
    one_by_one(&store, &notes(0..30));
    [1, 4, 11, 12].iter().for_each(|number| delete(&store, &note(*number)));
    let left = sorted(&store);
    disk.record();
    let report = store.compact(0.0, false).unwrap();
    assert!(report.segments.len() > 2 && report.written.len() > 1, "{report:?}");
    assert_eq!(sorted(&store), left);
    (disk.recorded(), on, left)
}

fn has(disk: &Sim, path: &str) -> bool {
    disk.open(Path::new(path), Access::Read).is_ok()
}

fn unfinished(disk: &Sim) -> Vec<PathBuf> {
    let all = files(disk).into_keys();
    all.filter(|path| path.to_str().unwrap().ends_with(".compacting")).collect()
}

// Promise: store-compaction.
#[test]
fn each_event_is_read_once_in_a_compaction() {
    let (moments, on, left) = compacting();
    let (mut begun, mut counting) = (0, 0);
    for moment in moments {
        for disk in [moment.kill()].into_iter().chain(cuts(&moment, 6)) {
            begun += usize::from(!unfinished(&disk).is_empty());
            counting += usize::from(has(&disk, INTENT));
            let (on, before) = (on_disk(&on, &disk), files(&disk));
            let reader = on.open(DIR, Mode::Read).unwrap();
            assert_eq!(sorted(&reader), left);
            assert!(reader.verify(Check::Id).unwrap().ok());
            let splits = reader.splits(2 * PAGE as u64).unwrap();
            let by_parts = || {
                let parts = splits.iter().flat_map(|split| part(split, &on, Include::Live));
                let mut all: Vec<_> = parts.collect();
                all.sort_by_key(|event| event.created_at);
                all
            };
            assert_eq!(by_parts(), left);
            assert_eq!(files(&disk), before, "a reader changed something");
            let is_counting = has(&disk, INTENT);
            if is_counting {
                let to = BackupOptions::new().storage(Arc::new(disk.clone()));
                to.backup(DIR, "/backup", |_| Ok(())).unwrap();
                assert_eq!(sorted(&on.open("/backup", Mode::Append).unwrap()), left, "a backup");
            }
            let store = open(&on);
            assert_eq!(sorted(&store), left);
            assert!(unfinished(&disk).is_empty() && !has(&disk, INTENT));
            // A finished compaction leaves nothing to do.
            if is_counting {
                assert_eq!(by_parts(), left);
                assert!(store.compact(0.0, true).unwrap().written.is_empty());
            }
            store.close().unwrap();
            assert_eq!(sorted(&open(&on)), left);
        }
    }
    assert!(begun > 20 && counting > 20, "{begun} begun, {counting} counting");
}

/// The first disk on which a compaction counts, and no segment has its final name.
fn counting() -> (Sim, Options, Vec<Event>) {
    let (moments, on, left) = compacting();
    let disk = moments.iter().map(Sim::kill).find(|disk| has(disk, INTENT)).unwrap();
    assert!(!unfinished(&disk).is_empty());
    let on = on_disk(&on, &disk);
    (disk, on, left)
}

#[test]
fn damaged_intent_is_refused_and_salvaged() {
    let (disk, on, left) = counting();
    for at in 0..read(&disk, INTENT).len() {
        let disk = disk.kill();
        changed(&disk, INTENT, |bytes| bytes[at] ^= 1);
        let (on, before) = (on_disk(&on, &disk), files(&disk));
        for mode in [Mode::Read, Mode::Append] {
            refused(
                on.open(DIR, mode),
                ErrorKind::Corrupt,
                "the intent of a compaction is damaged",
            );
        }
        assert_eq!(files(&disk), before);
        if at == 0 {
            salvaged_by(&on);
            assert_eq!(sorted(&on.open(COPY_DIR, Mode::Read).unwrap()), left);
        }
    }
}

/// Another program does not know the intent, and appends to the old segments: they stay.
#[test]
fn compaction_stops_if_old_segments_grew() {
    let (disk, on, left) = counting();
    let more = note(300);
    let page = &read(&closed(std::slice::from_ref(&more)), FIRST)[PAGE..];
    let last = ids(&disk).pop().unwrap();
    changed(&disk, &segment(last), |bytes| bytes.extend_from_slice(page));
    // The other program's manifest.
    remove_manifests(&disk);
    let mut expected = left;
    expected.push(more);
    for mode in [Mode::Read, Mode::Append] {
        assert_eq!(sorted(&on.open(DIR, mode).unwrap()), expected, "{mode:?}");
    }
    assert!(unfinished(&disk).is_empty() && !has(&disk, INTENT));
}

/// Without one of the new segments, the old ones stay.
#[test]
fn missing_new_segment_keeps_the_old_ones() {
    let (disk, on, left) = counting();
    disk.remove(&unfinished(&disk)[0]).unwrap();
    for mode in [Mode::Read, Mode::Append] {
        assert_eq!(sorted(&on.open(DIR, mode).unwrap()), left, "{mode:?}");
    }
}
