//! Short histories of a log, and running them.

use deedbook::storage::sim::Sim;
use deedbook::{Durability, Result};

use super::{How, Log, Record, Subject, mix};

const SECTOR_BYTES: u64 = 512;
const LONG_BYTES: usize = 1476;

/// What a history consists of, one letter each.
pub const ALPHABET: &str = "01<=>bLsr";
/// And what longer ones, by chance, have besides: records of many sectors, of more than an index
/// block.
const LONGER: &str = "01<=>bLsr01<=>bLsr01<=>bLsrKH";

/// How the histories of a family are run.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    pub name: &'static str,
    pub how: How,
    /// Whether the disk reserves space.
    pub allocates: bool,
}

impl Config {
    pub fn named(name: &'static str) -> Self {
        let durability = match name {
            name if name.starts_with("always") => Durability::Always,
            name if name.starts_with("none") => Durability::Never,
            _ => Durability::Manual,
        };
        let how = How { durability, acknowledged: name.contains("acknowledged") };
        Self { name, how, allocates: name.contains("reserve") }
    }
}

/// All histories of at most so many steps.
pub fn all(steps: usize) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut from = 0;
    for _ in 0..steps {
        let to = all.len();
        for at in from..to {
            let longer: Vec<_> = ALPHABET.chars().map(|op| format!("{}{op}", all[at])).collect();
            all.extend(longer);
        }
        from = to;
    }
    all
}

/// A history of 4 to 12 steps by chance.
pub fn by_chance(seed: u64) -> String {
    let steps: Vec<char> = LONGER.chars().collect();
    let count = 4 + mix(seed) % 9;
    let step = |at: u64| steps[(mix(seed ^ mix(at + 1)) % steps.len() as u64) as usize];
    (0..count).map(step).collect()
}

/// A disk at some moment of a history, and what is known of the log then.
pub struct Moment {
    /// As after the death of the process.
    pub disk: Sim,
    /// Step of the history, 0 for opening.
    pub step: usize,
    /// Records whose append had begun.
    pub written: usize,
    /// Records acknowledged as durable.
    pub acked: usize,
}

/// A history in the making.
pub struct Run<'a> {
    subject: &'a dyn Subject,
    config: Config,
    pub disk: Sim,
    log: Option<Box<dyn Log>>,
    nested: &'a [u8],
    pub records: Vec<Record>,
    pub acked: usize,
    pub step: usize,
    pub moments: Vec<Moment>,
    pub recording: bool,
}

impl<'a> Run<'a> {
    pub fn new(subject: &'a dyn Subject, config: Config, nested: &'a [u8]) -> Self {
        let disk = Sim::new();
        disk.set_allocates(config.allocates);
        Self {
            subject,
            config,
            disk,
            log: None,
            nested,
            records: Vec::new(),
            acked: 0,
            step: 0,
            moments: Vec::new(),
            recording: false,
        }
    }

    /// Keep the moments from here on.
    pub fn record(&mut self) {
        self.disk.record();
        self.recording = true;
    }

    /// Drop the log without closing it.
    pub fn give_up(&mut self) {
        self.log = None;
    }

    pub fn log(&self) -> &dyn Log {
        &**self.log.as_ref().expect("the log is open")
    }

    /// Open the log. What is found is durable from then on, unless nothing ever is.
    pub fn open(&mut self) -> Result<()> {
        let opened = self.subject.open(&self.disk, self.config.how);
        self.keep();
        self.log = Some(opened?);
        self.acknowledge();
        Ok(())
    }

    /// Do one step.
    pub fn apply(&mut self, op: char) -> Result<()> {
        self.step += 1;
        match op {
            's' => {
                let synced = self.log().sync();
                self.keep();
                synced?;
                self.acknowledge();
            }
            'r' => {
                let closed = self.log().close();
                self.keep();
                closed?;
                if self.config.how.durability != Durability::Never {
                    self.acknowledge();
                }
                self.log = None;
                self.open()?;
            }
            op => {
                let batch = self.batch(op)?;
                self.append(&batch)?;
            }
        }
        Ok(())
    }

    /// Append a batch, which counts as written from its first call on.
    pub fn append(&mut self, batch: &[(u32, Vec<u8>)]) -> Result<()> {
        let before = self.records.len();
        let first = self.subject.first_ordinal() + before as u64;
        self.records.extend((first..).zip(batch).map(|(ordinal, (tag, bytes))| Record {
            ordinal,
            tag: *tag,
            bytes: bytes.clone(),
        }));
        let appended = self.log().append(batch);
        self.keep();
        appended?;
        if self.config.how.durability == Durability::Always {
            self.acknowledge();
        }
        Ok(())
    }

    /// The records that a step appends, the same whenever the steps before were the same.
    pub fn batch(&self, op: char) -> Result<Vec<(u32, Vec<u8>)>> {
        let count = self.records.len() as u32;
        let one = |n: u32, len: u64| (100 + count + n, payload(u64::from(count + n), len));
        let edge = |delta: i64| -> Result<u64> {
            let used = self.log().end()? + self.subject.framing_bytes();
            let to = (used + 2).next_multiple_of(SECTOR_BYTES);
            Ok((to - used).saturating_add_signed(delta))
        };
        Ok(match op {
            '0' => vec![one(0, 0)],
            '1' => vec![one(0, 1)],
            '<' => vec![one(0, edge(-1)?)],
            '=' => vec![one(0, edge(0)?)],
            '>' => vec![one(0, edge(1)?)],
            'b' => vec![one(0, 3), one(1, 0), one(2, 300)],
            'L' => vec![(100 + count, self.deceiving())],
            'K' => vec![one(0, 5000)],
            'H' => vec![one(0, 70_000)],
            op => panic!("no step {op:?}; known are {ALPHABET}"),
        })
    }

    /// A payload full of whole records, one of them at the start of its second sector.
    fn deceiving(&self) -> Vec<u8> {
        let mut bytes = self.nested.to_vec();
        bytes.extend(self.nested);
        bytes.resize(LONG_BYTES, 7);
        if let Ok(end) = self.log().end() {
            let payload_at = end + self.subject.framing_bytes() / 2;
            let at = (payload_at.next_multiple_of(SECTOR_BYTES) - payload_at) as usize;
            bytes[at..at + self.nested.len()].copy_from_slice(self.nested);
        }
        bytes
    }

    /// Everything written is acknowledged now.
    fn acknowledge(&mut self) {
        if self.config.how.durability != Durability::Never {
            self.acked = self.records.len();
        }
        if self.recording {
            let disk = self.disk.kill();
            self.push(disk);
        }
    }

    fn keep(&mut self) {
        if self.recording {
            for disk in self.disk.recorded() {
                self.push(disk);
            }
        }
    }

    fn push(&mut self, disk: Sim) {
        let (written, acked, step) = (self.records.len(), self.acked, self.step);
        self.moments.push(Moment { disk, step, written, acked });
    }
}

/// Bytes that tell records apart.
pub fn payload(number: u64, len: u64) -> Vec<u8> {
    (0..len).map(|at| mix(number << 32 | at) as u8 | 1).collect()
}
