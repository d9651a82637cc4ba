//! Things in place of files, locks, and places where nothing can be written.
#![cfg(unix)]

mod detection;
pub mod hostile;
mod opener;

use std::os::unix::fs::PermissionsExt;

use deedbook::book::Options;

use crate::support::common;
use crate::support::prelude::*;
use common::places::{KINDS, Mounted, is_root, mount, put_instead};
use common::{events, make, quickly, refused};

// Promise: odd-files.
#[test]
fn irregular_files_are_refused_as_metadata() {
    for kind in KINDS {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("book"), dir.path().join("other"));
        for path in [&path, &other] {
            make(path, &Options::default(), &events(3, 30));
            let writer = Book::append_to(path).unwrap();
            writer.save_meta(&Meta { life: Some(1), ..Meta::default() }).unwrap();
        }
        let target = path.join("meta.bin");
        if !put_instead(kind, &target, &other.join("meta.bin")) {
            common::skip::skipped(&format!("could not make {kind:?} here"));
            continue;
        }
        let before = snapshot(&Disk, &other);
        quickly(move || {
            let book = Book::append_to(&path).unwrap();
            book.meta().expect_err(kind);
            book.save_meta(&Meta { life: Some(7), ..Meta::default() }).expect_err(kind);
            assert_eq!(book.append(0, b"x").unwrap(), 4);
        });
        assert!(!fs::symlink_metadata(target).unwrap().is_file(), "{kind}: was replaced");
        assert_eq!(
            snapshot(&Disk, &other),
            before,
            "{kind}: something was written through the link"
        );
    }
}

// Promise: call-fails.
#[test]
fn a_handle_survives_a_full_disk() {
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
        assert!(options.verify(&path).unwrap().ok());
        assert_eq!(Book::open(&path).unwrap().last().unwrap(), last + count + 1);
        fs::remove_dir_all(&path).unwrap();
    }
}

/// Two threads saving different keys met in the temporary file, or undid each other.
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

/// Anybody who may read a log may lock it, and could keep its writers out. A security review did so
/// as `nobody`. Now the lock file decides: only the owner can open it.
#[test]
fn a_readers_lock_keeps_no_writer_out() {
    let dir = tempfile::tempdir().unwrap();
    let (book, wal) = (dir.path().join("book"), dir.path().join("wal"));
    Book::create(&book).unwrap().append(1, b"x").unwrap();
    Wal::create(&wal).unwrap().append(b"x").unwrap();
    // Locks as another process would: the lock belongs to the open file.
    let locks = [book.join("book.log"), book.clone(), wal.clone()].map(|path| {
        let file = fs::File::open(path).unwrap();
        file.lock().unwrap();
        file
    });
    Book::append_to(&book).unwrap().append(2, b"y").unwrap();
    Wal::append_to(&wal).unwrap().append(b"y").unwrap();
    // Without the lock file, a writer may have the log, and does not give its lock file up.
    for (path, log) in [(&book, "book"), (&wal, "wal")] {
        fs::remove_dir_all(path.join(".deedbook")).unwrap();
        for _ in 0..2 {
            let kind = match log {
                "book" => Book::append_to(path).unwrap_err().kind(),
                _ => Wal::append_to(path).unwrap_err().kind(),
            };
            assert_eq!(kind, ErrorKind::Locked, "{log}");
        }
    }
    drop(locks);
    Book::append_to(&book).unwrap().append(3, b"z").unwrap();
    Wal::append_to(&wal).unwrap().append(b"z").unwrap();
}

