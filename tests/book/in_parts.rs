//! Payloads read and written in parts: the same bytes as in one, the same errors, nothing left of what
//! its caller could not give.

use std::fs;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};

use deedbook::book::{self, Book, Layout, Mode, OnCorrupt};
use deedbook::wal::{self, Wal};
use deedbook::{Durability, ErrorKind, Result, Verdict};

/// Both sides of a part's border, and of what a scanner holds.
const SIZES: [usize; 6] = [0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, (3 << 20) + 7];

fn bytes_of(size: usize) -> Vec<u8> {
    (0..size).map(|i| (i % 251) as u8).collect()
}

/// One log of each kind, opened for appending.
enum Log {
    Book(Book),
    Wal(Wal),
}

const KINDS: [&str; 3] = ["packed", "slots", "wal"];

fn open(kind: &str, path: &Path, mode: Mode) -> Log {
    let durability = Durability::Manual;
    match kind {
        "wal" => {
            let options = wal::Options::new().durability(durability);
            Log::Wal(options.open(path, mode).unwrap())
        }
        layout => {
            let layout: Option<Layout> = Some(layout.parse().unwrap());
            let options = book::Options::new().durability(durability).layout(layout);
            Log::Book(options.open(path, mode).unwrap())
        }
    }
}

impl Log {
    /// Returns the number or the LSN.
    fn append(&self, payload: &[u8]) -> Result<u64> {
        match self {
            Self::Book(book) => book.append(9, payload),
            Self::Wal(wal) => wal.append(payload).map(|lsn| lsn.0),
        }
    }

    fn append_from(&self, size: u64, payload: &mut dyn Read) -> Result<u64> {
        match self {
            Self::Book(book) => book.append_from(9, size, payload),
            Self::Wal(wal) => wal.append_from(size, payload).map(|lsn| lsn.0),
        }
    }

    /// The parts of a payload up to the first error.
    fn parts(&self, at: u64) -> (Vec<u8>, Result<()>) {
        let mut block = vec![0; 300 << 10];
        let mut got = Vec::new();
        let mut keep = |read: Result<usize>, block: &[u8]| match read {
            Ok(0) => Some(Ok(())),
            Ok(read) => {
                got.extend_from_slice(&block[..read]);
                None
            }
            Err(error) => Some(Err(error)),
        };
        let done = match self {
            Self::Book(book) => {
                let mut reader = match book.jam_reader(at) {
                    Ok(reader) => reader,
                    Err(error) => return (got, Err(error)),
                };
                assert_eq!(reader.mug(), 9);
                loop {
                    let read = reader.read_part(&mut block);
                    if let Some(done) = keep(read, &block) {
                        break done;
                    }
                }
            }
            Self::Wal(wal) => {
                let mut reader = match wal.payload_reader(wal::Lsn(at)) {
                    Ok(reader) => reader,
                    Err(error) => return (got, Err(error)),
                };
                loop {
                    let read = reader.read_part(&mut block);
                    if let Some(done) = keep(read, &block) {
                        break done;
                    }
                }
            }
        };
        (got, done)
    }

    fn close(self) {
        match self {
            Self::Book(book) => book.close().unwrap(),
            Self::Wal(wal) => wal.close().unwrap(),
        }
    }
}

/// The files with records, with their bytes.
fn records_in(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let files = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let is_log = |path: &PathBuf| path.is_file() && !path.ends_with("LOCK");
    let mut found: Vec<_> = files
        .filter(is_log)
        .map(|path| (PathBuf::from(path.file_name().unwrap()), fs::read(&path).unwrap()))
        .collect();
    found.sort();
    found
}

fn verdict(kind: &str, path: &Path) -> (Verdict, u64, Vec<String>) {
    let report = match kind {
        "wal" => wal::verify(path, &wal::Options::default(), |_, _| Ok(())).unwrap(),
        _ => book::verify(path, &book::Options::default(), |_, _| Ok(())).unwrap(),
    };
    let reasons = report.damages.iter().map(|damage| damage.reason.clone()).collect();
    (report.verdict, report.records, reasons)
}

