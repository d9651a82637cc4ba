//! Transactions: staging by tasks, and their commit, for every format.

use std::sync::{Mutex, MutexGuard, TryLockError};

use deedbook::Result;
use deedbook::book::Book;
use deedbook::book::pier::Pier;
use deedbook::jobs::{Committed, Part, StagedJob, Transaction, TransactionId};
use deedbook::ledger::LedgerStore;
use deedbook::nostr::EventStore;
use deedbook::wal::Wal;
use pyo3::prelude::*;

use crate::append::payload::Limit;
use crate::append::staging::{Events, Records, Staging};
use crate::append::transaction_reports::{
    PyCommitted, PyCommittedTransaction, PyStagedJob, PyStagedPart,
};
use crate::common::arguments::numbers;
use crate::common::errors::{OrRaise, invalid};
use crate::common::handle::{Held, left};

/// A store that takes transactions.
pub trait Transacts: Send + Sync {
    fn stage(
        &self,
        job: &str,
        partition: u32,
        attempt: u64,
        first: Option<u64>,
    ) -> Result<Box<dyn Staging>>;
    fn commit_staged(&self, transaction: &Transaction, parts: &[Part]) -> Result<Committed>;
    fn transactions(&self) -> Result<Vec<TransactionId>>;
    fn staged(&self) -> Result<Vec<StagedJob>>;
    fn discard_staged(&self, job: &str) -> Result<bool>;
    fn abandon_transaction(&self) -> Result<Option<Transaction>>;
}

/// The common methods of the core's stores.
macro_rules! transacts {
    ($store:ty, $stage:expr) => {
        impl Transacts for $store {
            fn stage(
                &self,
                job: &str,
                partition: u32,
                attempt: u64,
                first: Option<u64>,
            ) -> Result<Box<dyn Staging>> {
                let stage: fn(&Self, &str, u32, u64, Option<u64>) -> Result<Box<dyn Staging>> =
                    $stage;
                stage(self, job, partition, attempt, first)
            }

            fn commit_staged(&self, of: &Transaction, parts: &[Part]) -> Result<Committed> {
                self.commit_staged(of, parts)
            }

            fn transactions(&self) -> Result<Vec<TransactionId>> {
                Ok(self.transactions()?.into_values().collect())
            }

            fn staged(&self) -> Result<Vec<StagedJob>> {
                self.staged()
            }

            fn discard_staged(&self, job: &str) -> Result<bool> {
                self.discard_staged(job)
            }

            fn abandon_transaction(&self) -> Result<Option<Transaction>> {
                self.abandon_transaction()
            }
        }
    };
}

transacts!(Book, |book, job, partition, attempt, first| {
    let limit = Limit { format: "book", noun: "deed", bytes_max: book.options().deed_bytes_max };
    Ok(Box::new(Records { stage: book.stage(job, partition, attempt, first)?, limit }))
});
transacts!(Pier, |pier, job, partition, attempt, first| {
    let limit = Limit { format: "book", noun: "deed", bytes_max: pier.options().deed_bytes_max };
    Ok(Box::new(Records { stage: pier.stage(job, partition, attempt, first)?, limit }))
});
transacts!(Wal, |wal, job, partition, attempt, first| {
    let limit = Limit { format: "wal", noun: "record", bytes_max: wal.record_bytes_max() };
    Ok(Box::new(Records { stage: wal.stage(job, partition, attempt, first)?, limit }))
});

transacts!(LedgerStore, |ledger, job, partition, attempt, _first| {
    let bytes_max = ledger.options().record_bytes_max;
    let limit = Limit { format: "ledger", noun: "record", bytes_max };
    Ok(Box::new(Records { stage: ledger.stage(job, partition, attempt)?, limit }))
});
transacts!(EventStore, |store, job, partition, attempt, _first| {
    Ok(Box::new(Events { stage: store.stage(job, partition, attempt)? }))
});

/// The stage; `None` once finished or abandoned.
type Staged = Option<Box<dyn Staging>>;

#[doc = doc!("Stage")]
#[pyclass(frozen, name = "Stage", module = "deedbook")]
pub struct PyStage {
    staging: Mutex<Staged>,
}

impl PyStage {
    /// `None` during `extend`, because `extend` runs Python code. A call from that code would
    /// otherwise wait for itself.
    fn free(&self) -> Option<MutexGuard<'_, Staged>> {
        match self.staging.try_lock() {
            Ok(staging) => Some(staging),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn taken(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, Staged>> {
        let busy = "the stage is being extended, by another thread or by its own records";
        self.free().ok_or_else(|| invalid(py, busy.into()))
    }

    fn with<T>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Staged) -> PyResult<T>,
    ) -> PyResult<T> {
        let mut staging = self.taken(py)?;
        match staging.is_some() {
            true => work(&mut staging),
            false => Err(invalid(py, "the stage is finished or was left".into())),
        }
    }
}

