//! Bugs that were found and mended; each test opens with its story.

use std::fs;
use std::path::Path;
use std::time::Duration;

use deedbook::book::{Batch, Book, Mode, OnCorrupt, Options, repair};
use deedbook::storage::{Memory, Storage};
use deedbook::{Durability, ErrorKind, Verdict};

use crate::support::common;
use common::{
    Event, FORCED, Random, borders, check, contents, crc32, deed, event_of, events, log, make,
    memory, read_all, read_file, read_past_damage, refused, rescue, restore, snapshot, write_file,
};

const BOOK: &str = "/book";
const LOG: &str = "/book/book.log";

/// A log without anything beside it.
fn bare(bytes: &[u8]) -> (Memory, Options) {
    let (storage, options) = memory();
    storage.create_dir(Path::new(BOOK)).unwrap();
    write_file(&storage, Path::new("/book/book.log"), bytes);
    (storage, options)
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
    assert_eq!((report.verdict, report.ok(), report.records), (Verdict::Corrupt, false, 4));
    assert_eq!((report.bounds, report.damages[0].offset), (Some((1, 4)), 8));
    refused(options.open(BOOK, Mode::Append), ErrorKind::Corrupt);
    let book = options.open(BOOK, Mode::Read).unwrap();
    refused(book.iter(0, None), ErrorKind::Corrupt);
    assert_eq!(read_past_damage(&book).last().unwrap().event, Some(4));
}

/// `repair` saved the tail before it took the lock: beside a living writer it left a file
/// and then failed.
#[test]
fn repair_beside_a_writer_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new().durability(Durability::Manual);
    let book = options.open(dir.path(), Mode::Create).unwrap();
    book.append(1, b"x").unwrap();
    let mut torn = fs::read(dir.path().join("book.log")).unwrap();
    torn.truncate(30);
    fs::write(dir.path().join("book.log"), torn).unwrap();
    let names = || fs::read_dir(dir.path()).unwrap().count();
    let before = names();
    refused(repair(dir.path(), &options, FORCED), ErrorKind::Locked);
    assert_eq!(names(), before);
}

/// The thread that syncs at intervals kept the handle alive while it worked: a book that was
/// dropped stayed locked a moment longer.
#[test]
fn a_dropped_book_is_unlocked_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let durability = Durability::Interval(Duration::from_millis(1));
    let options = Options::new().durability(durability);
    for round in 1..=150 {
        let book = options.open(dir.path(), Mode::Append).unwrap();
        assert_eq!(book.append(1, &[1; 3000]).unwrap(), round);
        std::thread::sleep(Duration::from_micros(900 + 10 * (round % 40)));
        drop(book);
    }
    assert_eq!(Book::open(dir.path()).unwrap().last().unwrap(), 150);
}

/// A range that begins after damage could not be read with damage passed over: finding its begin
/// walked over the damage and gave up.
#[test]
fn a_range_after_damage_is_read_when_damage_is_passed_over() {
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
    // One deed acknowledged, it says, that ends far after the six there are.
    let mark = read_file(&storage, mark_path);
    let fields = [(16, u64::MAX - 2), (24, 1), (32, 1 << 20), (40, 16)];
    write_file(&storage, mark_path, &forge(&mark, &fields));
    assert_eq!(check(BOOK, &options).verdict, Verdict::Corrupt);
    refused(options.open(BOOK, Mode::Append), ErrorKind::LostRecords);
    assert_eq!(log(1, &written), read_file(&storage, Path::new("/book/book.log")));
}

/// The layouts share one magic, and a checksummed slot at byte 0 or 4096 passed for `slots`.
/// So a payload with such a slot in the right place made its own log unreadable.
#[test]
fn a_payload_that_holds_a_header_slot_does_not_change_the_layout() {
    let mut slot = [&b"KOOB\x01\0\0\0"[..], &[0; 36]].concat();
    let sum = crc32(&slot);
    slot.extend(sum.to_le_bytes());
    let mut jam = vec![7; 9000];
    let at = 4096 - 16 - 12;
    jam[at..at + slot.len()].copy_from_slice(&slot);
    let written = vec![(1, jam), (2, b"beyond".to_vec())];
    let bytes = log(1, &written);
    assert_eq!(bytes[4096..4096 + 48], slot);
    let (_, options) = bare(&bytes);
    let book = options.open(BOOK, Mode::Append).unwrap();
    assert_eq!(contents(&read_all(&book).0), written);
}

