//! Ledgers on real file systems: power cuts, full disks, limits of all files, read-only file systems. The messages of a
//! ledger's writer, and the required events.
//!
//! ```text
//! w FIRST COUNT   about to append so many events
//! a FIRST COUNT   the append returned
//! x FIRST COUNT   it failed, and said that nothing of it is in the ledger
//! g FIRST COUNT   about to remove these
//! t FIRST COUNT   they are removed
//! e KIND TEXT     an error
//! .               closed, and done
//! ```

use std::fs::File;
use std::io::{ErrorKind as Io, Read};
use std::path::Path;
use std::time::Duration;

use deedbook::ledger::{LedgerStore, Options, WhenFull};
use deedbook::{Durability, Durable, Error, ErrorKind};

use crate::cuts::{each_system, start};
use crate::full::ballast;
use crate::mounts::{FileSystem, scratch};
use crate::support::ledger::known::Known;
use crate::support::ledger::spool::{BASE, event, number_of, shown, small};
use crate::{Random, Report, number};

/// Approximate size of the longest event: some events span several pages.
pub const EVENT_BYTES: u64 = 6000;
pub const FILE_BYTES: usize = 20_000;
/// The check appends from this number on.
const LAST: u64 = 99_999_999;

/// The expected events of a ledger, over several writers.
#[derive(Default)]
pub struct Spool {
    known: Known,
    next: u64,
    pub finished: bool,
    pub errors: Vec<String>,
}

pub fn numbers(first: u64, count: u64) -> std::ops::Range<u64> {
    first..first + count
}

pub fn options(durability: Durability) -> Options {
    Options::new().durability(durability)
}

fn text(error: Error) -> String {
    format!("{error:?}")
}

/// Whether the disk or the limit of all files is full. The error must have the OS error and a path.
fn is_full(error: &Error) -> bool {
    let source = error.io_source().map(std::io::Error::kind);
    let full = matches!(source, Some(Io::StorageFull | Io::QuotaExceeded));
    error.kind() == ErrorKind::Io && full && error.path().is_some()
}

impl Spool {
    /// Process a writer's output. A last line without an end does not count.
    pub fn hear(&mut self, said: &str) {
        for line in said.rfind('\n').map_or("", |end| &said[..end]).lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let number = |at: usize| words.get(at).and_then(|word| word.parse().ok());
            let range = number(1).zip(number(2)).map(|(first, count)| numbers(first, count));
            match (words[0], range) {
                ("w", Some(range)) => self.known.tried.extend(range),
                ("a", Some(range)) => self.known.written.extend(range),
                ("x", Some(range)) => self.known.tried.retain(|number| !range.contains(number)),
                ("g", Some(range)) => self.known.leaving.extend(range),
                ("t", Some(range)) => self.known.removed.extend(range),
                ("e", _) => self.errors.push(line.into()),
                (".", _) => self.finished = true,
                _ => panic!("the writer said {line:?}"),
            }
        }
    }

    fn append(&mut self, ledger: &LedgerStore, count: u64) -> Result<(), Error> {
        let range = numbers(self.next, count);
        self.next += count;
        self.known.tried.extend(range.clone());
        let payloads: Vec<_> = range.clone().map(|number| event(number, EVENT_BYTES)).collect();
        let appended = ledger.append_many(&payloads).map(drop);
        match &appended {
            Ok(()) => self.known.written.extend(range),
            Err(e) if e.durable() == Some(Durable::No) => {
                self.known.tried.retain(|number| !range.contains(number));
            }
            Err(_) => {}
        }
        appended
    }

    /// Fetch all events, compare, and append. Returns the number of events.
    pub fn check(&mut self, dir: &Path, power: bool) -> Result<u64, String> {
        let ledger = options(Durability::Always).open(small(dir, FILE_BYTES)).map_err(text)?;
        let reports = ledger.options().verify(dir, BASE).map_err(text)?;
        let counted: u64 = reports.iter().map(|(_, report)| report.records).sum();
        let (mut got, mut sent) = (Vec::new(), Vec::new());
        while let Some(fetched) = ledger.fetch(None, None).map_err(text)? {
            let events: Vec<_> = shown(&fetched).into_iter().flat_map(|(_, part)| part).collect();
            let numbers: Vec<u64> = events.iter().map(|event| number_of(event)).collect();
            let differs =
                |(part, number): &(&Vec<u8>, &u64)| **part != event(**number, EVENT_BYTES);
            if let Some((_, number)) = events.iter().zip(&numbers).find(differs) {
                return Err(format!("event {number} differs"));
            }
            got.extend(&numbers);
            if got.len() as u64 >= counted {
                break;
            }
            // More files than a fetch returns: remove the fetched files first.
            ledger.remove(&fetched.removable.unwrap_or_default()).map_err(text)?;
            sent.extend(numbers);
        }
        if counted != got.len() as u64 {
            return Err(format!("verify counts {counted} events, {} are sent", got.len()));
        }
        self.known.judge(&got, power)?;
        self.known.leaving.extend(&sent);
        self.known.removed.extend(sent);
        let last = event(LAST, 0);
        ledger.append(&last).map_err(text)?;
        let again = ledger.fetch(None, None).map_err(text)?.ok_or("nothing is there")?;
        match shown(&again).last().is_some_and(|(_, events)| events.last() == Some(&last)) {
            true => Ok(got.len() as u64),
            false => Err("the last event is not there".into()),
        }
    }
}

