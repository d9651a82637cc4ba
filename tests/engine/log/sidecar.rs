//! Stale, damaged, foreign or missing marks and indexes: advisory, and never ahead of the log.

use super::*;

fn many() -> Vec<Event> {
    (0..1500).map(|i| event_of(i, 400)).collect()
}

fn closed<'a>(format: &'a dyn Format, events: &[Event]) -> Specimen<'a> {
    let specimen = Specimen::new(format, events, Beside::Closed(events.len()));
    assert!(events.len() < 1000 || specimen.files.named("index").unwrap().len() > 16 + 3 * 24);
    specimen
}

fn beside(format: &dyn Format, name: &str) -> PathBuf {
    format.sidecar(&format.path_in(Path::new(DIR))).join(name)
}

fn assert_all_there(specimen: &Specimen<'_>, files: &Files, what: &str) {
    let memory = files.restore();
    let (format, at) = (specimen.format, At::memory(&memory, specimen.path()));
    let what = format!("{}, {what}", format.name());
    for mode in [Mode::Read, Mode::Append, Mode::Read] {
        let log = format.open(&at, mode, MANUAL).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_eq!(log.len().unwrap(), specimen.events.len() as u64, "{what}");
        for i in (0..specimen.events.len()).step_by(97) {
            let read = log.read(specimen.ordinal(i)).unwrap_or_else(|e| panic!("{what}: {e}"));
            assert!(read == specimen.events[i], "{what}: record {i}");
        }
        log.close().unwrap();
    }
    assert!(Files::of(&memory).space(format) == specimen.space, "{what}: changed");
    assert!(format.verify(&at, MANUAL).unwrap().ok(), "{what}");
}

// Promise: mark-index.
#[test]
fn a_sidecar_with_any_byte_damaged_is_ignored() {
    // In `slots` the index is the only evidence of rot: `verify` reports its difference from the log.
    for format in with_sums() {
        let specimen = closed(format, &many());
        for name in ["mark", "index"] {
            let len = specimen.files.named(name).unwrap().len();
            for at in (0..len).filter(|at| *at < 140 || (512..650).contains(at) || at % 29 == 0) {
                let mut files = specimen.files.clone();
                files.bytes.get_mut(&beside(format, name)).unwrap()[at] ^= 0x20;
                assert_all_there(&specimen, &files, &format!("{name} at {at}"));
            }
        }
    }
}

// Promise: mark-index.
#[test]
fn a_sidecar_cut_emptied_or_deleted_is_ignored() {
    for format in LARGE {
        let specimen = closed(format, &many());
        let mut files = specimen.files.clone();
        files.bytes.remove(&beside(format, "mark")).unwrap();
        assert_all_there(&specimen, &files, "no mark");
        for name in ["mark", "index"] {
            let path = beside(format, name);
            for len in [0, 1, 15, 16, 40, 127, 128, 512, 640] {
                let mut files = specimen.files.clone();
                files.bytes.get_mut(&path).unwrap().truncate(len);
                assert_all_there(&specimen, &files, &format!("{name} of {len} bytes"));
            }
            let mut files = specimen.files.clone();
            files.bytes.get_mut(&path).unwrap().fill(0);
            assert_all_there(&specimen, &files, &format!("{name} of zeros"));
        }
    }
}

// Promise: mark-index.
#[test]
fn a_stale_sidecar_is_made_up_for() {
    for format in LARGE {
        let events = many();
        let specimen = closed(format, &events);
        let (mark, index) = (beside(format, "mark"), beside(format, "index"));
        for count in [1, 10, 700] {
            let older = closed(format, &events[..count]);
            let stale = older.files.with_space(format, &specimen.space);
            assert_all_there(&specimen, &stale, &format!("stale, {count}"));
            for (name, newer, is_newer) in
                [("mark", &mark, true), ("mark", &mark, false), ("index", &index, true)]
            {
                let (mut files, from) = match is_newer {
                    true => (stale.clone(), &specimen.files),
                    false => (specimen.files.clone(), &stale),
                };
                let Some(bytes) = from.bytes.get(newer) else { continue };
                files.bytes.insert(newer.clone(), bytes.clone());
                assert_all_there(&specimen, &files, &format!("{name} newer: {is_newer}, {count}"));
            }
        }
    }
}

fn with_sidecar_of(specimen: &Specimen<'_>, other: &Specimen<'_>) -> Files {
    other.files.with_space(specimen.format, &specimen.space)
}

// Promise: mark-index.
#[test]
fn a_sidecar_of_another_log_is_ignored() {
    for format in LARGE {
        let specimen = closed(format, &many());
        let others: Vec<_> = (0..2000).map(|i| event_of(5000 + i, 300)).collect();
        let foreign = with_sidecar_of(&specimen, &closed(format, &others));
        assert_all_there(&specimen, &foreign, "foreign");
        // Readers do not believe the mark of another log.
        let memory = foreign.restore();
        let reader = format.read(&At::memory(&memory, specimen.path())).unwrap();
        let end = reader.durable().unwrap();
        assert!(end.is_none_or(|end| end <= specimen.ordinal(1500)), "{}", format.name());
    }
}

/// Sizes and borders fit, but the mark names another record.
#[test]
fn a_foreign_mark_with_matching_borders_is_ignored() {
    for format in LARGE {
        let two = [(1, vec![1; 100 - format.framing().around()]), (2, vec![2; 26])];
        let whole = 26 + format.framing().around();
        let first = vec![7; 100 - whole - format.framing().around()];
        let three = [(1, first), (2, vec![7; 26]), (3, vec![7; 26])];
        let (marked, log) = (closed(format, &two), closed(format, &three));
        assert_eq!(marked.space.len(), log.space.len());
        assert_all_there(&log, &with_sidecar_of(&log, &marked), "borders alike");
    }
}

