//! Appending through the map, by `pwrite`, in batches and durably, next to plain writes of the same bytes. `cargo bench
//! -p deedbook --bench append`

#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing, clippy::print_stdout)]

mod common;

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;

use common::{Bench, DEED_BYTES, JAM_BYTES, count, random_bytes, timed};
use deedbook::Batch;
use deedbook::Durability;
use deedbook::Mode;
use deedbook::book::BookFormat;
use deedbook::book::{Book, Layout, Options};
use deedbook::storage::{Access, Disk, File, FileId, LockAttempt, Storage};

/// How the writes of a book reach the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// The crate's way: stores through a map of space reserved ahead.
    Map,
    /// `pwrite` into space reserved ahead.
    Reserved,
    /// `pwrite`; each write grows the file.
    Growing,
}

/// The disk, with a chosen way of writing.
#[derive(Debug)]
struct Chosen(Way);

/// A file written through one handle, while another handle reserves its space.
#[derive(Debug)]
struct ChosenFile {
    way: Way,
    file: Box<dyn File>,
    reserving: Box<dyn File>,
}

impl Storage for Chosen {
    fn open(&self, path: &Path, access: Access) -> io::Result<Box<dyn File>> {
        let (file, reserving) = (Disk.open(path, access)?, Disk.open(path, access)?);
        match self.0 {
            Way::Map => Ok(file),
            way => Ok(Box::new(ChosenFile { way, file, reserving })),
        }
    }

