//! Wrong answers about damaged or foreign logs that were found from outside, and mended. Each test
//! opens with its story.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use arrow_array::{Array, UInt64Array};
use deedbook::book::{Batches, Book, Column};
use deedbook::storage::{Memory, Storage};
use deedbook::wal::{Layout, Lsn, Wal, segment_name};
use deedbook::{ErrorKind, Mode};

use crate::book::{BookFormat, options};
use crate::common::{read_file, write_file};
use crate::framing::{Framing, crc32c};
use crate::hooked::{Event as Call, Hooked};
use crate::specimen::{Beside, DIR, Files, Specimen};
use crate::subject::{At, Event, Format, How, Log, MANUAL, refused};
use crate::views::{all_but, all_give, broken, plain, ways};
use crate::wal::{SINGLE, TINY};
use crate::{FORMATS, LARGE};

/// A Book of deeds 101, 102, ... with these bytes changed and nothing beside it.
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
    for (way, walk) in ways(&BookFormat, at) {
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
    // By number the same, or an error.
    let (book, jams) = (book(at), |n: u64| events.get((n - 101) as usize).map(|(_, jam)| jam));
    for number in (0..10).chain(95..110) {
        if let Ok(deed) = book.read(number) {
            assert_eq!(Some(&deed.jam), jams(number), "deed {number}");
        }
    }
    all.pop().unwrap()
}

/// F1. Without a mark, a first deed whose frame is damaged was passed over, and those after it were
/// numbered from 1 on: 102, 103 and 104 came as 1, 2 and 3.
#[test]
fn a_damaged_first_deed_does_not_renumber_the_others() {
    let events = plain(6, 30);
    for byte in [16, 17, 28, 30, 62] {
        let (_, at) = epoch_100(&events, |bytes| bytes[byte] ^= 1);
        let numbers = numbers(&at, &events);
        assert_eq!(numbers.len(), 5, "byte {byte}");
        let walk = book(&at).iter(0, None).unwrap().next().unwrap();
        let error = refused(walk, ErrorKind::Corrupt);
        assert_eq!(error.offset(), Some(16), "byte {byte}: {error}");
    }
}

/// F1. A header with a damaged magic or version, no mark: the log opened with bounds (0, 2), event 1
/// was event 2, and a plain loop raised at its end only.
#[test]
fn a_damaged_header_is_raised_first_and_keeps_the_numbers() {
    let events = plain(6, 30);
    for byte in 0..8 {
        let (_, at) = epoch_100(&events, |bytes| bytes[byte] ^= 0x10);
        let expected: Vec<_> = (101..=106).map(Some).collect();
        assert_eq!(numbers(&at, &events), expected, "byte {byte}");
        let walk = BookFormat.read(&at).unwrap().forward(None, None, false);
        assert!(walk.records.is_empty(), "byte {byte}: {walk:?}");
        assert!(walk.error.unwrap().offset().unwrap() < 8, "byte {byte}");
        let report = BookFormat.verify(&at, MANUAL).unwrap();
        assert_eq!((report.verdict, report.records), ("corrupt", 6), "byte {byte}");
        assert!(report.damages[0].offset < 8, "{report:?}");
    }
}

/// F1. The same with a first number of 0 before deeds: nothing tells their numbers, and 0, 1, 2 were
/// made up.
#[test]
fn deeds_after_a_first_number_of_zero_have_no_numbers() {
    let events = plain(6, 30);
    let (_, at) = epoch_100(&events, |bytes| bytes[8..16].fill(0));
    assert_eq!(numbers(&at, &events), [None; 6]);
    let walk = BookFormat.read(&at).unwrap().forward(None, None, false);
    assert!(walk.records.is_empty(), "{walk:?}");
    assert_eq!(walk.error.unwrap().offset(), Some(8));
    let book = book(&at);
    assert!((0..10).all(|number| book.read(number).is_err()));
}

