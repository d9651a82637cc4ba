//! Iterators: forwards, backwards, payloads alone, following.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use deedbook::book::{Cursor, DeedRef, Follow, Reverse};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyBytes;

use crate::deed::PyDeed;
use crate::errors::OrRaise;
use crate::reports::PyDamage;

/// Between two looks for Ctrl-C while waiting.
const PATIENCE: Duration = Duration::from_millis(50);

/// Wait for the lock without the GIL: its holder may need the GIL to let go.
pub fn locked<'a, T>(py: Python<'_>, mutex: &'a Mutex<T>) -> MutexGuard<'a, T> {
    mutex.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
}

/// Step, without the GIL if that means reading.
fn step<'a>(py: Python<'_>, cursor: &'a mut Cursor) -> PyResult<Option<DeedRef<'a>>> {
    match cursor.ready() {
        true => cursor.next(),
        false => py.detach(move || cursor.next()),
    }
    .or_raise(py)
}

fn to_deed(py: Python<'_>, deed: DeedRef<'_>) -> PyDeed {
    PyDeed::build(py, deed.event, deed.mug, deed.jam)
}

#[pyclass(frozen, module = "deedbook")]
pub struct DeedIterator(pub Mutex<Cursor>);

#[pymethods]
impl DeedIterator {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyDeed>> {
        let mut cursor = locked(py, &self.0);
        Ok(step(py, &mut cursor)?.map(|deed| to_deed(py, deed)))
    }

    #[getter]
    fn damages(&self, py: Python<'_>) -> Vec<PyDamage> {
        locked(py, &self.0).damages().iter().cloned().map(PyDamage).collect()
    }
}

#[pyclass(frozen, module = "deedbook")]
pub struct JamIterator(pub Mutex<Cursor>);

#[pymethods]
impl JamIterator {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let mut cursor = locked(py, &self.0);
        Ok(step(py, &mut cursor)?.map(|deed| PyBytes::new(py, deed.jam)))
    }
}

#[pyclass(frozen, module = "deedbook")]
pub struct BackIterator(pub Mutex<Reverse>);

#[pymethods]
impl BackIterator {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyDeed>> {
        let mut cursor = locked(py, &self.0);
        let cursor = &mut *cursor;
        Ok(py.detach(move || cursor.next()).or_raise(py)?.map(|deed| to_deed(py, deed)))
    }
}

#[pyclass(frozen, module = "deedbook")]
pub struct FollowIterator {
    pub follow: Mutex<Follow>,
    pub timeout: Option<Duration>,
}

#[pymethods]
impl FollowIterator {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyDeed>> {
        let found = wait(py, &self.follow, self.timeout, |follow, patience| {
            let deed = follow.next(patience)?;
            Ok(deed.map(|deed| (deed.event, deed.mug, deed.jam.to_vec())))
        })?;
        Ok(found.map(|(event, mug, jam)| PyDeed::build(py, event, mug, &jam)))
    }
}

/// Wait for what a follower finds, looking for Ctrl-C now and then.
pub fn wait<F: Send, T: Send>(
    py: Python<'_>,
    follow: &Mutex<F>,
    timeout: Option<Duration>,
    next: impl Fn(&mut F, Duration) -> deedbook::Result<Option<T>> + Sync,
) -> PyResult<Option<T>> {
    let begun = Instant::now();
    loop {
        let left = match timeout {
            Some(timeout) => timeout.saturating_sub(begun.elapsed()),
            None => PATIENCE,
        };
        let found = {
            // Let go of between two looks: who else wants it, a signal handler too, must not
            // wait for a follower that waits for ever.
            let mut follow = locked(py, follow);
            let follow = &mut *follow;
            py.detach(|| next(follow, left.min(PATIENCE)))
        };
        if let Some(found) = found.or_raise(py)? {
            return Ok(Some(found));
        }
        py.check_signals()?;
        if left <= PATIENCE && timeout.is_some() {
            return Ok(None);
        }
    }
}
