//! Arguments whose errors name the parameter: numbers, seconds.

use std::io;
use std::path::Path;
use std::time::Duration;

use deedbook::{LockTimeout, Retention};
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;

use crate::common::errors::invalid;
use crate::common::logging::check_signals;

/// A number of seconds, 0 or more.
pub fn seconds(py: Python<'_>, name: &str, seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| invalid(py, format!("{name} must be 0 seconds or more, not {seconds}")))
}

/// Seconds to wait for another writer; Ctrl-C ends the wait.
pub fn lock_timeout(py: Python<'_>, timeout: f64) -> PyResult<LockTimeout> {
    let timeout = LockTimeout::from(seconds(py, "lock_timeout", timeout)?);
    Ok(interruptible(timeout))
}

/// Whether opening reads all of the log first.
pub fn check_all(py: Python<'_>, check: &str) -> PyResult<bool> {
    match check {
        "end" => Ok(false),
        "all" => Ok(true),
        other => Err(invalid(py, format!("check {other:?}, must be \"end\" or \"all\""))),
    }
}

/// Ctrl-C ends the wait, and the reading of a large log while it is opened.
pub fn interruptible(timeout: LockTimeout) -> LockTimeout {
    timeout.checking(|| Python::attach(check_signals).map_err(io::Error::other))
}

/// The prefix that a log may drop; the age in seconds, with the name of its parameter.
pub fn retention(
    py: Python<'_>,
    bytes_max: Option<u64>,
    (name, age): (&str, Option<f64>),
    consumed: bool,
) -> PyResult<Retention> {
    let mut retention = Retention::new().consumed(consumed);
    retention.bytes_max = bytes_max;
    retention.age_max = age.map(|age| seconds(py, name, age)).transpose()?;
    Ok(retention)
}

/// A function of Python as the archive hook. The function's exception is the cause of the failure.
pub fn archive(callback: Py<PyAny>) -> impl Fn(u64, &Path) -> io::Result<()> + Send + Sync {
    move |index, path| {
        let called = Python::attach(|py| callback.call1(py, (index, path)).map(drop));
        called.map_err(io::Error::other)
    }
}

/// A number in the range of its type. Python's own error does not name the argument.
pub fn number<'py, T>(given: &Bound<'py, PyAny>, name: &str) -> PyResult<T>
where
    T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
{
    given.extract::<T>().map_err(|raised: PyErr| {
        if !raised.is_instance_of::<PyOverflowError>(given.py()) {
            return raised;
        }
        PyOverflowError::new_err(match given.lt(0).unwrap_or(false) {
            true => format!("{name} must not be negative, not {}", text(given)),
            false => format!("{name} is too large: {}", text(given)),
        })
    })
}

/// A number as text; Python converts up to 4,300 digits.
fn text(number: &Bound<'_, PyAny>) -> String {
    number.str().map_or_else(|_| "more than 4,300 digits".into(), |text| text.to_string())
}

/// A function per name, for `from_py_with`, which needs a path.
macro_rules! numbers {
    ($($name:ident),* $(,)?) => {
        /// Numbers by the names of their parameters.
        pub mod numbers {
            use super::{Bound, FromPyObject, PyAny, PyErr, PyResult};

            $(pub fn $name<'py, T>(given: &Bound<'py, PyAny>) -> PyResult<T>
            where
                T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
            {
                super::number(given, stringify!($name))
            })*
        }
    };
}

numbers!(
    attempt,
    batch_bytes,
    batch_records,
    batch_rows,
    born_ns,
    bytes,
    checkpoint_bytes,
    count,
    deed_bytes_max,
    device,
    end,
    epoch,
    epoch_part_bytes,
    event,
    event_bytes_max,
    file,
    file_mode,
    first,
    index,
    inode,
    known_end,
    life,
    lsn,
    max_bytes,
    retain_bytes,
    mug,
    n,
    offset,
    ordinal,
    page_bytes,
    partition,
    position,
    record,
    record_bytes_max,
    records,
    segment_bytes,
    size,
    split_bytes,
    start,
    stop,
    unacknowledged_from,
    version,
    wal_segment_bytes,
    who,
);
