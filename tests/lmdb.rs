//! Urbit's event logs in LMDB: what its own code wrote is read, brought to books, and back.

#![cfg(unix)]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![allow(unsafe_code, clippy::undocumented_unsafe_blocks)]

#[path = "common/flips.rs"]
mod flips;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::ops::RangeInclusive;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use deedbook::book::lmdb::{Environment, Options, Report, export, migrate};
use deedbook::book::{self, Book, Layout, Meta, Mode};
use deedbook::{Error, ErrorKind, Result};
use flips::Flips;
use heed::byteorder::NativeEndian;
use heed::types::{Bytes, U64};
use heed::{CommitOrAbort, EnvOpenOptions, IntegerComparator};
use tempfile::TempDir;

type Event = (u32, Vec<u8>);

const META: Meta =
    Meta { who: Some(0x1122_3344), version: Some(3), life: Some(7), fake: Some(false) };
const PIER_META: Meta =
    Meta { who: Some(0x0100), version: Some(3), life: Some(4), fake: Some(true) };
const FAKE: Meta = Meta { who: Some(0), version: Some(0), life: Some(0), fake: Some(true) };

thread_local! {
    static COPIES: RefCell<BTreeMap<String, (TempDir, PathBuf)>> = RefCell::default();
}

/// A copy of a golden file or directory for this test alone: a process opens an environment only once.
fn data(name: &str) -> PathBuf {
    fn copy(from: &Path, to: &Path) {
        if from.is_file() {
            fs::copy(from, to).unwrap();
            return;
        }
        fs::create_dir(to).unwrap();
        for entry in fs::read_dir(from).unwrap().map(|entry| entry.unwrap()) {
            copy(&entry.path(), &to.join(entry.file_name()));
        }
    }
    COPIES.with_borrow_mut(|copies| {
        let made = copies.entry(name.to_owned()).or_insert_with(|| {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join(name);
            copy(&Path::new("tests/data/lmdb").join(name), &path);
            (dir, path)
        });
        made.1.clone()
    })
}

fn golden_events() -> Vec<Event> {
    let text = fs::read_to_string(data("events.hex")).unwrap();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    let lines = text.lines().map(|line| line.as_bytes().chunks(2).map(byte).collect::<Vec<_>>());
    lines.map(|b| (u32::from_le_bytes(*b.first_chunk().unwrap()), b[4..].to_vec())).collect()
}

/// An environment made by LMDB itself.
fn make(dir: &Path, values: &[(u64, &[u8])], meta: &[(&str, &[u8])]) {
    fs::create_dir_all(dir).unwrap();
    let mut options = EnvOpenOptions::new();
    options.max_dbs(2).map_size(64 << 20);
    let env = unsafe { options.open(dir).unwrap() };
    let txn = env.write_txn().unwrap();
    env.create_databases_and_commit(txn, |opener, txn| {
        let mut options = opener
            .database_options()
            .types::<U64<NativeEndian>, Bytes>()
            .key_comparator::<IntegerComparator>();
        let events = options.name("EVENTS").create(txn)?;
        for (event, value) in values {
            events.put(txn, event, value)?;
        }
        let stored = opener.create_database::<Bytes, Bytes>(txn, Some("META"))?;
        for (key, value) in meta {
            stored.put(txn, key.as_bytes(), value)?;
        }
        Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit(()))
    })
    .unwrap();
}

fn numbered(range: RangeInclusive<u64>) -> Vec<(u64, Vec<u8>)> {
    let value = |event: u64| {
        let jam = vec![event as u8; 1 + (event % 50) as usize];
        [&(event as u32).to_le_bytes()[..], &jam].concat()
    };
    range.map(|event| (event, value(event))).collect()
}

fn make_numbered(dir: &Path, range: RangeInclusive<u64>) {
    let events = numbered(range);
    let borrowed: Vec<_> = events.iter().map(|(event, value)| (*event, &value[..])).collect();
    make(
        dir,
        &borrowed,
        &[("who", b"\x01"), ("version", b"\x03"), ("life", b"\x01"), ("fake", b"")],
    );
}

fn bring(source: &Path, dest: &Path) -> Result<Report> {
    migrate(source, dest, &Options::default(), |_, _| Ok(()))
}

fn back(source: &Path, dest: &Path) -> Result<Report> {
    export(source, dest, &Options::default(), |_, _| Ok(()))
}

