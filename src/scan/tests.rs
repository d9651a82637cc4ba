//! The reads of a scanner, and its verdict on a range that ends early.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;
use crate::scan::framing::Frame as _;
use crate::scan::toy::Toy;
use crate::storage::counted::Counted;

const FRAMING_BYTES: u64 = Toy::FRAMING_BYTES as u64;
const WHOLE_BLOCK: u64 = READ_BYTES as u64;
const FIRST_BLOCK: u64 = FIRST_READ_BYTES as u64;

fn codec() -> Toy {
    Toy::new(1 << 32)
}

/// Records of the given sizes, framed.
fn records(sizes: impl IntoIterator<Item = u64>) -> Counted {
    let mut file = Counted::default();
    for size in sizes {
        let before = file.bytes.len() as u64;
        codec().encode(&mut file.bytes, 7, &vec![0xff; (size - FRAMING_BYTES) as usize]);
        assert_eq!(file.bytes.len() as u64, before + size);
    }
    file
}

fn len(file: &Counted) -> u64 {
    file.bytes.len() as u64
}

#[test]
fn each_byte_is_read_once_mostly_from_memory() {
    let sizes = |n: u64| 30 + n * 37 % 9_000;
    let file = records((0..1_000).map(sizes));
    let mut scanner = Scanner::new(codec(), 0, len(&file));
    let (mut at, mut by_reading) = (0, 0);
    for n in 0..1_000 {
        let offset = match scanner.next_in_memory() {
            Some((offset, _)) => offset,
            None => {
                by_reading += 1;
                let Scanned::Record { offset, .. } = scanner.next(&file).unwrap() else { panic!() };
                offset
            }
        };
        assert_eq!((offset, scanner.position()), (at, at + sizes(n)));
        assert_eq!(scanner.bytes(), &file.bytes[at as usize..][..sizes(n) as usize]);
        at += sizes(n);
    }
    assert!(scanner.next_in_memory().is_none());
    assert!(matches!(scanner.next(&file).unwrap(), Scanned::End));
    assert_eq!(file.read(), len(&file));
    // 16, 32, 64, 128 KiB, then 256 KiB each, less the bytes kept from the block before.
    let blocks = len(&file) / WHOLE_BLOCK;
    assert!((blocks + 2..blocks + 7).contains(&file.reads()), "{} of {blocks}", file.reads());
    assert!(by_reading <= file.reads(), "{by_reading}");
}

#[test]
fn one_record_costs_one_short_read() {
    let file = records([500; 2_000]);
    let mut scanner = Scanner::new(codec(), 500 * 700, len(&file));
    assert!(matches!(scanner.next(&file).unwrap(), Scanned::Record { offset: 350_000, .. }));
    assert_eq!((file.read(), file.reads()), (FIRST_BLOCK, 1));
    scanner.seek(1_500);
    assert_eq!((scanner.position(), scanner.end()), (1_500, len(&file)));
    assert!(matches!(scanner.next(&file).unwrap(), Scanned::Record { offset: 1_500, .. }));
    assert_eq!((file.read(), file.reads()), (3 * FIRST_BLOCK, 2));
}

#[test]
fn frames_of_long_records_need_no_buffer() {
    for (size, held) in [(HELD_BYTES_MAX, true), (HELD_BYTES_MAX + 1, false), (5 << 20, false)] {
        let file = records([100, size, 100]);
        for frames_only in [false, true] {
            let mut scanner = match frames_only {
                true => Scanner::of_frames(codec(), 100, len(&file)),
                false => Scanner::new(codec(), 100, len(&file)),
            };
            let before = file.reads();
            let next = scanner.next(&file).unwrap();
            let Scanned::Record { offset: 100, frame } = next else { panic!("{next:?}") };
            // Besides the blocks, the begin and the end of the record.
            assert!(file.reads() - before <= size / WHOLE_BLOCK + 5, "{} reads", file.reads());
            assert_eq!((frame.len(), scanner.position()), (size, 100 + size));
            let whole = if held || !frames_only { size } else { 0 };
            assert_eq!(scanner.bytes().len() as u64, whole, "{size}, {frames_only}");
            // The scanner continues after the record.
            assert!(matches!(scanner.next(&file).unwrap(), Scanned::Record { .. }));
            assert!(matches!(scanner.next(&file).unwrap(), Scanned::End));
        }
    }
}

