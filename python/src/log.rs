//! The class `Log`: what every log has, whatever its format.

use std::ffi::OsString;
use std::path::Path;

use arrow_schema::SchemaRef;
use deedbook::book::{self, Book};
use deedbook::wal::{self, Lsn, Wal};
use deedbook::{Bookmark, Columns, Mode, OnCorrupt, Reach, RecoveryReport, Result, Split, Stats};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyGenericAlias, PyType};

use crate::arguments::{numbers, seconds};
use crate::batches::{
    BATCH_BYTES, BATCH_ROWS, BatchStream, Batches, checks, columns, on_corrupt, schema_of,
    stream_of,
};
use crate::bookmark::PyBookmark;
use crate::errors::{OrRaise, invalid};
use crate::handle::{Held, Owner, left};
use crate::iterators::{FollowIterator, PayloadIterator, RecordIterator, Wait, Walk};
use crate::reports::{PyRecoveryReport, PyStats};
use crate::split::PySplit;
use crate::transaction::{PyTransactions, Transacts};

// The signatures below show these numbers, because `help()` and the stub cannot show names.
const _: () = assert!(BATCH_ROWS == 65_536 && BATCH_BYTES == 2_097_152);

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

    fn class(self) -> &'static str {
        match self {
            Self::Book => "Book",
            Self::Wal => "Wal",
            Self::Ledger => "LedgerSnapshot",
            Self::Nostr => "EventStore",
        }
    }

    pub fn by_name(py: Python<'_>, name: &str) -> PyResult<Self> {
        let known = [Self::Book, Self::Wal, Self::Ledger, Self::Nostr];
        let named = known.into_iter().find(|format| format.name() == name);
        let names = "\"book\", \"wal\", \"ledger\", \"nostr\"";
        named.ok_or_else(|| invalid(py, format!("format {name:?}, known are {names}")))
    }
}

/// Where a walk begins and ends, by what records are found by in the format.
type Range = (Option<u64>, Option<u64>);

/// A log of any format. Positions are what its records are found by: event numbers, or LSNs.
pub trait AnyLog: Send + Sync {
    fn format(&self) -> Format;
    fn path(&self) -> &Path;
    fn mode(&self) -> Mode;
    fn layout(&self) -> &'static str;
    fn durability(&self) -> String;
    fn recovery(&self) -> &RecoveryReport;
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
    /// What `repr` says of an open log.
    fn state(&self) -> Result<String>;
    fn walk(&self, range: Range, on_corrupt: OnCorrupt) -> Result<Box<dyn Walk>>;
    fn walk_back(&self, range: Range) -> Result<Box<dyn Walk>>;
    fn follow(&self, start: Option<u64>) -> Result<Box<dyn Wait>>;
    fn splits(&self, split_bytes: u64, range: Range) -> Result<Vec<Split>>;
    fn bookmark(&self, position: Option<u64>) -> Result<Bookmark>;
    fn advance(&self, from: &Bookmark, reach: &Reach) -> Result<Bookmark>;
    fn splits_between(&self, bytes: u64, from: &Bookmark, to: &Bookmark) -> Result<Vec<Split>>;
    fn transacts(&self) -> Box<dyn Transacts>;
    fn schema(&self) -> SchemaRef;
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

/// What the core's logs of all formats have under the same names.
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

        fn durability(&self) -> String {
            self.options().durability.to_string()
        }

        fn recovery(&self) -> &RecoveryReport {
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
        Ok(Box::new(self.cursor(start.unwrap_or(0), stop, on_corrupt)?))
    }

    fn walk_back(&self, (start, stop): Range) -> Result<Box<dyn Walk>> {
        Ok(Box::new(self.cursor_back(start.unwrap_or(0), stop)?))
    }

    fn follow(&self, start: Option<u64>) -> Result<Box<dyn Wait>> {
        Ok(Box::new(self.follow(start)?))
    }

    fn splits(&self, split_bytes: u64, (start, stop): Range) -> Result<Vec<Split>> {
        self.splits(split_bytes, start.unwrap_or(0), stop)
    }

    fn bookmark(&self, event: Option<u64>) -> Result<Bookmark> {
        event.map_or_else(|| self.bookmark(), |event| self.bookmark_at(event))
    }

    fn schema(&self) -> SchemaRef {
        book::Column::schema(&book::Column::DEFAULT)
    }

    fn batches(
        &self,
        py: Python<'_>,
        (start, stop): Range,
        how: How,
    ) -> PyResult<Box<dyn Batches>> {
        let columns = columns(py, how.columns, &book::Column::DEFAULT)?;
        let start = start.unwrap_or(0);
        let cursor = py.detach(|| self.cursor(start, stop, how.on_corrupt)).or_raise(py)?;
        let cursor = if how.check { cursor } else { cursor.without_checksums() };
        Ok(Box::new(book::Batches::new(cursor, columns, how.rows, how.bytes)))
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
        Ok(Box::new(self.cursor(start.map(Lsn), stop.map(Lsn), on_corrupt)?))
    }

