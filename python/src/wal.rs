//! The class `Wal`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Mutex;

use deedbook::wal::{
    self, Archive, Batches, Layout, Lsn, Mode, OnCorrupt, Options, Retention, Wal,
};
use deedbook::{Columns, Repair};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::arguments::{self, numbers, seconds};
use crate::batches::{BATCH_BYTES, BATCH_ROWS, BatchStream, checks, on_corrupt, stream_of};
use crate::errors::{OrRaise, invalid};
use crate::handle::{Held, Owner, check_format, found, number_in};
use crate::input;
use crate::payload::{Limit, bytes_of, each};
use crate::progress::Progress;
use crate::reports::PyRepairReport;
use crate::wal_iterators::{BackRecords, FollowRecords, PayloadIterator, PyRecord, RecordIterator};
use crate::wal_reports::{PyRecovery, PySalvage, PyStats, PyVerify, PyWalSplit, columns};

#[pyclass(frozen, name = "Wal", module = "deedbook")]
pub struct PyWal {
    wal: Held<Wal>,
    owner: Owner,
}

impl Drop for PyWal {
    fn drop(&mut self) {
        self.owner.warn_unclosed("Wal", self.wal.path(), self.wal.is_closed());
    }
}

fn layout(segment_bytes: Option<u64>, single_file: bool) -> deedbook::Result<Option<Layout>> {
    match (segment_bytes, single_file) {
        (Some(_), true) => Err(deedbook::Error::new(
            deedbook::ErrorKind::InvalidArgument,
            "segment_bytes beside single_file: a single file has no segments",
        )),
        (Some(segment_bytes), false) => Ok(Some(Layout::Segmented { segment_bytes })),
        (None, true) => Ok(Some(Layout::Single)),
        (None, false) => Ok(None),
    }
}

/// A function of Python as the archive hook; what it raises is the cause of the failure.
fn archive(callback: Py<PyAny>) -> Archive {
    Archive::new(move |index, path| {
        Python::attach(|py| callback.call1(py, (index, path)).map(drop))
            .map_err(std::io::Error::other)
    })
}

impl PyWal {
    fn limit(&self) -> Limit {
        Limit { format: "wal", noun: "record", bytes_max: self.wal.record_bytes_max() }
    }

    fn cursor(
        &self,
        py: Python<'_>,
        start: Option<u64>,
        stop: Option<u64>,
        on_corrupt: OnCorrupt,
    ) -> PyResult<wal::Cursor> {
        py.detach(|| self.wal.cursor(start.map(Lsn), stop.map(Lsn), on_corrupt)).or_raise(py)
    }

    fn back(&self, py: Python<'_>, start: Option<u64>, stop: Option<u64>) -> PyResult<BackRecords> {
        let cursor = py.detach(|| self.wal.cursor_back(start.map(Lsn), stop.map(Lsn)));
        Ok(BackRecords(Mutex::new(cursor.or_raise(py)?)))
    }
}

