//! The class `LedgerSnapshot`: the finished files of a ledger, for reading.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use deedbook::jobs::Split;
use deedbook::ledger::{self, Contents, FileInfo, Options};
use deedbook::{Error, ErrorKind, OnCorrupt, Result};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::common::arguments::numbers;
use crate::common::errors::OrRaise;
use crate::common::fs_path::FsPath;
use crate::common::progress::Progress;
use crate::common::reports::{PyLedgerFileInfo, PyLedgerFileReport, PyLedgerFileSalvage};
use crate::ledger::batches::{Asked, FileBatches};
use crate::log::any_log::Format;
use crate::log::batches::{BATCH_BYTES, BATCH_ROWS, BatchStream, on_corrupt, schema_of, stream_of};
use crate::log::iterators::{PayloadIterator, RecordIterator};
use crate::log::split::PySplit;

#[doc = doc!("LedgerSnapshot")]
#[pyclass(frozen, name = "LedgerSnapshot", module = "deedbook")]
pub struct PyLedgerSnapshot {
    contents: Contents,
    /// Whether the path names a file. A named file must exist.
    single: bool,
    closed: AtomicBool,
}

impl PyLedgerSnapshot {
    fn check_open(&self) -> Result<()> {
        match self.closed.load(Ordering::Acquire) {
            false => Ok(()),
            true => {
                let error = Error::new(ErrorKind::Closed, "the snapshot is closed");
                Err(error.of(Format::Ledger.name()).at(&self.contents.path))
            }
        }
    }

    /// The files to read, or a single file of them: all finished files, or the named file.
    fn wanted(&self, index: Option<u32>) -> Result<Contents> {
        self.check_open()?;
        let mut wanted = self.contents.clone();
        let is_read = |file: &FileInfo| self.single || !file.active;
        wanted.files.retain(|file| is_read(file) && index.is_none_or(|index| file.index == index));
        match index {
            Some(index) if wanted.files.is_empty() => {
                let error = Error::new(ErrorKind::OutOfRange, format!("no finished file {index}"));
                Err(error.of(Format::Ledger.name()).at(&self.contents.path))
            }
            _ => Ok(wanted),
        }
    }

    fn walk(
        &self,
        index: Option<u32>,
        on_corrupt: OnCorrupt,
    ) -> Result<deedbook::Chained<deedbook::ledger::LedgerFormat>> {
        Ok(self.wanted(index)?.cursor(on_corrupt))
    }
}

#[pymethods]
impl PyLedgerSnapshot {
    #[doc = doc!("LedgerSnapshot".open)]
    #[staticmethod]
    #[pyo3(signature = (path, base=None))]
    fn open(
        py: Python<'_>,
        #[pyo3(from_py_with = crate::common::fs_path::path)] path: PathBuf,
        base: Option<&str>,
    ) -> PyResult<Self> {
        let look = || {
            let contents = Options::default().contents(&path, base)?;
            let single = !contents.path.is_dir();
            Ok((contents, single))
        };
        let (contents, single) = py.detach(look).or_raise(py)?;
        Ok(Self { contents, single, closed: AtomicBool::new(false) })
    }

    #[doc = doc!("LedgerSnapshot".bases)]
    #[staticmethod]
    fn bases(
        py: Python<'_>,
        #[pyo3(from_py_with = crate::common::fs_path::path)] path: PathBuf,
    ) -> PyResult<Vec<String>> {
        py.detach(|| ledger::bases(&path, &Options::default())).or_raise(py)
    }

    #[doc = doc!("LedgerSnapshot".is_file)]
    #[staticmethod]
    fn is_file(
        py: Python<'_>,
        #[pyo3(from_py_with = crate::common::fs_path::path)] path: PathBuf,
    ) -> PyResult<bool> {
        py.detach(|| ledger::is_ledger_file(&path, &Options::default())).or_raise(py)
    }

    #[doc = doc!("LedgerSnapshot".path)]
    #[getter]
    fn path(&self) -> FsPath {
        self.contents.path.clone().into()
    }

    #[doc = doc!("LedgerSnapshot".base)]
    #[getter]
    fn base(&self) -> &str {
        &self.contents.base
    }

    #[doc = doc!("LedgerSnapshot".files)]
    #[getter]
    fn files(&self) -> Vec<PyLedgerFileInfo> {
        self.contents.files.iter().map(PyLedgerFileInfo::from).collect()
    }

    #[doc = doc!("LedgerSnapshot".next_index)]
    fn next_index(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        py.detach(|| self.check_open().and_then(|()| self.contents.next_index())).or_raise(py)
    }

