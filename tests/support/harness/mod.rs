//! The crash and fault tests share histories of logs, an oracle, and the enumerator of crashes.
//!
//! To add a format, add a [`Subject`] in `subjects.rs` with an implementation as in `formats`, and a line in
//! `for_every_subject`.

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

use crate::support::prelude::*;

#[allow(unused_imports)] // not in every program
pub use crate::support::crashes::{cuts as states, worst};
#[allow(unused_imports)]
pub use crate::support::formats::subject::{
    ACKNOWLEDGED, ALWAYS, At, Event, Format, How, Log, MANUAL, Record,
};
pub use crate::support::mix::mix;
pub use oracle::{Expect, hash, judge, judge_any};

/// A test for each function and each subject: a failure names the two, and `cargo nextest run --test engine
/// wal_tiny` runs the tests of one format. No test may run forever.
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
    /// Steps of the short histories, all of which are tried.
    pub alphabet: &'static str,
    pub longer: &'static str,
    /// First steps before other short histories, and by how many steps these histories are shorter.
    pub families: &'static [(&'static str, usize)],
    /// First steps that close blocks of the index, and steps tried after them.
    pub blocks: (&'static str, &'static str),
    /// Histories in which every storage call fails.
    pub scripts: &'static [&'static str],
    /// The campaign tries its number of states divided by `share`.
    pub share: u64,
}

#[derive(Clone, Copy)]
pub struct Subject {
    pub name: &'static str,
    pub format: &'static dyn Format,
    /// The format with which readers, checks and repairs open the log: they take any layout.
    pub looks: &'static dyn Format,
    pub path: &'static str,
    pub first: u64,
    pub steps: Steps,
    /// The format and the sizes of records in payloads that try to deceive recovery.
    pub nested: (&'static dyn Format, &'static [usize]),
    /// Whether only the trailer reveals a changed byte of a record.
    pub trailer_tells: bool,
    /// A cut may end the log's files at each multiple of so many bytes, also within a record.
    pub border_bytes: u64,
    pub long_bytes: usize,
    /// Whether the files count the records, so a reader notices a lost end without a mark.
    pub counts_records: bool,
    /// Whether an append may sync, and so acknowledge, the records before.
    pub appends_sync: bool,
    /// Whether an append of another thread waits for the end of a running sync.
    pub appends_wait_for_syncs: bool,
}

impl Subject {
    pub fn at(&self, storage: Arc<dyn Storage>) -> At {
        At { storage, path: self.path.into() }
    }

    fn on(&self, disk: &Sim) -> At {
        self.at(Arc::new(disk.clone()))
    }

    pub fn open(&self, disk: &Sim, how: How) -> Result<Box<dyn Log>> {
        self.open_on(Arc::new(disk.clone()), how)
    }

    pub fn open_on(&self, storage: Arc<dyn Storage>, how: How) -> Result<Box<dyn Log>> {
        self.format.open(&self.at(storage), Mode::Append, how)
    }

    pub fn read(&self, disk: &Sim) -> Result<Box<dyn Log>> {
        self.looks.read(&self.on(disk))
    }

    pub fn check(&self, disk: &Sim) -> Result<VerifyReport> {
        self.looks.verify(&self.on(disk), MANUAL)
    }

    /// Cut the log at its first damage.
    pub fn repair(&self, disk: &Sim) -> Result<()> {
        let may = Repair { force: true, accept_loss: true, dry_run: false };
        self.looks.repair_as(&self.on(disk), MANUAL, may).map(drop)
    }

    /// Open for reading and read all; a check must count the same records.
    pub fn peek(&self, disk: &Sim) -> Result<Vec<Record>> {
        let seen = self.read(disk)?.read_all()?;
        let checked = self.check(disk)?;
        if checked.verdict == Verdict::Corrupt || checked.records != seen.len() as u64 {
            let message = format!("{} records read, but checked: {checked:?}", seen.len());
            return Err(Error::new(ErrorKind::Corrupt, message));
        }
        Ok(seen)
    }

    /// A record as it is read back after an append: after `last`, or as the first record.
    pub fn record(&self, last: Option<&Record>, tag: u32, bytes: &[u8]) -> Record {
        self.format.record_after(last, self.first, tag, bytes)
    }

    pub fn ordinal_after(&self, last: &Record) -> u64 {
        self.format.ordinal_after(last.number(), last.bytes.len())
    }

    /// The bytes of whole valid records, for payloads that try to deceive recovery.
    pub fn nested(&self) -> Vec<u8> {
        let (format, sizes) = self.nested;
        let at = At::memory(&Memory::new(), format.path_in(Path::new("/nested")));
        let events: Vec<Event> = sizes.iter().map(|size| (0xbad, vec![0xee; *size])).collect();
        let log = format.create(&at, &events);
        let (end, len) = (log.end().unwrap() as usize, |event: &Event| event.1.len() as u64);
        let records: u64 = events.iter().map(|event| format.framing_bytes() + len(event)).sum();
        log.close().unwrap();
        let bytes = read_file(&*at.storage, &format.first_file(&at.path));
        bytes[end - records as usize..end].to_vec()
    }

    /// A byte of the record at `offset..end`: a change there shows in the framing.
    pub fn telling_byte(&self, offset: u64, end: u64) -> u64 {
        if self.trailer_tells { end - 7 } else { offset + self.format.head_bytes() + 10 }
    }

    pub fn files(&self, storage: &dyn Storage) -> Vec<(PathBuf, u64)> {
        self.format.files(storage, Path::new(self.path))
    }

    pub fn sidecar(&self) -> PathBuf {
        self.format.sidecar(Path::new(self.path))
    }
}
