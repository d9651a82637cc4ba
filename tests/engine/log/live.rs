//! Concurrent readers and writers, followers, forks, and files changed under a handle.

use super::*;

fn on_disk(format: &dyn Format, dir: &Path, events: &[Event]) -> (At, Box<dyn Log>) {
    let at = At::disk(format.path_in(dir));
    let log = format.create(&at, events);
    (at, log)
}

// Promise: reader-beside.
#[test]
fn readers_next_to_a_writer_give_a_prefix() {
    let event = |number: u64| match number % 50 {
        0 => event_of(number, 200_000),
        1..5 => event_of(number, 5000),
        _ => event_of(number, 100),
    };
    let prefix = |records: &[Record], from: u64| {
        for (number, record) in (from..).zip(records) {
            let (tag, bytes) = event(number);
            assert!(record.bytes == bytes, "record {number} is another");
            assert!(record.tag == tag || record.tag == 0);
        }
        from + records.len() as u64
    };
    for format in LARGE {
        let dir = tempfile::tempdir().unwrap();
        let (at, writer) = on_disk(format, dir.path(), &[]);
        writer.append(event(0).0, &event(0).1).unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let opener = scope.spawn(|| {
                let (mut seen, mut opened) = (0, 0);
                while !done.load(Ordering::Acquire) {
                    let log = format.read(&at).unwrap();
                    let walk = log.forward(None, None, false);
                    assert!(walk.error.is_none(), "{}: {:?}", format.name(), walk.error);
                    let next = prefix(&walk.records, 0);
                    assert!(next >= seen && next == log.len().unwrap(), "from {seen} to {next}");
                    (seen, opened) = (next, opened + 1);
                }
                opened
            });
            let refresher = scope.spawn(|| {
                let log = format.read(&at).unwrap();
                let (mut seen, mut from) = (0, Some(format.first_ordinal()));
                while !done.load(Ordering::Acquire) {
                    log.refresh().unwrap();
                    let walk = log.forward(from, None, false);
                    assert!(walk.error.is_none(), "{}: {:?}", format.name(), walk.error);
                    seen = prefix(&walk.records, seen);
                    if let Some(last) = walk.records.last() {
                        from = Some(format.ordinal_after(last.ordinal.unwrap(), last.bytes.len()));
                    }
                }
                seen
            });
            let (start, mut next) = (Instant::now(), 1);
            while start.elapsed() < Duration::from_millis(900) {
                if next % 7 == 0 {
                    let batch: Vec<_> = (next..next + 3).map(event).collect();
                    writer.append_batch(&batch).unwrap();
                    next += 3;
                } else {
                    let (tag, bytes) = event(next);
                    writer.append(tag, &bytes).unwrap();
                    next += 1;
                }
                if next % 64 == 0 {
                    writer.sync().unwrap();
                }
                if next > 4_000 {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            done.store(true, Ordering::Release);
            let (opened, seen) = (opener.join().unwrap(), refresher.join().unwrap());
            println!("{}: {next} written, {opened} openings, {seen} seen", format.name());
            assert!(opened > 1 && seen > 50);
        });
    }
}

// Promise: changed-under.
#[test]
fn a_reader_raises_when_its_file_is_truncated() {
    for format in &LARGE[..2] {
        let dir = tempfile::tempdir().unwrap();
        let events: Vec<_> = (0..400).map(|i| event_of(i, 300)).collect();
        let edges = Specimen::new(*format, &events, Beside::Nothing).edges;
        let (at, log) = on_disk(*format, dir.path(), &events);
        log.close().unwrap();
        let reader = format.read(&at).unwrap();
        let last = reader.backward(None, None).records[0].ordinal.unwrap();
        let file = format.first_file(&at.path);
        let set_len = |len| fs::OpenOptions::new().write(true).open(&file).unwrap().set_len(len);
        set_len(edges[100] as u64 + 10).unwrap();
        let walk = reader.forward(None, None, false);
        let bytes = walk.records.iter().map(|record| &record.bytes);
        assert!(bytes.eq(events[..100].iter().map(|(_, bytes)| bytes)));
        let kinds = [ErrorKind::Corrupt, ErrorKind::OutOfRange, ErrorKind::LostRecords];
        let errors = [
            walk.error,
            reader.read(last).err(),
            reader.refresh().err(),
            reader.backward(None, None).error,
        ];
        for error in errors {
            let error = error.expect("what was cut cannot be read");
            assert!(kinds.contains(&error.kind()), "{}: {error:?}", format.name());
        }
        set_len(0).unwrap();
        reader.read(format.first_ordinal()).unwrap_err();
    }
}

