//! Events as Arrow record batches, straight from the pages.
//!
//! A long walk of a whole store makes all batches but the first in rounds. In a round, each core
//! makes the batches of one part of a segment. The round ends before the caller gets its first
//! batch. So no thread lives between two calls, and only a batch or two per core are made ahead.

use std::collections::VecDeque;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, SchemaRef};

use super::columns::Column;
use super::growing::{Growing, Room};
use crate::error::{Error, ErrorKind, Result};
use crate::nostr::bytes::format::FORMAT;
use crate::nostr::index::filter::Filter;
use crate::nostr::pages::on_all_cores::{cores, in_threads};
use crate::nostr::pages::progress::Progress;
use crate::nostr::pages::walk::Seen;
use crate::nostr::store::read::{Events, with_segment};
use crate::scan::Damage;

/// A batch ends after so many bytes of events without a match, so that the caller regains control.
const PASSED_BYTES_MAX: usize = 32 << 20;

/// The least number of page bytes for a core at once, compared with which starting a thread is
/// cheap.
const PART_BYTES_MIN: u64 = 8 << 20;
/// If the pages of one batch are larger, one thread makes all batches.
const PART_BYTES_MAX: u64 = 128 << 20;
/// The limit of cores. Each core holds a batch, so the limit bounds the memory.
const CORES_MAX: usize = 8;

/// A stream of record batches over a walk. The events read before an error come first; the error
/// ends the stream.
#[derive(Debug)]
pub struct Batches {
    walk: Reader,
    form: Form,
    /// Batches made ahead for later calls.
    made: VecDeque<Made>,
    threads: usize,
    part_bytes_min: u64,
    damages: Vec<Damage>,
    ended: bool,
}

/// The form of the batches.
#[derive(Debug)]
struct Form {
    filters: Option<Vec<Filter>>,
    columns: Vec<Column>,
    schema: SchemaRef,
    rows_max: usize,
    bytes_max: usize,
}

/// The source of the batches.
#[derive(Debug)]
struct Reader {
    events: Events,
    /// The event of the last step, if it did not fit the batch before.
    carried: Option<Seen>,
    /// The error that ended the batch before.
    failed: Option<Error>,
    /// The size of the previous batch's columns.
    room: Vec<Room>,
    walked: Walked,
    /// The number of damages already returned with a batch.
    noted: usize,
}

/// The rows made so far, and the bytes read for them in records and pages. Bytes of events without
/// a match count, too.
#[derive(Clone, Copy, Debug, Default)]
struct Walked {
    rows: u64,
    bytes: u64,
    page_bytes: u64,
}

/// A batch or the end of a walk, and the damage before it.
#[derive(Debug)]
struct Made {
    batch: Option<Result<RecordBatch>>,
    damages: Vec<Damage>,
}