#[test]
fn what_is_appended_in_parts_has_the_bytes_of_what_is_appended_in_one() {
    for kind in KINDS {
        let dir = tempfile::tempdir().unwrap();
        let (one, parts) = (dir.path().join("one"), dir.path().join("parts"));
        let (whole, streamed) = (open(kind, &one, Mode::Create), open(kind, &parts, Mode::Create));
        let mut places = Vec::new();
        for size in SIZES {
            let payload = bytes_of(size);
            let bytes = Cursor::new(payload.clone());
            let mut dripping = Dripping { bytes, interrupted: false };
            let place = streamed.append_from(size as u64, &mut dripping).unwrap();
            assert_eq!(whole.append(&payload).unwrap(), place, "{kind}, {size}");
            places.push((place, payload));
        }
        for (place, payload) in &places {
            let (got, done) = streamed.parts(*place);
            done.unwrap();
            assert!(got == *payload, "{kind}, {}", payload.len());
        }
        whole.close();
        streamed.close();
        assert!(records_in(&one) == records_in(&parts), "{kind}");
        assert_eq!(verdict(kind, &parts), (Verdict::Clean, SIZES.len() as u64, vec![]), "{kind}");
    }
}

/// Gives few bytes at a time, and is interrupted before each of them, as pipes may be.
struct Dripping {
    bytes: Cursor<Vec<u8>>,
    interrupted: bool,
}

impl Read for Dripping {
    fn read(&mut self, block: &mut [u8]) -> io::Result<usize> {
        self.interrupted = !self.interrupted;
        if self.interrupted {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let few = block.len().min(100_003);
        self.bytes.read(&mut block[..few])
    }
}

/// Fails after so many bytes.
struct Failing(usize);

impl Read for Failing {
    fn read(&mut self, block: &mut [u8]) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(io::Error::other("the cable is out"));
        }
        let read = block.len().min(self.0);
        self.0 -= read;
        block[..read].fill(7);
        Ok(read)
    }
}

// Promise: parts.
#[test]
fn a_payload_that_its_reader_cannot_give_leaves_the_log_as_it_was() {
    for kind in KINDS {
        for given in [0, 10, (1 << 20) + 5] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("log");
            let log = open(kind, &path, Mode::Create);
            let first = log.append(b"first").unwrap();
            let size = (2 << 20) + 1;
            let error = log.append_from(size, &mut Failing(given)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Io, "{kind}");
            assert!(error.to_string().contains("the cable is out"), "{error}");
            let error = log.append_from(size, &mut io::repeat(7).take(given as u64)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{kind}");
            let says = format!("ends after {given} bytes, size {size}");
            assert!(error.to_string().contains(&says), "{error}");
            let second = log.append(b"second").unwrap();
            assert_eq!(log.parts(first).0, b"first");
            assert_eq!(log.parts(second).0, b"second");
            log.close();
            assert_eq!(verdict(kind, &path), (Verdict::Clean, 2, vec![]), "{kind}");
        }
    }
}

/// The record's last part is what would make a damaged payload look whole.
// Promise: parts.
#[test]
fn the_last_part_of_a_damaged_payload_is_an_error() {
    let size = (3 << 20) + 7;
    for kind in ["packed", "wal"] {
        for broken in [0, 1 << 20, size - 1] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("log");
            let log = open(kind, &path, Mode::Create);
            let place = log.append(&bytes_of(size)).unwrap();
            log.append(b"after").unwrap();
            log.close();
            let head = if kind == "wal" { 8 } else { 16 + 12 };
            let at = head + broken;
            let file = match kind {
                "wal" => path.join(wal::segment_name(0)),
                _ => path.join("book.log"),
            };
            let mut bytes = fs::read(&file).unwrap();
            bytes[at] ^= 1;
            fs::write(&file, bytes).unwrap();
            let log = open(kind, &path, Mode::Read);
            let (got, done) = log.parts(place);
            let error = done.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{kind}");
            assert!(error.to_string().contains("checksum"), "{error}");
            assert!(got.len() < size, "{kind}: all {} bytes were given", got.len());
            let whole = match &log {
                Log::Book(book) => book.read(place).map(drop),
                Log::Wal(wal) => wal.read(wal::Lsn(place)).map(drop),
            };
            assert!(
                error.to_string().contains(&stated(&whole.unwrap_err().to_string())),
                "{error}"
            );
            let (verdict, _, reasons) = verdict(kind, &path);
            assert_eq!(verdict, Verdict::Corrupt, "{kind}");
            assert!(reasons[0].contains("checksum"), "{reasons:?}");
        }
    }
}

