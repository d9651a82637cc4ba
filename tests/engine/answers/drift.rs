//! Different answers of two formats built next to each other. Each test opens with its story.

use std::sync::atomic::AtomicU8;

use super::*;

/// Readers did not notice a writer who had cut the end and appended again: at the same length the readers gave a record
/// from nowhere, at another length an error "lost records" without any loss.
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
    // The same for a gap between segments.
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

/// A write-ahead log computed the checksum of the caller's bytes before it copied them: a buffer that another thread
/// changed meanwhile became an acknowledged record with a wrong checksum.
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

/// Book left `closed` in the mark while it went on appending: a crash's torn record seemed another program's.
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
