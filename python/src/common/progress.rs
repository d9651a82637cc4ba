//! Progress of long work that runs without the GIL.

use deedbook::{Error, ErrorKind};
use pyo3::prelude::*;

use crate::common::errors::OrRaise;
use crate::common::logging::check_signals;

/// A function of Python called with progress. Also the place where Ctrl-C ends the work.
pub struct Progress {
    callback: Option<Py<PyAny>>,
    raised: Option<PyErr>,
}

impl Progress {
    /// Tell how far the work is; an error ends it.
    pub fn call(&mut self, done: u64, total: u64) -> deedbook::Result<()> {
        self.tell(|py, callback| callback.call1(py, (done, total)))
    }

    /// The same with other arguments.
    pub fn tell(
        &mut self,
        call: impl FnOnce(Python<'_>, &Py<PyAny>) -> PyResult<Py<PyAny>>,
    ) -> deedbook::Result<()> {
        let called = Python::attach(|py| {
            check_signals(py)?;
            self.callback.as_ref().map_or(Ok(()), |callback| call(py, callback).map(drop))
        });
        called.map_err(|raised| {
            self.raised = Some(raised);
            Error::new(ErrorKind::InvalidArgument, "the progress function raised")
        })
    }

    /// Do the work without the GIL.
    pub fn run<T: Send>(
        py: Python<'_>,
        callback: Option<Py<PyAny>>,
        work: impl FnOnce(&mut Self) -> deedbook::Result<T> + Send,
    ) -> PyResult<T> {
        let mut progress = Self { callback, raised: None };
        let result = py.detach(|| work(&mut progress));
        match progress.raised {
            Some(raised) => Err(raised),
            None => result.or_raise(py),
        }
    }
}