/// Both checksums of an error text.
fn stated(text: &str) -> String {
    let from = text.find("checksum").unwrap();
    text[from..].split(" (").next().unwrap().to_string()
}

#[test]
fn a_size_beyond_the_limit_is_refused_before_anything_is_read() {
    for kind in KINDS {
        let dir = tempfile::tempdir().unwrap();
        let log = open(kind, &dir.path().join("log"), Mode::Create);
        let error = log.append_from(1 << 40, &mut Failing(0)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge, "{kind}");
        assert!(error.to_string().contains(&(1u64 << 40).to_string()[..8]), "{error}");
    }
}

#[test]
fn a_payload_that_is_not_there_is_refused_with_both_ends() {
    let dir = tempfile::tempdir().unwrap();
    let Log::Book(book) = open("packed", &dir.path().join("book"), Mode::Create) else { panic!() };
    let says = |error: deedbook::Error, text: &str| {
        assert_eq!(error.kind(), ErrorKind::OutOfRange);
        assert!(error.to_string().contains(text), "{error}");
    };
    says(book.jam_reader(1).unwrap_err(), "no deed 1, the log is empty");
    book.append(1, b"jam").unwrap();
    says(book.jam_reader(2).unwrap_err(), "no deed 2, the log has 1 to 1");
    let Log::Wal(wal) = open("wal", &dir.path().join("wal"), Mode::Create) else { panic!() };
    let first = wal.append(b"payload").unwrap();
    says(wal.payload_reader(wal::Lsn(first.0 + 1)).unwrap_err(), "lies inside the");
    says(wal.payload_reader(wal::Lsn(first.0 + 15)).unwrap_err(), "the log ends there");
}

/// A reader beside a writer that goes on has what it opened.
#[test]
fn a_reader_of_a_payload_is_not_disturbed_by_appends() {
    for kind in KINDS {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let writer = open(kind, &path, Mode::Create);
        let payload = bytes_of((2 << 20) + 3);
        let place = writer.append(&payload).unwrap();
        let mut got = Vec::new();
        match &writer {
            Log::Book(book) => {
                let mut reader = book.jam_reader(place).unwrap();
                writer.append(b"more").unwrap();
                reader.read_to_end(&mut got).unwrap();
            }
            Log::Wal(wal) => {
                let mut reader = wal.payload_reader(wal::Lsn(place)).unwrap();
                writer.append(b"more").unwrap();
                reader.read_to_end(&mut got).unwrap();
            }
        }
        assert!(got == payload, "{kind}");
    }
}

#[test]
fn a_conversion_copies_long_deeds_between_all_layouts() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("source");
    let log = open("packed", &source, Mode::Create);
    for size in SIZES {
        log.append(&bytes_of(size)).unwrap();
    }
    log.append(b"after").unwrap();
    log.close();
    let (there, back) = (dir.path().join("there"), dir.path().join("back"));
    let options = book::Options::default();
    let report = book::convert(&source, &there, Layout::Slots, &options, |_, _| Ok(())).unwrap();
    assert_eq!(report.deeds, SIZES.len() as u64 + 1);
    assert_eq!(report.jam_bytes, SIZES.iter().sum::<usize>() as u64 + 5);
    book::convert(&there, &back, Layout::Packed, &options, |_, _| Ok(())).unwrap();
    assert!(records_in(&source) == records_in(&back));
    let book = Book::open(&there).unwrap();
    let mut deeds = book.cursor(0, None, OnCorrupt::Raise).unwrap();
    for size in SIZES {
        assert!(deeds.next().unwrap().unwrap().jam == bytes_of(size));
    }
}
