//! Wrong answers at the edges: limits, names, numbers, and logs of another format. Each test
//! opens with its story.

use deedbook::LockTimeout;
use deedbook::wal::Wal;

use crate::answers::FORMATS;
use crate::support::formats::book::{BOOK, options};
use crate::support::formats::subject::refused;
use crate::support::formats::views::{broken, copy_in_place, ways};
use crate::support::prelude::*;
use arrow_array::{Array, Int64Array};

/// Read backwards, a write-ahead log gave a record out of a damaged record's payload before it raised. A Book cut
/// inside a deed with inner records gave an inner record when passing over damage.
#[test]
fn backward_reads_ignore_records_inside_a_damaged_record() {
    for format in FORMATS {
        let inner = format.framing().encode(7, b"inner");
        let mut events = plain(2, 30);
        events.push((5, [&b"before"[..], &inner, &inner, b"after"].concat()));
        events.extend(plain(4, 33));
        for beside in [Beside::Nothing, Beside::Open(7), Beside::Closed(7)] {
            let (specimen, _, at) = broken(format, &events, beside, |specimen, space| {
                space[specimen.edges[2] + format.framing().head() + 2] ^= 1;
            });
            let back = format.read(&at).unwrap().backward(None, None);
            let places: Vec<_> = back.records.iter().map(|record| record.offset as usize).collect();
            let expected: Vec<_> = (3..7).rev().map(|i| specimen.edges[i]).collect();
            assert_eq!(places, expected, "{}, {beside:?}", format.name());
            let error = back.error.expect("damage is raised");
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{}: {error}", format.name());
        }
        let cut = |specimen: &Specimen<'_>| {
            specimen.edges[2] + format.framing().head() + 6 + inner.len() + 3
        };
        let (specimen, _, at) = broken(format, &events, Beside::Nothing, |specimen, space| {
            space.truncate(cut(specimen));
        });
        for (way, walk) in ways(format, &at) {
            let places: Vec<_> = walk.records.iter().map(|record| record.offset as usize).collect();
            assert_eq!(places, specimen.edges[..2], "{}, {way}", format.name());
        }
    }
}

/// With a limit below its first record's length, a log "lost acknowledged records", and the advised
/// repair cut all of them off. Now nothing cuts them, and the error names the limit to raise.
// Promise: wal-limit.
#[test]
fn a_low_limit_removes_nothing_and_is_named() {
    for format in FORMATS {
        for beside in [Beside::Closed(4), Beside::Open(4), Beside::Open(0), Beside::Nothing] {
            let specimen = Specimen::new(format, &plain(4, 200), beside);
            let memory = specimen.files.restore();
            let at = At::memory(&memory, specimen.path());
            let low = How { record_bytes_max: Some(100), ..MANUAL };
            let what = format!("{}, {beside:?}", format.name());
            // The log's own limit counts if the settings are there.
            let settings = format.sidecar(&at.path).join("settings");
            if memory.open(&settings, Access::Read).is_ok() {
                assert_eq!(format.open(&at, Mode::Read, low).unwrap().len().unwrap(), 4, "{what}");
                memory.remove(&settings).unwrap();
            }
            let before = Files::of(&memory).space(format).clone();
            let refuses = |error: deedbook::Error| {
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}");
                let message = error.message();
                assert!(message.contains("is whole, so raise "), "{what}: {message}");
                assert!(message.ends_with("_bytes_max"), "{what}: {message}");
            };
            let walk = format.open(&at, Mode::Read, low).map(|log| log.forward(None, None, false));
            refuses(walk.map_or_else(|error| error, |walk| walk.error.unwrap()));
            let full = format.open(&at, Mode::Append, How { recovery: Recovery::Spec, ..low });
            let cut = full.map(|log| log.close().unwrap());
            for force in [false, true] {
                let repair = Repair { force, accept_loss: true, ..Repair::default() };
                refuses(format.repair_as(&at, low, repair).unwrap_err());
            }
            let report = format.verify(&at, low).unwrap();
            assert!(!report.lost_acknowledged && !report.ok(), "{what}: {report:?}");
            assert_eq!(report.verdict, Verdict::Corrupt, "{what}");
            assert!(Files::of(&memory).space(format) == before, "{what}: cut, {cut:?}");
            assert_eq!(format.verify(&at, MANUAL).unwrap().records, 4, "{what}");
        }
    }
}

/// Somebody copied the log under the writer, and its mark later. The copy reported a loss of
/// records it never had.
#[test]
fn a_copy_older_than_its_mark_is_recognised() {
    for format in FORMATS {
        for more in [0, 9] {
            let (_, _, at) = broken(format, &plain(6, 30), Beside::Open(6), |specimen, space| {
                space.truncate(specimen.edges[3] + more);
            });
            copy_in_place(format, &at);
            let error = refused(format.open(&at, Mode::Append, MANUAL), ErrorKind::LostRecords);
            let text = error.to_string();
            assert!(text.contains("this copy has less than its mark says"), "{text}");
            assert!(!text.contains("restored"), "{text}");
        }
    }
}