    #[doc = doc!("LedgerSnapshot".closed)]
    #[getter]
    fn closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    #[doc = doc!("LedgerSnapshot".iter)]
    #[pyo3(signature = (file=None, *, on_corrupt="raise"))]
    fn iter(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::file)] file: Option<u32>,
        on_corrupt: &str,
    ) -> PyResult<RecordIterator> {
        let on_corrupt = self::on_corrupt(py, on_corrupt)?;
        Ok(RecordIterator::new(Box::new(self.walk(file, on_corrupt).or_raise(py)?)))
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<RecordIterator> {
        self.iter(py, None, "raise")
    }

    #[doc = doc!("LedgerSnapshot".payloads)]
    #[pyo3(signature = (file=None))]
    fn payloads(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::file)] file: Option<u32>,
    ) -> PyResult<PayloadIterator> {
        Ok(PayloadIterator::new(Box::new(self.walk(file, OnCorrupt::Raise).or_raise(py)?)))
    }

    #[doc = doc!("LedgerSnapshot".batches)]
    #[pyo3(signature = (file=None, *, columns=None, batch_rows=65536, batch_bytes=2097152,
                        on_corrupt="raise"))]
    #[allow(clippy::too_many_arguments)]
    fn batches(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::file)] file: Option<u32>,
        columns: Option<Vec<String>>,
        #[pyo3(from_py_with = numbers::batch_rows)] batch_rows: usize,
        #[pyo3(from_py_with = numbers::batch_bytes)] batch_bytes: usize,
        on_corrupt: &str,
    ) -> PyResult<BatchStream> {
        let columns = Asked::columns(py, columns)?;
        let on_corrupt = self::on_corrupt(py, on_corrupt)?;
        let files = self.walk(file, on_corrupt).or_raise(py)?;
        let batches = FileBatches::new(files, columns, batch_rows, batch_bytes);
        Ok(BatchStream::new(Box::new(batches)))
    }

    #[doc = doc!("LedgerSnapshot".__arrow_c_stream__)]
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let files = self.walk(None, OnCorrupt::Raise).or_raise(py)?;
        let batches = FileBatches::new(files, Asked::default_columns(), BATCH_ROWS, BATCH_BYTES);
        stream_of(py, Box::new(batches), requested_schema)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_of(py, &Asked::schema(&Asked::default_columns()))
    }

    #[doc = doc!("LedgerSnapshot".splits)]
    #[pyo3(signature = (file, split_bytes=67_108_864))]
    fn splits(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::file)] file: u32,
        #[pyo3(from_py_with = numbers::split_bytes)] split_bytes: u64,
    ) -> PyResult<Vec<PySplit>> {
        let cut = || -> Result<Vec<Split>> {
            let wanted = self.wanted(Some(file))?;
            let Some(file) = wanted.files.first() else { return Ok(Vec::new()) };
            match Options::default().open_file(&file.path) {
                // Sent meanwhile.
                Err(e) if e.kind() == ErrorKind::Missing && !self.single => Ok(Vec::new()),
                log => log?.splits(split_bytes),
            }
        };
        let splits = py.detach(cut).or_raise(py)?;
        Ok(splits.into_iter().map(|split| PySplit { format: Format::Ledger, split }).collect())
    }

    #[doc = doc!("LedgerSnapshot".verify)]
    #[pyo3(signature = (*, progress=None))]
    fn verify(
        &self,
        py: Python<'_>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Vec<PyLedgerFileReport>> {
        self.check_open().or_raise(py)?;
        let reports = Progress::run(py, progress, |progress| {
            let step = |done, total| progress.call(done, total);
            self.contents.verify(&Options::default(), step)
        })?;
        Ok(reports.iter().map(PyLedgerFileReport::from).collect())
    }

    #[doc = doc!("LedgerSnapshot".salvage)]
    #[pyo3(signature = (target, *, progress=None))]
    fn salvage(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = crate::common::fs_path::path)] target: PathBuf,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Vec<PyLedgerFileSalvage>> {
        self.check_open().or_raise(py)?;
        let copied = Progress::run(py, progress, |progress| {
            let step = |done, total| progress.call(done, total);
            self.contents.salvage(&target, &Options::default(), step)
        })?;
        Ok(copied.iter().map(PyLedgerFileSalvage::from).collect())
    }

    #[doc = doc!("LedgerSnapshot".close)]
    fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    fn __enter__(slf: Py<Self>, py: Python<'_>) -> PyResult<Py<Self>> {
        slf.get().check_open().or_raise(py)?;
        Ok(slf)
    }

    fn __exit__(
        &self,
        _exc_type: &Bound<'_, PyAny>,
        _exc_value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) {
        self.close();
    }

    fn __bool__(&self) -> bool {
        !self.closed()
    }

    fn __repr__(&self) -> String {
        let Contents { path, base, files, .. } = &self.contents;
        let state = match self.closed() {
            true => "closed".into(),
            false if files.len() == 1 => "1 file".into(),
            false => format!("{} files", files.len()),
        };
        format!("<deedbook.LedgerSnapshot {path:?}, base {base:?}, {state}>")
    }
}
