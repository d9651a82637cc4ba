//! The functions by which Python asks `deedbook::detect`.

use std::path::{Path, PathBuf};

use deedbook::detect::{self, Found, Kind};
use deedbook::{Error, ErrorKind};
use pyo3::prelude::*;

use crate::common::errors::{OrRaise, to_py};
use crate::common::fs_path::{self, FsPath};

/// Name of the format, whether it is a saved end of a log, and where that began.
type Answer = (&'static str, bool, Option<u64>);

fn answer(found: Found) -> Answer {
    (found.kind.name(), found.saved, found.saved_offset)
}

/// The exceptions of detection name the path that was asked about.
fn named<T: Send>(py: Python<'_>, path: &Path, done: deedbook::Result<T>) -> PyResult<T> {
    let is_refusal = matches!(&done, Err(error) if error.kind() == ErrorKind::NotALog);
    let done = done.or_raise(py);
    if is_refusal && let Err(raised) = &done {
        raised.value(py).setattr("path", FsPath::from(path))?;
    }
    done
}

#[doc = doc!("_detect")]
#[pyfunction]
#[pyo3(signature = (path, base=None, /))]
pub fn _detect(
    py: Python<'_>,
    #[pyo3(from_py_with = fs_path::path)] path: PathBuf,
    base: Option<String>,
) -> PyResult<Option<Answer>> {
    let found = py.detach(|| detect::detect(&path, base.as_deref()));
    named(py, &path, found).map(|found| found.map(answer))
}

#[doc = doc!("_require")]
#[pyfunction]
#[pyo3(signature = (path, base=None, /))]
pub fn _require(
    py: Python<'_>,
    #[pyo3(from_py_with = fs_path::path)] path: PathBuf,
    base: Option<String>,
) -> PyResult<Answer> {
    let found = py.detach(|| detect::require(&path, base.as_deref()));
    named(py, &path, found).map(answer)
}

#[doc = doc!("_is_at")]
#[pyfunction]
#[pyo3(signature = (path, format, /))]
pub fn _is_at(
    py: Python<'_>,
    #[pyo3(from_py_with = fs_path::path)] path: PathBuf,
    format: &str,
) -> bool {
    kind_of(format).is_some_and(|kind| py.detach(|| kind.is_at(&path)))
}

#[doc = doc!("_check_format")]
#[pyfunction]
#[pyo3(signature = (path, format, /))]
pub fn _check_format(
    py: Python<'_>,
    #[pyo3(from_py_with = fs_path::path)] path: PathBuf,
    format: &str,
) -> PyResult<()> {
    check_format(py, &path, format)
}

/// Refuse a path that holds a log of another format, and say what is there.
pub fn check_format(py: Python<'_>, path: &Path, format: &str) -> PyResult<()> {
    let other = py.detach(|| kind_of(format)?.other_at(path));
    let Some(found) = other else { return Ok(()) };
    let (shown, title) = (path.display(), found.kind.title());
    let message = if found.saved {
        format!("{shown} is what was cut off a {title} and saved")
    } else {
        let class = class_of(found.kind);
        format!("{shown} holds a {title}; open it with {class}.open or deedbook.open")
    };
    let raised = to_py(py, &Error::new(ErrorKind::NotALog, message));
    raised.value(py).setattr("path", FsPath::from(path))?;
    Err(raised)
}

fn kind_of(format: &str) -> Option<Kind> {
    Kind::ALL.iter().copied().find(|kind| kind.name() == format)
}

fn class_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Book => "Book",
        Kind::Pier => "Pier",
        Kind::Wal => "Wal",
        Kind::Ledger => "Ledger",
        _ => "EventStore",
    }
}
