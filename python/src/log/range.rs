//! A range of a log as a value: iterable again and again, and an Arrow table.

use deedbook::{OnCorrupt, Result};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PySlice};

use crate::common::errors::{OrRaise, invalid};
use crate::common::handle::Held;
use crate::log::any_log::{AnyLog, How, Range};
use crate::log::batches::{Batches, schema_of, stream_of};
use crate::log::iterators::{PayloadIterator, RecordIterator, Walk};

/// Records between two positions.
pub trait Ranged: Send + Sync {
    fn walk(&self) -> Result<Box<dyn Walk>>;
    fn walk_back(&self, py: Python<'_>) -> PyResult<Box<dyn Walk>>;
    fn batches(&self, py: Python<'_>) -> PyResult<Box<dyn Batches>>;
}

/// The range of a write-ahead log.
struct OfLog {
    log: Box<dyn AnyLog>,
    range: Range,
}

impl Ranged for OfLog {
    fn walk(&self) -> Result<Box<dyn Walk>> {
        self.log.walk(self.range, OnCorrupt::Raise)
    }

    fn walk_back(&self, py: Python<'_>) -> PyResult<Box<dyn Walk>> {
        py.detach(|| self.log.walk_back(self.range)).or_raise(py)
    }

    fn batches(&self, py: Python<'_>) -> PyResult<Box<dyn Batches>> {
        self.log.batches(py, self.range, How::default())
    }
}

#[doc = doc!("RecordRange")]
#[pyclass(frozen, module = "deedbook")]
pub struct RecordRange(Held<Box<dyn Ranged>>);

impl RecordRange {
    pub fn of(ranged: impl Ranged + 'static) -> Self {
        Self(Held::new(Box::new(ranged)))
    }

    pub fn of_log(log: Box<dyn AnyLog>, range: Range) -> Self {
        Self::of(OfLog { log, range })
    }
}

/// Begin and end of a slice, where they are given.
pub type Bounds<'py> = (Option<Bound<'py, PyAny>>, Option<Bound<'py, PyAny>>);

/// Begin and end of a slice, which has no step.
pub fn bounds_of<'py>(slice: &Bound<'py, PySlice>) -> PyResult<Bounds<'py>> {
    let part =
        |name: &str| slice.getattr(name).map(|part| Some(part).filter(|part| !part.is_none()));
    if let Some(step) = part("step")?.filter(|step| !step.eq(1).unwrap_or(false)) {
        let message = format!("step {}; only 1, and reversed()", step.repr()?);
        return Err(invalid(slice.py(), message));
    }
    Ok((part("start")?, part("stop")?))
}

#[pymethods]
impl RecordRange {
    fn __iter__(&self, py: Python<'_>) -> PyResult<RecordIterator> {
        Ok(RecordIterator::new(py.detach(|| self.0.walk()).or_raise(py)?))
    }

    fn __reversed__(&self, py: Python<'_>) -> PyResult<RecordIterator> {
        Ok(RecordIterator::new(self.0.walk_back(py)?))
    }

    #[doc = doc!("RecordRange".payloads)]
    fn payloads(&self, py: Python<'_>) -> PyResult<PayloadIterator> {
        Ok(PayloadIterator::new(py.detach(|| self.0.walk()).or_raise(py)?))
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        stream_of(py, self.0.batches(py)?, requested_schema)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_of(py, &self.0.batches(py)?.schema())
    }

    fn __repr__(&self) -> &'static str {
        "<deedbook.RecordRange>"
    }
}
