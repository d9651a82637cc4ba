//! Different answers of two formats built next to each other. Each test opens with its story.

use std::sync::atomic::AtomicU8;

use crate::answers::{FORMATS, LARGE};
use crate::support::common::hooked::Hooked;
use crate::support::common::{FORCED, data};
use crate::support::formats::book::BOOK;
use crate::support::formats::specimen::in_memory;
use crate::support::formats::subject::{Event, refused};
use crate::support::formats::views::{all_but, all_give, broken};
use crate::support::formats::wal::{SINGLE, TINY, WalFormat};
use crate::support::prelude::*;

/// A torn record, never acknowledged, held whole records in its payload, and there was damage below
/// the mark. `cursor(Skip)` and splits of a Book, and splits of a write-ahead log, gave records
/// nobody had appended. `verify` and `salvage` did not. The evidence was put together in seven
/// places, and two of them left out the end of the acknowledged part.
#[test]
fn records_in_a_torn_payload_are_not_given() {
    for format in FORMATS {
        let inner: Vec<u8> = (0..4).flat_map(|i| format.framing().encode(i, &[7; 30])).collect();
        let mut events = plain(5, 30);
        events.push((9, [&inner[..], &[1; 400]].concat()));
        // Opening misses the first damage and sees the second.
        for damaged in [2, 4] {
            let (specimen, _, at) = broken(format, &events, Beside::Open(5), |specimen, space| {
                space[specimen.edges[damaged] + format.framing().head() + 3] ^= 1;
                space.truncate(specimen.edges[5] + format.framing().head() + inner.len());
            });
            all_give(&specimen, &at, &all_but(5, &[damaged]));
        }
    }
}

/// Readers of a Book did not notice that a writer had cut the end and written it again. At the same
/// length they gave a record that did not exist; at another length they raised "lost records" for a
/// log without any loss.
#[test]
fn a_reader_notices_a_rewritten_end() {
    let acknowledged = How { recovery: Recovery::Acknowledged, ..MANUAL };
    for format in LARGE {
        let events = plain(6, 40);
        for again in [39, 40, 41, 100] {
            let (memory, at) = in_memory(format);
            let log = format.open(&at, Mode::Create, acknowledged).unwrap();
            for (i, (tag, bytes)) in events.iter().enumerate() {
                log.append(*tag, bytes).unwrap();
                if i == 2 {
                    log.sync().unwrap();
                }
            }
            // The writer dies; another writer cuts back to the acknowledged end and goes on.
            let memory = Files::of(&memory).restore();
            let at = At::memory(&memory, at.path);
            let (reader, other) = (format.read(&at).unwrap(), format.read(&at).unwrap());
            assert_eq!(reader.forward(None, None, false).records.len(), 6);
            let writer = format.open(&at, Mode::Append, acknowledged).unwrap();
            assert_eq!(writer.len().unwrap(), 3);
            (0..4).for_each(|i| assert!(writer.append(i, &vec![0xee; again]).is_ok()));
            writer.sync().unwrap();
            let what = format!("{}, again {again}", format.name());
            let error = refused(reader.refresh(), ErrorKind::OutOfRange);
            assert!(error.message().contains("cut"), "{what}: {error}");
            for walk in [other.forward(None, None, false), other.arrow(true)] {
                let given = walk.records.iter().zip(&events);
                let is_same = given.clone().all(|(record, (_, bytes))| record.bytes == *bytes);
                assert!(is_same, "{what}: gave {:?}", walk.records);
                let kind = walk.error.map(|error| error.kind());
                assert_eq!(kind, Some(ErrorKind::OutOfRange), "{what}");
            }
        }
    }
}

/// A reader of a Book met damage after its last record. It went on to raise the damage after a
/// repair and new appends. A reader of a write-ahead log forgot the damage.
#[test]
fn damage_that_a_log_grew_over_is_forgotten() {
    for format in [LARGE[0], LARGE[1], LARGE[2], &TINY] {
        for beside in [Beside::Nothing, Beside::Closed(3)] {
            let (_, _, at) = broken(format, &plain(8, 40), beside, |specimen, space| {
                space[specimen.edges[5]] ^= 0x40; // opening sees it, also where it hops over lengths
            });
            grown_over(format, &at, &format!("{}, {beside:?}", format.name()));
        }
    }
}

/// The same for a gap between segments.
#[test]
fn a_reader_forgets_a_repaired_gap() {
    let (_, _, at) = broken(&TINY, &plain(8, 40), Beside::Nothing, |_, _| ());
    at.storage.remove(&at.path.join(format!("{:020}.wal", 3))).unwrap();
    grown_over(&TINY, &at, "a gap");
}

