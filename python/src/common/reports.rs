//! Reports as values with attributes, the same for all formats.

use std::path::PathBuf;

use deedbook::Stats;
use deedbook::book::ConvertReport;
use deedbook::book::lmdb::{EpochReport, Report};
use deedbook::ledger::{FileInfo, FileMigration};
use deedbook::report::{
    Damage, Loss, OpenReport, RepairReport, SalvageReport, SalvageRun, Verdict, VerifyReport,
};
use deedbook::wal::Dropped;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::common::fs_path::FsPath;
use crate::log::record::PyMeta;

/// A class with attributes, `to_dict` and a readable `repr`, from a list of fields. You can
/// compare, copy, pickle and match the values.
macro_rules! report {
    ($class:ident, $name:tt, $inner:ty, { $($field:ident: $type:ty = $get:expr),* $(,)? }) => {
        #[doc = doc!($name)]
        #[pyclass(frozen, eq, get_all, from_py_object, name = $name, module = "deedbook")]
        #[derive(Clone, PartialEq)]
        pub struct $class {
            $(#[doc = doc!($name.$field)] $field: $type),*
        }

        impl From<&$inner> for $class {
            fn from(inner: &$inner) -> Self {
                $(let $field: fn(&$inner) -> $type = $get;)*
                Self { $($field: $field(inner)),* }
            }
        }

        #[pymethods]
        impl $class {
            #[new]
            #[pyo3(signature = (**fields))]
            fn new(fields: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
                check_known(fields, &[$(stringify!($field)),*])?;
                Ok(Self { $($field: field(fields, stringify!($field))?.extract()?),* })
            }

            #[classattr]
            fn __match_args__(py: Python<'_>) -> PyResult<Py<PyTuple>> {
                Ok(PyTuple::new(py, [$(stringify!($field)),*])?.unbind())
            }

            fn __getnewargs_ex__<'py>(
                &self,
                py: Python<'py>,
            ) -> PyResult<((), Bound<'py, PyDict>)> {
                let fields = PyDict::new(py);
                $(fields.set_item(stringify!($field), self.$field.clone().into_bound_py_any(py)?)?;)*
                Ok(((), fields))
            }

            #[doc = doc!($name.to_dict)]
            fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
                let ((), fields) = self.__getnewargs_ex__(py)?;
                for (name, value) in fields.copy()?.iter() {
                    fields.set_item(name, plain(&value)?)?;
                }
                Ok(fields)
            }

            fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
                let ((), fields) = self.__getnewargs_ex__(py)?;
                let shown = fields.iter().map(|(name, value)| Ok(format!("{name}={}", value.repr()?)));
                Ok(format!("{}({})", $name, shown.collect::<PyResult<Vec<_>>>()?.join(", ")))
            }
        }
    };
}

pub(crate) use report;

pub fn field<'py>(fields: Option<&Bound<'py, PyDict>>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let found = fields.map(|fields| fields.get_item(name)).transpose()?.flatten();
    found.ok_or_else(|| PyTypeError::new_err(format!("missing argument: {name}")))
}

pub fn check_known(fields: Option<&Bound<'_, PyDict>>, known: &[&str]) -> PyResult<()> {
    for name in fields.into_iter().flat_map(|fields| fields.keys()) {
        let name: String = name.extract()?;
        if !known.contains(&name.as_str()) {
            return Err(PyTypeError::new_err(format!("unknown argument: {name}")));
        }
    }
    Ok(())
}

/// Reports inside of reports become dictionaries, too.
pub fn plain<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if let Ok(list) = value.cast::<PyList>() {
        let plain: PyResult<Vec<_>> = list.iter().map(|item| plain(&item)).collect();
        return Ok(plain?.into_pyobject(value.py())?.into_any());
    }
    match value.hasattr("to_dict")? {
        true => value.call_method0("to_dict"),
        false => Ok(value.clone()),
    }
}

/// A path as a Python string; any bytes are allowed.
fn text(path: &Option<PathBuf>) -> Option<FsPath> {
    path.as_ref().map(FsPath::from)
}

