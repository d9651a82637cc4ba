//! The class `Pier`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use deedbook::book::pier::{Epoch, Pier};
use deedbook::book::{self, Meta, Options};
use deedbook::report::Repair;
use deedbook::{Durability, Error, OnCorrupt};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PySlice};

use crate::append::in_parts::{PyPayloadParts, append_file};
use crate::append::input;
use crate::append::payload::{Limit, bytes_of};
use crate::append::positions::PyPositions;
use crate::append::transaction::PyTransactions;
use crate::book::deeds::{Deeds, schema};
use crate::book::range::{DeedRange, event_of};
use crate::book::reports::{PyDroppedEpochs, PyEpoch, PyPierReport, PyPierSalvage};
use crate::common::arguments::{self, numbers, seconds};
use crate::common::detect::check_format;
use crate::common::durability;
use crate::common::errors::{OrRaise, invalid};
use crate::common::fs_path::FsPath;
use crate::common::handle::{Held, Owner, found, left, number_in};
use crate::common::progress::Progress;
use crate::common::reports::{PyRecoveryReport, PyRepairReport, PyStats};
use crate::log::any_log::{Format, How, bounds};
use crate::log::batches::{BatchStream, checks, on_corrupt, schema_of, stream_of};
use crate::log::iterators::{FollowIterator, PayloadIterator, RecordIterator};
use crate::log::record::{PyDeed, PyMeta};
use crate::log::split::PySplit;

#[doc = doc!("Pier")]
#[pyclass(frozen, name = "Pier", module = "deedbook")]
pub struct PyPier {
    pier: Held<Pier>,
    owner: Owner,
}

impl PyPier {
    fn limit(&self) -> Limit {
        Limit { format: "book", noun: "deed", bytes_max: self.pier.options().deed_bytes_max }
    }

    fn state(&self) -> deedbook::Result<String> {
        let epochs = self.pier.epochs()?.len();
        let plural = if epochs == 1 { "" } else { "s" };
        Ok(match self.pier.bounds()? {
            Some(bounds) => {
                format!("events {} to {}, {epochs} epoch{plural}", bounds.start(), bounds.end())
            }
            None => "empty".into(),
        })
    }
}

impl Drop for PyPier {
    fn drop(&mut self) {
        self.owner.warn_unclosed("Pier", self.pier.path(), self.pier.is_closed());
    }
}

