//! Readers and writers at once, followers, forks, and files that others change under a handle.
#![cfg(unix)]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![allow(clippy::print_stdout, clippy::print_stderr, unsafe_code)]

mod common;

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::{borders, contents, event_of, events, in_role, log, make, read_all, refused, role};
use deedbook::book::{Batch, Book, Mode, OnCorrupt, Options};
use deedbook::{Durability, ErrorKind};

fn manual() -> Options {
    Options { durability: Durability::Manual, ..Options::default() }
}

/// What a reader sees while a writer appends is a prefix, ends at a deed, and never an error.
#[test]
fn a_reader_beside_a_writer_sees_a_prefix_and_no_error() {
    let dir = tempfile::tempdir().unwrap();
    let writer = manual().open(dir.path(), Mode::Create).unwrap();
    let done = AtomicBool::new(false);
    let event = |number: u64| match number % 50 {
        0 => event_of(number, 200_000),
        1..5 => event_of(number, 5000),
        _ => event_of(number, 100),
    };
    let prefix = |book: &Book, from: u64| {
        let mut next = from;
        for deed in book.iter(from, None).unwrap() {
            let deed = deed.unwrap();
            assert_eq!((deed.event, (deed.mug, deed.jam)), (Some(next), event(next)));
            next += 1;
        }
        assert_eq!(next, book.last().unwrap() + 1);
        next - 1
    };
    std::thread::scope(|scope| {
        let opener = scope.spawn(|| {
            let (mut seen, mut opened) = (0, 0);
            while !done.load(Ordering::Acquire) {
                let book = Book::open(dir.path()).unwrap();
                let last = book.last().unwrap();
                assert!(last >= seen, "went back from {seen} to {last}");
                let from = last.saturating_sub(300).max(1);
                seen = prefix(&book, from);
                opened += 1;
            }
            opened
        });
        let refresher = scope.spawn(|| {
            let book = Book::open(dir.path()).unwrap();
            let mut seen = 0;
            while !done.load(Ordering::Acquire) {
                let last = book.refresh().unwrap();
                assert!(last >= seen);
                assert_eq!(prefix(&book, seen + 1), last);
                seen = last;
            }
            seen
        });
        let (start, mut next, mut batch) = (Instant::now(), 1, Batch::new(1 << 20));
        while start.elapsed() < Duration::from_millis(2000) {
            if next % 7 == 0 {
                batch.clear();
                for number in next..next + 3 {
                    let (mug, jam) = event(number);
                    batch.push(mug, &jam).unwrap();
                }
                assert_eq!(writer.append_batch(&batch, Some(next), None).unwrap(), next);
                next += 3;
            } else {
                let (mug, jam) = event(next);
                assert_eq!(writer.append(mug, &jam).unwrap(), next);
                next += 1;
            }
            if next % 64 == 0 {
                writer.sync().unwrap();
            }
        }
        done.store(true, Ordering::Release);
        let (opened, seen) = (opener.join().unwrap(), refresher.join().unwrap());
        println!("{next} events written, {opened} openings, {seen} seen by refreshing");
        assert!(opened > 5 && seen > 50);
    });
}

#[test]
fn a_file_cut_under_a_reader_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let all = events(400, 300);
    make(dir.path(), &manual(), &all);
    let reader = Book::open(dir.path()).unwrap();
    let mut started = reader.cursor(0, None, OnCorrupt::Raise).unwrap();
    started.next().unwrap().unwrap();
    let path = dir.path().join("book.log");
    let at = borders(&all)[100];
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(at + 10).unwrap();
    let (deeds, failed) = read_all(&reader);
    assert_eq!(
        (contents(&deeds), failed.unwrap().kind()),
        (all[..100].to_vec(), ErrorKind::Corrupt)
    );
    refused(reader.read(399), ErrorKind::Corrupt);
    refused(reader.refresh(), ErrorKind::Corrupt);
    reader.cursor_back(0, None).unwrap().next().unwrap_err();
    // What is in memory already may still be given; then it ends with an error, too.
    let ended = loop {
        match started.next() {
            Ok(Some(_)) => {}
            Ok(None) => break false,
            Err(_) => break true,
        }
    };
    assert!(ended || started.offset() == borders(&all)[400]);
    fs::write(&path, b"").unwrap();
    reader.read(1).unwrap_err();
}

/// Every append and sync fails from then on, or the log on disk is whole.
fn judge_writer(book: &Book, path: &Path, size: usize, what: &str) {
    let appended = book.append(1, &vec![9; size]);
    let synced = book.sync();
    let failed = appended.is_err() || synced.is_err();
    assert!(failed, "{what}: append and sync believe in a log that is gone");
    let error = book.append(1, b"after").and_then(|_| book.sync()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Poisoned, "{what}: {error}");
    let _ = book.close();
    assert!(Book::open(path).map(|book| book.last().unwrap()).unwrap_or(0) <= 2, "{what}");
}

/// The process was not killed by a store behind the end, but the log was filled up with zeros, and
/// a sync of a log that was replaced said that all was well.
#[test]
fn a_file_cut_removed_or_replaced_under_a_writer_poisons_it() {
    for size in [10, 20_000, 100_000] {
        for what in ["emptied", "cut", "removed", "replaced"] {
            let dir = tempfile::tempdir().unwrap();
            let book = manual().open(dir.path(), Mode::Create).unwrap();
            book.append(1, &[5; 3000]).unwrap();
            book.append(2, &vec![6; size]).unwrap();
            book.sync().unwrap();
            let path = dir.path().join("book.log");
            let set_len = |len| {
                fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(len).unwrap();
            };
            match what {
                "emptied" => set_len(0),
                "cut" => set_len(2000),
                "removed" => fs::remove_file(&path).unwrap(),
                _ => {
                    fs::write(dir.path().join("new"), log(1, &events(1, 30))).unwrap();
                    fs::rename(dir.path().join("new"), &path).unwrap();
                }
            }
            judge_writer(&book, dir.path(), size, &format!("{what}, {size} bytes"));
        }
    }
}