fn look(source: &Path, dest: &Path) -> Result<Report> {
    let options = Options { dry_run: true, ..Options::default() };
    migrate(source, dest, &options, |_, _| Ok(()))
}

fn deeds(path: &Path) -> Vec<(u64, Event)> {
    let book = Book::open(path).unwrap();
    let deeds = book.iter(0, None).unwrap().map(Result::unwrap);
    deeds.map(|deed| (deed.event.unwrap(), (deed.mug, deed.jam))).collect()
}

/// Every file below a directory, with its bytes.
fn tree(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        match entry.is_dir() {
            true => found.extend(tree(&entry)),
            false => drop(found.insert(entry.clone(), fs::read(&entry).unwrap())),
        }
    }
    found
}

fn refused<T: std::fmt::Debug>(result: Result<T>, kind: ErrorKind, says: &str) -> Error {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(says), "{error}");
    error
}

fn space() -> (TempDir, PathBuf, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let (source, dest) = (dir.path().join("source"), dir.path().join("dest"));
    (dir, source, dest)
}

#[test]
fn environments_of_urbit_are_read_with_metadata_in_both_forms() {
    for name in ["lmdb-100", "lmdb-100-rawmeta"] {
        let environment = Environment::open(data(name)).unwrap();
        assert_eq!(environment.bounds().unwrap(), Some(1..=100));
        assert_eq!(environment.meta().unwrap(), META, "{name}");
        let mut found = Vec::new();
        environment
            .each(1, &mut |event, mug, jam| {
                assert_eq!(event, found.len() as u64 + 1);
                found.push((mug, jam.to_vec()));
                Ok(book::lmdb::Step::More)
            })
            .unwrap();
        assert_eq!(found, golden_events());
        environment.check_unchanged().unwrap();
    }
}

#[test]
fn an_environment_becomes_a_book_and_the_source_stays_as_it_was() {
    for name in ["lmdb-100", "lmdb-100-rawmeta"] {
        let (_dir, _, dest) = space();
        let before = tree(&data(name));
        let report = bring(&data(name), &dest).unwrap();
        assert_eq!((report.events, report.found, report.resumed_from), (100, 0, None));
        let expected = golden_events();
        assert_eq!(report.bytes, expected.iter().map(|(_, jam)| jam.len() as u64).sum::<u64>());
        let numbered: Vec<_> = (1..).zip(expected).collect();
        assert_eq!(deeds(&dest), numbered);
        assert_eq!(Book::open(&dest).unwrap().meta().unwrap(), META);
        assert_eq!(tree(&data(name)), before);
    }
}

#[test]
fn a_data_file_is_named_itself() {
    let (_dir, _, dest) = space();
    assert_eq!(bring(&data("lmdb-100").join("data.mdb"), &dest).unwrap().events, 100);
}

#[test]
fn a_pier_becomes_a_pier_of_books_with_its_texts_and_its_metadata() {
    let (_dir, _, dest) = space();
    let source = data("pier-lmdb");
    let before = tree(&source);
    let report = bring(&source, &dest).unwrap();
    let ranges: Vec<_> = report.epochs.iter().map(|log| log.events.clone().unwrap()).collect();
    assert_eq!(ranges[0], 1..=60);
    assert_eq!(*ranges[1].start(), 61);
    assert_eq!(report.meta, PIER_META);
    for (epoch, range) in [(0, &ranges[0]), (60, &ranges[1])] {
        let (from, to) = (source.join(".urb/log"), dest.join(".urb/log"));
        let (from, to) = (from.join(format!("0i{epoch}")), to.join(format!("0i{epoch}")));
        let found: Vec<_> = deeds(&to).into_iter().map(|(event, _)| event).collect();
        assert_eq!(found, range.clone().collect::<Vec<_>>());
        assert_eq!(fs::read(to.join("epoc.txt")).unwrap(), b"3");
        assert_eq!(
            fs::read(to.join("vere.txt")).unwrap(),
            fs::read(from.join("vere.txt")).unwrap()
        );
        assert_eq!(Book::open(&to).unwrap().meta().unwrap(), PIER_META);
    }
    let top = Environment::open(dest.join(".urb/log")).unwrap();
    assert_eq!((top.meta().unwrap(), top.bounds().unwrap()), (PIER_META, None));
    drop(top);
    assert_eq!(tree(&source), before);
    let again = bring(&source, &dest).unwrap();
    assert_eq!((again.found, again.resumed_from), (again.events, None));
}

