//! The class `EventIterator`: events of a walk or of a query.

use std::collections::VecDeque;
use std::sync::Mutex;

use deedbook::nostr::{Events, StoredEvent};
use deedbook::report::Damage;
use pyo3::prelude::*;

use crate::common::errors::OrRaise;
use crate::log::iterators::locked;
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
        let (damage, ready) = (Vec::new(), VecDeque::new());
        Self(Mutex::new(State { walk: Some(walk), damage, ready }))
    }

    /// The answer to a query.
    pub fn of_answer((events, damage): (Vec<StoredEvent>, Vec<Damage>)) -> Self {
        let ready = events.into_iter().map(Ok).collect();
        Self(Mutex::new(State { walk: None, damage, ready }))
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
        let state = locked(py, &self.0);
        passed_over(state.walk.as_ref().map_or(&state.damage, Events::damage))
    }
}
