//! The class `LedgerSnapshot`: the finished files of a ledger, for reading.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use deedbook::ledger::{self, Contents, Cursor, FileInfo, LedgerFile, Options};
use deedbook::{Damage, Error, ErrorKind, OnCorrupt, Result, Split};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arguments::{self, numbers};
use crate::batches::on_corrupt;
use crate::errors::OrRaise;
use crate::iterators::{PayloadIterator, RecordIterator, Walk};
use crate::log::Format;
use crate::progress::Progress;
use crate::record::PyLedgerRecord;
use crate::reports::{PyLedgerFileInfo, PyLedgerFileReport, PyLedgerFileSalvage};
use crate::split::PySplit;

#[pyclass(frozen, name = "LedgerSnapshot", module = "deedbook")]
pub struct PyLedgerSnapshot {
    contents: Contents,
    /// Whether the path named one file, which must be there then.
    single: bool,
    closed: AtomicBool,
}

impl PyLedgerSnapshot {
    /// The files that are read: finished ones, and one that was named.
    fn read(&self) -> impl Iterator<Item = &FileInfo> {
        self.contents.files.iter().filter(|file| self.single || !file.active)
    }

    fn check_open(&self) -> Result<()> {
        match self.closed.load(Ordering::Acquire) {
            false => Ok(()),
            true => {
                let error = Error::new(ErrorKind::Closed, "the snapshot is closed");
                Err(error.of(Format::Ledger.name()).at(&self.contents.path))
            }
        }
    }

    fn walk(&self, index: Option<u32>, on_corrupt: OnCorrupt) -> Result<Files> {
        self.check_open()?;
        let wanted = self.read().filter(|file| index.is_none_or(|index| file.index == index));
        let files: VecDeque<FileInfo> = wanted.cloned().collect();
        match index {
            Some(index) if files.is_empty() => {
                let error = Error::new(ErrorKind::OutOfRange, format!("no finished file {index}"));
                Err(error.of(Format::Ledger.name()).at(&self.contents.path))
            }
            _ => Ok(Files {
                files,
                open: None,
                damages: Vec::new(),
                on_corrupt,
                may_be_gone: !self.single,
            }),
        }
    }
}

#[pymethods]
impl PyLedgerSnapshot {
    #[staticmethod]
    #[pyo3(signature = (path, base=None))]
    fn open(
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::path)] path: PathBuf,
        base: Option<&str>,
    ) -> PyResult<Self> {
        let look = || {
            let contents = ledger::contents(&path, base, &Options::default())?;
            let single = !contents.path.is_dir();
            Ok((contents, single))
        };
        let (contents, single) = py.detach(look).or_raise(py)?;
        Ok(Self { contents, single, closed: AtomicBool::new(false) })
    }

    #[staticmethod]
    fn bases(
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::path)] path: PathBuf,
    ) -> PyResult<Vec<String>> {
        py.detach(|| ledger::bases(&path, &Options::default())).or_raise(py)
    }

    #[staticmethod]
    fn is_file(
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::path)] path: PathBuf,
    ) -> PyResult<bool> {
        py.detach(|| ledger::is_ledger_file(&path, &Options::default())).or_raise(py)
    }

    #[getter]
    fn path(&self) -> OsString {
        self.contents.path.clone().into()
    }

    #[getter]
    fn base(&self) -> &str {
        &self.contents.base
    }

    #[getter]
    fn files(&self) -> Vec<PyLedgerFileInfo> {
        self.contents.files.iter().map(PyLedgerFileInfo::from).collect()
    }

    #[getter]
    fn closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

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

    #[pyo3(signature = (file=None))]
    fn payloads(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::file)] file: Option<u32>,
    ) -> PyResult<PayloadIterator> {
        Ok(PayloadIterator::new(Box::new(self.walk(file, OnCorrupt::Raise).or_raise(py)?)))
    }

    #[pyo3(signature = (file, split_bytes=67_108_864))]
    fn splits(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::file)] file: u32,
        #[pyo3(from_py_with = numbers::split_bytes)] split_bytes: u64,
    ) -> PyResult<Vec<PySplit>> {
        let cut = || -> Result<Vec<Split>> {
            match self.walk(Some(file), OnCorrupt::Raise)?.next_log()? {
                Some((_, log)) => log.splits(split_bytes),
                None => Ok(Vec::new()),
            }
        };
        let splits = py.detach(cut).or_raise(py)?;
        Ok(splits.into_iter().map(|split| PySplit { format: Format::Ledger, split }).collect())
    }

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

    #[pyo3(signature = (target, *, progress=None))]
    fn salvage(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::path)] target: PathBuf,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Vec<PyLedgerFileSalvage>> {
        self.check_open().or_raise(py)?;
        let copied = Progress::run(py, progress, |progress| {
            let step = |done, total| progress.call(done, total);
            self.contents.salvage(&target, &Options::default(), step)
        })?;
        Ok(copied.iter().map(PyLedgerFileSalvage::from).collect())
    }

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

/// A walk over the records of one file after another, each opened when it is its turn.
struct Files {
    files: VecDeque<FileInfo>,
    open: Option<(u32, Cursor)>,
    /// Those of the files before.
    damages: Vec<Damage>,
    on_corrupt: OnCorrupt,
    /// Whether a file that was sent meanwhile is passed over.
    may_be_gone: bool,
}

impl Files {
    fn next_log(&mut self) -> Result<Option<(u32, LedgerFile)>> {
        while let Some(file) = self.files.pop_front() {
            match ledger::open_file(&file.path, &Options::default()) {
                Err(e) if e.kind() == ErrorKind::Missing && self.may_be_gone => {}
                log => return Ok(Some((file.index, log?))),
            }
        }
        Ok(None)
    }

    /// Whether there is another record; the cursor stands on it. After an error there is none.
    fn advance<T>(
        &mut self,
        py: Python<'_>,
        give: impl Fn(u32, ledger::RecordRef<'_>) -> PyResult<T>,
    ) -> PyResult<Option<T>> {
        loop {
            if let Some((index, cursor)) = &mut self.open {
                let index = *index;
                let ready = cursor.ready();
                let record = match ready {
                    true => cursor.next(),
                    false => py.detach(|| cursor.next()),
                };
                match record {
                    Ok(Some(record)) => return give(index, record).map(Some),
                    Ok(None) => {}
                    Err(e) => {
                        self.files.clear();
                        return Err(e).or_raise(py);
                    }
                }
            }
            if let Some((_, done)) = self.open.take() {
                self.damages.extend_from_slice(done.damages());
            }
            let on_corrupt = self.on_corrupt;
            let next = py.detach(|| match self.next_log()? {
                Some((index, log)) => Ok(Some((index, log.cursor(on_corrupt)?))),
                None => Ok(None),
            });
            self.open = next.or_raise(py)?;
            if self.open.is_none() {
                return Ok(None);
            }
        }
    }
}

impl Walk for Files {
    fn record<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.advance(py, |file, record| {
            let record = PyLedgerRecord::build(py, file, record.number, record.payload);
            Ok(Bound::new(py, record)?.into_any())
        })
    }

    fn payload<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        self.advance(py, |_, record| Ok(PyBytes::new(py, record.payload)))
    }

    fn damages(&self) -> Vec<Damage> {
        let open = self.open.iter().flat_map(|(_, cursor)| cursor.damages());
        self.damages.iter().chain(open).cloned().collect()
    }
}