#[test]
fn a_pier_of_version_1_has_its_events_in_the_top_directory() {
    let (_dir, source, dest) = space();
    make_numbered(&source.join(".urb/log"), 1..=30);
    let report = bring(&source, &dest).unwrap();
    assert_eq!(report.epochs[0].events, Some(1..=30));
    assert_eq!(deeds(&dest.join(".urb/log/0i0")).len(), 30);
    let top = Environment::open(dest.join(".urb/log")).unwrap();
    assert_eq!(top.bounds().unwrap(), None);
    assert_eq!(top.meta().unwrap().who, Some(1));
}

#[test]
fn an_epoch_of_a_pier_that_is_a_book_already_is_copied() {
    let (_dir, source, dest) = space();
    let log = source.join(".urb/log");
    make(&log, &[], &[("who", b"\x05"), ("version", b""), ("life", b""), ("fake", b"")]);
    make_numbered(&log.join("0i0"), 1..=10);
    fs::write(log.join("0i0/epoc.txt"), "1").unwrap();
    let options = book::Options { epoch: Some(10), ..book::Options::default() };
    let book = options.open(log.join("0i10"), Mode::Create).unwrap();
    book.append(7, b"eleven").unwrap();
    book.close().unwrap();
    drop(book);
    fs::write(log.join("0i10/epoc.txt"), "3\n").unwrap();
    let report = bring(&source, &dest).unwrap();
    assert_eq!(report.events, 11);
    assert_eq!(deeds(&dest.join(".urb/log/0i10")), [(11, (7, b"eleven".to_vec()))]);
}

#[test]
fn epochs_that_do_not_follow_one_another_are_refused() {
    let (_dir, source, dest) = space();
    let log = source.join(".urb/log");
    make(&log, &[], &[]);
    for (epoch, range) in [(0, 1..=10), (12, 13..=20)] {
        make_numbered(&log.join(format!("0i{epoch}")), range);
        fs::write(log.join(format!("0i{epoch}/epoc.txt")), "2").unwrap();
    }
    let says = "epoch 12 comes after an epoch that ends with 10";
    refused(bring(&source, &dest), ErrorKind::Contiguity, says);
    fs::remove_file(log.join("0i12/epoc.txt")).unwrap();
    refused(bring(&source, &dest), ErrorKind::Missing, "epoc.txt");
    fs::write(log.join("0i12/epoc.txt"), "9").unwrap();
    refused(bring(&source, &dest), ErrorKind::Unsupported, "version \"9\"");
    refused(bring(&log, &dest), ErrorKind::InvalidArgument, "name the pier itself");
    assert!(!dest.exists());
}

#[test]
fn events_of_a_top_directory_that_no_epoch_has_are_not_left_out() {
    let (_dir, source, dest) = space();
    let log = source.join(".urb/log");
    make_numbered(&log, 1..=10);
    make_numbered(&log.join("0i0"), 1..=9);
    fs::write(log.join("0i0/epoc.txt"), "2").unwrap();
    let says = "holds events 1 to 10, and the epochs 1 to 9";
    refused(bring(&source, &dest), ErrorKind::Contiguity, says);
}

#[test]
fn an_environment_in_a_directory_that_allows_no_writing_is_read() {
    let (_dir, source, dest) = space();
    make_numbered(&source, 1..=500);
    fs::remove_file(source.join("lock.mdb")).unwrap();
    let before = tree(&source);
    let allow = |mode| fs::set_permissions(&source, fs::Permissions::from_mode(mode)).unwrap();
    allow(0o555);
    let report = bring(&source, &dest);
    allow(0o755);
    assert_eq!(report.unwrap().events, 500);
    assert_eq!(tree(&source), before, "no lock file, and not a byte changed");
}

#[test]
fn a_gap_is_named_with_both_numbers() {
    let (_dir, source, dest) = space();
    let values = [(1, &b"\0\0\0\0a"[..]), (2, b"\0\0\0\0b"), (5, b"\0\0\0\0c")];
    make(&source, &values, &[]);
    refused(bring(&source, &dest), ErrorKind::Contiguity, "event 2 is followed by event 5");
    assert!(!dest.exists());
}

#[test]
fn a_value_without_a_mug_is_named() {
    let (_dir, source, dest) = space();
    make(&source, &[(1, b"\0\0\0\0a"), (2, b"\0\0\0")], &[]);
    refused(bring(&source, &dest), ErrorKind::Corrupt, "event 2 has 3 bytes");
    make(&source, &[(2, b"\0\0\0\0")], &[]);
    assert_eq!(bring(&source, &dest).unwrap().events, 2);
    assert_eq!(deeds(&dest)[1], (2, (0, Vec::new())));
}

