//! The class `Ledger`: events kept in files until they were sent.

pub mod batches;
pub mod file;
pub mod json_lines;
pub mod removable;
pub mod snapshot;

use std::cell::RefCell;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::path::PathBuf;

use deedbook::ledger::{
    self, Envelope, LedgerConfig, LedgerReader, LedgerStore, Migration, Options,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::append::input;
use crate::append::payload::{Limit, bytes_of, each};
use crate::append::transaction::PyTransactions;
use crate::common::arguments::{numbers, seconds};
use crate::common::errors::OrRaise;
use crate::common::fs_path::FsPath;
use crate::common::handle::{Held, Owner, left};
use crate::common::progress::Progress;
use crate::common::reports::{
    PyLedgerFileInfo, PyLedgerFileMigration, PyLedgerFileReport, PyLedgerFileSalvage,
    PyLedgerStats, PyVerifyReport,
};
use crate::ledger::file::PyLedgerFile;
use crate::ledger::removable::PyRemovable;
use crate::log::any_log::Format;
use crate::log::split::{PySplit, of_format};

// The signatures below show this number, because `help()` and the stub cannot show names.
const _: () = assert!(ledger::Options::RECORD_BYTES_MAX == 1_048_576);

thread_local! {
    /// What a function for the header or the footer raised in this thread's fetch.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Header or footer: bytes, or a function that makes them for each reader.
fn envelope(given: &Bound<'_, PyAny>, name: &'static str) -> PyResult<Envelope> {
    let limit = Limit { format: "ledger", noun: name, bytes_max: u32::MAX.into() };
    if !given.is_callable() {
        let bytes = bytes_of(given, limit)?.as_ref().to_vec();
        return Ok(Box::new(move || bytes.clone()));
    }
    let make = given.clone().unbind();
    Ok(Box::new(move || {
        Python::attach(|py| {
            let made = make.bind(py).call0();
            let made = made.and_then(|made| Ok(bytes_of(&made, limit)?.as_ref().to_vec()));
            made.unwrap_or_else(|raised| {
                RAISED.set(Some(raised));
                Vec::new()
            })
        })
    }))
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
    ledger: Held<LedgerStore>,
    owner: Owner,
    /// Of this handle alone.
    token: u64,
}

impl PyLedger {
    fn limit(&self) -> Limit {
        let bytes_max = self.ledger.options().record_bytes_max;
        Limit { format: "ledger", noun: "record", bytes_max }
    }

    fn batch(&self) -> deedbook::Batch<deedbook::ledger::LedgerFormat> {
        deedbook::Batch::<deedbook::ledger::LedgerFormat>::new(
            self.ledger.options().record_bytes_max,
        )
    }

    /// A name that no other file ever gets: by the birth of its inode. Where the file system notes
    /// no birth, a file of a later ledger may get the same inode, so the name holds for this handle
    /// only.
    fn id_of(&self, reader: &LedgerReader, removable: &ledger::Removable) -> String {
        let (index, file) = (reader.index(), removable.file());
        match file.created_ns {
            0 => format!("{:016x}-{:x}-{index}", self.token, file.inode),
            born => format!("{born:x}-{:x}-{index}", file.inode),
        }
    }
}

impl Drop for PyLedger {
    fn drop(&mut self) {
        self.owner.warn_unclosed("Ledger", self.ledger.path(), self.ledger.is_closed());
    }
}

#[pymethods]
impl PyLedger {
    #[doc = doc!("Ledger".open)]
    #[staticmethod]
    #[pyo3(signature = (path, *refused, base="events", header=None, footer=None, separator=None,
                        batch_bytes=475_000, batch_records=None, record_bytes_max=1_048_576,
                        max_bytes=None, on_full="reject", durability="none",
                        on_corrupt="quarantine", slow_sync=1.0, file_mode=0o600),
           text_signature = "(path, *, base='events', header=None, footer=None, separator=None, \
                             batch_bytes=475_000, batch_records=None, record_bytes_max=1_048_576, \
                             max_bytes=None, on_full='reject', durability='none', \
                             on_corrupt='quarantine', slow_sync=1.0, file_mode=0o600)")]
    #[allow(clippy::too_many_arguments)]
    fn open(
        py: Python<'_>,
        #[pyo3(from_py_with = crate::common::fs_path::path)] path: PathBuf,
        refused: &Bound<'_, PyTuple>,
        base: &str,
        header: Option<&Bound<'_, PyAny>>,
        footer: Option<&Bound<'_, PyAny>>,
        separator: Option<Vec<u8>>,
        #[pyo3(from_py_with = numbers::batch_bytes)] batch_bytes: usize,
        #[pyo3(from_py_with = numbers::batch_records)] batch_records: Option<u64>,
        #[pyo3(from_py_with = numbers::record_bytes_max)] record_bytes_max: u64,
        #[pyo3(from_py_with = numbers::max_bytes)] max_bytes: Option<u64>,
        on_full: &str,
        durability: &str,
        on_corrupt: &str,
        slow_sync: f64,
        #[pyo3(from_py_with = numbers::file_mode)] file_mode: u32,
    ) -> PyResult<Self> {
        // As a mode, which logs of other formats take there, it named another ledger.
        if let Ok(first) = refused.get_item(0) {
            let message = format!(
                "Ledger.open takes the path alone by position, not {} as well: a ledger has no mode, \
                 and base=... names another one than \"events\"",
                first.repr()?
            );
            return Err(PyTypeError::new_err(message));
        }
        let around = |given: Option<&Bound<'_, PyAny>>, name, json: &'static [u8]| match given {
            Some(given) => envelope(given, name),
            None => Ok(Box::new(|| json.to_vec()) as Envelope),
        };
        let config = LedgerConfig {
            storage_location: path,
            base_filename: base.into(),
            max_file_size: batch_bytes,
            header: around(header, "header", b"[")?,
            footer: around(footer, "footer", b"]")?,
            separator: separator.unwrap_or_else(|| b",".to_vec()),
        };
        let options = Options::new()
            .durability(durability.parse().or_raise(py)?)
            .on_corrupt(on_corrupt.parse().or_raise(py)?)
            .file_records_max(batch_records)
            .bytes_total_max(max_bytes)
            .when_full(on_full.parse().or_raise(py)?)
            .record_bytes_max(record_bytes_max)
            .file_mode(file_mode)
            .slow_sync(seconds(py, "slow_sync", slow_sync)?);
        let ledger = py.detach(|| options.open(config)).or_raise(py)?;
        let token = RandomState::new().hash_one(std::process::id());
        Ok(Self { ledger: Held::new(ledger), owner: Owner::this_process(), token })
    }

    #[doc = doc!("Ledger".append)]
    fn append(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let data = bytes_of(data, self.limit())?;
        let data = data.as_ref();
        py.detach(|| self.ledger.append(data)).or_raise(py)
    }

    #[doc = doc!("Ledger".append_unsynced)]
    fn append_unsynced(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut batch = self.batch();
        batch.push(bytes_of(data, self.limit())?.as_ref()).or_raise(py)?;
        py.detach(|| self.ledger.append_unsynced(&batch)).or_raise(py)
    }

    #[doc = doc!("Ledger".try_append)]
    fn try_append(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<bool> {
        let data = bytes_of(data, self.limit())?;
        let data = data.as_ref();
        py.detach(|| self.ledger.try_append(data)).or_raise(py)
    }

    #[doc = doc!("Ledger".append_many)]
    fn append_many(&self, data: &Bound<'_, PyAny>) -> PyResult<()> {
        input::append_events(&self.ledger, self.limit(), data)
    }

    #[doc = doc!("Ledger".append_batch)]
    fn append_batch(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut batch = self.batch();
        each(data, |event| {
            let event = bytes_of(event, self.limit())?;
            batch.push(event.as_ref()).or_raise(py)?;
            Ok(event.as_ref().len())
        })?;
        py.detach(|| self.ledger.append_batch(&batch)).or_raise(py)
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
        let fetched = py.detach(|| self.ledger.fetch(count, max_bytes));
        if let Some(raised) = RAISED.take() {
            if let Ok(Some(fetched)) = fetched {
                let removable = fetched.removable.unwrap_or_default();
                py.detach(|| self.ledger.release(&removable)).or_raise(py)?;
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
        py.detach(|| self.ledger.remove(&removable)).or_raise(py)
    }

    #[doc = doc!("Ledger".release)]
    fn release(&self, py: Python<'_>, items: &Bound<'_, PyAny>) -> PyResult<()> {
        let removable = removables(items, "release")?;
        py.detach(|| self.ledger.release(&removable)).or_raise(py)
    }

    #[doc = doc!("Ledger".has_data)]
    fn has_data(&self, py: Python<'_>) -> PyResult<bool> {
        py.detach(|| self.ledger.has_data()).or_raise(py)
    }

    #[doc = doc!("Ledger".reset)]
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.ledger.reset()).or_raise(py)
    }

    #[doc = doc!("Ledger".sync)]
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.ledger.sync()).or_raise(py)
    }

    #[doc = doc!("Ledger".unsynced_bytes)]
    #[getter]
    fn unsynced_bytes(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.ledger.unsynced_bytes())
    }

    #[doc = doc!("Ledger".stats)]
    fn stats(&self) -> PyLedgerStats {
        (&self.ledger.stats()).into()
    }

    #[doc = doc!("Ledger".close)]
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.ledger.close()).or_raise(py)
    }

    fn __enter__(slf: Py<Self>, py: Python<'_>) -> PyResult<Py<Self>> {
        slf.get().has_data(py)?; // an error if it is closed
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
        !self.ledger.is_closed()
    }

    #[doc = doc!("Ledger".transactions)]
    #[getter]
    fn transactions(&self) -> PyTransactions {
        PyTransactions::of(Box::new(self.ledger.clone()))
    }

    #[doc = doc!("Ledger".path)]
    #[getter]
    fn path(&self) -> FsPath {
        self.ledger.path().into()
    }

    #[doc = doc!("Ledger".base)]
    #[getter]
    fn base(&self) -> &str {
        self.ledger.base_filename()
    }

    #[doc = doc!("Ledger".closed)]
    #[getter]
    fn closed(&self) -> bool {
        self.ledger.is_closed()
    }

    #[doc = doc!("Ledger".durability)]
    #[getter]
    fn durability(&self) -> String {
        self.ledger.options().durability.to_string()
    }

    fn __repr__(&self) -> String {
        let (path, base) = (self.ledger.path(), self.ledger.base_filename());
        let state = match self.ledger.is_closed() || self.owner.is_another() {
            true => format!(", {}", self.owner.absent()),
            false => String::new(),
        };
        format!("<deedbook.Ledger {path:?}, base {base:?}{state}>")
    }

    #[doc = doc!("Ledger".files)]
    #[staticmethod]
    #[pyo3(signature = (path, base="events"))]
    fn files(
        py: Python<'_>,
        #[pyo3(from_py_with = crate::common::fs_path::path)] path: PathBuf,
        base: &str,
    ) -> PyResult<Vec<PyLedgerFileInfo>> {
        let found = py.detach(|| Options::default().files(&path, base)).or_raise(py)?;
        Ok(found.iter().map(PyLedgerFileInfo::from).collect())
    }

    #[doc = doc!("Ledger".verify)]
    #[staticmethod]
    #[pyo3(signature = (path, base="events", *, progress=None))]
    fn verify(
        py: Python<'_>,
        #[pyo3(from_py_with = crate::common::fs_path::path)] path: PathBuf,
        base: &str,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Vec<PyLedgerFileReport>> {
        let reports = Progress::run(py, progress, |progress| {
            let step = |done, total| progress.call(done, total);
            Options::default().verify_with(&path, base, step)
        })?;
        Ok(reports.iter().map(PyLedgerFileReport::from).collect())
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
    #[pyo3(signature = (source, target, base="events", *, progress=None))]
    fn salvage(
        py: Python<'_>,
        #[pyo3(from_py_with = crate::common::fs_path::path)] source: PathBuf,
        #[pyo3(from_py_with = crate::common::fs_path::path)] target: PathBuf,
        base: &str,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Vec<PyLedgerFileSalvage>> {
        let copied = Progress::run(py, progress, |progress| {
            let step = |done, total| progress.call(done, total);
            Options::default().salvage_with(&source, base, &target, step)
        })?;
        Ok(copied.iter().map(PyLedgerFileSalvage::from).collect())
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
