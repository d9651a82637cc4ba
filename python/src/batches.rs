//! Arrow out: streams of record batches, and splits.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{ArrayRef, RecordBatch, StructArray};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use deedbook::Damage;
use deedbook::book::{self, Book, Column, OnCorrupt, Options, Split};
use deedbook::wal;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3_arrow::PyRecordBatch;
use pyo3_arrow::ffi::{ArrayIterator, to_schema_pycapsule, to_stream_pycapsule};

use crate::arguments::{self, numbers};
use crate::errors::{OrRaise, invalid};
use crate::iterators::locked;
use crate::reports::PyDamage;

pub const BATCH_ROWS: usize = 65_536;
/// Longer batches are slower: fresh memory costs page faults, short batches reuse what was freed.
pub const BATCH_BYTES: usize = 2 << 20;

/// The columns by name, or the default ones.
pub fn columns(py: Python<'_>, names: Option<Vec<String>>) -> PyResult<Vec<Column>> {
    let Some(names) = names else {
        return Ok(Column::DEFAULT.to_vec());
    };
    if names.is_empty() {
        return Err(invalid(py, "no columns asked for".into()));
    }
    names.iter().map(|name| Column::from_str(name).or_raise(py)).collect()
}

/// `raise` or `skip`.
pub fn on_corrupt(py: Python<'_>, word: &str) -> PyResult<OnCorrupt> {
    match word {
        "raise" => Ok(OnCorrupt::Raise),
        "skip" => Ok(OnCorrupt::Skip),
        _ => Err(invalid(py, format!("on_corrupt {word:?}, known are \"raise\", \"skip\""))),
    }
}

/// Batches of either format, with what they passed over.
pub trait Batches: Iterator<Item = deedbook::Result<RecordBatch>> + Send {
    fn schema(&self) -> SchemaRef;
    fn damages(&self) -> &[Damage];
}

impl Batches for book::Batches {
    fn schema(&self) -> SchemaRef {
        self.schema()
    }

    fn damages(&self) -> &[Damage] {
        self.damages()
    }
}

impl Batches for wal::Batches {
    fn schema(&self) -> SchemaRef {
        self.schema()
    }

    fn damages(&self) -> &[Damage] {
        self.damages()
    }
}

/// A capsule with a stream of all batches.
pub fn stream_of<'py>(
    py: Python<'py>,
    batches: impl Batches + 'static,
    requested_schema: Option<Bound<'py, PyCapsule>>,
) -> PyResult<Bound<'py, PyCapsule>> {
    capsule(py, Box::new(batches), Damages::default(), requested_schema)
}

/// Shared by a stream and the capsule that it became. Whoever locks it needs nothing else, so it
/// may be locked with or without the GIL.
type Damages = Arc<Mutex<Vec<Damage>>>;

fn note(damages: &Damages, batches: &dyn Batches) {
    let mut noted = damages.lock().unwrap_or_else(PoisonError::into_inner);
    if noted.len() < batches.damages().len() {
        *noted = batches.damages().to_vec();
    }
}

fn capsule<'py>(
    py: Python<'py>,
    mut batches: Box<dyn Batches>,
    damages: Damages,
    requested_schema: Option<Bound<'py, PyCapsule>>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let field = Arc::new(Field::new_struct("", batches.schema().fields().clone(), false));
    let arrays = std::iter::from_fn(move || {
        let batch = batches.next()?;
        note(&damages, &*batches);
        Some(match batch {
            Ok(batch) => Ok(Arc::new(StructArray::from(batch)) as ArrayRef),
            Err(error) => Err(ArrowError::ExternalError(Box::new(error))),
        })
    });
    let reader = Box::new(ArrayIterator::new(arrays, field));
    Ok(to_stream_pycapsule(py, reader, requested_schema)?)
}

/// A capsule with a schema.
pub fn schema_of<'py>(py: Python<'py>, schema: &Schema) -> PyResult<Bound<'py, PyCapsule>> {
    Ok(to_schema_pycapsule(py, schema)?)
}

#[pyclass(frozen, module = "deedbook")]
pub struct BatchStream {
    batches: Mutex<Option<Box<dyn Batches>>>,
    schema: SchemaRef,
    damages: Damages,
}

impl BatchStream {
    pub fn new(batches: impl Batches + 'static) -> Self {
        let schema = Batches::schema(&batches);
        Self { batches: Mutex::new(Some(Box::new(batches))), schema, damages: Damages::default() }
    }
}

