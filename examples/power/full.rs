//! Disks that are full, and disks that may only be read.

use std::io;
use std::path::Path;

use deedbook::book::{Book, Mode, Options};
use deedbook::{Durability, Durable, Error, ErrorKind};

use crate::ledger::{Ledger, event_of};
use crate::mounts::{FileSystem, scratch};
use crate::{Random, Report};

pub fn fill(report: &mut Report, seed: u64) {
    let scratch = scratch();
    for (kind, mib) in [("tmpfs", 4), ("ext4", 16), ("xfs", 320)] {
        let part = format!("full disk, {kind}");
        match FileSystem::make(kind, scratch.path(), mib) {
            Err(why) => report.skip(&part, &why),
            Ok(fs) => {
                for round in 0..if kind == "xfs" { 3 } else { 20 } {
                    let mut random = Random(seed ^ round << 32 ^ mib);
                    if let Err(what) = filled(report, &part, &fs.at, &mut random) {
                        report.fail(format!("{part}, seed {seed}, round {round}: {what}"));
                        break;
                    }
                }
            }
        }
    }
}

/// Take all the space there is but for `spare` bytes.
fn ballast(path: &Path, spare: u64) -> Result<(), String> {
    use std::io::Write;
    let mut file = std::fs::File::create(path).map_err(|e| e.to_string())?;
    let block = vec![0xAA; 64 << 10];
    let mut size = block.len();
    while size > 0 {
        match file.write(&block[..size]) {
            Ok(0) => size /= 2,
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::StorageFull => size /= 2,
            Err(e) => return Err(e.to_string()),
        }
    }
    let len = file.metadata().map_err(|e| e.to_string())?.len();
    file.set_len(len.saturating_sub(spare)).map_err(|e| e.to_string())?;
    file.sync_all().map_err(|e| e.to_string())
}

fn is_full(error: &Error) -> bool {
    let full = error.io_source().is_some_and(|e| e.kind() == io::ErrorKind::StorageFull);
    error.kind() == ErrorKind::Io && full
}

fn filled(report: &mut Report, part: &str, at: &Path, random: &mut Random) -> Result<(), String> {
    let (dir, weight) = (at.join("log"), at.join("ballast"));
    let durability = match random.below(3) {
        0 => Durability::Always,
        1 => Durability::Manual,
        _ => Durability::Bytes(10_000),
    };
    let options = Options { durability, ..Options::default() };
    let text = |error: Error| format!("{durability}: {error:?}");
    let mut ledger = Ledger::default();
    let mut book = options.open(&dir, Mode::Create).map_err(text)?;
    let hear = |ledger: &mut Ledger, line: String| ledger.hear(&format!("{line}\n"));
    let append = |book: &Book, ledger: &mut Ledger, seed: u64| {
        let number = book.last()? + 1;
        let (mug, jam) = event_of(number, seed);
        hear(ledger, format!("w {number} 1 {seed}"));
        let done = book.append(mug, &jam);
        match &done {
            Ok(_) => hear(ledger, format!("a {number} 1")),
            Err(error) if error.durable() == Some(Durable::No) => {
                hear(ledger, format!("x {number} 1"));
            }
            Err(_) => {}
        }
        done
    };
    // A log with some deeds and space reserved, and then no space for more.
    for _ in 0..random.below(30) {
        append(&book, &mut ledger, random.draw()).map_err(text)?;
    }
    ballast(&weight, random.below(300_000))?;
    let mut refusals = 0;
    for _ in 0..3000 {
        match append(&book, &mut ledger, random.draw()) {
            Ok(_) => {}
            Err(error) if is_full(&error) && error.durable() == Some(Durable::No) => {
                // Refused, nothing changed, and the handle goes on.
                refusals += 1;
                report.count(part, "appends refused", 1);
                book.sync().map_err(text)?;
                let last = book.last().map_err(text)?;
                hear(&mut ledger, format!("d {last}"));
            }
            Err(error) if is_full(&error) || error.kind() == ErrorKind::Poisoned => {
                // The cut itself needed space, or the sync did: poisoned, reopened once there is.
                report.count(part, "poisoned", 1);
                refusals += 1;
                std::fs::remove_file(&weight).map_err(|e| e.to_string())?;
                drop(book);
                let durable = ledger.durable;
                ledger.check(&dir, &options, durable)?;
                book = options.open(&dir, Mode::Append).map_err(text)?;
                break;
            }
            Err(error) => return Err(text(error)),
        }
        if refusals > 4 {
            break;
        }
    }
    if refusals == 0 {
        return Err("the disk never was full".into());
    }
    // A new log, and metadata, on a full disk: refused, and nothing is left in the way.
    let second = at.join("second");
    let tried = options.open(&second, Mode::Create);
    if let Err(error) = &tried {
        report.count(part, "creations refused", 1);
        if !is_full(error) {
            return Err(text(tried.unwrap_err()));
        }
    }
    drop(tried);
    let _ = std::fs::remove_file(&weight);
    let again = options.open(&second, Mode::Append).map_err(text)?;
    again.append(1, b"room").map_err(text)?;
    again.close().map_err(text)?;
    // With space again everything goes on, with the same handle.
    for _ in 0..10 {
        append(&book, &mut ledger, random.draw()).map_err(text)?;
    }
    let last = book.last().map_err(text)?;
    book.close().map_err(text)?;
    ledger.check(&dir, &options, last)?;
    report.count(part, "rounds", 1);
    report.count(part, "deeds", last);
    std::fs::remove_dir_all(&dir).map_err(|e| e.to_string())?;
    std::fs::remove_dir_all(&second).map_err(|e| e.to_string())
}

