//! Logs of every kind by the same verbs. Payloads are texts.

use deedbook::jobs::StagedJob;
use deedbook::wal::Layout;

use super::{BEFORE, STAGED, ledger, nostr};
use crate::support::prelude::*;

pub const PATH: &str = "/log";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Book,
    Single,
    Segments(u64),
    Ledger,
    /// An event store, and the pages of its segments.
    Events(u64),
}

/// A transaction spans the small segments and fits the large ones; the other logs are one file.
pub const LOGS: [Kind; 4] = [Kind::Book, Kind::Single, Kind::Segments(64), Kind::Segments(4096)];
pub const KINDS: [Kind; 7] = [
    LOGS[0],
    LOGS[1],
    LOGS[2],
    LOGS[3],
    Kind::Ledger,
    Kind::Events(nostr::SEGMENTS[0]),
    Kind::Events(nostr::SEGMENTS[1]),
];

pub enum Store {
    Book(Book),
    Wal(Wal),
    Ledger(LedgerStore, Sim),
    Events(EventStore),
}

macro_rules! each {
    ($store:expr, $log:ident => $verb:expr) => {
        match $store {
            Store::Book($log) => $verb,
            Store::Wal($log) => $verb,
            Store::Ledger($log, _) => $verb,
            Store::Events($log) => $verb,
        }
    };
}

fn texts(payloads: &[&str]) -> Vec<String> {
    payloads.iter().map(ToString::to_string).collect()
}

impl Kind {
    /// Opens a log; a ledger has no modes.
    pub fn open(self, sim: &Sim, mode: Mode) -> Result<Store> {
        let storage: Arc<dyn Storage> = Arc::new(sim.clone());
        let durability = Durability::Manual;
        let layout = match self {
            Self::Ledger => return Ok(Store::Ledger(ledger::open(sim), sim.clone())),
            Self::Events(pages) => return Ok(Store::Events(nostr::open(sim, pages, mode)?)),
            Self::Book => {
                let options = book::Options::new().storage(storage).durability(durability);
                return Ok(Store::Book(options.open(PATH, mode)?));
            }
            Self::Segments(segment_bytes) => Layout::Segmented { segment_bytes },
            Self::Single => Layout::Single,
        };
        let options = wal::Options::new().storage(storage).durability(durability);
        Ok(Store::Wal(options.layout(Some(layout)).open(PATH, mode)?))
    }

    pub fn read(self, sim: &Sim) -> Vec<String> {
        match self {
            Self::Ledger => ledger::payloads(sim),
            _ => self.open(sim, Mode::Read).unwrap().read(),
        }
    }

    /// The directory of the transactions' files.
    pub fn desk(self) -> &'static str {
        match self {
            Self::Single => "/.deedbook/log",
            Self::Ledger => "/spool/.deedbook/jobs-events",
            Self::Events(_) => "/events/.deedbook",
            _ => "/log/.deedbook",
        }
    }

    pub fn last_staged(self) -> String {
        let sequence = if self == Self::Ledger { 1 } else { 0 };
        format!("{}/staged/{}.2.{sequence}.12", self.desk(), super::JOB)
    }

    pub fn is_begun(self, sim: &Sim) -> bool {
        sim.open(format!("{}/transaction", self.desk()).as_ref(), Access::Read).is_ok()
    }

    /// The staged records of a job, by partition. An event store's job also has events that are in
    /// the store or staged twice, an event longer than a page, and a request to delete an event.
    pub fn staged(self) -> Vec<Vec<String>> {
        match self {
            Self::Events(_) => {
                let long = "x".repeat(9000);
                let last = [&long, "a", "delete two", "three", "d"];
                vec![texts(&["a", "bb"]), vec![], texts(&last)]
            }
            _ => STAGED.iter().map(|payloads| texts(payloads)).collect(),
        }
    }

    /// The records of a reader after the transaction; a hidden event is in brackets.
    pub fn all(self) -> Vec<String> {
        match self {
            Self::Events(_) => {
                let mut all = texts(&["one", "(two)", "three", "not synced", "a", "bb"]);
                let new = ["x".repeat(9000), "delete two".into(), "d".into()];
                all.extend(new);
                all
            }
            _ => [texts(&BEFORE), texts(&STAGED.concat())].concat(),
        }
    }
}

impl Store {
    pub fn append(&self, payload: &str) {
        match self {
            Self::Book(book) => drop(book.append(7, payload.as_bytes()).unwrap()),
            Self::Wal(wal) => drop(wal.append(payload.as_bytes()).unwrap()),
            Self::Ledger(ledger, _) => drop(ledger.append(payload.as_bytes()).unwrap()),
            Self::Events(store) => drop(store.append(&nostr::event(payload)).unwrap()),
        }
    }

    pub fn sync(&self) {
        each!(self, log => log.sync()).unwrap();
    }

    pub fn stage(&self, partition: u32, attempt: u64, payloads: &[&str]) -> Vec<Part> {
        match self {
            Self::Ledger(_, sim) => {
                ledger::stage(&ledger::task(sim), super::JOB, partition, attempt, payloads)
            }
            Self::Events(store) => {
                let events: Vec<_> = payloads.iter().map(|payload| nostr::event(payload)).collect();
                vec![nostr::stage(store, partition, attempt, &events)]
            }
            _ => vec![self.stage_from(super::JOB, partition, attempt, None, payloads).unwrap()],
        }
    }

    /// Stages in a book or a write-ahead log.
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
            _ => unreachable!("records have no numbers"),
        }
    }

    pub fn commit(&self, transaction: &Transaction, parts: &[Part]) -> Result<Committed> {
        each!(self, log => log.commit_staged(transaction, parts))
    }

    pub fn discard(&self, job: &str) -> bool {
        each!(self, log => log.discard_staged(job)).unwrap()
    }

    pub fn staged(&self) -> Vec<StagedJob> {
        each!(self, log => log.staged()).unwrap()
    }

    pub fn abandon(&self) -> Result<Option<Transaction>> {
        each!(self, log => log.abandon_transaction())
    }

    pub fn noted(&self, app: &str) -> Option<u64> {
        each!(self, log => log.transactions()).unwrap().get(app).map(|noted| noted.version)
    }

    pub fn read(&self) -> Vec<String> {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        match self {
            Self::Book(book) => book.iter(..).unwrap().map(|d| text(d.unwrap().jam)).collect(),
            Self::Wal(wal) => {
                wal.iter(..).unwrap().map(|record| text(record.unwrap().payload)).collect()
            }
            Self::Ledger(_, sim) => ledger::payloads(sim),
            Self::Events(store) => nostr::read(store),
        }
    }
}
