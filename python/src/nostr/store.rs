//! The class `EventStore`: Nostr events in pages.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use deedbook::nostr::{self, Batches, Event, EventStore, ImportOptions, Include, Options, Outcome};
use deedbook::report::Repair;
use deedbook::{Durability, Error, ErrorKind, Mode, OnCorrupt};
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use crate::append::transaction::PyTransactions;
use crate::common::arguments::{self, numbers, seconds};
use crate::common::detect::check_format;
use crate::common::durability;
use crate::common::errors::OrRaise;
use crate::common::fs_path::FsPath;
use crate::common::handle::{Held, Owner, left};
use crate::common::logging::check_signals;
use crate::common::progress::Progress;
use crate::common::reports::PyStats;
use crate::log::any_log::Format;
use crate::log::batches::{BatchStream, checks, on_corrupt, schema_of, stream_of};
use crate::log::iterators::PayloadIterator;
use crate::log::split::{PySplit, of_one};
use crate::nostr::arguments as words;
use crate::nostr::columns::{self, Picked};
use crate::nostr::event::{Place, PyEvent, event_of, flags_of, id_of, location_of};
use crate::nostr::files::{Source, Target, refuse_same};
use crate::nostr::iterator::{self, PyEventIterator};
use crate::nostr::reports::{
    PyCompactionReport, PyDamagedPart, PyEventCensus, PyEventOutcome, PyEventStoreOpening,
    PyEventStorePartReport, PyEventStoreRepair, PyEventStoreReport, PyEventStoreSalvage,
    PyExportReport, PyFragmentation, PyImportReport, damaged,
};

/// The limits of a part of an iterable's events, in events and bytes. Each part is appended at
/// once.
pub const PART_EVENTS: usize = 1000;
const PART_BYTES: usize = 4 << 20;

// The signatures below show these numbers, because `help()` and the stub cannot show names.
const _: () = assert!(deedbook::nostr::Options::RECORD_BYTES_MAX == 100_000_000);

#[doc = doc!("EventStore")]
#[pyclass(frozen, name = "EventStore", module = "deedbook")]
pub struct PyEventStore {
    store: Held<EventStore>,
    owner: Owner,
}

pub fn size_of(event: &Event) -> usize {
    let tags = event.tags.iter().flatten().map(String::len);
    event.content.len() + tags.sum::<usize>()
}

impl PyEventStore {
    fn find(&self, py: Python<'_>, id: &Bound<'_, PyAny>) -> PyResult<Option<PyEvent>> {
        let id = id_of(id)?;
        Ok(py.detach(|| self.store.find(&id)).or_raise(py)?.map(PyEvent::from))
    }

    /// By default the time of a batch; the batch's bytes may be full earlier.
    fn durability_of(&self) -> Durability {
        let options = self.store.options();
        let interval = options.batch_interval.unwrap_or_default();
        options.durability.unwrap_or(Durability::Interval(interval))
    }

    fn check_open(&self) -> deedbook::Result<()> {
        match self.store.is_closed() {
            false => Ok(()),
            true => {
                let error = Error::new(ErrorKind::Closed, "the store is closed").of("nostr");
                Err(error.at(self.store.path()))
            }
        }
    }
}

impl Drop for PyEventStore {
    fn drop(&mut self) {
        self.owner.warn_unclosed("EventStore", self.store.path(), self.store.is_closed());
    }
}

