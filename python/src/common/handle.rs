//! The methods that Python expects of a handle of any format.

use std::ops::Deref;
use std::path::Path;

use pyo3::exceptions::{PyOverflowError, PyResourceWarning, PyTypeError};
use pyo3::prelude::*;

use crate::common::errors::OrRaise;

/// The process that opened a handle.
#[derive(Clone, Copy)]
pub struct Owner(u32);

impl Owner {
    pub fn this_process() -> Self {
        Self(std::process::id())
    }

    /// Whether the handle came here by a fork and belongs to the parent.
    pub fn is_another(self) -> bool {
        self.0 != std::process::id()
    }

    /// The `repr` of an unusable handle.
    pub fn absent(self) -> String {
        match self.is_another() {
            true => format!("of process {}", self.0),
            false => "closed".into(),
        }
    }

    /// Warn, as Python does for files, that a handle was never closed.
    pub fn warn_unclosed(self, class: &str, path: &Path, closed: bool) {
        if closed || self.is_another() {
            return;
        }
        // None while the interpreter ends: no warning could be shown.
        Python::try_attach(|py| {
            // The handle may go because something is being raised.
            let raised = PyErr::take(py);
            if let Err(failed) = warn(py, &format!("unclosed <deedbook.{class} {path:?}>")) {
                failed.write_unraisable(py, None);
            }
            if let Some(raised) = raised {
                raised.restore(py);
            }
        });
    }
}

fn warn(py: Python<'_>, message: &str) -> PyResult<()> {
    if is_ending(py).unwrap_or(true) {
        return Ok(());
    }
    let arguments = (message, py.get_type::<PyResourceWarning>());
    py.import("warnings")?.call_method1("warn", arguments).map(drop)
}

/// An error, too, late in the end of the interpreter: `sys` cannot be imported any more.
fn is_ending(py: Python<'_>) -> PyResult<bool> {
    py.import("sys")?.call_method0("is_finalizing")?.is_truthy()
}

/// A log that is dropped without the GIL: the last reference syncs and waits for locks.
pub struct Held<T: Send>(Option<T>);

impl<T: Send> Held<T> {
    pub fn new(log: T) -> Self {
        Self(Some(log))
    }
}

impl<T: Send> Deref for Held<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match &self.0 {
            Some(log) => log,
            None => unreachable!("taken only by drop"),
        }
    }
}

impl<T: Send> Drop for Held<T> {
    fn drop(&mut self) {
        let log = self.0.take();
        // At the end of the interpreter, an uncalled closure is dropped all the same.
        Python::try_attach(|py| py.detach(|| drop(log)));
    }
}

/// The result of a `with` block: the error of closing, unless the block raises an error of its own, which
/// is the cause.
pub fn left(raised: &Bound<'_, PyAny>, closed: PyResult<()>) -> PyResult<()> {
    if raised.is_none() { closed } else { Ok(()) }
}

/// The number in `item in log`; None for a number that no log can have.
pub fn number_in(item: &Bound<'_, PyAny>, what: &str) -> PyResult<Option<u64>> {
    let py = item.py();
    match item.extract::<i128>() {
        Ok(number) => Ok(u64::try_from(number).ok()),
        Err(raised) if raised.is_instance_of::<PyOverflowError>(py) => Ok(None),
        Err(_) => {
            let class = item.get_type().name()?;
            Err(PyTypeError::new_err(format!("'in' takes {what}, not {:?}", class.to_string())))
        }
    }
}

/// The record of a search; None if no record has the number.
pub fn found<T: Send>(py: Python<'_>, read: deedbook::Result<T>) -> PyResult<Option<T>> {
    match read {
        Err(error) if error.kind() == deedbook::ErrorKind::OutOfRange => Ok(None),
        read => read.or_raise(py).map(Some),
    }
}
