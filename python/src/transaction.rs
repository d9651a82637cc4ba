//! Transactions: staging by tasks, and their commit, for every format.

use std::sync::{Mutex, MutexGuard, TryLockError};

use deedbook::book::pier::Pier;
use deedbook::book::{self, Book};
use deedbook::ledger::{self, LedgerStore};
use deedbook::nostr::{self, Event, EventStore};
use deedbook::wal::{self, Wal};
use deedbook::{Committed, Noted, Part, Result, StagedJob, Transaction, TransactionId};
use pyo3::prelude::*;
use pyo3_arrow::input::AnyRecordBatch;

use crate::arguments::numbers;
use crate::errors::{OrRaise, invalid};
use crate::handle::{Held, left};
use crate::input::{self, Sink};
use crate::nostr::{PART_EVENTS, size_of};
use crate::nostr_event::event_of;
use crate::payload::Limit;
use crate::transaction_reports::{PyCommitted, PyCommittedTransaction, PyStagedJob, PyStagedPart};

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
    fn transactions(&self) -> Result<Vec<(String, Noted)>>;
    fn staged(&self) -> Result<Vec<StagedJob>>;
    fn discard_staged(&self, job: &str) -> Result<bool>;
    fn abandon_transaction(&self) -> Result<Option<Transaction>>;
}

/// Records that a task stages.
pub trait Staging: Send {
    fn extend(
        &mut self,
        records: &Bound<'_, PyAny>,
        mugs: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()>;
    fn len(&self) -> u64;
    fn finish(self: Box<Self>) -> Result<Vec<Part>>;
}

/// What the core's stores have under the same names.
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

            fn transactions(&self) -> Result<Vec<(String, Noted)>> {
                Ok(self.transactions()?.into_iter().collect())
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

/// Staged at once, without the GIL.
const PART_BYTES: usize = 1 << 20;
const PART_RECORDS: usize = 1 << 14;

/// Records of bytes.
struct Records<S> {
    stage: S,
    limit: Limit,
}

impl Sink for book::Stage {
    const COLUMN: &'static str = "jam";

    fn push(&mut self, mug: u32, jam: &[u8]) -> Result<()> {
        self.push(mug, jam)
    }

    fn taken(&self) -> u64 {
        self.len()
    }
}

impl Sink for wal::Stage {
    const COLUMN: &'static str = "payload";

    fn push(&mut self, _mug: u32, payload: &[u8]) -> Result<()> {
        self.push(payload)
    }

    fn taken(&self) -> u64 {
        self.len()
    }
}

impl Sink for ledger::Stage {
    const COLUMN: &'static str = "payload";

    fn push(&mut self, _mug: u32, payload: &[u8]) -> Result<()> {
        self.push(payload)
    }

    fn taken(&self) -> u64 {
        self.len()
    }
}

/// Records for a stage, whose files are written when these are flushed.
struct Gathered<'a, S> {
    stage: &'a mut S,
    limit: Limit,
    bytes: Vec<u8>,
    /// Mug and length of each.
    records: Vec<(u32, usize)>,
}

impl<S: Sink> Sink for Gathered<'_, S> {
    const COLUMN: &'static str = S::COLUMN;

    fn push(&mut self, mug: u32, payload: &[u8]) -> Result<()> {
        if payload.len() as u64 > self.limit.bytes_max {
            // It is refused without a copy.
            self.flush()?;
            return self.stage.push(mug, payload);
        }
        self.bytes.extend_from_slice(payload);
        self.records.push((mug, payload.len()));
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.bytes.len() >= PART_BYTES || self.records.len() >= PART_RECORDS
    }

    /// What comes after a record that is refused is not staged.
    fn flush(&mut self) -> Result<()> {
        let mut rest = self.bytes.as_slice();
        let flushed = self.records.iter().try_for_each(|&(mug, len)| {
            let (payload, after) = rest.split_at(len);
            rest = after;
            self.stage.push(mug, payload)
        });
        self.bytes.clear();
        self.records.clear();
        flushed
    }

    fn taken(&self) -> u64 {
        self.stage.taken() + self.records.len() as u64
    }
}

/// A stage of bytes, which ends with parts.
trait Finish: Sink {
    fn parts(self) -> Result<Vec<Part>>;
}

impl Finish for book::Stage {
    fn parts(self) -> Result<Vec<Part>> {
        Ok(vec![self.finish()?])
    }
}

impl Finish for wal::Stage {
    fn parts(self) -> Result<Vec<Part>> {
        Ok(vec![self.finish()?])
    }
}

impl Finish for ledger::Stage {
    fn parts(self) -> Result<Vec<Part>> {
        self.finish()
    }
}

impl<S: Finish> Staging for Records<S> {
    fn extend(
        &mut self,
        records: &Bound<'_, PyAny>,
        mugs: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (py, limit, stage) = (records.py(), self.limit, &mut self.stage);
        let mut gathered = Gathered { stage, limit, bytes: Vec::new(), records: Vec::new() };
        let fed = input::feed(&mut gathered, limit, records, mugs);
        // What came before an error is staged.
        py.detach(|| gathered.flush()).or_raise(py)?;
        fed
    }

    fn len(&self) -> u64 {
        self.stage.taken()
    }

    fn finish(self: Box<Self>) -> Result<Vec<Part>> {
        self.stage.parts()
    }
}

/// Events of an event store: as the store takes them, or as Arrow batches of its columns.
struct Events {
    stage: nostr::Stage,
}

impl Events {
    fn extend_by_each(&mut self, events: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = events.py();
        let (mut part, mut bytes) = (Vec::new(), 0);
        let mut push = |part: &mut Vec<Event>| {
            let pushed = py.detach(|| part.iter().try_for_each(|event| self.stage.push(event)));
            part.clear();
            pushed.or_raise(py)?;
            py.check_signals()
        };
        for event in events.try_iter()? {
            // What came before an event that cannot be is staged.
            let event = match event.and_then(|event| event_of(&event)) {
                Ok(event) => event,
                Err(raised) => return push(&mut part).and(Err(raised)),
            };
            bytes += size_of(&event);
            part.push(event);
            if part.len() >= PART_EVENTS || bytes >= PART_BYTES {
                bytes = 0;
                push(&mut part)?;
            }
        }
        push(&mut part)
    }
}

impl Staging for Events {
    fn extend(
        &mut self,
        records: &Bound<'_, PyAny>,
        mugs: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let py = records.py();
        if mugs.is_some() {
            return Err(invalid(py, "mugs are for deeds".into()));
        }
        if !input::is_arrow(records)? {
            return self.extend_by_each(records);
        }
        for batch in records.extract::<AnyRecordBatch>()?.into_reader()? {
            let batch = batch.map_err(|e| invalid(py, format!("arrow: {e}")))?;
            py.detach(|| self.stage.push_batch(&batch)).or_raise(py)?;
            py.check_signals()?;
        }
        Ok(())
    }

    fn len(&self) -> u64 {
        self.stage.len()
    }

    fn finish(self: Box<Self>) -> Result<Vec<Part>> {
        Ok(vec![self.stage.finish()?])
    }
}

/// What is staged; `None` once it is finished or was left.
type Staged = Option<Box<dyn Staging>>;

#[doc = doc!("Stage")]
#[pyclass(frozen, name = "Stage", module = "deedbook")]
pub struct PyStage {
    staging: Mutex<Staged>,
}

impl PyStage {
    /// `None` while `extend` has it, which runs code of Python: who waited could wait for itself.
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

    #[doc = doc!("Transactions".commit)]
    #[pyo3(signature = (job, parts, *, app=None, version=None, query=None))]
    fn commit(
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