pub fn fill(report: &mut Report, seed: u64) {
    let scratch = scratch();
    for (system, mib) in [("tmpfs", 4), ("ext4", 16), ("xfs", 320)] {
        let part = format!("full disk, {system}, ledger");
        match FileSystem::make(system, scratch.path(), mib) {
            Err(why) => report.skip(&part, &why),
            Ok(fs) => {
                for round in 0..if system == "xfs" { 3 } else { 20 } {
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

fn filled(report: &mut Report, part: &str, at: &Path, random: &mut Random) -> Result<(), String> {
    let (dir, weight) = (at.join("spool"), at.join("ballast"));
    let durability = ["none", "rotate", "always", "manual"][random.below(4) as usize];
    let durability: Durability = durability.parse().map_err(text)?;
    // Half of the limits exceed the disk, to fill the disk first.
    let limit = Some(if random.below(2) == 0 { 60_000 } else { 1 << 30 });
    let when_full = if random.below(2) == 0 { WhenFull::Reject } else { WhenFull::DropOldest };
    let limited = options(durability).bytes_total_max(limit).when_full(when_full);
    let what = |error: Error| format!("{durability}, {when_full:?} at {limit:?}: {error:?}");
    let mut spool = Spool::default();
    let ledger = limited.open(small(&dir, FILE_BYTES)).map_err(what)?;
    for _ in 0..random.below(5) {
        spool.append(&ledger, 1).map_err(what)?;
    }
    ballast(&weight, random.below(300_000))?;
    let (mut refusals, mut dropped) = (0, false);
    for _ in 0..600 {
        match spool.append(&ledger, 1 + random.below(3)) {
            Ok(()) => {}
            Err(error) if is_full(&error) && error.durable() == Some(Durable::No) => {
                report.count(part, "appends refused", 1);
                refusals += 1;
            }
            Err(error) if is_full(&error) || error.kind() == ErrorKind::Poisoned => {
                report.count(part, "appends of which a part is there", 1);
                refusals += 1;
            }
            Err(error) => return Err(what(error)),
        }
        dropped = ledger.stats().dropped_records > 0;
        if refusals > 8 {
            break;
        }
    }
    if refusals == 0 && !dropped {
        return Err("the disk never was full".into());
    }
    let stats = ledger.stats();
    report.count(part, "events dropped", stats.dropped_records);
    // Sending works on a full disk, and frees space.
    if let Some(fetched) = ledger.fetch(Some(1), None).map_err(what)? {
        let sent = shown(&fetched);
        let sent = sent.iter().flat_map(|(_, events)| events).map(|event| number_of(event));
        spool.known.leaving.extend(sent);
        ledger.remove(&fetched.removable.unwrap_or_default()).map_err(what)?;
        report.count(part, "files sent from a full disk", 1);
    }
    std::fs::remove_file(&weight).map_err(|e| e.to_string())?;
    if let Some(fetched) = ledger.fetch(None, None).map_err(what)? {
        // Send all files except the oldest.
        let sent = shown(&fetched).split_off(1);
        let sent = sent.iter().flat_map(|(_, events)| events).map(|event| number_of(event));
        spool.known.leaving.extend(sent);
        ledger.remove(&fetched.removable.unwrap_or_default()[1..]).map_err(what)?;
    }
    // With free space, the same handle goes on, unless a sync failed.
    let ledger = match spool.append(&ledger, 1) {
        Err(error) if error.kind() == ErrorKind::Poisoned => {
            report.count(part, "opened again", 1);
            limited.open(small(&dir, FILE_BYTES)).map_err(what)?
        }
        Err(error) => return Err(what(error)),
        Ok(()) => ledger,
    };
    for _ in 0..3 {
        spool.append(&ledger, 1).map_err(what)?;
    }
    ledger.close().map_err(what)?;
    // Only the oldest events are gone, as counted, maybe with a part of a failed batch.
    let unsure = spool.known.tried.len() - spool.known.written.len();
    let gone = stats.dropped_records as usize;
    let oldest: Vec<_> = spool.known.tried.iter().take(gone + unsure).copied().collect();
    spool.known.leaving.extend(oldest);
    let found = spool.check(&dir, false)?;
    report.count(part, "rounds", 1);
    report.count(part, "events", found);
    std::fs::remove_dir_all(&dir).map_err(|e| e.to_string())
}

pub fn read_only(report: &mut Report) {
    let scratch = scratch();
    for (system, mib) in [("tmpfs", 16), ("ext4", 32), ("xfs", 320)] {
        let part = format!("read-only, {system}, ledger");
        match FileSystem::make(system, scratch.path(), mib) {
            Err(why) => report.skip(&part, &why),
            Ok(fs) => {
                if let Err(what) = only_read(&fs) {
                    report.fail(format!("{part}: {what}"));
                }
                let _ = fs.remount("rw");
                report.count(&part, "ledgers", 1);
            }
        }
    }
}

fn only_read(fs: &FileSystem) -> Result<(), String> {
    let dir = fs.at.join("spool");
    let mut spool = Spool::default();
    let ledger = options(Durability::Always).open(small(&dir, FILE_BYTES)).map_err(text)?;
    for _ in 0..20 {
        spool.append(&ledger, 2).map_err(text)?;
    }
    ledger.close().map_err(text)?;
    drop(ledger); // a closed handle keeps its descriptor, and the file system busy
    fs.remount("ro")?;
    let reports = options(Durability::None).verify(&dir, BASE).map_err(text)?;
    let counted: u64 = reports.iter().map(|(_, report)| report.records).sum();
    if counted != 40 {
        return Err(format!("{counted} events are seen of 40"));
    }
    let told = |done: Result<(), Error>| match done {
        Err(e) if e.io_source().map(std::io::Error::kind) == Some(Io::ReadOnlyFilesystem) => {
            e.path().is_some().then_some(()).ok_or(format!("no path: {e:?}"))
        }
        done => Err(format!("on a file system that may only be read: {done:?}")),
    };
    let ledger = options(Durability::Always).open(small(&dir, FILE_BYTES)).map_err(text)?;
    told(spool.append(&ledger, 1))?;
    drop(ledger);
    fs.remount("rw")?;
    spool.check(&dir, false).map(drop)
}

pub fn cut(report: &mut Report, seed: u64) {
    let scratch = scratch();
    let part_of = |system: &str| format!("power cuts, {system}, ledger");
    each_system(report, scratch.path(), seed, part_of, |report, part, fs, random| {
        for cycle in 0..number("DEEDBOOK_POWER_CYCLES", 100) {
            cut_once(fs, random).map_err(|what| format!("cycle {cycle}: {what}"))?;
            report.count(part, "cycles", 1);
        }
        Ok(())
    });
}

/// Stop a writer with only durable appends, and then cut the device.
fn cut_once(fs: &mut FileSystem, random: &mut Random) -> Result<(), String> {
    let dir = fs.at.join("spool");
    let writer_seed = random.draw().to_string();
    let mut child =
        start(&["spool", dir.to_str().unwrap(), "always", &writer_seed, "1000000"], None)?;
    let mut pipe = child.stdout();
    let ear = std::thread::spawn(move || {
        let mut said = String::new();
        pipe.read_to_string(&mut said).map(|_| said)
    });
    std::thread::sleep(Duration::from_micros(random.below(60_000)));
    child.signal("-STOP")?;
    fs.cut(random.below(2) == 0)?;
    child.kill()?;
    let said = ear.join().unwrap().map_err(|e| e.to_string())?;
    fs.unmount()?;
    fs.mount()?;
    let mut spool = Spool::default();
    spool.hear(&said);
    spool.known.durable = spool.known.written.clone();
    spool.known.removal_is_durable = true;
    spool.check(&dir, true)?;
    // Remove durably: otherwise the next cut brings back the check's own event.
    let removed = std::fs::remove_dir_all(&dir).and_then(|()| File::open(&fs.at)?.sync_all());
    removed.map_err(|e| e.to_string())
}
