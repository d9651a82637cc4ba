//! What the crash and fault tests share: logs as subjects, an oracle, and the enumerator.
//!
//! A further format plugs in with one implementation of [`Subject`] and [`Log`] and one line in
//! `for_every_subject`; see `book.rs`, and `wal.rs` for one that can drop records at both ends.
#![allow(dead_code)]

pub mod book;
pub mod campaign;
pub mod config;
pub mod explore;
pub mod faulty;
pub mod files;
pub mod history;
pub mod limit;
pub mod mutated;
pub mod mutations;
#[cfg(feature = "nostr")]
pub mod nostr;
pub mod oracle;
pub mod toy;
pub mod views;
pub mod wal;

use std::path::PathBuf;
use std::sync::Arc;

use deedbook::storage::Storage;
use deedbook::storage::sim::Sim;
use deedbook::{Durability, Error, ErrorKind, Result, Verdict};

#[allow(unused_imports)] // not in every program
pub use crate::support::crashes::worst;
pub use crate::support::mix::mix;
pub use oracle::{Expect, Seen, hash, judge, judge_any};

/// One test for each of these functions and each subject, so that a failure names both and
/// `cargo nextest run --test engine wal_tiny` runs those of one format. None may run for ever.
#[allow(unused_macros)]
macro_rules! for_every_subject {
    ($($tests:tt)*) => {
        for_subject! { book, harness::book::BOOK, $($tests)* }
        for_subject! { book_epoch, harness::book::EPOCH, $($tests)* }
        for_subject! { book_slots, harness::book::SLOTS, $($tests)* }
        for_subject! { wal_single, harness::wal::SINGLE, $($tests)* }
        for_subject! { wal_segments, harness::wal::SEGMENTS, $($tests)* }
        for_subject! { wal_tiny, harness::wal::TINY, $($tests)* }
        for_subject! { wal_large, harness::wal::LARGE, $($tests)* }
        for_subject! { toy, harness::toy::TOY, $($tests)* }
        for_subject! { #[cfg(feature = "nostr")] nostr_wal, harness::nostr::ONE_FILE, $($tests)* }
    };
}

#[allow(unused_macros)]
macro_rules! for_subject {
    ($(#[$cfg:meta])* $name:ident, $subject:expr, $($(#[$story:meta])* $test:ident),* $(,)?) => {
        $(#[$cfg])*
        mod $name {
            $(
                $(#[$story])*
                #[test]
                fn $test() {
                    use crate::support::harness;
                    harness::limit::within(|| super::$test(&$subject));
                }
            )*
        }
    };
}

/// One record as appended or read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its number in the log.
    pub ordinal: u64,
    /// A number stored beside the payload; a format without one gives the ordinal's low bits.
    pub tag: u32,
    pub bytes: Vec<u8>,
}

/// How a log is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct How {
    pub durability: Durability,
    /// Cut back to what was acknowledged.
    pub acknowledged: bool,
}

pub const ALWAYS: How = How { durability: Durability::Always, acknowledged: false };
pub const MANUAL: How = How { durability: Durability::Manual, acknowledged: false };

/// What the histories of a subject consist of; see `history.rs` for the letters.
#[derive(Clone, Copy, Debug)]
pub struct Steps {
    /// Steps of which all short histories are tried.
    pub alphabet: &'static str,
    /// Steps of longer histories by chance.
    pub longer: &'static str,
    /// First steps after which all shorter histories are tried as well, and how many steps fewer
    /// these have.
    pub families: &'static [(&'static str, usize)],
    /// First steps that close blocks of the index, and steps tried after them.
    pub blocks: (&'static str, &'static str),
    /// Histories in which every storage call fails.
    pub scripts: &'static [&'static str],
    /// In how many states, of those asked for, this subject is crashed.
    pub share: u64,
}

/// What a check of a whole log says.
#[derive(Clone, Debug)]
pub struct Checked {
    pub verdict: Verdict,
    pub records: u64,
    /// Whether records are missing that were acknowledged.
    pub lost: bool,
}

