//! The class `Ledger`: events kept in files until sent. `contents` reads the files.

pub mod batches;
pub mod contents;
pub mod file;
pub mod follow;
pub mod json_lines;
pub mod mend;
pub mod open;
pub mod removable;
pub mod side;

use std::cell::RefCell;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::path::PathBuf;

use deedbook::ledger::{self, LedgerConfig, Migration, Options};
use deedbook::report::Repair;
use deedbook::{Durability, Mode, OnCorrupt};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PySlice};

use crate::append::payload::bytes_of;
use crate::append::positions::{self, PyLedgerPosition, PyPositions, position_of};
use crate::append::spool;
use crate::append::transaction::PyTransactions;
use crate::common::arguments::{numbers, seconds};
use crate::common::durability;
use crate::common::errors::OrRaise;
use crate::common::fs_path::FsPath;
use crate::common::handle::{Held, Owner, left};
use crate::common::progress::Progress;
use crate::common::reports::{
    PyLedgerFileInfo, PyLedgerFileMigration, PyLedgerStats, PyVerifyReport,
};
use crate::ledger::batches::Asked;
use crate::ledger::contents::{Reader, Slice, Span};
use crate::ledger::file::PyLedgerFile;
use crate::ledger::follow::Following;
use crate::ledger::mend::{Ledger, PyLedgerRepair, PyLedgerReport, PyLedgerSalvage};
use crate::ledger::open::around;
use crate::ledger::removable::PyRemovable;
use crate::ledger::side::Side;
use crate::log::any_log::Format;
use crate::log::batches::{BATCH_BYTES, BATCH_ROWS, BatchStream, on_corrupt, schema_of, stream_of};
use crate::log::iterators::{FollowIterator, PayloadIterator, RecordIterator};
use crate::log::range::{RecordRange, bounds_of};
use crate::log::split::{PySplit, of_format};

// The signatures below show this number, because `help()` and the stub cannot show names.
const _: () = assert!(ledger::Options::RECORD_BYTES_MAX == 1_048_576);

