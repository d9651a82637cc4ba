//! The crash and fault tests share histories of logs, an oracle, and the enumerator of crashes.
//!
//! A further format plugs in with one [`Subject`] in `subjects.rs`, which holds the format as
//! `formats` describes it, and one line in `for_every_subject`.
#![allow(dead_code)]

pub mod campaign;
pub mod config;
pub mod explore;
pub mod faulty;
pub mod files;
pub mod history;
pub mod limit;
pub mod mutated;
pub mod mutations;
pub mod oracle;
pub mod subjects;
pub mod views;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use deedbook::report::{Repair, Verdict, VerifyReport};
use deedbook::storage::sim::Sim;
use deedbook::storage::{Memory, Storage};
use deedbook::{Error, ErrorKind, Mode, Recovery, Result};

#[allow(unused_imports)] // not in every program
pub use crate::support::crashes::{cuts as states, worst};
#[allow(unused_imports)]
pub use crate::support::formats::subject::{
    ACKNOWLEDGED, ALWAYS, At, Event, Format, How, Log, MANUAL, Record,
};
pub use crate::support::mix::mix;
pub use oracle::{Expect, hash, judge, judge_any};

/// One test for each of these functions and each subject, so that a failure names both and
/// `cargo nextest run --test engine wal_tiny` runs those of one format. None may run for ever.
#[allow(unused_macros)]
macro_rules! for_every_subject {
    ($($tests:tt)*) => {
        for_subject! { book, harness::subjects::BOOK, $($tests)* }
        for_subject! { book_epoch, harness::subjects::EPOCH, $($tests)* }
        for_subject! { book_slots, harness::subjects::SLOTS, $($tests)* }
        for_subject! { wal_single, harness::subjects::SINGLE, $($tests)* }
        for_subject! { wal_segments, harness::subjects::SEGMENTS, $($tests)* }
        for_subject! { wal_tiny, harness::subjects::TINY, $($tests)* }
        for_subject! { wal_large, harness::subjects::LARGE, $($tests)* }
        for_subject! { toy, harness::subjects::TOY, $($tests)* }
        for_subject! { #[cfg(feature = "nostr")] nostr_wal, harness::subjects::NOSTR_WAL, $($tests)* }
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

/// The steps of a subject's histories; see `history.rs` for the letters.
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

/// A log on a simulated disk, and its histories.
#[derive(Clone, Copy)]
pub struct Subject {
    pub name: &'static str,
    pub format: &'static dyn Format,
    /// The format by which readers, checks and repairs open it: they take any layout.
    pub looks: &'static dyn Format,
    pub path: &'static str,
    /// Number of the first record.
    pub first: u64,
    pub steps: Steps,
    /// The format and the sizes of records in payloads that try to deceive recovery.
    pub nested: (&'static dyn Format, &'static [usize]),
    /// Whether a changed byte of a record shows in its trailer only.
    pub trailer_tells: bool,
    /// A cut may end its files at each multiple of so many bytes, also within a record.
    pub border_bytes: u64,
    /// Size of the payload full of whole records.
    pub long_bytes: usize,
    /// Whether its files say how many records there are, so that a lost end is noticed without a mark.
    pub counts_records: bool,
    /// Whether an append may sync the records before it, and so acknowledge them.
    pub appends_sync: bool,
    /// Whether an append that another thread begins during a sync waits for its end.
    pub appends_wait_for_syncs: bool,
}

impl Subject {
    pub fn at(&self, storage: Arc<dyn Storage>) -> At {
        At { storage, path: self.path.into() }
    }

    fn on(&self, disk: &Sim) -> At {
        self.at(Arc::new(disk.clone()))
    }

    /// Open for appending; create what is missing.
    pub fn open(&self, disk: &Sim, how: How) -> Result<Box<dyn Log>> {
        self.open_on(Arc::new(disk.clone()), how)
    }

    pub fn open_on(&self, storage: Arc<dyn Storage>, how: How) -> Result<Box<dyn Log>> {
        self.format.open(&self.at(storage), Mode::Append, how)
    }

    /// Open for appending, and cut the log at its first damage.
    pub fn open_cutting(&self, disk: &Sim) -> Result<Box<dyn Log>> {
        self.open(disk, How { recovery: Recovery::Spec, ..MANUAL })
    }

    /// Open for reading.
    pub fn read(&self, disk: &Sim) -> Result<Box<dyn Log>> {
        self.looks.read(&self.on(disk))
    }

    /// Check every byte.
    pub fn check(&self, disk: &Sim) -> Result<VerifyReport> {
        self.looks.verify(&self.on(disk), MANUAL)
    }

    /// Cut the log at its first damage.
    pub fn repair(&self, disk: &Sim) -> Result<()> {
        let may = Repair { force: true, accept_loss: true, dry_run: false };
        self.looks.repair_as(&self.on(disk), MANUAL, may).map(drop)
    }

    /// Open for reading and read all; a check has to find the same.
    pub fn peek(&self, disk: &Sim) -> Result<Vec<Record>> {
        let seen = self.read(disk)?.read_all()?;
        let checked = self.check(disk)?;
        if checked.verdict == Verdict::Corrupt || checked.records != seen.len() as u64 {
            let message = format!("{} records read, but checked: {checked:?}", seen.len());
            return Err(Error::new(ErrorKind::Corrupt, message));
        }
        Ok(seen)
    }

    /// A record as it is read back, if it is appended after `last`, or as the first one.
    pub fn record(&self, last: Option<&Record>, tag: u32, bytes: &[u8]) -> Record {
        self.format.record_after(last, self.first, tag, bytes)
    }

    /// Number of the record after this one.
    pub fn ordinal_after(&self, last: &Record) -> u64 {
        self.format.ordinal_after(last.number(), last.bytes.len())
    }

    /// Bytes that are whole valid records, for payloads that try to deceive recovery.
    pub fn nested(&self) -> Vec<u8> {
        let (format, sizes) = self.nested;
        let at = At::memory(&Memory::new(), format.path_in(Path::new("/nested")));
        let events: Vec<Event> = sizes.iter().map(|size| (0xbad, vec![0xee; *size])).collect();
        let log = format.create(&at, &events);
        let (end, len) = (log.end().unwrap() as usize, |event: &Event| event.1.len() as u64);
        let records: u64 = events.iter().map(|event| format.framing_bytes() + len(event)).sum();
        log.close().unwrap();
        let bytes = files::bytes_of(&*at.storage, &format.first_file(&at.path));
        bytes[end - records as usize..end].to_vec()
    }

    /// A byte of the record at `offset..end` whose change its framing shows.
    pub fn telling_byte(&self, offset: u64, end: u64) -> u64 {
        if self.trailer_tells { end - 7 } else { offset + self.format.head_bytes() + 10 }
    }

    pub fn files(&self, storage: &dyn Storage) -> Vec<(PathBuf, u64)> {
        self.format.files(storage, Path::new(self.path))
    }

    /// The directory with mark, index and lock.
    pub fn sidecar(&self) -> PathBuf {
        self.format.sidecar(Path::new(self.path))
    }
}
