//! Events as Arrow record batches, straight from the pages.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, FixedSizeBinaryArray, ListArray, RecordBatch, RecordBatchOptions, StringArray,
    TimestampMicrosecondArray,
};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, SchemaRef};

use super::FORMAT;
use super::columns::{Column, KEY_BYTES, SIG_BYTES, UTC, tag_field, text_field};
use super::filter::Filter;
use super::read::Events;
use super::record::Parts;
use super::tags::TagsRef;
use super::walk::Seen;
use crate::columns::{Int32Column, Int64Column};
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
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<RecordBatch>> {
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
            let record_len = seen.record_len() as usize;
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
        let arrays = growing.into_iter().map(Growing::finish).collect::<Result<_, _>>();
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
        Batches::next(self).transpose()
    }
}

/// How much a column took: a batch is mostly as large as the one before.
#[derive(Clone, Copy, Debug, Default)]
struct Room {
    rows: usize,
    bytes: usize,
    lists: usize,
    texts: usize,
}

enum Growing {
    Id(Bytes),
    Pubkey(Bytes),
    CreatedAt(Vec<i64>),
    Kind(Int32Column),
    Tags(TagsColumn),
    Content(Texts),
    Sig(Bytes),
    Flags(Int32Column),
    Segment(Int64Column),
    Offset(Int64Column),
    Length(Int64Column),
}

impl Growing {
    fn new(column: Column, room: Room) -> Self {
        match column {
            Column::Id => Self::Id(Bytes::new(KEY_BYTES, room)),
            Column::Pubkey => Self::Pubkey(Bytes::new(KEY_BYTES, room)),
            Column::CreatedAt => Self::CreatedAt(Vec::with_capacity(room.rows)),
            Column::Kind => Self::Kind(Int32Column::default()),
            Column::Tags => Self::Tags(TagsColumn::new(room)),
            Column::Content => Self::Content(Texts::with_capacity(room.rows, room.bytes)),
            Column::Sig => Self::Sig(Bytes::new(SIG_BYTES, room)),
            Column::Flags => Self::Flags(Int32Column::default()),
            Column::Segment => Self::Segment(Int64Column::default()),
            Column::Offset => Self::Offset(Int64Column::default()),
            Column::Length => Self::Length(Int64Column::default()),
        }
    }

    #[inline]
    fn push(&mut self, parts: &Parts<'_>) {
        match self {
            Self::Id(column) => column.values.extend_from_slice(parts.id),
            Self::Pubkey(column) => column.values.extend_from_slice(parts.pubkey),
            Self::CreatedAt(column) => column.push(i64::from(parts.created_at) * 1_000_000),
            Self::Kind(column) => column.push(parts.kind.into()),
            Self::Tags(column) => column.push(parts.tags),
            Self::Content(column) => column.push(parts.content),
            Self::Sig(column) => column.values.extend_from_slice(parts.sig),
            Self::Flags(_) | Self::Segment(_) | Self::Offset(_) | Self::Length(_) => {}
        }
    }

    fn room(&self) -> Room {
        match self {
            Self::Id(column) | Self::Pubkey(column) | Self::Sig(column) => {
                Room { bytes: column.values.len(), ..Room::default() }
            }
            Self::CreatedAt(column) => Room { rows: column.len(), ..Room::default() },
            Self::Content(column) => column.room(),
            Self::Tags(column) => column.room(),
            _ => Room::default(),
        }
    }

    fn finish(self) -> Result<ArrayRef, ArrowError> {
        Ok(match self {
            Self::Id(column) | Self::Pubkey(column) | Self::Sig(column) => column.finish()?,
            Self::CreatedAt(column) => {
                let times = TimestampMicrosecondArray::new(ScalarBuffer::from(column), None);
                Arc::new(times.with_timezone(UTC))
            }
            Self::Tags(column) => column.finish()?,
            Self::Content(column) => Arc::new(column.finish()?),
            Self::Kind(column) | Self::Flags(column) => column.finish(),
            Self::Segment(column) | Self::Offset(column) | Self::Length(column) => column.finish(),
        })
    }
}

/// A column of byte strings of one size.
struct Bytes {
    size: i32,
    values: Vec<u8>,
}

impl Bytes {
    fn new(size: i32, room: Room) -> Self {
        Self { size, values: Vec::with_capacity(room.bytes) }
    }

    fn finish(self) -> Result<ArrayRef, ArrowError> {
        let values = Buffer::from_vec(self.values);
        Ok(Arc::new(FixedSizeBinaryArray::try_new(self.size, values, None)?))
    }
}

/// A column of texts. The caller sees to it that they are shorter than 2^31 bytes together.
struct Texts {
    values: Vec<u8>,
    ends: Vec<i32>,
}

impl Texts {
    fn with_capacity(texts: usize, bytes: usize) -> Self {
        let mut ends = Vec::with_capacity(texts + 1);
        ends.push(0);
        Self { values: Vec::with_capacity(bytes), ends }
    }

    #[inline]
    fn push(&mut self, text: &[u8]) {
        self.values.extend_from_slice(text);
        self.ends.push(self.values.len() as i32);
    }

    fn room(&self) -> Room {
        Room { rows: self.ends.len(), bytes: self.values.len(), ..Room::default() }
    }

    fn finish(self) -> Result<StringArray, ArrowError> {
        let ends = OffsetBuffer::new(ScalarBuffer::from(self.ends));
        StringArray::try_new(ends, Buffer::from_vec(self.values), None)
    }
}

/// A column of lists of lists of texts.
struct TagsColumn {
    /// Where the tags of an event end.
    events: Vec<i32>,
    /// Where the texts of a tag end.
    tags: Vec<i32>,
    texts: Texts,
}

impl TagsColumn {
    fn new(room: Room) -> Self {
        let begun = |count: usize| {
            let mut ends = Vec::with_capacity(count + 1);
            ends.push(0);
            ends
        };
        let texts = Texts::with_capacity(room.texts, room.bytes);
        Self { events: begun(room.rows), tags: begun(room.lists), texts }
    }

    #[inline]
    fn push(&mut self, tags: TagsRef<'_>) {
        for tag in tags.iter() {
            tag.each_text(|text| self.texts.push(text));
            self.tags.push((self.texts.ends.len() - 1) as i32);
        }
        self.events.push((self.tags.len() - 1) as i32);
    }

    fn room(&self) -> Room {
        let Room { rows: texts, bytes, .. } = self.texts.room();
        Room { rows: self.events.len(), bytes, lists: self.tags.len(), texts }
    }

    fn finish(self) -> Result<ArrayRef, ArrowError> {
        let ends = |ends| OffsetBuffer::new(ScalarBuffer::from(ends));
        let texts: ArrayRef = Arc::new(self.texts.finish()?);
        let tags = ListArray::try_new(text_field(), ends(self.tags), texts, None)?;
        Ok(Arc::new(ListArray::try_new(tag_field(), ends(self.events), Arc::new(tags), None)?))
    }
}
