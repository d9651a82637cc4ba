//! Hostile lengths never make the library reserve more memory than there are bytes to read.
#![allow(unsafe_code, dead_code)]

use std::io::{Seek, SeekFrom};

use crate::counting::peak_of;
use crate::support::formats::{book, framing, wal};
use crate::support::prelude::*;
use framing::crc32;

const SEGMENTS: wal::WalFormat = wal::WalFormat::segmented("wal-segments", 64 << 20);
const FORMATS: [&dyn Format; 3] = [&book::BOOK, &wal::SINGLE, &SEGMENTS];

const FIXED_BYTES: u64 = 4 << 20;

/// A mark slot with these numbers, intact for the codec; see `sidecar/mark.rs`.
fn mark(numbers: [u64; 5], sums: [u32; 2], index: (u64, u64)) -> Vec<u8> {
    let mut slot = b"DBMK\x01\0\0\0".to_vec();
    numbers.iter().for_each(|number| slot.extend(number.to_le_bytes()));
    sums.iter().for_each(|sum| slot.extend(sum.to_le_bytes()));
    slot.extend(index.0.to_le_bytes());
    slot.extend(index.1.to_le_bytes());
    slot.resize(124, 0);
    let crc = crc32(&slot);
    slot.extend(crc.to_le_bytes());
    slot
}

fn sparse(path: &Path, len: u64, parts: &[(u64, &[u8])]) {
    let mut file = fs::File::create(path).unwrap();
    file.set_len(len).unwrap();
    for (at, bytes) in parts {
        file.seek(SeekFrom::Start(*at)).unwrap();
        file.write_all(bytes).unwrap();
    }
}

/// Makes every call that reads a log of unknown origin, and ignores the results.
fn handle(format: &dyn Format, at: &At, how: How) {
    let _ = format.verify(at, how);
    if let Ok(log) = format.open(at, Mode::Read, how) {
        read(&*log);
        let _ = log.refresh();
    }
    let target = at.path.with_extension("salvaged");
    let _ = format.salvage(at, &target, how);
    let _ = fs::remove_dir_all(&target);
    let _ = fs::remove_file(&target);
    if let Ok(log) = format.open(at, Mode::Append, how) {
        let _ = log.append(1, b"one more");
        read(&*log);
    }
    let _ = format.repair(at, how);
}

fn read(log: &dyn Log) {
    for skip in [false, true] {
        let _ = log.forward(None, None, skip);
        let _ = log.splits(1 << 20, None, None, skip);
    }
    let _ = log.backward(None, None);
    for ordinal in [0, 1, u64::MAX] {
        let _ = log.read(ordinal);
    }
}

/// A log below a directory, its bytes given as a hole with some parts, and a mark or none.
struct Hostile<'a> {
    format: &'a dyn Format,
    name: &'a str,
    how: How,
    len: u64,
    parts: &'a [(u64, &'a [u8])],
    mark: &'a [u8],
}

impl Hostile<'_> {
    fn check(&self, dir: &Path) {
        let Self { format, name, how, len, parts, mark } = *self;
        fs::create_dir_all(dir).unwrap();
        let at = At::disk(format.path_in(dir));
        let sidecar = format.sidecar(&at.path);
        fs::create_dir_all(&sidecar).unwrap();
        sparse(&format.first_file(&at.path), len, parts);
        if !mark.is_empty() {
            fs::write(sidecar.join("mark"), mark).unwrap();
            fs::write(sidecar.join("index"), vec![0xff; 4096]).unwrap();
        }
        let limit = how.record_bytes_max.unwrap_or(format.framing().limit() as u64);
        let bound = len.min(limit) + FIXED_BYTES;
        let peak = peak_of(|| handle(format, &at, how));
        let what = format!("{}, {name}, {len} bytes", format.name());
        assert!(peak <= bound, "{what}: {peak} bytes reserved, bound {bound}");
        fs::remove_dir_all(dir).unwrap();
    }
}

/// Heads claiming this many bytes, and the trailer of a format with trailers.
fn claims(framing: Framing, claimed: u64) -> (Vec<u8>, Vec<u8>) {
    match framing {
        Framing::Book | Framing::Slots => {
            (claimed.to_le_bytes().to_vec(), claimed.to_le_bytes().to_vec())
        }
        Framing::Wal | Framing::Toy => {
            ([&[1; 4][..], &(claimed as u32).to_le_bytes()].concat(), vec![7; 8])
        }
    }
}

