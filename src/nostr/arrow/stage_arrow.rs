//! Stage events from Arrow record batches in the form of [`Batches`](crate::nostr::Batches).

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{
    Array, ArrayRef, BinaryArray, FixedSizeBinaryArray, Int32Array, Int64Array, ListArray,
    RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow_schema::{DataType, TimeUnit};

use super::columns::{Column, KEY_BYTES, SIG_BYTES};
use crate::error::{Durable, Error, ErrorKind, Result};
use crate::nostr::bytes::event::{Event, Id};
use crate::nostr::bytes::format::FORMAT;
use crate::nostr::store::transact::Stage;

const SECOND: i64 = 1_000_000;

impl Stage {
    /// Add the events of a record batch. Columns are found by their names: `id`, `pubkey` and `sig`
    /// (fixed-size binary, or binary), `created_at` (microseconds with a time zone, or int64
    /// seconds), `kind` (int32 or int64), `tags` and `content`. Other columns are ignored.
    ///
    /// A refused batch may be staged up to the row named in the error.
    ///
    /// # Errors
    ///
    /// Fails if the record cannot be staged; see [Errors](crate#errors).
    pub fn push_batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let columns = Columns::of(batch)?;
        for row in 0..batch.num_rows() {
            self.push(&columns.event(row)?).map_err(|e| match e.kind() {
                kind @ (ErrorKind::InvalidArgument | ErrorKind::TooLarge) => {
                    refused(kind, format!("row {row}: {}", e.message()))
                }
                _ => e,
            })?;
        }
        Ok(())
    }
}

/// The columns of a batch, which have no nulls.
struct Columns<'a> {
    id: Bytes<'a>,
    pubkey: Bytes<'a>,
    created_at: Numbers<'a>,
    kind: Numbers<'a>,
    tags: Tags<'a>,
    content: &'a StringArray,
    sig: Bytes<'a>,
}