/// Found by a long run of the damage matrix: one bit of a length flipped, so that it equalled the
/// length of the next deed, which lies just where the trailer would be. The two agreed, the damaged
/// deed was taken for 8 bytes longer, and the intact deed after it was left out.
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

/// A log whose first `marked` deeds are acknowledged, every choice of the other `unit`s of bytes
/// lost, and zeros or other bytes in their place: every way of reading gives the same deeds, and only
/// those of the log. `lost` are chosen by chance if they are too many. Returns the states in which
/// intact deeds lie after the first damage.
fn tear(all: &[Event], marked: usize, unit: usize, stale: &[u8]) -> u64 {
    let (storage, options) = memory();
    let book = options.open(BOOK, Mode::Create).unwrap();
    for (i, (mug, jam)) in all.iter().enumerate() {
        assert_eq!(book.append(*mug, jam).unwrap(), i as u64 + 1);
        if i + 1 == marked {
            book.sync().unwrap();
        }
    }
    let mut files = snapshot(&storage, Path::new(BOOK));
    let at: Vec<_> = borders(all).into_iter().map(|at| at as usize).collect();
    let (from, end) = (at[marked], at[all.len()]);
    let whole = files[Path::new(LOG)].clone();
    assert_eq!(whole[..end], log(1, all));
    let units: Vec<_> = (from / unit..end.div_ceil(unit)).collect();
    let (every, mut random, mut beyond) = (units.len() <= 9, Random(7), 0);
    for state in 0..if every { 1 << units.len() } else { 300 } {
        let mut bytes = whole.clone();
        for (i, &number) in units.iter().enumerate() {
            let is_lost = if every { state >> i & 1 == 1 } else { random.below(4) == 0 };
            for byte in (number * unit).max(from)..(number + 1) * unit {
                if is_lost && byte < bytes.len() {
                    bytes[byte] = stale.get(byte).copied().unwrap_or(0);
                }
            }
        }
        let intact = |i: &usize| bytes[at[*i]..at[*i + 1]] == whole[at[*i]..at[*i + 1]];
        let kept = (0..all.len()).take_while(intact).count();
        beyond += u64::from((kept..all.len()).any(|i| intact(&i)));
        let what = format!("{marked} of {} acknowledged, state {state}", all.len());
        files.insert(LOG.into(), bytes);
        let (_, options) = restore(&files);
        let reader = options.open(BOOK, Mode::Read).unwrap();
        let (read, failed) = read_all(&reader);
        assert!(failed.is_none() && contents(&read) == all[..kept], "{what}: {failed:?}");
        assert_eq!(read_past_damage(&reader), read, "{what}");
        let report = check(BOOK, &options);
        let counted = (report.records, report.bounds, report.valid_end as usize);
        assert_eq!(counted, (kept as u64, Some((1, kept as u64)), at[kept]), "{what}: {report:?}");
        assert_ne!(report.verdict, Verdict::Corrupt, "{what}: {report:?}");
        rescue(Path::new(BOOK), Path::new("/rescued"), &options);
        let rescued = options.open("/rescued", Mode::Read).unwrap();
        assert_eq!(contents(&read_all(&rescued).0), all[..kept], "{what}: salvaged");
        let writer = options.open(BOOK, Mode::Append).unwrap();
        assert_eq!(contents(&read_all(&writer).0), all[..kept], "{what}: kept");
    }
    beyond
}

/// Found by a power cut on xfs, which lost one page in the middle of what was never acknowledged:
/// reading gave 407 deeds and opening for write kept 407, but `verify` counted 412, and `salvage`
/// copied them: both went on after the first damage of a torn tail wherever a length or a trailer
/// said where. There these prove nothing, and so deeds of a payload surfaced, too.
#[test]
fn a_torn_tail_ends_at_its_first_damage_for_all_who_look() {
    let stale = log(1, &events(40, 200));
    let plain = events(9, 900);
    let long: Vec<Event> = (1..8).map(|i| (i, vec![i as u8; 600])).collect();
    for stale in [&[][..], &stale] {
        assert!(tear(&plain, 3, 512, stale) > 0);
        // Head and tail intact, and only the payload lost.
        assert!(tear(&long, 2, 512, stale) > 0);
    }
    // Blocks of the index that end in the tail.
    assert!(tear(&(1..30).map(|i| (i, vec![i as u8; 9000])).collect::<Vec<_>>(), 4, 4096, &[]) > 0);
    // A payload that holds a trailer that reaches back to its deed's begin, and a deed after it.
    for before in [8, 40, 700, 1500] {
        let inner = deed(0xbad, b"inner");
        let trailer = (before as u64).to_le_bytes();
        let jam = [&vec![7; before][..], &trailer, &inner, &inner, &[9; 900]].concat();
        tear(&[event_of(1, 400), event_of(2, 400), (3, jam), event_of(4, 400)], 2, 512, &[]);
    }
}