/// An append that raced with `close` wrote behind the cut, when the lock was free for others.
#[test]
fn an_append_that_races_with_close_is_in_the_log_or_refused() {
    // Long ones, so that some wait for each other when the book is closed.
    let jam = vec![7; 200_000];
    for round in 0..25 {
        let dir = tempfile::tempdir().unwrap();
        let book = manual().open(dir.path(), Mode::Create).unwrap();
        let append = || {
            let mut last = 0;
            loop {
                match book.append(1, &jam) {
                    Ok(event) => last = event,
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Closed);
                        return last;
                    }
                }
            }
        };
        let last = std::thread::scope(|scope| {
            let appenders = [(); 4].map(|()| scope.spawn(append));
            std::thread::sleep(Duration::from_micros(500 + 50 * round));
            book.close().unwrap();
            appenders.into_iter().map(|thread| thread.join().unwrap()).max().unwrap()
        });
        let len = fs::metadata(dir.path().join("book.log")).unwrap().len();
        assert_eq!(len, 16 + last * (24 + 200_000), "round {round}");
        let report = common::check(dir.path(), &manual());
        assert!(report.ok() && report.records == last && report.durable_end == Some(len));
    }
}

#[test]
fn several_threads_append_every_event_once() {
    let dir = tempfile::tempdir().unwrap();
    let book = Book::create(dir.path()).unwrap();
    let mut events: Vec<(u64, u32)> = std::thread::scope(|scope| {
        let append = |thread: u32| {
            let book = &book;
            move || {
                (0..40)
                    .map(|i| (book.append(thread * 100 + i, b"x").unwrap(), thread * 100 + i))
                    .collect()
            }
        };
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(append(thread))).collect();
        threads.into_iter().flat_map(|thread| -> Vec<_> { thread.join().unwrap() }).collect()
    });
    assert_eq!(book.durable_last().unwrap(), Some(160));
    book.close().unwrap();
    events.sort_unstable();
    let found: Vec<_> = read_all(&Book::open(dir.path()).unwrap())
        .0
        .iter()
        .map(|d| (d.event.unwrap(), d.mug))
        .collect();
    assert_eq!(found, events);
}

/// Runs in a process of its own, because a fork copies the locks of all threads.
#[test]
fn a_forked_child_is_refused_and_its_parent_unaffected() {
    let dir = tempfile::tempdir().unwrap();
    let done = in_role("fork", dir.path()).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(Book::append_to(dir.path()).unwrap().last().unwrap(), 3);
}

#[test]
fn child() {
    let Some((role, path)) = role() else { return };
    if role == "try" {
        let error = refused(Book::append_to(&path), ErrorKind::Locked);
        assert_eq!(error.holder(), std::env::var("DEEDBOOK_HOLDER").unwrap().parse().ok());
        return;
    }
    let options =
        Options { durability: Durability::Interval(Duration::from_millis(5)), ..manual() };
    let book = options.open(&path, Mode::Create).unwrap();
    let reader = Book::open(&path).unwrap();
    book.append(1, b"before").unwrap();
    // SAFETY: the child only calls the book and ends without running anything else.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let refuses = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            forked(&book, &path);
            forked(&reader, &path);
            drop((book.clone(), reader.clone()));
        }));
        drop(book);
        drop(reader);
        // SAFETY: ends the child without the parent's exit handlers.
        unsafe { libc::_exit(i32::from(refuses.is_err())) };
    }
    book.append(2, b"meanwhile").unwrap();
    let mut status = 0;
    // SAFETY: waits for the child made above.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    assert_eq!(status, 0, "the child was not refused");
    let mut other = in_role("try", &path);
    let tried = other.env("DEEDBOOK_HOLDER", std::process::id().to_string()).output().unwrap();
    assert!(tried.status.success(), "the lock is gone: {}", String::from_utf8_lossy(&tried.stderr));
    assert_eq!(book.append(3, b"after").unwrap(), 3);
    book.sync().unwrap();
    book.close().unwrap();
}

/// Every call on a handle of before the fork.
fn forked(book: &Book, path: &Path) {
    refused(book.append(1, b"x"), ErrorKind::Forked);
    refused(book.append_batch(&Batch::new(9), None, None), ErrorKind::Forked);
    refused(book.commit(1, b"x"), ErrorKind::Forked);
    refused(book.sync(), ErrorKind::Forked);
    refused(book.read(1), ErrorKind::Forked);
    refused(book.iter(0, None), ErrorKind::Forked);
    refused(book.cursor_back(0, None), ErrorKind::Forked);
    refused(book.follow(None), ErrorKind::Forked);
    refused(book.splits(1, 0, None), ErrorKind::Forked);
    refused(book.bounds(), ErrorKind::Forked);
    refused(book.last(), ErrorKind::Forked);
    refused(book.refresh(), ErrorKind::Forked);
    refused(book.meta(), ErrorKind::Forked);
    refused(book.close(), ErrorKind::Forked);
    let error = refused(Book::append_to(path), ErrorKind::Locked);
    // SAFETY: a system call without arguments.
    assert_eq!(error.holder(), Some(unsafe { libc::getppid() } as u32));
    assert!(Book::open(path).unwrap().last().unwrap() >= 1);
}