pub fn read_only(report: &mut Report, seed: u64) {
    let scratch = scratch();
    for (kind, mib) in [("tmpfs", 16), ("ext4", 32), ("xfs", 320)] {
        let part = format!("read-only, {kind}");
        match FileSystem::make(kind, scratch.path(), mib) {
            Err(why) => report.skip(&part, &why),
            Ok(fs) => {
                for shape in ["closed", "torn", "without sidecar"] {
                    if let Err(what) = only_read(&fs, shape, seed) {
                        report.fail(format!("{part}, {shape}: {what}"));
                    }
                    let _ = fs.remount("rw");
                    report.count(&part, "logs", 1);
                }
            }
        }
    }
}

fn only_read(fs: &FileSystem, shape: &str, seed: u64) -> Result<(), String> {
    let dir = fs.at.join(shape.replace(' ', "-"));
    let text = |error: Error| format!("{error:?}");
    let mut ledger = Ledger::default();
    let book = Book::create(&dir).map_err(text)?;
    for number in 1..=50 {
        let (mug, jam) = event_of(number, seed);
        ledger.hear(&format!("w {number} 1 {seed}\n"));
        book.append(mug, &jam).map_err(text)?;
    }
    book.close().map_err(text)?;
    drop(book); // a closed handle keeps its descriptor, and the file system busy
    if shape == "torn" {
        use std::io::Write;
        let log = std::fs::OpenOptions::new().append(true).open(dir.join("book.log"));
        log.unwrap().write_all(&[9, 0, 0, 0, 0, 0, 0, 0, 1]).unwrap();
    }
    if shape == "without sidecar" {
        std::fs::remove_dir_all(dir.join(".deedbook")).unwrap();
    }
    fs.remount("ro")?;
    let reader = Book::open(&dir).map_err(text)?;
    let found = reader.iter(0, None).map_err(text)?.collect::<Result<Vec<_>, _>>().map_err(text)?;
    if found.len() != 50 || reader.refresh().map_err(text)? != 50 {
        return Err(format!("{} deeds read of 50", found.len()));
    }
    match Book::append_to(&dir) {
        Ok(_) => return Err("opened for writing".into()),
        Err(error) if error.kind() == ErrorKind::Io => {}
        Err(error) => return Err(text(error)),
    }
    match Book::create(fs.at.join("new")) {
        Ok(_) => return Err("created".into()),
        Err(error) if error.kind() == ErrorKind::Io => {}
        Err(error) => return Err(text(error)),
    }
    fs.remount("rw")?;
    ledger.check(&dir, &Options::default(), 50)?;
    Ok(())
}
