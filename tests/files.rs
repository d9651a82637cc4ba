//! Things in place of files, locks, and places where nothing can be written.
#![cfg(unix)]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use common::{events, in_role, make, quickly, refused, role};
use deedbook::book::{Book, Meta, Mode, Options, repair, salvage, verify};
use deedbook::{Durability, ErrorKind};

fn is_root() -> bool {
    // SAFETY: a system call without arguments.
    #[allow(unsafe_code)]
    unsafe {
        libc::geteuid() == 0
    }
}

/// Not a regular file, at a path that is free. `false`: this system does not allow it here.
fn put(kind: &str, path: &Path, elsewhere: &Path) -> bool {
    let run = |program: &str, args: &[&str]| {
        Command::new(program).arg(path).args(args).output().is_ok_and(|done| done.status.success())
    };
    match kind {
        "symlink" => symlink(elsewhere, path).is_ok(),
        "dangling" => symlink(path.with_file_name("nowhere"), path).is_ok(),
        "directory" => fs::create_dir(path).is_ok(),
        "fifo" => run("mkfifo", &[]),
        "device" => run("mknod", &["c", "1", "5"]),
        "socket" => std::os::unix::net::UnixListener::bind(path).is_ok(),
        _ => unreachable!(),
    }
}

const KINDS: [&str; 6] = ["symlink", "dangling", "directory", "fifo", "device", "socket"];

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
        match target.is_dir() {
            true => fs::remove_dir_all(&target).unwrap(),
            false => drop(fs::remove_file(&target)),
        }
        if !put(kind, &target, &other.join(name)) {
            skipped.push(kind);
            continue;
        }
        let before = listing(&other);
        judge(kind, book, &target);
        assert_eq!(listing(&other), before, "{kind}: something was written through the link");
    }
    if !skipped.is_empty() {
        println!("skipped: could not make {skipped:?} here");
    }
}

/// Paths and contents of all regular files.
fn listing(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(listing(&path)),
            false => found.push((path.clone(), fs::read(&path).unwrap())),
        }
    }
    found.sort();
    found
}

#[test]
fn what_is_no_regular_file_is_refused_in_place_of_the_log() {
    with_each("book.log", |kind, path, _| {
        fs::remove_dir_all(path.join(".deedbook")).unwrap();
        let rescued = path.with_file_name("rescued");
        let log = path.clone();
        let results = quickly(move || {
            let options = Options::default();
            [
                Book::open(&log).map(drop),
                Book::append_to(&log).map(drop),
                verify(&log, &options, |_, _| Ok(())).map(drop),
                repair(
                    &log,
                    &options,
                    deedbook::Repair { force: true, accept_loss: true, dry_run: false },
                )
                .map(drop),
                salvage(&log, rescued, &options, |_, _| Ok(())).map(drop),
            ]
        });
        for result in results {
            let error = refused(result, ErrorKind::NotALog);
            assert!(error.to_string().contains("book.log"), "{kind}: {error}");
        }
        assert!(!path.join(".deedbook").exists(), "{kind}: left something behind");
    });
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

#[test]
fn what_is_no_regular_file_is_refused_in_place_of_the_lock() {
    with_each(".deedbook/lock", |kind, path, _| {
        quickly(move || {
            let error = Book::append_to(&path).expect_err(kind);
            assert!(error.to_string().contains("lock"), "{kind}: {error}");
            assert_eq!(Book::open(&path).unwrap().len().unwrap(), 3);
        });
    });
}

/// Mark and index are advisory: without them, or an error, but never through a link.
#[test]
fn what_is_no_regular_file_does_no_harm_in_place_of_mark_and_index() {
    for name in [".deedbook/mark", ".deedbook/index", ".deedbook"] {
        with_each(name, |kind, path, _| {
            quickly(move || {
                assert_eq!(Book::open(&path).unwrap().len().unwrap(), 3, "{kind}");
                match Book::append_to(&path) {
                    Ok(book) => assert_eq!(book.append(0, &vec![7; 200_000]).unwrap(), 4, "{kind}"),
                    Err(error) => {
                        let error = error.to_string();
                        assert!(error.contains(".deedbook") || error.contains("mark"), "{error}");
                    }
                }
                assert!(verify(&path, &Options::default(), |_, _| Ok(())).unwrap().ok());
            });
        });
    }
}

fn holder(path: &Path) -> Option<u32> {
    refused(Book::append_to(path), ErrorKind::Locked).holder()
}

#[test]
fn a_second_writer_in_this_process_is_refused_whatever_it_calls_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let (path, linked, hard) = (dir.path().join("a"), dir.path().join("b"), dir.path().join("c"));
    let book = Book::create(&path).unwrap();
    symlink(&path, &linked).unwrap();
    fs::create_dir(&hard).unwrap();
    fs::hard_link(path.join("book.log"), hard.join("book.log")).unwrap();
    for other in [&path, &path.join("book.log"), &linked, &dir.path().join("a/../a"), &hard] {
        assert_eq!(holder(other), Some(std::process::id()), "{}", other.display());
    }
    refused(
        repair(
            &path,
            &Options::default(),
            deedbook::Repair { force: true, accept_loss: true, dry_run: false },
        ),
        ErrorKind::Locked,
    );
    refused(Book::create(&path), ErrorKind::AlreadyExists);
    assert_eq!(Book::open(&path).unwrap().len().unwrap(), 0);
    book.append(1, b"still here").unwrap();
    book.close().unwrap();
    for other in [&linked, &path] {
        Book::append_to(other).unwrap().append(2, b"next").unwrap();
    }
    // Its directory has a mark of its own, of the empty log: what lies behind is kept.
    assert_eq!(Book::append_to(&hard).unwrap().len().unwrap(), 3);
}

