//! Bugs that were found and fixed. Each test opens with its story.

use crate::limits::{BOOK, with_log as bare};
use crate::prelude::*;

/// A damaged length pointed at the start of the deed after next. Readers trusted the length, because an intact deed
/// stood there: readers and salvage skipped the deed in between.
#[test]
fn a_damaged_length_pointing_later_hides_no_deed() {
    let all = vec![event_of(1, 30), (2, vec![2; 16]), (3, vec![3; 8]), event_of(4, 30)];
    let at = borders(&all);
    let mut bytes = log(1, &all);
    // From the second deed's start to the fourth's.
    let len = at[3] - at[1] - 20;
    bytes[at[1] as usize..at[1] as usize + 8].copy_from_slice(&len.to_le_bytes());
    let (_, options) = bare(&bytes);
    let book = options.open(BOOK, Mode::Read).unwrap();
    let numbers: Vec<_> = read_past_damage(&book).iter().map(|deed| deed.event).collect();
    assert_eq!(numbers, [Some(1), Some(3), Some(4)]);
}

/// `repair` saved the tail before it took the lock: next to a living writer, `repair` left a file and then failed.
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
    refused(options.repair(dir.path(), FORCED), ErrorKind::Locked);
    assert_eq!(names(), before);
}

/// The thread that syncs at intervals kept the handle alive during a sync: a dropped book stayed locked a moment
/// longer.
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

/// The layouts share one magic, and a checksummed slot at byte 0 or 4096 counted as `slots`. A payload with a slot in
/// the right place made its own log unreadable.
#[test]
fn a_payload_with_a_slot_keeps_the_layout() {
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

/// A long run of the damage matrix found this: one flipped bit made a length equal the length of the next deed, which
/// lies at the place of the trailer. Because both agreed, the reader took the damaged deed for 8 bytes longer and left
/// out the intact deed after it.
#[test]
fn a_length_copying_the_next_hides_no_deed() {
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

/// The crash enumerator, which checked salvage, found a bug: zeros counted as the trailer of a deed of no length, which
/// spans 20 bytes. After a sector of zeros that began 20 bytes before the next sector, salvage took a deed in a payload
/// for a deed of the log.
#[test]
fn zeros_are_no_trailer_of_a_damaged_deed() {
    let first = (1, vec![1; 512 - 20 - 16 - 24]);
    let jam = [&[1; 8][..], &deed(0xbad, b"inner"), &[9; 900]].concat();
    let all = [first, (2, jam), event_of(3, 400)];
    let mut bytes = log(1, &all);
    bytes[512 - 20..512].fill(0);
    let (_, options) = bare(&bytes);
    let book = options.open(BOOK, Mode::Read).unwrap();
    let given = contents(&read_past_damage(&book));
    assert_eq!(given, [all[0].clone(), all[2].clone()]);
    // Without the outer deed's trailer, readers also return the inner deed, because nothing shows that it lies in a
    // payload. But the zeros prove nothing.
    let end = borders(&all)[2] as usize;
    bytes[end - 8..end].fill(0xff);
    let (_, options) = bare(&bytes);
    let report = check(BOOK, &options);
    assert_eq!((report.records, report.uncertain), (3, 1), "{report:?}");
}

/// Power cuts on two loop devices at a time found this: after a restart, a device may have another number. A log without
/// a sync has no deed to identify it, so the mark counted as another log's mark, and the torn tail was refused as
/// damage.
#[test]
fn a_new_device_number_keeps_the_mark_valid() {
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

/// Counting the bytes of a read in the middle found this: only a batch of 64 KiB ended a block of the index. A log of
/// smaller batches had no index, and a read walked to its deed.
#[test]
fn a_log_of_small_batches_has_an_index() {
    let dir = tempfile::tempdir().unwrap();
    let book = Options::default().open(dir.path(), Mode::Create).unwrap();
    for _ in 0..40 {
        let mut batch = Batch::<BookFormat>::new(1 << 20);
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
