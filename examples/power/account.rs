//! The messages of a writer, and the required contents of the log.
//!
//! ```text
//! w AT COUNT SEED   about to write so many records, the first at this place
//! a END             the append returned; the log ends there
//! x AT              the append failed, and said that nothing of it is in the log
//! d END             durable up to there
//! b AT              about to drop every record before this one
//! c AT              about to cut this record and every one behind it
//! t                 the truncation returned
//! u                 it failed, and said that nothing was changed
//! r HEAD END        opened again; the log begins and ends there
//! e KIND TEXT       an error
//! f TEXT            what must not have happened
//! .                 closed, and done
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use deedbook::Durability;
use deedbook::report::Verdict;

use crate::Random;
use crate::kind::{Kind, Log, Mode, Record};

/// The record of a place and a seed, the same in the writer and in the check.
pub fn record_of(kind: Kind, place: u64, seed: u64) -> Record {
    let (mut random, len) = length_of(place, seed);
    let mut bytes = vec![0; len as usize];
    for eight in bytes.chunks_mut(8) {
        eight.copy_from_slice(&random.draw().to_le_bytes()[..eight.len()]);
    }
    let mug = if kind.is_book() { random.draw() as u32 } else { 0 };
    Record { mug, bytes }
}

fn length_of(place: u64, seed: u64) -> (Random, u64) {
    let mut random = Random(seed ^ place.wrapping_mul(0x0100_0000_01B3));
    let len = match random.below(64) {
        0 => random.below(300_000),
        1..=6 => random.below(20_000),
        _ => random.below(400),
    };
    (random, len)
}

/// A possible state of the log.
#[derive(Clone)]
struct State {
    head: u64,
    /// Seed of each possible record, by place.
    seeds: BTreeMap<u64, u64>,
    /// End of the last append that returned.
    appended: u64,
    /// End of the records acknowledged as durable.
    durable: u64,
    /// As `durable`, including a sync that may have met the power cut.
    claimed: u64,
}

impl State {
    fn at(head: u64) -> Self {
        Self { head, seeds: BTreeMap::new(), appended: head, durable: head, claimed: head }
    }

    fn end(&self, kind: Kind) -> u64 {
        let behind = |(&place, &seed)| kind.behind(place, length_of(place, seed).1);
        self.seeds.last_key_value().map_or(self.head, behind)
    }

    fn without_prefix(&self, at: u64) -> Self {
        let mut dropped = self.clone();
        dropped.seeds = dropped.seeds.split_off(&at);
        dropped.head = at;
        dropped
    }

    fn cut(&self, at: u64) -> Self {
        let mut cut = self.clone();
        cut.seeds.split_off(&at);
        cut.appended = cut.appended.min(at);
        cut.durable = cut.durable.min(at);
        cut.claimed = cut.claimed.min(at);
        cut
    }

    /// Check whether the log has this state, up to `least` or beyond.
    fn compare(&self, kind: Kind, found: &Found, least: u64) -> Result<(), String> {
        if found.head != self.head {
            return Err(format!("the log begins at {}, not at {}", found.head, self.head));
        }
        let mut begun = self.seeds.iter();
        for (place, record) in &found.records {
            match begun.next() {
                Some((begun, &seed)) if begun == place => {
                    if *record != record_of(kind, *place, seed) {
                        return Err(format!("the record at {place} differs"));
                    }
                }
                _ => return Err(format!("a record at {place} was never written, or taken back")),
            }
        }
        let (records, end) = (found.records.len(), found.end);
        match end < least {
            true => Err(format!("{records} records up to {end} found, acknowledged up to {least}")),
            false => Ok(()),
        }
    }
}

/// The contents of a log.
#[derive(PartialEq, Eq)]
struct Found {
    head: u64,
    end: u64,
    records: Vec<(u64, Record)>,
}

impl Found {
    fn of(log: &Log, what: &str) -> Result<Self, String> {
        let found = |e: deedbook::Error| format!("{what}: {e}");
        let (head, end) = (log.head().map_err(found)?, log.end().map_err(found)?);
        Ok(Self { head, end, records: log.records().map_err(found)? })
    }
}

