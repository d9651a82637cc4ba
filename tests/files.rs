//! Things in place of files, locks, and places where nothing can be written.
#![cfg(unix)]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use common::places::{KINDS, Mounted, is_root, listing, mount, put_instead};
use common::{events, make, quickly, refused};
use deedbook::book::{Book, Meta, Mode, Options, verify};
use deedbook::{Durability, ErrorKind};

/// For each kind: a book of three deeds with that in place of one of its files.
fn with_each(name: &str, judge: impl Fn(&'static str, PathBuf, &Path)) {
    let mut skipped = Vec::new();
    for kind in KINDS {
        let dir = tempfile::tempdir().unwrap();
        let (book, other) = (dir.path().join("book"), dir.path().join("other"));
        for path in [&book, &other] {
            make(path, &Options::default(), &events(3, 30));
            let writer = Book::append_to(path).unwrap();
            writer.save_meta(&Meta { life: Some(1), ..Meta::default() }).unwrap();
        }
        let target = book.join(name);
        if !put_instead(kind, &target, &other.join(name)) {
            skipped.push(kind);
            continue;
        }
        let before = listing(&other);
        judge(kind, book, &target);
        assert_eq!(listing(&other), before, "{kind}: something was written through the link");
    }
    if !skipped.is_empty() {
        common::skip::skipped(&format!("could not make {skipped:?} here"));
    }
}

#[test]
fn what_is_no_regular_file_is_refused_in_place_of_the_metadata() {
    with_each("meta.bin", |kind, path, target| {
        quickly(move || {
            let book = Book::append_to(&path).unwrap();
            book.meta().expect_err(kind);
            book.save_meta(&Meta { life: Some(7), ..Meta::default() }).expect_err(kind);
            assert_eq!(book.append(0, b"x").unwrap(), 4);
        });
        assert!(!fs::symlink_metadata(target).unwrap().is_file(), "{kind}: was replaced");
    });
}

fn holder(path: &Path) -> Option<u32> {
    refused(Book::append_to(path), ErrorKind::Locked).holder()
}

/// What is no matter of names: the log's file itself is locked.
#[test]
fn a_second_writer_of_a_hard_link_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (path, hard) = (dir.path().join("a"), dir.path().join("c"));
    let book = Book::create(&path).unwrap();
    fs::create_dir(&hard).unwrap();
    fs::hard_link(path.join("book.log"), hard.join("book.log")).unwrap();
    for other in [&path, &path.join("book.log"), &hard] {
        assert_eq!(holder(other), Some(std::process::id()), "{}", other.display());
    }
    book.append(1, b"x").unwrap();
    book.close().unwrap();
    Book::append_to(&path).unwrap().append(2, b"next").unwrap();
    // Its directory has a mark of its own, of the empty log: what lies after its end is kept.
    assert_eq!(Book::append_to(&hard).unwrap().len().unwrap(), 2);
}

/// No space: an error, the data before is kept, and the handle goes on once there is space.
#[test]
fn a_full_disk_is_an_error_and_not_the_end() {
    let dir = tempfile::tempdir().unwrap();
    if !is_root() || !mount("size=1m", dir.path()) {
        common::skip::skipped("needs root and mount");
        return;
    }
    let _mounted = Mounted(dir.path().into());
    let (path, ballast) = (dir.path().join("book"), dir.path().join("ballast"));
    for (size, always) in [(100, true), (5000, false), (60_000, true), (200_000, false)] {
        let durability = if always { Durability::Always } else { Durability::Manual };
        let options = Options::new().durability(durability);
        let book = options.open(&path, Mode::Append).unwrap();
        let last = book.append(1, b"before").unwrap();
        fs::write(&ballast, vec![1; 600 << 10]).unwrap();
        let mut count = 0;
        let error = loop {
            match book.append(1, &vec![3; size]) {
                Ok(_) => count += 1,
                Err(error) => break error,
            }
            assert!(count < 20_000, "never full");
        };
        assert_eq!((error.kind(), error.durable()), (ErrorKind::Io, Some(deedbook::Durable::No)));
        fs::remove_file(&ballast).unwrap();
        assert_eq!(book.append(1, b"beyond").unwrap(), last + count + 1, "{size}");
        book.close().unwrap();
        assert!(verify(&path, &options, |_, _| Ok(())).unwrap().ok());
        assert_eq!(Book::open(&path).unwrap().last().unwrap(), last + count + 1);
        fs::remove_dir_all(&path).unwrap();
    }
}

/// Two threads that saved different keys met in the temporary file, or undid each other.
#[test]
fn metadata_saved_by_several_threads_is_all_kept() {
    let dir = tempfile::tempdir().unwrap();
    let book = Book::create(dir.path()).unwrap();
    let start = Instant::now();
    std::thread::scope(|scope| {
        for field in 0..3 {
            let book = &book;
            scope.spawn(move || {
                for value in 1..=30 {
                    let meta = match field {
                        0 => Meta { who: Some(value.into()), ..Meta::default() },
                        1 => Meta { version: Some(value), ..Meta::default() },
                        _ => Meta { life: Some(value), ..Meta::default() },
                    };
                    book.save_meta(&meta).unwrap();
                }
            });
        }
    });
    assert!(start.elapsed() < Duration::from_secs(60));
    let meta = book.meta().unwrap();
    assert_eq!((meta.who, meta.version, meta.life), (Some(30), Some(30), Some(30)));
}
