//! Reading: forwards with and without checksums, backwards, verifying; next to plain reads of the same bytes. Checksums
//! alone: the crates choose the processor's instructions at run time, next to a table. `cargo bench -p deedbook --bench
//! scan`

#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing, clippy::print_stdout)]

mod common;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use common::{Bench, JAM_BYTES, count, random_bytes, timed};
use deedbook::Batch;
use deedbook::Durability;
use deedbook::book::BookFormat;
use deedbook::book::{Book, Options};
use deedbook::{Mode, OnCorrupt, book};

fn write(path: &Path, data: &[u8], size: usize) {
    let options = Options::new().durability(Durability::None);
    let book = options.open(path, Mode::Create).unwrap();
    let mut batch = Batch::<BookFormat>::new(deedbook::book::Options::DEED_BYTES_MAX);
    for part in data.chunks(1000 * size) {
        batch.clear();
        part.chunks_exact(size).for_each(|jam| batch.push(0, jam).unwrap());
        book.append_unsynced(&batch).unwrap();
    }
    book.close().unwrap();
}

/// Read a file in blocks as large as the scanner's, and call `each` for every block.
fn read_blocks(path: &Path, mut each: impl FnMut(&[u8])) {
    let mut file = File::open(path.join(book::LOG_NAME)).unwrap();
    let mut block = vec![0; 256 << 10];
    loop {
        match file.read(&mut block).unwrap() {
            0 => break,
            read => each(&block[..read]),
        }
    }
}

fn walk(mut cursor: deedbook::Cursor<deedbook::book::BookFormat>) -> usize {
    let (mut deeds, mut bytes) = (0, 0);
    while let Some(deed) = cursor.next().unwrap() {
        deeds += 1;
        bytes += deed.jam.len();
    }
    assert!(bytes > 0);
    deeds
}

fn scan(name: &'static str, deeds: usize, size: usize) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    write(&path, &random_bytes(deeds * size, 5), size);
    let (path, book) = (&path, &Book::open(&path).unwrap());
    let mut bench = Bench::new(name);
    bench.case("floor: read in blocks", |_| {
        timed(|| {
            let mut bytes = 0;
            read_blocks(path, |block| bytes += block.len());
            assert!(bytes > deeds * size);
            deeds
        })
    });
    bench.case("floor: read in blocks, CRC-32 of each block", |_| {
        timed(|| {
            let mut sum = 0;
            read_blocks(path, |block| sum ^= crc32fast::hash(block));
            std::hint::black_box(sum);
            deeds
        })
    });
    bench.case("cursor, CRC checked", |_| {
        timed(|| walk(book.cursor(.., OnCorrupt::Raise).unwrap()))
    });
    bench.case("cursor, lengths only", |_| {
        timed(|| walk(book.cursor(.., OnCorrupt::Raise).unwrap().without_checksums()))
    });
    bench.case("iter, an allocation per deed", |_| {
        timed(|| book.iter(..).unwrap().map(|deed| deed.unwrap().jam.len().min(1)).sum())
    });
    bench.case("cursor backwards, CRC checked", |_| {
        timed(|| {
            let mut cursor = book.cursor_back(..).unwrap();
            let mut deeds = 0;
            while cursor.next().unwrap().is_some() {
                deeds += 1;
            }
            deeds
        })
    });
    bench.case("verify", |_| {
        timed(|| {
            let report = Options::default().verify(path).unwrap();
            report.records as usize
        })
    });
    #[cfg(feature = "arrow")]
    bench.case("Arrow record batches of 64 Ki rows, CRC checked", |_| {
        timed(|| {
            let cursor = book.cursor(.., OnCorrupt::Raise).unwrap();
            let columns = ["event", "mug", "jam"];
            deedbook::Batches::new(cursor, &columns, 1 << 16, 16 << 20)
                .unwrap()
                .map(|batch| batch.unwrap().num_rows())
                .sum()
        })
    });
    bench.run();
}

/// Checksums of blocks in memory, in bytes.
fn sums(name: &'static str, block: usize) {
    let data = &random_bytes(64 << 10, 9);
    let rounds = count(10_000);
    let mut bench = Bench::new(name);
    let mut case = |name, sum: fn(&[u8]) -> u64| {
        bench.case(name, move |_| {
            timed(|| {
                let sums = (0..rounds).flat_map(|_| data.chunks_exact(block).map(sum));
                std::hint::black_box(sums.fold(0, |all, sum| all ^ sum));
                rounds * data.len()
            })
        });
    };
    case("floor: CRC-32 by a table", |block| {
        let mut table = crc32fast::Hasher::internal_new_baseline(0, 0);
        table.update(block);
        table.finalize().into()
    });
    case("CRC-32, as in a book and a ledger", |block| crc32fast::hash(block).into());
    case("CRC-32C, as in a WAL", |block| crc32c::crc32c(block).into());
    #[cfg(feature = "nostr")]
    case("CRC-64, as in an event store", |block| {
        crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Xz, block)
    });
    bench.run();
}

fn main() {
    sums("checksums, 256 bytes", 256);
    sums("checksums, 64 KiB", 64 << 10);
    scan("scan, 256 bytes", count(200_000), JAM_BYTES);
    scan("scan, 64 bytes", count(1_000_000), 64);
}
