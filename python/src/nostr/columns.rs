//! Events as Arrow record batches, from a store or from a part of a store.

use deedbook::OnCorrupt;
use deedbook::jobs::Split;
use deedbook::nostr::{Batches, EventStore, Events, Filter, Include, Options};
use pyo3::prelude::*;

use crate::common::errors::OrRaise;
use crate::log::batches::{BATCH_BYTES, BATCH_ROWS, BatchStream, columns};
use crate::nostr::arguments as words;

/// The choice of events and columns.
pub struct Picked {
    columns: Vec<String>,
    rows: usize,
    bytes: usize,
    include: Include,
    filters: Option<Vec<Filter>>,
    check: bool,
}

impl Default for Picked {
    fn default() -> Self {
        Self {
            columns: Batches::DEFAULT.iter().map(|&name| name.into()).collect(),
            rows: BATCH_ROWS,
            bytes: BATCH_BYTES,
            include: Include::default(),
            filters: None,
            check: true,
        }
    }
}

impl Picked {
    pub fn new(
        py: Python<'_>,
        names: Option<Vec<String>>,
        (rows, bytes): (usize, usize),
        include: &str,
        filter: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let columns = columns(py, names, Batches::DEFAULT)?;
        let include = words::include(py, include)?;
        let filters = filter.map(words::filters).transpose()?;
        Ok(Self { columns, rows, bytes, include, filters, check: true })
    }

    /// The same; whether checksums are compared.
    pub fn with_check(self, check: bool) -> Self {
        Self { check, ..self }
    }

    fn of(self, events: Events) -> deedbook::Result<Batches> {
        let events = if self.check { events } else { events.without_checksums() };
        let batches = Batches::new(events, &self.columns, self.rows, self.bytes)?;
        match self.filters {
            Some(filters) => batches.matching(filters),
            None => Ok(batches),
        }
    }
}

/// The events of a store as they are now.
pub fn of_store(
    py: Python<'_>,
    store: &EventStore,
    on_corrupt: OnCorrupt,
    picked: Picked,
) -> PyResult<Batches> {
    let read = || store.iter(picked.include, on_corrupt).and_then(|events| picked.of(events));
    py.detach(read).or_raise(py)
}

/// The events of a part.
pub fn of_split(
    py: Python<'_>,
    split: &Split,
    event_bytes_max: Option<u32>,
    on_corrupt: OnCorrupt,
    picked: Picked,
) -> PyResult<BatchStream> {
    let mut options = Options::default();
    options.event_bytes_max = event_bytes_max.unwrap_or(options.event_bytes_max);
    let read = || {
        let events = EventStore::read_split(split, &options, picked.include, on_corrupt)?;
        picked.of(events)
    };
    Ok(BatchStream::new(Box::new(py.detach(read).or_raise(py)?)))
}