#[test]
fn metadata_beyond_its_size_or_domain_is_refused() {
    let (_dir, source, dest) = space();
    make(&source, &[], &[("who", b""), ("version", b""), ("life", b"\0\0\0\0\0"), ("fake", b"")]);
    assert_eq!(Environment::open(&source).unwrap().meta().unwrap(), FAKE);
    make(&source, &[], &[("life", b"\0\0\0\0\x01")]);
    refused(bring(&source, &dest), ErrorKind::Unsupported, "metadata life of 5 bytes, at most 4");
    make(&source, &[], &[("life", b""), ("fake", b"\x02")]);
    refused(bring(&source, &dest), ErrorKind::Unsupported, "metadata fake is 2");
}

/// A `fake` that is not there was taken for 0, which says that the ship is fake.
#[test]
fn metadata_that_lacks_a_field_is_refused_by_the_name_of_the_field() {
    let (_dir, source, dest) = space();
    let all: [(&str, &[u8]); 4] =
        [("who", b"\x01"), ("version", b"\x03"), ("life", b"\x01"), ("fake", b"\x01")];
    for (missing, (name, _)) in all.iter().enumerate() {
        let rest: Vec<_> = (0..4).filter(|at| *at != missing).map(|at| all[at]).collect();
        let source = source.with_file_name(name);
        make(&source, &[(1, b"\0\0\0\0a")], &rest);
        for attempt in [bring, look] {
            let says = format!("but lacks {name}, which would be 0 in a book");
            refused(attempt(&source, &dest), ErrorKind::Corrupt, &says);
        }
        assert!(!dest.exists());
    }
    make(&source, &[(1, b"\0\0\0\0a")], &[("other", b"\x01")]);
    assert_eq!(bring(&source, &dest).unwrap().meta, Meta::default());
    assert!(!dest.join("meta.bin").exists());
}

#[test]
fn long_events_and_later_epochs_come_over() {
    let (_dir, source, dest) = space();
    let long: Vec<u8> = (0..20u32 << 20).map(|at| ((at * 31) >> 7) as u8).collect();
    make(&source, &[(101, b"\x01\0\0\0a"), (102, &long), (103, b"\x02\0\0\0b")], &[]);
    let report = bring(&source, &dest).unwrap();
    assert_eq!((report.epochs[0].epoch, report.epochs[0].events.clone()), (100, Some(101..=103)));
    assert_eq!(Book::open(&dest).unwrap().read(102).unwrap().jam, long[4..]);
    let book = Book::append_to(&dest).unwrap();
    assert_eq!(book.append(0, b"next").unwrap(), 104);
}

#[test]
fn events_beyond_one_byte_of_their_number_stay_in_order() {
    let (_dir, source, dest) = space();
    make_numbered(&source, 200..=70_000);
    assert_eq!(bring(&source, &dest).unwrap().events, 69_801);
    let expected = numbered(200..=70_000);
    for ((event, (mug, jam)), (number, value)) in deeds(&dest).into_iter().zip(expected) {
        assert_eq!((event, &[&mug.to_le_bytes()[..], &jam].concat()), (number, &value));
    }
}

#[test]
fn an_interrupted_migration_goes_on_and_doubles_nothing() {
    let (_dir, source, dest) = space();
    let long = vec![7; 3 << 20];
    let values: Vec<(u64, &[u8])> = (1..=12).map(|event| (event, &long[..])).collect();
    make(&source, &values, &[]);
    let mut calls = 0;
    let stop = |_, _| {
        calls += 1;
        let stop = || Error::new(ErrorKind::InvalidArgument, "enough");
        (calls < 3).then_some(()).ok_or_else(stop)
    };
    refused(
        migrate(&source, &dest, &Options::default(), stop),
        ErrorKind::InvalidArgument,
        "enough",
    );
    let held = deeds(&dest).len() as u64;
    assert!(0 < held && held < 12, "{held}");
    assert_eq!(look(&source, &dest).unwrap().resumed_from, Some(held + 1));
    let report = bring(&source, &dest).unwrap();
    assert_eq!((report.found, report.resumed_from), (held, Some(held + 1)));
    assert_eq!(deeds(&dest).len(), 12);
}