#[test]
fn the_sidecar_removed_under_a_writer_does_not_let_a_second_one_in() {
    let dir = tempfile::tempdir().unwrap();
    let book = Book::create(dir.path().join("a")).unwrap();
    book.append(1, b"x").unwrap();
    fs::remove_dir_all(dir.path().join("a/.deedbook")).unwrap();
    refused(Book::append_to(dir.path().join("a")), ErrorKind::Locked);
    book.append(1, b"y").unwrap();
    book.close().unwrap();
    assert_eq!(Book::append_to(dir.path().join("a")).unwrap().append(1, b"z").unwrap(), 3);
}

#[test]
fn a_writer_in_another_process_is_named_and_its_death_frees_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("book");
    let mut writer = in_role("hold", &path).spawn().unwrap();
    let mut lines = BufReader::new(writer.stderr.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "held");
    assert_eq!(holder(&path), Some(writer.id()));
    let error = Book::append_to(&path).unwrap_err().to_string();
    assert!(error.contains(&format!("process {}", writer.id())), "{error}");
    assert_eq!(Book::open(&path).unwrap().len().unwrap(), 1);
    writer.kill().unwrap();
    writer.wait().unwrap();
    assert_eq!(Book::append_to(&path).unwrap().append(1, b"next").unwrap(), 2);
}

#[test]
fn child() {
    let Some((role, path)) = role() else { return };
    assert_eq!(role, "hold");
    let book = Book::append_to(path).unwrap();
    book.append(1, b"mine").unwrap();
    eprintln!("held");
    // The parent kills this process; without it, it ends by itself.
    std::thread::sleep(Duration::from_secs(30));
}

/// Reads work, a writer is refused, nothing changes.
fn judge_read_only(path: &Path) {
    let before = listing(path);
    let book = Book::open(path).unwrap();
    assert_eq!(book.iter(0, None).unwrap().map(Result::unwrap).count(), 3);
    assert!(verify(path, &Options::default(), |_, _| Ok(())).unwrap().ok());
    for mode in [Mode::Append, Mode::Create] {
        let error = Options::default().open(path, mode).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Io | ErrorKind::AlreadyExists), "{error:?}");
    }
    repair(
        path,
        &Options::default(),
        deedbook::Repair { force: true, accept_loss: true, dry_run: false },
    )
    .unwrap_err();
    Book::create(path.join("new")).unwrap_err();
    assert_eq!(listing(path), before);
}

#[test]
fn a_read_only_directory_is_read_and_not_written() {
    if is_root() {
        println!("skipped: root may write anywhere; see the read-only file system");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("book");
    make(&path, &Options::default(), &events(3, 30));
    let all = [path.join(".deedbook"), path.clone()];
    for dir in &all {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                fs::set_permissions(path, fs::Permissions::from_mode(0o444)).unwrap();
            }
        }
        fs::set_permissions(dir, fs::Permissions::from_mode(0o555)).unwrap();
    }
    judge_read_only(&path);
    for dir in all.iter().rev() {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).output();
    }
}

fn mount(options: &str, at: &Path) -> bool {
    let arguments = ["-t", "tmpfs", "-o", options, "deedbook-test"];
    let done = Command::new("mount").args(arguments).arg(at).output();
    done.is_ok_and(|done| done.status.success())
}

#[test]
fn a_read_only_file_system_is_read_and_not_written() {
    let dir = tempfile::tempdir().unwrap();
    if !is_root() || !mount("size=1m", dir.path()) {
        println!("skipped: needs root and mount");
        return;
    }
    let _mounted = Mounted(dir.path().into());
    let path = dir.path().join("book");
    make(&path, &Options::default(), &events(3, 30));
    if !mount("remount,ro", dir.path()) {
        println!("skipped: cannot remount");
        return;
    }
    judge_read_only(&path);
}

/// Take away at most 600 KiB of space. Which part of the space of removed files is free again by then
/// is up to the system.
fn put_ballast(path: &Path) {
    let mut file = fs::File::create(path).unwrap();
    for written in 0..150 {
        match file.write_all(&[1; 4 << 10]) {
            Err(e) if e.kind() == std::io::ErrorKind::StorageFull => {
                assert!(written > 0, "there was no space at all");
                return;
            }
            done => done.unwrap(),
        }
    }
}

/// No space: an error, the data before is kept, and the handle goes on once there is space. The test
/// itself failed now and then, when its ballast met the full disk before the log did.
#[test]
fn a_full_disk_is_an_error_and_not_the_end() {
    let dir = tempfile::tempdir().unwrap();
    if !is_root() || !mount("size=1m", dir.path()) {
        println!("skipped: needs root and mount");
        return;
    }
    let _mounted = Mounted(dir.path().into());
    let (path, ballast) = (dir.path().join("book"), dir.path().join("ballast"));
    for (size, always) in [(100, true), (5000, false), (60_000, true), (200_000, false)] {
        let durability = if always { Durability::Always } else { Durability::Manual };
        let options = Options { durability, ..Options::default() };
        let book = options.open(&path, Mode::Append).unwrap();
        let last = book.append(1, b"before").unwrap();
        put_ballast(&ballast);
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
        assert_eq!(book.append(1, b"after").unwrap(), last + count + 1, "{size}");
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
