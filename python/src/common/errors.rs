//! The crate's errors as the exceptions of `deedbook._errors`, one to one.

use deedbook::{Durable, Error, ErrorKind};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyModule;

use crate::common::fs_path::FsPath;
use crate::common::logging;

static CLASSES: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

fn class_name(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Missing => "MissingError",
        ErrorKind::AlreadyExists => "AlreadyExistsError",
        ErrorKind::NotALog => "NotALogError",
        ErrorKind::Unsupported => "UnsupportedError",
        ErrorKind::Corrupt => "CorruptError",
        ErrorKind::LostRecords => "LostRecordsError",
        ErrorKind::Locked => "LockedError",
        ErrorKind::Poisoned => "PoisonedError",
        ErrorKind::ReadOnly => "ReadOnlyError",
        ErrorKind::Closed => "ClosedError",
        ErrorKind::Forked => "ForkedError",
        ErrorKind::OutOfRange => "OutOfRangeError",
        ErrorKind::Contiguity => "ContiguityError",
        ErrorKind::TooLarge => "TooLargeError",
        ErrorKind::InvalidArgument => "InvalidArgumentError",
        ErrorKind::Io => "IoError",
        _ => "Error",
    }
}

/// The error number of a kind that has one; no other number is made up.
fn errno_of(kind: ErrorKind) -> Option<i32> {
    match kind {
        ErrorKind::Missing => Some(2),
        ErrorKind::AlreadyExists => Some(17),
        _ => None,
    }
}

/// A limit of the caller's own is refused like a file system's quota.
fn over_quota(py: Python<'_>, error: &Error) -> Option<i32> {
    let quota = error.io_source()?.kind() == std::io::ErrorKind::QuotaExceeded;
    py.import("errno").ok().filter(|_| quota)?.getattr("EDQUOT").ok()?.extract().ok()
}

/// The exception for an error. If a function of Python failed the call, the function's exception is
/// the cause; an interrupt is raised unchanged.
pub fn to_py(py: Python<'_>, error: &Error) -> PyErr {
    let raised = error.io_source().and_then(|source| source.get_ref()?.downcast_ref::<PyErr>());
    let raised = raised.map(|raised| raised.clone_ref(py));
    if let Some(raised) = raised.as_ref().filter(|e| !e.is_instance_of::<PyException>(py)) {
        return raised.clone_ref(py);
    }
    match build(py, error) {
        Ok(exception) => {
            let exception = PyErr::from_value(exception);
            exception.set_cause(py, raised);
            exception
        }
        Err(failed) => failed,
    }
}

fn build<'py>(py: Python<'py>, error: &Error) -> PyResult<Bound<'py, PyAny>> {
    let module = CLASSES
        .get_or_try_init(py, || PyModule::import(py, "deedbook._errors").map(Bound::unbind))?;
    let class = module.bind(py).getattr(class_name(error.kind()))?;
    let path = error.path().map(FsPath::from);
    let exception = match error.kind() {
        ErrorKind::Io | ErrorKind::Missing | ErrorKind::AlreadyExists => {
            let errno = error.io_source().and_then(std::io::Error::raw_os_error);
            match errno.or_else(|| errno_of(error.kind())).or_else(|| over_quota(py, error)) {
                Some(errno) => class.call1((errno, error.message(), path.clone()))?,
                None => class.call1((error.to_string(),))?,
            }
        }
        _ => class.call1((error.to_string(),))?,
    };
    exception.setattr("format", error.format())?;
    exception.setattr("path", path)?;
    exception.setattr("offset", error.offset())?;
    let durable = error.durable().map(|durable| match durable {
        Durable::No => "no",
        Durable::Unknown => "unknown",
    });
    exception.setattr("durable", durable)?;
    match error.kind() {
        ErrorKind::Corrupt | ErrorKind::LostRecords => {
            exception.setattr("reason", error.message())?;
            exception.setattr("next_intact", error.next_intact())?;
        }
        ErrorKind::Locked => exception.setattr("holder", error.holder())?,
        _ => {}
    }
    Ok(exception)
}

/// `?` for the crate's results.
pub trait OrRaise<T> {
    /// The value, or the exception for the error, or a signal's exception, see [`logging::raised`].
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T: Send> OrRaise<T> for deedbook::Result<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        let done = self.map_err(|error| to_py(py, &error));
        let Some(raised) = logging::raised() else { return done };
        match done {
            // Dropping an opened log closes the log, and may wait for a thread that logs.
            Ok(value) => py.detach(|| drop(value)),
            Err(error) => raised.set_cause(py, Some(error)),
        }
        Err(raised)
    }
}

/// An exception about an argument.
pub fn invalid(py: Python<'_>, message: String) -> PyErr {
    to_py(py, &Error::new(ErrorKind::InvalidArgument, message))
}

/// An exception for an operation that the system does not support.
pub fn unsupported(py: Python<'_>, message: &str) -> PyErr {
    to_py(py, &Error::new(ErrorKind::Unsupported, message))
}