    fn walk_back(&self, (start, stop): Range) -> Result<Box<dyn Walk>> {
        Ok(Box::new(self.cursor_back(start.map(Lsn), stop.map(Lsn))?))
    }

    fn follow(&self, start: Option<u64>) -> Result<Box<dyn Wait>> {
        Ok(Box::new(self.follow(start.map(Lsn))?))
    }

    fn splits(&self, split_bytes: u64, (start, stop): Range) -> Result<Vec<Split>> {
        self.splits(split_bytes, start.map(Lsn), stop.map(Lsn))
    }

    fn bookmark(&self, lsn: Option<u64>) -> Result<Bookmark> {
        lsn.map_or_else(|| self.bookmark(), |lsn| self.bookmark_at(Lsn(lsn)))
    }

    fn schema(&self) -> SchemaRef {
        wal::Column::schema(&wal::Column::DEFAULT)
    }

    fn batches(
        &self,
        py: Python<'_>,
        (start, stop): Range,
        how: How,
    ) -> PyResult<Box<dyn Batches>> {
        let columns = columns(py, how.columns, &wal::Column::DEFAULT)?;
        let (start, stop) = (start.map(Lsn), stop.map(Lsn));
        let cursor = py.detach(|| self.cursor(start, stop, how.on_corrupt)).or_raise(py)?;
        let cursor = if how.check { cursor } else { cursor.without_checksums() };
        Ok(Box::new(wal::Batches::new(cursor, columns, how.rows, how.bytes)))
    }
}

/// The mode by its letter.
pub fn mode(py: Python<'_>, letter: &str) -> PyResult<Mode> {
    match letter {
        "r" => Ok(Mode::Read),
        "a" => Ok(Mode::Append),
        "x" => Ok(Mode::Create),
        _ => Err(invalid(py, format!("mode {letter:?}, known are \"r\", \"a\", \"x\""))),
    }
}

#[pyclass(frozen, subclass, name = "Log", module = "deedbook")]
pub struct PyLog {
    log: Held<Box<dyn AnyLog>>,
    owner: Owner,
}

impl PyLog {
    pub fn new(log: impl AnyLog + 'static) -> Self {
        Self { log: Held::new(Box::new(log)), owner: Owner::this_process() }
    }
}

impl Drop for PyLog {
    fn drop(&mut self) {
        let class = self.log.format().class();
        self.owner.warn_unclosed(class, self.log.path(), self.log.is_closed());
    }
}

