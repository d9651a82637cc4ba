//! Stale, damaged, foreign or missing marks and indexes: advisory, and never ahead of the log.

use crate::log::{LARGE, with_sums};
use crate::support::common::event_of;
use crate::support::formats::specimen::in_memory;
use crate::support::formats::subject::{Event, refused};
use crate::support::prelude::*;

/// Enough for several blocks of the index.
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

/// Every record is read with these files, and nothing is changed.
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

/// The files of a log with the sidecar of another log.
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

/// The log is cut at a record's edge below the mark: nothing is damaged, and records are missing.
/// Also in a log that began with a batch: the mark knows the log by its first record.
#[test]
fn a_mark_ahead_of_its_log_reports_loss() {
    for format in LARGE {
        for by_batch in [false, true] {
            let (memory, at) = in_memory(format);
            let path = at.path.clone();
            let events: Vec<_> = (0..12).map(|i| event_of(i, 90)).collect();
            let log = format.create(&at, if by_batch { &[] } else { &events });
            if by_batch {
                log.append_batch(&events).unwrap();
            }
            log.close().unwrap();
            let specimen = closed(format, &events);
            for left in 0..12 {
                let cut = &specimen.space[..specimen.edges[left]];
                let memory = Files::of(&memory).with_space(format, cut).restore();
                let at = At::memory(&memory, &path);
                let before = Files::unlocked(&memory);
                let what = format!("{}, {by_batch}, {left} left", format.name());
                let error = refused(format.open(&at, Mode::Append, MANUAL), ErrorKind::LostRecords);
                assert!(error.offset().is_some(), "{what}: {error}");
                assert!(Files::unlocked(&memory) == before, "{what}: changed");
                let report = format.verify(&at, MANUAL).unwrap();
                let found = (report.records, report.lost_acknowledged, report.verdict);
                assert_eq!(found, (left as u64, true, Verdict::Corrupt), "{what}");
                let walk = format.read(&at).unwrap().forward(None, None, false);
                assert_eq!((walk.records.len(), walk.error.is_some()), (left, true), "{what}");
            }
        }
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

/// Reads by number, by splits and both ways give exactly the appended records.
fn assert_reads(format: &dyn Format, at: &At, events: &[Event], what: &str) {
    let log = format.read(at).unwrap();
    let walk = log.forward(None, None, false);
    assert!(walk.error.is_none(), "{what}: {:?}", walk.error);
    let bytes = walk.records.iter().map(|record| &record.bytes);
    assert!(bytes.eq(events.iter().map(|(_, bytes)| bytes)), "{what}: other records");
    for record in &walk.records {
        let ordinal = record.ordinal.unwrap();
        assert!(log.read(ordinal).unwrap().1 == record.bytes, "{what}: {record:?}");
    }
    let parts = log.splits(1, None, None, false).unwrap();
    let joined: Vec<_> = parts.into_iter().flat_map(|part| part.records).collect();
    assert!(joined == walk.records, "{what}: splits");
    let mut back = log.backward(None, None).records;
    back.reverse();
    assert!(back == walk.records, "{what}: backwards");
    let middle = walk.records[events.len() / 2].ordinal;
    assert!(log.forward(middle, None, false).records == walk.records[events.len() / 2..], "{what}");
}

/// Blocks of the index that ended in the cut range of a recovery were kept: readers searched for
/// new records at the places of the old ones.
#[test]
fn an_index_keeps_no_block_removed_by_recovery() {
    let how = |recovery| How { recovery, ..MANUAL };
    for format in with_sums() {
        // Back to the mark, to an end after the mark, and to damage below the mark, within the index.
        for (recovery, synced, kept) in [
            (Recovery::Acknowledged, 150, 150),
            (Recovery::Valid, 150, 260),
            (Recovery::Spec, 300, 120),
        ] {
            let (how, events) = (how(recovery), plain(300, 1_500));
            let specimen = Specimen::with(format, how, &events, Beside::Open(synced));
            let mut space = specimen.space[..specimen.edges[260] + 5].to_vec();
            if recovery == Recovery::Spec {
                space[specimen.edges[kept] + format.framing().length().start] ^= 1;
            }
            let memory = specimen.broken(&space).restore();
            let at = At::memory(&memory, specimen.path());
            let mut expected = events[..kept].to_vec();
            for (round, len) in [700, 1_100].into_iter().enumerate() {
                let log = format.open(&at, Mode::Append, how).unwrap();
                let more = plain(250, len);
                more.iter().for_each(|(tag, bytes)| assert!(log.append(*tag, bytes).is_ok()));
                expected.extend(more);
                log.close().unwrap();
                let what = format!("{}, {kept} kept, round {round}", format.name());
                assert_reads(format, &at, &expected, &what);
            }
        }
    }
}

/// A recovery cuts the log below its mark, and the writer dies before its first sync. The index of
/// the old mark has blocks after the cut, in the range of the new records.
#[test]
fn a_recovery_drops_index_blocks_after_its_end() {
    let spec = How { recovery: Recovery::Spec, ..MANUAL };
    for format in with_sums() {
        let events = plain(300, 1_500);
        let specimen = Specimen::with(format, spec, &events, Beside::Open(300));
        let mut space = specimen.space[..specimen.edges[260]].to_vec();
        space[specimen.edges[120] + format.framing().length().start] ^= 1;
        let files = specimen.broken(&space);
        let old_index = files.named("index").unwrap().clone();
        let memory = files.restore();
        let at = At::memory(&memory, specimen.path());
        let log = format.open(&at, Mode::Append, spec).unwrap();
        let more = plain(250, 700);
        more.iter().for_each(|(tag, bytes)| assert!(log.append(*tag, bytes).is_ok()));
        let mut died = Files::of(&memory);
        // The index is not synced, so the disk may still have the old one.
        died.bytes.insert(beside(format, "index"), old_index);
        let memory = died.restore();
        let at = At::memory(&memory, specimen.path());
        format.open(&at, Mode::Append, MANUAL).unwrap().close().unwrap();
        let expected = [&events[..120], &more].concat();
        assert_reads(format, &at, &expected, format.name());
    }
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
        let parts = log.parts(64 << 10).unwrap();
        let longest = parts.iter().map(|part| part.end - part.offset).max().unwrap();
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

/// Four writers died one after the other before their first sync. Each opening moved the mark over
/// the records of the last writer, whose index was lost. Reading a record at random took 300 to
/// 1,500 times as long, forever.
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
            let parts = log.parts(64 << 10).unwrap();
            let longest = parts.iter().map(|part| part.end - part.offset).max().unwrap();
            assert!(longest < 400_000, "{}, {what}: a part of {longest}", format.name());
            log.close().unwrap();
        }
        // The file of the index has the borders: opening without a scan finds no hole.
        let log = format.read(&at).unwrap();
        let parts = log.parts(64 << 10).unwrap();
        assert!(parts.len() > 100, "{}: {} parts", format.name(), parts.len());
    }
}

/// A writer without an index writes one, also if nothing is appended then.
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
