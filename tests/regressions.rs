//! Bugs that were found and mended; each test opens with its story.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod common;

use std::fs;
use std::path::Path;
use std::time::Duration;

use common::{
    borders, check, contents, crc32, event_of, events, log, make, memory, read_all, read_file,
    read_past_damage, refused, rescue, write_file,
};
use deedbook::book::{Book, Mode, OnCorrupt, Options, repair};
use deedbook::storage::{Memory, Storage};
use deedbook::{Durability, ErrorKind, Verdict};

const BOOK: &str = "/book";

/// A log without anything beside it.
fn bare(bytes: &[u8]) -> (Memory, Options) {
    let (storage, options) = memory();
    storage.create_dir(Path::new(BOOK)).unwrap();
    write_file(&storage, Path::new("/book/book.log"), bytes);
    (storage, options)
}

/// The search for intact deeds behind damage ended at the last byte that is not zero. A deed ends
/// in the zeros of its length, so the last deed was never found: the damage before it passed for a
/// torn tail, and opening for write cut both off.
#[test]
fn an_intact_last_deed_behind_damage_is_not_cut_off() {
    let all = events(3, 50);
    let at = borders(&all)[1] as usize;
    let mut bytes = log(1, &all);
    bytes[at] ^= 1;
    let (storage, options) = bare(&bytes);
    let error = refused(options.open(BOOK, Mode::Append), ErrorKind::Corrupt);
    assert_eq!(error.next_intact(), Some(borders(&all)[2]));
    assert_eq!(common::read_file(&storage, Path::new("/book/book.log")), bytes);
    let given = contents(&read_past_damage(&options.open(BOOK, Mode::Read).unwrap()));
    assert_eq!(given, [all[0].clone(), all[2].clone()]);
    assert_eq!(rescue(Path::new(BOOK), Path::new("/rescued"), &options).deeds, 2);
}

/// A length damaged so that it pointed at the begin of the deed after next was believed, because an
/// intact deed stood there: the one between was passed over by readers and left out by salvage.
#[test]
fn a_damaged_length_that_points_at_a_later_deed_hides_none() {
    let all = vec![event_of(1, 30), (2, vec![2; 16]), (3, vec![3; 8]), event_of(4, 30)];
    let at = borders(&all);
    let mut bytes = log(1, &all);
    // From the second deed's begin to the fourth's.
    let len = at[3] - at[1] - 20;
    bytes[at[1] as usize..at[1] as usize + 8].copy_from_slice(&len.to_le_bytes());
    let (_, options) = bare(&bytes);
    let book = options.open(BOOK, Mode::Read).unwrap();
    let numbers: Vec<_> = read_past_damage(&book).iter().map(|deed| deed.event).collect();
    assert_eq!(numbers, [Some(1), Some(3), Some(4)]);
}

/// With a mark, `verify` called a damaged first number in the header a torn tail, while opening for
/// write refused it as corrupt.
#[test]
fn verify_calls_a_damaged_first_number_corrupt() {
    let (storage, options) = memory();
    make(Path::new(BOOK), &options, &events(4, 30));
    let mut bytes = log(1, &events(4, 30));
    bytes[9] ^= 1;
    write_file(&storage, Path::new("/book/book.log"), &bytes);
    let report = check(BOOK, &options);
    assert_eq!((report.verdict, report.ok(), report.deeds), (Verdict::Corrupt, false, 4));
    assert_eq!((report.bounds, report.damages[0].offset), (Some(1..=4), 8));
    refused(options.open(BOOK, Mode::Append), ErrorKind::Corrupt);
    let book = options.open(BOOK, Mode::Read).unwrap();
    assert_eq!(read_all(&book).0.last().unwrap().event, Some(4));
}

/// `repair` saved the tail before it took the lock: beside a living writer it left a file behind
/// and then failed.
#[test]
fn repair_beside_a_writer_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { durability: Durability::Manual, ..Options::default() };
    let book = options.open(dir.path(), Mode::Create).unwrap();
    book.append(1, b"x").unwrap();
    let mut torn = fs::read(dir.path().join("book.log")).unwrap();
    torn.truncate(30);
    fs::write(dir.path().join("book.log"), torn).unwrap();
    let names = || fs::read_dir(dir.path()).unwrap().count();
    let before = names();
    refused(repair(dir.path(), &options), ErrorKind::Locked);
    assert_eq!(names(), before);
}

/// The thread that syncs at intervals kept the handle alive while it worked: a book that was
/// dropped stayed locked a moment longer.
#[test]
fn a_dropped_book_is_unlocked_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let durability = Durability::Interval(Duration::from_millis(1));
    let options = Options { durability, ..Options::default() };
    for round in 1..=150 {
        let book = options.open(dir.path(), Mode::Append).unwrap();
        assert_eq!(book.append(1, &[1; 3000]).unwrap(), round);
        std::thread::sleep(Duration::from_micros(900 + 10 * (round % 40)));
        drop(book);
    }
    assert_eq!(Book::open(dir.path()).unwrap().last().unwrap(), 150);
}