enum Bytes<'a> {
    Fixed(&'a FixedSizeBinaryArray),
    Plain(&'a BinaryArray),
}

enum Numbers<'a> {
    Int32(&'a Int32Array),
    Int64(&'a Int64Array),
    Micros(&'a TimestampMicrosecondArray),
}

struct Tags<'a> {
    events: &'a ListArray,
    tags: &'a ListArray,
    texts: &'a StringArray,
}

impl<'a> Columns<'a> {
    fn of(batch: &'a RecordBatch) -> Result<Self> {
        let bytes = |column, size| Bytes::of(column, find(batch, column)?, size);
        let content = find(batch, Column::Content)?;
        Ok(Self {
            id: bytes(Column::Id, KEY_BYTES)?,
            pubkey: bytes(Column::Pubkey, KEY_BYTES)?,
            created_at: Numbers::times(find(batch, Column::CreatedAt)?)?,
            kind: Numbers::kinds(find(batch, Column::Kind)?)?,
            tags: Tags::of(find(batch, Column::Tags)?)?,
            content: content
                .as_string_opt()
                .ok_or_else(|| other_type(Column::Content, content, "Utf8"))?,
            sig: bytes(Column::Sig, SIG_BYTES)?,
        })
    }

    fn event(&self, row: usize) -> Result<Event> {
        Ok(Event {
            id: Id(self.id.get(Column::Id, row)?),
            pubkey: self.pubkey.get(Column::Pubkey, row)?,
            created_at: self.created_at.get(Column::CreatedAt, row)?,
            kind: self.kind.get(Column::Kind, row)?,
            tags: self.tags.get(row)?,
            content: self.content.value(row).to_owned(),
            sig: self.sig.get(Column::Sig, row)?,
        })
    }
}

/// The column of a batch, without nulls.
fn find(batch: &RecordBatch, column: Column) -> Result<&ArrayRef> {
    let found = batch.column_by_name(column.name()).ok_or_else(|| {
        let schema = batch.schema();
        let names: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        let message =
            format!("column {} is missing, there are: {}", column.name(), names.join(", "));
        refused(ErrorKind::InvalidArgument, message)
    })?;
    match (0..found.len()).find(|&row| found.is_null(row)).filter(|_| found.null_count() > 0) {
        None => Ok(found),
        Some(row) => Err(wrong(column, row, "null")),
    }
}

impl<'a> Bytes<'a> {
    fn of(column: Column, array: &'a ArrayRef, size: i32) -> Result<Self> {
        match array.data_type() {
            DataType::FixedSizeBinary(found) if *found == size => {
                array.as_fixed_size_binary_opt().map(Self::Fixed)
            }
            DataType::Binary => array.as_binary_opt().map(Self::Plain),
            _ => None,
        }
        .ok_or_else(|| other_type(column, array, &format!("FixedSizeBinary({size}) or Binary")))
    }

    fn get<const N: usize>(&self, column: Column, row: usize) -> Result<[u8; N]> {
        let value = match self {
            Self::Fixed(array) => array.value(row),
            Self::Plain(array) => array.value(row),
        };
        let bytes = value.len();
        value.try_into().map_err(|_| wrong(column, row, &format!("{bytes} bytes, {N} needed")))
    }
}

impl<'a> Numbers<'a> {
    fn times(array: &'a ArrayRef) -> Result<Self> {
        match array.data_type() {
            // With any time zone, the number counts in UTC. Without a time zone, the number belongs
            // to an unknown clock.
            DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => {
                array.as_primitive_opt::<TimestampMicrosecondType>().map(Self::Micros)
            }
            _ => array.as_primitive_opt::<Int64Type>().map(Self::Int64),
        }
        .ok_or_else(|| {
            let may_be = "Timestamp(µs, \"UTC\") or Int64, which counts seconds";
            other_type(Column::CreatedAt, array, may_be)
        })
    }

    fn kinds(array: &'a ArrayRef) -> Result<Self> {
        let wide = || array.as_primitive_opt::<Int64Type>().map(Self::Int64);
        let found = array.as_primitive_opt::<Int32Type>().map(Self::Int32).or_else(wide);
        found.ok_or_else(|| other_type(Column::Kind, array, "Int32 or Int64"))
    }

    fn get<T: TryFrom<i64> + Bounded>(&self, column: Column, row: usize) -> Result<T> {
        let number = match self {
            Self::Int32(array) => array.value(row).into(),
            Self::Int64(array) => array.value(row),
            Self::Micros(array) => {
                let micros = array.value(row);
                if micros % SECOND != 0 {
                    let what = format!("{micros} microseconds, whole seconds needed");
                    return Err(wrong(column, row, &what));
                }
                micros / SECOND
            }
        };
        T::try_from(number)
            .map_err(|_| wrong(column, row, &format!("{number}, may be 0 to {}", T::MOST)))
    }
}

/// A number from 0 to a limit.
trait Bounded {
    const MOST: u32;
}

impl Bounded for u16 {
    const MOST: u32 = u16::MAX as u32;
}

impl Bounded for u32 {
    const MOST: u32 = u32::MAX;
}

impl<'a> Tags<'a> {
    fn of(array: &'a ArrayRef) -> Result<Self> {
        let parts = || {
            let events = array.as_list_opt()?;
            let tags: &ListArray = events.values().as_list_opt()?;
            Some(Self { events, tags, texts: tags.values().as_string_opt()? })
        };
        parts().ok_or_else(|| other_type(Column::Tags, array, "List(List(Utf8))"))
    }

    fn get(&self, row: usize) -> Result<Vec<Vec<String>>> {
        let of_event = range(self.events, row);
        let first = of_event.start;
        let is_null = |tag| wrong(Column::Tags, row, &format!("tag {} is null", tag - first));
        of_event
            .map(|tag| {
                if self.tags.is_null(tag) {
                    return Err(is_null(tag));
                }
                let of_tag = range(self.tags, tag);
                let first_text = of_tag.start;
                of_tag
                    .map(|text| match self.texts.is_null(text) {
                        false => Ok(self.texts.value(text).to_owned()),
                        true => {
                            let (tag, text) = (tag - first, text - first_text);
                            let what = format!("tag {tag}: text {text} is null");
                            Err(wrong(Column::Tags, row, &what))
                        }
                    })
                    .collect()
            })
            .collect()
    }
}

/// The items of a list.
fn range(lists: &ListArray, at: usize) -> Range<usize> {
    let offset = |at: usize| lists.value_offsets().get(at).map_or(0, |&offset| offset as usize);
    offset(at)..offset(at + 1)
}

fn other_type(column: Column, array: &ArrayRef, may_be: &str) -> Error {
    let message = format!("column {} is {}, may be {may_be}", column.name(), array.data_type());
    refused(ErrorKind::InvalidArgument, message)
}

fn wrong(column: Column, row: usize, what: &str) -> Error {
    refused(ErrorKind::InvalidArgument, format!("row {row}: column {}: {what}", column.name()))
}

fn refused(kind: ErrorKind, message: String) -> Error {
    Error::new(kind, message).of(FORMAT).with_durable(Durable::No)
}

#[cfg(test)]
mod tests;