fn texts(paths: &[PathBuf]) -> Vec<FsPath> {
    paths.iter().map(FsPath::from).collect()
}

pub fn damages(damages: &[Damage]) -> Vec<PyDamage> {
    damages.iter().map(PyDamage::from).collect()
}

report!(PyDamage, "Damage", Damage, {
    offset: u64 = |damage| damage.offset,
    end: u64 = |damage| damage.end,
    reason: String = |damage| damage.reason.clone(),
    next_intact: Option<u64> = |damage| damage.next_intact,
    next_proved: bool = |damage| damage.next_proved,
    first_lost: Option<u64> = |damage| damage.first_lost,
    records_lost: Option<u64> = |damage| damage.records_lost,
});

report!(PyLoss, "Loss", Loss, {
    records: u64 = |loss| loss.records,
    first: u64 = |loss| loss.first,
    offset: u64 = |loss| loss.offset,
});

impl PyLoss {
    /// A loss of unknown size.
    pub fn of_unknown_size() -> Self {
        Self { records: 0, first: 0, offset: 0 }
    }
}

report!(PyRecoveryReport, "RecoveryReport", OpenReport, {
    verdict: String = |report| report.verdict.name().into(),
    source: String = |report| if report.by_mark() { "mark".into() } else { "scan".into() },
    scanned_bytes: u64 = |report| report.scanned_bytes,
    scanned_records: u64 = |report| report.scanned_records,
    valid_end: u64 = |report| report.valid_end,
    file_end: u64 = |report| report.file_end,
    cut_bytes: u64 = |report| report.cut_bytes,
    torn_bytes: u64 = |report| report.torn_bytes,
    cut_records: u64 = |report| report.cut_records,
    durable_end: Option<u64> = |report| report.durable_end,
    mark: String = |report| report.mark.name().into(),
    damage: Option<PyDamage> = |report| report.damage.as_ref().map(PyDamage::from),
    saved_to: Option<FsPath> = |report| text(&report.saved_to),
    set_aside: Vec<FsPath> = |report| texts(&report.set_aside),
    loss: Option<PyLoss> = |report| report.loss.as_ref().map(PyLoss::from),
    removed_segments: Vec<u64> = |report| report.removed_segments.clone(),
    finished_truncation: bool = |report| report.finished_truncation,
});

report!(PyVerifyReport, "VerifyReport", VerifyReport, {
    verdict: String = |report| report.verdict.name().into(),
    ok: bool = |report| report.ok(),
    records: u64 = |report| report.records,
    uncertain: u64 = |report| report.uncertain,
    bytes: u64 = |report| report.bytes,
    bounds: Option<(u64, u64)> = |report| report.bounds,
    valid_end: u64 = |report| report.valid_end,
    file_end: u64 = |report| report.file_end,
    durable_end: Option<u64> = |report| report.durable_end,
    lost_acknowledged: bool = |report| report.lost_acknowledged,
    loss: Option<PyLoss> = |report| report.loss.as_ref().map(PyLoss::from),
    damages: Vec<PyDamage> = |report| damages(&report.damages),
    noted: bool = |report| report.noted,
});

report!(PyPartReport, "PartReport", VerifyReport, {
    intact: bool = |report| report.ok(),
    records: u64 = |report| report.records,
    uncertain: u64 = |report| report.uncertain,
    bytes: u64 = |report| report.bytes,
    end: u64 = |report| report.valid_end,
    damages: Vec<PyDamage> = |report| damages(&report.damages),
});

report!(PyConvertReport, "ConvertReport", ConvertReport, {
    source_layout: String = |report| report.from.name().into(),
    target_layout: String = |report| report.to.name().into(),
    deeds: u64 = |report| report.deeds,
    jam_bytes: u64 = |report| report.jam_bytes,
    bounds: Option<(u64, u64)> = |report| report.bounds,
    source_bytes: u64 = |report| report.source_bytes,
    target_bytes: u64 = |report| report.target_bytes,
    left_out: Option<PyDamage> = |report| report.left_out.as_ref().map(PyDamage::from),
});

