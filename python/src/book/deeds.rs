//! What a book and a pier have in common: deeds by number.

use std::collections::VecDeque;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use deedbook::book::pier::Pier;
use deedbook::book::{self, Batch, Book, Options};
use deedbook::{Columns, Damage, OnCorrupt, Result};
use pyo3::prelude::*;

use crate::common::errors::OrRaise;
use crate::log::any_log::{AnyLog, How, Range};
use crate::log::batches::{Batches, columns};
use crate::log::iterators::Walk;

/// Deeds by number, whether they lie in one log or in several.
pub trait Deeds: Send + Sync {
    fn options(&self) -> &Options;
    /// An empty batch in the layout that is appended to.
    fn batch(&self) -> Batch;
    fn epoch(&self) -> Result<u64>;
    fn last(&self) -> Result<u64>;
    fn sync(&self) -> Result<()>;
    fn append_unsynced(&self, batch: &Batch) -> Result<u64>;
    fn walk(&self, range: Range, on_corrupt: OnCorrupt) -> Result<Box<dyn Walk>>;
    fn walk_back(&self, range: Range) -> Result<Box<dyn Walk>>;
    fn batches(&self, py: Python<'_>, range: Range, how: How) -> PyResult<Box<dyn Batches>>;
}

/// What their columns are by default.
pub fn schema() -> SchemaRef {
    book::Column::schema(&book::Column::DEFAULT)
}

/// What both have under the same names.
macro_rules! same {
    () => {
        fn options(&self) -> &Options {
            self.options()
        }

        fn batch(&self) -> Batch {
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

        fn append_unsynced(&self, batch: &Batch) -> Result<u64> {
            self.append_unsynced(batch)
        }
    };
}

impl Deeds for Book {
    same!();

    fn walk(&self, range: Range, on_corrupt: OnCorrupt) -> Result<Box<dyn Walk>> {
        AnyLog::walk(self, range, on_corrupt)
    }

    fn walk_back(&self, range: Range) -> Result<Box<dyn Walk>> {
        AnyLog::walk_back(self, range)
    }

    fn batches(&self, py: Python<'_>, range: Range, how: How) -> PyResult<Box<dyn Batches>> {
        AnyLog::batches(self, py, range, how)
    }
}

impl Deeds for Pier {
    same!();

    fn walk(&self, (start, stop): Range, on_corrupt: OnCorrupt) -> Result<Box<dyn Walk>> {
        Ok(Box::new(self.cursor(start.unwrap_or(0), stop, on_corrupt)?))
    }

    fn walk_back(&self, (start, stop): Range) -> Result<Box<dyn Walk>> {
        Ok(Box::new(self.cursor_back(start.unwrap_or(0), stop)?))
    }

    fn batches(
        &self,
        py: Python<'_>,
        (start, stop): Range,
        how: How,
    ) -> PyResult<Box<dyn Batches>> {
        let columns = columns(py, how.columns, &book::Column::DEFAULT)?;
        let cursor = py.detach(|| self.cursor(start.unwrap_or(0), stop, how.on_corrupt));
        let epochs = cursor.or_raise(py)?.into_epochs().map(|cursor| {
            let cursor = if how.check { cursor } else { cursor.without_checksums() };
            book::Batches::new(cursor, columns.clone(), how.rows, how.bytes)
        });
        let schema = book::Column::schema(&columns);
        Ok(Box::new(Epochs { left: epochs.collect(), damages: Vec::new(), done: 0, schema }))
    }
}

/// The batches of one epoch after the other.
struct Epochs {
    /// The first one is being read.
    left: VecDeque<book::Batches>,
    damages: Vec<Damage>,
    /// Of `damages`, those of epochs that were read.
    done: usize,
    schema: SchemaRef,
}

impl Iterator for Epochs {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        while let Some(batches) = self.left.front_mut() {
            let batch = Iterator::next(batches);
            self.damages.truncate(self.done);
            self.damages.extend_from_slice(batches.damages());
            if batch.as_ref().is_some_and(Result::is_err) {
                // The next epoch would leave a gap after the error.
                self.left.clear();
            }
            if batch.is_some() {
                return batch;
            }
            self.done = self.damages.len();
            self.left.pop_front();
        }
        None
    }
}

impl Batches for Epochs {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn damages(&self) -> &[Damage] {
        &self.damages
    }
}
