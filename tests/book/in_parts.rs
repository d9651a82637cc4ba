//! Payloads in parts give the same bytes and the same errors as whole payloads. A failed source leaves nothing in the
//! log.

use std::io::Cursor;

use crate::prelude::*;
use crate::support::formats::book::{BOOK, SLOTS};
use crate::support::formats::wal::{ANY, SINGLE};

/// Both sides of a part's border and of a scanner's buffer.
const SIZES: [usize; 6] = [0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, (3 << 20) + 7];
const KINDS: [&dyn Format; 3] = [&BOOK, &SLOTS, &ANY];

fn bytes_of(size: usize) -> Vec<u8> {
    (0..size).map(|i| (i % 251) as u8).collect()
}

fn open(format: &dyn Format, path: &Path, mode: Mode) -> Box<dyn Log> {
    format.open(&At::disk(path), mode, MANUAL).unwrap()
}

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

fn verdict(format: &dyn Format, path: &Path) -> (Verdict, u64, Vec<String>) {
    let report = format.verify(&At::disk(path), MANUAL).unwrap();
    let reasons = report.damages.iter().map(|damage| damage.reason.clone()).collect();
    (report.verdict, report.records, reasons)
}

#[test]
fn payloads_appended_in_parts_have_the_same_bytes() {
    for format in KINDS {
        let kind = format.name();
        let dir = tempfile::tempdir().unwrap();
        let (one, parts) = (dir.path().join("one"), dir.path().join("parts"));
        let (whole, streamed) =
            (open(format, &one, Mode::Create), open(format, &parts, Mode::Create));
        let mut places = Vec::new();
        for size in SIZES {
            let payload = bytes_of(size);
            let bytes = Cursor::new(payload.clone());
            let mut dripping = Dripping { bytes, interrupted: false };
            let place = streamed.append_from(9, size as u64, &mut dripping).unwrap();
            assert_eq!(whole.append(9, &payload).unwrap(), place, "{kind}, {size}");
            places.push((place, payload));
        }
        for (place, payload) in &places {
            let (got, done) = streamed.read_in_parts(*place);
            done.unwrap();
            assert!(got == *payload, "{kind}, {}", payload.len());
        }
        whole.close().unwrap();
        streamed.close().unwrap();
        assert!(records_in(&one) == records_in(&parts), "{kind}");
        assert_eq!(verdict(format, &parts), (Verdict::Clean, SIZES.len() as u64, vec![]), "{kind}");
    }
}

/// A slow pipe: few bytes at a time, and an interruption before each read.
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
fn a_failing_payload_source_leaves_the_log_unchanged() {
    for format in KINDS {
        let kind = format.name();
        for given in [0, 10, (1 << 20) + 5] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("log");
            let log = open(format, &path, Mode::Create);
            let first = log.append(9, b"first").unwrap();
            let size = (2 << 20) + 1;
            let error = refused(log.append_from(9, size, &mut Failing(given)), ErrorKind::Io);
            assert!(error.to_string().contains("the cable is out"), "{error}");
            let error =
                log.append_from(9, size, &mut io::repeat(7).take(given as u64)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{kind}");
            let says = format!("ends after {given} bytes, size {size}");
            assert!(error.to_string().contains(&says), "{error}");
            let second = log.append(9, b"second").unwrap();
            assert_eq!(log.read_in_parts(first).0, b"first");
            assert_eq!(log.read_in_parts(second).0, b"second");
            log.close().unwrap();
            assert_eq!(verdict(format, &path), (Verdict::Clean, 2, vec![]), "{kind}");
        }
    }
}

/// With the last part, a damaged payload would look whole.
// Promise: parts.
#[test]
fn reading_a_damaged_payload_ends_with_an_error() {
    let size = (3 << 20) + 7;
    for format in [&BOOK as &dyn Format, &SINGLE] {
        let kind = format.name();
        for broken in [0, 1 << 20, size - 1] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("log");
            let log = open(format, &path, Mode::Create);
            let place = log.append(9, &bytes_of(size)).unwrap();
            log.append(9, b"after").unwrap();
            log.close().unwrap();
            let at = format.framing().start() + format.framing().head() + broken;
            let file = format.first_file(&path);
            let mut bytes = fs::read(&file).unwrap();
            bytes[at] ^= 1;
            fs::write(&file, bytes).unwrap();
            let log = open(format, &path, Mode::Read);
            let (got, done) = log.read_in_parts(place);
            let error = refused(done, ErrorKind::Corrupt);
            assert!(got.len() < size, "{kind}: all {} bytes were given", got.len());
            let stated = stated(&log.read(place).unwrap_err().to_string());
            assert!(error.to_string().contains(&stated), "{error}");
            let (verdict, _, reasons) = verdict(format, &path);
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
fn appends_do_not_disturb_a_payload_reader() {
    let dir = tempfile::tempdir().unwrap();
    let (payload, mut got) = (bytes_of((2 << 20) + 3), Vec::new());
    for layout in [Layout::Packed, Layout::Slots] {
        let options = book::Options::new().layout(layout);
        let book = options.open(dir.path().join(layout.name()), Mode::Create).unwrap();
        let event = book.append(9, &payload).unwrap();
        let mut reader = book.jam_reader(event).unwrap();
        assert_eq!(reader.mug(), 9);
        book.append(1, b"more").unwrap();
        reader.read_to_end(&mut got).unwrap();
        assert!(std::mem::take(&mut got) == payload, "{layout:?}");
    }
    let wal = Wal::create(dir.path().join("wal")).unwrap();
    let mut reader = wal.payload_reader(wal.append(&payload).unwrap()).unwrap();
    wal.append(b"more").unwrap();
    reader.read_to_end(&mut got).unwrap();
    assert!(got == payload);
}
