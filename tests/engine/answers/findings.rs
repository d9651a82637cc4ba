//! Wrong answers about damaged or foreign logs, found from outside. Each test opens with its story.

use deedbook::book::Book;

use crate::answers::LARGE;
use crate::support::common::hooked::{Event as Call, Hooked};
use crate::support::formats::book::{BOOK, options};
use crate::support::formats::specimen::in_memory;
use crate::support::formats::subject::{Event, Log, refused};
use crate::support::formats::views::ways;
use crate::support::formats::wal::SINGLE;
use crate::support::prelude::*;

/// A Book of deeds 101, 102, ... with changed bytes and no sidecar.
fn epoch_100(events: &[Event], change: impl FnOnce(&mut Vec<u8>)) -> (Memory, At) {
    let framing = Framing::Book;
    let mut bytes = framing.file_header(101);
    events.iter().for_each(|(tag, jam)| bytes.extend(framing.encode(*tag, jam)));
    change(&mut bytes);
    let memory = Memory::new();
    memory.create_dir(Path::new(DIR)).unwrap();
    write_file(&memory, &Path::new(DIR).join("book.log"), &bytes);
    let at = At::memory(&memory, DIR);
    (memory, at)
}

fn book(at: &At) -> Book {
    options(at, MANUAL).open(&at.path, Mode::Read).unwrap()
}

/// The numbers that each way gives; none may be wrong.
#[track_caller]
fn numbers(at: &At, events: &[Event]) -> Vec<Option<u64>> {
    let mut all = Vec::new();
    for (way, walk) in ways(&BOOK, at) {
        let mut numbers = Vec::new();
        for record in &walk.records {
            let i = events.iter().position(|(_, jam)| *jam == record.bytes).unwrap() as u64;
            let number = record.ordinal;
            assert!(number.is_none_or(|number| number == 101 + i), "{way}: {record:?} is {i}");
            numbers.push(number);
        }
        all.push(numbers);
    }
    assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "{all:?}");
    // Reads by number give the same, or an error.
    let (book, jams) = (book(at), |n: u64| events.get((n - 101) as usize).map(|(_, jam)| jam));
    for number in (0..10).chain(95..110) {
        if let Ok(deed) = book.read(number) {
            assert_eq!(Some(&deed.jam), jams(number), "deed {number}");
        }
    }
    all.pop().unwrap()
}

/// Without a mark, readers passed over a first deed with a damaged frame and numbered the rest from
/// 1 on: 102, 103 and 104 came as 1, 2 and 3.
#[test]
fn a_damaged_first_deed_keeps_other_numbers_unchanged() {
    let events = plain(6, 30);
    for byte in [16, 17, 28, 30, 62] {
        let (_, at) = epoch_100(&events, |bytes| bytes[byte] ^= 1);
        let numbers = numbers(&at, &events);
        assert_eq!(numbers.len(), 5, "byte {byte}");
        let walk = book(&at).iter(..).unwrap().next().unwrap();
        let error = refused(walk, ErrorKind::Corrupt);
        assert_eq!(error.offset(), Some(16), "byte {byte}: {error}");
    }
}

/// A header with a damaged magic or version, no mark: the log opened with bounds (0, 2), event 1
/// was event 2, and a plain loop raised only at its end.
#[test]
fn a_damaged_header_is_raised_and_keeps_numbers() {
    let events = plain(6, 30);
    for byte in 0..8 {
        let (_, at) = epoch_100(&events, |bytes| bytes[byte] ^= 0x10);
        let expected: Vec<_> = (101..=106).map(Some).collect();
        assert_eq!(numbers(&at, &events), expected, "byte {byte}");
        let walk = BOOK.read(&at).unwrap().forward(None, None, false);
        assert!(walk.records.is_empty(), "byte {byte}: {walk:?}");
        assert!(walk.error.unwrap().offset().unwrap() < 8, "byte {byte}");
        let report = BOOK.verify(&at, MANUAL).unwrap();
        assert_eq!((report.verdict, report.records), (Verdict::Corrupt, 6), "byte {byte}");
        assert!(report.damages[0].offset < 8, "{report:?}");
    }
}

/// The same with a first number of 0 before deeds: nothing proves their numbers, and the reader
/// made up 0, 1, 2.
#[test]
fn deeds_after_a_zero_first_number_are_unnumbered() {
    let events = plain(6, 30);
    let (_, at) = epoch_100(&events, |bytes| bytes[8..16].fill(0));
    assert_eq!(numbers(&at, &events), [None; 6]);
    let walk = BOOK.read(&at).unwrap().forward(None, None, false);
    assert!(walk.records.is_empty(), "{walk:?}");
    assert_eq!(walk.error.unwrap().offset(), Some(8));
    let book = book(&at);
    assert!((0..10).all(|number| book.read(number).is_err()));
}