/// A log format on a simulated disk.
pub trait Subject: Sync {
    fn name(&self) -> &'static str;
    fn steps(&self) -> Steps;
    /// Bytes of a record around its payload.
    fn framing_bytes(&self) -> u64;
    /// Number of the first record.
    fn first_ordinal(&self) -> u64;
    /// Bytes that are whole valid records, for payloads that try to deceive recovery.
    fn nested(&self) -> Vec<u8>;
    /// Number of the record after one with this number and payload.
    fn ordinal_after(&self, ordinal: u64, _payload_len: usize) -> u64 {
        ordinal + 1
    }
    /// Whether an append may sync the records before it, and so acknowledge them.
    fn appends_sync(&self) -> bool {
        false
    }
    /// A byte of the record at `offset..end` whose change its framing shows.
    fn telling_byte(&self, offset: u64, _end: u64) -> u64 {
        offset + self.head_bytes() + 10
    }
    /// Whether its files say how many records there are, so that a lost end is noticed without a mark.
    fn counts_records(&self) -> bool {
        false
    }
    /// Whether an append that another thread begins during a sync waits for its end.
    fn appends_wait_for_syncs(&self) -> bool {
        false
    }
    /// The tag that a record is read back with.
    fn tag(&self, _ordinal: u64, tag: u32) -> u32 {
        tag
    }
    /// Bytes of the framing before the payload.
    fn head_bytes(&self) -> u64 {
        self.framing_bytes() / 2
    }
    /// Where its files may be cut in the middle of a record: sectors, or smaller pieces.
    fn border_bytes(&self) -> u64 {
        history::SECTOR_BYTES
    }
    /// Size of the payload full of whole records.
    fn long_bytes(&self) -> usize {
        history::LONG_BYTES
    }
    /// The files with its records, the first one first, and the byte of the log at which each
    /// begins.
    fn files(&self, storage: &dyn Storage) -> Vec<(PathBuf, u64)>;
    /// Open for appending; create what is missing.
    fn open_on(&self, storage: Arc<dyn Storage>, how: How) -> Result<Box<dyn Log>>;
    /// Open for reading.
    fn read_on(&self, storage: Arc<dyn Storage>) -> Result<Box<dyn Log>>;
    /// Check every byte.
    fn check_on(&self, storage: Arc<dyn Storage>) -> Result<Checked>;
    /// Cut the log at its first damage.
    fn repair_on(&self, storage: Arc<dyn Storage>) -> Result<()>;
    /// Open for appending, and cut the log at its first damage.
    fn open_cutting_on(&self, storage: Arc<dyn Storage>) -> Result<Box<dyn Log>>;
    /// The directory with mark, index and lock.
    fn sidecar(&self) -> PathBuf;

    fn open(&self, disk: &Sim, how: How) -> Result<Box<dyn Log>> {
        self.open_on(Arc::new(disk.clone()), how)
    }
    /// Open for reading and read all; a check has to find the same.
    fn peek(&self, disk: &Sim) -> Result<Vec<Record>> {
        let seen = self.read_on(Arc::new(disk.clone()))?.read_all()?;
        let checked = self.check_on(Arc::new(disk.clone()))?;
        if checked.verdict == Verdict::Corrupt || checked.records != seen.len() as u64 {
            let message = format!("{} records read, but checked: {checked:?}", seen.len());
            return Err(Error::new(ErrorKind::Corrupt, message));
        }
        Ok(seen)
    }
    /// A record as it is read back, if it is appended as number `ordinal`.
    fn record(&self, ordinal: u64, tag: u32, bytes: &[u8]) -> Record {
        Record { ordinal, tag: self.tag(ordinal, tag), bytes: bytes.to_vec() }
    }
}

/// An open log.
pub trait Log: Send + Sync {
    /// Append tags and payloads as one batch.
    fn append(&self, records: &[(u32, Vec<u8>)]) -> Result<()>;
    fn sync(&self) -> Result<()>;
    fn close(&self) -> Result<()>;
    /// Byte of its file at which the next record begins.
    fn end(&self) -> Result<u64>;
    /// Number of the first record that need not be on stable storage; `None` if nothing says so.
    fn durable_end(&self) -> Result<Option<u64>>;
    fn read_all(&self) -> Result<Vec<Record>>;
    /// Only the record with this number.
    fn read(&self, ordinal: u64) -> Result<Record>;
    /// The records from the one with this number on.
    fn read_from(&self, ordinal: u64) -> Result<Vec<Record>>;
    /// All of them, the last one first.
    fn read_back(&self) -> Result<Vec<Record>>;
    /// All of them, in parts of about so many bytes that are read apart.
    fn read_splits(&self, split_bytes: u64) -> Result<Vec<Record>>;
    /// The payloads of all of them that can be read, damage or not.
    fn read_past_damage(&self) -> Result<Vec<Vec<u8>>>;
    /// For a reader: take over what others did.
    fn refresh(&self) -> Result<()>;
    /// Number of the next record, where an empty log can have any.
    fn next_ordinal(&self) -> Result<Option<u64>> {
        Ok(None)
    }
    /// Drop the records before the one with this number; with the next one's, all.
    fn truncate_before(&self, _ordinal: u64) -> Result<()> {
        Err(unsupported("truncate_before"))
    }
    /// Drop the records after the one with this number.
    fn truncate_after(&self, _ordinal: u64) -> Result<()> {
        Err(unsupported("truncate_after"))
    }
    /// Drop the record with this number and those after it.
    fn truncate_from(&self, _ordinal: u64) -> Result<()> {
        Err(unsupported("truncate_from"))
    }
}

fn unsupported(what: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("{what}: not supported"))
}

/// States that a power cut can leave: all, or so many by chance.
pub fn states(disk: &Sim, count: u64) -> Vec<Sim> {
    let crashes = disk.crashes();
    let all = crashes.count() <= count;
    let choice = |index| if all { crashes.nth(index) } else { crashes.sample(mix(index)) };
    (0..crashes.count().min(count)).map(|index| crashes.build(&choice(index))).collect()
}
