//! The tested logs behind one interface: a Book or a write-ahead log, each in either layout, or an event store.
//!
//! The place of a record is the event's number in a Book, the LSN in a write-ahead log, and the number of an event in a
//! store.

use std::path::{Path, PathBuf};

use deedbook::book::{self, Book};
use deedbook::report::Verdict;
use deedbook::wal::{self, HEAD_NAME, Layout, Lsn, Wal};
use deedbook::{Durability, Result};

pub use deedbook::Mode;

use crate::store::{self, Store};

/// Small segments, to create and remove many, and to let records span several.
const SEGMENT_BYTES: u64 = 64 << 10;
/// Size of a record's header in a write-ahead log.
const HEADER_BYTES: u64 = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Book,
    BookSlots,
    WalFile,
    WalSegments,
    Store,
}

/// A record's content; a write-ahead log has no mugs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub mug: u32,
    pub bytes: Vec<u8>,
}

/// The results of a full check.
#[derive(Debug)]
pub struct Verified {
    pub verdict: Verdict,
    pub records: u64,
    /// Place after the last record.
    pub end: u64,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Book => "book",
            Self::BookSlots => "book-slots",
            Self::WalFile => "wal-file",
            Self::WalSegments => "wal-segments",
            Self::Store => "store",
        }
    }

    pub fn named(name: &str) -> Self {
        let kinds = [Self::Book, Self::BookSlots, Self::WalFile, Self::WalSegments, Self::Store];
        kinds.into_iter().find(|kind| kind.name() == name).expect(name)
    }

    pub fn is_book(self) -> bool {
        matches!(self, Self::Book | Self::BookSlots)
    }

    /// The name of a part of the report.
    pub fn part(self, part: &str) -> String {
        match self {
            Self::Book => part.into(),
            Self::BookSlots => format!("{part}, slots"),
            Self::WalFile => format!("{part}, wal file"),
            Self::WalSegments => format!("{part}, wal segments"),
            Self::Store => format!("{part}, event store"),
        }
    }

    /// The name of the records.
    pub fn records(self) -> &'static str {
        match self {
            Self::Book | Self::BookSlots => "deeds",
            Self::Store => "events",
            _ => "records",
        }
    }

    /// Whether places are numbers of records.
    fn counts(self) -> bool {
        self.is_book() || self == Self::Store
    }

    /// Place of the first record.
    pub fn first(self) -> u64 {
        if self.counts() { store::FIRST } else { 0 }
    }

    /// Place after a record of `len` bytes.
    pub fn behind(self, place: u64, len: u64) -> u64 {
        if self.counts() { place + 1 } else { place + HEADER_BYTES + len }
    }

    /// Do one strike in this many, because opening takes longer.
    pub fn share(self) -> u64 {
        if self == Self::Store { 8 } else { 1 }
    }

    pub fn drops_prefixes(self) -> bool {
        self == Self::WalSegments
    }

    pub fn cuts_ends(self) -> bool {
        !self.counts()
    }

    fn path(self, dir: &Path) -> PathBuf {
        if self == Self::WalFile { dir.join("wal") } else { dir.into() }
    }

    /// Whether there is a log, intact or not.
    pub fn exists(self, dir: &Path) -> bool {
        match self {
            Self::Book | Self::BookSlots => dir.join("book.log").exists(),
            Self::WalFile => self.path(dir).exists(),
            Self::WalSegments => segments(dir) > 0 || dir.join(HEAD_NAME).exists(),
            Self::Store => store::exists(dir),
        }
    }

    fn wal_options(self, durability: Durability) -> wal::Options {
        let layout = match self {
            Self::WalSegments => Layout::Segmented { segment_bytes: SEGMENT_BYTES },
            _ => Layout::Single,
        };
        wal::Options::new().durability(durability).layout(layout)
    }

    pub fn open(self, dir: &Path, mode: Mode, durability: Durability) -> Result<Log> {
        if self == Self::Store {
            return Store::open(dir, mode, durability).map(Log::Store);
        }
        if !self.is_book() {
            return self.wal_options(durability).open(self.path(dir), mode).map(Log::Wal);
        }
        let layout = match self {
            Self::BookSlots => book::Layout::Slots,
            _ => book::Layout::Packed,
        };
        let options = book::Options::new().durability(durability).layout(layout);
        options.open(dir, mode).map(Log::Book)
    }

    pub fn verify(self, dir: &Path) -> Result<Verified> {
        let path = self.path(dir);
        if self == Self::Store {
            let store = Store::open(dir, Mode::Read, Durability::Manual)?;
            let (verdict, records) = (Verdict::Clean, store.verify()?);
            return Ok(Verified { verdict, records, end: store.end() });
        }
        if !self.is_book() {
            let options = self.wal_options(Durability::Manual);
            let found = options.verify(&path)?;
            let (verdict, records, end) = (found.verdict, found.records, found.valid_end);
            return Ok(Verified { verdict, records, end });
        }
        let found = book::Options::default().verify(&path)?;
        let end = found.bounds.map_or(self.first(), |(_, last)| last + 1);
        Ok(Verified { verdict: found.verdict, records: found.records, end })
    }
}

/// Number of segment files in a directory.
pub fn segments(dir: &Path) -> u64 {
    let files = std::fs::read_dir(dir).into_iter().flatten().flatten();
    files.filter(|file| file.path().extension().is_some_and(|suffix| suffix == "wal")).count()
        as u64
}

/// An open log.
pub enum Log {
    Book(Book),
    Wal(Wal),
    Store(Store),
}

