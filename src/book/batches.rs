//! Deeds as Arrow record batches.

use std::str::FromStr;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::cursor::Cursor;
use super::format::{FORMAT, FRAMING_BYTES, Frame, MUG_BYTES};
use crate::columns::{BinaryColumn, Int32Column, Int64Column};
use crate::error::{Error, ErrorKind, Result};
use crate::scan::Damage;

/// A column of a deed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// Event number: int64, null behind damage that hid the count.
    Event,
    /// Mug: int32, its bits as stored.
    Mug,
    /// Payload: binary.
    Jam,
    /// Byte of the deed in the log: int64.
    Offset,
    /// Bytes of the deed with its framing: int64.
    Length,
}

impl Column {
    /// The columns given by default.
    pub const DEFAULT: [Self; 3] = [Self::Event, Self::Mug, Self::Jam];

    fn field(self) -> Field {
        match self {
            Self::Event => Field::new("event", DataType::Int64, true),
            Self::Mug => Field::new("mug", DataType::Int32, false),
            Self::Jam => Field::new("jam", DataType::Binary, false),
            Self::Offset => Field::new("offset", DataType::Int64, false),
            Self::Length => Field::new("length", DataType::Int64, false),
        }
    }

    /// The Arrow schema of some columns.
    pub fn schema(columns: &[Self]) -> SchemaRef {
        Arc::new(Schema::new(columns.iter().map(|column| column.field()).collect::<Vec<_>>()))
    }
}

impl FromStr for Column {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "event" => Ok(Self::Event),
            "mug" => Ok(Self::Mug),
            "jam" => Ok(Self::Jam),
            "offset" => Ok(Self::Offset),
            "length" => Ok(Self::Length),
            _ => {
                let message = format!("column {name:?}, known are event, mug, jam, offset, length");
                Err(Error::new(ErrorKind::InvalidArgument, message).of(FORMAT))
            }
        }
    }
}

/// A stream of record batches over a cursor.
#[derive(Debug)]
pub struct Batches {
    cursor: Cursor,
    columns: Vec<Column>,
    schema: SchemaRef,
    rows_max: usize,
    bytes_max: usize,
    /// Stepped to already, but did not fit the batch before.
    carried: Option<(Option<u64>, u64, Frame)>,
}

enum Growing {
    Int64(Int64Column),
    Int32(Int32Column),
    Binary(BinaryColumn),
}

impl Batches {
    /// Batches of at most `rows_max` rows, closed once they hold `bytes_max` bytes of payload.
    pub fn new(cursor: Cursor, columns: Vec<Column>, rows_max: usize, bytes_max: usize) -> Self {
        let schema = Column::schema(&columns);
        let bytes_max = bytes_max.clamp(1, 1 << 30);
        Self { cursor, columns, schema, rows_max: rows_max.max(1), bytes_max, carried: None }
    }

    /// The schema of every batch.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// The damaged stretches passed over so far.
    pub fn damages(&self) -> &[Damage] {
        self.cursor.damages()
    }

    fn start(&self) -> Vec<Growing> {
        let left = self.cursor.bytes_left().min(self.bytes_max as u64) as usize;
        let grow = |column: &Column| match column {
            Column::Mug => Growing::Int32(Int32Column::default()),
            Column::Jam => Growing::Binary(BinaryColumn::with_capacity(left)),
            Column::Event | Column::Offset | Column::Length => {
                Growing::Int64(Int64Column::default())
            }
        };
        self.columns.iter().map(grow).collect()
    }

    /// The next batch.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<RecordBatch>> {
        let mut growing = self.start();
        let (mut rows, mut bytes) = (0, 0);
        while rows < self.rows_max && bytes < self.bytes_max {
            let stepped = match self.carried.take() {
                Some(carried) => Some(carried),
                None => self.cursor.advance()?,
            };
            let Some((event, offset, frame)) = stepped else { break };
            let jam = frame.jam(self.cursor.bytes());
            if self.columns.contains(&Column::Jam) && bytes + jam.len() > i32::MAX as usize {
                if rows == 0 {
                    let message =
                        format!("jam of {} bytes, Arrow binary holds 2^31 - 1", jam.len());
                    return Err(Error::new(ErrorKind::TooLarge, message)
                        .of(FORMAT)
                        .offset_at(offset));
                }
                self.carried = Some((event, offset, frame));
                break;
            }
            for (column, values) in self.columns.iter().zip(&mut growing) {
                match (column, values) {
                    (Column::Event, Growing::Int64(values)) => values.push(event),
                    (Column::Offset, Growing::Int64(values)) => values.push(Some(offset)),
                    (Column::Length, Growing::Int64(values)) => {
                        values.push(Some(frame.jam_len + MUG_BYTES + FRAMING_BYTES));
                    }
                    (_, Growing::Int32(values)) => values.push(frame.mug),
                    (_, Growing::Binary(values)) => {
                        values.push(jam);
                    }
                    (_, Growing::Int64(values)) => values.push(None),
                }
            }
            rows += 1;
            bytes += jam.len();
        }
        if rows == 0 {
            return Ok(None);
        }
        let finish = |growing| -> ArrayRef {
            match growing {
                Growing::Int64(values) => values.finish(),
                Growing::Int32(values) => values.finish(),
                Growing::Binary(values) => values.finish(),
            }
        };
        let arrays = growing.into_iter().map(finish).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options);
        let wrong = |e: arrow_schema::ArrowError| {
            Error::new(ErrorKind::InvalidArgument, format!("arrow: {e}")).of(FORMAT)
        };
        batch.map(Some).map_err(wrong)
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        Batches::next(self).transpose()
    }
}