/// Two names of one file have two lock files, so the log's own lock decides.
#[test]
fn a_writer_of_a_hard_link_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let (path, hard) = (dir.path().join("a"), dir.path().join("c"));
    let book = Book::create(&path).unwrap();
    fs::create_dir(&hard).unwrap();
    fs::hard_link(path.join("book.log"), hard.join("book.log")).unwrap();
    for other in [&path, &path.join("book.log"), &hard] {
        let holder = refused(Book::append_to(other), ErrorKind::Locked).holder();
        assert_eq!(holder, Some(std::process::id()), "{}", other.display());
    }
    book.append(1, b"x").unwrap();
    book.close().unwrap();
    Book::append_to(&path).unwrap().append(2, b"next").unwrap();
    // The directory of the hard link has a mark of the empty log: opening keeps the bytes after the mark's end.
    assert_eq!(Book::append_to(&hard).unwrap().len().unwrap(), 2);
    // Locks as a writer in another process would.
    let writer = fs::File::open(path.join("book.log")).unwrap();
    writer.lock().unwrap();
    for path in [&path, &hard] {
        refused(Book::append_to(path), ErrorKind::Locked);
    }
    drop(writer);
    Book::append_to(&hard).unwrap();
}

fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// The engine read a contended log whole into memory to look for a process id: 2 GB for a sparse
/// file of 2 GB. Only a signed file names its holder, in its first bytes.
#[test]
#[cfg(target_os = "linux")]
fn a_contended_file_is_not_read_into_memory() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lock");
    let file = fs::File::create(&path).unwrap();
    file.set_len(1 << 30).unwrap();
    file.lock().unwrap();
    let before = peak_kib();
    for sign in [false, true] {
        let tried = Disk.lock(&path, sign).unwrap();
        assert!(matches!(tried, LockAttempt::Busy(None)), "{tried:?}");
    }
    assert!(peak_kib() - before < 256 << 10, "{} KiB more", peak_kib() - before);
    fs::write(&path, "4711\n").unwrap();
    assert!(matches!(Disk.lock(&path, true).unwrap(), LockAttempt::Busy(Some(4711))));
    assert!(matches!(Disk.lock(&path, false).unwrap(), LockAttempt::Busy(None)));
}

/// The directories of every format were open to all users: everybody could read an event store's index.
#[test]
fn new_files_have_the_modes_of_their_format() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let book = Book::create(path("book")).unwrap();
    book.append(1, b"x").unwrap();
    book.save_meta(&Meta { life: Some(1), ..Meta::default() }).unwrap();
    book.close().unwrap();
    let wal = Wal::create(path("wal")).unwrap();
    wal.append(b"x").unwrap();
    wal.set_consumer("c", wal.head().unwrap()).unwrap();
    wal.close().unwrap();
    let pier = deedbook::book::pier::Pier::append_to(path("pier")).unwrap();
    pier.append(1, b"x").unwrap();
    pier.close().unwrap();
    let spool = LedgerStore::new(LedgerConfig::lines(path("spool"), "events")).unwrap();
    spool.append(b"x").unwrap();
    spool.fetch(None, None).unwrap();
    spool.close().unwrap();
    deedbook::nostr::EventStore::create(path("store")).unwrap().close().unwrap();
    let mut seen = 0;
    let mut left = vec![dir.path().to_path_buf()];
    while let Some(place) = left.pop() {
        for entry in fs::read_dir(place).unwrap() {
            let path = entry.unwrap().path();
            let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            let of_book =
                ["book", "pier"].iter().any(|name| path.starts_with(dir.path().join(name)));
            let in_sidecar = path.components().any(|part| part.as_os_str() == ".deedbook");
            // fjall makes the files in the index; nobody else may enter its directory.
            if path.parent().is_some_and(|dir| dir.ends_with(".deedbook/events")) {
                continue;
            }
            let wanted = match (of_book && !in_sidecar, path.is_dir()) {
                (true, true) => 0o755,
                (true, false) => 0o644,
                (false, true) => 0o700,
                (false, false) => 0o600,
            };
            // Without the bits of the umask.
            assert_eq!(mode & !wanted, 0, "{}: {mode:o}", path.display());
            seen += 1;
            if path.is_dir() {
                left.push(path);
            }
        }
    }
    assert!(seen > 20, "{seen}");
}
