//! Reports of a whole ledger, from those of its files.

use deedbook::ledger::{FileReport, FileSalvage};
use deedbook::report::{Damage, Verdict};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::common::reports::{
    PyDamage, PyLedgerFileReport, PyLedgerFileSalvage, PyLoss, check_known, damages, field, plain,
    report, salvaged, worst,
};

type Files = Vec<FileReport>;
type Copies = Vec<FileSalvage>;

/// Whether a file is whole; a record that is just being written may look torn.
fn is_fine(checked: &FileReport) -> bool {
    match checked.file.active {
        true => checked.report.verdict != Verdict::Corrupt,
        false => checked.report.ok(),
    }
}

fn all_damages(files: &Files) -> Vec<Damage> {
    let bad = files.iter().filter(|file| !is_fine(file));
    bad.flat_map(|file| file.report.damages.clone()).collect()
}

report!(PyLedgerReport, "LedgerReport", Files, {
    ok: bool = |files| files.iter().all(is_fine),
    verdict: String = |files| {
        let fine = |file: &FileReport| file.file.active && is_fine(file);
        worst(files.iter().filter(|file| !fine(file)).map(|file| file.report.verdict))
    },
    records: u64 = |files| files.iter().map(|file| file.report.records).sum(),
    damages: Vec<PyDamage> = |files| damages(&all_damages(files)),
    loss: Option<PyLoss> =
        |files| files.iter().find_map(|file| file.report.loss.as_ref()).map(PyLoss::from),
    files: Vec<PyLedgerFileReport> = |files| files.iter().map(PyLedgerFileReport::from).collect(),
});

report!(PyLedgerSalvage, "LedgerSalvage", Copies, {
    ok: bool = |files| files.iter().all(|file| salvaged(&file.report) == "clean"),
    verdict: String = |files| {
        let bad = files.iter().map(|file| salvaged(&file.report)).find(|&verdict| verdict != "clean");
        bad.unwrap_or("clean").into()
    },
    records: u64 = |files| files.iter().map(|file| file.report.records).sum(),
    damages: Vec<PyDamage> = |files| {
        files.iter().flat_map(|file| damages(&file.report.damages)).collect()
    },
    loss: Option<PyLoss> =
        |files| files.iter().find_map(|file| file.report.loss.as_ref()).map(PyLoss::from),
    files: Vec<PyLedgerFileSalvage> = |files| files.iter().map(PyLedgerFileSalvage::from).collect(),
});
