//! Logs of any format behind one interface, for the class `Log`.

use std::ops::Bound::{self, Excluded, Included, Unbounded};
use std::path::Path;

use arrow_schema::SchemaRef;
use deedbook::book::Book;
use deedbook::jobs::{Bookmark, Reach, Split};
use deedbook::report::OpenReport;
use deedbook::wal::{Lsn, Wal, WalFormat};
use deedbook::{Durability, Mode, OnCorrupt, Result, Stats};
use pyo3::prelude::*;

use crate::append::transaction::Transacts;
use crate::book::deeds::{self, Deeds};
use crate::common::errors::{OrRaise, invalid};
use crate::log::batches::{BATCH_BYTES, BATCH_ROWS, Batches, columns};
use crate::log::iterators::{Wait, Walk};

/// The formats.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Book,
    Wal,
    Ledger,
    Nostr,
}

impl Format {
    pub fn name(self) -> &'static str {
        match self {
            Self::Book => "book",
            Self::Wal => "wal",
            Self::Ledger => "ledger",
            Self::Nostr => "nostr",
        }
    }

    pub fn class(self) -> &'static str {
        match self {
            Self::Book => "Book",
            Self::Wal => "Wal",
            Self::Ledger => "Ledger",
            Self::Nostr => "EventStore",
        }
    }

    pub fn by_name(py: Python<'_>, name: &str) -> PyResult<Self> {
        let known = [Self::Book, Self::Wal, Self::Ledger, Self::Nostr];
        let named = known.into_iter().find(|format| format.name() == name);
        let names = "\"book\", \"wal\", \"ledger\", \"nostr\"";
        named.ok_or_else(|| invalid(py, format!("format {name:?}, must be one of {names}")))
    }
}

/// The bounds of a walk, by the format's positions.
pub type Range = (Option<u64>, Option<u64>);

/// A range for the core.
pub fn bounds<T>(start: Option<T>, stop: Option<T>) -> (Bound<T>, Bound<T>) {
    (start.map_or(Unbounded, Included), stop.map_or(Unbounded, Excluded))
}

/// A log of any format. Positions are event numbers or LSNs.
pub trait AnyLog: Send + Sync {
    fn format(&self) -> Format;
    fn path(&self) -> &Path;
    fn mode(&self) -> Mode;
    fn layout(&self) -> &'static str;
    fn durability(&self) -> Durability;
    fn recovery(&self) -> &OpenReport;
    fn is_closed(&self) -> bool;
    fn close(&self) -> Result<()>;
    fn sync(&self) -> Result<()>;
    fn stats(&self) -> Result<Stats>;
    fn len(&self) -> Result<u64>;
    fn bounds(&self) -> Result<Option<(u64, u64)>>;
    fn end(&self) -> Result<u64>;
    fn durable_end(&self) -> Result<Option<u64>>;
    fn refresh(&self) -> Result<u64>;
    fn wait_durable(&self, position: u64) -> Result<()>;
    /// The `repr` of an open log.
    fn state(&self) -> Result<String>;
    fn walk(&self, range: Range, on_corrupt: OnCorrupt) -> Result<Box<dyn Walk>>;
    fn walk_back(&self, range: Range) -> Result<Box<dyn Walk>>;
    fn follow(&self, start: Option<u64>) -> Result<Box<dyn Wait>>;
    fn splits(&self, split_bytes: u64, range: Range) -> Result<Vec<Split>>;
    fn bookmark(&self, position: Option<u64>) -> Result<Bookmark>;
    fn advance(&self, from: &Bookmark, reach: &Reach) -> Result<Bookmark>;
    fn splits_between(&self, bytes: u64, from: &Bookmark, to: &Bookmark) -> Result<Vec<Split>>;
    fn transacts(&self) -> Box<dyn Transacts>;
    fn schema(&self) -> Result<SchemaRef>;
    fn batches(&self, py: Python<'_>, range: Range, how: How) -> PyResult<Box<dyn Batches>>;
}

/// How batches are made.
pub struct How {
    pub columns: Option<Vec<String>>,
    pub rows: usize,
    pub bytes: usize,
    pub on_corrupt: OnCorrupt,
    pub check: bool,
}

impl Default for How {
    fn default() -> Self {
        let (columns, rows, bytes) = (None, BATCH_ROWS, BATCH_BYTES);
        Self { columns, rows, bytes, on_corrupt: OnCorrupt::Raise, check: true }
    }
}

/// The common methods of the core's logs.
macro_rules! same {
    ($format:ident) => {
        fn format(&self) -> Format {
            Format::$format
        }

        fn path(&self) -> &Path {
            self.path()
        }

        fn mode(&self) -> Mode {
            self.mode()
        }

        fn layout(&self) -> &'static str {
            self.layout().name()
        }

        fn durability(&self) -> Durability {
            self.options().durability
        }

        fn recovery(&self) -> &OpenReport {
            self.recovery()
        }

        fn is_closed(&self) -> bool {
            self.is_closed()
        }

        fn close(&self) -> Result<()> {
            self.close()
        }

        fn sync(&self) -> Result<()> {
            self.sync()
        }

        fn stats(&self) -> Result<Stats> {
            self.stats()
        }

        fn len(&self) -> Result<u64> {
            self.len()
        }

        fn transacts(&self) -> Box<dyn Transacts> {
            Box::new(self.clone())
        }

        fn advance(&self, from: &Bookmark, reach: &Reach) -> Result<Bookmark> {
            self.advance(from, reach)
        }

        fn splits_between(
            &self,
            split_bytes: u64,
            from: &Bookmark,
            to: &Bookmark,
        ) -> Result<Vec<Split>> {
            self.splits_between(split_bytes, from, to)
        }
    };
}