/// The worst of some verdicts, in its words.
pub fn worst(verdicts: impl Iterator<Item = Verdict>) -> String {
    verdicts.max().unwrap_or(Verdict::Clean).name().into()
}

/// How a log was from which a copy was made.
pub fn salvaged(report: &SalvageReport) -> &'static str {
    let in_the_middle = |damage: &Damage| damage.next_intact.is_some();
    match report.damages.is_empty() && report.loss.is_none() {
        true => "clean",
        false if report.loss.is_some() || report.damages.iter().any(in_the_middle) => "corrupt",
        false => "torn",
    }
}

/// The loss of a repair, or else of earlier ones.
fn lost(report: &RepairReport) -> Option<PyLoss> {
    report.loss.as_ref().or(report.earlier_loss.as_ref()).map(PyLoss::from)
}

/// How a log is after a repair.
pub fn repaired(report: &RepairReport) -> &'static str {
    match (report.mended, lost(report).is_some(), report.damages.first()) {
        (true, ..) | (_, false, None) => "clean",
        (false, false, Some(damage)) if damage.next_intact.is_none() => "torn",
        _ => "corrupt",
    }
}

report!(PyRepairReport, "RepairReport", RepairReport, {
    ok: bool = |report| report.mended || repaired(report) == "clean",
    verdict: String = |report| repaired(report).into(),
    records: u64 = |report| report.records,
    damages: Vec<PyDamage> = |report| damages(&report.damages),
    path: FsPath = |report| report.path.clone().into(),
    valid_end: u64 = |report| report.valid_end,
    cut_bytes: u64 = |report| report.cut_bytes,
    cut_records: u64 = |report| report.cut_records,
    saved_to: Option<FsPath> = |report| report.saved.first().map(FsPath::from),
    set_aside: Vec<FsPath> = |report| texts(&report.set_aside),
    damage: Option<PyDamage> = |report| report.damages.first().map(PyDamage::from),
    loss: Option<PyLoss> = lost,
    mended: bool = |report| report.mended,
});

report!(PyDropped, "Dropped", Dropped, {
    records: u64 = |dropped| dropped.records,
    bytes: u64 = |dropped| dropped.bytes,
    head: u64 = |dropped| dropped.head.0,
    end: u64 = |dropped| dropped.end.0,
});

report!(PySalvageRun, "SalvageRun", SalvageRun, {
    source_ordinal: Option<u64> = |run| run.source_ordinal,
    source_offset: u64 = |run| run.source_offset,
    ordinal: u64 = |run| run.ordinal,
    offset: u64 = |run| run.offset,
    records: u64 = |run| run.records,
    proved: bool = |run| run.proved,
});

report!(PySalvageReport, "SalvageReport", SalvageReport, {
    ok: bool = |report| salvaged(report) == "clean",
    verdict: String = |report| salvaged(report).into(),
    records: u64 = |report| report.records,
    uncertain: u64 = |report| report.uncertain,
    renumbered: bool = |report| report.renumbered(),
    runs: Vec<PySalvageRun> = |report| report.runs.iter().map(PySalvageRun::from).collect(),
    damages: Vec<PyDamage> = |report| damages(&report.damages),
    loss: Option<PyLoss> = |report| report.loss.as_ref().map(PyLoss::from),
    source_bytes: u64 = |report| report.source_bytes,
    stubs: Vec<u64> = |report| report.stubs.clone(),
    consumers: u64 = |report| report.consumers,
    moved_consumers: Vec<String> = |report| report.moved_consumers.clone(),
    transactions: u64 = |report| report.transactions,
    unfinished_transactions: u64 = |report| report.unfinished_transactions,
    not_carried: Vec<String> = |report| report.not_carried.clone(),
});

fn latency(stats: &Stats, q: f64) -> Option<f64> {
    stats.quantile(q).map(|latency| latency.as_secs_f64())
}

