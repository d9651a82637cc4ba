//! Opening: with the sidecar, without it, without the index, and after the death of the writer; a WAL by the number of
//! its segments. `cargo bench -p deedbook --bench recover`

#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing, clippy::print_stdout)]

mod common;

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use common::{Bench, count, random_bytes, timed};
use deedbook::Batch;
use deedbook::Durability;
use deedbook::book::BookFormat;
use deedbook::book::{Book, Options};
use deedbook::wal::{self, WalFormat};
use deedbook::{Mode, OnCorrupt};

const SIZE: usize = 64;
const DEATH: &str = "DEEDBOOK_BENCH_DIES";

fn deeds() -> usize {
    count(3_000_000)
}

/// Append without a sync; the caller decides what happens to the book.
fn fill(path: &Path) -> Book {
    let options = Options::new().durability(Durability::Manual);
    let book = options.open(path, Mode::Create).unwrap();
    let jam = random_bytes(SIZE, 6);
    let mut batch = Batch::<BookFormat>::new(deedbook::book::Options::DEED_BYTES_MAX);
    (0..1000).for_each(|_| batch.push(0, &jam).unwrap());
    for _ in 0..deeds() / 1000 {
        book.append_unsynced(&batch).unwrap();
    }
    book.append(0, &jam).unwrap();
    book
}

/// A log whose writer died: another process exits with the book open.
fn orphan(path: &Path) {
    let mut command = Command::new(env::current_exe().unwrap());
    assert!(command.env(DEATH, path).status().unwrap().success());
}

/// A closed WAL of so many segments of 64 KiB.
fn segments(path: &Path, segments: usize) -> wal::Options {
    let layout = Some(wal::Layout::Segmented { segment_bytes: 64 << 10 });
    let options = wal::Options::new().layout(layout).durability(Durability::Manual);
    let log = options.open(path, Mode::Create).unwrap();
    let record = random_bytes(1008, 7);
    let mut batch = Batch::<WalFormat>::new(wal::Options::RECORD_BYTES_MAX);
    for _ in 0..63 {
        batch.push(&record).unwrap();
    }
    for _ in 0..segments {
        log.append_batch(&batch).unwrap();
    }
    log.close().unwrap();
    options
}

/// Opens, clean and after the sidecar was lost.
fn by_segments() {
    let dir = tempfile::tempdir().unwrap();
    let mut bench = Bench::new("open a WAL, segments of 64 KiB");
    let counts = [
        (1, ["1 segment, clean, opens", "1 segment, without the sidecar, opens"]),
        (10, ["10 segments, clean, opens", "10 segments, without the sidecar, opens"]),
        (100, ["100 segments, clean, opens", "100 segments, without the sidecar, opens"]),
        (1000, ["1000 segments, clean, opens", "1000 segments, without the sidecar, opens"]),
    ];
    for (count, names) in counts {
        for (name, is_clean) in names.into_iter().zip([true, false]) {
            let path = dir.path().join(name);
            let options = segments(&path, count);
            bench.case(name, move |_| {
                let opens = (0..10).map(|_| {
                    if !is_clean {
                        fs::remove_dir_all(path.join(".deedbook")).unwrap();
                    }
                    let begun = Instant::now();
                    let log = options.open(&path, Mode::Append).unwrap();
                    let time = begun.elapsed();
                    log.close().unwrap();
                    time
                });
                (10, opens.sum())
            });
        }
    }
    bench.run();
}

fn main() {
    if let Some(path) = env::var_os(DEATH) {
        let _book = fill(Path::new(&path));
        // No destructor runs: nothing is synced, truncated or marked.
        std::process::exit(0);
    }
    let dir = tempfile::tempdir().unwrap();
    let (clean, bare, unindexed) =
        (&dir.path().join("clean"), &dir.path().join("bare"), &dir.path().join("unindexed"));
    for path in [clean, bare, unindexed] {
        fill(path).close().unwrap();
    }
    fs::remove_dir_all(bare.join(".deedbook")).unwrap();
    fs::remove_file(unindexed.join(".deedbook/index")).unwrap();
    let all = deeds() + 1;
    let middle = all as u64 / 2;

    let mut bench = Bench::new("recover, 3 M deeds of 64 bytes");
    bench.case("floor: read the file in blocks", |_| {
        timed(|| {
            let mut file = fs::File::open(clean.join("book.log")).unwrap();
            let mut block = vec![0; 256 << 10];
            while std::io::Read::read(&mut file, &mut block).unwrap() > 0 {}
            all
        })
    });
    bench.case("open without the sidecar, deeds", |_| {
        timed(|| Book::open(bare).unwrap().len().unwrap() as usize)
    });
    bench.case("open for appending without the sidecar, deeds", |_| {
        let (done, time) = timed(|| Book::append_to(bare).unwrap().len().unwrap() as usize);
        fs::remove_dir_all(bare.join(".deedbook")).unwrap();
        (done, time)
    });
    bench.case("hop to the middle without the index, deeds", |_| {
        let book = Book::open(unindexed).unwrap();
        timed(|| {
            assert_eq!(book.read(middle).unwrap().event, Some(middle));
            all
        })
    });
    bench.case("walk all, lengths only, deeds", |_| {
        let book = Book::open(clean).unwrap();
        timed(|| {
            let cursor = book.cursor(.., OnCorrupt::Raise).unwrap();
            let mut cursor = cursor.without_checksums();
            let mut deeds = 0;
            while cursor.next().unwrap().is_some() {
                deeds += 1;
            }
            deeds
        })
    });
    bench.case("recover for appending after a death, deeds", |dir| {
        let path = dir.join("log");
        orphan(&path);
        timed(|| Book::append_to(&path).unwrap().len().unwrap() as usize)
    });
    bench.case("recover for reading after a death, deeds", |dir| {
        let path = dir.join("log");
        orphan(&path);
        timed(|| Book::open(&path).unwrap().len().unwrap() as usize)
    });
    bench.run();

    let mut bench = Bench::new("open, 3 M deeds of 64 bytes");
    bench.case("for reading, clean, opens", |_| {
        timed(|| {
            (0..100)
                .for_each(|_| assert_eq!(Book::open(clean).unwrap().len().unwrap(), all as u64));
            100
        })
    });
    bench.case("for appending, clean, opens", |_| {
        let books = (0..100).map(|_| {
            let begun = Instant::now();
            let book = Book::append_to(clean).unwrap();
            let time = begun.elapsed();
            book.close().unwrap();
            time
        });
        (100, books.sum())
    });
    bench.case("read a deed by its number, reads", |_| {
        let book = Book::open(clean).unwrap();
        timed(|| {
            for i in 0..10_000u64 {
                let event = 1 + i * 7_654_321 % all as u64;
                assert_eq!(book.read(event).unwrap().event, Some(event));
            }
            10_000
        })
    });
    bench.run();
    by_segments();
}