/// Every append and sync fails from then on, or the log on disk is complete.
fn judge_writer(format: &dyn Format, at: &At, log: &dyn Log, size: usize, what: &str) {
    let appended = log.append(1, &vec![9; size]);
    let synced = log.sync();
    let failed = appended.is_err() || synced.is_err();
    assert!(failed, "{what}: append and sync succeed on a log that is gone");
    let error = log.append(1, b"after").and_then(|_| log.sync()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Poisoned, "{what}: {error}");
    let _ = log.close();
    let left = format.read(at).and_then(|log| log.len()).unwrap_or(0);
    assert!(left <= 2, "{what}: {left}");
}

/// A store after the end filled the log with zeros. A sync of a replaced log reported success.
// Promise: changed-under.
#[test]
fn a_lost_or_replaced_file_poisons_its_writer() {
    for format in &LARGE[..2] {
        for size in [10, 20_000, 100_000] {
            for what in ["emptied", "cut", "removed", "replaced"] {
                let dir = tempfile::tempdir().unwrap();
                let (at, log) = on_disk(*format, dir.path(), &[(1, vec![5; 3000])]);
                log.append(2, &vec![6; size]).unwrap();
                log.sync().unwrap();
                let path = format.first_file(&at.path);
                let set_len = |len| {
                    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(len).unwrap();
                };
                match what {
                    "emptied" => set_len(0),
                    "cut" => set_len(2000),
                    "removed" => fs::remove_file(&path).unwrap(),
                    _ => {
                        let framing = format.framing();
                        let header = framing.file_header(format.first_ordinal());
                        let new = [&header[..], &framing.encode(1, b"another")].concat();
                        fs::write(dir.path().join("new"), new).unwrap();
                        fs::rename(dir.path().join("new"), &path).unwrap();
                    }
                }
                let what = format!("{}, {what}, {size} bytes", format.name());
                judge_writer(*format, &at, &*log, size, &what);
            }
        }
    }
}

/// An append that raced with `close` wrote after the cut, with the lock already free for others.
#[test]
fn appends_racing_with_close_succeed_or_are_refused() {
    // Long payloads, so appends wait for each other during the close.
    let payload = vec![7; 200_000];
    for format in LARGE {
        for round in 0..10 {
            let dir = tempfile::tempdir().unwrap();
            let (at, log) = on_disk(format, dir.path(), &[]);
            let append = || {
                let mut count = 0;
                loop {
                    match log.append(1, &payload) {
                        Ok(_) => count += 1,
                        Err(error) => {
                            assert_eq!(error.kind(), ErrorKind::Closed);
                            return count;
                        }
                    }
                }
            };
            let count: u64 = std::thread::scope(|scope| {
                let appenders = [(); 4].map(|()| scope.spawn(append));
                std::thread::sleep(Duration::from_micros(500 + 50 * round));
                log.close().unwrap();
                appenders.into_iter().map(|thread| thread.join().unwrap()).sum()
            });
            let report = format.verify(&at, MANUAL).unwrap();
            assert!(report.ok() && report.records == count, "{}: {report:?}", format.name());
            assert_eq!(report.verdict, Verdict::Clean, "{}: {report:?}", format.name());
        }
    }
}

/// Runs in a process of its own, because a fork copies the locks of all threads.
// Promise: fork.
#[test]
fn a_refused_forked_child_leaves_its_parent_working() {
    for format in LARGE {
        let dir = tempfile::tempdir().unwrap();
        let at = At::disk(format.path_in(dir.path()));
        let done =
            in_role("log::child", &format!("fork:{}", format.name()), &at.path).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        assert_eq!(format.open(&at, Mode::Append, MANUAL).unwrap().len().unwrap(), 3);
    }
}

