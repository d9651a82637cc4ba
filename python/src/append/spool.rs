//! Appending any iterable of bytes-like objects, and any Arrow array of them, to a ledger.

use deedbook::Batch;
use deedbook::Durability;
use deedbook::ledger::{LedgerFormat, LedgerStore, Position};
use pyo3::prelude::*;

use crate::append::input::{PART_BYTES, Sink, feed};
use crate::append::payload::{Limit, bytes_of, each};
use crate::append::positions::{PyPositions, Range};
use crate::common::errors::OrRaise;

/// Appends parts of an endless stream of events of a ledger.
struct Spooler<'a> {
    ledger: &'a LedgerStore,
    batch: Batch<LedgerFormat>,
    taken: u64,
    /// The first and the last record.
    at: Option<(Position, Position)>,
}

impl Sink for Spooler<'_> {
    const COLUMN: &'static str = "payload";

    fn push(&mut self, _mug: u32, payload: &[u8]) -> deedbook::Result<()> {
        self.batch.push(payload)?;
        self.taken += 1;
        Ok(())
    }

    fn is_full(&self) -> bool {
        // No more than a file takes: the limit of all files may be as low.
        self.batch.bytes_len() as u64 >= self.ledger.max_file_size().min(PART_BYTES as u64)
    }

    fn flush(&mut self) -> deedbook::Result<()> {
        if !self.batch.is_empty() {
            let appended = self.ledger.append_unsynced(&self.batch);
            self.batch.clear();
            let first = self.at.map(|(first, _)| first);
            self.at = appended?.map(|(begin, last)| (first.unwrap_or(begin), last)).or(self.at);
        }
        Ok(())
    }

    fn taken(&self) -> u64 {
        self.taken
    }
}

/// Append everything that an iterable or an Arrow object gives; with `atomic`, nothing if one
/// record cannot be appended. Without `atomic`, the records before an error stay appended.
pub fn append_events(
    ledger: &LedgerStore,
    limit: Limit,
    events: &Bound<'_, PyAny>,
    atomic: bool,
) -> PyResult<PyPositions> {
    let py = events.py();
    let batch = Batch::<LedgerFormat>::new(ledger.options().record_bytes_max);
    let mut spooler = Spooler { ledger, batch, taken: 0, at: None };
    if atomic {
        each(events, |event| {
            let event = bytes_of(event, limit)?;
            spooler.push(0, event.as_ref()).or_raise(py)?;
            Ok(event.as_ref().len())
        })?;
        let at = py.detach(|| ledger.append_batch(&spooler.batch)).or_raise(py)?;
        return Ok(spooled(at, spooler.taken));
    }
    let fed = feed(&mut spooler, limit, events, None);
    let finished = py.detach(|| {
        spooler.flush()?;
        if ledger.options().durability == Durability::Always {
            ledger.sync()?;
        }
        Ok(())
    });
    fed?;
    finished.or_raise(py)?;
    Ok(spooled(spooler.at, spooler.taken))
}

fn spooled(at: Option<(Position, Position)>, records: u64) -> PyPositions {
    let at = at.map(|(first, last)| Range::Files { first, last, records });
    PyPositions(at.unwrap_or(Range::Nowhere))
}