fn grown_over(format: &dyn Format, at: &At, what: &str) {
    let reader = format.read(at).unwrap();
    let known = reader.forward(None, None, false);
    reader.refresh().unwrap();
    let again = reader.forward(None, None, false);
    assert!(known.error.is_some() && again.error.is_some(), "{what}: {known:?}, {again:?}");
    format.repair_as(at, MANUAL, FORCED).unwrap();
    let writer = format.open(at, Mode::Append, MANUAL).unwrap();
    let more: Vec<Event> = (0..6).map(|i| (7, vec![i; 41])).collect();
    more.iter().for_each(|(tag, bytes)| assert!(writer.append(*tag, bytes).is_ok()));
    writer.sync().unwrap();
    reader.refresh().unwrap();
    let bytes = |events: &[Event]| events.iter().map(|e| e.1.clone()).collect::<Vec<_>>();
    let expected = bytes(&[known.events(), more].concat());
    for (how, walk) in [
        ("forward", reader.forward(None, None, false)),
        ("past damage", reader.forward(None, None, true)),
        ("arrow", reader.arrow(false)),
    ] {
        assert!(walk.error.is_none(), "{what}, {how}: {:?}", walk.error);
        assert_eq!(bytes(&walk.events()), expected, "{what}, {how}");
    }
    let mut back = bytes(&reader.backward(None, None).events());
    back.reverse();
    assert_eq!(back, expected, "{what}, backward");
}

/// Readers also forgot damage that growth does not repair: the header of a Book rotted under its
/// writer. Once the Book had grown, a reader gave deeds again, under unproved numbers.
#[test]
fn a_reader_keeps_raising_a_rotten_header() {
    let (memory, at) = in_memory(&BOOK);
    let writer = BOOK.create(&at, &plain(3, 40));
    writer.sync().unwrap();
    let log = BOOK.first_file(&at.path);
    memory.open(&log, Access::Write).unwrap().write_at(&[9], 9).unwrap();
    let reader = BOOK.read(&at).unwrap();
    for _ in 0..2 {
        let error = reader.forward(None, None, false).error.expect("the header is damaged");
        assert!(error.message().contains("by the header"), "{error}");
        writer.append(1, &[5; 40]).unwrap();
        reader.refresh().unwrap();
    }
}

/// A write-ahead log computed the checksum of the caller's bytes before it copied them. If another
/// thread changed the buffer meanwhile, the log acknowledged a record with a wrong checksum. Book
/// copied first.
#[test]
#[allow(unsafe_code)]
fn a_changing_buffer_becomes_no_corrupt_record() {
    for format in [&BOOK as &dyn Format, &SINGLE] {
        for len in [10, 500, 3_000, 20_000] {
            let storage = Hooked::default();
            storage.create_dir(Path::new(DIR)).unwrap();
            let path = format.path_in(Path::new(DIR));
            let at = At { storage: Arc::new(storage.clone()), path };
            let log = format.create(&at, &[]);
            let buffer: Arc<Vec<AtomicU8>> = Arc::new((0..len).map(|_| AtomicU8::new(1)).collect());
            let changed = buffer.clone();
            // Changes the bytes between any two calls of the file system.
            storage.watch(move |_| {
                for byte in changed.iter() {
                    byte.fetch_add(1, Ordering::Relaxed);
                }
                false
            });
            for _ in 0..3 {
                // SAFETY: the bytes live as long as `buffer`; the test changes them on purpose.
                let bytes = unsafe { std::slice::from_raw_parts(buffer.as_ptr().cast(), len) };
                log.append(1, bytes).unwrap();
            }
            storage.unwatch();
            log.close().unwrap();
            let report = format.verify(&at, MANUAL).unwrap();
            let found = (report.records, report.ok());
            assert_eq!(found, (3, true), "{}, {len} bytes: {report:?}", format.name());
        }
    }
}

/// `verify` listed damage out of order: damage without a record, for example a lost head marker,
/// came after damage further on.
#[test]
fn verify_lists_damage_in_order() {
    let memory = Memory::new();
    let at = At::memory(&memory, DIR);
    let log = TINY.options(&at, MANUAL).open(DIR, Mode::Create).unwrap();
    let lsns: Vec<_> = (0..9).map(|i| log.append(&[i; 50]).unwrap()).collect();
    log.sync().unwrap();
    log.truncate_before(lsns[3]).unwrap();
    log.close().unwrap();
    let files = Files::of(&memory);
    let mut space = files.space(&TINY);
    space[lsns[6].0 as usize + 20] ^= 1;
    let mut files = files.with_space(&TINY, &space);
    files.bytes.remove(&Path::new(DIR).join("head")).unwrap();
    let memory = files.restore();
    let report = TINY.verify(&At::memory(&memory, DIR), MANUAL).unwrap();
    let places: Vec<_> = report.damages.iter().map(|damage| damage.offset).collect();
    assert_eq!(places, [lsns[3].0, lsns[6].0]);
}