#[pymethods]
impl BatchStream {
    #[getter]
    fn damages(&self, py: Python<'_>) -> Vec<PyDamage> {
        locked(py, &self.damages).iter().cloned().map(PyDamage).collect()
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyRecordBatch>> {
        let mut guard = locked(py, &self.batches);
        let Some(batches) = guard.as_mut() else {
            return Ok(None);
        };
        let batch = py.detach(|| {
            let batch = batches.next();
            note(&self.damages, &**batches);
            batch
        });
        Ok(batch.transpose().or_raise(py)?.map(PyRecordBatch::new))
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let batches = locked(py, &self.batches).take();
        let batches = batches.ok_or_else(|| {
            invalid(py, "this stream was handed over already; ask the log for another".into())
        })?;
        capsule(py, batches, self.damages.clone(), requested_schema)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        Ok(to_schema_pycapsule(py, self.schema.as_ref())?)
    }
}

type Numbers = (OsString, Option<u64>, Option<u64>, u64, u64, Option<u64>, Option<u64>);

#[pyclass(frozen, eq, name = "Split", module = "deedbook")]
#[derive(PartialEq)]
pub struct PySplit(pub Split);

#[pymethods]
impl PySplit {
    #[new]
    #[pyo3(signature = (path, first_event, deeds, offset, end, unacknowledged_from=None,
                        known_end=None))]
    fn new(
        #[pyo3(from_py_with = arguments::path)] path: PathBuf,
        first_event: Option<u64>,
        deeds: Option<u64>,
        #[pyo3(from_py_with = numbers::offset)] offset: u64,
        #[pyo3(from_py_with = numbers::end)] end: u64,
        unacknowledged_from: Option<u64>,
        known_end: Option<u64>,
    ) -> Self {
        let (ordinal, records) = (first_event, deeds);
        Self(Split { path, ordinal, records, offset, end, unacknowledged_from, known_end })
    }

    fn __getnewargs__(&self) -> Numbers {
        let Split { ordinal, records, offset, end, unacknowledged_from, known_end, .. } = self.0;
        (self.path(), ordinal, records, offset, end, unacknowledged_from, known_end)
    }

    #[getter]
    fn unacknowledged_from(&self) -> Option<u64> {
        self.0.unacknowledged_from
    }

    #[getter]
    fn known_end(&self) -> Option<u64> {
        self.0.known_end
    }

    #[getter]
    fn path(&self) -> OsString {
        self.0.path.clone().into_os_string()
    }

    #[getter]
    fn first_event(&self) -> Option<u64> {
        self.0.ordinal
    }

    #[getter]
    fn deeds(&self) -> Option<u64> {
        self.0.records
    }

    #[getter]
    fn offset(&self) -> u64 {
        self.0.offset
    }

    #[getter]
    fn end(&self) -> u64 {
        self.0.end
    }

    #[pyo3(signature = (*, start=None, stop=None, columns=None, batch_rows=65536,
                        batch_bytes=2097152, on_corrupt="raise", verify="crc",
                        deed_bytes_max=4294967296))]
    #[allow(clippy::too_many_arguments)]
    fn batches(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::start)] start: Option<u64>,
        #[pyo3(from_py_with = numbers::stop)] stop: Option<u64>,
        columns: Option<Vec<String>>,
        #[pyo3(from_py_with = numbers::batch_rows)] batch_rows: usize,
        #[pyo3(from_py_with = numbers::batch_bytes)] batch_bytes: usize,
        on_corrupt: &str,
        verify: &str,
        #[pyo3(from_py_with = numbers::deed_bytes_max)] deed_bytes_max: u64,
    ) -> PyResult<BatchStream> {
        let columns = self::columns(py, columns)?;
        let on_corrupt = self::on_corrupt(py, on_corrupt)?;
        let check = checks(py, verify)?;
        let options = Options { deed_bytes_max, ..Options::default() };
        let cursor = py.detach(|| {
            Book::read_split(&self.0, &options, start.unwrap_or(0), stop, on_corrupt, check)
        });
        let cursor = cursor.or_raise(py)?;
        Ok(BatchStream::new(book::Batches::new(cursor, columns, batch_rows, batch_bytes)))
    }

    fn __repr__(&self) -> String {
        let Split { path, ordinal, records, offset, end, .. } = &self.0;
        let shown = |value: &Option<u64>| value.map_or("None".into(), |value| value.to_string());
        let (first, deeds) = (shown(ordinal), shown(records));
        format!("Split({:?}, first_event={first}, deeds={deeds}, offset={offset}, end={end})", path)
    }
}

/// Whether checksums are compared: `crc` or `none`.
pub fn checks(py: Python<'_>, word: &str) -> PyResult<bool> {
    match word {
        "crc" => Ok(true),
        "none" => Ok(false),
        _ => Err(invalid(py, format!("verify {word:?}, known are \"crc\", \"none\""))),
    }
}
