//! Values of a WAL: reports, statistics, splits.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

use deedbook::wal::{
    Batches, Column, Lsn, Options, RecoveryReport, SalvageReport, SalvageRun, Split, Stats,
    VerifyReport,
};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arguments::{self, numbers};
use crate::batches::{BatchStream, checks, on_corrupt};
use crate::errors::{OrRaise, invalid};
use crate::reports::{PyDamage, damages, plain, report, text};

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
    removed_segments: Vec<u64> = |report| report.removed_segments.clone(),
    finished_truncation: bool = |report| report.finished_truncation,
});

report!(PyVerify, "WalVerifyReport", VerifyReport, {
    verdict: &'static str = |report| report.verdict.name(),
    ok: bool = |report| report.ok(),
    records: u64 = |report| report.records,
    bytes: u64 = |report| report.bytes,
    bounds: Option<(u64, u64)> = |report| report.bounds.map(|(first, end)| (first.0, end.0)),
    valid_end: u64 = |report| report.valid_end,
    file_end: u64 = |report| report.file_end,
    durable_end: Option<u64> = |report| report.durable_end,
    lost_acknowledged: bool = |report| report.lost_acknowledged,
    damages: Vec<PyDamage> = |report| damages(&report.damages),
});

report!(PyRun, "WalSalvageRun", SalvageRun, {
    source_lsn: u64 = |run| run.source_lsn.0,
    lsn: u64 = |run| run.lsn.0,
    records: u64 = |run| run.records,
});

report!(PySalvage, "WalSalvageReport", SalvageReport, {
    records: u64 = |report| report.records,
    runs: Vec<PyRun> = |report| report.runs.iter().copied().map(PyRun).collect(),
    damages: Vec<PyDamage> = |report| damages(&report.damages),
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

#[pyclass(frozen, eq, name = "WalSplit", module = "deedbook")]
#[derive(PartialEq)]
pub struct PyWalSplit(pub Split);

#[pymethods]
impl PyWalSplit {
    #[new]
    fn new(
        #[pyo3(from_py_with = arguments::path)] path: PathBuf,
        #[pyo3(from_py_with = numbers::lsn)] lsn: u64,
        #[pyo3(from_py_with = numbers::end)] end: u64,
        records: Option<u64>,
    ) -> Self {
        Self(Split { path, lsn: Lsn(lsn), end: Lsn(end), records })
    }

    #[getter]
    fn path(&self) -> OsString {
        self.0.path.clone().into_os_string()
    }

    #[getter]
    fn lsn(&self) -> u64 {
        self.0.lsn.0
    }

    #[getter]
    fn end(&self) -> u64 {
        self.0.end.0
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
        let cursor = py.detach(|| self.0.cursor(&options, on_corrupt, check)).or_raise(py)?;
        Ok(BatchStream::new(Batches::new(cursor, columns, batch_rows, batch_bytes)))
    }

    fn __repr__(&self) -> String {
        let Split { path, lsn, end, records } = &self.0;
        let records = records.map_or("None".into(), |records| records.to_string());
        format!("WalSplit({path:?}, lsn={lsn}, end={end}, records={records})")
    }
}
