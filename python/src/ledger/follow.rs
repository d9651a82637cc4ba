//! Following a ledger.

use std::time::Duration;

use deedbook::ledger::{self, LedgerStore};
use pyo3::prelude::*;

use crate::common::errors::OrRaise;
use crate::common::handle::Held;
use crate::ledger::contents::as_ref;
use crate::log::iterators::{ToPython, Wait, Waited};

/// The follower of a ledger, and the handle whose closing ends it.
pub struct Following {
    pub follow: ledger::Follow,
    pub store: Held<LedgerStore>,
}

impl Wait for Following {
    fn record<'py>(&mut self, py: Python<'py>, patience: Duration) -> PyResult<Waited<'py>> {
        if self.store.is_closed() {
            return Ok(Waited::Closed);
        }
        let follow = &mut self.follow;
        match py.detach(move || follow.next(patience)).or_raise(py)? {
            Some((file, record)) => {
                (u64::from(file), as_ref(&record)).to_python(py).map(Waited::Record)
            }
            None => Ok(Waited::Nothing),
        }
    }
}
