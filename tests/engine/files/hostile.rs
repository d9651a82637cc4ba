//! Each file and directory below a log is replaced by something else. Every call on the log ends
//! soon, in an error or not, and touches nothing outside.
//!
//! A security review found most ways out by such a matrix: links in the sidecar, FIFOs, sparse
//! files held in memory.

use std::os::unix::fs::MetadataExt;
use std::sync::mpsc;
use std::time::SystemTime;

use crate::support::prelude::*;
use crate::support::store::events::copy;

pub const FORMATS: &[&str] = &["book", "pier", "wal", "ledger", "store"];
const THINGS: [&str; 4] = ["link", "fifo", "other kind", "huge"];
const LIMIT: Duration = Duration::from_secs(60);

type Done = deedbook::Result<()>;

pub fn spool(path: &Path) -> deedbook::Result<LedgerStore> {
    LedgerStore::new(LedgerConfig::lines(path, "events"))
}

fn of_job(job: &str) -> Transaction {
    Transaction { job: job.into(), id: None }
}

/// A log with something in each of its files.
pub fn make(format: &str, path: &Path) -> Done {
    match format {
        "book" => {
            let log = Book::append_to(path)?;
            log.append(1, b"one")?;
            log.save_meta(&book::Meta { life: Some(1), ..book::Meta::default() })?;
            log.stage("left", 0, 1, None)?.finish()?;
            log.close()
        }
        "wal" => {
            let log = Wal::append_to(path)?;
            let end = log.append(b"one")?;
            log.set_consumer("c", end)?;
            log.stage("left", 0, 1, None)?.finish()?;
            log.close()
        }
        "pier" => {
            let log = Pier::append_to(path)?;
            log.append(1, b"one")?;
            log.roll()?;
            log.append(1, b"two")?;
            log.set_consumer("c", 1)?;
            log.close()
        }
        "ledger" => {
            let log = spool(path)?;
            log.append(b"one")?;
            log.fetch(None, None)?;
            log.append(b"two")?;
            let mut stage = log.stage("left", 0, 1)?;
            stage.push(b"three")?;
            stage.finish()?;
            fs::create_dir_all(path.join(".deedbook/quarantine")).unwrap();
            log.close()
        }
        _ => EventStore::append_to(path)?.close().map(drop),
    }
}

/// Runs every call for reading, in any order.
fn read(format: &str, path: &Path, aside: &Path) -> Vec<Done> {
    let no = |_, _| Ok(());
    match format {
        "book" => {
            let options = book::Options::new();
            vec![
                Book::open(path).and_then(|log| log.iter(..)?.try_for_each(|deed| deed.map(drop))),
                Book::open(path).and_then(|log| log.meta().map(drop)),
                Book::open(path).and_then(|log| log.follow(None).map(drop)),
                Book::open(path).and_then(|log| log.staged().map(drop)),
                options.verify_with(path, no).map(drop),
                options.salvage_with(path, aside, no).map(drop),
            ]
        }
        "wal" => {
            let options = wal::Options::new();
            vec![
                Wal::open(path).and_then(|log| log.iter(..)?.try_for_each(|r| r.map(drop))),
                Wal::open(path).and_then(|log| log.consumers().map(drop)),
                Wal::open(path).and_then(|log| log.follow(None).map(drop)),
                Wal::open(path).and_then(|log| log.staged().map(drop)),
                options.verify_with(path, no).map(drop),
                options.salvage_with(path, aside, no).map(drop),
            ]
        }
        "pier" => vec![
            Pier::open(path).and_then(|log| log.iter(..)?.try_for_each(|deed| deed.map(drop))),
            Pier::open(path).and_then(|log| log.follow(None).map(drop)),
            book::Options::new().verify_pier_with(path, no).map(drop),
        ],
        "ledger" => {
            let options = ledger::Options::new();
            vec![
                options.contents(path, None).map(drop),
                options.verify_with(path, "events", no).map(drop),
                options.salvage_with(path, "events", aside, no).map(drop),
                spool(path).and_then(|log| log.staged().map(drop)),
            ]
        }
        _ => {
            let options = nostr::Options::new();
            vec![
                EventStore::open(path).map(drop),
                EventStore::open(path).and_then(|s| s.verify(nostr::Check::default()).map(drop)),
                options.salvage(path, aside).map(drop),
            ]
        }
    }
}