/// A log cut below its mark, at a record's edge or within a record, was given backwards as if
/// nothing were missing.
#[test]
fn a_lost_end_is_raised_by_reading_backwards() {
    for format in FORMATS {
        for more in [0, 9] {
            let (_, _, at) = broken(format, &plain(6, 30), Beside::Closed(6), |specimen, space| {
                space.truncate(specimen.edges[3] + more);
            });
            let back = format.read(&at).unwrap().backward(None, None);
            let error = back.error.expect("three records are missing");
            let is_damage = matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::LostRecords);
            assert!(is_damage && back.records.is_empty(), "{}: {error}", format.name());
        }
    }
}

/// Event numbers from 2^63 on were negative in an Arrow column.
#[test]
fn arrow_refuses_event_numbers_beyond_int64() {
    let memory = Memory::new();
    memory.create_dir(Path::new("/")).unwrap();
    let at = At::memory(&memory, DIR);
    let first = (1 << 63) - 1;
    let with = options(&at, MANUAL).epoch(first - 1);
    let log = with.open(DIR, Mode::Create).unwrap();
    (0..4).for_each(|i| assert!(log.append(i, b"x").is_ok()));
    let cursor = log.cursor(.., deedbook::OnCorrupt::Raise).unwrap();
    let mut batches = deedbook::Batches::new(cursor, &["event", "jam"], 10, 1 << 20).unwrap();
    // The batch with the valid number comes before the error, and nothing comes after the error.
    let batch = batches.next().unwrap().unwrap();
    let numbers = batch.column(0).as_any().downcast_ref::<Int64Array>().unwrap();
    assert_eq!(numbers.values()[..], [first as i64]);
    assert_eq!(batches.next().unwrap().unwrap_err().kind(), ErrorKind::TooLarge);
    assert!(batches.next().is_none());
}

/// `verify` failed instead of reporting the damage: numbers beyond 2^64, and a log known by its
/// sidecar alone, without an intact record.
#[test]
fn verify_tells_of_what_it_cannot_read() {
    let framing = Framing::Book;
    let mut bytes = framing.file_header(u64::MAX);
    (0..2).for_each(|i| bytes.extend(framing.encode(i, b"x")));
    let memory = Memory::new();
    memory.create_dir(Path::new(DIR)).unwrap();
    write_file(&memory, &Path::new(DIR).join("book.log"), &bytes);
    let report = BOOK.verify(&At::memory(&memory, DIR), MANUAL).unwrap();
    assert_eq!((report.verdict, report.ok()), (Verdict::Corrupt, false));
    for format in FORMATS {
        let (_, _, at) = broken(format, &plain(4, 40), Beside::Closed(4), |specimen, space| {
            space[specimen.edges[0]..].fill(0xa5);
        });
        let report = format.verify(&at, MANUAL).unwrap();
        let found = (report.verdict, report.records, report.lost_acknowledged);
        assert_eq!(found, (Verdict::Corrupt, 0, true), "{}", format.name());
    }
}

/// A writer cut the end and wrote it again under a follower on its own handle. The follower went
/// on, and left out the records in the place of those it had given.
#[test]
fn a_follower_on_the_writers_handle_reports_truncation() {
    for again in [0, 1, 2, 4] {
        let dir = tempfile::tempdir().unwrap();
        let wal = Wal::create(dir.path().join("log")).unwrap();
        let lsns: Vec<_> = (0..5).map(|i| wal.append(&[i; 50]).unwrap()).collect();
        wal.sync().unwrap();
        let mut follow = wal.follow(None).unwrap();
        (0..5).for_each(|_| assert!(follow.next(Duration::ZERO).unwrap().is_some()));
        wal.truncate_from(lsns[3]).unwrap();
        // Records of the same size begin at the offsets of the old ones.
        (0..again).for_each(|i| assert!(wal.append(&[100 + i; 50]).is_ok()));
        let error = follow.next(Duration::ZERO).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfRange, "{again} again: {error}");
    }
}

/// Only the opening asked whether to go on. A walk over the rest of the log went on until its next
/// report of progress, and a long damaged stretch has none.
#[test]
fn an_interrupt_ends_verify_and_salvage_during_reads() {
    let (memory, path) = (Memory::new(), Path::new("/large"));
    let is_over = Arc::new(AtomicBool::new(false));
    let asked = is_over.clone();
    let timeout = LockTimeout::default().checking(move || match asked.load(Ordering::Relaxed) {
        true => Err(io::Error::other("enough")),
        false => Ok(()),
    });
    let how = How { durability: Durability::None, ..MANUAL };
    let options = options(&At::memory(&memory, path), how).lock_timeout(timeout);
    let book = options.open(path, Mode::Create).unwrap();
    let jam = vec![7; 1 << 20];
    (0..12).for_each(|_| assert!(book.append(0, &jam).is_ok()));
    book.close().unwrap();
    // Long enough that the next read asks.
    let end = |_, _| {
        is_over.store(true, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(60));
        Ok(())
    };
    let checked = options.verify_with(path, end).map(|report| report.records);
    is_over.store(false, Ordering::Relaxed);
    let copied = options.salvage_with(path, "/copy", end).map(|report| report.records);
    for error in [checked.unwrap_err(), copied.unwrap_err()] {
        assert!(error.to_string().contains("enough"), "{error}");
    }
}