#[test]
fn a_shrinking_file_is_no_damage() {
    let mut file = records([5 << 20]);
    for reads in 1..20 {
        file.reads_max = Some(file.reads() + reads);
        let next = Scanner::of_frames(codec(), 0, len(&file)).next(&file).unwrap();
        let Scanned::Stop { why: Stop::Incomplete { need, .. }, .. } = next else {
            panic!("{reads} reads: {next:?}");
        };
        assert_eq!(need, len(&file));
    }
}

/// The head of a record in a damaged log can claim any length.
#[test]
fn a_long_record_needs_a_matching_end() {
    for (size, read) in [(WHOLE_BLOCK, WHOLE_BLOCK), (WHOLE_BLOCK + 1, FIRST_BLOCK + 8)] {
        let mut file = records([size, 100]);
        file.bytes[size as usize - 8] ^= 1;
        let next = Scanner::new(codec(), 0, len(&file)).next(&file).unwrap();
        let Scanned::Stop { offset: 0, why: Stop::Bad(bad) } = next else { panic!("{next:?}") };
        assert_eq!(bad.what, "length trailer");
        assert_eq!(file.read(), read, "{size}");
    }
}

#[test]
fn a_short_buffer_is_told_the_needed_bytes() {
    for size in [200, FIRST_BLOCK + 1, WHOLE_BLOCK + 1, 3 << 20] {
        let whole = records([100, size]);
        for left in [1, 9, size / 2, size - 1] {
            let mut file = records([100, size]);
            file.bytes.truncate((100 + left) as usize);
            let stop = |end| {
                let mut scanner = Scanner::of_frames(codec(), 100, end);
                match scanner.next(&file).unwrap() {
                    Scanned::Stop { offset: 100, why: Stop::Incomplete { need, left } } => {
                        (need, left)
                    }
                    other => panic!("{size}, {left}: {other:?}"),
                }
            };
            // A part of a head does not say how long the record is.
            let need = if left < 8 { stop(len(&file)).0 } else { size };
            assert_eq!(stop(len(&file)), (need, left), "{size}");
            // The file shrank since its end was read.
            assert_eq!(stop(len(&whole)), (need, left), "{size}");
        }
    }
    let file = records([100; 3]);
    let mut scanner = Scanner::new(codec(), 200, 350);
    assert!(matches!(scanner.next(&file).unwrap(), Scanned::Record { .. }));
    let next = scanner.next(&file).unwrap();
    let Scanned::Stop { offset: 300, why: Stop::Incomplete { need: 50, left: 0 } } = next else {
        panic!("{next:?}");
    };
}

#[test]
fn memory_for_a_long_record_is_given_back() {
    for (size, given_back) in [(700 << 10, false), (3 << 20, true)] {
        let file = records([size, 100, 100]);
        let mut scanner = Scanner::new(codec(), 0, len(&file));
        for _ in 0..3 {
            assert!(matches!(scanner.next(&file).unwrap(), Scanned::Record { .. }));
        }
        let capacity = scanner.buf.capacity() as u64;
        assert_eq!(capacity < size, given_back, "{capacity} of {size}");
        assert!(capacity <= 4 * WHOLE_BLOCK, "{capacity}");
    }
}

#[test]
fn a_reason_has_both_values() {
    let bad = |what| Bad { what, found: 255, against: "stored", expected: 16, framed_len: None };
    assert_eq!(bad("checksum").reason(), "checksum 000000ff, stored 00000010");
    assert_eq!(bad("length").reason(), "length 255, stored 16");
    let incomplete = Stop::Incomplete { need: 9, left: 2 };
    assert_eq!(incomplete.reason(), "incomplete record: 9 bytes needed, 2 there");
    assert_eq!(Stop::Blank.reason(), "unwritten: zeros where a record would begin");
    assert_eq!(Stop::Unlinked(bad("lsn")).reason(), bad("lsn").reason());
    let over = Bad { against: "limit", ..bad("length") };
    assert_eq!(Stop::Bad(over).len_beyond_limit(), Some(255));
    assert_eq!(Stop::Bad(bad("length")).len_beyond_limit(), None);
    assert_eq!(Stop::Bad(Bad { what: "mug", ..over }).len_beyond_limit(), None);
}
