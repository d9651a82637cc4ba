//! Full disks, and read-only disks.

use std::io;
use std::path::Path;

use deedbook::{Durability, Durable, Error, ErrorKind};

use crate::account::{Account, Must, record_of};
use crate::kind::{Kind, Log, Mode};
use crate::mounts::{FileSystem, scratch};
use crate::{Random, Report};

pub fn fill(report: &mut Report, kind: Kind, seed: u64) {
    let scratch = scratch();
    for (system, mib) in [("tmpfs", 4), ("ext4", 16), ("xfs", 320)] {
        let part = kind.part(&format!("full disk, {system}"));
        match FileSystem::make(system, scratch.path(), mib) {
            Err(why) => report.skip(&part, &why),
            Ok(fs) => {
                for round in 0..if system == "xfs" { 3 } else { 20 } {
                    let mut random = Random(seed ^ round << 32 ^ mib);
                    if let Err(what) = filled(report, &part, kind, &fs.at, &mut random) {
                        report.fail(format!("{part}, seed {seed}, round {round}: {what}"));
                        break;
                    }
                }
            }
        }
    }
}

/// Fill the disk except for `spare` bytes.
pub fn ballast(path: &Path, spare: u64) -> Result<(), String> {
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

/// Record the message of a writer.
fn hear(account: &mut Account, line: &str) {
    account.hear(&format!("{line}\n"));
}

fn append(log: &Log, account: &mut Account, seed: u64) -> Result<(), Error> {
    let (kind, at) = (account.kind(), log.end()?);
    hear(account, &format!("w {at} 1 {seed}"));
    let done = log.append(&record_of(kind, at, seed));
    match &done {
        Ok(()) => hear(account, &format!("a {}", log.end()?)),
        Err(error) if error.durable() == Some(Durable::No) => hear(account, &format!("x {at}")),
        Err(_) => {}
    }
    done
}

fn filled(
    report: &mut Report,
    part: &str,
    kind: Kind,
    at: &Path,
    random: &mut Random,
) -> Result<(), String> {
    let (dir, weight) = (at.join("log"), at.join("ballast"));
    let durability = match random.below(3) {
        0 => Durability::Always,
        1 => Durability::Manual,
        _ => Durability::Bytes(10_000),
    };
    let text = |error: Error| format!("{durability}: {error:?}");
    let mut account = Account::of(kind);
    let mut log = kind.open(&dir, Mode::Create, durability).map_err(text)?;
    // A log with some records and reserved space, and then a full disk.
    for _ in 0..random.below(30) {
        append(&log, &mut account, random.draw()).map_err(text)?;
    }
    ballast(&weight, random.below(300_000))?;
    let mut refusals = 0;
    for _ in 0..3000 {
        match append(&log, &mut account, random.draw()) {
            Ok(_) => {}
            Err(error) if is_full(&error) && error.durable() == Some(Durable::No) => {
                // The call refused, changed nothing, and the handle still works.
                refusals += 1;
                report.count(part, "appends refused", 1);
                log.sync().map_err(text)?;
                hear(&mut account, &format!("d {}", log.end().map_err(text)?));
            }
            Err(error) if is_full(&error) || error.kind() == ErrorKind::Poisoned => {
                // The cut or the sync needed space: the handle is poisoned. Free space, and open
                // again.
                report.count(part, "poisoned", 1);
                refusals += 1;
                std::fs::remove_file(&weight).map_err(|e| e.to_string())?;
                drop(log);
                account.check(&dir, Must::Durable)?;
                log = kind.open(&dir, Mode::Append, durability).map_err(text)?;
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
    if kind.cuts_ends() && weight.exists() {
        let prefix = kind.drops_prefixes() && random.below(2) == 0;
        let told = truncate(&log, &mut account, prefix).map_err(text)?;
        report.count(part, told, 1);
        if told == "truncations broken" {
            std::fs::remove_file(&weight).map_err(|e| e.to_string())?;
            drop(log);
            account.check(&dir, Must::Appended)?;
            log = kind.open(&dir, Mode::Append, durability).map_err(text)?;
        }
    }
    // On a full disk, creating a log is refused without leftovers.
    let second = at.join("second");
    let tried = kind.open(&second, Mode::Create, durability);
    if let Err(error) = &tried {
        report.count(part, "creations refused", 1);
        if !is_full(error) {
            return Err(text(tried.err().unwrap()));
        }
    }
    drop(tried);
    let _ = std::fs::remove_file(&weight);
    let again = kind.open(&second, Mode::Append, durability).map_err(text)?;
    again.append(&record_of(kind, again.end().map_err(text)?, 1)).map_err(text)?;
    again.close().map_err(text)?;
    // With free space, the same handle goes on.
    for _ in 0..10 {
        append(&log, &mut account, random.draw()).map_err(text)?;
    }
    log.close().map_err(text)?;
    let checked = account.check(&dir, Must::Appended)?;
    report.count(part, "rounds", 1);
    report.count(part, kind.records(), checked.acknowledged);
    std::fs::remove_dir_all(&dir).map_err(|e| e.to_string())?;
    std::fs::remove_dir_all(&second).map_err(|e| e.to_string())
}

/// Drop half of a log with only durable records. Returns the outcome for the report.
fn truncate(log: &Log, account: &mut Account, prefix: bool) -> Result<&'static str, Error> {
    let records = log.records()?;
    let Some(&(at, _)) = records.get(records.len() / 2) else { return Ok("nothing to truncate") };
    hear(account, &format!("{} {at}", if prefix { "b" } else { "c" }));
    match if prefix { log.truncate_before(at) } else { log.truncate_from(at) } {
        Ok(()) => {
            hear(account, "t");
            Ok("truncations")
        }
        Err(error) if !is_full(&error) => Err(error),
        Err(error) if error.durable() == Some(Durable::No) => {
            hear(account, "u");
            Ok("truncations refused")
        }
        Err(_) => Ok("truncations broken"),
    }
}

pub fn read_only(report: &mut Report, kind: Kind, seed: u64) {
    let scratch = scratch();
    for (system, mib) in [("tmpfs", 16), ("ext4", 32), ("xfs", 320)] {
        let part = kind.part(&format!("read-only, {system}"));
        match FileSystem::make(system, scratch.path(), mib) {
            Err(why) => report.skip(&part, &why),
            Ok(fs) => {
                for shape in ["closed", "torn", "without sidecar"] {
                    if let Err(what) = only_read(&fs, kind, shape, seed) {
                        report.fail(format!("{part}, {shape}: {what}"));
                    }
                    let _ = fs.remount("rw");
                    report.count(&part, "logs", 1);
                }
            }
        }
    }
}

fn only_read(fs: &FileSystem, kind: Kind, shape: &str, seed: u64) -> Result<(), String> {
    let dir = fs.at.join(shape.replace(' ', "-"));
    let text = |error: Error| format!("{error:?}");
    let manual = Durability::Manual;
    let mut account = Account::of(kind);
    let log = kind.open(&dir, Mode::Create, manual).map_err(text)?;
    for _ in 0..50 {
        append(&log, &mut account, seed).map_err(text)?;
    }
    let end = log.end().map_err(text)?;
    log.close().map_err(text)?;
    drop(log); // a closed handle keeps its descriptor, and the file system busy
    if shape == "torn" {
        use std::io::Write;
        let last_file = kind.open(&dir, Mode::Read, manual).and_then(|log| log.last_file());
        let file = std::fs::OpenOptions::new().append(true).open(last_file.map_err(text)?);
        file.unwrap().write_all(&[9, 0, 0, 0, 0, 0, 0, 0, 1]).unwrap();
    }
    if shape == "without sidecar" {
        std::fs::remove_dir_all(dir.join(".deedbook")).unwrap();
    }
    fs.remount("ro")?;
    let reader = kind.open(&dir, Mode::Read, manual).map_err(text)?;
    let found = reader.records().map_err(text)?.len();
    if found != 50 || reader.refresh().map_err(text)? != end {
        return Err(format!("{found} records read of 50"));
    }
    for (dir, mode, done) in
        [(dir.clone(), Mode::Append, "opened"), (fs.at.join("new"), Mode::Create, "created")]
    {
        match kind.open(&dir, mode, manual) {
            Ok(_) => return Err(format!("{done} for writing")),
            Err(error) if error.kind() == ErrorKind::Io => {}
            Err(error) => return Err(text(error)),
        }
    }
    fs.remount("rw")?;
    account.check(&dir, Must::Appended).map(drop)
}