report!(PyStats, "Stats", Stats, {
    appends: u64 = |stats| stats.appends,
    records: u64 = |stats| stats.records,
    bytes: u64 = |stats| stats.bytes,
    syncs: u64 = |stats| stats.syncs,
    slow_syncs: u64 = |stats| stats.slow_syncs,
    sync_seconds: f64 = |stats| stats.sync_nanos_total as f64 / 1e9,
    sync_max: f64 = |stats| stats.sync_nanos_max as f64 / 1e9,
    sync_median: Option<f64> = |stats| latency(stats, 0.5),
    sync_p99: Option<f64> = |stats| latency(stats, 0.99),
    sync_latency: Vec<(u64, u64)> = |stats| stats.sync_latency.clone(),
    dropped_files: u64 = |stats| stats.dropped_files,
    dropped_records: u64 = |stats| stats.dropped_records,
    dropped_bytes: u64 = |stats| stats.dropped_bytes,
});

report!(PyLedgerFileInfo, "LedgerFileInfo", FileInfo, {
    index: u32 = |file| file.index,
    path: FsPath = |file| file.path.clone().into(),
    bytes: u64 = |file| file.bytes,
    active: bool = |file| file.active,
});

pub type Checked = (FileInfo, VerifyReport);
pub type Copied = (FileInfo, SalvageReport);
pub type Repaired = (FileInfo, RepairReport);

report!(PyLedgerFileReport, "LedgerFileReport", Checked, {
    file: PyLedgerFileInfo = |(file, _)| file.into(),
    report: PyVerifyReport = |(_, report)| report.into(),
});

report!(PyLedgerFileRepair, "LedgerFileRepair", Repaired, {
    file: PyLedgerFileInfo = |(file, _)| file.into(),
    report: PyRepairReport = |(_, report)| report.into(),
});

report!(PyLedgerFileSalvage, "LedgerFileSalvage", Copied, {
    file: PyLedgerFileInfo = |(file, _)| file.into(),
    copy: Option<FsPath> = |(_, report)| text(&report.copy),
    report: PySalvageReport = |(_, report)| report.into(),
});

report!(PyLedgerFileMigration, "LedgerFileMigration", FileMigration, {
    path: FsPath = |file| file.path.clone().into(),
    bytes: u64 = |file| file.bytes,
    active: bool = |file| file.active,
    events: u64 = |file| file.events,
    rest_from: Option<u64> = |file| file.rest_from,
    rest_reason: Option<String> = |file| file.rest_reason.clone(),
    set_aside: Option<FsPath> = |file| text(&file.set_aside),
    removed: bool = |file| file.removed,
});

report!(PyLedgerStats, "LedgerStats", Stats, {
    log: PyStats = |stats| stats.into(),
    dropped_files: u64 = |stats| stats.dropped_files,
    dropped_events: u64 = |stats| stats.dropped_records,
    dropped_bytes: u64 = |stats| stats.dropped_bytes,
    rejected_events: u64 = |stats| stats.rejected_records,
    rejected_bytes: u64 = |stats| stats.rejected_bytes,
    quarantined_files: u64 = |stats| stats.quarantined_files,
});

report!(PyLmdbEpoch, "LmdbEpoch", EpochReport, {
    source: FsPath = |log| log.source.clone().into(),
    dest: FsPath = |log| log.dest.clone().into(),
    epoch: u64 = |log| log.epoch,
    first: Option<u64> = |log| log.events.as_ref().map(|events| *events.start()),
    last: Option<u64> = |log| log.events.as_ref().map(|events| *events.end()),
    bytes: u64 = |log| log.bytes,
    found: u64 = |log| log.found,
    meta: PyMeta = |log| log.meta.into(),
});

report!(PyLmdbMigration, "LmdbMigration", Report, {
    source: FsPath = |report| report.source.clone().into(),
    dest: FsPath = |report| report.dest.clone().into(),
    dry_run: bool = |report| report.dry_run,
    events: u64 = |report| report.events,
    bytes: u64 = |report| report.bytes,
    found: u64 = |report| report.found,
    resumed_from: Option<u64> = |report| report.resumed_from,
    epochs: Vec<PyLmdbEpoch> = |report| report.epochs.iter().map(PyLmdbEpoch::from).collect(),
    meta: PyMeta = |report| report.meta.into(),
    seconds: f64 = |report| report.seconds,
});
