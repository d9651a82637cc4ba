//! Where records lie: a ledger's position, and the range that appending many gives.

use std::hash::{DefaultHasher, Hash, Hasher};

use deedbook::ledger::Position;
use deedbook::{Error, ErrorKind};
use pyo3::IntoPyObjectExt;
use pyo3::basic::CompareOp;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyGenericAlias, PyRange, PyType};

use crate::common::arguments::numbers;
use crate::common::errors::to_py;

#[doc = doc!("LedgerPosition")]
#[pyclass(frozen, name = "LedgerPosition", module = "deedbook")]
pub struct PyLedgerPosition(pub Position);

#[pymethods]
impl PyLedgerPosition {
    #[new]
    fn new(
        #[pyo3(from_py_with = numbers::file)] file: u32,
        #[pyo3(from_py_with = numbers::record)] record: u64,
    ) -> Self {
        Self(Position { file, record })
    }

    #[classattr]
    fn __match_args__() -> (&'static str, &'static str) {
        ("file", "record")
    }

    #[doc = doc!("LedgerPosition".file)]
    #[getter]
    fn file(&self) -> u32 {
        self.0.file
    }

    #[doc = doc!("LedgerPosition".record)]
    #[getter]
    fn record(&self) -> u64 {
        self.0.record
    }

    fn __getnewargs__(&self) -> (u32, u64) {
        (self.0.file, self.0.record)
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let both = self.__getnewargs__().into_pyobject(py)?;
        Ok(both.into_any().try_iter()?.into_any())
    }

    fn __richcmp__(&self, other: &Bound<'_, PyAny>, op: CompareOp) -> PyResult<Py<PyAny>> {
        let py = other.py();
        match other.cast::<Self>() {
            Ok(other) => op.matches(self.0.cmp(&other.get().0)).into_py_any(py),
            Err(_) => Ok(py.NotImplemented()),
        }
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        format!("LedgerPosition(file={}, record={})", self.0.file, self.0.record)
    }
}

/// A position in a ledger: a `LedgerPosition`, or a tuple of two numbers.
pub fn position_of(given: &Bound<'_, PyAny>) -> PyResult<Position> {
    if let Ok(position) = given.cast::<PyLedgerPosition>() {
        return Ok(position.get().0);
    }
    match given.extract::<(u32, u64)>() {
        Ok((file, record)) => Ok(Position { file, record }),
        Err(_) => {
            let class = given.get_type().name()?.to_string();
            let message = format!("a position in a ledger is (file, record), not {class:?}");
            Err(PyTypeError::new_err(message))
        }
    }
}

/// [`position_of`] for `from_py_with`, where `None` is allowed.
pub fn optional(given: &Bound<'_, PyAny>) -> PyResult<Option<Position>> {
    if given.is_none() { Ok(None) } else { position_of(given).map(Some) }
}

/// The positions of records that a call appended together.
pub enum Range {
    /// Every number from `first` to before `end`.
    Dense { first: u64, end: u64 },
    /// LSNs, with gaps between them.
    Sparse { first: u64, last: u64, end: u64, records: u64 },
    /// In one or several files.
    Files { first: Position, last: Position, records: u64 },
    /// Nothing was appended to a ledger, so no file began.
    Nowhere,
}

#[doc = doc!("Positions")]
#[pyclass(frozen, name = "Positions", module = "deedbook")]
pub struct PyPositions(pub Range);

impl PyPositions {
    fn nothing<T>(&self, py: Python<'_>) -> PyResult<T> {
        let message = "nothing was appended, so there is no position";
        Err(to_py(py, &Error::new(ErrorKind::OutOfRange, message)))
    }
}

fn in_ledger<'py>(py: Python<'py>, file: u32, record: u64) -> PyResult<Bound<'py, PyAny>> {
    PyLedgerPosition(Position { file, record }).into_bound_py_any(py)
}

#[pymethods]
impl PyPositions {
    #[classmethod]
    #[pyo3(signature = (item, /))]
    fn __class_getitem__<'py>(
        class: &Bound<'py, PyType>,
        item: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyGenericAlias>> {
        PyGenericAlias::new(class.py(), class, item)
    }

    #[doc = doc!("Positions".first)]
    #[getter]
    fn first<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.0 {
            Range::Dense { first, .. } | Range::Sparse { first, .. } => first.into_bound_py_any(py),
            Range::Files { first, .. } => in_ledger(py, first.file, first.record),
            Range::Nowhere => self.nothing(py),
        }
    }

    #[doc = doc!("Positions".last)]
    #[getter]
    fn last<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.0 {
            _ if self.__len__() == 0 => self.nothing(py),
            Range::Dense { end, .. } => (end - 1).into_bound_py_any(py),
            Range::Sparse { last, .. } => last.into_bound_py_any(py),
            Range::Files { last, .. } => in_ledger(py, last.file, last.record),
            Range::Nowhere => self.nothing(py),
        }
    }

    #[doc = doc!("Positions".end)]
    #[getter]
    fn end<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.0 {
            Range::Dense { end, .. } | Range::Sparse { end, .. } => end.into_bound_py_any(py),
            Range::Files { last, .. } => in_ledger(py, last.file, last.record + 1),
            Range::Nowhere => self.nothing(py),
        }
    }

    fn __len__(&self) -> usize {
        (match self.0 {
            Range::Dense { first, end } => end - first,
            Range::Sparse { records, .. } | Range::Files { records, .. } => records,
            Range::Nowhere => 0,
        }) as usize
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let range = |start: u64, stop: u64| py.get_type::<PyRange>().call1((start, stop));
        match self.0 {
            Range::Dense { first, end } => Ok(range(first, end)?.try_iter()?.into_any()),
            Range::Nowhere => Ok(range(0, 0)?.try_iter()?.into_any()),
            _ => Err(PyTypeError::new_err(
                "only the first and the last position are known: read log[first:end]",
            )),
        }
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        if matches!(self.0, Range::Nowhere) {
            return Ok("Positions(records=0)".into());
        }
        let (first, end) = (self.first(py)?.repr()?, self.end(py)?.repr()?);
        Ok(format!("Positions(first={first}, end={end}, records={})", self.__len__()))
    }
}