thread_local! {
    /// The exception of a function for the header or the footer in this thread's fetch.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

fn removables(items: &Bound<'_, PyAny>, call: &str) -> PyResult<Vec<ledger::Removable>> {
    let mut removable = Vec::new();
    for item in items.try_iter()? {
        let item = item?;
        let Ok(one) = item.cast::<PyRemovable>() else {
            let class = item.get_type().name()?.to_string();
            let message = format!("{call} takes what fetch gave as removable, not {class:?}");
            return Err(PyTypeError::new_err(message));
        };
        removable.push(one.get().0);
    }
    Ok(removable)
}

#[doc = doc!("Ledger")]
#[pyclass(frozen, name = "Ledger", module = "deedbook")]
pub struct PyLedger {
    side: Side,
    mode: Mode,
    owner: Owner,
    /// A number of this handle alone.
    token: u64,
}

impl Drop for PyLedger {
    fn drop(&mut self) {
        // A reader holds nothing.
        if let Side::Writer(store) = &self.side {
            self.owner.warn_unclosed("Ledger", store.path(), store.is_closed());
        }
    }
}

#[pymethods]
impl PyLedger {
    #[doc = doc!("Ledger".open)]
    #[staticmethod]
    #[pyo3(signature = (path, mode="r", *, base=None, header=None, footer=None, separator=None,
                        batch_bytes=475_000, batch_records=None, record_bytes_max=1_048_576,
                        max_bytes=None, on_full="reject", durability=None,
                        on_corrupt="quarantine", slow_sync=1.0, file_mode=0o600))]
    #[allow(clippy::too_many_arguments)]
    fn open(
        py: Python<'_>,
        #[pyo3(from_py_with = crate::common::fs_path::path)] path: PathBuf,
        mode: &str,
        base: Option<String>,
        header: Option<&Bound<'_, PyAny>>,
        footer: Option<&Bound<'_, PyAny>>,
        separator: Option<Vec<u8>>,
        #[pyo3(from_py_with = numbers::batch_bytes)] batch_bytes: usize,
        #[pyo3(from_py_with = numbers::batch_records)] batch_records: Option<u64>,
        #[pyo3(from_py_with = numbers::record_bytes_max)] record_bytes_max: u64,
        #[pyo3(from_py_with = numbers::max_bytes)] max_bytes: Option<u64>,
        on_full: &str,
        #[pyo3(from_py_with = durability::durability)] durability: Option<Durability>,
        on_corrupt: &str,
        slow_sync: f64,
        #[pyo3(from_py_with = numbers::file_mode)] file_mode: u32,
    ) -> PyResult<Self> {
        let mode = crate::log::mode(py, mode)?;
        let options = Options::new()
            .durability(durability.unwrap_or(Options::default().durability))
            .on_corrupt(on_corrupt.parse().or_raise(py)?)
            .file_records_max(batch_records)
            .bytes_total_max(max_bytes)
            .when_full(on_full.parse().or_raise(py)?)
            .record_bytes_max(record_bytes_max)
            .file_mode(file_mode)
            .slow_sync(seconds(py, "slow_sync", slow_sync)?);
        let (header, footer) = (around(header, "header", b"[")?, around(footer, "footer", b"]")?);
        let config = |storage_location, base_filename| LedgerConfig {
            storage_location,
            base_filename,
            max_file_size: batch_bytes,
            header,
            footer,
            separator: separator.unwrap_or_else(|| b",".to_vec()),
        };
        let side = py.detach(|| match mode {
            Mode::Read => Reader::open(&path, base.as_deref(), config, &options).map(Side::Reader),
            mode => {
                open::append(mode, &path, base, config, &options).map(Held::new).map(Side::Writer)
            }
        });
        let token = RandomState::new().hash_one(std::process::id());
        Ok(Self { side: side.or_raise(py)?, mode, owner: Owner::this_process(), token })
    }

    #[doc = doc!("Ledger".create)]
    #[staticmethod]
    #[pyo3(signature = (path, *, base=None, header=None, footer=None, separator=None,
                        batch_bytes=475_000, batch_records=None, record_bytes_max=1_048_576,
                        max_bytes=None, on_full="reject", durability=None,
                        on_corrupt="quarantine", slow_sync=1.0, file_mode=0o600))]
    #[allow(clippy::too_many_arguments)]
    fn create(
        py: Python<'_>,
        #[pyo3(from_py_with = crate::common::fs_path::path)] path: PathBuf,
        base: Option<String>,
        header: Option<&Bound<'_, PyAny>>,
        footer: Option<&Bound<'_, PyAny>>,
        separator: Option<Vec<u8>>,
        #[pyo3(from_py_with = numbers::batch_bytes)] batch_bytes: usize,
        #[pyo3(from_py_with = numbers::batch_records)] batch_records: Option<u64>,
        #[pyo3(from_py_with = numbers::record_bytes_max)] record_bytes_max: u64,
        #[pyo3(from_py_with = numbers::max_bytes)] max_bytes: Option<u64>,
        on_full: &str,
        #[pyo3(from_py_with = durability::durability)] durability: Option<Durability>,
        on_corrupt: &str,
        slow_sync: f64,
        #[pyo3(from_py_with = numbers::file_mode)] file_mode: u32,
    ) -> PyResult<Self> {
        Self::open(
            py,
            path,
            "x",
            base,
            header,
            footer,
            separator,
            batch_bytes,
            batch_records,
            record_bytes_max,
            max_bytes,
            on_full,
            durability,
            on_corrupt,
            slow_sync,
            file_mode,
        )
    }

    #[doc = doc!("Ledger".append)]
    #[pyo3(signature = (payload, *, sync=true))]
    fn append(
        &self,
        py: Python<'_>,
        payload: &Bound<'_, PyAny>,
        sync: bool,
    ) -> PyResult<PyLedgerPosition> {
        let payload = bytes_of(payload, self.limit())?;
        let store = self.store().or_raise(py)?;
        if sync {
            let payload = payload.as_ref();
            return py.detach(|| store.append(payload)).or_raise(py).map(PyLedgerPosition);
        }
        let mut batch =
            deedbook::Batch::<ledger::LedgerFormat>::new(store.options().record_bytes_max);
        batch.push(payload.as_ref()).or_raise(py)?;
        let appended = py.detach(|| store.append_unsynced(&batch)).or_raise(py)?;
        Ok(PyLedgerPosition(appended.map_or_else(Default::default, |(first, _)| first)))
    }

    #[doc = doc!("Ledger".commit)]
    fn commit(&self, py: Python<'_>, payload: &Bound<'_, PyAny>) -> PyResult<PyLedgerPosition> {
        let position = self.append(py, payload, false)?;
        self.sync(py)?;
        Ok(position)
    }

    #[doc = doc!("Ledger".try_append)]
    fn try_append(
        &self,
        py: Python<'_>,
        payload: &Bound<'_, PyAny>,
    ) -> PyResult<Option<PyLedgerPosition>> {
        let payload = bytes_of(payload, self.limit())?;
        let (payload, store) = (payload.as_ref(), self.store().or_raise(py)?);
        Ok(py.detach(|| store.try_append(payload)).or_raise(py)?.map(PyLedgerPosition))
    }

    #[doc = doc!("Ledger".append_many)]
    #[pyo3(signature = (payloads, *, atomic=false))]
    fn append_many(&self, payloads: &Bound<'_, PyAny>, atomic: bool) -> PyResult<PyPositions> {
        let store = self.store().or_raise(payloads.py())?;
        spool::append_events(store, self.limit(), payloads, atomic)
    }

    #[doc = doc!("Ledger".iter)]
    #[pyo3(signature = (start=None, stop=None, *, reverse=false, on_corrupt="raise"))]
    fn iter(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = positions::optional)] start: Option<ledger::Position>,
        #[pyo3(from_py_with = positions::optional)] stop: Option<ledger::Position>,
        reverse: bool,
        on_corrupt: &str,
    ) -> PyResult<RecordIterator> {
        let on_corrupt = self::on_corrupt(py, on_corrupt)?;
        let found = py.detach(|| self.found()).or_raise(py)?;
        Ok(RecordIterator::new(match reverse {
            true => found.walk_back((start, stop), on_corrupt),
            false => Box::new(found.walk((start, stop), on_corrupt)),
        }))
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<RecordIterator> {
        self.iter(py, None, None, false, "raise")
    }

    #[doc = doc!("Ledger".__reversed__)]
    fn __reversed__(&self, py: Python<'_>) -> PyResult<RecordIterator> {
        self.iter(py, None, None, true, "raise")
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let slice = key.cast::<PySlice>().ok().map(bounds_of).transpose()?;
        let found = py.detach(|| self.found()).or_raise(py)?;
        let Some((start, stop)) = slice else {
            return found.one(py, position_of(key)?);
        };
        let position =
            |given: Option<Bound<'py, PyAny>>| given.as_ref().map(position_of).transpose();
        let span: Span = (position(start)?, position(stop)?);
        Ok(Bound::new(py, RecordRange::of(Slice { found, span }))?.into_any())
    }

    #[doc = doc!("Ledger".payloads)]
    #[pyo3(signature = (start=None, stop=None))]
    fn payloads(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = positions::optional)] start: Option<ledger::Position>,
        #[pyo3(from_py_with = positions::optional)] stop: Option<ledger::Position>,
    ) -> PyResult<PayloadIterator> {
        let found = py.detach(|| self.found()).or_raise(py)?;
        Ok(PayloadIterator::new(Box::new(found.walk((start, stop), OnCorrupt::Raise))))
    }

    #[doc = doc!("Ledger".follow)]
    #[pyo3(signature = (start=None, *, timeout=None))]
    fn follow(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = positions::optional)] start: Option<ledger::Position>,
        timeout: Option<f64>,
    ) -> PyResult<FollowIterator> {
        let timeout = timeout.map(|timeout| seconds(py, "timeout", timeout)).transpose()?;
        let store = Held::new(self.either().or_raise(py)?.clone());
        let follow = py.detach(|| self.found()?.contents.follow(start)).or_raise(py)?;
        Ok(FollowIterator::new(Box::new(Following { follow, store }), timeout))
    }

    #[doc = doc!("Ledger".batches)]
    #[pyo3(signature = (start=None, stop=None, *, columns=None, batch_rows=65536,
                        batch_bytes=2097152, on_corrupt="raise"))]
    #[allow(clippy::too_many_arguments)]
    fn batches(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = positions::optional)] start: Option<ledger::Position>,
        #[pyo3(from_py_with = positions::optional)] stop: Option<ledger::Position>,
        columns: Option<Vec<String>>,
        #[pyo3(from_py_with = numbers::batch_rows)] batch_rows: usize,
        #[pyo3(from_py_with = numbers::batch_bytes)] batch_bytes: usize,
        on_corrupt: &str,
    ) -> PyResult<BatchStream> {
        let columns = Asked::columns(py, columns)?;
        let on_corrupt = self::on_corrupt(py, on_corrupt)?;
        let found = py.detach(|| self.found()).or_raise(py)?;
        let sizes = (batch_rows, batch_bytes);
        let batches = found.batches(py, (start, stop), columns, sizes, on_corrupt)?;
        Ok(BatchStream::new(Box::new(batches)))
    }

    #[doc = doc!("Ledger".__arrow_c_stream__)]
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let found = py.detach(|| self.found()).or_raise(py)?;
        let (columns, sizes) = (Asked::default_columns(), (BATCH_ROWS, BATCH_BYTES));
        let batches = found.batches(py, (None, None), columns, sizes, OnCorrupt::Raise)?;
        stream_of(py, Box::new(batches), requested_schema)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_of(py, &*Asked::schema(&Asked::default_columns()).or_raise(py)?)
    }

    #[doc = doc!("Ledger".splits)]
    #[pyo3(signature = (split_bytes=67108864, start=None, stop=None))]
    fn splits(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::split_bytes)] split_bytes: u64,
        #[pyo3(from_py_with = positions::optional)] start: Option<ledger::Position>,
        #[pyo3(from_py_with = positions::optional)] stop: Option<ledger::Position>,
    ) -> PyResult<Vec<PySplit>> {
        let found = py.detach(|| self.found()).or_raise(py)?;
        let splits = found.splits(py, split_bytes, (start, stop))?;
        Ok(splits.into_iter().map(|split| PySplit { format: Format::Ledger, split }).collect())
    }

    #[doc = doc!("Ledger".files)]
    #[getter]
    fn files(&self, py: Python<'_>) -> PyResult<Vec<PyLedgerFileInfo>> {
        let found = py.detach(|| self.found()).or_raise(py)?;
        Ok(found.contents.files.iter().map(PyLedgerFileInfo::from).collect())
    }

    #[doc = doc!("Ledger".next_index)]
    fn next_index(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        py.detach(|| self.found().and_then(|found| found.contents.next_index())).or_raise(py)
    }

    #[doc = doc!("Ledger".bases)]
    #[staticmethod]
    fn bases(
        py: Python<'_>,
        #[pyo3(from_py_with = crate::common::fs_path::path)] path: PathBuf,
    ) -> PyResult<Vec<String>> {
        py.detach(|| ledger::bases(&path, &Options::default())).or_raise(py)
    }

    #[doc = doc!("Ledger".is_file)]
    #[staticmethod]
    fn is_file(
        py: Python<'_>,
        #[pyo3(from_py_with = crate::common::fs_path::path)] path: PathBuf,
    ) -> PyResult<bool> {
        py.detach(|| ledger::is_ledger_file(&path, &Options::default())).or_raise(py)
    }

    #[doc = doc!("Ledger".fetch)]
    #[pyo3(signature = (count=None, max_bytes=None))]
    fn fetch<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = numbers::count)] count: Option<usize>,
        #[pyo3(from_py_with = numbers::max_bytes)] max_bytes: Option<u64>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        RAISED.set(None);
        let store = self.store().or_raise(py)?;
        let fetched = py.detach(|| store.fetch(count, max_bytes));
        if let Some(raised) = RAISED.take() {
            if let Ok(Some(fetched)) = fetched {
                let removable = fetched.removable.unwrap_or_default();
                py.detach(|| store.release(&removable)).or_raise(py)?;
            }
            return Err(raised);
        }
        let Some(fetched) = fetched.or_raise(py)? else { return Ok(None) };
        let more = fetched.more;
        let removable = fetched.removable.unwrap_or_default();
        let readers = fetched.data.unwrap_or_default().into_iter().zip(&removable);
        let files: Vec<PyLedgerFile> = readers
            .map(|(reader, removable)| {
                let id = self.id_of(&reader, removable);
                PyLedgerFile::new(reader, id)
            })
            .collect();
        let removable: Vec<PyRemovable> = removable.into_iter().map(PyRemovable).collect();
        let bodies = py.import("deedbook.transient._ledger")?;
        bodies.call_method1("result_of", (files, removable, more)).map(Some)
    }

    #[doc = doc!("Ledger".remove)]
    fn remove(&self, py: Python<'_>, items: &Bound<'_, PyAny>) -> PyResult<()> {
        let removable = removables(items, "remove")?;
        py.detach(|| self.store()?.remove(&removable)).or_raise(py)
    }

    #[doc = doc!("Ledger".release)]
    fn release(&self, py: Python<'_>, items: &Bound<'_, PyAny>) -> PyResult<()> {
        let removable = removables(items, "release")?;
        py.detach(|| self.store()?.release(&removable)).or_raise(py)
    }

    #[doc = doc!("Ledger".has_data)]
    fn has_data(&self, py: Python<'_>) -> PyResult<bool> {
        py.detach(|| self.store()?.has_data()).or_raise(py)
    }

    #[doc = doc!("Ledger".reset)]
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.store()?.reset()).or_raise(py)
    }

    #[doc = doc!("Ledger".sync)]
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.store()?.sync()).or_raise(py)
    }

    #[doc = doc!("Ledger".unsynced_bytes)]
    #[getter]
    fn unsynced_bytes(&self, py: Python<'_>) -> u64 {
        match &self.side {
            Side::Writer(store) => py.detach(|| store.unsynced_bytes()),
            Side::Reader(_) => 0,
        }
    }

    #[doc = doc!("Ledger".stats)]
    fn stats(&self) -> PyLedgerStats {
        match &self.side {
            Side::Writer(store) => (&store.stats()).into(),
            Side::Reader(_) => (&deedbook::Stats::default()).into(),
        }
    }

    #[doc = doc!("Ledger".close)]
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        match &self.side {
            Side::Writer(store) => py.detach(|| store.close()).or_raise(py),
            Side::Reader(reader) => py.detach(|| reader.store.close()).or_raise(py),
        }
    }

    fn __enter__(slf: Py<Self>, py: Python<'_>) -> PyResult<Py<Self>> {
        match &slf.get().side {
            Side::Writer(store) => py.detach(|| store.has_data()).or_raise(py).map(drop)?,
            Side::Reader(reader) => reader.check_open().or_raise(py)?,
        }
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
        !self.is_closed()
    }

    #[doc = doc!("Ledger".transactions)]
    #[getter]
    fn transactions(&self, py: Python<'_>) -> PyResult<PyTransactions> {
        Ok(PyTransactions::of(Box::new(self.either().or_raise(py)?.clone())))
    }

    #[doc = doc!("Ledger".path)]
    #[getter]
    fn path(&self) -> FsPath {
        self.path_of().into()
    }

    #[doc = doc!("Ledger".base)]
    #[getter]
    fn base(&self) -> &str {
        self.base_of()
    }

    #[doc = doc!("Ledger".mode)]
    #[getter]
    fn mode(&self) -> &'static str {
        crate::log::letter(self.mode)
    }

    #[doc = doc!("Ledger".closed)]
    #[getter]
    fn closed(&self) -> bool {
        self.is_closed()
    }

    #[doc = doc!("Ledger".durability)]
    #[getter]
    fn durability<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        durability::shown(py, self.durability_of())
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let (path, base, mode) = (self.path_of(), self.base_of(), self.mode());
        let state = match &self.side {
            _ if self.is_closed() || self.owner.is_another() => {
                format!("{}, ", self.owner.absent())
            }
            Side::Writer(_) => String::new(),
            Side::Reader(reader) => match reader.found.contents.files.len() {
                1 => "1 file, ".into(),
                files => format!("{files} files, "),
            },
        };
        let durability = durability::in_repr(py, self.durability_of());
        format!(
            "<deedbook.Ledger {path:?}, base {base:?}, {state}mode {mode:?}, durability {durability}>"
        )
    }

    #[doc = doc!("Ledger".verify)]
    #[staticmethod]
    #[pyo3(signature = (path, *, base=None, progress=None))]
    fn verify(
        py: Python<'_>,
        #[pyo3(from_py_with = crate::common::fs_path::path)] path: PathBuf,
        base: Option<&str>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<PyLedgerReport> {
        let checked = Progress::run(py, progress, |progress| {
            let step = |done, total| progress.call(done, total);
            let options = Options::default();
            let contents = options.contents(&path, base)?;
            let files = contents.verify(&options, step)?;
            Ok(Ledger { files, quarantined: contents.quarantined()? })
        })?;
        Ok((&checked).into())
    }

    #[doc = doc!("Ledger".repair)]
    #[staticmethod]
    #[pyo3(signature = (path, *, force=false, dry_run=false, accept_loss=false, base=None))]
    fn repair(
        py: Python<'_>,
        #[pyo3(from_py_with = crate::common::fs_path::path)] path: PathBuf,
        force: bool,
        dry_run: bool,
        accept_loss: bool,
        base: Option<&str>,
    ) -> PyResult<PyLedgerRepair> {
        let how = Repair { force, dry_run, accept_loss };
        let options = Options::default();
        let mended = py.detach(|| options.contents(&path, base)?.repair(&options, how));
        Ok((&mended.or_raise(py)?).into())
    }

    #[doc = doc!("Ledger".verify_file)]
    #[staticmethod]
    #[pyo3(signature = (path, *, intact=None, progress=None))]
    fn verify_file(
        py: Python<'_>,
        #[pyo3(from_py_with = crate::common::fs_path::path)] path: PathBuf,
        intact: Option<Vec<PyRef<'_, PySplit>>>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<PyVerifyReport> {
        let intact = of_format(py, intact, Format::Ledger)?;
        let report = Progress::run(py, progress, |progress| {
            let step = |done, total| progress.call(done, total);
            Options::default().verify_file(&path, &intact, step)
        })?;
        Ok((&report).into())
    }

    #[doc = doc!("Ledger".salvage)]
    #[staticmethod]
    #[pyo3(signature = (path, to, *, base=None, progress=None))]
    fn salvage(
        py: Python<'_>,
        #[pyo3(from_py_with = crate::common::fs_path::path)] path: PathBuf,
        #[pyo3(from_py_with = crate::common::fs_path::path)] to: PathBuf,
        base: Option<&str>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<PyLedgerSalvage> {
        let copied = Progress::run(py, progress, |progress| {
            let step = |done, total| progress.call(done, total);
            let options = Options::default();
            options.contents(&path, base)?.salvage(&to, &options, step)
        })?;
        Ok((&copied).into())
    }

    #[doc = doc!("Ledger".migrate_directory_store)]
    #[staticmethod]
    #[pyo3(signature = (source, path, base="events", *, old_base="events", keep=false,
                        dry_run=false, batch_bytes=475_000, record_bytes_max=1_048_576,
                        progress=None))]
    #[allow(clippy::too_many_arguments)]
    fn migrate_directory_store(
        py: Python<'_>,
        #[pyo3(from_py_with = crate::common::fs_path::path)] source: PathBuf,
        #[pyo3(from_py_with = crate::common::fs_path::path)] path: PathBuf,
        base: &str,
        old_base: &str,
        keep: bool,
        dry_run: bool,
        #[pyo3(from_py_with = numbers::batch_bytes)] batch_bytes: usize,
        #[pyo3(from_py_with = numbers::record_bytes_max)] record_bytes_max: u64,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Vec<PyLedgerFileMigration>> {
        let mut migration = Migration::new(source, old_base);
        migration.keep = keep;
        let options = Options::new().record_bytes_max(record_bytes_max);
        let config = LedgerConfig::lines(path, base);
        let config = LedgerConfig { max_file_size: batch_bytes, ..config };
        let files = Progress::run(py, progress, |progress| {
            let step = |done, total| progress.call(done, total);
            match dry_run {
                true => migration.inspect(&options, step),
                false => migration.run(config, &options, step),
            }
        })?;
        Ok(files.iter().map(PyLedgerFileMigration::from).collect())
    }
}
