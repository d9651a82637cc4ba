//! Events as Arrow record batches, straight from the pages.

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, SchemaRef};

use super::FORMAT;
use super::columns::Column;
use super::filter::Filter;
use super::growing::{Growing, Room};
use super::read::Events;
use super::walk::Seen;
use crate::error::{Error, ErrorKind, Result};
use crate::scan::Damage;

/// A batch ends after so many bytes of events that no filter matches, so that callers may end, too.
const PASSED_BYTES_MAX: usize = 32 << 20;

/// A stream of record batches over a walk.
#[derive(Debug)]
pub struct Batches {
    events: Events,
    filters: Option<Vec<Filter>>,
    columns: Vec<Column>,
    schema: SchemaRef,
    rows_max: usize,
    bytes_max: usize,
    /// Stepped onto already, but did not fit the batch before.
    carried: Option<Seen>,
    /// Room that the columns of the batch before took.
    room: Vec<Room>,
    damages: Vec<Damage>,
    ended: bool,
}

impl Batches {
    /// Batches of at most `rows_max` events, closed once their records have `bytes_max` bytes.
    pub fn new(events: Events, columns: Vec<Column>, rows_max: usize, bytes_max: usize) -> Self {
        let (schema, room) = (Column::schema(&columns), vec![Room::default(); columns.len()]);
        let (rows_max, bytes_max) = (rows_max.max(1), bytes_max.clamp(1, 1 << 30));
        let (filters, carried, damages, ended) = (None, None, Vec::new(), false);
        Self {
            events,
            filters,
            columns,
            schema,
            rows_max,
            bytes_max,
            carried,
            room,
            damages,
            ended,
        }
    }

    /// Only the events that any of these filters matches; refused if one has a limit, which is for
    /// the newest events. Where they match little, a batch may have no rows.
    pub fn matching(self, filters: Vec<Filter>) -> Result<Self> {
        if filters.iter().any(|filter| filter.limit.is_some()) {
            let message = "filter: limit: batches come in the order in which events were stored, \
                           so there are no newest ones";
            return Err(Error::new(ErrorKind::InvalidArgument, message).of(FORMAT));
        }
        Ok(Self { filters: Some(filters), ..self })
    }

    /// The schema of every batch.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// The damaged pages passed over so far. The reason begins with the segment.
    pub fn damages(&self) -> &[Damage] {
        &self.damages
    }

    /// The next batch; none after an error.
    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        if self.ended {
            return Ok(None);
        }
        let made = self.make();
        self.ended = !matches!(made, Ok(Some(_)));
        self.note_damages();
        made
    }

    fn make(&mut self) -> Result<Option<RecordBatch>> {
        let grow = |(column, room): (&Column, &Room)| Growing::new(*column, *room);
        let mut growing: Vec<Growing> = self.columns.iter().zip(&self.room).map(grow).collect();
        let (mut rows, mut bytes, mut passed) = (0, 0, 0);
        while passed < PASSED_BYTES_MAX && rows < self.rows_max && bytes < self.bytes_max {
            let seen = match self.carried.take() {
                Some(carried) => Some(carried),
                None => self.events.step()?,
            };
            let Some(seen) = seen else { break };
            let Some((at, looker)) = self.events.at(seen) else { break };
            // Every offset of a text is below the sum of the records, and must be 31 bits.
            let record_len = looker.bytes(seen).len();
            if bytes + record_len > i32::MAX as usize {
                self.carried = Some(seen);
                break;
            }
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
                    Growing::Length(column) => {
                        _ = column.push(Some(looker.end_of(seen) - u64::from(at.offset)));
                    }
                    Growing::Flags(column) => column.push(seen.flags().0.into()),
                    column => column.push(&parts),
                }
            }
            rows += 1;
            bytes += record_len;
        }
        if rows == 0 && passed < PASSED_BYTES_MAX {
            return Ok(None);
        }
        self.room = growing.iter().map(Growing::room).collect();
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

    fn note_damages(&mut self) {
        let found = self.events.damage().iter().skip(self.damages.len());
        self.damages.extend(found.map(|(segment, damage)| Damage {
            offset: damage.offset.into(),
            end: damage.end.into(),
            reason: format!("segment {segment}: {}", damage.reason),
            ..Damage::default()
        }));
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}