    fn create_new(&self, path: &Path, mode: u32) -> io::Result<Box<dyn File>> {
        Disk.create_new(path, mode)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        Disk.create_dir(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Disk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        Disk.remove(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        Disk.list(dir)
    }

    fn is_dir(&self, path: &Path) -> bool {
        Disk.is_dir(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        Disk.sync_dir(dir)
    }

    fn lock(&self, path: &Path, sign: bool) -> io::Result<LockAttempt> {
        Disk.lock(path, sign)
    }
}

impl File for ChosenFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn id(&self) -> io::Result<FileId> {
        self.file.id()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        self.file.write_at(buf, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn allocate(&self, len: u64) -> io::Result<bool> {
        match self.way {
            Way::Growing => Ok(false),
            Way::Map | Way::Reserved => self.reserving.allocate(len),
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

fn open(dir: &Path, way: Way, durability: Durability) -> Book {
    let options = Options::new().durability(durability).storage(Arc::new(Chosen(way)));
    options.open(dir.join("log"), Mode::Create).unwrap()
}

/// The layout whose header has the end of the committed log, as the crate opens it.
fn open_slots(dir: &Path, durability: Durability) -> Book {
    let options = Options::new().durability(durability).layout(Layout::Slots);
    options.open(dir.join("log"), Mode::Create).unwrap()
}

/// A file with `reserve` bytes allocated, or empty, written by `pwrite`.
fn plain(dir: &Path, reserve: usize) -> Box<dyn File> {
    let path = dir.join("plain");
    let file = Disk.create_new(&path, 0o600).unwrap();
    if reserve > 0 {
        assert!(Disk.open(&path, Access::Write).unwrap().allocate(reserve as u64).unwrap());
        file.sync_data().unwrap();
    }
    file
}

fn write_all(file: &dyn File, data: &[u8], size: usize, sync: bool) -> usize {
    for (i, part) in data.chunks(size).enumerate() {
        assert_eq!(file.write_at(part, (i * size) as u64).unwrap(), part.len());
        if sync {
            file.sync_data().unwrap();
        }
    }
    data.len() / DEED_BYTES
}

fn append_each(book: &Book, data: &[u8]) -> usize {
    for jam in data.chunks_exact(JAM_BYTES) {
        book.append(0, jam).unwrap();
    }
    data.len() / JAM_BYTES
}

fn append_batches(book: &Book, data: &[u8], deeds: usize) -> usize {
    let mut batch = Batch::<BookFormat>::new(deedbook::book::Options::DEED_BYTES_MAX);
    for part in data.chunks(deeds * JAM_BYTES) {
        batch.clear();
        for jam in part.chunks_exact(JAM_BYTES) {
            batch.push(0, jam).unwrap();
        }
        book.append_unsynced(&batch).unwrap();
    }
    data.len() / JAM_BYTES
}

/// Unsynced: the cost of an append that survives a crash of the process.
fn unsynced() {
    let records = count(200_000);
    let jams = random_bytes(records * JAM_BYTES, 1);
    let deeds = random_bytes(records * DEED_BYTES, 2);
    let mut bench = Bench::new("append");
    bench.settle(2 * deeds.len());
    bench.case("floor: pwrite each deed, file growing", |dir| {
        let file = plain(dir, 0);
        timed(|| write_all(&*file, &deeds, DEED_BYTES, false))
    });
    bench.case("floor: pwrite each deed, space reserved", |dir| {
        let file = plain(dir, deeds.len());
        timed(|| write_all(&*file, &deeds, DEED_BYTES, false))
    });
    bench.case("floor: pwrite 256 KiB at a time", |dir| {
        let file = plain(dir, 0);
        timed(|| write_all(&*file, &deeds, 256 << 10, false))
    });
    for (name, way) in [
        ("append each, through the map", Way::Map),
        ("append each, pwrite into reserved space", Way::Reserved),
        ("append each, pwrite, file growing", Way::Growing),
    ] {
        let jams = &jams;
        bench.case(name, move |dir| {
            let book = open(dir, way, Durability::Manual);
            timed(|| append_each(&book, jams))
        });
    }
    bench.case("append each, layout slots", |dir| {
        let book = open_slots(dir, Durability::Manual);
        timed(|| append_each(&book, &jams))
    });
    for (name, deeds) in [
        ("batches of 10 deeds", 10),
        ("batches of 100 deeds", 100),
        ("batches of 1000 deeds", 1000),
    ] {
        let jams = &jams;
        bench.case(name, move |dir| {
            let book = open(dir, Way::Map, Durability::Manual);
            timed(|| append_batches(&book, jams, deeds))
        });
    }
    bench.case("encode batches of 1000 deeds, no write", |_| {
        let mut batch = Batch::<BookFormat>::new(deedbook::book::Options::DEED_BYTES_MAX);
        timed(|| {
            for part in jams.chunks(1000 * JAM_BYTES) {
                batch.clear();
                part.chunks_exact(JAM_BYTES).for_each(|jam| batch.push(0, jam).unwrap());
            }
            jams.len() / JAM_BYTES
        })
    });
    bench.run();
}

/// On stable storage: the cost of a commit.
fn durable() {
    let commits = count(2000);
    let threads = 16;
    let jams = random_bytes(commits * JAM_BYTES, 3);
    let deeds = random_bytes(commits * DEED_BYTES, 4);
    let mut bench = Bench::new("durable");
    bench.case("floor: pwrite and fdatasync each, file growing", |dir| {
        let file = plain(dir, 0);
        timed(|| write_all(&*file, &deeds, DEED_BYTES, true))
    });
    bench.case("floor: pwrite and fdatasync each, space reserved", |dir| {
        let file = plain(dir, deeds.len());
        timed(|| write_all(&*file, &deeds, DEED_BYTES, true))
    });
    for (name, way) in [
        ("append each, always", Way::Map),
        ("append each, always, pwrite, file growing", Way::Growing),
    ] {
        let jams = &jams;
        bench.case(name, move |dir| {
            let book = open(dir, way, Durability::Always);
            timed(|| append_each(&book, jams))
        });
    }
    bench.case("append each, always, layout slots", |dir| {
        let book = open_slots(dir, Durability::Always);
        timed(|| append_each(&book, &jams))
    });
    bench.case("append each, always, 16 threads", |dir| {
        let book = open(dir, Way::Map, Durability::Always);
        timed(|| {
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| append_each(&book, &jams));
                }
            });
            threads * commits
        })
    });
    bench.case("batches of 100 deeds, synced each", |dir| {
        let book = open(dir, Way::Map, Durability::Manual);
        timed(|| {
            for part in jams.chunks(100 * JAM_BYTES) {
                append_batches(&book, part, 100);
                book.sync().unwrap();
            }
            commits
        })
    });
    bench.run();
}

fn main() {
    unsynced();
    durable();
}
