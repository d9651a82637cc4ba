//! Python files for Rust to read and write; `deedbook._system.compressed` handles compression.

use std::io::{self, BufReader, Read, Write};
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Bytes asked for at once: each time the GIL is taken.
const READ_BYTES: usize = 1 << 20;

/// An input file of events, with any compression.
pub struct Source(Py<PyAny>);

impl Source {
    pub fn open(source: &Bound<'_, PyAny>) -> PyResult<Self> {
        let files = source.py().import("deedbook._system.compressed")?;
        Ok(Self(files.call_method1("Reader", (source,))?.unbind()))
    }

    /// The name in errors, if the file has a name.
    pub fn name(&self, py: Python<'_>) -> PyResult<Option<PathBuf>> {
        self.0.getattr(py, "name")?.extract(py)
    }

    pub fn lines(&self, py: Python<'_>) -> BufReader<Self> {
        BufReader::with_capacity(READ_BYTES, Self(self.0.clone_ref(py)))
    }

    pub fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.0.call_method0(py, "close").map(drop)
    }
}

impl Read for Source {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = Python::attach(|py| {
            let read = self.0.bind(py).call_method1("read", (buf.len(),))?;
            let bytes = read.cast::<PyBytes>()?.as_bytes();
            let taken = bytes.len().min(buf.len());
            buf.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
            Ok(taken)
        });
        read.map_err(io::Error::other::<PyErr>)
    }
}

/// Refuse to write bad lines to the input file: the import would never end.
pub fn refuse_same(source: &Bound<'_, PyAny>, target: &Bound<'_, PyAny>) -> PyResult<()> {
    let files = source.py().import("deedbook._system.compressed")?;
    files.call_method1("refuse_same", (source, target)).map(drop)
}

/// An output file, compressed if its name says so.
pub struct Target(Py<PyAny>);

impl Target {
    /// With `append`, output goes to the file's end, and a new file is created only with output.
    pub fn open(target: &Bound<'_, PyAny>, append: bool) -> PyResult<Self> {
        let files = target.py().import("deedbook._system.compressed")?;
        Ok(Self(files.call_method1("Writer", (target, append))?.unbind()))
    }

    /// Finish the file. A new file without its whole content is removed.
    pub fn close(&self, py: Python<'_>, complete: bool) -> PyResult<()> {
        self.0.call_method1(py, "close", (complete,)).map(drop)
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = Python::attach(|py| {
            self.0.call_method1(py, "write", (PyBytes::new(py, bytes),)).map(drop)
        });
        written.map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