// Promise: lengths-lie.
#[test]
fn hostile_lengths_never_reserve_more_than_the_file() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("log");
    for format in FORMATS {
        let framing = format.framing();
        let (header, good) = (framing.file_header(1), framing.encode(9, b"good"));
        let (start, next) = (header.len() as u64, (header.len() + good.len()) as u64);
        let usual = Hostile { format, name: "", how: MANUAL, len: 0, parts: &[], mark: &[] };
        let lens = [0, 1, 3, 5, 1000, 1 << 20, (1 << 32) - 1, 1 << 32, (1 << 32) + 1, 1 << 40];
        let most = [1 << 62, u64::MAX - 20, u64::MAX - 19, u64::MAX - 4, u64::MAX];
        let fits = |claimed: &u64| framing == Framing::Book || *claimed < 1 << 32;
        for claimed in lens.into_iter().chain(most).filter(fits) {
            let (head, trailer) = claims(framing, claimed);
            let head = [&head[..], &[7; 50]].concat();
            let name = format!("length {claimed}");
            for len in [60, 200, 70_000, 9 << 20] {
                // As the first record, after a good one, and with a matching trailer.
                let first = &head[..head.len().min((len - start - 2) as usize)];
                let alone = [(0, &header[..]), (start, first)];
                Hostile { name: &name, len, parts: &alone, ..usual }.check(&dir);
                if len > 100 {
                    let after =
                        [(0, &header[..]), (start, &good), (next, &head), (len - 8, &trailer)];
                    Hostile { name: &name, len, parts: &after, ..usual }.check(&dir);
                }
            }
        }
        // A damaged record that fills the whole file; within the limit, and beyond.
        for limit in [None, Some(1 << 20)] {
            let how = How { record_bytes_max: limit, ..MANUAL };
            let len = 48u64 << 20;
            let around = framing.around() as u64 - if framing == Framing::Book { 4 } else { 0 };
            let (head, trailer) = claims(framing, len - start - around);
            let parts = [(0, &header[..]), (start, &head), (len - 8, &trailer)];
            Hostile { name: "whole file", how, len, parts: &parts, ..usual }.check(&dir);
        }
        // A wall of heads: each claims the rest of the file, and no record ends at the claimed byte.
        let wall: Vec<u8> = (0..4000u64).flat_map(|i| claims(framing, 70_000 - 17 * i).0).collect();
        let parts = [(0, &header[..]), (start, &good), (next, &wall)];
        Hostile { name: "wall of heads", len: 100_000, parts: &parts, ..usual }.check(&dir);
        // Marks and indexes with absurd numbers.
        let sum = match framing {
            // Slots have no checksum.
            Framing::Slots => 0,
            Framing::Book => u32::from_le_bytes(*good[good.len() - 12..].first_chunk().unwrap()),
            Framing::Wal | Framing::Toy => u32::from_le_bytes(*good.first_chunk().unwrap()),
        };
        let parts = [(0, &header[..]), (start, &good), (next, &good)];
        for number in [1, 1 << 20, 1 << 40, u64::MAX / 24, u64::MAX / 24 + 1, u64::MAX] {
            for numbers in [
                [1, 1, 1, next, start],
                [1, 1, number, next, start],
                [1, number, number, next, start],
                [1, 1, 1, number, start],
                [1, 1, 1, number, number],
                [number, 1, 1, number, number.wrapping_sub(40)],
            ] {
                let mark = mark(numbers, [sum, sum], (number, number));
                let name = "mark";
                Hostile { name, len: 300, parts: &parts, mark: &mark, ..usual }.check(&dir);
            }
        }
    }
    // Metadata of any size is not read whole.
    let dir = root.path().join("meta");
    Book::create(&dir).unwrap().close().unwrap();
    sparse(&dir.join("meta.bin"), 1 << 40, &[]);
    let peak = peak_of(|| assert!(Book::open(&dir).unwrap().meta().is_err()));
    assert!(peak <= FIXED_BYTES, "{peak} bytes reserved");
    // Proves that the counter counts.
    assert!(peak_of(|| drop(vec![1u8; 10 << 20])) >= 10 << 20);
}
