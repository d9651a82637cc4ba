//! The format that the crate finds at a path: every kind of place, with every kind of content.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use deedbook::book::{Book, Layout as BookLayout, Options as BookOptions};
use deedbook::detect::{Kind, detect, require};
use deedbook::ledger::{LedgerConfig, LedgerStore};
use deedbook::wal::{Layout, Options};
use deedbook::{ErrorKind, Mode};

fn kind(path: &Path) -> Option<Kind> {
    detect(path, None).unwrap().map(|found| found.kind)
}

fn book(path: PathBuf) -> PathBuf {
    let book = Book::create(&path).unwrap();
    book.append(0, b"deed").unwrap();
    book.close().unwrap();
    path
}

fn wal(path: PathBuf, layout: Layout) -> PathBuf {
    let wal = Options::new().layout(layout).open(&path, Mode::Append).unwrap();
    wal.append(b"record").unwrap();
    wal.close().unwrap();
    path
}

fn ledger(path: PathBuf) -> PathBuf {
    let ledger = LedgerStore::new(LedgerConfig::lines(&path, "events")).unwrap();
    ledger.append(b"{}").unwrap();
    ledger.close().unwrap();
    path
}

fn first_file(dir: &Path) -> PathBuf {
    let named = |path: &PathBuf| path.is_file();
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).find(named).unwrap()
}

#[test]
fn detection_finds_piers_and_books_of_each_layout() {
    let top = tempfile::tempdir().unwrap();
    for layout in [BookLayout::Packed, BookLayout::Slots] {
        let path = top.path().join(format!("{layout:?}"));
        let options = BookOptions::new().layout(Some(layout));
        options.open(&path, Mode::Append).unwrap().close().unwrap();
        assert_eq!(kind(&path), Some(Kind::Book), "{layout:?}");
        assert_eq!(kind(&path.join("book.log")), Some(Kind::Book), "{layout:?}");
    }
    // The layout `padded` is read only: detection looks at the name alone.
    let padded = top.path().join("padded");
    fs::create_dir(&padded).unwrap();
    fs::write(padded.join("book.log"), b"KOOB").unwrap();
    assert_eq!(kind(&padded), Some(Kind::Book));
    let pier = top.path().join("zod");
    let log = pier.join(".urb/log");
    fs::create_dir_all(&log).unwrap();
    assert_eq!(kind(&pier), None);
    let epoch = book(log.join("0i0"));
    assert_eq!(kind(&epoch), Some(Kind::Book));
    assert_eq!(kind(&log), Some(Kind::Pier));
    assert_eq!(kind(&pier), Some(Kind::Pier));
}

#[test]
fn detection_finds_single_and_segmented_write_ahead_logs() {
    let top = tempfile::tempdir().unwrap();
    let file = wal(top.path().join("one.wal"), Layout::Single);
    assert_eq!(kind(&file), Some(Kind::Wal));
    assert!(Kind::Wal.is_at(&file));
    let segments = wal(top.path().join("many"), Layout::Segmented { segment_bytes: 1 << 20 });
    assert_eq!(kind(&segments), Some(Kind::Wal));
    assert_eq!(kind(&first_file(&segments)), Some(Kind::Wal));
    let found = Kind::Book.other_at(&segments).unwrap();
    assert_eq!((found.kind, found.saved), (Kind::Wal, false));
    assert_eq!(Kind::Wal.other_at(&segments), None);
}

#[test]
fn detection_finds_a_ledger_by_content_or_base() {
    let top = tempfile::tempdir().unwrap();
    let spool = ledger(top.path().join("spool"));
    let file = first_file(&spool);
    assert_eq!(kind(&spool), Some(Kind::Ledger));
    assert_eq!(kind(&file), Some(Kind::Ledger));
    let named = top.path().join("named");
    fs::create_dir(&named).unwrap();
    fs::write(named.join("7-events"), b"no record").unwrap();
    assert_eq!(kind(&named), None);
    let meant = detect(&named, Some("events")).unwrap().unwrap();
    assert_eq!(meant.kind, Kind::Ledger);
    let told = require(&named, None).unwrap_err().to_string();
    assert!(told.contains("if it is one, name its base (events)"), "{told}");
}