/// A Book without its file, but with its mark, was "missing" to readers and `verify`.
// Promise: log-removed.
#[test]
fn opening_recreates_no_removed_log_with_a_mark() {
    for format in LARGE {
        let specimen = closed(format, &many()[..20]);
        for left in [None, Some(0)] {
            let mut files = specimen.files.clone();
            let file = format.first_file(&specimen.path());
            match left {
                None => drop(files.bytes.remove(&file)),
                Some(len) => files.bytes.get_mut(&file).unwrap().truncate(len),
            }
            let memory = files.restore();
            let at = At::memory(&memory, specimen.path());
            refused(format.open(&at, Mode::Append, MANUAL), ErrorKind::LostRecords);
            assert_eq!(memory.open(&file, Access::Read).is_ok(), left.is_some());
            if left.is_some() {
                continue;
            }
            for error in [
                format.read(&at).err(),
                format.verify(&at, MANUAL).err(),
                format.repair(&at, MANUAL).err(),
                format.salvage(&at, &format.path_in(Path::new("/to")), MANUAL).err(),
            ] {
                let error = error.expect("20 records are gone");
                assert_eq!(error.kind(), ErrorKind::LostRecords, "{}: {error}", format.name());
            }
        }
    }
}

fn longest_part(log: &dyn Log) -> u64 {
    let parts = log.parts(64 << 10).unwrap();
    parts.iter().map(|part| part.end - part.offset).max().unwrap()
}

/// A writer that finds records after the mark stores a mark of all of them, with the index of the
/// old mark. The parts of the log show how far the index reaches.
#[test]
fn a_recoverys_mark_keeps_the_old_index() {
    for format in LARGE {
        let specimen = Specimen::new(format, &plain(300, 1_500), Beside::Open(250));
        let memory = specimen.files.restore();
        let at = At::memory(&memory, specimen.path());
        let log = format.open(&at, Mode::Append, MANUAL).unwrap();
        let longest = longest_part(&*log);
        assert!(longest < 160_000, "{}: {longest} of {}", format.name(), log.end().unwrap());
    }
}

/// A small gap at the end of the index costs less to tolerate than to fill; for a large gap, the
/// reader walks the log once. The parts of the log show where the index ends.
#[test]
fn readers_rebuild_only_a_far_outdated_index() {
    for format in LARGE {
        for (records, lags_far) in [(24, false), (100, false), (110, true)] {
            let (memory, at) = in_memory(format);
            format.create(&at, &plain(records, 40_000)).close().unwrap();
            let parts = || {
                let log = format.read(&at).unwrap();
                log.splits(64 << 10, None, None, false).unwrap().len()
            };
            let what = format!("{}: {records} records", format.name());
            assert!(parts() > records / 4, "{what}, {} parts with the index", parts());
            memory.remove(&format.sidecar(&at.path).join("index")).unwrap();
            assert_eq!(parts() > records / 4, lags_far, "{what}, {} parts without", parts());
            assert!(lags_far || parts() == 1, "{what}, {} parts without", parts());
            // Without a mark the reader reads the whole log, and keeps the borders it notices.
            memory.remove(&format.sidecar(&at.path).join("mark")).unwrap();
            assert!(parts() > records / 4, "{what}, {} parts without a mark", parts());
        }
    }
}

/// Four writers died before their first sync. Each opening moved the mark over the last one's records, whose index was
/// lost: reading a record at random took 300 to 1,500 times as long, forever.
#[test]
fn killed_writers_leave_no_hole_in_the_index() {
    for format in LARGE {
        let (mut memory, At { path: dir, .. }) = in_memory(format);
        format.create(&At::memory(&memory, &dir), &plain(1, 10)).close().unwrap();
        for _ in 0..4 {
            let log = format.open(&At::memory(&memory, &dir), Mode::Append, MANUAL).unwrap();
            plain(110, 40_000).iter().for_each(|(tag, bytes)| drop(log.append(*tag, bytes)));
            memory = Files::of(&memory).restore();
        }
        let at = At::memory(&memory, &dir);
        for what in ["after the deaths", "after a clean close"] {
            let log = format.open(&at, Mode::Append, MANUAL).unwrap();
            let longest = longest_part(&*log);
            assert!(longest < 400_000, "{}, {what}: a part of {longest}", format.name());
            log.close().unwrap();
        }
        // The file of the index has the borders: opening without a scan finds no hole.
        let log = format.read(&at).unwrap();
        let parts = log.parts(64 << 10).unwrap();
        assert!(parts.len() > 100, "{}: {} parts", format.name(), parts.len());
    }
}

#[test]
fn opening_for_writing_rebuilds_a_missing_index() {
    for format in LARGE {
        let specimen = Specimen::new(format, &plain(300, 40_000), Beside::Closed(300));
        let memory = specimen.files.restore();
        let at = At::memory(&memory, specimen.path());
        memory.remove(&beside(format, "index")).unwrap();
        format.open(&at, Mode::Append, MANUAL).unwrap().close().unwrap();
        let bytes = Files::of(&memory).named("index").map_or(0, Vec::len);
        assert!(bytes > 24 * 100, "{}: {bytes} bytes of index", format.name());
    }
}