/// Runs every call for writing, one after the other.
fn write(format: &str, path: &Path) -> Vec<Done> {
    let may = |dry_run| Repair { dry_run, ..Repair::default() };
    match format {
        "book" => {
            let options = book::Options::new();
            let append = || Book::append_to(path);
            vec![
                options.repair(path, may(true)).map(drop),
                append().and_then(|log| log.append(1, b"x").map(drop)),
                append().and_then(|log| log.save_meta(&book::Meta::default())),
                append().and_then(|log| {
                    let mut stage = log.stage("job", 0, 1, None)?;
                    stage.push(1, b"staged")?;
                    log.commit_staged(&of_job("job"), &[stage.finish()?]).map(drop)
                }),
                append().and_then(|log| log.discard_staged("left").map(drop)),
                append().and_then(|log| log.abandon_transaction().map(drop)),
                options.repair(path, may(false)).map(drop),
            ]
        }
        "wal" => {
            let options = wal::Options::new();
            let append = || Wal::append_to(path);
            vec![
                options.repair(path, may(true)).map(drop),
                append().and_then(|log| log.append(b"x").map(drop)),
                append().and_then(|log| {
                    let mut stage = log.stage("job", 0, 1, None)?;
                    stage.push(b"staged")?;
                    log.commit_staged(&of_job("job"), &[stage.finish()?]).map(drop)
                }),
                append().and_then(|log| log.discard_staged("left").map(drop)),
                append().and_then(|log| log.set_consumer("d", log.head()?)),
                append().and_then(|log| log.truncate_before(log.head()?).map(drop)),
                append().and_then(|log| log.truncate_after(log.head()?).map(drop)),
                options.repair(path, may(false)).map(drop),
            ]
        }
        "pier" => {
            let append = || Pier::append_to(path);
            vec![
                append().and_then(|log| log.append(1, b"x").map(drop)),
                append().and_then(|log| log.set_consumer("d", 1)),
                append().and_then(|log| log.roll().map(drop)),
                append().and_then(|log| log.discard_staged("left").map(drop)),
                append().and_then(|log| log.retain(&Retention::default()).map(drop)),
            ]
        }
        "ledger" => vec![
            spool(path).and_then(|log| log.append(b"x").map(drop)),
            spool(path).and_then(|log| log.stage("job", 0, 1)?.push(b"x")),
            spool(path).and_then(|log| log.discard_staged("left").map(drop)),
            spool(path).and_then(|log| log.fetch(None, None).map(drop)),
            spool(path).and_then(|log| log.reset()),
        ],
        _ => {
            let options = nostr::Options::new();
            let append = || EventStore::append_to(path);
            vec![
                options.repair(path, may(true)).map(drop),
                append().map(drop),
                append().and_then(|store| store.checkpoint().map(drop)),
                append().and_then(|store| store.discard_staged("left").map(drop)),
                options.repair(path, may(false)).map(drop),
            ]
        }
    }
}

fn below(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(below(&path));
        }
        found.push(path);
    }
    found.sort();
    found
}

fn state(dir: &Path) -> Vec<(PathBuf, u32, SystemTime, Option<Vec<u8>>)> {
    let look = |path: PathBuf| {
        let seen = fs::symlink_metadata(&path).unwrap();
        let bytes = seen.is_file().then(|| fs::read(&path).unwrap());
        (path, seen.mode(), seen.modified().unwrap(), bytes)
    };
    below(dir).into_iter().chain([dir.to_path_buf()]).map(look).collect()
}

/// Puts the thing there; `false` if the thing makes no sense at this kind of place.
fn put(thing: &str, path: &Path, outside: &Path) -> bool {
    let is_dir = path.is_dir();
    let away = |path: &Path| match is_dir {
        true => fs::remove_dir_all(path).unwrap(),
        false => fs::remove_file(path).unwrap(),
    };
    match (thing, is_dir) {
        ("link", _) => {
            let canary = outside.join("canary");
            match is_dir {
                true => copy(path, &canary),
                false => fs::copy(path, &canary).map(drop).unwrap(),
            }
            away(path);
            symlink(&canary, path).unwrap();
        }
        ("fifo", _) => {
            away(path);
            assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
        }
        ("other kind", true) => {
            away(path);
            fs::write(path, b"a file").unwrap();
        }
        ("other kind", false) => {
            away(path);
            fs::create_dir(path).unwrap();
        }
        (_, true) => return false,
        (_, false) => fs::File::options().write(true).open(path).unwrap().set_len(1 << 30).unwrap(),
    }
    true
}

#[test]
#[cfg(target_os = "linux")]
fn hostile_files_in_a_log_never_lead_outside() {
    let before = super::peak_kib();
    for format in FORMATS {
        let home = tempfile::tempdir().unwrap();
        let specimen = home.path().join("specimen");
        make(format, &specimen).unwrap();
        let places = below(&specimen);
        // Only the kind of the files of fjall matters: one file stands for all.
        let of_index = specimen.join(".deedbook/events");
        let is_shown = |path: &&PathBuf| !path.starts_with(&of_index) || path.ends_with("events");
        for place in places.iter().filter(is_shown) {
            let place = place.strip_prefix(&specimen).unwrap();
            for thing in THINGS {
                let dir = tempfile::tempdir().unwrap();
                let (log, outside) = (dir.path().join("log"), dir.path().join("outside"));
                copy(&specimen, &log);
                fs::create_dir(&outside).unwrap();
                fs::write(outside.join("thesis.pdf"), b"years of work").unwrap();
                if !put(thing, &log.join(place), &outside) {
                    continue;
                }
                let (seen, what) =
                    (state(&outside), format!("{format}: {thing} as {}", place.display()));
                let (send, done) = mpsc::channel();
                let (format, aside) = (*format, dir.path().join("aside"));
                std::thread::spawn(move || {
                    read(format, &log, &aside);
                    write(format, &log);
                    let _ = send.send(());
                });
                done.recv_timeout(LIMIT).unwrap_or_else(|e| panic!("{what}: {e}"));
                let changed: Vec<_> = {
                    let now = state(&outside);
                    let is_new = |state: &&_| !seen.contains(state);
                    now.iter().filter(is_new).map(|(path, ..)| path.clone()).collect()
                };
                let is_all_there = seen.iter().all(|(path, ..)| path.symlink_metadata().is_ok());
                assert!(changed.is_empty() && is_all_there, "{what}: {changed:?}");
            }
        }
    }
    let more = super::peak_kib() - before;
    assert!(more < 700 << 10, "{more} KiB more");
}
