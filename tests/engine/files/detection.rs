//! The format that the crate finds at a path: every kind of place, with every kind of content.

use deedbook::book::{Layout as BookLayout, Options as BookOptions};
use deedbook::detect::{Kind, detect, require};
use deedbook::wal::{Layout, Options};

use super::hostile::make;
use crate::support::prelude::*;

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

fn first_file(dir: &Path) -> PathBuf {
    let named = |path: &PathBuf| path.is_file();
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).find(named).unwrap()
}

#[test]
fn detection_finds_logs_of_each_kind_and_layout() {
    let top = tempfile::tempdir().unwrap();
    let at = |name: &str| top.path().join(name);
    deedbook::nostr::Options::new().open(at("store"), Mode::Append).unwrap().close().unwrap();
    for layout in [BookLayout::Packed, BookLayout::Slots] {
        let options = BookOptions::new().layout(Some(layout));
        options.open(at(&format!("{layout:?}")), Mode::Append).unwrap().close().unwrap();
    }
    // The layout `padded` is read only: detection looks at the name alone.
    fs::create_dir(at("padded")).unwrap();
    fs::write(at("padded/book.log"), b"KOOB").unwrap();
    fs::create_dir_all(at("zod/.urb/log")).unwrap();
    assert_eq!(kind(&at("zod")), None);
    book(at("zod/.urb/log/0i0"));
    wal(at("one.wal"), Layout::Single);
    let segments = wal(at("many"), Layout::Segmented { segment_bytes: 1 << 20 });
    make("ledger", &at("spool")).unwrap();
    for (path, found) in [
        (at("store"), Kind::Nostr),
        (at("Packed"), Kind::Book),
        (at("Packed/book.log"), Kind::Book),
        (at("Slots"), Kind::Book),
        (at("Slots/book.log"), Kind::Book),
        (at("padded"), Kind::Book),
        (at("zod/.urb/log/0i0"), Kind::Book),
        (at("zod/.urb/log"), Kind::Pier),
        (at("zod"), Kind::Pier),
        (at("one.wal"), Kind::Wal),
        (first_file(&segments), Kind::Wal),
        (segments, Kind::Wal),
        (first_file(&at("spool")), Kind::Ledger),
        (at("spool"), Kind::Ledger),
    ] {
        assert_eq!(kind(&path), Some(found), "{path:?}");
    }
    assert!(Kind::Wal.is_at(at("one.wal")));
    let found = Kind::Book.other_at(at("many")).unwrap();
    assert_eq!((found.kind, found.saved), (Kind::Wal, false));
    assert_eq!(Kind::Wal.other_at(at("many")), None);
}

#[test]
fn detection_finds_an_unreadable_ledger_by_base() {
    let top = tempfile::tempdir().unwrap();
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