#[pymethods]
impl PyWal {
    #[staticmethod]
    #[pyo3(signature = (path, mode="r", *, durability="manual", recovery="valid",
                        segment_bytes=None, single_file=false, record_bytes_max=None,
                        slow_sync=1.0, archive=None, file_mode=0o600))]
    #[allow(clippy::too_many_arguments)]
    fn open(
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::path)] path: PathBuf,
        mode: &str,
        durability: &str,
        recovery: &str,
        #[pyo3(from_py_with = numbers::segment_bytes)] segment_bytes: Option<u64>,
        single_file: bool,
        #[pyo3(from_py_with = numbers::record_bytes_max)] record_bytes_max: Option<u64>,
        slow_sync: f64,
        archive: Option<Py<PyAny>>,
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
            layout: layout(segment_bytes, single_file).or_raise(py)?,
            record_bytes_max,
            slow_sync: seconds(py, "slow_sync", slow_sync)?,
            archive: archive.map(self::archive),
            file_mode,
            ..Options::default()
        };
        check_format(py, &path, "wal")?;
        let wal = py.detach(|| options.open(&path, mode)).or_raise(py)?;
        Ok(Self { wal: Held::new(wal), owner: Owner::this_process() })
    }

    #[staticmethod]
    #[pyo3(signature = (path, *, durability="manual", segment_bytes=None, single_file=false,
                        record_bytes_max=None, slow_sync=1.0, archive=None, file_mode=0o600))]
    #[allow(clippy::too_many_arguments)]
    fn create(
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::path)] path: PathBuf,
        durability: &str,
        #[pyo3(from_py_with = numbers::segment_bytes)] segment_bytes: Option<u64>,
        single_file: bool,
        #[pyo3(from_py_with = numbers::record_bytes_max)] record_bytes_max: Option<u64>,
        slow_sync: f64,
        archive: Option<Py<PyAny>>,
        #[pyo3(from_py_with = numbers::file_mode)] file_mode: u32,
    ) -> PyResult<Self> {
        Self::open(
            py,
            path,
            "x",
            durability,
            "valid",
            segment_bytes,
            single_file,
            record_bytes_max,
            slow_sync,
            archive,
            file_mode,
        )
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.wal.close()).or_raise(py)
    }

    fn __enter__(slf: Py<Self>, py: Python<'_>) -> PyResult<Py<Self>> {
        slf.get().end(py)?; // an error if it is closed
        Ok(slf)
    }

    fn __bool__(&self) -> bool {
        !self.wal.is_closed()
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
        self.wal.path().into()
    }

    #[getter]
    fn mode(&self) -> &'static str {
        match self.wal.mode() {
            Mode::Read => "r",
            Mode::Append => "a",
            Mode::Create => "x",
        }
    }

    #[getter]
    fn closed(&self) -> bool {
        self.wal.is_closed()
    }

    #[getter]
    fn layout(&self) -> &'static str {
        self.wal.layout().name()
    }

    #[getter]
    fn segment_bytes(&self) -> Option<u64> {
        self.wal.layout().segment_bytes()
    }

    #[getter]
    fn record_bytes_max(&self) -> u64 {
        self.wal.record_bytes_max()
    }

    #[getter]
    fn segment_paths(&self, py: Python<'_>) -> PyResult<Vec<OsString>> {
        let paths = py.detach(|| self.wal.segment_paths()).or_raise(py)?;
        Ok(paths.into_iter().map(PathBuf::into_os_string).collect())
    }

    #[getter]
    fn durability(&self) -> String {
        self.wal.options().durability.to_string()
    }

    #[getter]
    fn bounds(&self, py: Python<'_>) -> PyResult<Option<(u64, u64)>> {
        let bounds = py.detach(|| self.wal.bounds()).or_raise(py)?;
        Ok(bounds.map(|(first, last)| (first.0, last.0)))
    }

    #[getter]
    fn head(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(py.detach(|| self.wal.head()).or_raise(py)?.0)
    }

    #[getter]
    fn end(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(py.detach(|| self.wal.end()).or_raise(py)?.0)
    }

    #[getter]
    fn durable_end(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        Ok(py.detach(|| self.wal.durable_end()).or_raise(py)?.map(|lsn| lsn.0))
    }

    #[getter]
    fn recovery(&self) -> PyRecovery {
        PyRecovery(self.wal.recovery().clone())
    }

    fn append(&self, py: Python<'_>, payload: &Bound<'_, PyAny>) -> PyResult<u64> {
        let payload = bytes_of(payload, self.limit())?;
        let payload = payload.as_ref();
        Ok(py.detach(|| self.wal.append(payload)).or_raise(py)?.0)
    }

    fn commit(&self, py: Python<'_>, payload: &Bound<'_, PyAny>) -> PyResult<u64> {
        let payload = bytes_of(payload, self.limit())?;
        let payload = payload.as_ref();
        Ok(py.detach(|| self.wal.commit(payload)).or_raise(py)?.0)
    }

    fn append_unsynced(&self, py: Python<'_>, payload: &Bound<'_, PyAny>) -> PyResult<u64> {
        let mut batch = wal::Batch::new(self.wal.record_bytes_max());
        batch.push(bytes_of(payload, self.limit())?.as_ref()).or_raise(py)?;
        Ok(py.detach(|| self.wal.append_unsynced(&batch)).or_raise(py)?.0)
    }

    fn append_many(&self, payloads: &Bound<'_, PyAny>) -> PyResult<(u64, u64)> {
        input::append_records(&self.wal, self.limit(), payloads)
    }

    fn append_batch(&self, py: Python<'_>, payloads: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
        let mut batch = wal::Batch::new(self.wal.record_bytes_max());
        let mut lsns = Vec::new();
        each(payloads, |payload| {
            let payload = bytes_of(payload, self.limit())?;
            lsns.push(batch.push(payload.as_ref()).or_raise(py)?);
            Ok(payload.as_ref().len())
        })?;
        let Lsn(first) = py.detach(|| self.wal.append_batch(&batch)).or_raise(py)?;
        lsns.iter_mut().for_each(|lsn| *lsn += first);
        Ok(lsns)
    }

    fn append_atomic(&self, py: Python<'_>, parts: &Bound<'_, PyAny>) -> PyResult<u64> {
        let mut owned = Vec::new();
        each(parts, |part| {
            let part = bytes_of(part, self.limit())?.as_ref().to_vec();
            let len = part.len();
            owned.push(part);
            Ok(len)
        })?;
        Ok(py.detach(|| self.wal.append_atomic(&owned)).or_raise(py)?.0)
    }

    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.wal.sync()).or_raise(py)
    }

    fn wait_durable(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::lsn)] lsn: u64,
    ) -> PyResult<()> {
        py.detach(|| self.wal.wait_durable(Lsn(lsn))).or_raise(py)
    }

    fn refresh(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(py.detach(|| self.wal.refresh()).or_raise(py)?.0)
    }

    fn read(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::lsn)] lsn: u64,
    ) -> PyResult<PyRecord> {
        let record = py.detach(|| self.wal.read(Lsn(lsn))).or_raise(py)?;
        Ok(PyRecord::build(py, record.lsn.0, &record.payload))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(py.detach(|| self.wal.len()).or_raise(py)? as usize)
    }

    fn __contains__(&self, py: Python<'_>, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        let record = item.cast::<PyRecord>().ok();
        let lsn = match record {
            Some(record) => Some(record.get().lsn),
            None => number_in(item, "an LSN or a Record")?,
        };
        let Some(lsn) = lsn else {
            return Ok(false);
        };
        let there = found(py, py.detach(|| self.wal.read(Lsn(lsn))))?;
        Ok(there.is_some_and(|there| {
            record.is_none_or(|record| record.get().holds(py, &there.payload))
        }))
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<RecordIterator> {
        Ok(RecordIterator(Mutex::new(self.cursor(py, None, None, OnCorrupt::Raise)?)))
    }

    fn __reversed__(&self, py: Python<'_>) -> PyResult<BackRecords> {
        self.back(py, None, None)
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
        match (reverse, on_corrupt) {
            (false, _) => {
                let cursor = self.cursor(py, start, stop, on_corrupt)?;
                Ok(Bound::new(py, RecordIterator(Mutex::new(cursor)))?.into_any())
            }
            (true, OnCorrupt::Skip) => {
                Err(invalid(py, "damage can be skipped only forwards".into()))
            }
            (true, OnCorrupt::Raise) => Ok(Bound::new(py, self.back(py, start, stop)?)?.into_any()),
        }
    }

    #[pyo3(signature = (start=None, stop=None))]
    fn payloads(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::start)] start: Option<u64>,
        #[pyo3(from_py_with = numbers::stop)] stop: Option<u64>,
    ) -> PyResult<PayloadIterator> {
        Ok(PayloadIterator(Mutex::new(self.cursor(py, start, stop, OnCorrupt::Raise)?)))
    }

    #[pyo3(signature = (start=None, *, timeout=None))]
    fn follow(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::start)] start: Option<u64>,
        timeout: Option<f64>,
    ) -> PyResult<FollowRecords> {
        let timeout = timeout.map(|timeout| seconds(py, "timeout", timeout)).transpose()?;
        let follow = py.detach(|| self.wal.follow(start.map(Lsn))).or_raise(py)?;
        Ok(FollowRecords { follow: Mutex::new(follow), timeout })
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
    ) -> PyResult<Vec<PyWalSplit>> {
        let splits = py.detach(|| self.wal.splits(split_bytes, start.map(Lsn), stop.map(Lsn)));
        Ok(splits.or_raise(py)?.into_iter().map(PyWalSplit).collect())
    }

    #[pyo3(signature = (lsn, *, force=false))]
    fn truncate_before(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::lsn)] lsn: u64,
        force: bool,
    ) -> PyResult<()> {
        py.detach(|| match force {
            false => self.wal.truncate_before(Lsn(lsn)),
            true => self.wal.truncate_before_all(Lsn(lsn)),
        })
        .or_raise(py)
    }

    fn truncate_after(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::lsn)] lsn: u64,
    ) -> PyResult<()> {
        py.detach(|| self.wal.truncate_after(Lsn(lsn))).or_raise(py)
    }

    fn truncate_from(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::lsn)] lsn: u64,
    ) -> PyResult<()> {
        py.detach(|| self.wal.truncate_from(Lsn(lsn))).or_raise(py)
    }

    #[pyo3(signature = (*, max_bytes=None, max_age=None, consumed=false))]
    fn retain(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::max_bytes)] max_bytes: Option<u64>,
        max_age: Option<f64>,
        consumed: bool,
    ) -> PyResult<Option<u64>> {
        let age_max = max_age.map(|age| seconds(py, "max_age", age)).transpose()?;
        let retention = Retention { bytes_max: max_bytes, age_max, consumed };
        let head = py.detach(|| self.wal.retain(&retention)).or_raise(py)?;
        Ok(head.map(|lsn| lsn.0))
    }

    fn consumers(&self, py: Python<'_>) -> PyResult<BTreeMap<String, u64>> {
        let consumers = py.detach(|| self.wal.consumers()).or_raise(py)?;
        Ok(consumers.into_iter().map(|(name, lsn)| (name, lsn.0)).collect())
    }

    fn set_consumer(
        &self,
        py: Python<'_>,
        name: &str,
        #[pyo3(from_py_with = numbers::lsn)] lsn: u64,
    ) -> PyResult<()> {
        py.detach(|| self.wal.set_consumer(name, Lsn(lsn))).or_raise(py)
    }

    fn remove_consumer(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        py.detach(|| self.wal.remove_consumer(name)).or_raise(py)
    }

    fn stats(&self, py: Python<'_>) -> PyResult<PyStats> {
        Ok(PyStats(py.detach(|| self.wal.stats()).or_raise(py)?))
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let cursor = self.cursor(py, None, None, OnCorrupt::Raise)?;
        let columns = wal::Column::DEFAULT.to_vec();
        stream_of(py, Batches::new(cursor, columns, BATCH_ROWS, BATCH_BYTES), requested_schema)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        crate::batches::schema_of(py, &wal::Column::schema(&wal::Column::DEFAULT))
    }

    #[staticmethod]
    #[pyo3(signature = (path, *, segment_bytes=None, record_bytes_max=None, progress=None))]
    fn verify(
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::path)] path: PathBuf,
        #[pyo3(from_py_with = numbers::segment_bytes)] segment_bytes: Option<u64>,
        #[pyo3(from_py_with = numbers::record_bytes_max)] record_bytes_max: Option<u64>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<PyVerify> {
        check_format(py, &path, "wal")?;
        let layout = layout(segment_bytes, false).or_raise(py)?;
        let options = Options { layout, record_bytes_max, ..Options::default() };
        let report = Progress::run(py, progress, |progress| {
            wal::verify(&path, &options, |done, total| progress.call(done, total))
        });
        report.map(PyVerify)
    }

    #[staticmethod]
    #[pyo3(signature = (path, *, force=false, dry_run=false, accept_loss=false,
                        segment_bytes=None, record_bytes_max=None))]
    #[allow(clippy::too_many_arguments)]
    fn repair(
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::path)] path: PathBuf,
        force: bool,
        dry_run: bool,
        accept_loss: bool,
        #[pyo3(from_py_with = numbers::segment_bytes)] segment_bytes: Option<u64>,
        #[pyo3(from_py_with = numbers::record_bytes_max)] record_bytes_max: Option<u64>,
    ) -> PyResult<PyRepairReport> {
        check_format(py, &path, "wal")?;
        let layout = layout(segment_bytes, false).or_raise(py)?;
        let options = Options { layout, record_bytes_max, ..Options::default() };
        let how = Repair { force, dry_run, accept_loss };
        py.detach(|| wal::repair(&path, &options, how)).or_raise(py).map(PyRepairReport)
    }

    #[staticmethod]
    #[pyo3(signature = (source, target, *, segment_bytes=None, record_bytes_max=None,
                        progress=None))]
    fn salvage(
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::path)] source: PathBuf,
        #[pyo3(from_py_with = arguments::path)] target: PathBuf,
        #[pyo3(from_py_with = numbers::segment_bytes)] segment_bytes: Option<u64>,
        #[pyo3(from_py_with = numbers::record_bytes_max)] record_bytes_max: Option<u64>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<PySalvage> {
        check_format(py, &source, "wal")?;
        let layout = layout(segment_bytes, false).or_raise(py)?;
        let options = Options { layout, record_bytes_max, ..Options::default() };
        let report = Progress::run(py, progress, |progress| {
            wal::salvage(&source, &target, &options, |done, total| progress.call(done, total))
        });
        report.map(PySalvage)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let state = match py.detach(|| (self.wal.head(), self.wal.end())) {
            (Ok(head), Ok(end)) => format!("bytes {head} to {end}"),
            _ => self.owner.absent(),
        };
        format!("<deedbook.Wal {:?}, {state}, mode {:?}>", self.wal.path(), self.mode())
    }
}
