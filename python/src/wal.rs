//! The class `Wal`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use deedbook::report::Repair;
use deedbook::wal::{Cut, Layout, Lsn, Options, Record, Wal, WalFormat, head_bytes, pack};
use deedbook::{Batch, Durability, LockTimeout, Retention};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PySlice};

use crate::append::in_parts::{PyPayloadParts, append_file};
use crate::append::input;
use crate::append::payload::{Limit, bytes_of, each};
use crate::append::positions::{PyPositions, Range};
use crate::common::arguments::{self, numbers, seconds};
use crate::common::detect::check_format;
use crate::common::errors::OrRaise;
use crate::common::fs_path::FsPath;
use crate::common::handle::{Held, found, number_in};
use crate::common::progress::Progress;
use crate::common::reports::{PyDropped, PyRepairReport, PySalvageReport, PyVerifyReport};
use crate::log::PyLog;
use crate::log::any_log::{AnyLog, Format};
use crate::log::range::{RecordRange, bounds_of};
use crate::log::record::PyRecord;
use crate::log::split::{PySplit, of_format};

#[doc = doc!("Wal")]
#[pyclass(frozen, extends = PyLog, name = "Wal", module = "deedbook")]
pub struct PyWal {
    wal: Held<Wal>,
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

/// Options for work on a log as a whole, which Ctrl-C ends.
fn reading(segment_bytes: Option<u64>, record_bytes_max: Option<u64>) -> deedbook::Result<Options> {
    let layout = layout(segment_bytes, false)?;
    let lock_timeout = arguments::interruptible(LockTimeout::default());
    let options = Options::new().layout(layout).record_bytes_max(record_bytes_max);
    Ok(options.lock_timeout(lock_timeout))
}

impl PyWal {
    fn limit(&self) -> Limit {
        Limit { format: "wal", noun: "record", bytes_max: self.wal.record_bytes_max() }
    }

    /// All payloads in a single record.
    fn append_packed(&self, parts: &Bound<'_, PyAny>) -> PyResult<PyPositions> {
        let (py, mut owned) = (parts.py(), Vec::new());
        each(parts, |part| {
            let part = bytes_of(part, self.limit())?.as_ref().to_vec();
            let len = part.len();
            owned.push(part);
            Ok(len)
        })?;
        if owned.is_empty() {
            let Lsn(end) = py.detach(|| self.wal.end()).or_raise(py)?;
            return Ok(PyPositions(Range::Sparse { first: end, last: end, end, records: 0 }));
        }
        let packed = pack(&owned).or_raise(py)?;
        let lsn = py.detach(|| self.wal.append(&packed)).or_raise(py)?;
        let Lsn(end) = Record { lsn, payload: &packed }.next_lsn();
        let first = lsn.0;
        Ok(PyPositions(Range::Sparse { first, last: first, end, records: 1 }))
    }