#[pymethods]
impl PyEventStore {
    #[doc = doc!("EventStore".open)]
    #[staticmethod]
    #[pyo3(signature = (path, mode="r", *, durability=None, recovery="valid", batch_interval=None,
                        batch_bytes=None, page_bytes=None, segment_bytes=None,
                        wal_segment_bytes=1_073_741_824, checkpoint_bytes=None,
                        checkpoint_interval=None, compaction_ratio=None, auto_compact=true,
                        archive=None, retain_bytes=None, retain_age=None, retain_kinds=None,
                        checksums=true, event_bytes_max=100_000_000,
                        history=None, mapped_reads=false, slow_sync=1.0, lock_timeout=0.0,
                        check="end", file_mode=0o600))]
    #[allow(clippy::too_many_arguments)]
    fn open(
        py: Python<'_>,
        #[pyo3(from_py_with = crate::common::fs_path::path)] path: PathBuf,
        mode: &str,
        #[pyo3(from_py_with = durability::durability)] durability: Option<Durability>,
        recovery: &str,
        batch_interval: Option<f64>,
        #[pyo3(from_py_with = numbers::batch_bytes)] batch_bytes: Option<u64>,
        #[pyo3(from_py_with = numbers::page_bytes)] page_bytes: Option<u32>,
        #[pyo3(from_py_with = numbers::segment_bytes)] segment_bytes: Option<u64>,
        #[pyo3(from_py_with = numbers::wal_segment_bytes)] wal_segment_bytes: u64,
        #[pyo3(from_py_with = numbers::checkpoint_bytes)] checkpoint_bytes: Option<u64>,
        checkpoint_interval: Option<f64>,
        compaction_ratio: Option<f64>,
        auto_compact: bool,
        archive: Option<Py<PyAny>>,
        #[pyo3(from_py_with = numbers::retain_bytes)] retain_bytes: Option<u64>,
        retain_age: Option<f64>,
        retain_kinds: Option<BTreeMap<u16, f64>>,
        checksums: bool,
        #[pyo3(from_py_with = numbers::event_bytes_max)] event_bytes_max: u32,
        history: Option<&str>,
        mapped_reads: bool,
        slow_sync: f64,
        lock_timeout: f64,
        check: &str,
        #[pyo3(from_py_with = numbers::file_mode)] file_mode: u32,
    ) -> PyResult<Self> {
        let mode = crate::log::mode(py, mode)?;
        let mut options = Options::new();
        options.durability = durability;
        options.history = history.map(|word| words::history(py, word)).transpose()?;
        let time = |name, time: Option<f64>| time.map(|time| seconds(py, name, time)).transpose();
        (options.page_bytes, options.segment_bytes) = (page_bytes, segment_bytes);
        options.batch_interval = time("batch_interval", batch_interval)?;
        options.checkpoint_interval = time("checkpoint_interval", checkpoint_interval)?;
        (options.batch_bytes, options.checkpoint_bytes) = (batch_bytes, checkpoint_bytes);
        options.compaction_ratio = compaction_ratio;
        if retain_bytes.is_some() || retain_age.is_some() {
            let age = ("retain_age", retain_age);
            options = options.retention([], arguments::retention(py, retain_bytes, age, false)?);
        }
        for (kind, age) in retain_kinds.unwrap_or_default() {
            let rule = arguments::retention(py, None, ("retain_kinds", Some(age)), false)?;
            options = options.retention([kind], rule);
        }
        if let Some(callback) = archive {
            options = options.archive(arguments::archive(callback));
        }
        let options = options
            .recovery(recovery.parse().or_raise(py)?)
            .wal_segment_bytes(wal_segment_bytes)
            .auto_compact(auto_compact)
            .checksums(checksums)
            .event_bytes_max(event_bytes_max)
            .mapped_reads(mapped_reads)
            .slow_sync(seconds(py, "slow_sync", slow_sync)?)
            .lock_timeout(arguments::lock_timeout(py, lock_timeout)?)
            .check_all(arguments::check_all(py, check)?)
            .file_mode(file_mode);
        check_format(py, &path, "nostr")?;
        let store = py.detach(|| options.open(&path, mode)).or_raise(py)?;
        Ok(Self { store: Held::new(store), owner: Owner::this_process() })
    }

    #[doc = doc!("EventStore".create)]
    #[staticmethod]
    #[pyo3(signature = (path, *, durability=None, batch_interval=None, batch_bytes=None,
                        page_bytes=None, segment_bytes=None,
                        wal_segment_bytes=1_073_741_824, checkpoint_bytes=None,
                        checkpoint_interval=None, compaction_ratio=None, auto_compact=true,
                        archive=None, retain_bytes=None, retain_age=None, retain_kinds=None,
                        checksums=true, event_bytes_max=100_000_000,
                        history=None, mapped_reads=false, slow_sync=1.0,
                        file_mode=0o600))]
    #[allow(clippy::too_many_arguments)]
    fn create(
        py: Python<'_>,
        #[pyo3(from_py_with = crate::common::fs_path::path)] path: PathBuf,
        #[pyo3(from_py_with = durability::durability)] durability: Option<Durability>,
        batch_interval: Option<f64>,
        #[pyo3(from_py_with = numbers::batch_bytes)] batch_bytes: Option<u64>,
        #[pyo3(from_py_with = numbers::page_bytes)] page_bytes: Option<u32>,
        #[pyo3(from_py_with = numbers::segment_bytes)] segment_bytes: Option<u64>,
        #[pyo3(from_py_with = numbers::wal_segment_bytes)] wal_segment_bytes: u64,
        #[pyo3(from_py_with = numbers::checkpoint_bytes)] checkpoint_bytes: Option<u64>,
        checkpoint_interval: Option<f64>,
        compaction_ratio: Option<f64>,
        auto_compact: bool,
        archive: Option<Py<PyAny>>,
        #[pyo3(from_py_with = numbers::retain_bytes)] retain_bytes: Option<u64>,
        retain_age: Option<f64>,
        retain_kinds: Option<BTreeMap<u16, f64>>,
        checksums: bool,
        #[pyo3(from_py_with = numbers::event_bytes_max)] event_bytes_max: u32,
        history: Option<&str>,
        mapped_reads: bool,
        slow_sync: f64,
        #[pyo3(from_py_with = numbers::file_mode)] file_mode: u32,
    ) -> PyResult<Self> {
        Self::open(
            py,
            path,
            "x",
            durability,
            "valid",
            batch_interval,
            batch_bytes,
            page_bytes,
            segment_bytes,
            wal_segment_bytes,
            checkpoint_bytes,
            checkpoint_interval,
            compaction_ratio,
            auto_compact,
            archive,
            retain_bytes,
            retain_age,
            retain_kinds,
            checksums,
            event_bytes_max,
            history,
            mapped_reads,
            slow_sync,
            0.0,
            "end",
            file_mode,
        )
    }

    #[doc = doc!("EventStore".repair)]
    #[staticmethod]
    #[pyo3(signature = (path, *, force=false, dry_run=false, accept_loss=false,
                        event_bytes_max=100_000_000))]
    fn repair(
        py: Python<'_>,
        #[pyo3(from_py_with = crate::common::fs_path::path)] path: PathBuf,
        force: bool,
        dry_run: bool,
        accept_loss: bool,
        #[pyo3(from_py_with = numbers::event_bytes_max)] event_bytes_max: u32,
    ) -> PyResult<PyEventStoreRepair> {
        let options = Options::new().event_bytes_max(event_bytes_max);
        let may = Repair { force, dry_run, accept_loss };
        Ok((&py.detach(|| options.repair(&path, may)).or_raise(py)?).into())
    }

    #[doc = doc!("EventStore".salvage)]
    #[staticmethod]
    #[pyo3(signature = (path, to, *, page_bytes=None, segment_bytes=None,
                        checksums=true, event_bytes_max=100_000_000, progress=None))]
    #[allow(clippy::too_many_arguments)]
    fn salvage(
        py: Python<'_>,
        #[pyo3(from_py_with = crate::common::fs_path::path)] path: PathBuf,
        #[pyo3(from_py_with = crate::common::fs_path::path)] to: PathBuf,
        #[pyo3(from_py_with = numbers::page_bytes)] page_bytes: Option<u32>,
        #[pyo3(from_py_with = numbers::segment_bytes)] segment_bytes: Option<u64>,
        checksums: bool,
        #[pyo3(from_py_with = numbers::event_bytes_max)] event_bytes_max: u32,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<PyEventStoreSalvage> {
        let mut options = Options::new().checksums(checksums).event_bytes_max(event_bytes_max);
        (options.page_bytes, options.segment_bytes) = (page_bytes, segment_bytes);
        check_format(py, &to, "nostr")?;
        let report = Progress::run(py, progress, |progress| {
            options.salvage_with(&path, &to, |done, total| progress.call(done, total))
        })?;
        Ok((&report).into())
    }

    #[doc = doc!("EventStore".append)]
    fn append(&self, py: Python<'_>, event: &Bound<'_, PyAny>) -> PyResult<PyEventOutcome> {
        let event = event_of(event)?;
        let outcome = py.detach(|| self.store.append(&event)).or_raise(py)?;
        Ok((&outcome).into())
    }

    #[doc = doc!("EventStore".append_many)]
    fn append_many(
        &self,
        py: Python<'_>,
        events: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<PyEventOutcome>> {
        let mut outcomes = Vec::new();
        let mut part = Vec::new();
        let mut bytes = 0;
        let mut store = |part: &mut Vec<Event>| {
            let stored: Vec<Outcome> = py.detach(|| self.store.append_many(part)).or_raise(py)?;
            outcomes.extend(stored.iter().map(PyEventOutcome::from));
            part.clear();
            check_signals(py)
        };
        for event in events.try_iter()? {
            // Events before an impossible one are stored.
            let event = match event.and_then(|event| event_of(&event)) {
                Ok(event) => event,
                Err(raised) => return store(&mut part).and(Err(raised)),
            };
            bytes += size_of(&event);
            part.push(event);
            if part.len() >= PART_EVENTS || bytes >= PART_BYTES {
                bytes = 0;
                store(&mut part)?;
            }
        }
        store(&mut part)?;
        Ok(outcomes)
    }

    // A call without an event, the former form, gets an error that names the new calls.
    #[doc = doc!("EventStore".commit)]
    #[pyo3(signature = (event=None), text_signature = "($self, event)")]
    fn commit(&self, py: Python<'_>, event: Option<&Bound<'_, PyAny>>) -> PyResult<PyEventOutcome> {
        let gone =
            "EventStore.commit() is gone: sync() makes all durable, commit(event) appends one";
        let outcome = self.append(py, event.ok_or_else(|| PyAttributeError::new_err(gone))?)?;
        self.sync(py)?;
        Ok(outcome)
    }

    #[doc = doc!("EventStore".sync)]
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.store.sync()).or_raise(py)
    }

    #[doc = doc!("EventStore".checkpoint)]
    fn checkpoint(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.store.checkpoint()).or_raise(py)
    }

    #[doc = doc!("EventStore".get)]
    fn get(&self, py: Python<'_>, id: &Bound<'_, PyAny>) -> PyResult<Option<PyEvent>> {
        match id.cast::<PyTuple>() {
            Ok(location) => self.read(py, location.extract()?).map(Some),
            Err(_) => self.find(py, id),
        }
    }

    #[doc = doc!("EventStore".__getitem__)]
    fn __getitem__(&self, py: Python<'_>, location: Place) -> PyResult<PyEvent> {
        self.read(py, location)
    }

    fn __contains__(&self, py: Python<'_>, id: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.find(py, id)?.is_some())
    }

    #[doc = doc!("EventStore".read)]
    fn read(&self, py: Python<'_>, location: Place) -> PyResult<PyEvent> {
        Ok(py.detach(|| self.store.read(location_of(location))).or_raise(py)?.into())
    }

    #[doc = doc!("EventStore".set_flags)]
    #[pyo3(signature = (location, *, deleted=false, replaced=false))]
    fn set_flags(
        &self,
        py: Python<'_>,
        location: Place,
        deleted: bool,
        replaced: bool,
    ) -> PyResult<()> {
        let (location, flags) = (location_of(location), flags_of(deleted, replaced));
        py.detach(|| self.store.set_flags(location, flags)).or_raise(py)
    }

    #[doc = doc!("EventStore".iter)]
    #[pyo3(signature = (*, reverse=false, include="live", on_corrupt="raise"))]
    fn iter(
        &self,
        py: Python<'_>,
        reverse: bool,
        include: &str,
        on_corrupt: &str,
    ) -> PyResult<PyEventIterator> {
        let include = words::include(py, include)?;
        let on_corrupt = self::on_corrupt(py, on_corrupt)?;
        let events = py.detach(|| match reverse {
            true => self.store.iter_reverse(include, on_corrupt),
            false => self.store.iter(include, on_corrupt),
        });
        Ok(PyEventIterator::new(events.or_raise(py)?))
    }

    #[doc = doc!("EventStore".payloads)]
    fn payloads(&self, py: Python<'_>) -> PyResult<PayloadIterator> {
        let events = py.detach(|| self.store.iter(Include::Live, OnCorrupt::Raise));
        Ok(iterator::payloads(events.or_raise(py)?))
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<PyEventIterator> {
        self.iter(py, false, "live", "raise")
    }

    #[doc = doc!("EventStore".__reversed__)]
    fn __reversed__(&self, py: Python<'_>) -> PyResult<PyEventIterator> {
        self.iter(py, true, "live", "raise")
    }

    #[doc = doc!("EventStore".batches)]
    #[pyo3(signature = (*, columns=None, batch_rows=65536, batch_bytes=2097152, include="live",
                        filter=None, on_corrupt="raise", verify="crc"))]
    #[allow(clippy::too_many_arguments)]
    fn batches(
        &self,
        py: Python<'_>,
        columns: Option<Vec<String>>,
        #[pyo3(from_py_with = numbers::batch_rows)] batch_rows: usize,
        #[pyo3(from_py_with = numbers::batch_bytes)] batch_bytes: usize,
        include: &str,
        filter: Option<&Bound<'_, PyAny>>,
        on_corrupt: &str,
        verify: &str,
    ) -> PyResult<BatchStream> {
        let picked = Picked::new(py, columns, (batch_rows, batch_bytes), include, filter)?;
        let picked = picked.with_check(checks(py, verify)?);
        let on_corrupt = self::on_corrupt(py, on_corrupt)?;
        let batches = columns::of_store(py, &self.store, on_corrupt, picked)?;
        Ok(BatchStream::new(Box::new(batches)))
    }

    #[doc = doc!("EventStore".splits)]
    #[pyo3(signature = (split_bytes=67_108_864))]
    fn splits(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::split_bytes)] split_bytes: u64,
    ) -> PyResult<Vec<PySplit>> {
        let splits = py.detach(|| self.store.splits(split_bytes)).or_raise(py)?;
        Ok(splits.into_iter().map(|split| PySplit { format: Format::Nostr, split }).collect())
    }

    #[doc = doc!("EventStore".__arrow_c_stream__)]
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let picked = Picked::default();
        let batches = columns::of_store(py, &self.store, OnCorrupt::Raise, picked)?;
        stream_of(py, Box::new(batches), requested_schema)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_of(py, &*Batches::schema_of(Batches::DEFAULT).or_raise(py)?)
    }

    #[doc = doc!("EventStore".query)]
    #[pyo3(signature = (filter, *, on_corrupt="raise"))]
    fn query(
        &self,
        py: Python<'_>,
        filter: &Bound<'_, PyAny>,
        on_corrupt: &str,
    ) -> PyResult<PyEventIterator> {
        let filters = words::filters(filter)?;
        let on_corrupt = self::on_corrupt(py, on_corrupt)?;
        let answer = Progress::run(py, None, |progress| {
            self.store.query_with(&filters, on_corrupt, &mut || progress.call(0, 0))
        })?;
        Ok(PyEventIterator::of_answer(answer))
    }

    #[doc = doc!("EventStore".import_json)]
    #[pyo3(signature = (source, *, check="id", aside=None, stop_at_bad=false, after=None,
                        progress=None))]
    #[allow(clippy::too_many_arguments)]
    fn import_json(
        &self,
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        check: &str,
        aside: Option<&Bound<'_, PyAny>>,
        stop_at_bad: bool,
        after: Option<PyImportReport>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<PyImportReport> {
        let mut options = ImportOptions::new()
            .check(words::check(py, check)?)
            .stop_at_bad(stop_at_bad)
            .after(after.map(PyImportReport::into_report).unwrap_or_default());
        if let Some(aside) = aside {
            refuse_same(source, aside)?;
        }
        let mut aside = aside.map(|aside| Target::open(aside, true)).transpose()?;
        let source = Source::open(source)?;
        if let Some(name) = source.name(py)? {
            options.source = name;
        }
        let mut lines = source.lines(py);
        let imported = Progress::run(py, progress, |progress| {
            let aside = aside.as_mut().map(|aside| aside as &mut dyn Write);
            self.store.import(&mut lines, &options, aside, &mut |report| {
                progress.tell(|py, callback| callback.call1(py, (PyImportReport::from(report),)))
            })
        });
        let closed = aside.map_or(Ok(()), |aside| aside.close(py, true)).and(source.close(py));
        let report = imported?;
        closed?;
        Ok((&report).into())
    }

    #[doc = doc!("EventStore".export_json)]
    #[pyo3(signature = (target, *, include="live", on_corrupt="raise", progress=None))]
    fn export_json(
        &self,
        py: Python<'_>,
        target: &Bound<'_, PyAny>,
        include: &str,
        on_corrupt: &str,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<PyExportReport> {
        let include = words::include(py, include)?;
        let on_corrupt = self::on_corrupt(py, on_corrupt)?;
        self.check_open().or_raise(py)?;
        let mut target = Target::open(target, false)?;
        let exported = Progress::run(py, progress, |progress| {
            self.store.export(&mut target, include, on_corrupt, &mut |events| {
                progress.tell(|py, callback| callback.call1(py, (events,)))
            })
        });
        let closed = target.close(py, exported.is_ok());
        let report = exported?;
        closed?;
        Ok((&report).into())
    }

    #[doc = doc!("EventStore".verify)]
    #[staticmethod]
    #[pyo3(signature = (path, *, check="id", event_bytes_max=100_000_000, mapped_reads=false,
                        progress=None))]
    fn verify(
        py: Python<'_>,
        #[pyo3(from_py_with = crate::common::fs_path::path)] path: PathBuf,
        check: &str,
        #[pyo3(from_py_with = numbers::event_bytes_max)] event_bytes_max: u32,
        mapped_reads: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<PyEventStoreReport> {
        let check = words::check(py, check)?;
        check_format(py, &path, "nostr")?;
        let options = Options::new().event_bytes_max(event_bytes_max).mapped_reads(mapped_reads);
        let report = Progress::run(py, progress, |progress| {
            let store = options.open(&path, Mode::Read)?;
            store.verify_with(check, &mut |done, total| progress.call(done, total))
        })?;
        Ok((&report).into())
    }

    #[doc = doc!("EventStore".verify_log)]
    fn verify_log(&self, py: Python<'_>) -> PyResult<Vec<PyDamagedPart>> {
        Ok(damaged(&py.detach(|| self.store.verify_log()).or_raise(py)?))
    }

    #[doc = doc!("EventStore".segments)]
    #[getter]
    fn segments(&self, py: Python<'_>) -> PyResult<Vec<(u32, u64)>> {
        py.detach(|| self.store.segments()).or_raise(py)
    }

    #[doc = doc!("EventStore".verify_part)]
    #[staticmethod]
    #[pyo3(signature = (part, *, check="id", progress=None))]
    fn verify_part(
        py: Python<'_>,
        part: &PySplit,
        check: &str,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<PyEventStorePartReport> {
        let check = words::check(py, check)?;
        let part = of_one(py, part, Format::Nostr)?;
        let report = Progress::run(py, progress, |progress| {
            let step = &mut |done, total| progress.call(done, total);
            EventStore::verify_part(part, &Options::default(), check, step)
        })?;
        Ok((&report).into())
    }

    #[doc = doc!("EventStore".compact)]
    #[pyo3(signature = (ratio=None, *, dry_run=false, progress=None))]
    fn compact(
        &self,
        py: Python<'_>,
        ratio: Option<f64>,
        dry_run: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<PyCompactionReport> {
        let report = Progress::run(py, progress, |progress| {
            let step = &mut |done, total| progress.call(done, total);
            self.store.compact_with(ratio, dry_run, step)
        })?;
        Ok((&report).into())
    }

    #[doc = doc!("EventStore".retain)]
    #[pyo3(signature = (*, max_bytes=None, max_age=None, kinds=None, dry_run=false,
                        progress=None))]
    fn retain(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::max_bytes)] max_bytes: Option<u64>,
        max_age: Option<f64>,
        kinds: Option<Vec<u16>>,
        dry_run: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<u64> {
        let retention = arguments::retention(py, max_bytes, ("max_age", max_age), false)?;
        let kinds = kinds.unwrap_or_default();
        Progress::run(py, progress, |progress| {
            self.store.retain_with(&retention, &kinds, dry_run, &mut |events| {
                progress.tell(|py, callback| callback.call1(py, (events,)))
            })
        })
    }

    #[doc = doc!("EventStore".fragmentation)]
    #[pyo3(signature = (*, progress=None))]
    fn fragmentation(
        &self,
        py: Python<'_>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Vec<PyFragmentation>> {
        let found: Vec<nostr::CompactionReport> = Progress::run(py, progress, |progress| {
            self.store.fragmentation(&mut |done, total| progress.call(done, total))
        })?;
        Ok(found.iter().map(PyFragmentation::from).collect())
    }

    #[doc = doc!("EventStore".compaction_due)]
    fn compaction_due(&self, py: Python<'_>) -> PyResult<bool> {
        py.detach(|| self.store.compaction_due()).or_raise(py)
    }

    #[doc = doc!("EventStore".compaction_ratio)]
    #[getter]
    fn compaction_ratio(&self) -> f64 {
        self.store.options().compaction_ratio.unwrap_or_default()
    }

    #[doc = doc!("EventStore".reindex)]
    #[pyo3(signature = (*, progress=None))]
    fn reindex(&self, py: Python<'_>, progress: Option<Py<PyAny>>) -> PyResult<u64> {
        Progress::run(py, progress, |progress| {
            self.store.reindex_with(&mut |done, total| progress.call(done, total))
        })
    }

    #[doc = doc!("EventStore".census)]
    #[pyo3(signature = (*, on_corrupt="raise", progress=None))]
    fn census(
        &self,
        py: Python<'_>,
        on_corrupt: &str,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<PyEventCensus> {
        let on_corrupt = self::on_corrupt(py, on_corrupt)?;
        let census = Progress::run(py, progress, |progress| {
            self.store.census_with(on_corrupt, &mut |events| {
                progress.tell(|py, callback| callback.call1(py, (events,)))
            })
        })?;
        Ok((&census).into())
    }

    #[doc = doc!("EventStore".close)]
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.store.close()).or_raise(py)
    }

    fn __enter__(slf: Py<Self>, py: Python<'_>) -> PyResult<Py<Self>> {
        slf.get().check_open().or_raise(py)?;
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
        !self.store.is_closed()
    }

    #[doc = doc!("EventStore".transactions)]
    #[getter]
    fn transactions(&self) -> PyTransactions {
        PyTransactions::of(Box::new(self.store.clone()))
    }

    #[doc = doc!("EventStore".path)]
    #[getter]
    fn path(&self) -> FsPath {
        self.store.path().into()
    }

    #[doc = doc!("EventStore".mode)]
    #[getter]
    fn mode(&self) -> &'static str {
        crate::log::letter(self.store.mode())
    }

    #[doc = doc!("EventStore".durability)]
    #[getter]
    fn durability<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        durability::shown(py, self.durability_of())
    }

    #[doc = doc!("EventStore".history)]
    #[getter]
    fn history(&self) -> &'static str {
        words::word_of(self.store.history())
    }

    #[doc = doc!("EventStore".closed)]
    #[getter]
    fn closed(&self) -> bool {
        self.store.is_closed()
    }

    #[doc = doc!("EventStore".opening)]
    #[getter]
    fn opening(&self) -> PyEventStoreOpening {
        self.store.opening().into()
    }

    #[doc = doc!("EventStore".unsynced_bytes)]
    #[getter]
    fn unsynced_bytes(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| self.store.unsynced_bytes()).or_raise(py)
    }

    #[doc = doc!("EventStore".stats)]
    fn stats(&self, py: Python<'_>) -> PyResult<PyStats> {
        Ok((&py.detach(|| self.store.stats()).or_raise(py)?).into())
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let (path, mode) = (self.store.path(), self.mode());
        let durability = durability::in_repr(py, self.durability_of());
        let state = match self.store.is_closed() || self.owner.is_another() {
            true => format!(", {}", self.owner.absent()),
            false => String::new(),
        };
        format!("<deedbook.EventStore {path:?}, mode {mode:?}, durability {durability}{state}>")
    }
}
