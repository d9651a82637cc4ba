//! Columns of events that grow event by event and become Arrow arrays without a copy.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, FixedSizeBinaryArray, ListArray, StringArray, TimestampMicrosecondArray,
};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::ArrowError;

use super::columns::{Column, KEY_BYTES, SIG_BYTES, UTC, tag_field, text_field};
use crate::columns::{Int32Column, Int64Column};
use crate::nostr::bytes::record::Parts;
use crate::nostr::bytes::tags::TagsRef;

/// The size of a column, as a guess for the next batch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Room {
    rows: usize,
    bytes: usize,
    lists: usize,
    texts: usize,
}

/// A column under construction.
pub enum Growing {
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
    /// An empty column with room for another column's size.
    pub fn new(column: Column, room: Room) -> Self {
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

    /// Add a field of an event. Columns with the store's notes are filled elsewhere.
    #[inline]
    pub fn push(&mut self, parts: &Parts<'_>) {
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

    /// Add a placeholder without an event, which is null if `finish` receives a null for it.
    pub fn push_nothing(&mut self) {
        match self {
            Self::Id(column) | Self::Pubkey(column) | Self::Sig(column) => column.push_zeros(),
            Self::CreatedAt(column) => column.push(0),
            Self::Kind(column) => column.push(0),
            Self::Tags(column) => column.end_event(),
            Self::Content(column) => column.push(&[]),
            Self::Flags(_) | Self::Segment(_) | Self::Offset(_) | Self::Length(_) => {}
        }
    }

    /// The size of the column so far.
    pub fn room(&self) -> Room {
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

    /// The array. Columns with the store's notes are never null.
    pub fn finish(self, nulls: Option<NullBuffer>) -> Result<ArrayRef, ArrowError> {
        Ok(match self {
            Self::Id(column) | Self::Pubkey(column) | Self::Sig(column) => column.finish(nulls)?,
            Self::CreatedAt(column) => {
                let times = TimestampMicrosecondArray::new(ScalarBuffer::from(column), nulls);
                Arc::new(times.with_timezone(UTC))
            }
            Self::Tags(column) => column.finish(nulls)?,
            Self::Content(column) => Arc::new(column.finish(nulls)?),
            Self::Kind(column) | Self::Flags(column) => column.finish_with(nulls),
            Self::Segment(column) | Self::Offset(column) | Self::Length(column) => column.finish(),
        })
    }
}

/// A column of byte strings of one length.
pub struct Bytes {
    size: i32,
    values: Vec<u8>,
}

impl Bytes {
    fn new(size: i32, room: Room) -> Self {
        Self { size, values: Vec::with_capacity(room.bytes) }
    }

    fn push_zeros(&mut self) {
        self.values.resize(self.values.len() + self.size as usize, 0);
    }

    fn finish(self, nulls: Option<NullBuffer>) -> Result<ArrayRef, ArrowError> {
        let values = Buffer::from_vec(self.values);
        Ok(Arc::new(FixedSizeBinaryArray::try_new(self.size, values, nulls)?))
    }
}

/// A column of texts. The caller keeps their total below 2^31 bytes.
pub struct Texts {
    values: Vec<u8>,
    ends: Vec<i32>,
}

impl Texts {
    /// An empty column with room for so many texts of so many bytes.
    pub fn with_capacity(texts: usize, bytes: usize) -> Self {
        let mut ends = Vec::with_capacity(texts + 1);
        ends.push(0);
        Self { values: Vec::with_capacity(bytes), ends }
    }

    /// Add a text.
    #[inline]
    pub fn push(&mut self, text: &[u8]) {
        self.values.extend_from_slice(text);
        self.ends.push(self.values.len() as i32);
    }

    fn room(&self) -> Room {
        Room { rows: self.ends.len(), bytes: self.values.len(), ..Room::default() }
    }

    /// The array.
    pub fn finish(self, nulls: Option<NullBuffer>) -> Result<StringArray, ArrowError> {
        let ends = OffsetBuffer::new(ScalarBuffer::from(self.ends));
        StringArray::try_new(ends, Buffer::from_vec(self.values), nulls)
    }
}

/// A column of lists of lists of texts.
pub struct TagsColumn {
    /// The ends of each event's tags.
    events: Vec<i32>,
    /// The ends of each tag's texts.
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
        self.end_event();
    }

    /// End the tags of an event.
    fn end_event(&mut self) {
        self.events.push((self.tags.len() - 1) as i32);
    }

    fn room(&self) -> Room {
        let Room { rows: texts, bytes, .. } = self.texts.room();
        Room { rows: self.events.len(), bytes, lists: self.tags.len(), texts }
    }

    fn finish(self, nulls: Option<NullBuffer>) -> Result<ArrayRef, ArrowError> {
        let ends = |ends| OffsetBuffer::new(ScalarBuffer::from(ends));
        let texts: ArrayRef = Arc::new(self.texts.finish(None)?);
        let tags = ListArray::try_new(text_field(), ends(self.tags), texts, None)?;
        Ok(Arc::new(ListArray::try_new(tag_field(), ends(self.events), Arc::new(tags), nulls)?))
    }
}