/// F2. A copy of a small program, opened as a write-ahead log for appending, was emptied, and nothing
/// was saved: whatever claims a record that is longer than the file, and whatever is shorter than a
/// header, passed for a torn tail.
#[test]
fn a_foreign_file_is_refused_and_kept() {
    let program = [&b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0"[..], &[7; 3000]].concat();
    let record = [&[1, 2, 3, 4, 100, 0, 0, 0][..], &[5; 60]].concat();
    let mut foreign = vec![program, record, b"PK\x03\x04\x14\0\0\0\x08\0".to_vec()];
    foreign.extend((1..9).map(|len| b"text abc"[..len].to_vec()));
    for format in FORMATS {
        for bytes in &foreign {
            let (memory, path) = (Memory::new(), format.path_in(Path::new(DIR)));
            memory.create_dir(Path::new(DIR)).unwrap();
            let file = format.first_file(&path);
            write_file(&memory, &file, bytes);
            let at = At::memory(&memory, path);
            for mode in [Mode::Append, Mode::Create] {
                let what = format!("{}, {} bytes, {mode:?}", format.name(), bytes.len());
                let error = format.open(&at, mode, MANUAL).err().expect(&what);
                let kinds = [ErrorKind::NotALog, ErrorKind::AlreadyExists];
                assert!(kinds.contains(&error.kind()), "{what}: {error:?}");
                assert_eq!(read_file(&memory, &file), *bytes, "{what}");
            }
            assert!(format.repair(&at, MANUAL).is_err(), "{}", format.name());
            assert_eq!(read_file(&memory, &file), *bytes, "{}: repaired", format.name());
            let left = Files::of(&memory).bytes.len();
            assert_eq!(left, 1, "{}: left something beside it", format.name());
        }
    }
}

/// F2. An opening cut a torn tail and kept no copy.
#[test]
fn a_torn_tail_is_saved_before_it_is_cut() {
    for format in FORMATS {
        for beside in [Beside::Nothing, Beside::Open(2), Beside::Closed(3)] {
            let (specimen, memory, at) = broken(format, &plain(5, 60), beside, |_, space| {
                space.truncate(space.len() - 10);
            });
            let log = format.open(&at, Mode::Append, MANUAL).unwrap();
            let saved_to = log.recovery().saved_to.unwrap_or_else(|| {
                panic!("{}, {beside:?}: {:?}", format.name(), log.recovery())
            });
            let cut = specimen.edges[4]..specimen.space.len() - 10;
            assert_eq!(read_file(&memory, &saved_to), specimen.space[cut]);
        }
    }
}

/// F3. A log was closed with 10 records; another program appended 100 and synced them; a byte of
/// these rotted. By our old mark they were a torn tail: 49 intact records were cut on opening,
/// unsaved, and neither `verify` nor `salvage` saw them.
#[test]
fn a_closed_mark_does_not_condemn_what_another_program_appended() {
    for format in FORMATS {
        let (specimen, memory, at) =
            broken(format, &plain(110, 40), Beside::Closed(10), |specimen, space| {
                space[specimen.edges[60] + format.framing().head() + 3] ^= 1;
            });
        let before = Files::unlocked(&memory);
        let error = refused(format.open(&at, Mode::Append, MANUAL), ErrorKind::Corrupt);
        let next = Some(specimen.edges[61] as u64);
        assert_eq!(error.next_intact(), next, "{}: {error}", format.name());
        assert!(Files::unlocked(&memory) == before, "{}: changed", format.name());
        all_give(&specimen, &at, &all_but(110, &[60]));
    }
}

/// F4. A batch was half written when the disk was full, and rolled back. Followers gave out the deeds
/// of its first half, and then silently left out those that really came in their place.
#[test]
fn a_reader_never_gives_what_is_rolled_back() {
    for format in [&BookFormat as &dyn Format, &SINGLE] {
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
            Call::Allocate => false,
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

/// F5. A write-ahead log without a mark, one bit flipped in a record's length: opening named the next
/// intact record, but of 5,000 records readers, `verify` and `salvage` gave 10. A chain of records
/// that ends where the data does is better evidence than one length.
#[test]
fn one_damaged_length_costs_one_record() {
    for format in LARGE {
        let length = format.framing().length();
        for bit in [0, 2, 4, 9, 13, 18, 24, 31] {
            let (specimen, _, at) =
                broken(format, &plain(5_000, 20), Beside::Nothing, |specimen, space| {
                    space[specimen.edges[10] + length.start + bit / 8] ^= 1 << (bit % 8);
                });
            all_give(&specimen, &at, &all_but(5_000, &[10]));
        }
    }
}

/// Files of a segmented log, without a sidecar or with one.
fn segments(beside: Beside, change: impl FnOnce(&mut Files)) -> (Specimen<'static>, Memory, At) {
    let specimen = Specimen::new(&TINY, &plain(20, 40), beside);
    let mut files = specimen.files.clone();
    change(&mut files);
    let memory = files.restore();
    let at = At::memory(&memory, DIR);
    (specimen, memory, at)
}

fn segment(index: u64) -> PathBuf {
    Path::new(DIR).join(segment_name(index))
}

fn head_marker(head: u64) -> Vec<u8> {
    let bytes = head.to_le_bytes();
    [&bytes[..], &crc32c(&bytes).to_le_bytes()].concat()
}

/// F6. A legal log, of which everything was dropped up to the border of a segment that was not begun
/// yet, was "corrupt" for all that looked at it.
#[test]
fn a_log_of_which_all_was_dropped_needs_no_segment() {
    let memory = Memory::new();
    memory.create_dir(Path::new(DIR)).unwrap();
    write_file(&memory, &Path::new(DIR).join("head"), &head_marker(128));
    let at = At::memory(&memory, DIR);
    let wal = TINY.options(&at, MANUAL).open(DIR, Mode::Read).unwrap();
    assert_eq!((wal.head().unwrap(), wal.end().unwrap(), wal.len().unwrap()), (Lsn(128), Lsn(128), 0));
    let report = TINY.verify(&at, MANUAL).unwrap();
    assert_eq!((report.verdict, report.ok), ("clean", true));
    let wal = TINY.options(&at, MANUAL).open(DIR, Mode::Append).unwrap();
    assert_eq!(wal.append(b"goes on").unwrap(), Lsn(128));
    wal.close().unwrap();
    assert_eq!(TINY.read(&at).unwrap().forward(None, None, false).records.len(), 1);
}

const BESIDE: [Beside; 3] = [Beside::Nothing, Beside::Open(20), Beside::Closed(20)];

/// F7. Segment 0 was missing: neither reading, nor passing over damage, nor `verify`, nor `salvage`
/// gave anything.
#[test]
fn what_follows_a_missing_first_segment_is_read() {
    for beside in BESIDE {
        let (specimen, memory, at) = segments(beside, |files| {
            files.bytes.remove(&segment(0)).unwrap();
        });
        let before = Files::unlocked(&memory);
        assert!(TINY.open(&at, Mode::Append, MANUAL).is_err(), "{beside:?}");
        assert!(Files::unlocked(&memory) == before, "{beside:?}: changed");
        // Records of 48 bytes: two of them lie in the first 64.
        all_give(&specimen, &at, &all_but(20, &[0, 1]));
    }
}

/// F7. The same with a segment that is too long, a stray file that is named like the last possible
/// segment, and a head marker beyond the log.
#[test]
fn a_wrong_file_among_the_segments_costs_no_record() {
    for beside in BESIDE {
        for what in ["too long", "stray", "head"] {
            let (specimen, memory, at) = segments(beside, |files| match what {
                "too long" => files.bytes.get_mut(&segment(3)).unwrap().extend([7; 30]),
                "stray" => drop(files.bytes.insert(segment(u64::MAX), vec![9; 40])),
                _ => drop(files.bytes.insert(Path::new(DIR).join("head"), head_marker(5_000))),
            });
            let before = Files::unlocked(&memory);
            assert!(TINY.open(&at, Mode::Append, MANUAL).is_err(), "{beside:?}, {what}");
            assert!(Files::unlocked(&memory) == before, "{beside:?}, {what}: changed");
            let report = TINY.verify(&at, MANUAL).unwrap();
            assert_eq!((report.verdict, report.ok), ("corrupt", false), "{beside:?}, {what}");
            all_give(&specimen, &at, &all_but(20, &[]));
        }
    }
}

/// F8. A segment in the middle was missing: readers and `verify` stopped at the gap (41 records),
/// `salvage` did not (88 of 100).
#[test]
fn what_follows_a_missing_segment_is_given_by_all_or_none() {
    for beside in BESIDE {
        for index in [1, 7, 12] {
            let (specimen, memory, at) = segments(beside, |files| {
                files.bytes.remove(&segment(index)).unwrap();
            });
            let before = Files::unlocked(&memory);
            assert!(TINY.open(&at, Mode::Append, MANUAL).is_err(), "{beside:?}, {index}");
            assert!(Files::unlocked(&memory) == before, "{beside:?}, {index}: changed");
            let gap = index as usize * 64..(index as usize + 1) * 64;
            let is_lost = |i: &usize| {
                specimen.edges[*i] < gap.end && specimen.edges[*i + 1] > gap.start
            };
            let lost: Vec<_> = (0..20).filter(is_lost).collect();
            all_give(&specimen, &at, &all_but(20, &lost));
        }
    }
}

/// F9. `salvage` said "say segment_bytes" and took none: the layout in its options was the copy's
/// only.
#[test]
fn a_salvage_can_be_told_the_segment_size() {
    let memory = Memory::new();
    let at = At::memory(&memory, DIR);
    let wal = TINY.options(&at, MANUAL).open(DIR, Mode::Create).unwrap();
    let lsns: Vec<_> = (0..20).map(|i| wal.append(&[i; 40]).unwrap()).collect();
    wal.sync().unwrap();
    wal.truncate_before(lsns[19]).unwrap();
    wal.close().unwrap();
    let mut files = Files::of(&memory).without_sidecar();
    // One segment is left, and not the first: nothing tells its size.
    files.bytes.retain(|path, bytes| !path.ends_with(segment_name(14)) || bytes.len() == 64);
    let left: Vec<_> = files.bytes.keys().filter(|path| path.extension().is_some()).collect();
    assert_eq!(left.len(), 1, "{left:?}");
    let memory = files.restore();
    let at = At::memory(&memory, DIR);
    let report = TINY.salvage(&at, Path::new("/copy"), MANUAL).unwrap();
    assert_eq!(report.runs.len(), usize::from(report.records > 0), "{report:?}");
    assert_eq!(TINY.verify(&at, MANUAL).unwrap().records, report.records);
}

/// F10. Read backwards, a write-ahead log gave a record out of a damaged record's payload before it
/// raised; a Book that was cut inside such a deed gave one out of it when passing over damage.
#[test]
fn a_record_inside_a_damaged_one_is_not_given_backwards_either() {
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

/// F11. `Wal::open` of a Book said "lost records" and "remove .deedbook".
#[test]
fn a_log_of_another_format_is_called_by_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let (book, wal) = (dir.path().join("book"), dir.path().join("wal"));
    let created = Book::create(&book).unwrap();
    created.append(1, b"x").unwrap();
    created.close().unwrap();
    let created = Wal::create(&wal).unwrap();
    created.commit(b"x").unwrap();
    created.close().unwrap();
    for error in [Wal::open(&book).unwrap_err(), Wal::append_to(&book).unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::NotALog, "{error}");
        assert!(error.message().contains("book"), "{error}");
    }
    for error in [Book::open(&wal).unwrap_err(), Book::append_to(&wal).unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::NotALog, "{error}");
        assert!(error.message().contains("wal"), "{error}");
    }
}

/// F12. Opened with a lower limit than it was written with, a sound log had "lost acknowledged
/// records".
#[test]
fn a_lower_limit_does_not_make_a_log_lose_records() {
    for format in FORMATS {
        let specimen = Specimen::new(format, &plain(4, 200), Beside::Closed(4));
        let memory = specimen.files.restore();
        let at = At::memory(&memory, specimen.path());
        let low = How { record_bytes_max: Some(100), ..MANUAL };
        for mode in [Mode::Append, Mode::Read] {
            match format.open(&at, mode, low) {
                Ok(log) => {
                    let walk = log.forward(None, None, false);
                    let kind = walk.error.map(|error| error.kind());
                    assert!(matches!(kind, None | Some(ErrorKind::Corrupt)), "{kind:?}");
                    assert!(kind.is_some() || walk.records.len() == 4);
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corrupt, "{}: {error}", format.name());
                    assert!(error.message().contains("limit 10"), "{error}");
                }
            }
        }
        assert_eq!(format.read(&at).unwrap().forward(None, None, false).records.len(), 4);
    }
}

