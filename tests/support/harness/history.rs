//! Short histories of a log, and running them.

use super::config::Config;
use super::mutated::Mutated;
use super::{Event, Expect, Log, Record, Subject, files, hash, judge_any, mix};

use crate::support::prelude::*;

pub const SECTOR_BYTES: u64 = 512;
pub const LONG_BYTES: usize = 1476;

/// A disk at some moment of a history, and the facts known of the log then.
pub struct Moment {
    pub disk: Sim,
    /// Step of the history, 0 for opening.
    pub step: usize,
    pub call: u64,
    /// The allowed contents: one case, or while records are dropped, the old and the new.
    pub allowed: Arc<Vec<Expect>>,
}

impl Moment {
    /// Moments at which a log may hold the same share a number.
    pub fn context(&self) -> u64 {
        self.allowed.iter().fold(0, |sum, expect| {
            expect.records.iter().fold(mix(sum) ^ expect.acked as u64, |sum, record| {
                let start = hash(&record.bytes[..record.bytes.len().min(8)]);
                let number = record.number() << 32 | u64::from(record.tag);
                mix(sum ^ number ^ start).wrapping_add(record.bytes.len() as u64)
            })
        })
    }

    /// Whether a recovery may return these records, and the log's next number.
    pub fn judge(
        &self,
        log: &dyn Log,
        got: &[Record],
        whole: bool,
    ) -> std::result::Result<&Expect, String> {
        let next = log.next_ordinal().map_err(|error| format!("looking: {error:?}"))?;
        judge_any(got, next, &self.allowed, whole)
    }
}

pub struct Run<'a> {
    subject: &'a Subject,
    config: Config,
    pub disk: Sim,
    log: Option<Box<dyn Log>>,
    nested: &'a [u8],
    /// Number of the first record, even before it is appended.
    pub base: u64,
    pub records: Vec<Record>,
    pub acked: usize,
    /// The contents of the log if a begun dropping took place.
    pub other: Option<Expect>,
    pub step: usize,
    pub moments: Vec<Moment>,
    pub recording: bool,
    /// The storage between the log and the disk, if any.
    pub mutated: Option<Mutated>,
}

impl<'a> Run<'a> {
    pub fn new(subject: &'a Subject, config: Config, nested: &'a [u8]) -> Self {
        let disk = Sim::new();
        disk.set_allocates(config.allocates);
        Self {
            subject,
            config,
            disk,
            log: None,
            nested,
            base: subject.first,
            records: Vec::new(),
            acked: 0,
            other: None,
            step: 0,
            moments: Vec::new(),
            recording: false,
            mutated: None,
        }
    }

    pub fn record(&mut self) {
        self.disk.record();
        self.recording = true;
    }

    pub fn give_up(&mut self) {
        self.log = None;
    }

    pub fn log(&self) -> &dyn Log {
        &**self.log.as_ref().expect("the log is open")
    }

    /// Open the log. The records found are durable from then on, except with `Durability::None`.
    pub fn open(&mut self) -> Result<()> {
        self.open_log()?;
        if self.config.how.durability != Durability::None {
            self.acked = self.records.len();
        }
        self.count_durable()
    }

    fn open_log(&mut self) -> Result<()> {
        let opened = match &self.mutated {
            Some(mutated) => self.subject.open_on(mutated.storage(), self.config.how),
            None => self.subject.open(&self.disk, self.config.how),
        };
        self.keep();
        self.log = Some(opened?);
        Ok(())
    }

    pub fn apply(&mut self, op: char) -> Result<()> {
        self.step += 1;
        if let Some(mutated) = &self.mutated {
            mutated.doing(doing(op));
        }
        match op {
            's' => {
                let synced = self.log().sync();
                self.keep();
                synced?;
                self.acknowledge()?;
            }
            'w' => self.wait()?,
            'r' => {
                let closed = self.log().close();
                self.keep();
                closed?;
                self.log = None;
                self.acked = self.records.len();
                self.push_now();
                self.open()?;
            }
            'h' | 'm' | 'x' | 't' | 'u' | 'c' | 'C' => self.drop_some(op)?,
            'k' => {
                self.die(self.disk.kill());
                self.recover()?;
            }
            'y' => self.copy()?,
            'p' => {
                let crashes = self.disk.crashes();
                self.die(crashes.state_by_chance(mix(self.step as u64)));
                self.recover()?;
            }
            op => {
                let batch = self.batch(op)?;
                self.append(&batch)?;
            }
        }
        Ok(())
    }

