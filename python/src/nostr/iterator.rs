//! The class `EventIterator`: events of a walk or of a query.

use std::collections::VecDeque;
use std::sync::Mutex;

use deedbook::nostr::{Events, StoredEvent};
use deedbook::report::Damage;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::common::errors::OrRaise;
use crate::log::iterators::{self, PayloadIterator, locked};
use crate::nostr::event::PyEvent;
use crate::nostr::reports::{PyEventFault, passed_over};

/// The most events, or bytes of events, to read without the GIL.
const AHEAD_EVENTS: usize = 64;
const AHEAD_BYTES: usize = 1 << 18;

struct State {
    /// `None` for the answer to a query.
    walk: Option<Events>,
    /// The skipped damage of a query.
    damage: Vec<Damage>,
    /// Events read ahead; an error is the last item.
    ready: VecDeque<deedbook::Result<StoredEvent>>,
}

impl State {
    fn new(walk: Events) -> Self {
        Self { walk: Some(walk), damage: Vec::new(), ready: VecDeque::new() }
    }

    fn next(&mut self, py: Python<'_>) -> PyResult<Option<StoredEvent>> {
        if self.ready.is_empty() {
            py.detach(|| self.read_ahead());
        }
        self.ready.pop_front().transpose().or_raise(py)
    }

    fn read_ahead(&mut self) {
        let mut bytes = 0;
        while self.ready.len() < AHEAD_EVENTS && bytes < AHEAD_BYTES {
            let Some(found) = self.walk.as_mut().and_then(Events::next) else { return };
            bytes += found.as_ref().map_or(0, |found| found.event.content.len());
            self.ready.push_back(found);
        }
    }
}

#[doc = doc!("EventIterator")]
#[pyclass(frozen, name = "EventIterator", module = "deedbook")]
pub struct PyEventIterator(Mutex<State>);

impl PyEventIterator {
    pub fn new(walk: Events) -> Self {
        Self(Mutex::new(State::new(walk)))
    }

    /// The answer to a query.
    pub fn of_answer((events, damage): (Vec<StoredEvent>, Vec<Damage>)) -> Self {
        let ready = events.into_iter().map(Ok).collect();
        Self(Mutex::new(State { walk: None, damage, ready }))
    }
}

/// The payloads of a walk's events.
pub fn payloads(walk: Events) -> PayloadIterator {
    PayloadIterator::new(Box::new(State::new(walk)))
}

impl iterators::Walk for State {
    fn record<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let event = self.next(py)?.map(PyEvent::from);
        event.map(|event| Ok(Bound::new(py, event)?.into_any())).transpose()
    }

    fn payload<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let found = self.next(py)?;
        Ok(found.map(|found| PyBytes::new(py, found.event.to_json().as_bytes())))
    }

    /// An event store names its damage by segments: see [`PyEventIterator::damages`].
    fn damages(&self) -> Vec<Damage> {
        Vec::new()
    }
}

#[pymethods]
impl PyEventIterator {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyEvent>> {
        Ok(locked(py, &self.0).next(py)?.map(PyEvent::from))
    }

    #[doc = doc!("EventIterator".damages)]
    #[getter]
    fn damages(&self, py: Python<'_>) -> Vec<PyEventFault> {
        let state = locked(py, &self.0);
        passed_over(state.walk.as_ref().map_or(&state.damage, Events::damage))
    }
}
