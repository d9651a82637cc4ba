//! The Python module `deedbook._core`: frozen classes over the crate's public API.
//!
//! What the classes do is documented in `deedbook/_core.pyi`: `doc!("Book".append)` is its text of
//! `Book.append`, which `build.rs` reads there.

#![allow(missing_docs)]

include!(concat!(env!("OUT_DIR"), "/docs.rs"));

mod any_log;
mod arguments;
mod batches;
mod book;
mod bookmark;
mod deeds;
mod errors;
mod fs_path;
mod handle;
mod in_parts;
mod input;
mod iterators;
mod json_lines;
mod ledger;
mod ledger_batches;
mod ledger_file;
mod ledger_snapshot;
mod ledger_walk;
mod log;
mod logging;
mod nostr;
mod nostr_arguments;
mod nostr_columns;
mod nostr_event;
mod nostr_files;
mod nostr_iterator;
mod nostr_lines;
mod nostr_reports;
mod payload;
mod pier;
mod progress;
mod range;
mod record;
mod removable;
mod reports;
mod split;
mod staging;
mod transaction;
mod transaction_reports;
mod wal;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
mod _core {
    #[pymodule_export]
    use super::batches::BatchStream;
    #[pymodule_export]
    use super::book::PyBook;
    #[pymodule_export]
    use super::bookmark::PyBookmark;
    #[pymodule_export]
    use super::in_parts::PyPayloadParts;
    #[pymodule_export]
    use super::iterators::RecordIterator;
    #[pymodule_export]
    use super::ledger::PyLedger;
    #[pymodule_export]
    use super::ledger_file::PyLedgerFile;
    #[pymodule_export]
    use super::ledger_snapshot::PyLedgerSnapshot;
    #[pymodule_export]
    use super::log::PyLog;
    #[pymodule_export]
    use super::nostr::PyEventStore;
    #[pymodule_export]
    use super::nostr_event::PyEvent;
    #[pymodule_export]
    use super::nostr_iterator::PyEventIterator;
    #[pymodule_export]
    use super::nostr_lines::parse_events;
    #[pymodule_export]
    use super::nostr_reports::{
        PyBadLine, PyCompactionReport, PyDamagedPart, PyEventCensus, PyEventFault, PyEventOutcome,
        PyEventStoreOpening, PyEventStorePartReport, PyEventStoreRepair, PyEventStoreReport,
        PyEventStoreSalvage, PyExportReport, PyFragmentation, PyImportReport,
    };
    #[pymodule_export]
    use super::pier::{PyDroppedEpochs, PyEpoch, PyEpochReport, PyPier, PyPierReport};
    #[pymodule_export]
    use super::range::DeedRange;
    #[pymodule_export]
    use super::record::{PyDeed, PyLedgerRecord, PyMeta, PyRecord};
    #[pymodule_export]
    use super::removable::PyRemovable;
    #[pymodule_export]
    use super::reports::{
        PyConvertReport, PyDamage, PyDropped, PyLedgerFileInfo, PyLedgerFileMigration,
        PyLedgerFileReport, PyLedgerFileSalvage, PyLedgerStats, PyLmdbEpoch, PyLmdbMigration,
        PyLoss, PyPartReport, PyRecoveryReport, PyRepairReport, PySalvageReport, PySalvageRun,
        PyStats, PyVerifyReport,
    };
    #[pymodule_export]
    use super::split::PySplit;
    #[pymodule_export]
    use super::transaction::{PyStage, PyTransactions};
    #[pymodule_export]
    use super::transaction_reports::{
        PyCommitted, PyCommittedTransaction, PyStagedJob, PyStagedPart,
    };
    #[pymodule_export]
    use super::wal::PyWal;
    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        logging::install(module)?;
        // Not by an export, which would be in `__all__`.
        module.setattr("_not_json", wrap_pyfunction!(json_lines::_not_json, module)?)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
