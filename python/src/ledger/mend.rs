//! Reports of a whole ledger, from those of its files.

use std::path::PathBuf;

use deedbook::report::{Damage, RepairReport, Verdict};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::common::fs_path::FsPath;
use crate::common::reports::{
    Checked, Copied, PyDamage, PyLedgerFileRepair, PyLedgerFileReport, PyLedgerFileSalvage, PyLoss,
    Repaired, check_known, damages, field, plain, repaired, report, salvaged, worst,
};

/// The reports of the files, and the files in the quarantine.
pub struct Ledger {
    pub files: Vec<Checked>,
    pub quarantined: Vec<PathBuf>,
}

type Files = [Checked];
type Repairs = Vec<Repaired>;
type Copies = Vec<Copied>;

/// Whether a file is whole; a record that is just being written may look torn.
fn is_fine((file, report): &Checked) -> bool {
    match file.active {
        true => report.verdict != Verdict::Corrupt,
        false => report.ok(),
    }
}

fn all_damages(files: &Files) -> Vec<Damage> {
    let bad = files.iter().filter(|file| !is_fine(file));
    bad.flat_map(|(_, report)| report.damages.clone()).collect()
}

report!(PyLedgerReport, "LedgerReport", Ledger, {
    ok: bool = |ledger| ledger.files.iter().all(is_fine),
    verdict: String = |ledger| {
        let fine = |checked: &Checked| checked.0.active && is_fine(checked);
        worst(ledger.files.iter().filter(|file| !fine(file)).map(|(_, report)| report.verdict))
    },
    records: u64 = |ledger| ledger.files.iter().map(|(_, report)| report.records).sum(),
    damages: Vec<PyDamage> = |ledger| damages(&all_damages(&ledger.files)),
    loss: Option<PyLoss> = |ledger| {
        ledger.files.iter().find_map(|(_, report)| report.loss.as_ref()).map(PyLoss::from)
    },
    files: Vec<PyLedgerFileReport> =
        |ledger| ledger.files.iter().map(PyLedgerFileReport::from).collect(),
    quarantined: Vec<FsPath> = |ledger| ledger.quarantined.iter().map(FsPath::from).collect(),
});

report!(PyLedgerRepair, "LedgerRepair", Repairs, {
    ok: bool = |files| files.iter().all(|(_, report)| is_whole(report)),
    verdict: String = |files| {
        let left: Vec<_> = files.iter().map(|(_, report)| repaired(report)).collect();
        let worst = ["corrupt", "torn"].into_iter().find(|verdict| left.contains(verdict));
        worst.unwrap_or("clean").into()
    },
    records: u64 = |files| files.iter().map(|(_, report)| report.records).sum(),
    damages: Vec<PyDamage> = |files| {
        files.iter().flat_map(|(_, report)| damages(&report.damages)).collect()
    },
    loss: Option<PyLoss> =
        |files| files.iter().find_map(|(_, report)| report.loss.as_ref()).map(PyLoss::from),
    files: Vec<PyLedgerFileRepair> = |files| files.iter().map(PyLedgerFileRepair::from).collect(),
});

/// Whether a file was repaired, or needed no repair.
fn is_whole(report: &RepairReport) -> bool {
    report.mended || repaired(report) == "clean"
}

report!(PyLedgerSalvage, "LedgerSalvage", Copies, {
    ok: bool = |files| files.iter().all(|(_, report)| salvaged(report) == "clean"),
    verdict: String = |files| {
        let bad = files.iter().map(|(_, report)| salvaged(report)).find(|&verdict| verdict != "clean");
        bad.unwrap_or("clean").into()
    },
    records: u64 = |files| files.iter().map(|(_, report)| report.records).sum(),
    damages: Vec<PyDamage> = |files| {
        files.iter().flat_map(|(_, report)| damages(&report.damages)).collect()
    },
    loss: Option<PyLoss> =
        |files| files.iter().find_map(|(_, report)| report.loss.as_ref()).map(PyLoss::from),
    files: Vec<PyLedgerFileSalvage> = |files| files.iter().map(PyLedgerFileSalvage::from).collect(),
});