    fn die(&mut self, left: Sim) {
        if let Some(mutated) = &mut self.mutated {
            mutated.die(left.clone());
        }
        self.give_up();
        self.disk = left;
        if self.recording {
            self.disk.record();
        }
    }

    /// The log is copied. Opening the copy must make the copy durable first.
    fn copy(&mut self) -> Result<()> {
        let recording = std::mem::take(&mut self.recording);
        self.die(files::copied(&self.disk));
        self.open()?;
        if recording {
            self.record();
        }
        self.count_durable()
    }

    fn recover(&mut self) -> Result<()> {
        self.open_log()?;
        let (got, next) = (self.log().read_all()?, self.log().next_ordinal()?);
        let base = match judge_any(&got, next, &self.allowed(), self.config.how.acknowledged()) {
            Ok(found) => found.base,
            Err(what) => return Err(Error::new(ErrorKind::Corrupt, what)),
        };
        self.settle(got, base);
        self.count_durable()
    }

    fn ordinal(&self, at: usize) -> u64 {
        match (self.records.get(at), self.records.last()) {
            (Some(record), _) => record.number(),
            (None, Some(last)) => self.subject.ordinal_after(last),
            (None, None) => self.base,
        }
    }

    /// Drop a prefix, or cut the end. A crash leaves the old log or the new log; after the call returned, the new log.
    fn drop_some(&mut self, op: char) -> Result<()> {
        let (count, acked) = (self.records.len(), self.acked);
        let at = match op {
            // Before: the second record, the middle record, all acknowledged records.
            'h' => 1.min(count),
            'm' => count.div_ceil(2),
            'x' => acked,
            // After: the first record, the second to last.
            't' => 0,
            'u' => count.saturating_sub(2),
            // From: the last record, the first record.
            'c' => count.saturating_sub(1),
            _ => 0,
        };
        let ordinal = self.ordinal(at);
        let (base, kept, durable) = match op {
            'h' | 'm' | 'x' => (ordinal, at..count, at),
            't' | 'u' => (self.base, 0..at + 1, at + 1),
            _ => (self.base, 0..at, at),
        };
        let none_there = matches!(op, 't' | 'u' | 'c' | 'C') && count == 0;
        let never = self.config.how.durability == Durability::None;
        let refused = none_there || (durable > acked && !never);
        if !refused {
            let records = self.records[kept.clone()].to_vec();
            let acked = match base > self.base && !never {
                // The log syncs everything before it drops a prefix.
                true => records.len(),
                false => acked.saturating_sub(kept.start).min(records.len()),
            };
            self.other = Some(Expect { base, records, acked });
        }
        let dropped = match op {
            'h' | 'm' | 'x' => self.log().truncate_before(ordinal),
            't' | 'u' => self.log().truncate_after(ordinal),
            _ => self.log().truncate_from(ordinal),
        };
        self.keep();
        match dropped {
            Ok(()) if refused => panic!("{op}: dropped up to a record that is not durable"),
            Ok(()) => {
                let Some(new) = self.other.take() else { return Ok(()) };
                (self.base, self.records, self.acked) = (new.base, new.records, new.acked);
                self.push_now();
            }
            Err(error) => {
                let kind = error.kind();
                let expected = matches!(kind, ErrorKind::InvalidArgument | ErrorKind::OutOfRange);
                if error.durable() == Some(Durable::No) {
                    self.other = None;
                }
                if !(expected && (refused || never)) {
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Append a batch, which counts as written from its first call on.
    pub fn append(&mut self, batch: &[Event]) -> Result<()> {
        let format = self.subject.format;
        for (tag, bytes) in batch {
            let record = format.record_after(self.records.last(), self.base, *tag, bytes);
            self.records.push(record);
        }
        let appended = self.log().append_all(batch);
        self.keep();
        appended?;
        match self.config.how.durability {
            Durability::Always => self.acknowledge()?,
            Durability::Bytes(most) => {
                self.count_durable()?;
                let unsynced =
                    self.records.iter().skip(self.acked).map(|record| {
                        self.subject.format.framing_bytes() + record.bytes.len() as u64
                    });
                let unsynced: u64 = unsynced.sum();
                if unsynced >= most {
                    let message = format!("{unsynced} bytes are not synced, at most {most} may be");
                    return Err(Error::new(ErrorKind::InvalidArgument, message));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The records that a step appends, always the same after the same steps.
    pub fn batch(&self, op: char) -> Result<Vec<Event>> {
        let count = self.records.len() as u32;
        let one = |n: u32, len: u64| (100 + count + n, payload(u64::from(count + n), len));
        let edge = |delta: i64| -> Result<u64> {
            let used = self.log().end()? + self.subject.format.framing_bytes();
            let to = (used + 2).next_multiple_of(self.subject.border_bytes);
            Ok((to - used).saturating_add_signed(delta))
        };
        Ok(match op {
            '0' => vec![one(0, 0)],
            '1' => vec![one(0, 1)],
            '<' => vec![one(0, edge(-1)?)],
            '=' => vec![one(0, edge(0)?)],
            '>' => vec![one(0, edge(1)?)],
            // Over two borders.
            'S' => vec![one(0, edge(self.subject.border_bytes as i64 + 5)?)],
            'b' => vec![one(0, 3), one(1, 0), one(2, 300)],
            'L' => vec![(100 + count, self.deceiving())],
            'K' => vec![one(0, 5000)],
            // More than a block of the index, in one record and in a batch; with other borders after a cut.
            'H' => vec![one(0, 70_000 + 700 * self.step as u64)],
            'B' => (0..3).map(|n| one(n, 40_000 + 700 * self.step as u64)).collect(),
            op => panic!("no step {op:?}"),
        })
    }

    /// A payload full of whole records, with a record after the first border.
    fn deceiving(&self) -> Vec<u8> {
        let mut bytes = self.nested.to_vec();
        bytes.extend(self.nested);
        bytes.resize(self.subject.long_bytes, 7);
        if let Ok(end) = self.log().end() {
            let payload_at = end + self.subject.format.head_bytes();
            let border = payload_at.next_multiple_of(self.subject.border_bytes);
            let at = (border - payload_at) as usize;
            bytes[at..at + self.nested.len()].copy_from_slice(self.nested);
        }
        bytes
    }

    /// All written records are acknowledged now, and the log must report them as durable.
    fn acknowledge(&mut self) -> Result<()> {
        self.count_durable()?;
        let never = self.config.how.durability == Durability::None;
        if !never && self.acked < self.records.len() {
            let (acked, count) = (self.acked, self.records.len());
            let message = format!("acknowledged, but {acked} of {count} records are durable");
            return Err(Error::new(ErrorKind::InvalidArgument, message));
        }
        Ok(())
    }

    /// The records that the log reports as durable count as acknowledged from now on.
    pub fn count_durable(&mut self) -> Result<()> {
        let durable = self.log().durable()?.unwrap_or(0);
        let records = self.records.iter().take_while(|record| record.number() < durable);
        self.acked = self.acked.max(records.count());
        self.push_now();
        Ok(())
    }

    /// Wait until all records are durable without a sync of ours.
    fn wait(&mut self) -> Result<()> {
        let next = self.ordinal(self.records.len());
        while self.log().durable()?.is_some_and(|durable| durable < next) {
            std::thread::sleep(Duration::from_micros(100));
        }
        self.keep();
        self.acknowledge()
    }

    fn keep(&mut self) {
        if self.recording {
            for disk in self.disk.recorded() {
                self.push(disk);
            }
        }
    }

    fn push_now(&mut self) {
        if self.recording {
            self.push(self.disk.kill());
        }
    }

    fn push(&mut self, disk: Sim) {
        // One copy for all moments without an append in between.
        let same = |last: &Moment| {
            let [only] = &last.allowed[..] else { return false };
            self.other.is_none()
                && (only.base, only.acked) == (self.base, self.acked)
                && only.records.len() == self.records.len()
        };
        let allowed = match self.moments.last().filter(|last| same(last)) {
            Some(last) => last.allowed.clone(),
            None => Arc::new(self.allowed()),
        };
        let last = self.moments.last().filter(|last| last.step == self.step);
        let call = last.map_or(0, |last| last.call + 1);
        self.moments.push(Moment { disk, step: self.step, call, allowed });
    }

    pub fn allowed(&self) -> Vec<Expect> {
        let Self { base, acked, .. } = *self;
        let now = Expect { base, records: self.records.clone(), acked };
        [now].into_iter().chain(self.other.clone()).collect()
    }

    /// The opened log holds exactly `got`: all records are acknowledged.
    pub fn settle(&mut self, got: Vec<Record>, base: u64) {
        self.base = base;
        self.acked = got.len();
        self.records = got;
        self.other = None;
    }
}

fn doing(op: char) -> &'static str {
    match op {
        's' | 'w' => "sync",
        'r' => "close",
        'h' | 'm' | 'x' => "truncate_before",
        't' | 'u' | 'c' | 'C' => "truncate_after",
        'k' | 'p' | 'y' => "open",
        _ => "append",
    }
}

pub fn payload(number: u64, len: u64) -> Vec<u8> {
    (0..len).map(|at| mix(number << 32 | at) as u8 | 1).collect()
}
