//! A range of a book or a pier as a value: iterable again and again, both ways, and an Arrow table.

use deedbook::OnCorrupt;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PySlice};

use crate::book::deeds::{Deeds, schema};
use crate::common::errors::{OrRaise, invalid};
use crate::common::handle::Held;
use crate::log::any_log::How;
use crate::log::batches::{schema_of, stream_of};
use crate::log::iterators::{PayloadIterator, RecordIterator};

#[doc = doc!("DeedRange")]
#[pyclass(frozen, module = "deedbook")]
pub struct DeedRange {
    deeds: Held<Box<dyn Deeds>>,
    #[doc = doc!("DeedRange".start)]
    #[pyo3(get)]
    start: u64,
    #[doc = doc!("DeedRange".stop)]
    #[pyo3(get)]
    stop: u64,
}

/// An event number as given: counted from the end if negative. An impossible number becomes 0 or
/// the last u64, because no log has these numbers.
pub fn event_of(py: Python<'_>, book: &dyn Deeds, given: i128) -> PyResult<u64> {
    let next = i128::from(py.detach(|| book.last()).or_raise(py)?) + 1;
    let event = if given < 0 { next.saturating_add(given) } else { given };
    Ok(event.clamp(0, u64::MAX.into()) as u64)
}

impl DeedRange {
    pub fn new(
        py: Python<'_>,
        deeds: Box<dyn Deeds>,
        slice: &Bound<'_, PySlice>,
    ) -> PyResult<Self> {
        let book = &*deeds;
        let part = |name: &str| slice.getattr(name)?.extract::<Option<i128>>();
        if let Some(step) = part("step")?.filter(|&step| step != 1) {
            return Err(invalid(py, format!("step {step}; only 1, and reversed()")));
        }
        let ends = py.detach(|| book.epoch().and_then(|epoch| Ok((epoch, book.last()?))));
        let (epoch, last) = ends.or_raise(py)?;
        let (first, next) = (epoch.saturating_add(1), last.saturating_add(1));
        let resolve = |given: Option<i128>, default: u64| match given {
            Some(given) => event_of(py, book, given).map(|event| event.clamp(first, next)),
            None => Ok(default),
        };
        let start = resolve(part("start")?, first)?;
        let stop = resolve(part("stop")?, next)?.max(start);
        Ok(Self { deeds: Held::new(deeds), start, stop })
    }

    fn range(&self) -> (Option<u64>, Option<u64>) {
        (Some(self.start), Some(self.stop))
    }
}

#[pymethods]
impl DeedRange {
    fn __len__(&self) -> usize {
        (self.stop - self.start) as usize
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<RecordIterator> {
        let walk = py.detach(|| self.deeds.walk(self.range(), OnCorrupt::Raise));
        Ok(RecordIterator::new(walk.or_raise(py)?))
    }

    fn __reversed__(&self, py: Python<'_>) -> PyResult<RecordIterator> {
        let walk = py.detach(|| self.deeds.walk_back(self.range()));
        Ok(RecordIterator::new(walk.or_raise(py)?))
    }

    #[doc = doc!("DeedRange".payloads)]
    fn payloads(&self, py: Python<'_>) -> PyResult<PayloadIterator> {
        let walk = py.detach(|| self.deeds.walk(self.range(), OnCorrupt::Raise));
        Ok(PayloadIterator::new(walk.or_raise(py)?))
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        stream_of(py, self.deeds.batches(py, self.range(), How::default())?, requested_schema)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_of(py, &*schema().or_raise(py)?)
    }

    fn __repr__(&self) -> String {
        format!("DeedRange({}, {})", self.start, self.stop)
    }
}