impl Log {
    pub fn head(&self) -> Result<u64> {
        match self {
            Self::Book(book) => Ok(book.epoch()? + 1),
            Self::Wal(wal) => Ok(wal.head()?.0),
            Self::Store(_) => Ok(store::FIRST),
        }
    }

    /// Place of the next record.
    pub fn end(&self) -> Result<u64> {
        match self {
            Self::Book(book) => Ok(book.last()? + 1),
            Self::Wal(wal) => Ok(wal.end()?.0),
            Self::Store(store) => Ok(store.end()),
        }
    }

    /// Place after the last record known to be durable.
    pub fn durable_end(&self) -> Result<Option<u64>> {
        match self {
            Self::Book(book) => Ok(book.durable_last()?.map(|last| last + 1)),
            Self::Wal(wal) => Ok(wal.durable_end()?.map(|Lsn(end)| end)),
            Self::Store(_) => Ok(None),
        }
    }

    /// Look for more records as a reader. Returns the end.
    pub fn refresh(&self) -> Result<u64> {
        match self {
            Self::Book(book) => Ok(book.refresh()? + 1),
            Self::Wal(wal) => Ok(wal.refresh()?.0),
            Self::Store(store) => Ok(store.end()),
        }
    }

    pub fn append(&self, record: &Record) -> Result<()> {
        match self {
            Self::Book(book) => book.append(record.mug, &record.bytes).map(drop),
            Self::Wal(wal) => wal.append(&record.bytes).map(drop),
            Self::Store(store) => store.append(std::slice::from_ref(record)),
        }
    }

    /// Append durably.
    pub fn commit(&self, record: &Record) -> Result<()> {
        match self {
            Self::Book(book) => book.commit(record.mug, &record.bytes).map(drop),
            Self::Wal(wal) => wal.commit(&record.bytes).map(drop),
            Self::Store(store) => {
                store.append(std::slice::from_ref(record))?;
                store.sync()
            }
        }
    }

    pub fn append_batch(&self, records: &[Record]) -> Result<()> {
        match self {
            Self::Book(book) => {
                let mut batch = deedbook::Batch::<deedbook::book::BookFormat>::new(
                    book.options().deed_bytes_max,
                );
                records.iter().try_for_each(|record| batch.push(record.mug, &record.bytes))?;
                book.append_batch(&batch, None, None).map(drop)
            }
            Self::Wal(wal) => {
                let mut batch = deedbook::Batch::<deedbook::wal::WalFormat>::new(
                    deedbook::wal::Options::RECORD_BYTES_MAX,
                );
                records.iter().try_for_each(|record| batch.push(&record.bytes).map(drop))?;
                wal.append_batch(&batch).map(drop)
            }
            Self::Store(store) => store.append(records),
        }
    }

    pub fn sync(&self) -> Result<()> {
        match self {
            Self::Book(book) => book.sync(),
            Self::Wal(wal) => wal.sync(),
            Self::Store(store) => store.sync(),
        }
    }

    pub fn close(&self) -> Result<()> {
        match self {
            Self::Book(book) => book.close(),
            Self::Wal(wal) => wal.close(),
            Self::Store(store) => store.close(),
        }
    }

    pub fn truncate_before(&self, place: u64) -> Result<()> {
        match self {
            Self::Book(_) => panic!("a Book drops no prefixes"),
            Self::Wal(wal) => wal.truncate_before(Lsn(place)).map(drop),
            Self::Store(_) => panic!("a store drops no prefixes"),
        }
    }

    pub fn truncate_from(&self, place: u64) -> Result<()> {
        match self {
            Self::Book(_) => panic!("a Book's end is not cut"),
            Self::Wal(wal) => wal.truncate_from(Lsn(place)).map(drop),
            Self::Store(_) => panic!("a store's end is not cut"),
        }
    }

    /// The verdict of the opening.
    pub fn verdict(&self) -> Verdict {
        match self {
            Self::Book(book) => book.recovery().verdict,
            Self::Wal(wal) => wal.recovery().verdict,
            Self::Store(_) => Verdict::Clean,
        }
    }

    /// All records with their places.
    pub fn records(&self) -> Result<Vec<(u64, Record)>> {
        match self {
            Self::Book(book) => {
                let deeds = book.iter(..)?.map(|deed| deed.map(of_book));
                deeds.collect()
            }
            Self::Wal(wal) => {
                let records = wal.iter(..)?.map(|record| record.map(of_wal));
                records.collect()
            }
            Self::Store(store) => store.records(),
        }
    }

    pub fn read(&self, place: u64) -> Result<Record> {
        match self {
            Self::Book(book) => book.read(place).map(|deed| of_book(deed).1),
            Self::Wal(wal) => {
                wal.read(Lsn(place)).map(|record| Record { mug: 0, bytes: record.payload })
            }
            Self::Store(store) => store.read(place),
        }
    }

    /// The file for appends.
    pub fn last_file(&self) -> Result<PathBuf> {
        match self {
            Self::Book(book) => Ok(book.path().join("book.log")),
            Self::Wal(wal) => Ok(wal.segment_paths()?.pop().expect("a log has a file")),
            Self::Store(store) => store.last_file(),
        }
    }
}

fn of_book(deed: book::Deed) -> (u64, Record) {
    (deed.event.unwrap_or(0), Record { mug: deed.mug, bytes: deed.jam })
}

fn of_wal(record: wal::Record) -> (u64, Record) {
    (record.lsn.0, Record { mug: 0, bytes: record.payload })
}