/// A read error during the search for the layout became "not a log".
#[test]
fn a_failed_read_during_open_stays_an_error() {
    for format in FORMATS {
        for sidecar in [true, false] {
            let disk = Sim::new();
            let path = format.path_in(Path::new(DIR));
            Storage::create_dir(&disk, Path::new(DIR)).unwrap();
            let at = At { storage: Arc::new(disk.clone()), path };
            let log = format.create(&at, &plain(5, 300));
            log.close().unwrap();
            drop(log);
            if !sidecar {
                let beside = Path::new(DIR).join(".deedbook");
                for dir in [beside.clone(), beside.join("wal")] {
                    for name in Storage::list(&disk, &dir).unwrap_or_default() {
                        let _ = Storage::remove(&disk, &dir.join(name));
                    }
                }
            }
            // With the first record damaged, the engine reads more to recognise the file.
            let file = disk.open(&format.first_file(&at.path), Access::Write).unwrap();
            file.write_at(&[0xff], format.framing().start() as u64 + 20).unwrap();
            read_while_reads_fail(format, &disk, &at, 4);
        }
    }
}

/// The same for an error during the search for another layout: a log of another layout was "not a log".
#[test]
fn a_failed_read_during_layout_detection_is_reported() {
    let disk = Sim::new();
    disk.create_dir(Path::new(DIR)).unwrap();
    let padded = std::fs::read(data("specC-3").join("book.log")).unwrap();
    write_file(&disk, &Path::new(DIR).join("book.log"), &padded);
    let at = At { storage: Arc::new(disk.clone()), path: DIR.into() };
    assert!(read_while_reads_fail(&BOOK, &disk, &at, 3) > 0, "no read met the fault");
}

/// With each read failing in turn, a walk gives all these records, or the error of the disk. Returns the number of
/// errors.
fn read_while_reads_fail(format: &dyn Format, disk: &Sim, at: &At, records: usize) -> u32 {
    let mut errors = 0;
    for k in 1..40 {
        let eio = What::Error(std::io::ErrorKind::Other);
        disk.inject(Fault::once(k, eio).of(Call::Read));
        let read = format.read(at).map(|log| log.forward(None, None, true));
        disk.heal();
        let what = format!("{}, read {k}: {read:?}", format.name());
        let failed = match read {
            Err(error) => Some(error),
            Ok(walk) => {
                assert!(walk.error.is_some() || walk.records.len() == records, "{what}");
                walk.error
            }
        };
        errors += u32::from(failed.is_some());
        assert!(failed.is_none_or(|error| error.kind() == ErrorKind::Io), "{what}");
    }
    errors
}

/// Book left `closed` in the mark while it went on appending. After a crash, the engine would have
/// blamed a torn record on another program.
#[test]
fn an_appending_writer_marks_the_log_as_open() {
    for format in FORMATS {
        let (memory, at) = in_memory(format);
        format.create(&at, &plain(3, 30)).close().unwrap();
        let is_closed = || {
            let files = Files::of(&memory);
            let mark = files.named("mark").unwrap();
            let count = |at: usize| u64::from_le_bytes(*mark[at + 8..].first_chunk().unwrap());
            let newest = if count(0) > count(512) { 0 } else { 512 };
            mark[newest + 6] & 1 == 1
        };
        assert!(is_closed(), "{}", format.name());
        let log = format.open(&at, Mode::Append, MANUAL).unwrap();
        log.append(1, b"goes on").unwrap();
        assert!(!is_closed(), "{}: says closed, and is appended to", format.name());
        log.close().unwrap();
        assert!(is_closed(), "{}", format.name());
    }
}

/// Every way of reading begins with the same evidence, also in segments of another size.
#[test]
fn readers_agree_about_damage_for_any_segment_size() {
    for segment_bytes in [9, 31, 512, 5_000] {
        let format = WalFormat::segmented("wal-segments", segment_bytes);
        let events: Vec<Event> = plain(30, 40);
        for beside in [Beside::Nothing, Beside::Open(30), Beside::Closed(15)] {
            let (specimen, _, at) = broken(&format, &events, beside, |specimen, space| {
                space[specimen.edges[3] + 20] ^= 1;
                space[specimen.edges[20] + 20] ^= 1;
            });
            all_give(&specimen, &at, &all_but(30, &[3, 20]));
        }
    }
}
