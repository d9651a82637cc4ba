//! Iterators over the records of any format: forwards or backwards, payloads alone, following.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use deedbook::book::pier;
use deedbook::report::Damage;
use deedbook::{ErrorKind, book, ledger, wal};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyGenericAlias, PyType};

use crate::common::errors::OrRaise;
use crate::common::logging::check_signals;
use crate::common::reports::{PyDamage, damages};
use crate::log::record::{PyDeed, PyLedgerRecord, PyRecord};

/// Between two looks for Ctrl-C while waiting.
const PATIENCE: Duration = Duration::from_millis(50);

/// Wait for the lock without the GIL: its holder may need the GIL to let go.
pub fn locked<'a, T>(py: Python<'_>, mutex: &'a Mutex<T>) -> MutexGuard<'a, T> {
    mutex.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
}

/// A record of the core in Python's form.
pub trait ToPython {
    fn payload(&self) -> &[u8];
    fn to_python<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>>;
}

impl<J: AsRef<[u8]>> ToPython for book::Deed<J> {
    fn payload(&self) -> &[u8] {
        self.jam.as_ref()
    }

    fn to_python<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let deed = PyDeed::build(py, self.event, self.mug, self.payload());
        Ok(Bound::new(py, deed)?.into_any())
    }
}

impl ToPython for wal::Record<&[u8]> {
    fn payload(&self) -> &[u8] {
        self.payload
    }

    fn to_python<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let record = PyRecord::build(py, self.lsn.0, self.payload);
        Ok(Bound::new(py, record)?.into_any())
    }
}

/// A record of a ledger with the number of its file.
impl ToPython for (u64, ledger::Record<&[u8]>) {
    fn payload(&self) -> &[u8] {
        self.1.payload
    }

    fn to_python<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (file, record) = (self.0 as u32, self.1);
        let record = PyLedgerRecord::build(py, file, record.number, record.payload);
        Ok(Bound::new(py, record)?.into_any())
    }
}

/// Steps over the records of a log of any format.
pub trait Walk: Send {
    /// The next record.
    fn record<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>>;

    /// The payload of the next record.
    fn payload<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>>;

    /// The damaged stretches skipped so far.
    fn damages(&self) -> Vec<Damage>;
}

/// The result of a follower's wait. The follower of a closed log ends, as in asyncio.
pub enum Waited<'py> {
    Record(Bound<'py, PyAny>),
    Nothing,
    Closed,
}

/// Waits for the records of a log of any format.
pub trait Wait: Send {
    /// The next record, if one comes within the given time. The caller then checks for Ctrl-C.
    fn record<'py>(&mut self, py: Python<'py>, patience: Duration) -> PyResult<Waited<'py>>;
}

/// Walks, each with its step, and whether the step reads no file and may keep the GIL.
macro_rules! walks {
    ($($walk:ty: $next:ident, $ready:expr, $damages:expr;)*) => {$(
        impl Walk for $walk {
            fn record<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
                let walk = self;
                let record = match $ready(&*walk) {
                    true => walk.$next(),
                    false => py.detach(move || walk.$next()),
                };
                record.or_raise(py)?.map(|record| record.to_python(py)).transpose()
            }

            fn payload<'py>(
                &mut self,
                py: Python<'py>,
            ) -> PyResult<Option<Bound<'py, PyBytes>>> {
                let walk = self;
                let record = match $ready(&*walk) {
                    true => walk.$next(),
                    false => py.detach(move || walk.$next()),
                };
                Ok(record.or_raise(py)?.map(|record| PyBytes::new(py, ToPython::payload(&record))))
            }

            fn damages(&self) -> Vec<Damage> {
                $damages(self).to_vec()
            }
        }
    )*};
}

walks! {
    deedbook::Cursor<deedbook::book::BookFormat>: next, deedbook::Cursor::ready, deedbook::Cursor::damages;
    deedbook::Cursor<deedbook::wal::WalFormat>: next, deedbook::Cursor::ready, deedbook::Cursor::damages;
    deedbook::Reverse<deedbook::book::BookFormat>: next, |_: &Self| false, |_| [];
    deedbook::Reverse<deedbook::wal::WalFormat>: next, |_: &Self| false, |_| [];
    deedbook::Chained<deedbook::book::BookFormat>: next, deedbook::Chained::ready, deedbook::Chained::damages;
    deedbook::Chained<deedbook::ledger::LedgerFormat>: next_numbered, deedbook::Chained::ready, deedbook::Chained::damages;
}

macro_rules! waits {
    ($($wait:ty),*) => {$(
        impl Wait for $wait {
            fn record<'py>(
                &mut self,
                py: Python<'py>,
                patience: Duration,
            ) -> PyResult<Waited<'py>> {
                let wait = self;
                match py.detach(move || wait.next(patience)) {
                    Err(error) if error.kind() == ErrorKind::Closed => Ok(Waited::Closed),
                    found => match found.or_raise(py)? {
                        Some(record) => record.to_python(py).map(Waited::Record),
                        None => Ok(Waited::Nothing),
                    },
                }
            }
        }
    )*};
}

waits!(
    deedbook::Follow<deedbook::book::BookFormat>,
    pier::Follow,
    deedbook::Follow<deedbook::wal::WalFormat>
);

#[doc = doc!("RecordIterator")]
#[pyclass(frozen, module = "deedbook")]
pub struct RecordIterator(Mutex<Box<dyn Walk>>);

impl RecordIterator {
    pub fn new(walk: Box<dyn Walk>) -> Self {
        Self(Mutex::new(walk))
    }
}

#[pymethods]
impl RecordIterator {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        locked(py, &self.0).record(py)
    }

    #[doc = doc!("RecordIterator".damages)]
    #[getter]
    fn damages(&self, py: Python<'_>) -> Vec<PyDamage> {
        damages(&locked(py, &self.0).damages())
    }

    #[classmethod]
    #[pyo3(signature = (item, /))]
    fn __class_getitem__<'py>(
        class: &Bound<'py, PyType>,
        item: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyGenericAlias>> {
        PyGenericAlias::new(class.py(), class, item)
    }
}

#[pyclass(frozen, module = "deedbook")]
pub struct PayloadIterator(Mutex<Box<dyn Walk>>);

impl PayloadIterator {
    pub fn new(walk: Box<dyn Walk>) -> Self {
        Self(Mutex::new(walk))
    }
}

#[pymethods]
impl PayloadIterator {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        locked(py, &self.0).payload(py)
    }
}

#[pyclass(frozen, module = "deedbook")]
pub struct FollowIterator {
    follow: Mutex<Box<dyn Wait>>,
    timeout: Option<Duration>,
}

impl FollowIterator {
    pub fn new(follow: Box<dyn Wait>, timeout: Option<Duration>) -> Self {
        Self { follow: Mutex::new(follow), timeout }
    }
}

#[pymethods]
impl FollowIterator {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Wait for the follower's next record, and check for Ctrl-C now and then.
    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let begun = Instant::now();
        loop {
            let left = match self.timeout {
                Some(timeout) => timeout.saturating_sub(begun.elapsed()),
                None => PATIENCE,
            };
            // The lock is released between two looks: another thread or a signal handler must not
            // wait for a follower that waits forever.
            match locked(py, &self.follow).record(py, left.min(PATIENCE))? {
                Waited::Record(record) => return Ok(Some(record)),
                Waited::Closed => return Ok(None),
                Waited::Nothing => {}
            }
            check_signals(py)?;
            if left <= PATIENCE && self.timeout.is_some() {
                return Ok(None);
            }
        }
    }
}
