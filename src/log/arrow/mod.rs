//! Records as Arrow record batches.

mod columns;

pub use columns::{Column, Value};
use columns::{columns_of, schema};

use std::fmt::Debug;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;

use crate::columns::{BinaryColumn, Int32Column, Int64Column};
use crate::error::{Error, ErrorKind, Result};
use crate::log::chain::Chained;
use crate::log::format::{Format, Stepped};
use crate::scan::Damage;
use crate::scan::framing::Frame;

/// A stream of record batches over one log, or over several logs that follow each other. No batch holds records of two
/// logs. The stream gives the records before an error first, and ends with the error.
#[derive(Debug)]
pub struct Batches<F: Format> {
    walk: Chained<F>,
    columns: Vec<Column>,
    schema: SchemaRef,
    rows_max: usize,
    bytes_max: usize,
    /// Stepped to already, but did not fit the batch before.
    carried: Option<Stepped<F>>,
    /// The error that ended the batch before.
    failed: Option<Error>,
    ended: bool,
}

enum Growing {
    Int64(Int64Column),
    Int32(Int32Column),
    Binary(BinaryColumn),
}

impl<F: Format> Batches<F> {
    /// The columns that readers get by default.
    pub const DEFAULT: &'static [&'static str] = F::DEFAULT_COLUMNS;

    /// Batches of at most `rows_max` rows, closed once they hold `bytes_max` bytes of payload. The columns go by their
    /// names:
    ///
    /// | name | of | value |
    /// |---|---|---|
    /// | `event`, `record` | Book, Ledger | the record's number: int64, null after damage that hid the count |
    /// | `mug` | Book | int32, its bits as stored |
    /// | `jam` | Book | the payload: binary |
    /// | `payload` | each | the payload: binary |
    /// | `lsn`, `offset` | WAL, Book and Ledger | the byte at which the record begins: int64 |
    /// | `length` | each | the record's bytes with its framing: int64 |
    ///
    /// # Errors
    ///
    /// Fails with [`InvalidArgument`](ErrorKind::InvalidArgument) for the name of no column.
    pub fn new(
        walk: impl Into<Chained<F>>,
        columns: &[impl AsRef<str>],
        rows_max: usize,
        bytes_max: usize,
    ) -> Result<Self> {
        let columns = columns_of(F::COLUMNS, columns).map_err(|e| e.of(F::NAME))?;
        let schema = schema(&columns);
        let bytes_max = bytes_max.clamp(1, 1 << 30);
        let (walk, rows_max) = (walk.into(), rows_max.max(1));
        let (carried, failed, ended) = (None, None, false);
        Ok(Self { walk, columns, schema, rows_max, bytes_max, carried, failed, ended })
    }

    /// The schema of batches with these columns.
    ///
    /// # Errors
    ///
    /// Fails with [`InvalidArgument`](ErrorKind::InvalidArgument) for the name of no column.
    pub fn schema_of(columns: &[impl AsRef<str>]) -> Result<SchemaRef> {
        columns_of(F::COLUMNS, columns).map(|of| schema(&of)).map_err(|e| e.of(F::NAME))
    }

    /// The schema of every batch.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// The damaged stretches passed over so far.
    pub fn damages(&self) -> &[Damage] {
        self.walk.gathered()
    }

    /// Number of the log behind the last batch: an epoch, or a file.
    pub fn number(&self) -> Option<u64> {
        self.walk.number()
    }

    fn begin(&self, left: u64) -> Vec<(Value, Growing)> {
        let left = left.min(self.bytes_max as u64) as usize;
        let grow = |&(_, value): &Column| {
            let growing = match value {
                Value::Tag => Growing::Int32(Int32Column::default()),
                Value::Payload => Growing::Binary(BinaryColumn::with_capacity(left)),
                Value::Ordinal | Value::Offset | Value::Length => {
                    Growing::Int64(Int64Column::default())
                }
            };
            (value, growing)
        };
        self.columns.iter().map(grow).collect()
    }

    /// The next batch of the current log.
    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let Some(left) = self.walk.now()?.map(|cursor| cursor.bytes_left()) else {
            return Ok(None);
        };
        let mut growing = self.begin(left);
        let Some(cursor) = self.walk.now()? else { return Ok(None) };
        let with_ordinal = growing.iter().any(|(value, _)| *value == Value::Ordinal);
        let with_payload = growing.iter().any(|(value, _)| *value == Value::Payload);
        let (mut rows, mut bytes) = (0, 0);
        while rows < self.rows_max && bytes < self.bytes_max {
            let stepped = match self.carried.take() {
                Some(carried) => Some(carried),
                None => match cursor.advance() {
                    Err(error) if rows > 0 => {
                        self.failed = Some(error);
                        break;
                    }
                    stepped => stepped?,
                },
            };
            let Some((ordinal, offset, frame)) = stepped else { break };
            if with_ordinal && ordinal.is_some_and(|ordinal| i64::try_from(ordinal).is_err()) {
                let number = ordinal.unwrap_or_default();
                let message = format!("number {number}, Arrow int64 holds up to 2^63 - 1");
                let error = too_large::<F>(message, offset);
                if rows == 0 {
                    return Err(error);
                }
                self.failed = Some(error);
                break;
            }
            let payload = frame.payload(cursor.bytes());
            if with_payload && bytes + payload.len() > i32::MAX as usize {
                if rows == 0 {
                    let len = payload.len();
                    let message = format!("payload of {len} bytes, Arrow binary holds 2^31 - 1");
                    return Err(too_large::<F>(message, offset));
                }
                self.carried = Some((ordinal, offset, frame));
                break;
            }
            for (value, column) in &mut growing {
                let number = match value {
                    Value::Ordinal => ordinal,
                    Value::Offset => Some(offset),
                    _ => Some(frame.len()),
                };
                match column {
                    Growing::Int64(column) => {
                        if !column.push(number) {
                            let number = number.unwrap_or_default();
                            let message =
                                format!("number {number}, Arrow int64 holds up to 2^63 - 1");
                            return Err(too_large::<F>(message, offset));
                        }
                    }
                    Growing::Int32(column) => column.push(frame.tag()),
                    Growing::Binary(column) => {
                        column.push(payload);
                    }
                }
            }
            rows += 1;
            bytes += payload.len();
        }
        if rows == 0 {
            return Ok(None);
        }
        let finish = |(_, growing)| -> ArrayRef {
            match growing {
                Growing::Int64(column) => column.finish(),
                Growing::Int32(column) => column.finish(),
                Growing::Binary(column) => column.finish(),
            }
        };
        let arrays = growing.into_iter().map(finish).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options);
        let wrong = |e: arrow_schema::ArrowError| {
            Error::new(ErrorKind::InvalidArgument, format!("arrow: {e}")).of(F::NAME)
        };
        batch.map(Some).map_err(wrong)
    }
}

fn too_large<F: Format>(message: String, offset: u64) -> Error {
    Error::new(ErrorKind::TooLarge, message).of(F::NAME).offset_at(offset)
}

impl<F: Format> Iterator for Batches<F> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let mut batch = self.next_batch().transpose();
        while batch.is_none() && self.walk.number().is_some() {
            self.walk.pass();
            batch = self.next_batch().transpose();
        }
        self.walk.gather();
        self.ended = !matches!(batch, Some(Ok(_)));
        batch
    }
}
