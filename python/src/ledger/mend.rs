//! Reports of a whole ledger, from those of its files.

use deedbook::report::{Damage, Verdict};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::common::reports::{
    Checked, Copied, PyDamage, PyLedgerFileReport, PyLedgerFileSalvage, PyLoss, check_known,
    damages, field, plain, report, salvaged, worst,
};

type Files = Vec<Checked>;
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

report!(PyLedgerReport, "LedgerReport", Files, {
    ok: bool = |files| files.iter().all(is_fine),
    verdict: String = |files| {
        let fine = |checked: &Checked| checked.0.active && is_fine(checked);
        worst(files.iter().filter(|file| !fine(file)).map(|(_, report)| report.verdict))
    },
    records: u64 = |files| files.iter().map(|(_, report)| report.records).sum(),
    damages: Vec<PyDamage> = |files| damages(&all_damages(files)),
    loss: Option<PyLoss> =
        |files| files.iter().find_map(|(_, report)| report.loss.as_ref()).map(PyLoss::from),
    files: Vec<PyLedgerFileReport> = |files| files.iter().map(PyLedgerFileReport::from).collect(),
});

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
