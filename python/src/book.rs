//! The class `Book`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Mutex;

use deedbook::book::{self, Batches, Book, Meta, Mode, OnCorrupt, Options};
use deedbook::{Columns, Repair};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyRange, PySlice};

use crate::arguments::{self, numbers, seconds};
use crate::batches::{
    BATCH_BYTES, BATCH_ROWS, BatchStream, PySplit, checks, columns, on_corrupt, schema_of,
    stream_of,
};
use crate::deed::{PyDeed, PyMeta};
use crate::errors::{OrRaise, invalid};
use crate::handle::{Held, Owner, check_format, found, number_in};
use crate::input;
use crate::iterators::{BackIterator, DeedIterator, FollowIterator, JamIterator};
use crate::payload::{Limit, bytes_of};
use crate::progress::Progress;
use crate::range::{DeedRange, event_of};
use crate::reports::{PyRecoveryReport, PyRepairReport, PySalvageReport, PyVerifyReport};

// The signatures below show these numbers, because `help()` and the stub cannot show names.
const _: () = assert!(book::DEED_BYTES_MAX == 4_294_967_296);
const _: () = assert!(BATCH_ROWS == 65_536 && BATCH_BYTES == 2_097_152);

#[pyclass(frozen, name = "Book", module = "deedbook")]
pub struct PyBook {
    book: Held<Book>,
    owner: Owner,
}

impl Drop for PyBook {
    fn drop(&mut self) {
        self.owner.warn_unclosed("Book", self.book.path(), self.book.is_closed());
    }
}