/// The required records: all acknowledged as durable, or every append that returned.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Must {
    Durable,
    Appended,
}

/// The results of a check.
#[derive(Default)]
pub struct Checked {
    pub torn: bool,
    /// Required records.
    pub acknowledged: u64,
    /// Missing records, acknowledged by a sync during the power cut.
    pub claimed_lost: u64,
    /// Missing records, appended but never acknowledged.
    pub appended_lost: u64,
    /// Whether an interrupted truncation took effect, if there was one.
    pub truncated: Option<bool>,
}

/// The expected states of a log, over several writers.
pub struct Account {
    kind: Kind,
    /// The last is the newest; several during an unacknowledged truncation.
    states: Vec<State>,
    /// Acknowledged truncations.
    pub truncations: u64,
    pub errors: Vec<String>,
    pub finished: bool,
    /// A fault seen by the writer.
    fault: Option<String>,
}

impl Account {
    pub fn of(kind: Kind) -> Self {
        let states = vec![State::at(kind.first())];
        Self { kind, states, truncations: 0, errors: Vec::new(), finished: false, fault: None }
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Process a writer's output. A last line without an end does not count.
    pub fn hear(&mut self, said: &str) {
        self.take_in(said, true);
    }

    /// As `hear`, but without trusting acknowledgements.
    pub fn hear_in_doubt(&mut self, said: &str) {
        self.take_in(said, false);
    }

    fn newest(&mut self) -> &mut State {
        self.states.last_mut().expect("there is always one")
    }

    fn take_in(&mut self, said: &str, sure: bool) {
        self.finished = false;
        let whole = said.rfind('\n').map_or("", |end| &said[..end]);
        for line in whole.lines() {
            let (what, rest) = line.split_once(' ').unwrap_or((line, ""));
            let numbers: Vec<u64> = rest.split(' ').filter_map(|word| word.parse().ok()).collect();
            let kind = self.kind;
            let newest = self.newest();
            match (what, numbers.as_slice()) {
                ("w", &[at, count, seed]) => {
                    newest.seeds.split_off(&at);
                    let mut place = at;
                    for _ in 0..count {
                        newest.seeds.insert(place, seed);
                        place = kind.behind(place, length_of(place, seed).1);
                    }
                    if at < newest.durable && sure {
                        self.fault = Some(format!("{line:?} below {}, durable", newest.durable));
                    }
                }
                ("a", &[end]) => newest.appended = end,
                ("x", &[at]) => drop(newest.seeds.split_off(&at)),
                ("d", &[end]) => {
                    newest.claimed = newest.claimed.max(end);
                    newest.durable = newest.durable.max(if sure { end } else { 0 });
                }
                ("b", &[at]) => {
                    let dropped = newest.without_prefix(at);
                    self.states.push(dropped);
                }
                ("c", &[at]) => {
                    let cut = newest.cut(at);
                    self.states.push(cut);
                }
                ("t", []) if sure => {
                    self.truncations += 1;
                    self.states.drain(..self.states.len() - 1);
                }
                ("t", []) => {}
                ("u", []) => drop(self.states.pop()),
                ("r", &[head, end]) => self.reopened(head, end, sure),
                ("f", _) => self.fault = Some(rest.into()),
                ("e", _) => self.errors.push(rest.into()),
                (".", _) => self.finished = true,
                _ => panic!("the writer said {line:?}"),
            }
        }
    }

    /// Choose the state that matches a writer's report of the opened log.
    fn reopened(&mut self, head: u64, end: u64, sure: bool) {
        let kind = self.kind;
        let holds = |state: &&State| {
            state.head == head && (state.appended..=state.end(kind)).contains(&end)
        };
        let found = self.states.iter().rev().find(holds).map(|state| state.cut(end));
        match found {
            Some(state) if sure => self.states = vec![State { appended: end, ..state }],
            Some(state) => self.states.push(state),
            None if sure => {
                let wanted: Vec<_> =
                    self.states.iter().map(|s| (s.head, s.appended, s.end(kind))).collect();
                self.fault = Some(format!("opened at {head}..{end}, and not as one of {wanted:?}"));
            }
            None => {}
        }
    }

    /// Look at the log, open it for writing, compare every record, and append to it.
    pub fn check(&mut self, dir: &Path, must: Must) -> Result<Checked, String> {
        let (kind, manual) = (self.kind, Durability::Manual);
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let least = |state: &State| match must {
            Must::Durable => state.durable,
            Must::Appended => state.appended.max(state.durable),
        };
        let new = |state: &State| state.head == kind.first() && least(state) == kind.first();
        if !kind.exists(dir) && self.states.iter().any(new) {
            let empty = kind.open(dir, Mode::Append, manual);
            let empty = empty.map_err(|e| format!("creating it: {e}"))?;
            empty.close().map_err(|e| format!("closing it: {e}"))?;
            self.states = vec![State::at(kind.first())];
            return Ok(Checked::default());
        }
        let verified = kind.verify(dir).map_err(|e| format!("verify: {e}"))?;
        if verified.verdict == Verdict::Corrupt {
            return Err(format!("verify says corrupt: {verified:?}"));
        }
        let reader = kind.open(dir, Mode::Read, manual).map_err(|e| format!("reading: {e}"))?;
        let seen = Found::of(&reader, "reading")?;
        let compare = |state: &State| state.compare(kind, &seen, least(state));
        let Some(at) = self.states.iter().rposition(|state| compare(state).is_ok()) else {
            let why: Vec<_> = self.states.iter().filter_map(|s| compare(s).err()).collect();
            return Err(why.join(", or "));
        };
        let writer = kind.open(dir, Mode::Append, manual).map_err(|e| format!("opening: {e}"))?;
        let kept = Found::of(&writer, "opened")?;
        if kept != seen || (verified.records, verified.end) != (seen.records.len() as u64, seen.end)
        {
            let (seen, kept) = (seen.end, kept.end);
            return Err(format!("read up to {seen}, kept up to {kept}, {verified:?}"));
        }
        let torn = writer.verdict() == Verdict::Torn;
        if torn != (verified.verdict == Verdict::Torn) {
            return Err(format!("opening says {:?}, {verified:?}", writer.verdict()));
        }
        let state = &self.states[at];
        let between = |from: u64, to: u64| state.seeds.range(from..to.max(from)).count() as u64;
        let checked = Checked {
            torn,
            acknowledged: between(state.head, least(state).max(state.head)),
            claimed_lost: between(seen.end, state.claimed),
            appended_lost: between(seen.end, state.appended),
            truncated: (self.states.len() > 1).then_some(at + 1 == self.states.len()),
        };
        self.states = vec![state.cut(seen.end)];
        self.go_on(dir, &writer, seen)?;
        Ok(checked)
    }

    /// Append, sync and open the log again. All records are then durable.
    fn go_on(&mut self, dir: &Path, writer: &Log, mut there: Found) -> Result<(), String> {
        let kind = self.kind;
        let going_on = |e: deedbook::Error| format!("going on: {e}");
        let (at, seed) = (there.end, there.records.len() as u64);
        let record = record_of(kind, at, seed);
        let end = kind.behind(at, record.bytes.len() as u64);
        writer.append(&record).and_then(|()| writer.sync()).map_err(going_on)?;
        writer.close().map_err(going_on)?;
        there.records.push((at, record));
        there.end = end;
        let again = kind.open(dir, Mode::Append, Durability::Manual).map_err(going_on)?;
        if Found::of(&again, "opened again")? != there || again.verdict() != Verdict::Clean {
            return Err(format!("opened again, it is not what it was, up to {end}"));
        }
        for (place, record) in there.records.iter().rev().step_by(1 + there.records.len() / 8) {
            if again.read(*place).map_err(going_on)? != *record {
                return Err(format!("the record at {place} is read wrongly by its place"));
            }
        }
        again.close().map_err(going_on)?;
        let state = self.newest();
        state.seeds.insert(at, seed);
        (state.appended, state.durable, state.claimed) = (end, end, end);
        Ok(())
    }
}
