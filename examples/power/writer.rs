//! The process under test.

use std::io::Write;
use std::path::Path;

use deedbook::{Durability, Durable, Error, ErrorKind};

use crate::Random;
use crate::account::record_of;
use crate::kind::{Kind, Log, Mode};

/// Write a line with one call, so the reader gets the line at once. Exit if the reader is gone.
pub fn say(line: &str) {
    if std::io::stdout().write_all(format!("{line}\n").as_bytes()).is_err() {
        std::process::exit(1);
    }
}

fn say_error(error: &Error) {
    say(&format!("e {} {}", error.kind().name(), error.to_string().replace('\n', " ")));
}

/// `open KIND DIR`: recover; the test cuts the power meanwhile.
pub fn open(kind: &str, dir: &str) {
    say("w 0 0 0");
    let opened = Kind::named(kind).open(Path::new(dir), Mode::Append, Durability::Manual);
    if let Err(error) = opened.and_then(|log| log.close()) {
        say_error(&error);
    }
}

/// `write KIND DIR DURABILITY SEED STEPS BYTES`: append for STEPS steps, or until the power cut.
/// After BYTES bytes, only sync.
pub fn write(args: &[String]) {
    let [kind, dir, durability, seed, steps, bytes] = args else { panic!("{args:?}") };
    let (kind, durability) = (Kind::named(kind), durability.parse().unwrap());
    let mut random = Random(seed.parse().unwrap());
    let mut left = steps.parse::<u64>().unwrap();
    let bytes_left = bytes.parse().unwrap();
    // Truncate rarely in some long histories, to let the log grow.
    let truncates = if left > 1000 && random.below(2) == 0 { 400 } else { 24 };
    let places = Vec::new();
    let mut writer = Writer { kind, durability, random, bytes_left, truncates, places };
    let mut openings = 0;
    while left > 0 && openings < 8 {
        openings += 1;
        let log = match kind.open(Path::new(dir), Mode::Append, durability) {
            Ok(log) => log,
            Err(error) => {
                say_error(&error);
                continue;
            }
        };
        let (head, end) = (log.head().unwrap(), log.end().unwrap());
        say(&format!("r {head} {end}"));
        writer.places = (head < end).then_some(head).into_iter().collect();
        while left > 0 {
            left -= 1;
            if let Err(error) = writer.step(&log) {
                say_error(&error);
                if error.kind() == ErrorKind::Poisoned || writer.random.below(8) == 0 {
                    break;
                }
            }
        }
        let end = log.end().unwrap();
        match log.close() {
            Ok(()) if durability != Durability::None => say(&format!("d {end}")),
            Ok(()) => {}
            Err(error) => say_error(&error),
        }
    }
    say(".");
}

struct Writer {
    kind: Kind,
    durability: Durability,
    random: Random,
    bytes_left: u64,
    /// One step in this many is a truncation.
    truncates: u64,
    /// Known beginnings of records, as places for truncations.
    places: Vec<u64>,
}

impl Writer {
    fn step(&mut self, log: &Log) -> Result<(), Error> {
        if self.kind.cuts_ends() && self.random.below(self.truncates) == 0 {
            return self.truncate(log);
        }
        let at = log.end()?;
        let seed = self.random.draw();
        let what = self.random.below(16);
        if what == 0 {
            // Wait between two background syncs.
            std::thread::sleep(std::time::Duration::from_micros(self.random.below(2000)));
        }
        if what <= 2 {
            return sync(log, at);
        }
        let count = if what < 5 { 1 + self.random.below(40) } else { 1 };
        let (mut records, mut place, mut bytes) = (Vec::new(), at, 0);
        let mut places = Vec::new();
        for _ in 0..count {
            let record = record_of(self.kind, place, seed);
            let len = record.bytes.len() as u64;
            places.push(place);
            (place, bytes) = (self.kind.behind(place, len), bytes + len);
            records.push(record);
        }
        if bytes > self.bytes_left {
            std::thread::sleep(std::time::Duration::from_micros(500));
            return sync(log, at);
        }
        say(&format!("w {at} {count} {seed}"));
        let appended = match records.as_slice() {
            [one] if what == 5 => log.commit(one),
            [one] => log.append(one),
            many => log.append_batch(many),
        };
        if let Err(error) = appended {
            if error.durable() == Some(Durable::No) {
                say(&format!("x {at}"));
            }
            return Err(error);
        }
        self.bytes_left -= bytes;
        self.places.extend(places);
        say(&format!("a {place}"));
        if self.durability == Durability::Always || (count == 1 && what == 5) {
            say(&format!("d {place}"));
        } else if let Some(end) = log.durable_end()? {
            say(&format!("d {end}"));
        }
        Ok(())
    }

    /// Drop a prefix or cut the end, at a durable record.
    fn truncate(&mut self, log: &Log) -> Result<(), Error> {
        let durable = log.durable_end()?.unwrap_or(0);
        let known = self.places.partition_point(|&place| place < durable) as u64;
        if known == 0 {
            return Ok(());
        }
        let prefix = self.kind.drops_prefixes() && self.random.below(2) == 0;
        // Mostly cut only a few records.
        let of = if prefix || self.random.below(3) == 0 { known } else { known.min(8) };
        let at = match prefix && self.random.below(8) == 0 {
            true => durable, // all that there is
            false => self.places[(known - 1 - self.random.below(of)) as usize],
        };
        say(&format!("{} {at}", if prefix { "b" } else { "c" }));
        let truncated = if prefix { log.truncate_before(at) } else { log.truncate_from(at) };
        if let Err(error) = truncated {
            if error.durable() == Some(Durable::No) {
                say("u");
                return Err(error);
            }
            say_error(&error);
            // The log is the old or the new one: only an opening can tell, so the handle must
            // refuse appends.
            log.append(&record_of(self.kind, at, 0))?;
            say("f an append behind a truncation that failed half-way");
            return Err(error);
        }
        say("t");
        if let Some(end) = log.durable_end()? {
            say(&format!("d {end}"));
        }
        self.places.retain(|&place| if prefix { place >= at } else { place < at });
        Ok(())
    }
}

fn sync(log: &Log, end: u64) -> Result<(), Error> {
    log.sync()?;
    say(&format!("d {end}"));
    Ok(())
}
