//! The wait of an append next to work that holds locks: a sync, truncations at both ends, scans, a full check. Each
//! runs on the real disk, and on a disk with syncs of 20 ms: there, an append that waits for a sync is obvious. The
//! number of appends over 10 ms shows whether each round of the neighbour delays one, or the system's scheduling does.
//! `cargo bench -p deedbook --bench waits`

#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing, clippy::print_stdout)]

mod common;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::{JAM_BYTES, count, random_bytes, write_figures};
use deedbook::Durability;
use deedbook::book::{self, Book};
use deedbook::storage::{Access, Disk, File, FileId, LockAttempt, Storage};
use deedbook::wal::{self, Layout, Lsn, Wal};
use deedbook::{Mode, OnCorrupt};

const SYNC_TAKES: Duration = Duration::from_millis(20);
/// The pause between two appends, because the log must not grow faster than its readers read.
const PAUSE: Duration = Duration::from_micros(50);

/// The pause between two rounds of the neighbour: a thread that takes a lock again at once keeps others out.
const ROUND_PAUSE: Duration = Duration::from_millis(2);
const LONG: Duration = Duration::from_millis(10);

/// A disk with slow syncs.
#[derive(Debug)]
struct Slow;

#[derive(Debug)]
struct SlowFile(Box<dyn File>);

impl Storage for Slow {
    fn absolute(&self, path: &Path) -> io::Result<PathBuf> {
        Disk.absolute(path)
    }
    fn open(&self, path: &Path, access: Access) -> io::Result<Box<dyn File>> {
        Ok(Box::new(SlowFile(Disk.open(path, access)?)))
    }
    fn create_new(&self, path: &Path, mode: u32) -> io::Result<Box<dyn File>> {
        Ok(Box::new(SlowFile(Disk.create_new(path, mode)?)))
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
        std::thread::sleep(SYNC_TAKES);
        Disk.sync_dir(dir)
    }
    fn lock(&self, path: &Path, sign: bool) -> io::Result<LockAttempt> {
        Disk.lock(path, sign)
    }
}

impl File for SlowFile {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }
    fn id(&self) -> io::Result<FileId> {
        self.0.id()
    }
    fn is_unlinked(&self) -> io::Result<bool> {
        self.0.is_unlinked()
    }
    fn touch(&self) -> io::Result<()> {
        self.0.touch()
    }
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buf, offset)
    }
    fn data_from(&self, offset: u64) -> io::Result<u64> {
        self.0.data_from(offset)
    }
    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        self.0.write_at(buf, offset)
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }
    fn allocate(&self, len: u64) -> io::Result<bool> {
        self.0.allocate(len)
    }
    fn sync_data(&self) -> io::Result<()> {
        std::thread::sleep(SYNC_TAKES);
        self.0.sync_data()
    }
}

/// An open log, for appends and for the work next to them.
enum Log {
    Book(Book, PathBuf, book::Options),
    Wal(Wal, PathBuf, wal::Options),
}

const BESIDE: [&str; 8] = [
    "nothing",
    "a thread that computes",
    "sync",
    "a scan by the same handle",
    "a scan by a reader",
    "verify",
    "truncate_before",
    "truncate_after",
];

impl Log {
    fn create(kind: &str, dir: &Path, storage: Arc<dyn Storage>) -> Self {
        let durability = Durability::Manual;
        let path = dir.join("log");
        if kind == "book" {
            let options = book::Options::new().durability(durability).storage(storage);
            return Self::Book(options.open(&path, Mode::Create).unwrap(), path, options);
        }
        let layout = match kind {
            "wal, one file" => Layout::Single,
            _ => Layout::Segmented { segment_bytes: 4 << 20 },
        };
        let options = wal::Options::new().layout(layout).durability(durability).storage(storage);
        Self::Wal(options.open(&path, Mode::Create).unwrap(), path, options)
    }

    fn append(&self, payload: &[u8]) {
        match self {
            Self::Book(book, ..) => drop(book.append(0, payload).unwrap()),
            Self::Wal(wal, ..) => drop(wal.append(payload).unwrap()),
        }
    }

    fn sync(&self) {
        match self {
            Self::Book(book, ..) => book.sync().unwrap(),
            Self::Wal(wal, ..) => wal.sync().unwrap(),
        }
    }

    /// Whether the log has the operation.
    fn has(&self, what: &str) -> bool {
        match (self, what) {
            (Self::Book(..), what) => !what.starts_with("truncate"),
            (Self::Wal(wal, ..), "truncate_before") => wal.layout() != Layout::Single,
            _ => true,
        }
    }