/// In `slots` no checksum of a deed says so: only the comparison with the source does.
#[test]
fn an_event_that_lies_otherwise_in_the_destination_than_in_the_source_ends_the_migration() {
    let says = [(Layout::Packed, "deed 2"), (Layout::Slots, "event 2 is another one")];
    for (layout, says) in says {
        let (_dir, source, dest) = space();
        make(&source, &[(1, b"\0\0\0\0first"), (2, b"\0\0\0\0second"), (3, b"\0\0\0\0third")], &[]);
        let storage = Arc::new(Flips { name: "book.log", of: b"second" });
        let book = book::Options { layout: Some(layout), storage, ..book::Options::default() };
        let options = Options { book, ..Options::default() };
        let brought = migrate(&source, &dest, &options, |_, _| Ok(()));
        refused(brought, ErrorKind::Corrupt, says);
    }
}

#[test]
fn a_destination_with_other_events_is_refused_and_stays() {
    let (_dir, source, dest) = space();
    make_numbered(&source, 1..=10);
    let book = Book::create(&dest).unwrap();
    let values = numbered(1..=3);
    for (event, value) in &values {
        let jam = if *event == 3 { b"other" } else { &value[4..] };
        book.append(*event as u32, jam).unwrap();
    }
    book.close().unwrap();
    let before = deeds(&dest);
    for attempt in [bring, look] {
        let error =
            refused(attempt(&source, &dest), ErrorKind::AlreadyExists, "event 3 is another");
        let text = error.to_string();
        assert!(text.contains("4 bytes, checksum") && text.contains("5 bytes, checksum"), "{text}");
    }
    assert_eq!(deeds(&dest), before);
    let longer = dest.with_file_name("longer");
    let book = Book::create(&longer).unwrap();
    for (event, value) in numbered(1..=11) {
        book.append(event as u32, &value[4..]).unwrap();
    }
    book.close().unwrap();
    let says = "the destination holds events 1 to 11, and the source events 1 to 10";
    refused(bring(&source, &longer), ErrorKind::AlreadyExists, says);
    refused(bring(&source, &source), ErrorKind::AlreadyExists, "the destination holds a data.mdb");
}

#[test]
fn a_dry_run_counts_and_changes_nothing() {
    let (_dir, _, dest) = space();
    let report = look(&data("pier-lmdb"), &dest).unwrap();
    assert!(report.dry_run && !dest.exists());
    assert_eq!(report.events, bring(&data("pier-lmdb"), &dest).unwrap().events);
    assert_eq!(report.bytes, look(&data("pier-lmdb"), &dest).unwrap().bytes);
}

#[test]
fn files_that_are_no_environment_are_refused_before_lmdb_maps_them() {
    let (_dir, source, dest) = space();
    make_numbered(&source, 1..=5000);
    let path = source.join("data.mdb");
    let whole = fs::read(&path).unwrap();
    let tried = |bytes: &[u8], kind, says: &str| {
        fs::write(&path, bytes).unwrap();
        refused(bring(&source, &dest), kind, says);
    };
    tried(b"", ErrorKind::NotALog, "0 bytes end before");
    tried(&[7; 9000], ErrorKind::NotALog, "magic 07070707");
    tried(&whole[..4100], ErrorKind::NotALog, "end before its meta page");
    tried(&whole[..whole.len() / 2], ErrorKind::Corrupt, "cut off");
    let changed = |at: usize, byte: u8| {
        let mut bytes = whole.clone();
        bytes[at] = byte;
        bytes
    };
    tried(&changed(20, 2), ErrorKind::Unsupported, "version 2");
    tried(&changed(10, 0), ErrorKind::Corrupt, "flags 0000");
    tried(&changed(4096 + 16, 0), ErrorKind::NotALog, "magic");
    tried(&changed(40, 3), ErrorKind::Corrupt, "pages of 4099 bytes");
    fs::remove_file(&path).unwrap();
    refused(bring(&source, &dest), ErrorKind::Missing, "neither a pier nor");
    refused(bring(Path::new("/none"), &dest), ErrorKind::Missing, "no directory there");
    fs::write(&path, whole).unwrap();
    assert_eq!(bring(&source, &dest).unwrap().events, 5000);
}

