//! A file that was fetched from a ledger: what `deedbook.transient.LedgerBody` reads.

use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Mutex;

use deedbook::ledger::LedgerReader;
use deedbook::report::Damage;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView, PySlice};

use crate::common::arguments::numbers;
use crate::common::errors::OrRaise;
use crate::common::fs_path::FsPath;
use crate::common::reports::{PyDamage, damages};
use crate::log::iterators::{PayloadIterator, Walk, locked};

/// Read without the GIL in pieces of this size, which are then copied.
const PIECE_BYTES: usize = 256 << 10;

#[doc = doc!("LedgerFile")]
#[pyclass(frozen, name = "LedgerFile", module = "deedbook")]
pub struct PyLedgerFile {
    id: String,
    reader: Mutex<State>,
}

struct State {
    reader: LedgerReader,
    piece: Vec<u8>,
}

impl State {
    /// The next bytes, as many as wanted; fewer only at the end.
    fn fill(&mut self, at: u64, wanted: usize) -> deedbook::Result<&[u8]> {
        let Self { reader, piece } = self;
        piece.resize(wanted, 0);
        let mut filled = 0;
        let mut read = || -> io::Result<()> {
            reader.seek(SeekFrom::Start(at))?;
            while let Some(rest) = piece.get_mut(filled..).filter(|rest| !rest.is_empty()) {
                match reader.read(rest)? {
                    0 => break,
                    count => filled += count,
                }
            }
            Ok(())
        };
        let done = read();
        done.map_err(|e| reader.error_of(e))?;
        piece.truncate(filled);
        Ok(piece)
    }
}

impl PyLedgerFile {
    pub fn new(reader: LedgerReader, id: String) -> Self {
        Self { id, reader: Mutex::new(State { reader, piece: Vec::new() }) }
    }

    fn ask<T>(&self, py: Python<'_>, ask: impl FnOnce(&LedgerReader) -> T) -> T {
        ask(&locked(py, &self.reader).reader)
    }
}

#[pymethods]
impl PyLedgerFile {
    #[doc = doc!("LedgerFile".id)]
    #[getter]
    fn id(&self) -> &str {
        &self.id
    }

    #[doc = doc!("LedgerFile".index)]
    #[getter]
    fn index(&self, py: Python<'_>) -> u32 {
        self.ask(py, LedgerReader::index)
    }

    #[doc = doc!("LedgerFile".path)]
    #[getter]
    fn path(&self, py: Python<'_>) -> FsPath {
        self.ask(py, |reader| reader.path().into())
    }

    #[doc = doc!("LedgerFile".count)]
    #[getter]
    fn count(&self, py: Python<'_>) -> u64 {
        self.ask(py, LedgerReader::records)
    }

    #[doc = doc!("LedgerFile".content_length)]
    #[getter]
    fn content_length(&self, py: Python<'_>) -> u64 {
        self.ask(py, LedgerReader::content_length)
    }

    #[doc = doc!("LedgerFile".verdict)]
    #[getter]
    fn verdict(&self, py: Python<'_>) -> &'static str {
        self.ask(py, |reader| reader.verdict().name())
    }

    #[doc = doc!("LedgerFile".damages)]
    #[getter]
    fn damages(&self, py: Python<'_>) -> Vec<PyDamage> {
        self.ask(py, |reader| damages(reader.damages()))
    }

    #[doc = doc!("LedgerFile".envelope)]
    #[getter]
    fn envelope<'py>(
        &self,
        py: Python<'py>,
    ) -> (Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>) {
        self.ask(py, |reader| {
            let bytes = |part| PyBytes::new(py, part);
            (bytes(reader.header()), bytes(reader.footer()), bytes(reader.separator()))
        })
    }

    #[doc = doc!("LedgerFile".readinto)]
    fn readinto(
        &self,
        py: Python<'_>,
        buffer: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = numbers::position)] position: u64,
    ) -> PyResult<usize> {
        let view = PyMemoryView::from(buffer)?.call_method1("cast", ("B",))?;
        let len = view.len()?;
        let mut state = locked(py, &self.reader);
        let mut done = 0;
        while done < len {
            let (state, at) = (&mut *state, position + done as u64);
            let wanted = PIECE_BYTES.min(len - done);
            let piece = py.detach(move || state.fill(at, wanted)).or_raise(py)?;
            let end = done + piece.len();
            let part = view.get_item(PySlice::new(py, done as isize, end as isize, 1))?;
            PyBuffer::<u8>::get(&part)?.copy_from_slice(py, piece)?;
            done = end;
            if piece.len() < wanted {
                break;
            }
        }
        Ok(done)
    }

    #[doc = doc!("LedgerFile".records)]
    fn records(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::start)] start: u64,
        #[pyo3(from_py_with = numbers::stop)] stop: u64,
    ) -> PyResult<PayloadIterator> {
        let state = locked(py, &self.reader);
        let reader = &state.reader;
        let part = py.detach(|| reader.part(start..stop)).or_raise(py)?;
        Ok(PayloadIterator::new(Box::new(Payloads(Box::new(
            part.into_iter().flat_map(|part| part.payloads()),
        )))))
    }

    #[doc = doc!("LedgerFile".copy)]
    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        let state = locked(py, &self.reader);
        let reader = &state.reader;
        let copy = py.detach(|| reader.part(0..reader.records())).or_raise(py)?;
        let copy = copy.map(|copy| Self::new(copy, self.id.clone()));
        copy.ok_or_else(|| PyRuntimeError::new_err("a file without records was fetched"))
    }
}

/// The payloads of a file's records.
struct Payloads(Box<dyn Iterator<Item = deedbook::Result<Vec<u8>>> + Send>);

impl Walk for Payloads {
    fn record<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.payload(py)?.map(Bound::into_any))
    }

    fn payload<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let payload = py.detach(|| self.0.next().transpose()).or_raise(py)?;
        Ok(payload.map(|payload| PyBytes::new(py, &payload)))
    }

    fn damages(&self) -> Vec<Damage> {
        Vec::new()
    }
}
