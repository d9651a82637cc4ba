//! Values of a WAL: reports, statistics, splits.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

use deedbook::wal::{Batches, Column, Options, Wal};
use deedbook::{RecoveryReport, SalvageReport, SalvageRun, Split, Stats, VerifyReport};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arguments::{self, numbers};
use crate::batches::{BatchStream, checks, on_corrupt};
use crate::errors::{OrRaise, invalid};
use crate::reports::{PyDamage, PyLoss, damages, plain, report, text};

report!(PyRecovery, "WalRecoveryReport", RecoveryReport, {
    verdict: &'static str = |report| report.verdict.name(),
    source: &'static str = |report| if report.by_mark() { "mark" } else { "scan" },
    scanned_bytes: u64 = |report| report.scanned_bytes,
    scanned_records: u64 = |report| report.scanned_records,
    valid_end: u64 = |report| report.valid_end,
    file_end: u64 = |report| report.file_end,
    cut_bytes: u64 = |report| report.cut_bytes,
    torn_bytes: u64 = |report| report.torn_bytes,
    cut_records: u64 = |report| report.cut_records,
    durable_end: Option<u64> = |report| report.durable_end,
    mark: &'static str = |report| report.mark.name(),
    damage: Option<PyDamage> = |report| report.damage.clone().map(PyDamage),
    saved_to: Option<OsString> = |report| text(&report.saved_to),
    loss: Option<PyLoss> = |report| report.loss.map(PyLoss),
    removed_segments: Vec<u64> = |report| report.removed_segments.clone(),
    finished_truncation: bool = |report| report.finished_truncation,
});

report!(PyVerify, "WalVerifyReport", VerifyReport, {
    verdict: &'static str = |report| report.verdict.name(),
    ok: bool = |report| report.ok(),
    records: u64 = |report| report.records,
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

report!(PyRun, "WalSalvageRun", SalvageRun, {
    source_lsn: u64 = |run| run.source_offset,
    lsn: u64 = |run| run.offset,
    records: u64 = |run| run.records,
    proved: bool = |run| run.proved,
});

report!(PySalvage, "WalSalvageReport", SalvageReport, {
    records: u64 = |report| report.records,
    uncertain: u64 = |report| report.uncertain,
    runs: Vec<PyRun> = |report| report.runs.iter().copied().map(PyRun).collect(),
    damages: Vec<PyDamage> = |report| damages(&report.damages),
    loss: Option<PyLoss> = |report| report.loss.map(PyLoss),
    source_bytes: u64 = |report| report.source_bytes,
});

fn latency(stats: &Stats, q: f64) -> Option<f64> {
    stats.quantile(q).map(|latency| latency.as_secs_f64())
}

report!(PyStats, "WalStats", Stats, {
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
});

/// The columns by name, or the default ones.
pub fn columns(py: Python<'_>, names: Option<Vec<String>>) -> PyResult<Vec<Column>> {
    let Some(names) = names else {
        return Ok(Column::DEFAULT.to_vec());
    };
    if names.is_empty() {
        return Err(invalid(py, "no columns asked for".into()));
    }
    names.iter().map(|name| Column::from_str(name).or_raise(py)).collect()
}

type Numbers = (OsString, u64, u64, Option<u64>, Option<u64>, Option<u64>);

#[pyclass(frozen, eq, name = "WalSplit", module = "deedbook")]
#[derive(PartialEq)]
pub struct PyWalSplit(pub Split);

#[pymethods]
impl PyWalSplit {
    #[new]
    #[pyo3(signature = (path, lsn, end, records, unacknowledged_from=None, known_end=None))]
    fn new(
        #[pyo3(from_py_with = arguments::path)] path: PathBuf,
        #[pyo3(from_py_with = numbers::lsn)] lsn: u64,
        #[pyo3(from_py_with = numbers::end)] end: u64,
        records: Option<u64>,
        unacknowledged_from: Option<u64>,
        known_end: Option<u64>,
    ) -> Self {
        Self(Split { records, unacknowledged_from, known_end, ..Split::new(path, lsn, end) })
    }

    fn __getnewargs__(&self) -> Numbers {
        let Split { offset, end, records, unacknowledged_from, known_end, .. } = self.0;
        (self.path(), offset, end, records, unacknowledged_from, known_end)
    }

    #[getter]
    fn unacknowledged_from(&self) -> Option<u64> {
        self.0.unacknowledged_from
    }

    #[getter]
    fn known_end(&self) -> Option<u64> {
        self.0.known_end
    }

    #[getter]
    fn path(&self) -> OsString {
        self.0.path.clone().into_os_string()
    }

    #[getter]
    fn lsn(&self) -> u64 {
        self.0.offset
    }

    #[getter]
    fn end(&self) -> u64 {
        self.0.end
    }

    #[getter]
    fn records(&self) -> Option<u64> {
        self.0.records
    }

    #[pyo3(signature = (*, columns=None, batch_rows=65536, batch_bytes=2097152,
                        on_corrupt="raise", verify="crc", record_bytes_max=None))]
    #[allow(clippy::too_many_arguments)]
    fn batches(
        &self,
        py: Python<'_>,
        columns: Option<Vec<String>>,
        #[pyo3(from_py_with = numbers::batch_rows)] batch_rows: usize,
        #[pyo3(from_py_with = numbers::batch_bytes)] batch_bytes: usize,
        on_corrupt: &str,
        verify: &str,
        #[pyo3(from_py_with = numbers::record_bytes_max)] record_bytes_max: Option<u64>,
    ) -> PyResult<BatchStream> {
        let columns = self::columns(py, columns)?;
        let on_corrupt = self::on_corrupt(py, on_corrupt)?;
        let check = checks(py, verify)?;
        let options = Options { record_bytes_max, ..Options::default() };
        let cursor =
            py.detach(|| Wal::read_split(&self.0, &options, on_corrupt, check)).or_raise(py)?;
        Ok(BatchStream::new(Batches::new(cursor, columns, batch_rows, batch_bytes)))
    }

    fn __repr__(&self) -> String {
        let Split { path, offset: lsn, end, records, .. } = &self.0;
        let records = records.map_or("None".into(), |records| records.to_string());
        format!("WalSplit({path:?}, lsn={lsn}, end={end}, records={records})")
    }
}
