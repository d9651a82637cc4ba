//! What a writer said, and what must therefore be found.
//!
//! ```text
//! w FIRST COUNT SEED   about to write these events
//! a FIRST COUNT        the append returned
//! x FIRST COUNT        the append failed, and said that nothing of it is in the log
//! d LAST               durable up to this event
//! r LAST               opened anew; the log ends there
//! e KIND TEXT          an error
//! .                    closed, and done
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use deedbook::Verdict;
use deedbook::book::{Book, Mode, Options, RecoveryReport, verify};

use crate::Random;

/// The event of a number and a seed: the same in the writer and here.
pub fn event_of(number: u64, seed: u64) -> (u32, Vec<u8>) {
    let mut random = Random(seed ^ number.wrapping_mul(0x0100_0000_01B3));
    let len = match random.below(64) {
        0 => random.below(300_000),
        1..=6 => random.below(20_000),
        _ => random.below(400),
    };
    let mut jam = vec![0; len as usize];
    for eight in jam.chunks_mut(8) {
        eight.copy_from_slice(&random.draw().to_le_bytes()[..eight.len()]);
    }
    (random.draw() as u32, jam)
}

/// The books of one writer after another on one log.
#[derive(Clone, Default)]
pub struct Ledger {
    /// Seed of each event that may be in the log.
    seeds: BTreeMap<u64, u64>,
    /// Last event whose append returned.
    pub appended: u64,
    /// Last event acknowledged as durable.
    pub durable: u64,
    pub errors: Vec<String>,
    pub finished: bool,
}

impl Ledger {
    /// Take in what a writer said; a last line without an end was not said.
    pub fn hear(&mut self, said: &str) {
        self.finished = false;
        let whole = said.rfind('\n').map_or("", |end| &said[..end]);
        for line in whole.lines() {
            let (what, rest) = line.split_once(' ').unwrap_or((line, ""));
            let numbers: Vec<u64> = rest.split(' ').filter_map(|word| word.parse().ok()).collect();
            match (what, numbers.as_slice()) {
                ("w", &[first, count, seed]) => {
                    self.seeds.split_off(&first);
                    self.seeds.extend((first..first + count).map(|number| (number, seed)));
                }
                ("a", &[first, count]) => self.appended = first + count - 1,
                ("x", &[first, _]) => drop(self.seeds.split_off(&first)),
                ("d", &[last]) => self.durable = self.durable.max(last),
                ("r", &[last]) => self.appended = last,
                ("e", _) => self.errors.push(rest.into()),
                (".", _) => self.finished = true,
                _ => panic!("the writer said {line:?}"),
            }
        }
    }

    /// Look at the log, open it for writing, and compare every deed. `least`: the last event that
    /// must be there.
    pub fn check(
        &mut self,
        dir: &Path,
        options: &Options,
        least: u64,
    ) -> Result<RecoveryReport, String> {
        if least == 0 && !dir.join("book.log").exists() {
            self.keep(0);
            let empty = Book::append_to(dir).map_err(|e| format!("creating it: {e}"))?;
            return Ok(empty.recovery().clone());
        }
        let verified = verify(dir, options, |_, _| Ok(())).map_err(|e| format!("verify: {e}"))?;
        if verified.verdict == Verdict::Corrupt {
            return Err(format!("verify says corrupt: {verified:?}"));
        }
        let reader = options.open(dir, Mode::Read).map_err(|e| format!("reading: {e}"))?;
        let seen = self.compare(&reader, least)?;
        let writer = options.open(dir, Mode::Append).map_err(|e| format!("opening: {e}"))?;
        let kept = self.compare(&writer, least)?;
        if kept != seen || verified.deeds != seen {
            return Err(format!("{seen} deeds read, {} verified, {kept} kept", verified.deeds));
        }
        let recovery = writer.recovery().clone();
        writer.close().map_err(|e| format!("closing: {e}"))?;
        self.keep(kept);
        Ok(recovery)
    }

    /// What was found is what there is from now on, and durable.
    fn keep(&mut self, last: u64) {
        self.seeds.split_off(&(last + 1));
        (self.appended, self.durable) = (last, last);
    }

    fn compare(&self, book: &Book, least: u64) -> Result<u64, String> {
        let mut last = 0;
        for deed in book.iter(0, None).map_err(|e| e.to_string())? {
            let deed = deed.map_err(|e| format!("deed {}: {e}", last + 1))?;
            last += 1;
            let Some(seed) = self.seeds.get(&last) else {
                return Err(format!("deed {last} was never written, or taken back"));
            };
            if deed.event != Some(last) || (deed.mug, deed.jam) != event_of(last, *seed) {
                return Err(format!("deed {last} differs"));
            }
        }
        match last < least {
            true => Err(format!("{last} deeds found, {least} acknowledged")),
            false => Ok(last),
        }
    }
}
