//! The Python module `deedbook._core`: frozen classes over the crate's public API.
//!
//! What the classes do is documented in `deedbook/_core.pyi`, which the tests hold against them.

#![allow(missing_docs)]

mod arguments;
mod batches;
mod book;
mod deed;
mod errors;
mod handle;
mod input;
mod iterators;
mod logging;
mod payload;
mod progress;
mod range;
mod reports;
mod wal;
mod wal_iterators;
mod wal_reports;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
mod _core {
    #[pymodule_export]
    use super::batches::{BatchStream, PySplit};
    #[pymodule_export]
    use super::book::PyBook;
    #[pymodule_export]
    use super::deed::{PyDeed, PyMeta};
    #[pymodule_export]
    use super::iterators::DeedIterator;
    #[pymodule_export]
    use super::range::DeedRange;
    #[pymodule_export]
    use super::reports::{
        PyDamage, PyLoss, PyRecoveryReport, PyRepairReport, PySalvageReport, PySalvageRun,
        PyVerifyReport,
    };
    #[pymodule_export]
    use super::wal::PyWal;
    #[pymodule_export]
    use super::wal_iterators::{PyRecord, RecordIterator};
    #[pymodule_export]
    use super::wal_reports::{PyRecovery, PyRun, PySalvage, PyStats, PyVerify, PyWalSplit};
    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        logging::install();
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
