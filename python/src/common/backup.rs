//! Backups, of logs of any format.

use std::path::PathBuf;

use deedbook::report::BackupReport;
use deedbook::{BackupOptions, LockTimeout};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::common::arguments::interruptible;
use crate::common::fs_path::{FsPath, path};
use crate::common::progress::Progress;
use crate::common::reports::{check_known, field, plain, report};

report!(PyBackupReport, "BackupReport", BackupReport, {
    source: FsPath = |report| (&report.source).into(),
    target: FsPath = |report| (&report.target).into(),
    format: String = |report| report.format.into(),
    copied_files: u64 = |report| report.copied_files,
    copied_bytes: u64 = |report| report.copied_bytes,
    new_records: Option<u64> = |report| report.new_records,
    bounds: Option<(u64, u64)> = |report| report.bounds,
    total_bytes: u64 = |report| report.total_bytes,
});

#[doc = doc!("backup")]
#[pyfunction]
#[pyo3(signature = (source, target, *, progress=None))]
pub fn backup(
    py: Python<'_>,
    #[pyo3(from_py_with = path)] source: PathBuf,
    #[pyo3(from_py_with = path)] target: PathBuf,
    progress: Option<Py<PyAny>>,
) -> PyResult<PyBackupReport> {
    let options = BackupOptions::new().lock_timeout(interruptible(LockTimeout::default()));
    let report = Progress::run(py, progress, |progress| {
        let tell = |read| progress.tell(|py, callback| callback.call1(py, (read,)));
        options.backup(&source, &target, tell)
    })?;
    Ok((&report).into())
}
