//! The crate's errors as the exceptions of `deedbook._errors`, one to one.

use deedbook::{Durable, Error, ErrorKind};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyModule;

static CLASSES: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

const EIO: i32 = 5;

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

/// The exception for an error.
pub fn to_py(py: Python<'_>, error: &Error) -> PyErr {
    match build(py, error) {
        Ok(exception) => PyErr::from_value(exception),
        Err(failed) => failed,
    }
}

fn build<'py>(py: Python<'py>, error: &Error) -> PyResult<Bound<'py, PyAny>> {
    let module = CLASSES
        .get_or_try_init(py, || PyModule::import(py, "deedbook._errors").map(Bound::unbind))?;
    let class = module.bind(py).getattr(class_name(error.kind()))?;
    let path = error.path().map(|path| path.as_os_str().to_owned());
    let exception = match error.kind() {
        ErrorKind::Io | ErrorKind::Missing | ErrorKind::AlreadyExists => {
            let errno = error.io_source().and_then(std::io::Error::raw_os_error).unwrap_or(
                match error.kind() {
                    ErrorKind::Missing => 2,
                    ErrorKind::AlreadyExists => 17,
                    _ => EIO,
                },
            );
            class.call1((errno, error.message(), path.clone()))?
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
    /// The value, or the exception for the error.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for deedbook::Result<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| to_py(py, &error))
    }
}

/// An exception about an argument.
pub fn invalid(py: Python<'_>, message: String) -> PyErr {
    to_py(py, &Error::new(ErrorKind::InvalidArgument, message))
}