#[allow(unsafe_code)]
pub fn fork(format: &dyn Format, at: &At) {
    let durability = Durability::Interval(Duration::from_millis(5));
    let log = format.open(at, Mode::Create, How { durability, ..MANUAL }).unwrap();
    log.append(1, b"before").unwrap();
    let reader = format.read(at).unwrap();
    // SAFETY: the child only calls the log and ends without running anything else.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let refuses = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            forked(format, &*log, at);
            forked(format, &*reader, at);
            drop((log.duplicate(), reader.duplicate()));
        }));
        drop(log);
        drop(reader);
        // SAFETY: ends the child without the parent's exit handlers.
        unsafe { libc::_exit(i32::from(refuses.is_err())) };
    }
    log.append(2, b"meanwhile").unwrap();
    let mut status = 0;
    // SAFETY: waits for the child made above.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    assert_eq!(status, 0, "the child was not refused");
    let mut other = in_role("log::child", &format!("try:{}", format.name()), &at.path);
    let tried = other.env("DEEDBOOK_HOLDER", std::process::id().to_string()).output().unwrap();
    assert!(tried.status.success(), "the lock is gone: {}", String::from_utf8_lossy(&tried.stderr));
    log.append(3, b"after").unwrap();
    log.sync().unwrap();
    log.close().unwrap();
}

/// A service was killed while its forked workers went on, and its log stayed locked.
#[test]
#[allow(unsafe_code)]
fn an_orphaned_forked_child_holds_no_lock() {
    for format in LARGE {
        let dir = tempfile::tempdir().unwrap();
        let at = At::disk(format.path_in(&dir.path().join("log")));
        let done =
            in_role("log::child", &format!("orphan:{}", format.name()), &at.path).output().unwrap();
        let child = std::fs::read_to_string(pid_file(&at)).unwrap().parse().unwrap();
        // SAFETY: a signal to the child below.
        let is_alive = || unsafe { libc::kill(child, 0) } == 0;
        assert!(is_alive(), "{}", String::from_utf8_lossy(&done.stderr));
        let log = format.open(&at, Mode::Append, MANUAL);
        let held = is_alive();
        // SAFETY: as above.
        unsafe { libc::kill(child, libc::SIGKILL) };
        assert_eq!((log.unwrap().len().unwrap(), held), (1, true), "{}", format.name());
    }
}

fn pid_file(at: &At) -> PathBuf {
    at.path.parent().unwrap().join("pid")
}

/// A process that ends at once, while its child goes on with the handle.
#[allow(unsafe_code)]
pub fn orphan(format: &dyn Format, at: &At) {
    std::fs::create_dir_all(at.path.parent().unwrap()).unwrap();
    let log = format.open(at, Mode::Create, MANUAL).unwrap();
    log.append(1, b"before").unwrap();
    log.sync().unwrap();
    // SAFETY: the child only closes files, sleeps and ends; the parent ends without closing the log.
    unsafe {
        let pid = libc::fork();
        if pid == 0 {
            for output in 0..3 {
                libc::close(output);
            }
            libc::sleep(60);
            libc::_exit(0);
        }
        std::fs::write(pid_file(at), pid.to_string()).unwrap();
        libc::_exit(0);
    }
}

pub fn attempt(format: &dyn Format, at: &At) {
    let error = refused(format.open(at, Mode::Append, MANUAL), ErrorKind::Locked);
    assert_eq!(error.holder(), std::env::var("DEEDBOOK_HOLDER").unwrap().parse().ok());
}

#[allow(unsafe_code)]
fn forked(format: &dyn Format, log: &dyn Log, at: &At) {
    let is_forked = |error: Option<deedbook::Error>| {
        assert_eq!(error.map(|error| error.kind()), Some(ErrorKind::Forked));
    };
    is_forked(log.append(1, b"x").err());
    is_forked(log.append_batch(&plain(1, 3)).err());
    is_forked(log.commit(1, b"x").err());
    is_forked(log.sync().err());
    is_forked(log.read(format.first_ordinal()).err());
    is_forked(log.forward(None, None, false).error);
    is_forked(log.backward(None, None).error);
    is_forked(log.follow().error);
    is_forked(log.splits(1, None, None, false).err());
    is_forked(log.len().err());
    is_forked(log.end().err());
    is_forked(log.refresh().err());
    is_forked(log.durable().err());
    is_forked(log.close().err());
    let error = refused(format.open(at, Mode::Append, MANUAL), ErrorKind::Locked);
    // SAFETY: a system call without arguments.
    assert_eq!(error.holder(), Some(unsafe { libc::getppid() } as u32));
    assert!(format.read(at).unwrap().len().unwrap() >= 1);
}
