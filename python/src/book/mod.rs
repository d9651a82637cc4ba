//! The class `Book`.

pub mod deeds;
pub mod pier;
pub mod range;
pub mod reports;

use std::path::PathBuf;

use deedbook::book::{self, Book, Layout, Meta, Options, lmdb};
use deedbook::report::Repair;
use deedbook::{Durability, LockTimeout};
use pyo3::prelude::*;
use pyo3::types::PySlice;

use crate::append::in_parts::{PyPayloadParts, append_file};
use crate::append::input;
use crate::append::payload::{Limit, bytes_of};
use crate::append::positions::PyPositions;
use crate::book::range::{DeedRange, event_of};
use crate::common::arguments::{self, numbers, seconds};
use crate::common::detect::check_format;
use crate::common::errors::OrRaise;
use crate::common::handle::{Held, found, number_in};
use crate::common::progress::Progress;
use crate::common::reports::{
    PyConvertReport, PyLmdbMigration, PyRepairReport, PySalvageReport, PyVerifyReport,
};
use crate::log::PyLog;
use crate::log::any_log::Format;
use crate::log::record::{PyDeed, PyMeta};
use crate::log::split::{PySplit, of_format};

// The signatures below show this number, because `help()` and the stub cannot show names.
const _: () = assert!(book::Options::DEED_BYTES_MAX == 4_294_967_296);

#[doc = doc!("Book")]
#[pyclass(frozen, extends = PyLog, name = "Book", module = "deedbook")]
pub struct PyBook {
    book: Held<Book>,
}

impl PyBook {
    fn limit(&self) -> Limit {
        Limit { format: "book", noun: "deed", bytes_max: self.book.options().deed_bytes_max }
    }
}