    fn truncate(&self, py: Python<'_>, cut: Cut, dry_run: bool) -> PyResult<PyDropped> {
        let dropped = py.detach(|| match cut {
            cut if dry_run => self.wal.would_drop(cut),
            Cut::Before(lsn) => self.wal.truncate_before(lsn),
            Cut::BeforeAll(lsn) => self.wal.truncate_before_all(lsn),
            Cut::After(lsn) => self.wal.truncate_after(lsn),
            Cut::From(lsn) => self.wal.truncate_from(lsn),
        });
        Ok(PyDropped::from(&dropped.or_raise(py)?))
    }
}

#[pymethods]
impl PyWal {
    #[doc = doc!("Wal".open)]
    #[staticmethod]
    #[pyo3(signature = (path, mode="r", *, durability=None, recovery="valid",
                        segment_bytes=None, single_file=false, record_bytes_max=None,
                        slow_sync=1.0, lock_timeout=0.0, check="end", archive=None, retain_bytes=None, retain_age=None,
                        retain_consumers=false, file_mode=0o600))]
    #[allow(clippy::too_many_arguments)]
    fn open(
        py: Python<'_>,
        #[pyo3(from_py_with = crate::common::fs_path::path)] path: PathBuf,
        mode: &str,
        #[pyo3(from_py_with = crate::common::durability::durability)] durability: Option<
            Durability,
        >,
        recovery: &str,
        #[pyo3(from_py_with = numbers::segment_bytes)] segment_bytes: Option<u64>,
        single_file: bool,
        #[pyo3(from_py_with = numbers::record_bytes_max)] record_bytes_max: Option<u64>,
        slow_sync: f64,
        lock_timeout: f64,
        check: &str,
        archive: Option<Py<PyAny>>,
        #[pyo3(from_py_with = numbers::retain_bytes)] retain_bytes: Option<u64>,
        retain_age: Option<f64>,
        retain_consumers: bool,
        #[pyo3(from_py_with = numbers::file_mode)] file_mode: u32,
    ) -> PyResult<Py<Self>> {
        let mode = crate::log::mode(py, mode)?;
        let age = ("retain_age", retain_age);
        let retention = arguments::retention(py, retain_bytes, age, retain_consumers)?;
        let options = Options::new()
            .durability(durability.unwrap_or(Options::default().durability))
            .recovery(recovery.parse().or_raise(py)?)
            .layout(layout(segment_bytes, single_file).or_raise(py)?)
            .record_bytes_max(record_bytes_max)
            .slow_sync(seconds(py, "slow_sync", slow_sync)?)
            .lock_timeout(arguments::lock_timeout(py, lock_timeout)?)
            .check_all(arguments::check_all(py, check)?)
            .retention((retention != Retention::default()).then_some(retention))
            .file_mode(file_mode);
        let options = match archive {
            Some(callback) => options.archive(arguments::archive(callback)),
            None => options,
        };
        check_format(py, &path, "wal")?;
        let wal = py.detach(|| options.open(&path, mode)).or_raise(py)?;
        let class = PyClassInitializer::from(PyLog::new(wal.clone()));
        Py::new(py, class.add_subclass(Self { wal: Held::new(wal) }))
    }

    #[doc = doc!("Wal".create)]
    #[staticmethod]
    #[pyo3(signature = (path, *, durability=None, segment_bytes=None, single_file=false,
                        record_bytes_max=None, slow_sync=1.0, archive=None, retain_bytes=None,
                        retain_age=None, retain_consumers=false, file_mode=0o600))]
    #[allow(clippy::too_many_arguments)]
    fn create(
        py: Python<'_>,
        #[pyo3(from_py_with = crate::common::fs_path::path)] path: PathBuf,
        #[pyo3(from_py_with = crate::common::durability::durability)] durability: Option<
            Durability,
        >,
        #[pyo3(from_py_with = numbers::segment_bytes)] segment_bytes: Option<u64>,
        single_file: bool,
        #[pyo3(from_py_with = numbers::record_bytes_max)] record_bytes_max: Option<u64>,
        slow_sync: f64,
        archive: Option<Py<PyAny>>,
        #[pyo3(from_py_with = numbers::retain_bytes)] retain_bytes: Option<u64>,
        retain_age: Option<f64>,
        retain_consumers: bool,
        #[pyo3(from_py_with = numbers::file_mode)] file_mode: u32,
    ) -> PyResult<Py<Self>> {
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
            0.0,
            "end",
            archive,
            retain_bytes,
            retain_age,
            retain_consumers,
            file_mode,
        )
    }

    #[doc = doc!("Wal".segment_bytes)]
    #[getter]
    fn segment_bytes(&self) -> Option<u64> {
        self.wal.layout().segment_bytes()
    }

    #[doc = doc!("Wal".record_bytes_max)]
    #[getter]
    fn record_bytes_max(&self) -> u64 {
        self.wal.record_bytes_max()
    }

    #[doc = doc!("Wal".segment_paths)]
    #[getter]
    fn segment_paths(&self, py: Python<'_>) -> PyResult<Vec<FsPath>> {
        let paths = py.detach(|| self.wal.segment_paths()).or_raise(py)?;
        Ok(paths.into_iter().map(FsPath::from).collect())
    }

    #[doc = doc!("Wal".head)]
    #[getter]
    fn head(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(py.detach(|| self.wal.head()).or_raise(py)?.0)
    }

    #[doc = doc!("Wal".append)]
    #[pyo3(signature = (payload, *, sync=true))]
    fn append(&self, py: Python<'_>, payload: &Bound<'_, PyAny>, sync: bool) -> PyResult<u64> {
        let payload = bytes_of(payload, self.limit())?;
        if !sync {
            let mut batch = Batch::<WalFormat>::new(self.wal.record_bytes_max());
            batch.push(payload.as_ref()).or_raise(py)?;
            return Ok(py.detach(|| self.wal.append_unsynced(&batch)).or_raise(py)?.0);
        }
        let payload = payload.as_ref();
        Ok(py.detach(|| self.wal.append(payload)).or_raise(py)?.0)
    }

    #[doc = doc!("Wal".commit)]
    fn commit(&self, py: Python<'_>, payload: &Bound<'_, PyAny>) -> PyResult<u64> {
        let payload = bytes_of(payload, self.limit())?;
        let payload = payload.as_ref();
        Ok(py.detach(|| self.wal.commit(payload)).or_raise(py)?.0)
    }

    #[doc = doc!("Wal".append_from)]
    #[pyo3(signature = (file, size=None))]
    fn append_from(
        &self,
        file: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = numbers::size)] size: Option<u64>,
    ) -> PyResult<u64> {
        append_file(file, size, |size, file| self.wal.append_from(size, file).map(|lsn| lsn.0))
    }

    #[doc = doc!("Wal".reader)]
    fn reader<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = numbers::lsn)] lsn: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let reader = py.detach(|| self.wal.payload_reader(Lsn(lsn))).or_raise(py)?;
        PyPayloadParts::of_payload(py, reader)
    }

    #[doc = doc!("Wal".append_many)]
    #[pyo3(signature = (payloads, *, atomic=false))]
    fn append_many(&self, payloads: &Bound<'_, PyAny>, atomic: bool) -> PyResult<PyPositions> {
        match atomic {
            true => self.append_packed(payloads),
            false => input::append_records(&self.wal, self.limit(), payloads),
        }
    }

    #[doc = doc!("Wal".read)]
    fn read(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::lsn)] lsn: u64,
    ) -> PyResult<PyRecord> {
        let record = py.detach(|| self.wal.read(Lsn(lsn))).or_raise(py)?;
        Ok(PyRecord::build(py, record.lsn.0, &record.payload))
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Ok(slice) = key.cast::<PySlice>() else {
            return Ok(Bound::new(py, self.read(py, numbers::lsn(key)?)?)?.into_any());
        };
        let (start, stop) = bounds_of(slice)?;
        let range = (
            start.map(|start| numbers::start(&start)).transpose()?,
            stop.map(|stop| numbers::stop(&stop)).transpose()?,
        );
        let log: Box<dyn AnyLog> = Box::new((*self.wal).clone());
        Ok(Bound::new(py, RecordRange::of_log(log, range))?.into_any())
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

    #[doc = doc!("Wal".truncate_before)]
    #[pyo3(signature = (lsn, *, force=false, dry_run=false))]
    fn truncate_before(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::lsn)] lsn: u64,
        force: bool,
        dry_run: bool,
    ) -> PyResult<PyDropped> {
        let cut = if force { Cut::BeforeAll(Lsn(lsn)) } else { Cut::Before(Lsn(lsn)) };
        self.truncate(py, cut, dry_run)
    }

    #[doc = doc!("Wal".truncate_after)]
    #[pyo3(signature = (lsn, *, dry_run=false))]
    fn truncate_after(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::lsn)] lsn: u64,
        dry_run: bool,
    ) -> PyResult<PyDropped> {
        self.truncate(py, Cut::After(Lsn(lsn)), dry_run)
    }

    #[doc = doc!("Wal".truncate_from)]
    #[pyo3(signature = (lsn, *, dry_run=false))]
    fn truncate_from(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::lsn)] lsn: u64,
        dry_run: bool,
    ) -> PyResult<PyDropped> {
        self.truncate(py, Cut::From(Lsn(lsn)), dry_run)
    }

    #[doc = doc!("Wal".retain)]
    #[pyo3(signature = (*, max_bytes=None, max_age=None, consumed=false, dry_run=false))]
    fn retain(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::max_bytes)] max_bytes: Option<u64>,
        max_age: Option<f64>,
        consumed: bool,
        dry_run: bool,
    ) -> PyResult<PyDropped> {
        let retention = arguments::retention(py, max_bytes, ("max_age", max_age), consumed)?;
        let ask = if dry_run { Wal::retainable } else { Wal::retain };
        let dropped = py.detach(|| ask(&self.wal, &retention)).or_raise(py)?;
        Ok(PyDropped::from(&dropped))
    }

    #[doc = doc!("Wal".consumers)]
    fn consumers(&self, py: Python<'_>) -> PyResult<BTreeMap<String, u64>> {
        let consumers = py.detach(|| self.wal.consumers()).or_raise(py)?;
        Ok(consumers.into_iter().map(|(name, lsn)| (name, lsn.0)).collect())
    }

    #[doc = doc!("Wal".set_consumer)]
    fn set_consumer(
        &self,
        py: Python<'_>,
        name: &str,
        #[pyo3(from_py_with = numbers::lsn)] lsn: u64,
    ) -> PyResult<()> {
        py.detach(|| self.wal.set_consumer(name, Lsn(lsn))).or_raise(py)
    }

    #[doc = doc!("Wal".remove_consumer)]
    fn remove_consumer(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        py.detach(|| self.wal.remove_consumer(name)).or_raise(py)
    }

    #[doc = doc!("Wal".verify)]
    #[staticmethod]
    #[pyo3(signature = (path, *, segment_bytes=None, record_bytes_max=None, intact=None,
                        progress=None))]
    fn verify(
        py: Python<'_>,
        #[pyo3(from_py_with = crate::common::fs_path::path)] path: PathBuf,
        #[pyo3(from_py_with = numbers::segment_bytes)] segment_bytes: Option<u64>,
        #[pyo3(from_py_with = numbers::record_bytes_max)] record_bytes_max: Option<u64>,
        intact: Option<Vec<PyRef<'_, PySplit>>>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<PyVerifyReport> {
        check_format(py, &path, "wal")?;
        let options = reading(segment_bytes, record_bytes_max).or_raise(py)?;
        let intact = of_format(py, intact, Format::Wal)?;
        let report = Progress::run(py, progress, |progress| {
            let step = |done, total| progress.call(done, total);
            options.verify_rest(&path, &intact, step)
        });
        report.map(|report| (&report).into())
    }

    #[doc = doc!("Wal".repair)]
    #[staticmethod]
    #[pyo3(signature = (path, *, force=false, dry_run=false, accept_loss=false,
                        segment_bytes=None, record_bytes_max=None))]
    #[allow(clippy::too_many_arguments)]
    fn repair(
        py: Python<'_>,
        #[pyo3(from_py_with = crate::common::fs_path::path)] path: PathBuf,
        force: bool,
        dry_run: bool,
        accept_loss: bool,
        #[pyo3(from_py_with = numbers::segment_bytes)] segment_bytes: Option<u64>,
        #[pyo3(from_py_with = numbers::record_bytes_max)] record_bytes_max: Option<u64>,
    ) -> PyResult<PyRepairReport> {
        check_format(py, &path, "wal")?;
        let options = reading(segment_bytes, record_bytes_max).or_raise(py)?;
        let how = Repair { force, dry_run, accept_loss };
        py.detach(|| options.repair(&path, how)).or_raise(py).map(|report| (&report).into())
    }

    #[doc = doc!("Wal".salvage)]
    #[staticmethod]
    #[pyo3(signature = (path, to, *, segment_bytes=None, record_bytes_max=None, progress=None))]
    fn salvage(
        py: Python<'_>,
        #[pyo3(from_py_with = crate::common::fs_path::path)] path: PathBuf,
        #[pyo3(from_py_with = crate::common::fs_path::path)] to: PathBuf,
        #[pyo3(from_py_with = numbers::segment_bytes)] segment_bytes: Option<u64>,
        #[pyo3(from_py_with = numbers::record_bytes_max)] record_bytes_max: Option<u64>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<PySalvageReport> {
        check_format(py, &path, "wal")?;
        let options = reading(segment_bytes, record_bytes_max).or_raise(py)?;
        let report = Progress::run(py, progress, |progress| {
            options.salvage_with(&path, &to, |done, total| progress.call(done, total))
        });
        report.map(|report| (&report).into())
    }
}

#[doc = doc!("_wal_head")]
#[pyfunction]
#[pyo3(signature = (lsn, /))]
pub fn _wal_head(py: Python<'_>, lsn: u64) -> Bound<'_, PyBytes> {
    PyBytes::new(py, &head_bytes(lsn))
}