    /// Run the operation once.
    fn run(&self, what: &str) {
        match (self, what) {
            (_, "nothing") => {}
            (_, "a thread that computes") => drop(random_bytes(1 << 20, 1)),
            (_, "sync") => self.sync(),
            (Self::Book(book, path, options), _) => {
                let scan = |book: &Book| {
                    let mut deeds = book.cursor(.., OnCorrupt::Raise).unwrap();
                    while deeds.next().unwrap().is_some() {}
                };
                match what {
                    "a scan by the same handle" => scan(book),
                    "a scan by a reader" => scan(&options.open(path, Mode::Read).unwrap()),
                    _ => drop(options.verify(path).unwrap()),
                }
            }
            (Self::Wal(wal, path, options), _) => {
                let scan = |wal: &Wal| {
                    let mut records = wal.cursor(.., OnCorrupt::Raise).unwrap();
                    while records.next().unwrap().is_some() {}
                };
                match what {
                    "a scan by the same handle" => scan(wal),
                    "a scan by a reader" => scan(&options.open(path, Mode::Read).unwrap()),
                    "verify" => drop(options.verify(path).unwrap()),
                    _ => self.truncate(wal, what),
                }
            }
        }
    }

    fn truncate(&self, wal: &Wal, what: &str) {
        let (first, last) = wal.bounds().unwrap().unwrap();
        wal.sync().unwrap();
        match what {
            // A small part each time: the log has enough for all calls.
            "truncate_before" => {
                let framed = JAM_BYTES as u64 + 8;
                let Lsn(head) = first;
                let target = Lsn(head + 500 * framed);
                if target < last {
                    wal.truncate_before(target).unwrap();
                }
            }
            _ => drop(wal.truncate_after(last).unwrap()),
        }
    }
}

/// Append for a while next to other work; returns the sorted latencies, and the number of rounds of the work.
fn measure(kind: &str, beside: &str, storage: Arc<dyn Storage>) -> Option<(Vec<Duration>, u32)> {
    let dir = tempfile::tempdir().unwrap();
    let log = Log::create(kind, dir.path(), storage);
    if !log.has(beside) {
        return None;
    }
    let payload = random_bytes(JAM_BYTES, 7);
    (0..count(200_000)).for_each(|_| log.append(&payload));
    log.sync();
    let done = AtomicBool::new(false);
    let time = Duration::from_millis(count(2000) as u64);
    let (mut latencies, times) = std::thread::scope(|scope| {
        let beside = scope.spawn(|| {
            let mut times = 0;
            while !done.load(Ordering::Relaxed) {
                log.run(beside);
                times += 1;
                std::thread::sleep(ROUND_PAUSE);
            }
            times
        });
        let mut latencies = Vec::new();
        let begun = Instant::now();
        while begun.elapsed() < time {
            let before = Instant::now();
            log.append(&payload);
            latencies.push(before.elapsed());
            while before.elapsed() < PAUSE {
                std::hint::spin_loop();
            }
        }
        done.store(true, Ordering::Relaxed);
        (latencies, beside.join().unwrap())
    });
    latencies.sort_unstable();
    Some((latencies, times))
}

fn main() {
    let disks: [(&str, Arc<dyn Storage>); 2] =
        [("the disk as it is", Arc::new(Disk)), ("syncs of 20 ms", Arc::new(Slow))];
    let mut figures = Vec::new();
    for (disk, storage) in disks {
        for kind in ["book", "wal, one file", "wal, segments"] {
            println!("\n{kind}, {disk}: latency of an append, us");
            println!(
                "{:28} {:>10} {:>10} {:>10} {:>8} {:>8}",
                "beside", "median", "p99", "longest", "> 10 ms", "rounds"
            );
            for beside in BESIDE {
                let Some((latencies, times)) = measure(kind, beside, storage.clone()) else {
                    continue;
                };
                let at = |share: f64| {
                    let at = (latencies.len() as f64 * share) as usize;
                    latencies[at.min(latencies.len() - 1)].as_nanos() as f64 / 1e3
                };
                let (median, p99, longest) = (at(0.5), at(0.99), at(1.0));
                let long = latencies.iter().filter(|&&latency| latency > LONG).count();
                println!("{beside:28} {median:10.1} {p99:10.1} {longest:10.1} {long:8} {times:8}");
                let figure = format!(
                    "{{\"median_us\": {median:.1}, \"p99_us\": {p99:.1}, \"longest_us\": \
                     {longest:.1}, \"over_10_ms\": {long}, \"rounds\": {times}}}"
                );
                figures.push((format!("{kind}, {disk}, beside {beside}"), figure));
            }
        }
    }
    write_figures("waits", figures);
}
