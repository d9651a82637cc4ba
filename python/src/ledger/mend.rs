//! Reports of a whole ledger, from those of its files.

use std::path::PathBuf;

use deedbook::ledger::{FileRepair, FileReport, FileSalvage};
use deedbook::report::{Damage, RepairReport, Verdict};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::common::fs_path::FsPath;
use crate::common::reports::{
    PyDamage, PyLedgerFileRepair, PyLedgerFileReport, PyLedgerFileSalvage, PyLoss, check_known,
    damages, field, plain, repaired, report, salvaged, worst,
};

/// The reports of the files, and the files in the quarantine.
pub struct Checked {
    pub files: Vec<FileReport>,
    pub quarantined: Vec<PathBuf>,
}

type Files = [FileReport];
type Repairs = Vec<FileRepair>;
type Copies = Vec<FileSalvage>;

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

report!(PyLedgerReport, "LedgerReport", Checked, {
    ok: bool = |checked| checked.files.iter().all(is_fine),
    verdict: String = |checked| {
        let fine = |file: &FileReport| file.file.active && is_fine(file);
        worst(checked.files.iter().filter(|file| !fine(file)).map(|file| file.report.verdict))
    },
    records: u64 = |checked| checked.files.iter().map(|file| file.report.records).sum(),
    damages: Vec<PyDamage> = |checked| damages(&all_damages(&checked.files)),
    loss: Option<PyLoss> = |checked| {
        checked.files.iter().find_map(|file| file.report.loss.as_ref()).map(PyLoss::from)
    },
    files: Vec<PyLedgerFileReport> =
        |checked| checked.files.iter().map(PyLedgerFileReport::from).collect(),
    quarantined: Vec<FsPath> = |checked| checked.quarantined.iter().map(FsPath::from).collect(),
});

report!(PyLedgerRepair, "LedgerRepair", Repairs, {
    ok: bool = |files| files.iter().all(|file| is_whole(&file.report)),
    verdict: String = |files| {
        let left: Vec<_> = files.iter().map(|file| repaired(&file.report)).collect();
        let worst = ["corrupt", "torn"].into_iter().find(|verdict| left.contains(verdict));
        worst.unwrap_or("clean").into()
    },
    records: u64 = |files| files.iter().map(|file| file.report.records).sum(),
    damages: Vec<PyDamage> = |files| {
        let found = files.iter().filter_map(|file| file.report.damage.as_ref());
        found.map(PyDamage::from).collect()
    },
    loss: Option<PyLoss> =
        |files| files.iter().find_map(|file| file.report.loss.as_ref()).map(PyLoss::from),
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