/// F12. An error about lost records did not say what to do when an older copy had been restored on
/// purpose.
#[test]
fn lost_records_say_what_to_do_after_a_restored_backup() {
    for format in FORMATS {
        let (_, _, at) = broken(format, &plain(6, 30), Beside::Closed(6), |specimen, space| {
            space.truncate(specimen.edges[3]);
        });
        let error = refused(format.open(&at, Mode::Append, MANUAL), ErrorKind::LostRecords);
        let text = error.to_string();
        assert!(text.contains("backup") && text.contains(".deedbook"), "{}", text);
    }
}

/// F15. Event numbers from 2^63 on were negative in an Arrow column.
#[test]
fn event_numbers_beyond_two_to_the_63_are_right_in_arrow() {
    let memory = Memory::new();
    memory.create_dir(Path::new("/")).unwrap();
    let at = At::memory(&memory, DIR);
    let first = (1 << 63) - 1;
    let with = deedbook::book::Options { epoch: Some(first - 1), ..options(&at, MANUAL) };
    let log = with.open(DIR, Mode::Create).unwrap();
    (0..4).for_each(|i| assert!(log.append(i, b"x").is_ok()));
    let cursor = log.cursor(0, None, deedbook::book::OnCorrupt::Raise).unwrap();
    let mut given = Vec::new();
    for batch in Batches::new(cursor, vec![Column::Event, Column::Jam], 10, 1 << 20) {
        // An error would do, too.
        let Ok(batch) = batch else { return };
        let numbers = batch.column(0).as_any().downcast_ref::<UInt64Array>();
        let numbers = numbers.expect("unsigned, or 2^63 has no place");
        given.extend(numbers.values().iter().copied());
    }
    assert_eq!(given, (first..first + 4).collect::<Vec<_>>());
}

