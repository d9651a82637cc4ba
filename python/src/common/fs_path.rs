//! Paths between Python and the crate.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

/// A path that Python is given: a text by the encoding of the system's file names, as all of Python has
/// them. Under `LC_ALL=C` that is not UTF-8, and Python could not name the file by any other text.
#[derive(Clone, Debug, PartialEq)]
pub struct FsPath(PathBuf);

impl From<PathBuf> for FsPath {
    fn from(path: PathBuf) -> Self {
        Self(path)
    }
}

impl From<&PathBuf> for FsPath {
    fn from(path: &PathBuf) -> Self {
        Self(path.clone())
    }
}

impl From<&Path> for FsPath {
    fn from(path: &Path) -> Self {
        Self(path.to_path_buf())
    }
}

impl<'py> IntoPyObject<'py> for &FsPath {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        match self.0.to_str() {
            Some(text) if text.is_ascii() || cfg!(windows) => {
                Ok(PyString::new(py, text).into_any())
            }
            _ => decoded(py, self.0.as_os_str()),
        }
    }
}

impl<'py> IntoPyObject<'py> for FsPath {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        (&self).into_pyobject(py)
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for FsPath {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        given.extract().map(Self)
    }
}

#[cfg(unix)]
fn decoded<'py>(py: Python<'py>, name: &OsStr) -> PyResult<Bound<'py, PyAny>> {
    use std::os::unix::ffi::OsStrExt as _;

    py.import("os")?.call_method1("fsdecode", (PyBytes::new(py, name.as_bytes()),))
}

#[cfg(not(unix))]
fn decoded<'py>(py: Python<'py>, name: &OsStr) -> PyResult<Bound<'py, PyAny>> {
    Ok(name.into_pyobject(py)?.into_any())
}

/// A path as Python takes it everywhere: a text, bytes, or an `os.PathLike` of either. One with a NUL
/// names no file.
pub fn path(given: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    let path: PathBuf = given.py().import("os")?.call_method1("fsdecode", (given,))?.extract()?;
    match path.as_os_str().as_encoded_bytes().contains(&0) {
        true => Err(PyValueError::new_err("embedded null byte in the path")),
        false => Ok(path),
    }
}