impl Batches {
    /// The columns that readers get by default.
    pub const DEFAULT: &'static [&'static str] =
        &["id", "pubkey", "created_at", "kind", "tags", "content", "sig", "flags"];

    /// Make batches of at most `rows_max` events, closed once their records have `bytes_max` bytes.
    /// A walk on several cores closes some batches earlier. The columns go by their names:
    ///
    /// | name | value |
    /// |---|---|
    /// | `id`, `pubkey`, `sig` | 32, 32 and 64 bytes |
    /// | `created_at` | microseconds in UTC, because Parquet and Spark have no seconds |
    /// | `kind` | int32 |
    /// | `tags` | lists of lists of texts, without loss, because every value of a tag is text |
    /// | `content` | text |
    /// | `flags` | the store's notes, as an int32: 1 deleted, 2 replaced, and 64 for a lossy event |
    /// | `segment`, `offset` | number of the event's segment, and the first byte of its first page there: int64 |
    /// | `length` | size of the event's pages in bytes: int64 |
    ///
    /// # Errors
    ///
    /// Fails with [`InvalidArgument`](ErrorKind::InvalidArgument) for the name of no column.
    pub fn new(
        events: Events,
        columns: &[impl AsRef<str>],
        rows_max: usize,
        bytes_max: usize,
    ) -> Result<Self> {
        let columns = Column::all_of(columns)?;
        let (schema, room) = (Column::schema(&columns), vec![Room::default(); columns.len()]);
        let (rows_max, bytes_max) = (rows_max.max(1), bytes_max.clamp(1, 1 << 30));
        Ok(Self {
            walk: Reader::new(events, room),
            form: Form { filters: None, columns, schema, rows_max, bytes_max },
            made: VecDeque::new(),
            threads: cores().min(CORES_MAX),
            part_bytes_min: PART_BYTES_MIN,
            damages: Vec::new(),
            ended: false,
        })
    }

    /// The schema of batches with these columns.
    ///
    /// # Errors
    ///
    /// Fails with [`InvalidArgument`](ErrorKind::InvalidArgument) for the name of no column.
    pub fn schema_of(columns: &[impl AsRef<str>]) -> Result<SchemaRef> {
        Ok(Column::schema(&Column::all_of(columns)?))
    }

    /// Return only the events that match a filter. A filter with a limit is refused,
    /// because a limit asks for the newest events. If matches are rare, a batch may have no rows.
    ///
    /// # Errors
    ///
    /// Fails for columns of other types, or values that they cannot hold.
    pub fn matching(mut self, filters: Vec<Filter>) -> Result<Self> {
        if filters.iter().any(|filter| filter.limit.is_some()) {
            let message = "filter: limit: batches come in the order in which events were stored, \
                           so there are no newest ones";
            return Err(Error::new(ErrorKind::InvalidArgument, message).of(FORMAT));
        }
        self.form.filters = Some(filters);
        Ok(self)
    }

    /// The schema of every batch.
    pub fn schema(&self) -> SchemaRef {
        self.form.schema.clone()
    }

    /// The skipped damaged pages so far. The reason begins with the segment.
    pub fn damages(&self) -> &[Damage] {
        &self.damages
    }

    /// The next batch; `None` after an error.
    fn next_batch(&mut self) -> Option<Result<RecordBatch>> {
        while !self.ended {
            if self.made.is_empty() {
                match self.take_parts() {
                    parts if parts.is_empty() => {
                        let made = self.form.make_next(&mut self.walk);
                        self.ended = made.batch.is_none();
                        self.made.push_back(made);
                    }
                    parts => self.make_parts(parts),
                }
            }
            let made = self.made.pop_front()?;
            self.damages.extend(made.damages);
            if let Some(batch) = made.batch {
                self.ended = batch.is_err();
                return Some(batch);
            }
        }
        None
    }

    /// The next parts, one for each core; none if the walk continues in this thread.
    fn take_parts(&mut self) -> Vec<Reader> {
        let walk = &mut self.walk;
        // The first batch is made alone: many callers need no more, and its size decides the size
        // of a part.
        if self.threads < 2 || walk.walked.page_bytes == 0 || walk.is_between() {
            return Vec::new();
        }
        let part_bytes = self.form.part_bytes(walk.walked).max(self.part_bytes_min);
        if part_bytes > PART_BYTES_MAX {
            return Vec::new();
        }
        let parts = walk.events.take_parts(self.threads, part_bytes).into_iter();
        parts.map(|events| Reader::new(events, walk.room.clone())).collect()
    }

    /// Make the batches of some parts.
    fn make_parts(&mut self, parts: Vec<Reader>) {
        let form = &self.form;
        let work = |mut walk: Reader, _: &mut dyn FnMut(u64) -> Result<()>| {
            let mut made = Vec::new();
            loop {
                let next = form.make_next(&mut walk);
                let is_last = !matches!(next.batch, Some(Ok(_)));
                made.push(next);
                if is_last {
                    return Ok((made, walk.walked));
                }
            }
        };
        let done = in_threads(self.threads, parts.into_iter(), work, &mut Progress::silent());
        let done = done.unwrap_or_else(|error| {
            let (batch, damages) = (Some(Err(error)), Vec::new());
            vec![(vec![Made { batch, damages }], Walked::default())]
        });
        for (made, walked) in done {
            self.made.extend(made);
            if walked.page_bytes > 0 {
                self.walk.walked = walked;
            }
        }
        // Return to callers between rounds, even if matches are rare.
        if self.form.filters.is_some() && self.made.iter().all(|made| made.batch.is_none()) {
            let (batch, damages) = (RecordBatch::new_empty(self.schema()), Vec::new());
            self.made.push_back(Made { batch: Some(Ok(batch)), damages });
        }
    }
}