#[pymethods]
impl PyLog {
    #[classmethod]
    #[pyo3(signature = (item, /))]
    fn __class_getitem__<'py>(
        class: &Bound<'py, PyType>,
        item: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyGenericAlias>> {
        PyGenericAlias::new(class.py(), class, item)
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.log.close()).or_raise(py)
    }

    fn __enter__(slf: Py<Self>, py: Python<'_>) -> PyResult<Py<Self>> {
        slf.get().end(py)?; // an error if it is closed
        Ok(slf)
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        exc_type: &Bound<'_, PyAny>,
        _exc_value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        left(exc_type, self.close(py))
    }

    fn __bool__(&self) -> bool {
        !self.log.is_closed()
    }

    #[getter]
    fn path(&self) -> OsString {
        self.log.path().into()
    }

    #[getter]
    fn mode(&self) -> &'static str {
        match self.log.mode() {
            Mode::Read => "r",
            Mode::Append => "a",
            Mode::Create => "x",
        }
    }

    #[getter]
    fn closed(&self) -> bool {
        self.log.is_closed()
    }

    #[getter]
    fn layout(&self) -> &'static str {
        self.log.layout()
    }

    #[getter]
    fn durability(&self) -> String {
        self.log.durability()
    }

    #[getter]
    fn recovery(&self) -> PyRecoveryReport {
        self.log.recovery().into()
    }

    #[getter]
    fn bounds(&self, py: Python<'_>) -> PyResult<Option<(u64, u64)>> {
        py.detach(|| self.log.bounds()).or_raise(py)
    }

    #[getter]
    fn end(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| self.log.end()).or_raise(py)
    }

    #[getter]
    fn durable_end(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        py.detach(|| self.log.durable_end()).or_raise(py)
    }

    #[getter]
    fn transactions(&self) -> PyTransactions {
        PyTransactions::of(self.log.transacts())
    }

    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.log.sync()).or_raise(py)
    }

    #[pyo3(signature = (position, /))]
    fn wait_durable(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::position)] position: u64,
    ) -> PyResult<()> {
        py.detach(|| self.log.wait_durable(position)).or_raise(py)
    }

    fn refresh(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| self.log.refresh()).or_raise(py)
    }

    fn stats(&self, py: Python<'_>) -> PyResult<PyStats> {
        Ok((&py.detach(|| self.log.stats()).or_raise(py)?).into())
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(py.detach(|| self.log.len()).or_raise(py)? as usize)
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<RecordIterator> {
        self.iter(py, None, None, false, "raise")
    }

    fn __reversed__(&self, py: Python<'_>) -> PyResult<RecordIterator> {
        self.iter(py, None, None, true, "raise")
    }

    #[pyo3(signature = (start=None, stop=None, *, reverse=false, on_corrupt="raise"))]
    fn iter(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::start)] start: Option<u64>,
        #[pyo3(from_py_with = numbers::stop)] stop: Option<u64>,
        reverse: bool,
        on_corrupt: &str,
    ) -> PyResult<RecordIterator> {
        let on_corrupt = self::on_corrupt(py, on_corrupt)?;
        if reverse && on_corrupt == OnCorrupt::Skip {
            return Err(invalid(py, "damage can be skipped only forwards".into()));
        }
        let walk = py.detach(|| match reverse {
            true => self.log.walk_back((start, stop)),
            false => self.log.walk((start, stop), on_corrupt),
        });
        Ok(RecordIterator::new(walk.or_raise(py)?))
    }

    #[pyo3(signature = (start=None, stop=None))]
    fn payloads(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::start)] start: Option<u64>,
        #[pyo3(from_py_with = numbers::stop)] stop: Option<u64>,
    ) -> PyResult<PayloadIterator> {
        let walk = py.detach(|| self.log.walk((start, stop), OnCorrupt::Raise));
        Ok(PayloadIterator::new(walk.or_raise(py)?))
    }

    #[pyo3(signature = (start=None, *, timeout=None))]
    fn follow(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::start)] start: Option<u64>,
        timeout: Option<f64>,
    ) -> PyResult<FollowIterator> {
        let timeout = timeout.map(|timeout| seconds(py, "timeout", timeout)).transpose()?;
        let follow = py.detach(|| self.log.follow(start)).or_raise(py)?;
        Ok(FollowIterator::new(follow, timeout))
    }

    #[pyo3(signature = (start=None, stop=None, *, columns=None, batch_rows=65536,
                        batch_bytes=2097152, on_corrupt="raise", verify="crc"))]
    #[allow(clippy::too_many_arguments)]
    fn batches(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::start)] start: Option<u64>,
        #[pyo3(from_py_with = numbers::stop)] stop: Option<u64>,
        columns: Option<Vec<String>>,
        #[pyo3(from_py_with = numbers::batch_rows)] batch_rows: usize,
        #[pyo3(from_py_with = numbers::batch_bytes)] batch_bytes: usize,
        on_corrupt: &str,
        verify: &str,
    ) -> PyResult<BatchStream> {
        let on_corrupt = self::on_corrupt(py, on_corrupt)?;
        let check = checks(py, verify)?;
        let how = How { columns, rows: batch_rows, bytes: batch_bytes, on_corrupt, check };
        Ok(BatchStream::new(self.log.batches(py, (start, stop), how)?))
    }

    #[pyo3(signature = (split_bytes=67108864, start=None, stop=None))]
    fn splits(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::split_bytes)] split_bytes: u64,
        #[pyo3(from_py_with = numbers::start)] start: Option<u64>,
        #[pyo3(from_py_with = numbers::stop)] stop: Option<u64>,
    ) -> PyResult<Vec<PySplit>> {
        let format = self.log.format();
        let splits = py.detach(|| self.log.splits(split_bytes, (start, stop))).or_raise(py)?;
        Ok(splits.into_iter().map(|split| PySplit { format, split }).collect())
    }

    #[pyo3(signature = (position=None, /))]
    fn bookmark(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::position)] position: Option<u64>,
    ) -> PyResult<PyBookmark> {
        py.detach(|| self.log.bookmark(position)).or_raise(py).map(PyBookmark::from)
    }

    #[pyo3(signature = (bookmark, /, *, to=None, records=None, bytes=None, durable=true))]
    fn advance(
        &self,
        py: Python<'_>,
        bookmark: &PyBookmark,
        to: Option<&PyBookmark>,
        #[pyo3(from_py_with = numbers::records)] records: Option<u64>,
        #[pyo3(from_py_with = numbers::bytes)] bytes: Option<u64>,
        durable: bool,
    ) -> PyResult<PyBookmark> {
        let reach = Reach { to: to.map(|to| to.bookmark), records, bytes, durable };
        let advanced = py.detach(|| self.log.advance(&bookmark.bookmark, &reach));
        advanced.or_raise(py).map(PyBookmark::from)
    }

    #[pyo3(signature = (start, stop, /, split_bytes=67108864))]
    fn splits_between(
        &self,
        py: Python<'_>,
        start: &PyBookmark,
        stop: &PyBookmark,
        #[pyo3(from_py_with = numbers::split_bytes)] split_bytes: u64,
    ) -> PyResult<Vec<PySplit>> {
        let (format, (start, stop)) = (self.log.format(), (&start.bookmark, &stop.bookmark));
        let splits =
            py.detach(|| self.log.splits_between(split_bytes, start, stop)).or_raise(py)?;
        Ok(splits.into_iter().map(|split| PySplit { format, split }).collect())
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        stream_of(py, self.log.batches(py, (None, None), How::default())?, requested_schema)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_of(py, &self.log.schema())
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let state = py.detach(|| self.log.state()).unwrap_or_else(|_| self.owner.absent());
        let class = self.log.format().class();
        format!("<deedbook.{class} {:?}, {state}, mode {:?}>", self.log.path(), self.mode())
    }
}