#[test]
fn an_environment_that_is_written_meanwhile_is_noticed() {
    let (_dir, source, dest) = space();
    make_numbered(&source, 1..=10);
    let write = |_, _| {
        let path = source.join("data.mdb");
        let mut bytes = fs::read(&path).unwrap();
        bytes[16 + 128] += 8; // a later transaction in the first meta page
        fs::write(&path, bytes).unwrap();
        Ok(())
    };
    let says = "written while it was read";
    refused(migrate(&source, &dest, &Options::default(), write), ErrorKind::Locked, says);
}

#[test]
fn a_book_goes_back_to_an_environment_that_equals_the_source() {
    for name in ["lmdb-100", "lmdb-100-rawmeta"] {
        let (dir, _, dest) = space();
        bring(&data(name), &dest).unwrap();
        let returned = dir.path().join("returned");
        let report = back(&dest, &returned).unwrap();
        assert_eq!((report.events, report.found), (100, 0));
        assert_eq!(
            contents(&returned),
            contents(&data("lmdb-100")),
            "stripped, as Urbit writes it"
        );
        let again = back(&dest, &returned).unwrap();
        assert_eq!(again.found, 100);
        refused(back(&dest, &dest), ErrorKind::AlreadyExists, "the destination holds a book.log");
    }
}

#[test]
fn a_pier_goes_back_as_a_pier() {
    let (dir, _, dest) = space();
    bring(&data("pier-lmdb"), &dest).unwrap();
    let returned = dir.path().join("returned");
    back(&dest, &returned).unwrap();
    for part in ["", "0i0", "0i60"] {
        let (from, to) = (data("pier-lmdb").join(".urb/log").join(part), returned.join(".urb/log"));
        let to = to.join(part);
        assert_eq!(contents(&to), contents(&from), "{part}");
        if !part.is_empty() {
            assert_eq!(fs::read(to.join("epoc.txt")).unwrap(), b"2");
        }
    }
}

#[test]
fn an_environment_with_other_events_is_refused_by_the_way_back() {
    let (dir, source, dest) = space();
    make_numbered(&source, 1..=10);
    bring(&source, &dest).unwrap();
    let other = dir.path().join("other");
    make(&other, &[(1, b"\x01\0\0\0xx")], &[]);
    refused(back(&dest, &other), ErrorKind::AlreadyExists, "event 1 is another");
}

/// Keys and values of both databases, through LMDB itself.
fn contents(dir: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    let copy = tempfile::tempdir().unwrap();
    fs::copy(dir.join("data.mdb"), copy.path().join("data.mdb")).unwrap();
    let mut options = EnvOpenOptions::new();
    options.max_dbs(2);
    let env = unsafe { options.open(copy.path()).unwrap() };
    let txn = env.read_txn().unwrap();
    let mut found = Vec::new();
    env.open_databases_and_commit(txn, |opener, txn| {
        let mut options =
            opener.database_options().types::<Bytes, Bytes>().key_comparator::<IntegerComparator>();
        let events = options.name("EVENTS").open(txn)?;
        let meta = opener.open_database::<Bytes, Bytes>(txn, Some("META"))?;
        let own = |(key, value): (&[u8], &[u8])| (key.to_vec(), value.to_vec());
        if let Some(events) = events {
            found.extend(events.iter(txn)?.map(|entry| own(entry.unwrap())));
        }
        if let Some(meta) = meta {
            found.extend(meta.iter(txn)?.map(|entry| own(entry.unwrap())));
        }
        Ok::<_, heed::Error>(CommitOrAbort::<(), _>::Abort(()))
    })
    .unwrap();
    found
}

/// A kill between the two left an empty file, with which every further run was refused.
#[test]
fn an_empty_environment_that_a_kill_left_is_gone_on_with() {
    let (_dir, source, dest) = space();
    fs::create_dir_all(&dest).unwrap();
    make_numbered(&source, 1..=50);
    bring(&source, &dest.join("book")).unwrap();
    let environment = dest.join("environment");
    fs::create_dir(&environment).unwrap();
    fs::write(environment.join("data.mdb"), b"").unwrap();
    let options = Options { dry_run: true, ..Options::default() };
    export(dest.join("book"), &environment, &options, |_, _| Ok(())).unwrap();
    assert_eq!(back(&dest.join("book"), &environment).unwrap().events, 50);

    let pier = data("pier-lmdb");
    let log = dest.join("pier").join(".urb/log");
    fs::create_dir_all(&log).unwrap();
    fs::write(log.join("data.mdb"), b"").unwrap();
    bring(&pier, &dest.join("pier")).unwrap();
    assert!(fs::metadata(log.join("data.mdb")).unwrap().len() > 0);
}