/// A range that begins behind damage could not be read with damage passed over: finding its begin
/// walked over the damage and gave up.
#[test]
fn a_range_behind_damage_is_read_when_damage_is_passed_over() {
    let (storage, options) = memory();
    let all = events(20, 50);
    make(Path::new(BOOK), &options, &all);
    let mut bytes = log(1, &all);
    bytes[borders(&all)[4] as usize] ^= 1;
    write_file(&storage, Path::new("/book/book.log"), &bytes);
    let book = options.open(BOOK, Mode::Read).unwrap();
    refused(book.iter(9, Some(12)), ErrorKind::Corrupt);
    let deeds = common::drain(book.cursor(9, Some(12), OnCorrupt::Skip).unwrap()).unwrap();
    let numbers: Vec<_> = deeds.iter().map(|deed| deed.event).collect();
    assert_eq!(numbers, [Some(9), Some(10), Some(11)]);
    assert_eq!(contents(&deeds), all[8..11]);
}

/// A forged mark: its newest slot with some fields overwritten and the checksum made right again.
fn forge(mark: &[u8], fields: &[(usize, u64)]) -> Vec<u8> {
    let mut slot = mark[512..640].to_vec();
    for (at, value) in fields {
        slot[*at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    let sum = crc32(&slot[..124]);
    slot[124..].copy_from_slice(&sum.to_le_bytes());
    slot
}

/// Found by fuzzing (target `mark`): an intact mark that named 2^64 - 1 entries of the index made
/// opening panic, because their place in the file was computed before anybody looked whether the
/// file has them. One that had been stored 2^64 - 1 times made closing panic.
#[test]
fn impossible_counts_in_a_mark_are_not_counted_with() {
    let (storage, options) = memory();
    let written: Vec<_> = (0..4).map(|i| (i, vec![7; 60_000])).collect();
    make(Path::new(BOOK), &options, &written);
    let mark_path = Path::new("/book/.deedbook/mark");
    let mark = read_file(&storage, mark_path);
    for (at, value) in [(56, u64::MAX), (56, u64::MAX / 24 + 2), (56, 1 << 40), (8, u64::MAX)] {
        write_file(&storage, mark_path, &forge(&mark, &[(at, value)]));
        let book = options.open(BOOK, Mode::Read).unwrap();
        assert_eq!(contents(&read_all(&book).0), written, "{value} at byte {at}");
        assert_eq!(book.read(3).unwrap().jam, written[2].1);
        options.open(BOOK, Mode::Append).unwrap().close().unwrap();
    }
    assert!(check(BOOK, &options).ok());
}

/// Found by fuzzing (target `mark`): a mark whose first event was near 2^64 made opening panic when
/// the log ended below it, in the sum that names the first deed lost.
#[test]
fn a_lost_deed_beyond_all_numbers_is_no_panic() {
    let (storage, options) = memory();
    let written = events(6, 30);
    make(Path::new(BOOK), &options, &written);
    let mark_path = Path::new("/book/.deedbook/mark");
    // One deed acknowledged, it says, that ends far behind the six there are.
    let mark = read_file(&storage, mark_path);
    let fields = [(16, u64::MAX - 2), (24, 1), (32, 1 << 20), (40, 16)];
    write_file(&storage, mark_path, &forge(&mark, &fields));
    assert_eq!(check(BOOK, &options).verdict, Verdict::Corrupt);
    refused(options.open(BOOK, Mode::Append), ErrorKind::LostRecords);
    assert_eq!(log(1, &written), read_file(&storage, Path::new("/book/book.log")));
}

/// The layouts share one magic, and `slots` was told by a checksummed slot at byte 0 or 4096 alone.
/// So a payload with such a slot in the right place made its own log unreadable.
#[test]
fn a_payload_that_holds_a_header_slot_does_not_change_the_layout() {
    let mut slot = [&b"KOOB\x01\0\0\0"[..], &[0; 36]].concat();
    let sum = crc32(&slot);
    slot.extend(sum.to_le_bytes());
    let mut jam = vec![7; 9000];
    let at = 4096 - 16 - 12;
    jam[at..at + slot.len()].copy_from_slice(&slot);
    let written = vec![(1, jam), (2, b"behind".to_vec())];
    let bytes = log(1, &written);
    assert_eq!(bytes[4096..4096 + 48], slot);
    let (_, options) = bare(&bytes);
    let book = options.open(BOOK, Mode::Append).unwrap();
    assert_eq!(contents(&read_all(&book).0), written);
}

/// Found by a long run of the damage matrix: one bit of a length flipped, so that it equalled the
/// length of the next deed, which lies just where the trailer would be. The two agreed, the damaged
/// deed was taken for 8 bytes longer, and the intact deed behind it was left out.
#[test]
fn a_damaged_length_that_meets_the_next_length_hides_no_deed() {
    let written = vec![(1, vec![1; 30]), (2, vec![2; 30]), (3, vec![3; 38]), (4, vec![4; 5])];
    let ends = borders(&written);
    let mut bytes = log(1, &written);
    let at = ends[1] as usize;
    assert_eq!(bytes[at], 34);
    bytes[at] ^= 8;
    let (_, options) = bare(&bytes);
    let book = options.open(BOOK, Mode::Read).unwrap();
    let numbers: Vec<_> = read_past_damage(&book).iter().map(|deed| deed.event).collect();
    assert_eq!(numbers, [Some(1), Some(3), Some(4)]);
    assert_eq!(check(BOOK, &options).damages[0].records_lost, Some(1));
}
