//! Arrow out: streams of record batches.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{ArrayRef, RecordBatch, StructArray};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use deedbook::report::Damage;
use deedbook::{OnCorrupt, nostr};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3_arrow::PyRecordBatch;
use pyo3_arrow::ffi::{ArrayIterator, to_schema_pycapsule, to_stream_pycapsule};

use crate::common::errors::{OrRaise, invalid};
use crate::common::logging::check_signals;
use crate::common::reports::{PyDamage, damages};
use crate::log::iterators::locked;

pub const BATCH_ROWS: usize = 65_536;
/// Longer batches are slower: fresh memory costs page faults, short batches reuse what was freed.
pub const BATCH_BYTES: usize = 2 << 20;

/// The columns by name, or the default ones.
pub fn columns(
    py: Python<'_>,
    names: Option<Vec<String>>,
    default: &[&str],
) -> PyResult<Vec<String>> {
    match names {
        None => Ok(default.iter().map(|&name| name.into()).collect()),
        Some(names) if names.is_empty() => Err(invalid(py, "no columns asked for".into())),
        Some(names) => Ok(names),
    }
}

/// `raise` or `skip`.
pub fn on_corrupt(py: Python<'_>, word: &str) -> PyResult<OnCorrupt> {
    match word {
        "raise" => Ok(OnCorrupt::Raise),
        "skip" => Ok(OnCorrupt::Skip),
        _ => Err(invalid(py, format!("on_corrupt {word:?}, must be one of \"raise\", \"skip\""))),
    }
}

/// Batches of any format, with the skipped damage.
pub trait Batches: Iterator<Item = deedbook::Result<RecordBatch>> + Send {
    fn schema(&self) -> SchemaRef;
    fn damages(&self) -> &[Damage];
}

impl Batches for deedbook::Batches<deedbook::book::BookFormat> {
    fn schema(&self) -> SchemaRef {
        self.schema()
    }

    fn damages(&self) -> &[Damage] {
        self.damages()
    }
}

impl Batches for deedbook::Batches<deedbook::wal::WalFormat> {
    fn schema(&self) -> SchemaRef {
        self.schema()
    }

    fn damages(&self) -> &[Damage] {
        self.damages()
    }
}

impl Batches for nostr::Batches {
    fn schema(&self) -> SchemaRef {
        self.schema()
    }

    fn damages(&self) -> &[Damage] {
        self.damages()
    }
}

impl Batches for deedbook::Batches<deedbook::ledger::LedgerFormat> {
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
    batches: Box<dyn Batches>,
    requested_schema: Option<Bound<'py, PyCapsule>>,
) -> PyResult<Bound<'py, PyCapsule>> {
    capsule(py, batches, Damages::default(), requested_schema)
}

/// Shared by a stream and the stream's capsule. A thread with the lock needs nothing else, so a
/// thread may lock with or without the GIL.
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

#[doc = doc!("BatchStream")]
#[pyclass(frozen, module = "deedbook")]
pub struct BatchStream {
    batches: Mutex<Option<Box<dyn Batches>>>,
    schema: SchemaRef,
    damages: Damages,
}

impl BatchStream {
    pub fn new(batches: Box<dyn Batches>) -> Self {
        let schema = batches.schema();
        Self { batches: Mutex::new(Some(batches)), schema, damages: Damages::default() }
    }

    fn next_batch(&self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        let mut guard = locked(py, &self.batches);
        let Some(batches) = guard.as_mut() else {
            return Ok(None);
        };
        let batch = py.detach(|| {
            let batch = batches.next();
            note(&self.damages, &**batches);
            batch
        });
        batch.transpose().or_raise(py)
    }
}

#[pymethods]
impl BatchStream {
    #[doc = doc!("BatchStream".damages)]
    #[getter]
    fn damages(&self, py: Python<'_>) -> Vec<PyDamage> {
        damages(&locked(py, &self.damages))
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyRecordBatch>> {
        loop {
            match self.next_batch(py)? {
                // A filter may match little, so a long walk listens to Ctrl-C.
                Some(batch) if batch.num_rows() == 0 => check_signals(py)?,
                batch => return Ok(batch.map(PyRecordBatch::new)),
            }
        }
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

/// Whether checksums are compared: `crc` or `none`.
pub fn checks(py: Python<'_>, word: &str) -> PyResult<bool> {
    match word {
        "crc" => Ok(true),
        "none" => Ok(false),
        _ => Err(invalid(py, format!("verify {word:?}, must be one of \"crc\", \"none\""))),
    }
}
