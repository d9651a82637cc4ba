//! The stage of a task: records gathered from Python, and staged in parts without the GIL.

use deedbook::jobs::Part;
use deedbook::nostr::{self, Event};
use deedbook::{Result, ledger};
use pyo3::prelude::*;
use pyo3_arrow::input::AnyRecordBatch;

use crate::append::input::{self, Sink};
use crate::append::payload::Limit;
use crate::common::errors::{OrRaise, invalid};
use crate::common::logging::check_signals;
use crate::nostr::event::event_of;
use crate::nostr::store::{PART_EVENTS, size_of};

/// Staged at once, without the GIL.
const PART_BYTES: usize = 1 << 20;
const PART_RECORDS: usize = 1 << 14;

/// Records that a task stages.
pub trait Staging: Send {
    fn extend(
        &mut self,
        records: &Bound<'_, PyAny>,
        mugs: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()>;
    fn len(&self) -> u64;
    fn finish(self: Box<Self>) -> Result<Vec<Part>>;
}

/// Records of bytes.
pub struct Records<S> {
    pub stage: S,
    pub limit: Limit,
}

impl Sink for deedbook::jobs::Stage<deedbook::book::BookFormat> {
    const COLUMN: &'static str = "jam";

    fn push(&mut self, mug: u32, jam: &[u8]) -> Result<()> {
        self.push(mug, jam)
    }

    fn taken(&self) -> u64 {
        self.len()
    }
}

impl Sink for deedbook::jobs::Stage<deedbook::wal::WalFormat> {
    const COLUMN: &'static str = "payload";

    fn push(&mut self, _mug: u32, payload: &[u8]) -> Result<()> {
        self.push(payload)
    }

    fn taken(&self) -> u64 {
        self.len()
    }
}

impl Sink for ledger::Stage {
    const COLUMN: &'static str = "payload";

    fn push(&mut self, _mug: u32, payload: &[u8]) -> Result<()> {
        self.push(payload)
    }

    fn taken(&self) -> u64 {
        self.len()
    }
}

/// Records for a stage, whose files are written when these are flushed.
struct Gathered<'a, S> {
    stage: &'a mut S,
    limit: Limit,
    bytes: Vec<u8>,
    /// Mug and length of each.
    records: Vec<(u32, usize)>,
}

impl<S: Sink> Sink for Gathered<'_, S> {
    const COLUMN: &'static str = S::COLUMN;

    fn push(&mut self, mug: u32, payload: &[u8]) -> Result<()> {
        if payload.len() as u64 > self.limit.bytes_max {
            // A long record is refused without a copy.
            self.flush()?;
            return self.stage.push(mug, payload);
        }
        self.bytes.extend_from_slice(payload);
        self.records.push((mug, payload.len()));
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.bytes.len() >= PART_BYTES || self.records.len() >= PART_RECORDS
    }

    /// Records after a refused record are not staged.
    fn flush(&mut self) -> Result<()> {
        let mut rest = self.bytes.as_slice();
        let flushed = self.records.iter().try_for_each(|&(mug, len)| {
            let (payload, after) = rest.split_at(len);
            rest = after;
            self.stage.push(mug, payload)
        });
        self.bytes.clear();
        self.records.clear();
        flushed
    }

    fn taken(&self) -> u64 {
        self.stage.taken() + self.records.len() as u64
    }
}

/// A stage of bytes, which ends with parts.
pub trait Finish: Sink {
    fn parts(self) -> Result<Vec<Part>>;
}

impl Finish for deedbook::jobs::Stage<deedbook::book::BookFormat> {
    fn parts(self) -> Result<Vec<Part>> {
        Ok(vec![self.finish()?])
    }
}

impl Finish for deedbook::jobs::Stage<deedbook::wal::WalFormat> {
    fn parts(self) -> Result<Vec<Part>> {
        Ok(vec![self.finish()?])
    }
}

impl Finish for ledger::Stage {
    fn parts(self) -> Result<Vec<Part>> {
        self.finish()
    }
}

impl<S: Finish> Staging for Records<S> {
    fn extend(
        &mut self,
        records: &Bound<'_, PyAny>,
        mugs: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (py, limit, stage) = (records.py(), self.limit, &mut self.stage);
        let mut gathered = Gathered { stage, limit, bytes: Vec::new(), records: Vec::new() };
        let fed = input::feed(&mut gathered, limit, records, mugs);
        // Records before an error are staged.
        py.detach(|| gathered.flush()).or_raise(py)?;
        fed
    }

    fn len(&self) -> u64 {
        self.stage.taken()
    }

    fn finish(self: Box<Self>) -> Result<Vec<Part>> {
        self.stage.parts()
    }
}

/// Events of an event store: single events, or Arrow batches of the store's columns.
pub struct Events {
    pub stage: nostr::Stage,
}

impl Events {
    fn extend_by_each(&mut self, events: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = events.py();
        let (mut part, mut bytes) = (Vec::new(), 0);
        let mut push = |part: &mut Vec<Event>| {
            let pushed = py.detach(|| part.iter().try_for_each(|event| self.stage.push(event)));
            part.clear();
            pushed.or_raise(py)?;
            check_signals(py)
        };
        for event in events.try_iter()? {
            // Events before an invalid event are staged.
            let event = match event.and_then(|event| event_of(&event)) {
                Ok(event) => event,
                Err(raised) => return push(&mut part).and(Err(raised)),
            };
            bytes += size_of(&event);
            part.push(event);
            if part.len() >= PART_EVENTS || bytes >= PART_BYTES {
                bytes = 0;
                push(&mut part)?;
            }
        }
        push(&mut part)
    }
}

impl Staging for Events {
    fn extend(
        &mut self,
        records: &Bound<'_, PyAny>,
        mugs: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let py = records.py();
        if mugs.is_some() {
            return Err(invalid(py, "mugs are for deeds".into()));
        }
        if !input::is_arrow(records)? {
            return self.extend_by_each(records);
        }
        for batch in records.extract::<AnyRecordBatch>()?.into_reader()? {
            let batch = batch.map_err(|e| invalid(py, format!("arrow: {e}")))?;
            py.detach(|| self.stage.push_batch(&batch)).or_raise(py)?;
            check_signals(py)?;
        }
        Ok(())
    }

    fn len(&self) -> u64 {
        self.stage.len()
    }

    fn finish(self: Box<Self>) -> Result<Vec<Part>> {
        Ok(vec![self.stage.finish()?])
    }
}
