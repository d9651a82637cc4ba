//! Wrong answers at the edges: limits, names, numbers, and logs of another format. Each test
//! opens with its story.

use super::*;
use arrow_array::{Array, Int64Array};

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

/// A log cut below its mark, at an edge or within a record, was given backwards as if nothing were missing.
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
