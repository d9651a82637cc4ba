//! The common part of a book and a pier: deeds by number.

use arrow_schema::SchemaRef;
use deedbook::Batch;
use deedbook::book::BookFormat;
use deedbook::book::pier::Pier;
use deedbook::book::{Book, Options};
use deedbook::{OnCorrupt, Result};
use pyo3::prelude::*;

use crate::common::errors::OrRaise;
use crate::log::any_log::{How, Range, bounds};
use crate::log::batches::{Batches, columns};
use crate::log::iterators::Walk;

/// Deeds by number, in a log or in several logs.
pub trait Deeds: Send + Sync {
    fn options(&self) -> &Options;
    /// An empty batch in the layout of the log.
    fn batch(&self) -> Batch<BookFormat>;
    fn epoch(&self) -> Result<u64>;
    fn last(&self) -> Result<u64>;
    fn sync(&self) -> Result<()>;
    fn append_unsynced(&self, batch: &Batch<BookFormat>) -> Result<u64>;
    fn append_batch(
        &self,
        batch: &Batch<BookFormat>,
        event: Option<u64>,
        epoch: Option<u64>,
    ) -> Result<u64>;
    fn walk(&self, range: Range, on_corrupt: OnCorrupt) -> Result<Box<dyn Walk>>;
    fn walk_back(&self, range: Range) -> Result<Box<dyn Walk>>;
    fn batches(&self, py: Python<'_>, range: Range, how: How) -> PyResult<Box<dyn Batches>>;
}

/// The default columns.
pub fn schema() -> Result<SchemaRef> {
    deedbook::Batches::<BookFormat>::schema_of(deedbook::Batches::<BookFormat>::DEFAULT)
}

/// The common methods of both.
macro_rules! same {
    () => {
        fn options(&self) -> &Options {
            self.options()
        }

        fn batch(&self) -> Batch<BookFormat> {
            self.batch()
        }

        fn epoch(&self) -> Result<u64> {
            self.epoch()
        }

        fn last(&self) -> Result<u64> {
            self.last()
        }

        fn sync(&self) -> Result<()> {
            self.sync()
        }

        fn append_unsynced(&self, batch: &Batch<BookFormat>) -> Result<u64> {
            self.append_unsynced(batch)
        }

        fn append_batch(
            &self,
            batch: &Batch<BookFormat>,
            event: Option<u64>,
            epoch: Option<u64>,
        ) -> Result<u64> {
            self.append_batch(batch, event, epoch)
        }

        fn walk(&self, (start, stop): Range, on_corrupt: OnCorrupt) -> Result<Box<dyn Walk>> {
            Ok(Box::new(self.cursor(bounds(start, stop), on_corrupt)?))
        }

        fn walk_back(&self, (start, stop): Range) -> Result<Box<dyn Walk>> {
            Ok(Box::new(self.cursor_back(bounds(start, stop))?))
        }

        fn batches(
            &self,
            py: Python<'_>,
            (start, stop): Range,
            how: How,
        ) -> PyResult<Box<dyn Batches>> {
            let columns = columns(py, how.columns, deedbook::Batches::<BookFormat>::DEFAULT)?;
            let range = bounds(start, stop);
            let cursor = py.detach(|| self.cursor(range, how.on_corrupt)).or_raise(py)?;
            let cursor = if how.check { cursor } else { cursor.without_checksums() };
            let batches = deedbook::Batches::new(cursor, &columns, how.rows, how.bytes);
            Ok(Box::new(batches.or_raise(py)?))
        }
    };
}

impl Deeds for Book {
    same!();
}

impl Deeds for Pier {
    same!();
}