#[pymethods]
impl PyBook {
    #[doc = doc!("Book".open)]
    #[staticmethod]
    #[pyo3(signature = (path, mode="r", *, durability=None, recovery="valid", epoch=None,
                        layout=None, deed_bytes_max=4294967296, slow_sync=1.0,
                        lock_timeout=0.0, check="end", file_mode=0o644))]
    #[allow(clippy::too_many_arguments)]
    fn open(
        py: Python<'_>,
        #[pyo3(from_py_with = crate::common::fs_path::path)] path: PathBuf,
        mode: &str,
        #[pyo3(from_py_with = crate::common::durability::durability)] durability: Option<
            Durability,
        >,
        recovery: &str,
        #[pyo3(from_py_with = numbers::epoch)] epoch: Option<u64>,
        layout: Option<&str>,
        #[pyo3(from_py_with = numbers::deed_bytes_max)] deed_bytes_max: u64,
        slow_sync: f64,
        lock_timeout: f64,
        check: &str,
        #[pyo3(from_py_with = numbers::file_mode)] file_mode: u32,
    ) -> PyResult<Py<Self>> {
        let mode = crate::log::mode(py, mode)?;
        let options = Options::new()
            .durability(durability.unwrap_or(Options::default().durability))
            .recovery(recovery.parse().or_raise(py)?)
            .epoch(epoch)
            .layout(layout.map(str::parse).transpose().or_raise(py)?)
            .deed_bytes_max(deed_bytes_max)
            .slow_sync(seconds(py, "slow_sync", slow_sync)?)
            .lock_timeout(arguments::lock_timeout(py, lock_timeout)?)
            .check_all(arguments::check_all(py, check)?)
            .file_mode(file_mode);
        check_format(py, &path, "book")?;
        let book = py.detach(|| options.open(&path, mode)).or_raise(py)?;
        let class = PyClassInitializer::from(PyLog::new(book.clone()));
        Py::new(py, class.add_subclass(Self { book: Held::new(book) }))
    }

    #[doc = doc!("Book".create)]
    #[staticmethod]
    #[pyo3(signature = (path, *, durability=None, epoch=None, layout=None,
                        deed_bytes_max=4294967296, slow_sync=1.0, file_mode=0o644))]
    #[allow(clippy::too_many_arguments)]
    fn create(
        py: Python<'_>,
        #[pyo3(from_py_with = crate::common::fs_path::path)] path: PathBuf,
        #[pyo3(from_py_with = crate::common::durability::durability)] durability: Option<
            Durability,
        >,
        #[pyo3(from_py_with = numbers::epoch)] epoch: Option<u64>,
        layout: Option<&str>,
        #[pyo3(from_py_with = numbers::deed_bytes_max)] deed_bytes_max: u64,
        slow_sync: f64,
        #[pyo3(from_py_with = numbers::file_mode)] file_mode: u32,
    ) -> PyResult<Py<Self>> {
        let (mode, recovery) = ("x", "valid");
        Self::open(
            py,
            path,
            mode,
            durability,
            recovery,
            epoch,
            layout,
            deed_bytes_max,
            slow_sync,
            0.0,
            "end",
            file_mode,
        )
    }

    #[doc = doc!("Book".epoch)]
    #[getter]
    fn epoch(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| self.book.epoch()).or_raise(py)
    }

    #[doc = doc!("Book".last)]
    #[getter]
    fn last(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| self.book.last()).or_raise(py)
    }

    #[doc = doc!("Book".durable_last)]
    #[getter]
    fn durable_last(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        py.detach(|| self.book.durable_last()).or_raise(py)
    }

    #[doc = doc!("Book".append)]
    #[pyo3(signature = (payload, mug=0, *, sync=true))]
    fn append(
        &self,
        py: Python<'_>,
        payload: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = numbers::mug)] mug: u32,
        sync: bool,
    ) -> PyResult<u64> {
        let jam = bytes_of(payload, self.limit())?;
        if !sync {
            let mut batch = self.book.batch();
            batch.push(mug, jam.as_ref()).or_raise(py)?;
            return py.detach(|| self.book.append_unsynced(&batch)).or_raise(py);
        }
        let jam = jam.as_ref();
        py.detach(|| self.book.append(mug, jam)).or_raise(py)
    }

    #[doc = doc!("Book".commit)]
    #[pyo3(signature = (payload, mug=0))]
    fn commit(
        &self,
        py: Python<'_>,
        payload: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = numbers::mug)] mug: u32,
    ) -> PyResult<u64> {
        let jam = bytes_of(payload, self.limit())?;
        let jam = jam.as_ref();
        py.detach(|| self.book.commit(mug, jam)).or_raise(py)
    }

    #[doc = doc!("Book".append_from)]
    #[pyo3(signature = (file, size=None, *, mug=0))]
    fn append_from(
        &self,
        file: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = numbers::size)] size: Option<u64>,
        #[pyo3(from_py_with = numbers::mug)] mug: u32,
    ) -> PyResult<u64> {
        append_file(file, size, |size, file| self.book.append_from(mug, size, file))
    }

    #[doc = doc!("Book".reader)]
    fn reader<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = numbers::event)] event: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let reader = py.detach(|| self.book.jam_reader(event)).or_raise(py)?;
        PyPayloadParts::of_jam(py, reader)
    }

    #[doc = doc!("Book".append_many)]
    #[pyo3(signature = (payloads, mugs=None, *, atomic=false, event=None, epoch=None))]
    fn append_many(
        &self,
        payloads: &Bound<'_, PyAny>,
        mugs: Option<&Bound<'_, PyAny>>,
        atomic: bool,
        #[pyo3(from_py_with = numbers::event)] event: Option<u64>,
        #[pyo3(from_py_with = numbers::epoch)] epoch: Option<u64>,
    ) -> PyResult<PyPositions> {
        let asked = input::Batched { atomic, event, epoch };
        input::append_many(&*self.book, self.limit(), payloads, mugs, asked)
    }

    #[doc = doc!("Book".read)]
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
            return Ok(
                Bound::new(py, DeedRange::new(py, Box::new(self.book.clone()), slice)?)?.into_any()
            );
        }
        let event = event_of(py, &*self.book, key.extract()?)?;
        Ok(Bound::new(py, self.read(py, event.into())?)?.into_any())
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

    #[doc = doc!("Book".meta)]
    #[getter]
    fn meta(&self, py: Python<'_>) -> PyResult<PyMeta> {
        Ok(py.detach(|| self.book.meta()).or_raise(py)?.into())
    }

    #[doc = doc!("Book".save_meta)]
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

    #[doc = doc!("Book".verify)]
    #[staticmethod]
    #[pyo3(signature = (path, *, deed_bytes_max=4294967296, intact=None, progress=None))]
    fn verify(
        py: Python<'_>,
        #[pyo3(from_py_with = crate::common::fs_path::path)] path: PathBuf,
        #[pyo3(from_py_with = numbers::deed_bytes_max)] deed_bytes_max: u64,
        intact: Option<Vec<PyRef<'_, PySplit>>>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<PyVerifyReport> {
        check_format(py, &path, "book")?;
        let options = reading(deed_bytes_max);
        let intact = of_format(py, intact, Format::Book)?;
        let report = Progress::run(py, progress, |progress| {
            let step = |done, total| progress.call(done, total);
            options.verify_rest(&path, &intact, step)
        });
        report.map(|report| (&report).into())
    }

    #[doc = doc!("Book".repair)]
    #[staticmethod]
    #[pyo3(signature = (path, *, force=false, dry_run=false, accept_loss=false,
                        deed_bytes_max=4294967296))]
    fn repair(
        py: Python<'_>,
        #[pyo3(from_py_with = crate::common::fs_path::path)] path: PathBuf,
        force: bool,
        dry_run: bool,
        accept_loss: bool,
        #[pyo3(from_py_with = numbers::deed_bytes_max)] deed_bytes_max: u64,
    ) -> PyResult<PyRepairReport> {
        check_format(py, &path, "book")?;
        let options = reading(deed_bytes_max);
        let how = Repair { force, dry_run, accept_loss };
        py.detach(|| options.repair(&path, how)).or_raise(py).map(|report| (&report).into())
    }

    #[doc = doc!("Book".salvage)]
    #[staticmethod]
    #[pyo3(signature = (path, to, *, keep_numbers=false, deed_bytes_max=4294967296,
                        progress=None))]
    fn salvage(
        py: Python<'_>,
        #[pyo3(from_py_with = crate::common::fs_path::path)] path: PathBuf,
        #[pyo3(from_py_with = crate::common::fs_path::path)] to: PathBuf,
        keep_numbers: bool,
        #[pyo3(from_py_with = numbers::deed_bytes_max)] deed_bytes_max: u64,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<PySalvageReport> {
        check_format(py, &path, "book")?;
        let options = reading(deed_bytes_max);
        let report = Progress::run(py, progress, |progress| {
            let progress = |done, total| progress.call(done, total);
            match keep_numbers {
                true => options.salvage_keeping_numbers(&path, &to, progress),
                false => options.salvage_with(&path, &to, progress),
            }
        });
        report.map(|report| (&report).into())
    }

    #[doc = doc!("Book".convert)]
    #[staticmethod]
    #[pyo3(signature = (source, target, layout, *, deed_bytes_max=4294967296, progress=None))]
    fn convert(
        py: Python<'_>,
        #[pyo3(from_py_with = crate::common::fs_path::path)] source: PathBuf,
        #[pyo3(from_py_with = crate::common::fs_path::path)] target: PathBuf,
        layout: &str,
        #[pyo3(from_py_with = numbers::deed_bytes_max)] deed_bytes_max: u64,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<PyConvertReport> {
        let layout = layout.parse().or_raise(py)?;
        check_format(py, &source, "book")?;
        let options = reading(deed_bytes_max);
        let report = Progress::run(py, progress, |progress| {
            let step = |done, total| progress.call(done, total);
            options.convert(&source, &target, layout, step)
        });
        report.map(|report| (&report).into())
    }

    #[doc = doc!("Book".migrate_lmdb)]
    #[staticmethod]
    #[pyo3(signature = (source, dest, *, layout=None, epochs=None, dry_run=false,
                        deed_bytes_max=4294967296, progress=None))]
    #[allow(clippy::too_many_arguments)]
    fn migrate_lmdb(
        py: Python<'_>,
        #[pyo3(from_py_with = crate::common::fs_path::path)] source: PathBuf,
        #[pyo3(from_py_with = crate::common::fs_path::path)] dest: PathBuf,
        layout: Option<&str>,
        epochs: Option<Vec<u64>>,
        dry_run: bool,
        #[pyo3(from_py_with = numbers::deed_bytes_max)] deed_bytes_max: u64,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<PyLmdbMigration> {
        let layout = layout.map(str::parse).transpose().or_raise(py)?;
        let options = lmdb_options(layout, dry_run, deed_bytes_max).epochs(epochs);
        let report = Progress::run(py, progress, |progress| {
            options.migrate(&source, &dest, |done, all| progress.call(done, all))
        });
        report.map(|report| (&report).into())
    }

    #[doc = doc!("Book".export_lmdb)]
    #[staticmethod]
    #[pyo3(signature = (source, dest, *, dry_run=false, deed_bytes_max=4294967296, progress=None))]
    fn export_lmdb(
        py: Python<'_>,
        #[pyo3(from_py_with = crate::common::fs_path::path)] source: PathBuf,
        #[pyo3(from_py_with = crate::common::fs_path::path)] dest: PathBuf,
        dry_run: bool,
        #[pyo3(from_py_with = numbers::deed_bytes_max)] deed_bytes_max: u64,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<PyLmdbMigration> {
        let options = lmdb_options(None, dry_run, deed_bytes_max);
        let report = Progress::run(py, progress, |progress| {
            options.export(&source, &dest, |done, all| progress.call(done, all))
        });
        report.map(|report| (&report).into())
    }
}

/// Options for work on a book as a whole, which Ctrl-C ends.
pub fn reading(deed_bytes_max: u64) -> Options {
    let lock_timeout = arguments::interruptible(LockTimeout::default());
    Options::new().deed_bytes_max(deed_bytes_max).lock_timeout(lock_timeout)
}

fn lmdb_options(layout: Option<Layout>, dry_run: bool, deed_bytes_max: u64) -> lmdb::Options {
    lmdb::Options::new().book(reading(deed_bytes_max).layout(layout)).dry_run(dry_run)
}