fn range_object(py: Python<'_>, first: u64, behind: u64) -> PyResult<Bound<'_, PyAny>> {
    match (isize::try_from(first), isize::try_from(behind)) {
        (Ok(first), Ok(behind)) => Ok(PyRange::new(py, first, behind)?.into_any()),
        _ => py.import("builtins")?.getattr("range")?.call1((first, behind)),
    }
}

impl PyBook {
    fn limit(&self) -> Limit {
        Limit { format: "book", noun: "deed", bytes_max: self.book.options().deed_bytes_max }
    }

    fn cursor(
        &self,
        py: Python<'_>,
        start: Option<u64>,
        stop: Option<u64>,
        on_corrupt: OnCorrupt,
    ) -> PyResult<book::Cursor> {
        py.detach(|| self.book.cursor(start.unwrap_or(0), stop, on_corrupt)).or_raise(py)
    }
}

#[pymethods]
impl PyBook {
    #[staticmethod]
    #[pyo3(signature = (path, mode="r", *, durability="always", recovery="valid", epoch=None,
                        deed_bytes_max=4294967296, file_mode=0o644))]
    #[allow(clippy::too_many_arguments)]
    fn open(
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::path)] path: PathBuf,
        mode: &str,
        durability: &str,
        recovery: &str,
        #[pyo3(from_py_with = numbers::epoch)] epoch: Option<u64>,
        #[pyo3(from_py_with = numbers::deed_bytes_max)] deed_bytes_max: u64,
        #[pyo3(from_py_with = numbers::file_mode)] file_mode: u32,
    ) -> PyResult<Self> {
        let mode = match mode {
            "r" => Mode::Read,
            "a" => Mode::Append,
            "x" => Mode::Create,
            _ => return Err(invalid(py, format!("mode {mode:?}, known are \"r\", \"a\", \"x\""))),
        };
        let options = Options {
            durability: durability.parse().or_raise(py)?,
            recovery: recovery.parse().or_raise(py)?,
            epoch,
            deed_bytes_max,
            file_mode,
            ..Options::default()
        };
        check_format(py, &path, "book")?;
        let book = py.detach(|| options.open(&path, mode)).or_raise(py)?;
        Ok(Self { book: Held::new(book), owner: Owner::this_process() })
    }

    #[staticmethod]
    #[pyo3(signature = (path, *, durability="always", epoch=None, deed_bytes_max=4294967296,
                        file_mode=0o644))]
    fn create(
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::path)] path: PathBuf,
        durability: &str,
        #[pyo3(from_py_with = numbers::epoch)] epoch: Option<u64>,
        #[pyo3(from_py_with = numbers::deed_bytes_max)] deed_bytes_max: u64,
        #[pyo3(from_py_with = numbers::file_mode)] file_mode: u32,
    ) -> PyResult<Self> {
        Self::open(py, path, "x", durability, "valid", epoch, deed_bytes_max, file_mode)
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.book.close()).or_raise(py)
    }

    fn __enter__(slf: Py<Self>, py: Python<'_>) -> PyResult<Py<Self>> {
        slf.get().end(py)?; // an error if it is closed
        Ok(slf)
    }

    fn __bool__(&self) -> bool {
        !self.book.is_closed()
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        exc_type: &Bound<'_, PyAny>,
        _exc_value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        match self.close(py) {
            // What is being raised tells more than what follows from it.
            Err(_) if !exc_type.is_none() => Ok(()),
            closed => closed,
        }
    }

    #[getter]
    fn path(&self) -> OsString {
        self.book.path().into()
    }

    #[getter]
    fn mode(&self) -> &'static str {
        match self.book.mode() {
            Mode::Read => "r",
            Mode::Append => "a",
            Mode::Create => "x",
        }
    }

    #[getter]
    fn closed(&self) -> bool {
        self.book.is_closed()
    }

    #[getter]
    fn layout(&self) -> &'static str {
        self.book.layout().name()
    }

    #[getter]
    fn durability(&self) -> String {
        self.book.options().durability.to_string()
    }

    #[getter]
    fn bounds(&self, py: Python<'_>) -> PyResult<Option<(u64, u64)>> {
        let bounds = py.detach(|| self.book.bounds()).or_raise(py)?;
        Ok(bounds.map(|bounds| (*bounds.start(), *bounds.end())))
    }

    #[getter]
    fn epoch(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| self.book.epoch()).or_raise(py)
    }

    #[getter]
    fn last(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| self.book.last()).or_raise(py)
    }

    #[getter]
    fn durable_last(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        py.detach(|| self.book.durable_last()).or_raise(py)
    }

    #[getter]
    fn end(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| self.book.end()).or_raise(py)
    }

    #[getter]
    fn recovery(&self) -> PyRecoveryReport {
        PyRecoveryReport(self.book.recovery().clone())
    }

    #[pyo3(signature = (jam, mug=0))]
    fn append(
        &self,
        py: Python<'_>,
        jam: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = numbers::mug)] mug: u32,
    ) -> PyResult<u64> {
        let jam = bytes_of(jam, self.limit())?;
        let jam = jam.as_ref();
        py.detach(|| self.book.append(mug, jam)).or_raise(py)
    }

    #[pyo3(signature = (jam, mug=0))]
    fn commit(
        &self,
        py: Python<'_>,
        jam: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = numbers::mug)] mug: u32,
    ) -> PyResult<u64> {
        let jam = bytes_of(jam, self.limit())?;
        let jam = jam.as_ref();
        py.detach(|| self.book.commit(mug, jam)).or_raise(py)
    }

    #[pyo3(signature = (jam, mug=0))]
    fn append_unsynced(&self, py: Python<'_>, jam: &Bound<'_, PyAny>, mug: u32) -> PyResult<u64> {
        let mut batch = book::Batch::new(self.book.options().deed_bytes_max);
        batch.push(mug, bytes_of(jam, self.limit())?.as_ref()).or_raise(py)?;
        py.detach(|| self.book.append_unsynced(&batch)).or_raise(py)
    }

    #[pyo3(signature = (jams, mugs=None))]
    fn append_many<'py>(
        &self,
        py: Python<'py>,
        jams: &Bound<'py, PyAny>,
        mugs: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (first, behind) = input::append_many(&self.book, self.limit(), jams, mugs)?;
        range_object(py, first, behind)
    }

    #[pyo3(signature = (jams, mugs=None, *, event=None, epoch=None))]
    fn append_batch<'py>(
        &self,
        py: Python<'py>,
        jams: &Bound<'py, PyAny>,
        mugs: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = numbers::event)] event: Option<u64>,
        #[pyo3(from_py_with = numbers::epoch)] epoch: Option<u64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let batch = input::collect(jams, mugs, self.limit())?;
        let first = py.detach(|| self.book.append_batch(&batch, event, epoch)).or_raise(py)?;
        range_object(py, first, first + batch.len())
    }

    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.book.sync()).or_raise(py)
    }

    fn refresh(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| self.book.refresh()).or_raise(py)
    }

    fn read(&self, py: Python<'_>, event: i128) -> PyResult<PyDeed> {
        // No log has an event 0, so that stands for what is below, as the last u64 for what is above.
        let event = event.clamp(0, u64::MAX.into()) as u64;
        let deed = py.detach(|| self.book.read(event)).or_raise(py)?;
        Ok(PyDeed::build(py, deed.event, deed.mug, &deed.jam))
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(slice) = key.cast::<PySlice>() {
            return Ok(Bound::new(py, DeedRange::new(py, &self.book, slice)?)?.into_any());
        }
        let event = event_of(py, &self.book, key.extract()?)?;
        Ok(Bound::new(py, self.read(py, event.into())?)?.into_any())
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(py.detach(|| self.book.len()).or_raise(py)? as usize)
    }

    fn __contains__(&self, py: Python<'_>, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        if let Ok(deed) = item.cast::<PyDeed>() {
            let Some(event) = deed.get().event else {
                return Ok(false);
            };
            let there = found(py, py.detach(|| self.book.read(event)))?;
            return Ok(there.is_some_and(|there| deed.get().holds(py, there.mug, &there.jam)));
        }
        let event = number_in(item, "an event number or a Deed")?;
        let bounds = py.detach(|| self.book.bounds()).or_raise(py)?;
        Ok(event.zip(bounds).is_some_and(|(event, bounds)| bounds.contains(&event)))
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<DeedIterator> {
        Ok(DeedIterator(Mutex::new(self.cursor(py, None, None, OnCorrupt::Raise)?)))
    }

    fn __reversed__(&self, py: Python<'_>) -> PyResult<BackIterator> {
        let cursor = py.detach(|| self.book.cursor_back(0, None)).or_raise(py)?;
        Ok(BackIterator(Mutex::new(cursor)))
    }

    #[pyo3(signature = (start=None, stop=None, *, reverse=false, on_corrupt="raise"))]
    fn iter<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = numbers::start)] start: Option<u64>,
        #[pyo3(from_py_with = numbers::stop)] stop: Option<u64>,
        reverse: bool,
        on_corrupt: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let on_corrupt = self::on_corrupt(py, on_corrupt)?;
        if !reverse {
            let cursor = self.cursor(py, start, stop, on_corrupt)?;
            return Ok(Bound::new(py, DeedIterator(Mutex::new(cursor)))?.into_any());
        }
        if on_corrupt == OnCorrupt::Skip {
            return Err(invalid(py, "damage can be skipped only forwards".into()));
        }
        let cursor = py.detach(|| self.book.cursor_back(start.unwrap_or(0), stop)).or_raise(py)?;
        Ok(Bound::new(py, BackIterator(Mutex::new(cursor)))?.into_any())
    }

    #[pyo3(signature = (start=None, stop=None))]
    fn jams(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::start)] start: Option<u64>,
        #[pyo3(from_py_with = numbers::stop)] stop: Option<u64>,
    ) -> PyResult<JamIterator> {
        Ok(JamIterator(Mutex::new(self.cursor(py, start, stop, OnCorrupt::Raise)?)))
    }

    #[pyo3(signature = (start=None, *, timeout=None))]
    fn follow(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::start)] start: Option<u64>,
        timeout: Option<f64>,
    ) -> PyResult<FollowIterator> {
        let timeout = timeout.map(|timeout| seconds(py, "timeout", timeout)).transpose()?;
        let follow = py.detach(|| self.book.follow(start)).or_raise(py)?;
        Ok(FollowIterator { follow: Mutex::new(follow), timeout })
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
        let columns = self::columns(py, columns)?;
        let mut cursor = self.cursor(py, start, stop, self::on_corrupt(py, on_corrupt)?)?;
        if !checks(py, verify)? {
            cursor = cursor.without_checksums();
        }
        Ok(BatchStream::new(Batches::new(cursor, columns, batch_rows, batch_bytes)))
    }

    #[pyo3(signature = (split_bytes=67108864, start=None, stop=None))]
    fn splits(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::split_bytes)] split_bytes: u64,
        #[pyo3(from_py_with = numbers::start)] start: Option<u64>,
        #[pyo3(from_py_with = numbers::stop)] stop: Option<u64>,
    ) -> PyResult<Vec<PySplit>> {
        let splits = py.detach(|| self.book.splits(split_bytes, start.unwrap_or(0), stop));
        Ok(splits.or_raise(py)?.into_iter().map(PySplit).collect())
    }

    #[getter]
    fn meta(&self, py: Python<'_>) -> PyResult<PyMeta> {
        Ok(py.detach(|| self.book.meta()).or_raise(py)?.into())
    }

    #[pyo3(signature = (*, who=None, version=None, life=None, fake=None))]
    fn save_meta(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::who)] who: Option<u128>,
        #[pyo3(from_py_with = numbers::version)] version: Option<u32>,
        #[pyo3(from_py_with = numbers::life)] life: Option<u32>,
        fake: Option<bool>,
    ) -> PyResult<()> {
        let meta = Meta { who, version, life, fake };
        py.detach(|| self.book.save_meta(&meta)).or_raise(py)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let cursor = self.cursor(py, None, None, OnCorrupt::Raise)?;
        let columns = book::Column::DEFAULT.to_vec();
        stream_of(py, Batches::new(cursor, columns, BATCH_ROWS, BATCH_BYTES), requested_schema)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_of(py, &book::Column::schema(&book::Column::DEFAULT))
    }

    #[staticmethod]
    #[pyo3(signature = (path, *, deed_bytes_max=4294967296, progress=None))]
    fn verify(
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::path)] path: PathBuf,
        #[pyo3(from_py_with = numbers::deed_bytes_max)] deed_bytes_max: u64,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<PyVerifyReport> {
        check_format(py, &path, "book")?;
        let options = Options { deed_bytes_max, ..Options::default() };
        let report = Progress::run(py, progress, |progress| {
            book::verify(&path, &options, |done, total| progress.call(done, total))
        });
        report.map(PyVerifyReport)
    }

    #[staticmethod]
    #[pyo3(signature = (path, *, force=false, dry_run=false, accept_loss=false,
                        deed_bytes_max=4294967296))]
    fn repair(
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::path)] path: PathBuf,
        force: bool,
        dry_run: bool,
        accept_loss: bool,
        #[pyo3(from_py_with = numbers::deed_bytes_max)] deed_bytes_max: u64,
    ) -> PyResult<PyRepairReport> {
        check_format(py, &path, "book")?;
        let options = Options { deed_bytes_max, ..Options::default() };
        let how = Repair { force, dry_run, accept_loss };
        py.detach(|| book::repair(&path, &options, how)).or_raise(py).map(PyRepairReport)
    }

    #[staticmethod]
    #[pyo3(signature = (source, target, *, deed_bytes_max=4294967296, progress=None))]
    fn salvage(
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::path)] source: PathBuf,
        #[pyo3(from_py_with = arguments::path)] target: PathBuf,
        #[pyo3(from_py_with = numbers::deed_bytes_max)] deed_bytes_max: u64,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<PySalvageReport> {
        check_format(py, &source, "book")?;
        let options = Options { deed_bytes_max, ..Options::default() };
        let report = Progress::run(py, progress, |progress| {
            book::salvage(&source, &target, &options, |done, total| progress.call(done, total))
        });
        report.map(PySalvageReport)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let state = match py.detach(|| self.book.bounds()) {
            Ok(Some(bounds)) => format!("events {} to {}", bounds.start(), bounds.end()),
            Ok(None) => "empty".into(),
            Err(_) => self.owner.absent(),
        };
        format!("<deedbook.Book {:?}, {state}, mode {:?}>", self.book.path(), self.mode())
    }
}
