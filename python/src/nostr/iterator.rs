//! The class `EventIterator`: events of a walk or of a query.

use std::collections::VecDeque;
use std::sync::Mutex;

use deedbook::nostr::{Events, Query, StoredEvent};
use pyo3::prelude::*;

use crate::common::errors::OrRaise;
use crate::log::iterators::locked;
use crate::nostr::event::PyEvent;
use crate::nostr::reports::{PyEventFault, passed_over};

/// The most events, or bytes of events, to read without the GIL.
const AHEAD_EVENTS: usize = 64;
const AHEAD_BYTES: usize = 1 << 18;

/// The source of events.
pub enum Walk {
    Events(Box<Events>),
    Query(Query),
}

impl Walk {
    fn next(&mut self) -> Option<deedbook::Result<StoredEvent>> {
        match self {
            Self::Events(events) => events.next(),
            Self::Query(query) => query.next(),
        }
    }
}

struct State {
    walk: Walk,
    /// Events read ahead; an error is the last item.
    ready: VecDeque<deedbook::Result<StoredEvent>>,
}

impl State {
    fn read_ahead(&mut self) {
        let mut bytes = 0;
        while self.ready.len() < AHEAD_EVENTS && bytes < AHEAD_BYTES {
            let Some(found) = self.walk.next() else { return };
            bytes += found.as_ref().map_or(0, |found| found.event.content.len());
            self.ready.push_back(found);
        }
    }
}

#[doc = doc!("EventIterator")]
#[pyclass(frozen, name = "EventIterator", module = "deedbook")]
pub struct PyEventIterator(Mutex<State>);

impl PyEventIterator {
    pub fn new(walk: Walk) -> Self {
        Self(Mutex::new(State { walk, ready: VecDeque::new() }))
    }
}

#[pymethods]
impl PyEventIterator {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyEvent>> {
        let mut state = locked(py, &self.0);
        if state.ready.is_empty() {
            let state = &mut *state;
            py.detach(|| state.read_ahead());
        }
        Ok(state.ready.pop_front().transpose().or_raise(py)?.map(PyEvent::from))
    }

    #[doc = doc!("EventIterator".damages)]
    #[getter]
    fn damages(&self, py: Python<'_>) -> Vec<PyEventFault> {
        match &locked(py, &self.0).walk {
            Walk::Events(events) => passed_over(events.damage()),
            Walk::Query(query) => passed_over(query.damage()),
        }
    }
}