#[pymethods]
impl PyStage {
    #[doc = doc!("Stage".extend)]
    #[pyo3(signature = (records, /, mugs=None))]
    fn extend(&self, records: &Bound<'_, PyAny>, mugs: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        self.with(records.py(), |staging| match staging {
            Some(staging) => staging.extend(records, mugs),
            None => Ok(()),
        })
    }

    #[doc = doc!("Stage".finish)]
    fn finish(&self, py: Python<'_>) -> PyResult<Vec<PyStagedPart>> {
        let staging = self.with(py, |staging| Ok(staging.take()))?;
        let finished = py.detach(|| staging.map_or(Ok(Vec::new()), |staging| staging.finish()));
        Ok(finished.or_raise(py)?.iter().map(PyStagedPart::from).collect())
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |staging| Ok(staging.as_ref().map_or(0, |staging| staging.len()) as usize))
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        exc_type: &Bound<'_, PyAny>,
        _exc_value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let staging = self.taken(py).map(|mut staging| staging.take());
        left(exc_type, staging.map(|staging| py.detach(|| drop(staging))))
    }

    fn __repr__(&self) -> String {
        let state: String = match self.free().as_deref() {
            None => "being extended".into(),
            Some(None) => "finished".into(),
            Some(Some(staging)) => format!("{} records", staging.len()),
        };
        format!("<deedbook.Stage, {state}>")
    }
}

#[doc = doc!("Transactions")]
#[pyclass(frozen, name = "Transactions", module = "deedbook")]
pub struct PyTransactions {
    store: Held<Box<dyn Transacts>>,
}

impl PyTransactions {
    pub fn of(store: Box<dyn Transacts>) -> Self {
        Self { store: Held::new(store) }
    }
}

#[pymethods]
impl PyTransactions {
    #[doc = doc!("Transactions".stage)]
    #[pyo3(signature = (job, partition, attempt, first=None))]
    fn stage(
        &self,
        py: Python<'_>,
        job: &str,
        #[pyo3(from_py_with = numbers::partition)] partition: u32,
        #[pyo3(from_py_with = numbers::attempt)] attempt: u64,
        #[pyo3(from_py_with = numbers::first)] first: Option<u64>,
    ) -> PyResult<PyStage> {
        let staging = py.detach(|| self.store.stage(job, partition, attempt, first));
        Ok(PyStage { staging: Mutex::new(Some(staging.or_raise(py)?)) })
    }

    #[doc = doc!("Transactions".publish)]
    #[pyo3(signature = (job, parts, *, app=None, version=None, query=None))]
    fn publish(
        &self,
        py: Python<'_>,
        job: String,
        parts: Vec<PyStagedPart>,
        app: Option<String>,
        #[pyo3(from_py_with = numbers::version)] version: Option<u64>,
        query: Option<String>,
    ) -> PyResult<PyCommitted> {
        let id = match (app, version) {
            (Some(app), Some(version)) => Some(TransactionId { app, query, version }),
            (None, None) if query.is_none() => None,
            _ => return Err(invalid(py, "app and version go together, query with both".into())),
        };
        let parts: Vec<Part> = parts.iter().map(Part::from).collect();
        let committed = py.detach(|| self.store.commit_staged(&Transaction { job, id }, &parts));
        Ok((&committed.or_raise(py)?).into())
    }

    #[doc = doc!("Transactions".committed)]
    fn committed(&self, py: Python<'_>) -> PyResult<Vec<PyCommittedTransaction>> {
        let noted = py.detach(|| self.store.transactions()).or_raise(py)?;
        Ok(noted.iter().map(PyCommittedTransaction::from).collect())
    }

    #[doc = doc!("Transactions".staged)]
    fn staged(&self, py: Python<'_>) -> PyResult<Vec<PyStagedJob>> {
        let staged = py.detach(|| self.store.staged()).or_raise(py)?;
        Ok(staged.iter().map(PyStagedJob::from).collect())
    }

    #[doc = doc!("Transactions".discard)]
    #[pyo3(signature = (job, /))]
    fn discard(&self, py: Python<'_>, job: &str) -> PyResult<bool> {
        py.detach(|| self.store.discard_staged(job)).or_raise(py)
    }

    #[doc = doc!("Transactions".abandon)]
    fn abandon(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let given_up = py.detach(|| self.store.abandon_transaction()).or_raise(py)?;
        Ok(given_up.map(|transaction| transaction.job))
    }
}
