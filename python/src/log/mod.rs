//! The class `Log`: the common methods of logs of all formats.

pub mod any_log;
pub mod batches;
pub mod bookmark;
pub mod iterators;
pub mod range;
pub mod record;
pub mod split;

use deedbook::jobs::Reach;
use deedbook::{Mode, OnCorrupt};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyGenericAlias, PyType};

use crate::append::transaction::PyTransactions;
use crate::common::arguments::{numbers, seconds};
use crate::common::durability;
use crate::common::errors::{OrRaise, invalid};
use crate::common::fs_path::FsPath;
use crate::common::handle::{Held, Owner, left};
use crate::common::reports::{PyRecoveryReport, PyStats};
use crate::log::any_log::{AnyLog, How};
use crate::log::batches::{
    BATCH_BYTES, BATCH_ROWS, BatchStream, checks, on_corrupt, schema_of, stream_of,
};
use crate::log::bookmark::PyBookmark;
use crate::log::iterators::{FollowIterator, PayloadIterator, RecordIterator};
use crate::log::split::PySplit;

// The signatures below show these numbers, because `help()` and the stub cannot show names.
const _: () = assert!(BATCH_ROWS == 65_536 && BATCH_BYTES == 2_097_152);

/// The mode by its letter.
pub fn mode(py: Python<'_>, letter: &str) -> PyResult<Mode> {
    match letter {
        "r" => Ok(Mode::Read),
        "a" => Ok(Mode::Append),
        "x" => Ok(Mode::Create),
        _ => Err(invalid(py, format!("mode {letter:?}, must be one of \"r\", \"a\", \"x\""))),
    }
}

/// The letter of a mode.
pub fn letter(mode: Mode) -> &'static str {
    match mode {
        Mode::Read => "r",
        Mode::Append => "a",
        Mode::Create => "x",
        _ => "?", // `mode` gives no other
    }
}

#[doc = doc!("Log")]
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

    #[doc = doc!("Log".close)]
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.log.close()).or_raise(py)
    }

    #[doc = doc!("Log".__enter__)]
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

    #[doc = doc!("Log".path)]
    #[getter]
    fn path(&self) -> FsPath {
        self.log.path().into()
    }

    #[doc = doc!("Log".mode)]
    #[getter]
    fn mode(&self) -> &'static str {
        letter(self.log.mode())
    }

    #[doc = doc!("Log".closed)]
    #[getter]
    fn closed(&self) -> bool {
        self.log.is_closed()
    }

    #[doc = doc!("Log".layout)]
    #[getter]
    fn layout(&self) -> &'static str {
        self.log.layout()
    }

    #[doc = doc!("Log".durability)]
    #[getter]
    fn durability<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        durability::shown(py, self.log.durability())
    }

    #[doc = doc!("Log".recovery)]
    #[getter]
    fn recovery(&self) -> PyRecoveryReport {
        self.log.recovery().into()
    }

    #[doc = doc!("Log".bounds)]
    #[getter]
    fn bounds(&self, py: Python<'_>) -> PyResult<Option<(u64, u64)>> {
        py.detach(|| self.log.bounds()).or_raise(py)
    }

    #[doc = doc!("Log".end)]
    #[getter]
    fn end(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| self.log.end()).or_raise(py)
    }

    #[doc = doc!("Log".durable_end)]
    #[getter]
    fn durable_end(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        py.detach(|| self.log.durable_end()).or_raise(py)
    }

    #[doc = doc!("Log".transactions)]
    #[getter]
    fn transactions(&self) -> PyTransactions {
        PyTransactions::of(self.log.transacts())
    }

    #[doc = doc!("Log".sync)]
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.log.sync()).or_raise(py)
    }

    #[doc = doc!("Log".wait_durable)]
    #[pyo3(signature = (position, /))]
    fn wait_durable(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::position)] position: u64,
    ) -> PyResult<()> {
        py.detach(|| self.log.wait_durable(position)).or_raise(py)
    }

    #[doc = doc!("Log".refresh)]
    fn refresh(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| self.log.refresh()).or_raise(py)
    }

    #[doc = doc!("Log".stats)]
    fn stats(&self, py: Python<'_>) -> PyResult<PyStats> {
        Ok((&py.detach(|| self.log.stats()).or_raise(py)?).into())
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(py.detach(|| self.log.len()).or_raise(py)? as usize)
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<RecordIterator> {
        self.iter(py, None, None, false, "raise")
    }

    #[doc = doc!("Log".__reversed__)]
    fn __reversed__(&self, py: Python<'_>) -> PyResult<RecordIterator> {
        self.iter(py, None, None, true, "raise")
    }

    #[doc = doc!("Log".iter)]
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

    #[doc = doc!("Log".payloads)]
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

    #[doc = doc!("Log".follow)]
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

    #[doc = doc!("Log".batches)]
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

    #[doc = doc!("Log".splits)]
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

    #[doc = doc!("Log".bookmark)]
    #[pyo3(signature = (position=None, /))]
    fn bookmark(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::position)] position: Option<u64>,
    ) -> PyResult<PyBookmark> {
        py.detach(|| self.log.bookmark(position)).or_raise(py).map(PyBookmark::from)
    }

    #[doc = doc!("Log".advance)]
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

    #[doc = doc!("Log".splits_between)]
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

    #[doc = doc!("Log".__arrow_c_stream__)]
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        stream_of(py, self.log.batches(py, (None, None), How::default())?, requested_schema)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_of(py, &*self.log.schema().or_raise(py)?)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let state = py.detach(|| self.log.state()).unwrap_or_else(|_| self.owner.absent());
        let durability = durability::in_repr(py, self.log.durability());
        let (class, path, mode) = (self.log.format().class(), self.log.path(), self.mode());
        format!("<deedbook.{class} {path:?}, {state}, mode {mode:?}, durability {durability}>")
    }
}
