//! Payloads in parts: from a file of Python, and for one.

use std::io::{self, Read};
use std::sync::Mutex;

use deedbook::Result;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyMemoryView, PySlice};

use crate::common::errors::{OrRaise, invalid};
use crate::common::logging::check_signals;
use crate::log::iterators::locked;

/// Read in one piece at most.
const PIECE_BYTES: usize = 1 << 20;

/// Reads from a file-like object of Python.
pub struct FromFile(Py<PyAny>);

impl Read for FromFile {
    fn read(&mut self, block: &mut [u8]) -> io::Result<usize> {
        Python::attach(|py| self.read_attached(py, block)).map_err(io::Error::other)
    }
}

impl FromFile {
    fn read_attached(&self, py: Python<'_>, block: &mut [u8]) -> PyResult<usize> {
        check_signals(py)?;
        let wanted = block.len();
        let part = self.0.bind(py).call_method1("read", (wanted,))?;
        if part.is_none() {
            return Err(PyValueError::new_err("the file is not blocking: read() returned None"));
        }
        let part = PyBuffer::<u8>::get(&part)
            .map_err(|_| PyTypeError::new_err("read() returned no bytes: is it a text file?"))?;
        let len = part.len_bytes();
        let Some(target) = block.get_mut(..len) else {
            let message = format!("read({wanted}) returned {len} bytes");
            return Err(PyValueError::new_err(message));
        };
        part.copy_to_slice(py, target)?;
        Ok(len)
    }
}

/// Append what an open file holds; returns the record's number.
pub fn append_file(
    file: &Bound<'_, PyAny>,
    size: Option<u64>,
    append: impl FnOnce(u64, &mut FromFile) -> Result<u64> + Send,
) -> PyResult<u64> {
    let (py, size) = (file.py(), size_of(file, size)?);
    let mut file = FromFile(file.clone().unbind());
    py.detach(|| append(size, &mut file)).or_raise(py)
}

/// Bytes from the place of a file to its end.
fn size_of(file: &Bound<'_, PyAny>, size: Option<u64>) -> PyResult<u64> {
    if let Some(size) = size {
        return Ok(size);
    }
    let py = file.py();
    let look = || -> PyResult<u64> {
        let at: u64 = file.call_method0("tell")?.extract()?;
        let end: u64 = file.call_method1("seek", (0, 2))?.extract()?;
        file.call_method1("seek", (at,))?;
        Ok(end.saturating_sub(at))
    };
    look().map_err(|cause| {
        let error = invalid(py, "the file cannot tell its size, so `size` is needed".into());
        error.set_cause(py, Some(cause));
        error
    })
}

#[doc = doc!("PayloadParts")]
#[pyclass(frozen, name = "PayloadParts", module = "deedbook._core")]
pub struct PyPayloadParts {
    #[doc = doc!("PayloadParts".size)]
    #[pyo3(get)]
    size: u64,
    #[doc = doc!("PayloadParts".mug)]
    #[pyo3(get)]
    mug: Option<u32>,
    reader: Mutex<Parts>,
}

enum Parts {
    Jam(deedbook::PayloadReader<deedbook::book::BookFormat>),
    Payload(deedbook::PayloadReader<deedbook::wal::WalFormat>),
}

impl Parts {
    fn read_part(&mut self, block: &mut [u8]) -> Result<usize> {
        match self {
            Self::Jam(reader) => reader.read_part(block),
            Self::Payload(reader) => reader.read_part(block),
        }
    }
}

impl PyPayloadParts {
    fn opened<'py>(
        py: Python<'py>,
        size: u64,
        mug: Option<u32>,
        parts: Parts,
    ) -> PyResult<Bound<'py, PyAny>> {
        let parts = Self { size, mug, reader: Mutex::new(parts) };
        py.import("deedbook._payload")?.getattr("PayloadReader")?.call1((parts,))
    }

    pub fn of_jam(
        py: Python<'_>,
        reader: deedbook::PayloadReader<deedbook::book::BookFormat>,
    ) -> PyResult<Bound<'_, PyAny>> {
        Self::opened(py, reader.size(), Some(reader.mug()), Parts::Jam(reader))
    }

    pub fn of_payload(
        py: Python<'_>,
        reader: deedbook::PayloadReader<deedbook::wal::WalFormat>,
    ) -> PyResult<Bound<'_, PyAny>> {
        Self::opened(py, reader.size(), None, Parts::Payload(reader))
    }
}

#[pymethods]
impl PyPayloadParts {
    #[doc = doc!("PayloadParts".readinto)]
    fn readinto(&self, py: Python<'_>, buffer: &Bound<'_, PyAny>) -> PyResult<usize> {
        let view = PyMemoryView::from(buffer)?.call_method1("cast", ("B",))?;
        let wanted = view.len()?.min(PIECE_BYTES);
        let mut reader = locked(py, &self.reader);
        let reader = &mut *reader;
        let mut piece = vec![0; wanted];
        let read = py.detach(|| reader.read_part(&mut piece)).or_raise(py)?;
        let part = view.get_item(PySlice::new(py, 0, read as isize, 1))?;
        PyBuffer::<u8>::get(&part)?.copy_from_slice(py, piece.get(..read).unwrap_or_default())?;
        Ok(read)
    }
}
