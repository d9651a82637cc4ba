//! Reports about the epochs of a pier.

use std::path::Path;

use deedbook::book::pier::{self, Epoch};
use deedbook::report::{SalvageReport, Verdict, VerifyReport};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::common::fs_path::FsPath;
use crate::common::reports::{
    PyDamage, PyLoss, PySalvageReport, PyVerifyReport, check_known, damages, field, plain, report,
    salvaged,
};

report!(PyEpoch, "Epoch", Epoch, {
    number: u64 = |epoch| epoch.number,
    path: FsPath = |epoch| epoch.path.clone().into(),
    layout: String = |epoch| epoch.layout.name().into(),
    bounds: Option<(u64, u64)> = |epoch| epoch.bounds,
    deeds: u64 = |epoch| epoch.deeds,
    bytes: u64 = |epoch| epoch.bytes,
    verdict: String = |epoch| epoch.verdict.name().into(),
});

/// Dropped epochs, and the number of the pier's first epoch after them.
pub type Dropped = (Vec<Epoch>, u64);

report!(PyDroppedEpochs, "DroppedEpochs", Dropped, {
    epochs: Vec<u64> = |(dropped, _)| dropped.iter().map(|epoch| epoch.number).collect(),
    deeds: u64 = |(dropped, first)| dropped.first().map_or(0, |epoch| first - epoch.number),
    bytes: u64 = |(dropped, _)| dropped.iter().map(|epoch| epoch.bytes).sum(),
    epoch: u64 = |(_, first)| *first,
});

/// The directory of an epoch's log.
fn directory(log: &Path) -> FsPath {
    log.parent().unwrap_or(log).into()
}

type Checked = (u64, VerifyReport);

report!(PyEpochReport, "EpochReport", Checked, {
    number: u64 = |(number, _)| *number,
    path: FsPath = |(_, report)| directory(&report.path),
    report: PyVerifyReport = |(_, report)| report.into(),
});

report!(PyPierReport, "PierReport", pier::Report, {
    ok: bool = |report| report.ok(),
    verdict: String = |report| match report.gaps.is_empty() {
        true => report.total.verdict.name().into(),
        false => Verdict::Corrupt.name().into(),
    },
    records: u64 = |report| report.total.records,
    damages: Vec<PyDamage> = |report| damages(&report.total.damages),
    loss: Option<PyLoss> = |report| report.total.loss.as_ref().map(PyLoss::from),
    epochs: Vec<PyEpochReport> = |report| report.epochs.iter().map(PyEpochReport::from).collect(),
    gaps: Vec<String> = |report| report.gaps.clone(),
});

type Copied = (u64, SalvageReport);

report!(PyEpochSalvage, "EpochSalvage", Copied, {
    number: u64 = |(number, _)| *number,
    path: FsPath = |(_, report)| directory(&report.path),
    copy: FsPath = |(_, report)| directory(report.copy.as_deref().unwrap_or(&report.path)),
    report: PySalvageReport = |(_, report)| report.into(),
});

type Copies = pier::Report<SalvageReport>;

report!(PyPierSalvage, "PierSalvage", Copies, {
    ok: bool = |report| report.ok(),
    verdict: String = |report| match report.gaps.is_empty() {
        true => salvaged(&report.total).into(),
        false => Verdict::Corrupt.name().into(),
    },
    records: u64 = |report| report.total.records,
    uncertain: u64 = |report| report.total.uncertain,
    damages: Vec<PyDamage> = |report| damages(&report.total.damages),
    loss: Option<PyLoss> = |report| report.total.loss.as_ref().map(PyLoss::from),
    stubs: Vec<u64> = |report| report.total.stubs.clone(),
    gaps: Vec<String> = |report| report.gaps.clone(),
    consumers: u64 = |report| report.total.consumers,
    moved_consumers: Vec<String> = |report| report.total.moved_consumers.clone(),
    transactions: u64 = |report| report.total.transactions,
    unfinished_transactions: u64 = |report| report.total.unfinished_transactions,
    not_carried: Vec<String> = |report| report.total.not_carried.clone(),
    epochs: Vec<PyEpochSalvage> = |report| report.epochs.iter().map(PyEpochSalvage::from).collect(),
});