#[test]
fn detection_finds_an_event_store_by_its_segments() {
    let top = tempfile::tempdir().unwrap();
    let path = top.path().join("store");
    deedbook::nostr::Options::new().open(&path, Mode::Append).unwrap().close().unwrap();
    assert_eq!(kind(&path), Some(Kind::Nostr));
}

#[test]
fn detection_knows_a_saved_end_by_its_name() {
    let top = tempfile::tempdir().unwrap();
    for (name, kind, offset) in [
        ("book.log.cut-46", Kind::Book, Some(46)),
        ("book.log.cut-46.2", Kind::Book, Some(46)),
        ("log.cut-9", Kind::Wal, Some(9)),
        ("00000000000000000003.wal.cut", Kind::Wal, None),
        ("00000000000000000003.wal.cut.1", Kind::Wal, None),
    ] {
        let path = top.path().join(name);
        fs::write(&path, b"bytes").unwrap();
        let found = detect(&path, None).unwrap().unwrap();
        assert_eq!((found.kind, found.saved, found.saved_offset), (kind, true, offset), "{name}");
        let other = if kind == Kind::Book { Kind::Wal } else { Kind::Book };
        assert_eq!(other.other_at(&path), Some(found), "{name}");
    }
    let plain = top.path().join("name.cut");
    fs::write(&plain, b"bytes").unwrap();
    assert!(!detect(&plain, None).unwrap().unwrap().saved);
}

#[test]
fn detection_knows_a_missing_log_by_its_sidecar() {
    let top = tempfile::tempdir().unwrap();
    let path = book(top.path().join("book"));
    fs::remove_file(path.join("book.log")).unwrap();
    assert_eq!(kind(&path), Some(Kind::Book));
    let file = wal(top.path().join("one.wal"), Layout::Single);
    fs::remove_file(&file).unwrap();
    assert_eq!(kind(&file), Some(Kind::Wal));
}

#[test]
fn detection_finds_no_log_elsewhere_and_never_blocks() {
    let top = tempfile::tempdir().unwrap();
    let empty = top.path().join("empty");
    fs::create_dir(&empty).unwrap();
    assert_eq!(kind(&empty), None);
    let none = top.path().join("none");
    assert_eq!(kind(&none), None);
    for path in [&empty, &none] {
        assert_eq!(require(path, None).unwrap_err().kind(), ErrorKind::Missing);
    }
    // Opening a text reports that its bytes are no log; an empty file is none.
    fs::write(top.path().join("text"), b"words").unwrap();
    fs::write(top.path().join("nothing"), b"").unwrap();
    assert_eq!(kind(&top.path().join("text")), Some(Kind::Wal));
    assert_eq!(kind(&top.path().join("nothing")), None);
    let environment = top.path().join("lmdb");
    fs::create_dir(&environment).unwrap();
    fs::write(environment.join("data.mdb"), b"pages").unwrap();
    assert_eq!(kind(&environment), None);
    let fifo = top.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    assert_eq!(kind(&fifo), Some(Kind::Wal));
    let renamed = book(top.path().join("book")).join("other.log");
    fs::copy(renamed.with_file_name("book.log"), &renamed).unwrap();
    let error = detect(&renamed, None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotALog);
    assert!(error.to_string().contains("not named book.log"), "{error}");
    let link = top.path().join("link");
    std::os::unix::fs::symlink(top.path().join("book"), &link).unwrap();
    assert_eq!(kind(&link), Some(Kind::Book));
}

#[test]
fn detection_refuses_a_directory_with_two_formats() {
    let top = tempfile::tempdir().unwrap();
    let path = book(top.path().join("both"));
    fs::write(path.join("00000000000000000000.wal"), b"").unwrap();
    let error = detect(&path, None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let files = "a book (book.log) and a write-ahead log (00000000000000000000.wal)";
    assert!(error.to_string().contains(files), "{error}");
    // A caller who names one of the two may open it.
    assert_eq!((Kind::Book.other_at(&path), Kind::Wal.other_at(&path)), (None, None));
    assert_eq!(Kind::Ledger.other_at(&path).map(|found| found.kind), Some(Kind::Book));
}