#[pymethods]
impl PyPier {
    #[doc = doc!("Pier".open)]
    #[staticmethod]
    #[pyo3(signature = (path, mode="r", *, durability=None, recovery="valid", epoch=None,
                        epoch_part_bytes=None, deed_bytes_max=4294967296, slow_sync=1.0,
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
        #[pyo3(from_py_with = numbers::epoch_part_bytes)] epoch_part_bytes: Option<u64>,
        #[pyo3(from_py_with = numbers::deed_bytes_max)] deed_bytes_max: u64,
        slow_sync: f64,
        lock_timeout: f64,
        check: &str,
        #[pyo3(from_py_with = numbers::file_mode)] file_mode: u32,
    ) -> PyResult<Self> {
        let mode = crate::log::mode(py, mode)?;
        let options = Options::new()
            .durability(durability.unwrap_or(Options::default().durability))
            .recovery(recovery.parse().or_raise(py)?)
            .epoch(epoch)
            .epoch_part_bytes(epoch_part_bytes)
            .deed_bytes_max(deed_bytes_max)
            .slow_sync(seconds(py, "slow_sync", slow_sync)?)
            .lock_timeout(arguments::lock_timeout(py, lock_timeout)?)
            .check_all(arguments::check_all(py, check)?)
            .file_mode(file_mode);
        check_format(py, &path, "pier")?;
        let pier = py.detach(|| options.open_pier(&path, mode)).or_raise(py)?;
        Ok(Self { pier: Held::new(pier), owner: Owner::this_process() })
    }

    #[doc = doc!("Pier".create)]
    #[staticmethod]
    #[pyo3(signature = (path, *, durability=None, epoch=None, epoch_part_bytes=None,
                        deed_bytes_max=4294967296, slow_sync=1.0, file_mode=0o644))]
    #[allow(clippy::too_many_arguments)]
    fn create(
        py: Python<'_>,
        #[pyo3(from_py_with = crate::common::fs_path::path)] path: PathBuf,
        #[pyo3(from_py_with = crate::common::durability::durability)] durability: Option<
            Durability,
        >,
        #[pyo3(from_py_with = numbers::epoch)] epoch: Option<u64>,
        #[pyo3(from_py_with = numbers::epoch_part_bytes)] epoch_part_bytes: Option<u64>,
        #[pyo3(from_py_with = numbers::deed_bytes_max)] deed_bytes_max: u64,
        slow_sync: f64,
        #[pyo3(from_py_with = numbers::file_mode)] file_mode: u32,
    ) -> PyResult<Self> {
        let (mode, recovery) = ("x", "valid");
        Self::open(
            py,
            path,
            mode,
            durability,
            recovery,
            epoch,
            epoch_part_bytes,
            deed_bytes_max,
            slow_sync,
            0.0,
            "end",
            file_mode,
        )
    }

    #[doc = doc!("Pier".close)]
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.pier.close()).or_raise(py)
    }

    #[doc = doc!("Pier".__enter__)]
    fn __enter__(slf: Py<Self>, py: Python<'_>) -> PyResult<Py<Self>> {
        slf.get().last(py)?; // an error if it is closed
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
        !self.pier.is_closed()
    }

    #[doc = doc!("Pier".path)]
    #[getter]
    fn path(&self) -> FsPath {
        self.pier.path().into()
    }

    #[doc = doc!("Pier".log_path)]
    #[getter]
    fn log_path(&self) -> FsPath {
        self.pier.log_dir().into()
    }

    #[doc = doc!("Pier".mode)]
    #[getter]
    fn mode(&self) -> &'static str {
        crate::log::letter(self.pier.mode())
    }

    #[doc = doc!("Pier".closed)]
    #[getter]
    fn closed(&self) -> bool {
        self.pier.is_closed()
    }

    #[doc = doc!("Pier".durability)]
    #[getter]
    fn durability<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        durability::shown(py, self.pier.options().durability)
    }

    #[doc = doc!("Pier".recovery)]
    #[getter]
    fn recovery(&self, py: Python<'_>) -> PyResult<PyRecoveryReport> {
        Ok((&py.detach(|| self.pier.recovery()).or_raise(py)?).into())
    }

    #[doc = doc!("Pier".stats)]
    fn stats(&self, py: Python<'_>) -> PyResult<PyStats> {
        Ok((&py.detach(|| self.pier.stats()).or_raise(py)?).into())
    }

    #[doc = doc!("Pier".transactions)]
    #[getter]
    fn transactions(&self) -> PyTransactions {
        PyTransactions::of(Box::new(self.pier.clone()))
    }

    #[doc = doc!("Pier".epochs)]
    #[getter]
    fn epochs(&self, py: Python<'_>) -> PyResult<Vec<PyEpoch>> {
        let epochs = py.detach(|| self.pier.epochs()).or_raise(py)?;
        Ok(epochs.iter().map(PyEpoch::from).collect())
    }

    #[doc = doc!("Pier".bounds)]
    #[getter]
    fn bounds(&self, py: Python<'_>) -> PyResult<Option<(u64, u64)>> {
        let bounds = py.detach(|| self.pier.bounds()).or_raise(py)?;
        Ok(bounds.map(|bounds| (*bounds.start(), *bounds.end())))
    }

    #[doc = doc!("Pier".epoch)]
    #[getter]
    fn epoch(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| self.pier.epoch()).or_raise(py)
    }

    #[doc = doc!("Pier".last)]
    #[getter]
    fn last(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| self.pier.last()).or_raise(py)
    }

    #[doc = doc!("Pier".durable_last)]
    #[getter]
    fn durable_last(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        py.detach(|| self.pier.durable_last()).or_raise(py)
    }

    #[doc = doc!("Pier".roll)]
    fn roll(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| self.pier.roll()).or_raise(py)
    }

    #[doc = doc!("Pier".retain)]
    #[pyo3(signature = (*, max_bytes=None, max_age=None, consumed=false, dry_run=false))]
    fn retain(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::max_bytes)] max_bytes: Option<u64>,
        max_age: Option<f64>,
        consumed: bool,
        dry_run: bool,
    ) -> PyResult<PyDroppedEpochs> {
        let retention = arguments::retention(py, max_bytes, ("max_age", max_age), consumed)?;
        let ask = if dry_run { Pier::retainable } else { Pier::retain };
        let work = || {
            let dropped = ask(&self.pier, &retention)?;
            let last = dropped.last().map(|epoch| epoch.number);
            let stays = |epoch: &&Epoch| last.is_none_or(|last| epoch.number > last);
            let first = self.pier.epochs()?.iter().find(stays).map_or(0, |epoch| epoch.number);
            Ok((dropped, first))
        };
        Ok(PyDroppedEpochs::from(&py.detach(work).or_raise(py)?))
    }

    #[doc = doc!("Pier".consumers)]
    fn consumers(&self, py: Python<'_>) -> PyResult<BTreeMap<String, u64>> {
        py.detach(|| self.pier.consumers()).or_raise(py)
    }

    #[doc = doc!("Pier".set_consumer)]
    fn set_consumer(
        &self,
        py: Python<'_>,
        name: &str,
        #[pyo3(from_py_with = numbers::event)] event: u64,
    ) -> PyResult<()> {
        py.detach(|| self.pier.set_consumer(name, event)).or_raise(py)
    }

    #[doc = doc!("Pier".remove_consumer)]
    fn remove_consumer(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        py.detach(|| self.pier.remove_consumer(name)).or_raise(py)
    }

    #[doc = doc!("Pier".append)]
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
            let mut batch = self.pier.batch();
            batch.push(mug, jam.as_ref()).or_raise(py)?;
            return py.detach(|| self.pier.append_unsynced(&batch)).or_raise(py);
        }
        let jam = jam.as_ref();
        py.detach(|| self.pier.append(mug, jam)).or_raise(py)
    }

    #[doc = doc!("Pier".append_from)]
    #[pyo3(signature = (file, size=None, *, mug=0))]
    fn append_from(
        &self,
        file: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = numbers::size)] size: Option<u64>,
        #[pyo3(from_py_with = numbers::mug)] mug: u32,
    ) -> PyResult<u64> {
        append_file(file, size, |size, file| self.pier.append_from(mug, size, file))
    }

    #[doc = doc!("Pier".commit)]
    #[pyo3(signature = (payload, mug=0))]
    fn commit(
        &self,
        py: Python<'_>,
        payload: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = numbers::mug)] mug: u32,
    ) -> PyResult<u64> {
        let jam = bytes_of(payload, self.limit())?;
        let jam = jam.as_ref();
        py.detach(|| self.pier.commit(mug, jam)).or_raise(py)
    }

    #[doc = doc!("Pier".append_many)]
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
        input::append_many(&*self.pier, self.limit(), payloads, mugs, asked)
    }

    #[doc = doc!("Pier".sync)]
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.pier.sync()).or_raise(py)
    }

    #[doc = doc!("Pier".wait_durable)]
    #[pyo3(signature = (position, /))]
    fn wait_durable(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::position)] position: u64,
    ) -> PyResult<()> {
        py.detach(|| self.pier.wait_durable(position)).or_raise(py)
    }

    #[doc = doc!("Pier".refresh)]
    fn refresh(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| self.pier.refresh()).or_raise(py)
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(py.detach(|| self.pier.len()).or_raise(py)? as usize)
    }

    #[doc = doc!("Pier".reader)]
    fn reader<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = numbers::event)] event: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let reader = py.detach(|| self.pier.jam_reader(event)).or_raise(py)?;
        PyPayloadParts::of_jam(py, reader)
    }

    #[doc = doc!("Pier".read)]
    fn read(&self, py: Python<'_>, event: i128) -> PyResult<PyDeed> {
        // No log has an event 0: 0 stands for the events below, and the last u64 for the events above.
        let event = event.clamp(0, u64::MAX.into()) as u64;
        let deed = py.detach(|| self.pier.read(event)).or_raise(py)?;
        Ok(PyDeed::build(py, deed.event, deed.mug, &deed.jam))
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(slice) = key.cast::<PySlice>() {
            let range = DeedRange::new(py, Box::new(self.pier.clone()), slice)?;
            return Ok(Bound::new(py, range)?.into_any());
        }
        let event = event_of(py, &*self.pier, key.extract()?)?;
        Ok(Bound::new(py, self.read(py, event.into())?)?.into_any())
    }

    fn __contains__(&self, py: Python<'_>, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        if let Ok(deed) = item.cast::<PyDeed>() {
            let Some(event) = deed.get().event else {
                return Ok(false);
            };
            let there = found(py, py.detach(|| self.pier.read(event)))?;
            return Ok(there.is_some_and(|there| deed.get().holds(py, there.mug, &there.jam)));
        }
        let event = number_in(item, "an event number or a Deed")?;
        let bounds = py.detach(|| self.pier.bounds()).or_raise(py)?;
        Ok(event.zip(bounds).is_some_and(|(event, bounds)| bounds.contains(&event)))
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<RecordIterator> {
        self.iter(py, None, None, false, "raise")
    }

    #[doc = doc!("Pier".__reversed__)]
    fn __reversed__(&self, py: Python<'_>) -> PyResult<RecordIterator> {
        self.iter(py, None, None, true, "raise")
    }

    #[doc = doc!("Pier".iter)]
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
            true => self.pier.walk_back((start, stop)),
            false => self.pier.walk((start, stop), on_corrupt),
        });
        Ok(RecordIterator::new(walk.or_raise(py)?))
    }

    #[doc = doc!("Pier".payloads)]
    #[pyo3(signature = (start=None, stop=None))]
    fn payloads(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::start)] start: Option<u64>,
        #[pyo3(from_py_with = numbers::stop)] stop: Option<u64>,
    ) -> PyResult<PayloadIterator> {
        let walk = py.detach(|| self.pier.walk((start, stop), OnCorrupt::Raise));
        Ok(PayloadIterator::new(walk.or_raise(py)?))
    }

    #[doc = doc!("Pier".follow)]
    #[pyo3(signature = (start=None, *, timeout=None))]
    fn follow(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::start)] start: Option<u64>,
        timeout: Option<f64>,
    ) -> PyResult<FollowIterator> {
        let timeout = timeout.map(|timeout| seconds(py, "timeout", timeout)).transpose()?;
        let follow = py.detach(|| self.pier.follow(start)).or_raise(py)?;
        Ok(FollowIterator::new(Box::new(follow), timeout))
    }

    #[doc = doc!("Pier".batches)]
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
        Ok(BatchStream::new(self.pier.batches(py, (start, stop), how)?))
    }

    #[doc = doc!("Pier".splits)]
    #[pyo3(signature = (split_bytes=67108864, start=None, stop=None))]
    fn splits(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::split_bytes)] split_bytes: u64,
        #[pyo3(from_py_with = numbers::start)] start: Option<u64>,
        #[pyo3(from_py_with = numbers::stop)] stop: Option<u64>,
    ) -> PyResult<Vec<PySplit>> {
        let splits =
            py.detach(|| self.pier.splits(split_bytes, bounds(start, stop))).or_raise(py)?;
        Ok(splits.into_iter().map(|split| PySplit { format: Format::Book, split }).collect())
    }

    #[doc = doc!("Pier".__arrow_c_stream__)]
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        stream_of(py, self.pier.batches(py, (None, None), How::default())?, requested_schema)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_of(py, &*schema().or_raise(py)?)
    }

    #[doc = doc!("Pier".meta)]
    #[getter]
    fn meta(&self, py: Python<'_>) -> PyResult<PyMeta> {
        Ok(py.detach(|| self.pier.meta()).or_raise(py)?.into())
    }

    #[doc = doc!("Pier".save_meta)]
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
        py.detach(|| self.pier.save_meta(&meta)).or_raise(py)
    }

    #[doc = doc!("Pier".verify)]
    #[staticmethod]
    #[pyo3(signature = (path, *, deed_bytes_max=4294967296, progress=None))]
    fn verify(
        py: Python<'_>,
        #[pyo3(from_py_with = crate::common::fs_path::path)] path: PathBuf,
        #[pyo3(from_py_with = numbers::deed_bytes_max)] deed_bytes_max: u64,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<PyPierReport> {
        check_format(py, &path, "pier")?;
        let options = crate::book::reading(deed_bytes_max);
        let report = Progress::run(py, progress, |progress| {
            options.verify_pier_with(&path, |done, total| progress.call(done, total))
        });
        report.map(|report| (&report).into())
    }

    #[doc = doc!("Pier".repair)]
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
        check_format(py, &path, "pier")?;
        let options = crate::book::reading(deed_bytes_max);
        let how = Repair { force, dry_run, accept_loss };
        py.detach(|| options.repair_pier(&path, how)).or_raise(py).map(|report| (&report).into())
    }

    #[doc = doc!("Pier".salvage)]
    #[staticmethod]
    #[pyo3(signature = (path, to, *, deed_bytes_max=4294967296, progress=None))]
    fn salvage(
        py: Python<'_>,
        #[pyo3(from_py_with = crate::common::fs_path::path)] path: PathBuf,
        #[pyo3(from_py_with = crate::common::fs_path::path)] to: PathBuf,
        #[pyo3(from_py_with = numbers::deed_bytes_max)] deed_bytes_max: u64,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<PyPierSalvage> {
        check_format(py, &path, "pier")?;
        // Another log there would get epochs next to its files.
        check_format(py, &to, "pier")?;
        let options = crate::book::reading(deed_bytes_max);
        let report = Progress::run(py, progress, |progress| {
            options.salvage_pier_with(&path, &to, |done, total| progress.call(done, total))
        });
        report.map(|report| (&report).into())
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let state = py.detach(|| self.state()).unwrap_or_else(|_: Error| self.owner.absent());
        let durability = durability::in_repr(py, self.pier.options().durability);
        let (path, mode) = (self.pier.path(), self.mode());
        format!("<deedbook.Pier {path:?}, {state}, mode {mode:?}, durability {durability}>")
    }
}

const _: () = assert!(book::Options::DEED_BYTES_MAX == 4_294_967_296);
