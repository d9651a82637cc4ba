//! Records of a WAL, and iterators over them: forwards, backwards, payloads alone, following.

use std::sync::Mutex;
use std::time::Duration;

use deedbook::wal::{self, Cursor, Follow, Parts, RecordRef, Reverse};
use pyo3::basic::CompareOp;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::errors::OrRaise;
use crate::iterators::{locked, wait};
use crate::reports::PyDamage;

#[pyclass(frozen, name = "Record", module = "deedbook")]
pub struct PyRecord {
    #[pyo3(get)]
    pub lsn: u64,
    #[pyo3(get)]
    payload: Py<PyBytes>,
}

impl PyRecord {
    pub fn build(py: Python<'_>, lsn: u64, payload: &[u8]) -> Self {
        Self { lsn, payload: PyBytes::new(py, payload).unbind() }
    }

    pub fn holds(&self, py: Python<'_>, payload: &[u8]) -> bool {
        self.payload.as_bytes(py) == payload
    }
}

#[pymethods]
impl PyRecord {
    #[new]
    fn new(lsn: u64, payload: Py<PyBytes>) -> Self {
        Self { lsn, payload }
    }

    #[getter]
    fn next_lsn(&self, py: Python<'_>) -> u64 {
        wal::RecordRef { lsn: wal::Lsn(self.lsn), payload: self.payload.as_bytes(py) }.next_lsn().0
    }

    #[getter]
    fn parts<'py>(&self, py: Python<'py>) -> Option<Vec<Bound<'py, PyBytes>>> {
        let parts = Parts::of(self.payload.as_bytes(py))?;
        Some(parts.map(|part| PyBytes::new(py, part)).collect())
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        self.payload.as_bytes(py).len()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let fields = (self.lsn, self.payload.clone_ref(py)).into_pyobject(py)?;
        Ok(fields.into_any().try_iter()?.into_any())
    }

    fn __richcmp__(&self, other: &Bound<'_, PyAny>, op: CompareOp) -> PyResult<Py<PyAny>> {
        let py = other.py();
        let key = |record: &Self| (record.lsn, record.payload.as_bytes(py).to_vec());
        let equal = match other.cast::<Self>() {
            Ok(other) => key(self) == key(other.get()),
            Err(_) => return Ok(py.NotImplemented()),
        };
        match op {
            CompareOp::Eq => Ok(equal.into_pyobject(py)?.to_owned().into_any().unbind()),
            CompareOp::Ne => Ok((!equal).into_pyobject(py)?.to_owned().into_any().unbind()),
            _ => Ok(py.NotImplemented()),
        }
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        let fields: Bound<'_, PyTuple> =
            (self.lsn, self.payload.clone_ref(py)).into_pyobject(py)?;
        fields.hash()
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let payload = self.payload.as_bytes(py);
        let shown = payload.get(..32).unwrap_or(payload).escape_ascii();
        let len = payload.len();
        let more = if len > 32 { format!("... {len} bytes") } else { String::new() };
        format!("Record(lsn={}, payload=b\"{shown}\"{more})", self.lsn)
    }
}

/// Step, without the GIL if that means reading.
fn step<'a>(py: Python<'_>, cursor: &'a mut Cursor) -> PyResult<Option<RecordRef<'a>>> {
    match cursor.ready() {
        true => cursor.next(),
        false => py.detach(move || cursor.next()),
    }
    .or_raise(py)
}

fn to_record(py: Python<'_>, record: RecordRef<'_>) -> PyRecord {
    PyRecord::build(py, record.lsn.0, record.payload)
}

#[pyclass(frozen, module = "deedbook")]
pub struct RecordIterator(pub Mutex<Cursor>);

#[pymethods]
impl RecordIterator {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyRecord>> {
        let mut cursor = locked(py, &self.0);
        Ok(step(py, &mut cursor)?.map(|record| to_record(py, record)))
    }

    #[getter]
    fn damages(&self, py: Python<'_>) -> Vec<PyDamage> {
        locked(py, &self.0).damages().iter().cloned().map(PyDamage).collect()
    }
}

#[pyclass(frozen, module = "deedbook")]
pub struct PayloadIterator(pub Mutex<Cursor>);

#[pymethods]
impl PayloadIterator {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let mut cursor = locked(py, &self.0);
        Ok(step(py, &mut cursor)?.map(|record| PyBytes::new(py, record.payload)))
    }
}

#[pyclass(frozen, module = "deedbook")]
pub struct BackRecords(pub Mutex<Reverse>);

#[pymethods]
impl BackRecords {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyRecord>> {
        let mut cursor = locked(py, &self.0);
        let cursor = &mut *cursor;
        let record = py.detach(move || cursor.next()).or_raise(py)?;
        Ok(record.map(|record| to_record(py, record)))
    }
}

#[pyclass(frozen, module = "deedbook")]
pub struct FollowRecords {
    pub follow: Mutex<Follow>,
    pub timeout: Option<Duration>,
}

#[pymethods]
impl FollowRecords {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyRecord>> {
        let found = wait(py, &self.follow, self.timeout, |follow, patience| {
            let record = follow.next(patience)?;
            Ok(record.map(|record| (record.lsn.0, record.payload.to_vec())))
        })?;
        Ok(found.map(|(lsn, payload)| PyRecord::build(py, lsn, &payload)))
    }
}
