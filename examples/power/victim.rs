//! The tested log: a log of any kind, or a ledger.

use std::path::Path;

use crate::account::{Account, Must};
use crate::kind::Kind;
use crate::spool::Spool;

const STEPS: &str = "60";
const BYTES: &str = "1500000";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    Log(Kind),
    Ledger,
}

impl Victim {
    /// The victims named by `DEEDBOOK_POWER_FORMAT`.
    pub fn wanted() -> Vec<Self> {
        let formats = std::env::var("DEEDBOOK_POWER_FORMAT").unwrap_or_default();
        let formats = if formats.is_empty() { "book,wal,ledger,store" } else { &formats };
        let victims = |format| match format {
            "book" => vec![Self::Log(Kind::Book), Self::Log(Kind::BookSlots)],
            "slots" => vec![Self::Log(Kind::BookSlots)],
            "wal" => vec![Self::Log(Kind::WalFile), Self::Log(Kind::WalSegments)],
            "ledger" => vec![Self::Ledger],
            "store" => vec![Self::Log(Kind::Store)],
            _ => {
                panic!("DEEDBOOK_POWER_FORMAT={format}, known are book, slots, wal, ledger, store")
            }
        };
        formats.split(',').flat_map(victims).collect()
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Log(kind) => kind.name(),
            Self::Ledger => "ledger",
        }
    }

    /// The name of a part of the report.
    pub fn part(self, part: &str) -> String {
        match self {
            Self::Log(kind) => kind.part(part),
            Self::Ledger => format!("{part}, ledger"),
        }
    }

    /// Do one strike in this many.
    pub fn share(self) -> u64 {
        match self {
            Self::Log(kind) => kind.share(),
            Self::Ledger => 1,
        }
    }

    /// Whether the writer removes files.
    pub fn removes(self) -> bool {
        match self {
            Self::Log(kind) => kind.cuts_ends(),
            Self::Ledger => true,
        }
    }

    /// The arguments of this program for a writer process.
    pub fn arguments(self, dir: &Path, durability: &str, seed: u64) -> Vec<String> {
        let (dir, seed) = (dir.to_str().unwrap(), seed.to_string());
        let arguments = match self {
            Self::Log(kind) => vec!["write", kind.name(), dir, durability, &seed, STEPS, BYTES],
            Self::Ledger => vec!["spool", dir, durability, &seed, STEPS],
        };
        arguments.into_iter().map(String::from).collect()
    }

    /// Compare the log with the writer's output.
    pub fn settle(self, dir: &Path, said: &str) -> Settled {
        match self {
            Self::Log(kind) => {
                let mut account = Account::of(kind);
                account.hear(said);
                let result = account.check(dir, Must::Appended).map(drop);
                Settled { result, finished: account.finished, errors: account.errors }
            }
            Self::Ledger => {
                let mut spool = Spool::default();
                spool.hear(said);
                let result = spool.check(dir, false).map(drop);
                Settled { result, finished: spool.finished, errors: spool.errors }
            }
        }
    }
}

/// The state after a writer. Every append must survive any end of the process.
pub struct Settled {
    pub result: Result<(), String>,
    /// Whether the writer finished.
    pub finished: bool,
    /// The errors of the writer's calls.
    pub errors: Vec<String>,
}
