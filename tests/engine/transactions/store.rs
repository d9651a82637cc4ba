//! Books and write-ahead logs by the same verbs.

use std::sync::Arc;

use deedbook::jobs::{Committed, Part, StagedJob, Transaction};
use deedbook::storage::Storage;
use deedbook::storage::sim::Sim;
use deedbook::wal::{Layout, Wal};
use deedbook::{Durability, Mode, Result};
use deedbook::{book, book::Book, wal};

pub const PATH: &str = "/log";

#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Book,
    Single,
    Segments(u64),
}

/// Segments that a transaction spans, and a log in one piece.
pub const KINDS: [Kind; 4] = [Kind::Book, Kind::Single, Kind::Segments(64), Kind::Segments(4096)];

pub enum Store {
    Book(Book),
    Wal(Wal),
}

macro_rules! both {
    ($store:expr, $log:ident => $verb:expr) => {
        match $store {
            Store::Book($log) => $verb,
            Store::Wal($log) => $verb,
        }
    };
}

impl Kind {
    pub fn open(self, sim: &Sim, mode: Mode) -> Result<Store> {
        let storage: Arc<dyn Storage> = Arc::new(sim.clone());
        let durability = Durability::Manual;
        Ok(match self {
            Self::Book => {
                let options = book::Options::new().storage(storage).durability(durability);
                Store::Book(options.open(PATH, mode)?)
            }
            Self::Single | Self::Segments(_) => {
                let layout = Some(match self {
                    Self::Segments(segment_bytes) => Layout::Segmented { segment_bytes },
                    _ => Layout::Single,
                });
                let options =
                    wal::Options::new().storage(storage).durability(durability).layout(layout);
                Store::Wal(options.open(PATH, mode)?)
            }
        })
    }

    /// All payloads, as a reader sees them now.
    pub fn read(self, sim: &Sim) -> Vec<String> {
        self.open(sim, Mode::Read).unwrap().read()
    }
}

impl Store {
    pub fn append(&self, payload: &str) {
        match self {
            Self::Book(book) => drop(book.append(7, payload.as_bytes()).unwrap()),
            Self::Wal(wal) => drop(wal.append(payload.as_bytes()).unwrap()),
        }
    }

    pub fn sync(&self) {
        both!(self, log => log.sync()).unwrap();
    }

    pub fn stage(&self, job: &str, partition: u32, attempt: u64, payloads: &[&str]) -> Part {
        self.stage_from(job, partition, attempt, None, payloads).unwrap()
    }

    pub fn stage_from(
        &self,
        job: &str,
        partition: u32,
        attempt: u64,
        first: Option<u64>,
        payloads: &[&str],
    ) -> Result<Part> {
        match self {
            Self::Book(book) => {
                let mut stage = book.stage(job, partition, attempt, first)?;
                payloads.iter().try_for_each(|payload| stage.push(7, payload.as_bytes()))?;
                stage.finish()
            }
            Self::Wal(wal) => {
                let mut stage = wal.stage(job, partition, attempt, first)?;
                payloads.iter().try_for_each(|payload| stage.push(payload.as_bytes()))?;
                stage.finish()
            }
        }
    }

    pub fn commit(&self, transaction: &Transaction, parts: &[Part]) -> Result<Committed> {
        both!(self, log => log.commit_staged(transaction, parts))
    }

    pub fn discard(&self, job: &str) -> bool {
        both!(self, log => log.discard_staged(job)).unwrap()
    }

    pub fn staged(&self) -> Vec<StagedJob> {
        both!(self, log => log.staged()).unwrap()
    }

    pub fn abandon(&self) -> Result<Option<Transaction>> {
        both!(self, log => log.abandon_transaction())
    }

    pub fn noted(&self, app: &str) -> Option<u64> {
        both!(self, log => log.transactions()).unwrap().get(app).map(|noted| noted.version)
    }

    pub fn read(&self) -> Vec<String> {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        match self {
            Self::Book(book) => book.iter(..).unwrap().map(|d| text(d.unwrap().jam)).collect(),
            Self::Wal(wal) => {
                wal.iter(..).unwrap().map(|record| text(record.unwrap().payload)).collect()
            }
        }
    }
}
