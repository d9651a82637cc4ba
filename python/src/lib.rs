//! The Python module `deedbook._core`: frozen classes over the crate's public API.
//! `deedbook/_core.pyi` documents the classes: `doc!("Book".append)` is the text of `Book.append`,
//! read by `build.rs`.

#![allow(missing_docs)]

include!(concat!(env!("OUT_DIR"), "/docs.rs"));

mod append;
mod book;
mod common;
mod ledger;
mod log;
mod nostr;
mod wal;

use pyo3::prelude::*;
use pyo3::types::PyString;

#[pymodule(gil_used = false)]
mod _core {
    #[pymodule_export]
    use super::append::in_parts::PyPayloadParts;
    #[pymodule_export]
    use super::append::positions::{PyLedgerPosition, PyPositions};
    #[pymodule_export]
    use super::append::transaction::{PyStage, PyTransactions};
    #[pymodule_export]
    use super::append::transaction_reports::{
        PyCommitted, PyCommittedTransaction, PyStagedJob, PyStagedPart,
    };
    #[pymodule_export]
    use super::book::PyBook;
    #[pymodule_export]
    use super::book::pier::PyPier;
    #[pymodule_export]
    use super::book::range::DeedRange;
    #[pymodule_export]
    use super::book::reports::{
        PyDroppedEpochs, PyEpoch, PyEpochReport, PyEpochSalvage, PyPierReport, PyPierSalvage,
    };
    #[pymodule_export]
    use super::common::backup::{PyBackupReport, backup};
    #[pymodule_export]
    use super::common::durability::PyDurability;
    #[pymodule_export]
    use super::common::reports::{
        PyConvertReport, PyDamage, PyDropped, PyLedgerFileInfo, PyLedgerFileMigration,
        PyLedgerFileRepair, PyLedgerFileReport, PyLedgerFileSalvage, PyLedgerStats, PyLmdbEpoch,
        PyLmdbMigration, PyLoss, PyPartReport, PyRecoveryReport, PyRepairReport, PySalvageReport,
        PySalvageRun, PyStats, PyVerifyReport,
    };
    use super::common::{detect, logging, regular};
    #[pymodule_export]
    use super::ledger::PyLedger;
    #[pymodule_export]
    use super::ledger::file::PyLedgerFile;
    use super::ledger::json_lines;
    #[pymodule_export]
    use super::ledger::mend::{PyLedgerRepair, PyLedgerReport, PyLedgerSalvage};
    #[pymodule_export]
    use super::ledger::removable::PyRemovable;
    #[pymodule_export]
    use super::log::PyLog;
    #[pymodule_export]
    use super::log::batches::BatchStream;
    #[pymodule_export]
    use super::log::bookmark::PyBookmark;
    #[pymodule_export]
    use super::log::iterators::RecordIterator;
    #[pymodule_export]
    use super::log::range::RecordRange;
    #[pymodule_export]
    use super::log::record::{PyDeed, PyLedgerRecord, PyMeta, PyRecord};
    #[pymodule_export]
    use super::log::split::PySplit;
    #[pymodule_export]
    use super::nostr::event::PyEvent;
    #[pymodule_export]
    use super::nostr::iterator::PyEventIterator;
    #[pymodule_export]
    use super::nostr::lines::parse_events;
    #[pymodule_export]
    use super::nostr::reports::{
        PyBadLine, PyCompactionReport, PyDamagedPart, PyEventCensus, PyEventFault, PyEventOutcome,
        PyEventStoreOpening, PyEventStorePartReport, PyEventStoreRepair, PyEventStoreReport,
        PyEventStoreSalvage, PyExportReport, PyFragmentation, PyImportReport,
    };
    #[pymodule_export]
    use super::nostr::store::PyEventStore;
    #[pymodule_export]
    use super::wal::PyWal;
    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        logging::install(module)?;
        // Not by an export, because `__all__` would have the name.
        let private = [
            wrap_pyfunction!(json_lines::_not_json, module)?,
            wrap_pyfunction!(detect::_detect, module)?,
            wrap_pyfunction!(detect::_require, module)?,
            wrap_pyfunction!(detect::_is_at, module)?,
            wrap_pyfunction!(detect::_check_format, module)?,
            wrap_pyfunction!(wal::_wal_head, module)?,
            wrap_pyfunction!(regular::_open_regular, module)?,
            wrap_pyfunction!(regular::_read_small, module)?,
            wrap_pyfunction!(regular::_is_regular, module)?,
            wrap_pyfunction!(regular::_is_directory, module)?,
        ];
        for function in private {
            module.setattr(function.getattr("__name__")?.cast::<PyString>()?, function)?;
        }
        module.setattr("_LOOKED_FOR", deedbook::detect::LOOKED_FOR)?;
        module.setattr("_SMALL_BYTES_MAX", deedbook::storage::SMALL_BYTES_MAX)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