impl AnyLog for Book {
    same!(Book);

    fn bounds(&self) -> Result<Option<(u64, u64)>> {
        Ok(self.bounds()?.map(|bounds| (*bounds.start(), *bounds.end())))
    }

    fn end(&self) -> Result<u64> {
        self.end()
    }

    fn durable_end(&self) -> Result<Option<u64>> {
        self.durable_end()
    }

    fn refresh(&self) -> Result<u64> {
        self.refresh()
    }

    fn wait_durable(&self, position: u64) -> Result<()> {
        self.wait_durable(position)
    }

    fn state(&self) -> Result<String> {
        Ok(match self.bounds()? {
            Some(bounds) => format!("events {} to {}", bounds.start(), bounds.end()),
            None => "empty".into(),
        })
    }

    fn walk(&self, (start, stop): Range, on_corrupt: OnCorrupt) -> Result<Box<dyn Walk>> {
        Ok(Box::new(self.cursor(bounds(start, stop), on_corrupt)?))
    }

    fn walk_back(&self, (start, stop): Range) -> Result<Box<dyn Walk>> {
        Ok(Box::new(self.cursor_back(bounds(start, stop))?))
    }

    fn follow(&self, start: Option<u64>) -> Result<Box<dyn Wait>> {
        Ok(Box::new(self.follow(start)?))
    }

    fn splits(&self, split_bytes: u64, (start, stop): Range) -> Result<Vec<Split>> {
        self.splits(split_bytes, bounds(start, stop))
    }

    fn bookmark(&self, event: Option<u64>) -> Result<Bookmark> {
        event.map_or_else(|| self.bookmark(), |event| self.bookmark_at(event))
    }

    fn schema(&self) -> Result<SchemaRef> {
        deeds::schema()
    }

    fn batches(&self, py: Python<'_>, range: Range, how: How) -> PyResult<Box<dyn Batches>> {
        Deeds::batches(self, py, range, how)
    }
}

impl AnyLog for Wal {
    same!(Wal);

    fn bounds(&self) -> Result<Option<(u64, u64)>> {
        Ok(self.bounds()?.map(|(first, last)| (first.0, last.0)))
    }

    fn end(&self) -> Result<u64> {
        Ok(self.end()?.0)
    }

    fn durable_end(&self) -> Result<Option<u64>> {
        Ok(self.durable_end()?.map(|lsn| lsn.0))
    }

    fn refresh(&self) -> Result<u64> {
        Ok(self.refresh()?.0)
    }

    fn wait_durable(&self, position: u64) -> Result<()> {
        self.wait_durable(Lsn(position))
    }

    fn state(&self) -> Result<String> {
        Ok(format!("bytes {} to {}", self.head()?, self.end()?))
    }

    fn walk(&self, (start, stop): Range, on_corrupt: OnCorrupt) -> Result<Box<dyn Walk>> {
        Ok(Box::new(self.cursor(bounds(start.map(Lsn), stop.map(Lsn)), on_corrupt)?))
    }

    fn walk_back(&self, (start, stop): Range) -> Result<Box<dyn Walk>> {
        Ok(Box::new(self.cursor_back(bounds(start.map(Lsn), stop.map(Lsn)))?))
    }

    fn follow(&self, start: Option<u64>) -> Result<Box<dyn Wait>> {
        Ok(Box::new(self.follow(start.map(Lsn))?))
    }

    fn splits(&self, split_bytes: u64, (start, stop): Range) -> Result<Vec<Split>> {
        self.splits(split_bytes, bounds(start.map(Lsn), stop.map(Lsn)))
    }

    fn bookmark(&self, lsn: Option<u64>) -> Result<Bookmark> {
        lsn.map_or_else(|| self.bookmark(), |lsn| self.bookmark_at(Lsn(lsn)))
    }

    fn schema(&self) -> Result<SchemaRef> {
        deedbook::Batches::<WalFormat>::schema_of(deedbook::Batches::<WalFormat>::DEFAULT)
    }

    fn batches(
        &self,
        py: Python<'_>,
        (start, stop): Range,
        how: How,
    ) -> PyResult<Box<dyn Batches>> {
        let columns = columns(py, how.columns, deedbook::Batches::<WalFormat>::DEFAULT)?;
        let range = bounds(start.map(Lsn), stop.map(Lsn));
        let cursor = py.detach(|| self.cursor(range, how.on_corrupt)).or_raise(py)?;
        let cursor = if how.check { cursor } else { cursor.without_checksums() };
        let batches = deedbook::Batches::new(cursor, &columns, how.rows, how.bytes);
        Ok(Box::new(batches.or_raise(py)?))
    }
}