/// Found by the crash enumerator when it was made to check what `salvage` copies: zeros passed for
/// the trailer of a deed of no length, which spans 20 bytes. So after a sector of zeros that began
/// 20 bytes before the next one, a deed in a payload was taken for one of the log.
#[test]
fn zeros_are_no_trailer_of_a_damaged_deed() {
    let first = (1, vec![1; 512 - 20 - 16 - 24]);
    let jam = [&[1; 8][..], &deed(0xbad, b"inner"), &[9; 900]].concat();
    let all = [first, (2, jam), event_of(3, 400)];
    tear(&all, 1, 512, &[]);
    let mut bytes = log(1, &all);
    bytes[512 - 20..512].fill(0);
    let (_, options) = bare(&bytes);
    let book = options.open(BOOK, Mode::Read).unwrap();
    let given = contents(&read_past_damage(&book));
    assert_eq!(given, [all[0].clone(), all[2].clone()]);
    // With the deed's own trailer gone, too, the inner one is given, for nothing tells that it is
    // none of the log's; but the zeros do not prove that it is.
    let end = borders(&all)[2] as usize;
    bytes[end - 8..end].fill(0xff);
    let (_, options) = bare(&bytes);
    let report = check(BOOK, &options);
    assert_eq!((report.records, report.uncertain), (3, 1), "{report:?}");
}

/// Found by power cuts on two loop devices at a time: a system that starts again may give a device
/// another number, and the mark of a log that was never synced, which has no deed to know it by,
/// passed for another log's. So the tail that the power cut had torn was refused as damage.
#[test]
fn a_device_with_another_number_does_not_make_a_mark_foreign() {
    let dir = tempfile::tempdir().unwrap();
    let (log_path, mark_path) = (dir.path().join("book.log"), dir.path().join(".deedbook/mark"));
    let options = Options::new().durability(Durability::Manual);
    let book = options.open(dir.path(), Mode::Create).unwrap();
    let all = events(4, 50);
    all.iter().for_each(|(mug, jam)| assert!(book.append(*mug, jam).is_ok()));
    let (mut torn, mark) = (fs::read(&log_path).unwrap(), fs::read(&mark_path).unwrap());
    drop(book);
    torn[borders(&all)[1] as usize..][..8].fill(0);
    if mark[88..96] == [0; 8] {
        common::skip::skipped("this file system does not tell when a file was made");
        return;
    }
    // Byte 72 is of the device, byte 80 of the inode.
    for (at, kept) in [(72, Some(1)), (80, None)] {
        let mut mark = mark.clone();
        mark[at] ^= 1;
        let sum = crc32(&mark[..124]);
        mark[124..128].copy_from_slice(&sum.to_le_bytes());
        fs::write(&log_path, &torn).unwrap();
        fs::write(&mark_path, &mark).unwrap();
        let opened = options.open(dir.path(), Mode::Append);
        match kept {
            Some(kept) => assert_eq!(opened.unwrap().last().unwrap(), kept),
            None => drop(refused(opened, ErrorKind::Corrupt)),
        }
    }
}

/// Found by counting what a read in the middle reads: only within a batch were blocks of the index
/// ended, so a log written in batches below 64 KiB had none, and finding a deed meant walking there.
#[test]
fn a_log_of_small_batches_has_an_index() {
    let dir = tempfile::tempdir().unwrap();
    let book = Options::default().open(dir.path(), Mode::Create).unwrap();
    for _ in 0..40 {
        let mut batch = Batch::new(1 << 20);
        (0..10).for_each(|i| batch.push(1, &[i; 1000]).unwrap());
        book.append_batch(&batch, None, None).unwrap();
    }
    book.close().unwrap();
    let index = fs::read(dir.path().join(".deedbook/index")).unwrap();
    // 400,000 bytes in blocks of 64 KiB and a little more.
    assert!(index.len() >= 16 + 5 * 24, "{} bytes", index.len());
    let report = check(dir.path(), &Options::default());
    assert_eq!((report.records, report.verdict), (400, Verdict::Clean));
}
