//! The opener of `deedbook::storage` for files that other programs may have replaced.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

use deedbook::storage;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use crate::common::errors::to_py;
use crate::common::fs_path::{self, FsPath};

/// An error of the system becomes a plain `OSError`, as Python's own `open` raises it.
fn raised(py: Python<'_>, path: &Path, error: &deedbook::Error) -> PyErr {
    let source = error.io_source();
    let Some(number) = source.and_then(std::io::Error::raw_os_error) else {
        return to_py(py, error);
    };
    let text = source.map(ToString::to_string).unwrap_or_default();
    let text = text.split(" (os error").next().unwrap_or_default().to_owned();
    // The last is the number on Windows, and ignored elsewhere.
    PyOSError::new_err((number, text, FsPath::from(path), number))
}

fn done<T: Send>(
    py: Python<'_>,
    path: &Path,
    work: impl FnOnce() -> deedbook::Result<T> + Send,
) -> PyResult<T> {
    py.detach(work).map_err(|error| raised(py, path, &error))
}

#[doc = doc!("_open_regular")]
#[pyfunction]
#[pyo3(signature = (path, write, create, new, mode, /))]
pub fn _open_regular(
    py: Python<'_>,
    #[pyo3(from_py_with = fs_path::path)] path: PathBuf,
    write: bool,
    create: bool,
    new: bool,
    mode: u32,
) -> PyResult<i32> {
    let mut options = OpenOptions::new();
    options.read(true).write(write).create(create).create_new(new).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    descriptor(py, done(py, &path, || storage::open_regular(&path, options))?)
}

#[cfg(unix)]
fn descriptor(_: Python<'_>, file: File) -> PyResult<i32> {
    Ok(std::os::fd::IntoRawFd::into_raw_fd(file))
}

#[cfg(windows)]
fn descriptor(py: Python<'_>, file: File) -> PyResult<i32> {
    let handle = std::os::windows::io::IntoRawHandle::into_raw_handle(file) as usize;
    py.import("msvcrt")?.call_method1("open_osfhandle", (handle, 0))?.extract()
}

#[doc = doc!("_read_small")]
#[pyfunction]
#[pyo3(signature = (path, /))]
pub fn _read_small(
    py: Python<'_>,
    #[pyo3(from_py_with = fs_path::path)] path: PathBuf,
) -> PyResult<Vec<u8>> {
    done(py, &path, || storage::read_small(&path))
}

#[doc = doc!("_is_regular")]
#[pyfunction]
#[pyo3(signature = (path, /))]
pub fn _is_regular(
    py: Python<'_>,
    #[pyo3(from_py_with = fs_path::path)] path: PathBuf,
) -> PyResult<bool> {
    done(py, &path, || storage::is_regular(&path))
}

#[doc = doc!("_is_directory")]
#[pyfunction]
#[pyo3(signature = (path, /))]
pub fn _is_directory(
    py: Python<'_>,
    #[pyo3(from_py_with = fs_path::path)] path: PathBuf,
) -> PyResult<bool> {
    done(py, &path, || storage::is_directory(&path))
}
