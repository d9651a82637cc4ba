//! Lengths, numbers and sizes at their limits, and headers of every kind.

use crate::prelude::*;
use crate::support::formats::range;

pub const BOOK: &str = "/book";

/// A log without a sidecar.
pub fn with_log(bytes: &[u8]) -> (Memory, Options) {
    let (storage, options) = memory();
    storage.create_dir(Path::new(BOOK)).unwrap();
    write_file(&storage, Path::new("/book/book.log"), bytes);
    (storage, options)
}

fn bytes_of(storage: &Memory) -> Vec<u8> {
    common::read_file(storage, Path::new("/book/book.log"))
}

// Promise: header.
#[test]
fn a_nonempty_file_without_full_header_is_refused() {
    for len in 0..16 {
        let (storage, options) = with_log(&header(1)[..len]);
        refused(options.open(BOOK, Mode::Read), ErrorKind::NotALog);
        refused(options.open(BOOK, Mode::Create), ErrorKind::AlreadyExists);
        if len > 0 {
            refused(options.open(BOOK, Mode::Append), ErrorKind::NotALog);
            assert_eq!(bytes_of(&storage), header(1)[..len]);
            assert!(!storage.is_dir(Path::new("/book/.deedbook")), "left something");
        } else {
            assert_eq!(options.open(BOOK, Mode::Append).unwrap().append(0, b"").unwrap(), 1);
        }
    }
    let (_, options) = with_log(&header(0));
    assert_eq!(options.open(BOOK, Mode::Read).unwrap().bounds().unwrap(), None);
}

#[test]
fn the_first_save_resets_an_empty_logs_number() {
    let (storage, options) = with_log(&header(41));
    let book = options.open(BOOK, Mode::Append).unwrap();
    assert_eq!((book.bounds().unwrap(), book.epoch().unwrap()), (None, 40));
    let mut batch = Batch::<BookFormat>::new(100);
    batch.push(1, b"x").unwrap();
    assert_eq!(book.append_batch(&batch, Some(8), Some(7)).unwrap(), 8);
    book.close().unwrap();
    assert_eq!(bytes_of(&storage), log(8, &[(1, b"x".to_vec())]));
}

// Promise: lengths-lie.
#[test]
fn a_deed_length_below_four_is_no_deed() {
    let good = log(1, &[(1, b"x".to_vec()), (2, Vec::new())]);
    assert_eq!(check(BOOK, &with_log(&good).1).records, 2);
    for len in 0..4u64 {
        let body = [&len.to_le_bytes()[..], &7u32.to_le_bytes()].concat();
        let bad = [&body[..], &crc32(&body).to_le_bytes(), &len.to_le_bytes()].concat();
        let (_, options) = with_log(&[&good[..], &bad].concat());
        assert_eq!(options.open(BOOK, Mode::Append).unwrap().last().unwrap(), 2, "{len}");
        let (_, options) = with_log(&[&good[..], &bad, &deed(3, b"beyond")].concat());
        refused(options.open(BOOK, Mode::Append), ErrorKind::Corrupt);
    }
}

// Promise: large.
#[test]
fn event_numbers_end_before_they_overflow() {
    let (_, options) = memory();
    let options = options.epoch(u64::MAX - 3);
    let book = options.open(BOOK, Mode::Append).unwrap();
    assert_eq!(book.append(1, b"a").unwrap(), u64::MAX - 2);
    let mut two = Batch::<BookFormat>::new(100);
    two.push(1, b"b").unwrap();
    two.push(1, b"c").unwrap();
    refused(book.append_batch(&two, None, None), ErrorKind::TooLarge);
    assert_eq!(book.append(1, b"d").unwrap(), u64::MAX - 1);
    refused(book.append(1, b"e"), ErrorKind::TooLarge);
    book.close().unwrap();
    let book = options.open(BOOK, Mode::Append).unwrap();
    assert_eq!(book.bounds().unwrap(), Some(u64::MAX - 2..=u64::MAX - 1));
    assert_eq!(book.read(u64::MAX - 1).unwrap().jam, b"d");
    refused(book.read(u64::MAX), ErrorKind::OutOfRange);
    refused(book.append(1, b"e"), ErrorKind::TooLarge);
    for (start, stop) in [(0, None), (u64::MAX, None), (0, Some(u64::MAX)), (5, Some(3))] {
        let count = book.iter(range(Some(start), stop)).unwrap().map(Result::unwrap).count();
        assert_eq!(count, if start == 0 { 2 } else { 0 }, "{start} {stop:?}");
    }
    assert_eq!(book.splits(1, ..).unwrap().len(), 1);
}

/// Additions overflowed if the first number of the header plus the number of deeds passed 2^64.
#[test]
fn a_header_whose_numbers_overflow_is_refused() {
    for (first, ok) in [(u64::MAX, false), (u64::MAX - 1, false), (u64::MAX - 2, true)] {
        let (_, options) = with_log(&log(first, &[(1, b"x".to_vec()), (2, b"y".to_vec())]));
        for mode in [Mode::Read, Mode::Append] {
            match options.open(BOOK, mode) {
                Ok(book) if ok => assert_eq!(book.last().unwrap(), first + 1),
                Ok(book) => {
                    assert_eq!(mode, Mode::Read);
                    refused(book.last(), ErrorKind::Corrupt);
                }
                Err(error) => assert!(!ok && error.kind() == ErrorKind::Corrupt, "{error}"),
            }
        }
    }
    let (_, options) = memory();
    let options = options.epoch(u64::MAX);
    refused(options.open(BOOK, Mode::Append), ErrorKind::InvalidArgument);
}

/// Linux writes at most 0x7ffff000 bytes at once. Takes 2.2 GB of disk and 5 GB of memory.
// Promise: large.
#[test]
fn an_event_over_two_gibibytes() {
    if std::env::var_os("DEEDBOOK_SLOW").is_none() {
        common::skip::skipped("needs 2.2 GB of disk and 5 GB of memory; set DEEDBOOK_SLOW=1");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new().durability(Durability::Manual);
    let len = (2usize << 30) + 4096 + 7;
    {
        let mut jam = vec![0x5a; len];
        (jam[0], jam[0x7fff_f000], jam[len - 1]) = (1, 2, 3);
        let book = options.open(dir.path(), Mode::Create).unwrap();
        assert_eq!(book.append(1, &jam).unwrap(), 1);
        assert_eq!(book.append(2, b"beyond").unwrap(), 2);
        book.close().unwrap();
    }
    assert_eq!(
        fs::metadata(dir.path().join("book.log")).unwrap().len(),
        16 + 24 * 2 + 6 + len as u64
    );
    fs::remove_dir_all(dir.path().join(".deedbook")).unwrap();
    let book = Book::open(dir.path()).unwrap();
    assert_eq!(book.recovery().verdict, Verdict::Clean);
    let mut deeds = book.cursor(.., deedbook::OnCorrupt::Raise).unwrap();
    {
        let deed = deeds.next().unwrap().unwrap();
        assert_eq!(deed.jam.len(), len);
        assert_eq!((deed.jam[0], deed.jam[0x7fff_f000], deed.jam[len - 1]), (1, 2, 3));
        assert!(deed.jam[1..0x7fff_f000].iter().all(|&byte| byte == 0x5a));
    }
    assert_eq!(deeds.next().unwrap().unwrap().jam, b"beyond");
    assert!(check(dir.path(), &options).ok());
}