/// Opening a copy of a small program as a write-ahead log emptied the file and saved nothing. A
/// file passed for a torn end if it was shorter than a header, or claimed a record longer than
/// itself.
#[test]
fn a_foreign_file_is_refused_and_kept() {
    let program = [&b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0"[..], &[7; 3000]].concat();
    let record = [&[1, 2, 3, 4, 100, 0, 0, 0][..], &[5; 60]].concat();
    let mut foreign = vec![program, record, b"PK\x03\x04\x14\0\0\0\x08\0".to_vec()];
    foreign.push([&[0; 600][..], b"data beyond an empty first block"].concat());
    foreign.push(b"{\"n\":1}\n{\"n\":2}\n".to_vec());
    foreign.extend((1..9).map(|len| b"text abc"[..len].to_vec()));
    for format in LARGE {
        for bytes in &foreign {
            let (memory, at) = in_memory(format);
            memory.create_dir(Path::new(DIR)).unwrap();
            let file = format.first_file(&at.path);
            write_file(&memory, &file, bytes);
            // A writer that died in its first append leaves the same bytes, if the name says WAL.
            let claims =
                |bytes: &[u8]| u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
            let is_begun = format.name().starts_with("wal")
                && match bytes.len() {
                    8.. => (claims(bytes) as usize) > bytes.len() - 8 && claims(bytes) <= 64 << 20,
                    _ => format.segment_bytes().is_some(),
                };
            for mode in [Mode::Append, Mode::Create] {
                let what = format!("{}, {} bytes, {mode:?}", format.name(), bytes.len());
                let error = format.open(&at, mode, MANUAL).err().expect(&what);
                let refusal = match is_begun {
                    true => ErrorKind::Corrupt,
                    false => ErrorKind::NotALog,
                };
                let kinds = [refusal, ErrorKind::AlreadyExists];
                assert!(kinds.contains(&error.kind()), "{what}: {error:?}");
                assert_eq!(read_file(&memory, &file), *bytes, "{what}");
            }
            if is_begun {
                // You asked for a repair, and the repair saves the bytes it removes.
                let repaired = format.repair(&at, MANUAL).unwrap();
                let saved = &repaired.saved[0];
                assert_eq!(read_file(&memory, saved), *bytes, "{}: saved", format.name());
                continue;
            }
            assert!(format.repair(&at, MANUAL).is_err(), "{}", format.name());
            assert_eq!(read_file(&memory, &file), *bytes, "{}: repaired", format.name());
            let left = Files::of(&memory).bytes.len();
            assert_eq!(left, 1, "{}: left something beside it", format.name());
        }
    }
}

/// The disk was full, and a half-written batch was rolled back. Followers gave the deeds of its
/// first half, and then silently left out the deeds appended in their place.
#[test]
fn a_reader_never_gives_what_is_rolled_back() {
    for format in [&BOOK as &dyn Format, &SINGLE] {
        let storage = Hooked::default();
        storage.create_dir(Path::new(DIR)).unwrap();
        let path = format.path_in(Path::new(DIR));
        let at = At { storage: Arc::new(storage.clone()), path };
        let log = format.create(&at, &plain(3, 50));
        log.sync().unwrap();
        let reader: Arc<dyn Log> = Arc::from(format.read(&at).unwrap());
        let seen = Arc::new(Mutex::new(None));
        let (looks, sees) = (reader.clone(), seen.clone());
        storage.watch(move |event| match event {
            Call::Half => {
                *sees.lock().unwrap() = Some(looks.follow().records.len());
                true
            }
            Call::Write(len) => len > 4000 && sees.lock().unwrap().is_none(),
            Call::Allocate | Call::Read | Call::Sync => false,
        });
        log.append_batch(&plain(20, 900)).unwrap_err();
        storage.unwatch();
        assert_eq!(*seen.lock().unwrap(), Some(3), "{}: gave what was rolled back", format.name());
        let real = (1, b"what really came".to_vec());
        log.append_batch(std::slice::from_ref(&real)).unwrap();
        log.sync().unwrap();
        let followed = reader.follow();
        assert!(followed.error.is_none(), "{}: {:?}", format.name(), followed.error);
        assert_eq!(followed.records.len(), 4, "{}", format.name());
        assert_eq!(followed.records[3].bytes, real.1, "{}", format.name());
    }
}