/// F17. A path that holds a zero byte was "not a log".
#[test]
fn a_path_with_a_zero_byte_is_an_invalid_argument() {
    let path = PathBuf::from("/tmp/a\0b");
    refused(Book::open(&path), ErrorKind::InvalidArgument);
    refused(Wal::open(&path), ErrorKind::InvalidArgument);
}

/// F21. `verify` failed, where it should have told what is wrong: numbers that pass 2^64, and a log
/// known by its sidecar in which nothing is intact.
#[test]
fn verify_tells_of_what_it_cannot_read() {
    let framing = Framing::Book;
    let mut bytes = framing.file_header(u64::MAX);
    (0..2).for_each(|i| bytes.extend(framing.encode(i, b"x")));
    let memory = Memory::new();
    memory.create_dir(Path::new(DIR)).unwrap();
    write_file(&memory, &Path::new(DIR).join("book.log"), &bytes);
    let report = BookFormat.verify(&At::memory(&memory, DIR), MANUAL).unwrap();
    assert_eq!((report.verdict, report.ok), ("corrupt", false));
    for format in FORMATS {
        let (_, _, at) = broken(format, &plain(4, 40), Beside::Closed(4), |specimen, space| {
            space[specimen.edges[0]..].fill(0xa5);
        });
        let report = format.verify(&at, MANUAL).unwrap();
        let found = (report.verdict, report.records, report.lost_acknowledged);
        assert_eq!(found, ("corrupt", 0, true), "{}", format.name());
    }
}

/// F22. Dropping a prefix with force left consumers below the head.
#[test]
fn a_prefix_dropped_with_force_leaves_no_consumer_below_the_head() {
    for layout in [Layout::Single, Layout::Segmented { segment_bytes: 64 }] {
        let dir = tempfile::tempdir().unwrap();
        let with = deedbook::wal::Options { layout: Some(layout), ..Default::default() };
        let wal = with.open(dir.path().join("log"), Mode::Create).unwrap();
        let lsns: Vec<_> = (0..10).map(|i| wal.append(&[i; 40]).unwrap()).collect();
        wal.sync().unwrap();
        wal.set_consumer("slow", lsns[2]).unwrap();
        if layout == Layout::Single {
            continue;
        }
        wal.truncate_before_all(lsns[6]).unwrap();
        assert!(wal.consumers().unwrap()["slow"] >= lsns[6]);
    }
}
