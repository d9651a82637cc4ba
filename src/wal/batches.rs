//! Records as Arrow record batches.

use std::str::FromStr;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::cursor::Cursor;
use super::format::{FORMAT, Frame, Lsn};
use crate::columns::{BinaryColumn, Int64Column};
use crate::error::{Error, ErrorKind, Result};
use crate::scan::Damage;
use arrow_array::RecordBatchOptions;

/// A column of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// Byte at which the record begins: int64.
    Lsn,
    /// Payload: binary.
    Payload,
    /// Bytes of the record with its header: int64.
    Length,
}

impl Column {
    /// The columns given by default.
    pub const DEFAULT: [Self; 2] = [Self::Lsn, Self::Payload];

    fn field(self) -> Field {
        match self {
            Self::Lsn => Field::new("lsn", DataType::Int64, false),
            Self::Payload => Field::new("payload", DataType::Binary, false),
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
            "lsn" => Ok(Self::Lsn),
            "payload" => Ok(Self::Payload),
            "length" => Ok(Self::Length),
            _ => {
                let message = format!("column {name:?}, known are lsn, payload, length");
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
    carried: Option<(Lsn, Frame)>,
}

enum Growing {
    Int64(Int64Column),
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
            Column::Payload => Growing::Binary(BinaryColumn::with_capacity(left)),
            Column::Lsn | Column::Length => Growing::Int64(Int64Column::default()),
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
            let Some((lsn, frame)) = stepped else { break };
            let payload = frame.payload(self.cursor.bytes());
            if self.columns.contains(&Column::Payload) && bytes + payload.len() > i32::MAX as usize
            {
                if rows == 0 {
                    let message =
                        format!("payload of {} bytes, Arrow binary holds 2^31 - 1", payload.len());
                    let error = Error::new(ErrorKind::TooLarge, message).of(FORMAT);
                    return Err(error.offset_at(lsn.0));
                }
                self.carried = Some((lsn, frame));
                break;
            }
            for (column, values) in self.columns.iter().zip(&mut growing) {
                match (column, values) {
                    (Column::Length, Growing::Int64(values)) => {
                        values.push(Some(frame.framed_len()));
                    }
                    (_, Growing::Int64(values)) => values.push(Some(lsn.0)),
                    (_, Growing::Binary(values)) => {
                        values.push(payload);
                    }
                }
            }
            rows += 1;
            bytes += payload.len();
        }
        if rows == 0 {
            return Ok(None);
        }
        let finish = |growing| match growing {
            Growing::Int64(values) => values.finish(),
            Growing::Binary(values) => values.finish(),
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