impl Reader {
    fn new(events: Events, room: Vec<Room>) -> Self {
        let (carried, failed, walked) = (None, None, Walked::default());
        Self { events, carried, failed, room, walked, noted: 0 }
    }

    /// Whether the reader has an item before its next event.
    fn is_between(&self) -> bool {
        self.carried.is_some() || self.failed.is_some()
    }

    fn new_damages(&mut self) -> Vec<Damage> {
        let found = self.events.damage().iter().skip(self.noted).cloned();
        let found: Vec<Damage> = found.map(with_segment).collect();
        self.noted += found.len();
        found
    }
}

impl Form {
    /// The size of pages for a nearly full batch: a little more would end in a short extra batch.
    fn part_bytes(&self, walked: Walked) -> u64 {
        let pages =
            |limit: usize, done: u64| limit as f64 * walked.page_bytes as f64 / done.max(1) as f64;
        let full = pages(self.rows_max, walked.rows).min(pages(self.bytes_max, walked.bytes));
        (full * 0.875) as u64
    }

    fn make_next(&self, walk: &mut Reader) -> Made {
        let batch = self.make(walk).transpose();
        Made { batch, damages: walk.new_damages() }
    }

    fn make(&self, walk: &mut Reader) -> Result<Option<RecordBatch>> {
        if let Some(error) = walk.failed.take() {
            return Err(error);
        }
        let grow = |(column, room): (&Column, &Room)| Growing::new(*column, *room);
        let mut growing: Vec<Growing> = self.columns.iter().zip(&walk.room).map(grow).collect();
        let (mut rows, mut bytes, mut passed) = (0, 0, 0);
        while passed < PASSED_BYTES_MAX && rows < self.rows_max && bytes < self.bytes_max {
            let seen = match walk.carried.take() {
                Some(carried) => Some(carried),
                None => match walk.events.step() {
                    Err(error) if rows > 0 => {
                        walk.failed = Some(error);
                        break;
                    }
                    seen => seen?,
                },
            };
            let Some(seen) = seen else { break };
            let Some((at, looker)) = walk.events.at(seen) else { break };
            let page_bytes = looker.end_of(seen) - u64::from(at.offset);
            // Every offset of a text is below the sum of the records, and must fit 31 bits.
            let record_len = looker.bytes(seen).len();
            if bytes + record_len > i32::MAX as usize {
                walk.carried = Some(seen);
                break;
            }
            walk.walked.page_bytes += page_bytes;
            walk.walked.bytes += record_len as u64;
            if let Some(filters) = &self.filters {
                let event = looker.record(seen).event;
                if !filters.iter().any(|filter| filter.matches(&event)) {
                    passed += record_len;
                    continue;
                }
            }
            let parts = looker.parts(seen);
            for column in &mut growing {
                match column {
                    Growing::Segment(column) => _ = column.push(Some(at.segment.into())),
                    Growing::Offset(column) => _ = column.push(Some(at.offset.into())),
                    Growing::Length(column) => _ = column.push(Some(page_bytes)),
                    Growing::Flags(column) => column.push(seen.flags().0.into()),
                    column => column.push(&parts),
                }
            }
            rows += 1;
            walk.walked.rows += 1;
            bytes += record_len;
        }
        if rows == 0 && passed < PASSED_BYTES_MAX {
            return Ok(None);
        }
        walk.room = growing.iter().map(Growing::room).collect();
        let arrays =
            growing.into_iter().map(|column| column.finish(None)).collect::<Result<_, _>>();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = arrays.and_then(|arrays| {
            RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options)
        });
        let wrong = |e: ArrowError| {
            Error::new(ErrorKind::InvalidArgument, format!("arrow: {e}")).of(FORMAT)
        };
        batch.map(Some).map_err(wrong)
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch()
    }
}

#[cfg(test)]
mod tests;
