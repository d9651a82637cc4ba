//! Reports as values with attributes, and as plain dictionaries.

use std::ffi::OsString;
use std::path::PathBuf;

use deedbook::{
    Damage, Loss, RecoveryReport, RepairReport, SalvageReport, SalvageRun, VerifyReport,
};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A class with attributes, `to_dict` and a readable `repr`, from one list of fields.
macro_rules! report {
    ($class:ident, $name:literal, $inner:ty, { $($field:ident: $type:ty = $get:expr),* $(,)? }) => {
        #[pyclass(frozen, eq, name = $name, module = "deedbook")]
        #[derive(Clone, PartialEq)]
        pub struct $class(pub $inner);

        #[pymethods]
        impl $class {
            $(#[getter]
            fn $field(&self) -> $type {
                let get: fn(&$inner) -> $type = $get;
                get(&self.0)
            })*

            fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
                let fields = PyDict::new(py);
                $({
                    let value = self.$field().into_bound_py_any(py)?;
                    fields.set_item(stringify!($field), plain(&value)?)?;
                })*
                Ok(fields)
            }

            fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
                let fields = self.to_dict(py)?;
                let shown = fields.iter().map(|(name, value)| Ok(format!("{name}={}", value.repr()?)));
                Ok(format!("{}({})", $name, shown.collect::<PyResult<Vec<_>>>()?.join(", ")))
            }
        }
    };
}

pub(crate) use report;

/// Reports inside of reports become dictionaries, too.
pub fn plain<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if let Ok(list) = value.cast::<pyo3::types::PyList>() {
        let plain: PyResult<Vec<_>> = list.iter().map(|item| plain(&item)).collect();
        return Ok(plain?.into_pyobject(value.py())?.into_any());
    }
    match value.hasattr("to_dict")? {
        true => value.call_method0("to_dict"),
        false => Ok(value.clone()),
    }
}

/// A path as Python has it, whatever its bytes.
pub fn text(path: &Option<PathBuf>) -> Option<OsString> {
    path.as_ref().map(OsString::from)
}

pub fn damages(damages: &[Damage]) -> Vec<PyDamage> {
    damages.iter().cloned().map(PyDamage).collect()
}

report!(PyDamage, "Damage", Damage, {
    offset: u64 = |damage| damage.offset,
    end: u64 = |damage| damage.end,
    reason: String = |damage| damage.reason.clone(),
    next_intact: Option<u64> = |damage| damage.next_intact,
    next_proved: bool = |damage| damage.next_proved,
    first_event: Option<u64> = |damage| damage.first_lost,
    events_lost: Option<u64> = |damage| damage.records_lost,
});

report!(PyLoss, "Loss", Loss, {
    records: u64 = |loss| loss.records,
    first: u64 = |loss| loss.first,
    offset: u64 = |loss| loss.offset,
});

report!(PyRecoveryReport, "RecoveryReport", RecoveryReport, {
    verdict: &'static str = |report| report.verdict.name(),
    source: &'static str = |report| if report.by_mark() { "mark" } else { "scan" },
    scanned_bytes: u64 = |report| report.scanned_bytes,
    scanned_deeds: u64 = |report| report.scanned_records,
    valid_end: u64 = |report| report.valid_end,
    file_end: u64 = |report| report.file_end,
    cut_bytes: u64 = |report| report.cut_bytes,
    torn_bytes: u64 = |report| report.torn_bytes,
    cut_deeds: u64 = |report| report.cut_records,
    durable_end: Option<u64> = |report| report.durable_end,
    mark: &'static str = |report| report.mark.name(),
    damage: Option<PyDamage> = |report| report.damage.clone().map(PyDamage),
    saved_to: Option<OsString> = |report| text(&report.saved_to),
    loss: Option<PyLoss> = |report| report.loss.map(PyLoss),
});

report!(PyVerifyReport, "VerifyReport", VerifyReport, {
    verdict: &'static str = |report| report.verdict.name(),
    ok: bool = |report| report.ok(),
    deeds: u64 = |report| report.records,
    uncertain: u64 = |report| report.uncertain,
    bytes: u64 = |report| report.bytes,
    bounds: Option<(u64, u64)> = |report| report.bounds,
    valid_end: u64 = |report| report.valid_end,
    file_end: u64 = |report| report.file_end,
    durable_end: Option<u64> = |report| report.durable_end,
    lost_acknowledged: bool = |report| report.lost_acknowledged,
    loss: Option<PyLoss> = |report| report.loss.map(PyLoss),
    damages: Vec<PyDamage> = |report| damages(&report.damages),
});

report!(PyRepairReport, "RepairReport", RepairReport, {
    path: OsString = |report| report.path.clone().into_os_string(),
    valid_end: u64 = |report| report.valid_end,
    cut_bytes: u64 = |report| report.cut_bytes,
    cut_records: u64 = |report| report.cut_records,
    saved_to: Option<OsString> = |report| text(&report.saved_to),
    damage: Option<PyDamage> = |report| report.damage.clone().map(PyDamage),
    loss: Option<PyLoss> = |report| report.loss.map(PyLoss),
    mended: bool = |report| report.mended,
});

report!(PySalvageRun, "SalvageRun", SalvageRun, {
    source_event: Option<u64> = |run| run.source_ordinal,
    event: u64 = |run| run.ordinal,
    deeds: u64 = |run| run.records,
    source_offset: u64 = |run| run.source_offset,
    proved: bool = |run| run.proved,
});

report!(PySalvageReport, "SalvageReport", SalvageReport, {
    deeds: u64 = |report| report.records,
    uncertain: u64 = |report| report.uncertain,
    runs: Vec<PySalvageRun> = |report| report.runs.iter().copied().map(PySalvageRun).collect(),
    damages: Vec<PyDamage> = |report| damages(&report.damages),
    loss: Option<PyLoss> = |report| report.loss.map(PyLoss),
    source_bytes: u64 = |report| report.source_bytes,
    renumbered: bool = |report| report.renumbered(),
});
