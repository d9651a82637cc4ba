//! Events of JSON lines as Arrow record batches, parsed and checked as in an import.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_buffer::NullBuffer;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

use super::columns::Column;
use super::growing::{Growing, Room, Texts};
use crate::error::{Error, ErrorKind, Result};
use crate::nostr::bulk::import::{ImportOptions, record_line, trimmed};
use crate::nostr::bytes::format::FORMAT;
use crate::nostr::bytes::record;
use crate::nostr::pages::options::Options;
use crate::nostr::store::records::Records;

/// The columns of an event without the store's columns.
const COLUMNS: [Column; 7] = [
    Column::Id,
    Column::Pubkey,
    Column::CreatedAt,
    Column::Kind,
    Column::Tags,
    Column::Content,
    Column::Sig,
];
/// The column with the error of a line.
const ERROR: &str = "error";
/// Offsets of texts have 31 bits.
const BYTES_MAX: usize = i32::MAX as usize;

/// Events of JSON lines, parsed and checked into the columns of a record batch.
///
/// Each line makes one row, in order. The columns are `id`, `pubkey`, `created_at`, `kind`, `tags`,
/// `content` and `sig`, with the types of a store's [`Batches`](crate::nostr::Batches), and
/// `error`. `error` is null for a good event. For a bad line, `error` has the text of
/// [`BadLine::reason`], and the other columns are null. For an empty line, all columns are null.
///
/// [`BadLine::reason`]: crate::nostr::BadLine::reason
pub struct ParsedLines {
    options: ImportOptions,
    store: Options,
    columns: Vec<Growing>,
    errors: Texts,
    is_event: Vec<bool>,
    is_error: Vec<bool>,
    bytes: usize,
    /// The record of the event being added.
    record: Records,
    scratch: Vec<u8>,
}

impl ParsedLines {
    /// Start without lines. From the options of an import, `check` and `line_bytes_max` count; from
    /// the options of a store, the limits for events.
    pub fn new(options: ImportOptions, store: Options) -> Self {
        Self {
            options,
            store,
            columns: COLUMNS.map(|column| Growing::new(column, Room::default())).into(),
            errors: Texts::with_capacity(0, 0),
            is_event: Vec::new(),
            is_error: Vec::new(),
            bytes: 0,
            record: Records::default(),
            scratch: Vec::new(),
        }
    }

    /// The schema of every batch.
    pub fn schema() -> SchemaRef {
        let fields = COLUMNS.iter().map(|column| column.field().with_nullable(true));
        let error = Field::new(ERROR, DataType::Utf8, true);
        Arc::new(Schema::new(fields.chain([error]).collect::<Vec<_>>()))
    }

    /// Add a line, with or without its line break. An event too large for a store is an error of
    /// the line, too.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TooLarge`], without adding the line, if a column would reach 2 GiB.
    pub fn push(&mut self, line: &[u8]) -> Result<()> {
        self.record.clear();
        let (options, store, scratch) = (&self.options, &self.store, &mut self.scratch);
        let read = record_line(trimmed(line), &mut self.record, options, store, scratch);
        let error_bytes = read.as_ref().err().map_or(0, String::len);
        let bytes = self.bytes + self.record.bytes.len() + error_bytes;
        if bytes > BYTES_MAX {
            let rows = self.len();
            let message = format!("a batch of {bytes} bytes after {rows} lines, limit {BYTES_MAX}");
            return Err(Error::new(ErrorKind::TooLarge, message).of(FORMAT));
        }
        self.bytes = bytes;
        match &read {
            Ok(true) => {
                let layout = record::measure(&self.record.bytes);
                let layout = layout.unwrap_or_else(|_| unreachable!("encoded"));
                let parts = layout.parts(&self.record.bytes);
                self.columns.iter_mut().for_each(|column| column.push(&parts));
            }
            _ => self.columns.iter_mut().for_each(Growing::push_nothing),
        }
        self.errors.push(read.as_ref().err().map_or(&[], |reason| reason.as_bytes()));
        self.is_event.push(matches!(read, Ok(true)));
        self.is_error.push(read.is_err());
        Ok(())
    }

    /// The number of lines so far.
    pub fn len(&self) -> usize {
        self.is_event.len()
    }

    /// Whether there are no lines.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The batch of all lines.
    ///
    /// # Errors
    ///
    /// Fails for columns of other types, or values that they cannot hold.
    pub fn finish(self) -> Result<RecordBatch> {
        let rows = RecordBatchOptions::new().with_row_count(Some(self.len()));
        let nulls =
            |is: Vec<bool>| Some(NullBuffer::from(is)).filter(|nulls| nulls.null_count() > 0);
        let (of_events, of_errors) = (nulls(self.is_event), nulls(self.is_error));
        let columns = self.columns.into_iter().map(|column| column.finish(of_events.clone()));
        let made = columns.collect::<Result<Vec<_>, _>>().and_then(|mut arrays| {
            arrays.push(Arc::new(self.errors.finish(of_errors)?));
            RecordBatch::try_new_with_options(Self::schema(), arrays, &rows)
        });
        let wrong = |e: ArrowError| Error::new(ErrorKind::InvalidArgument, format!("arrow: {e}"));
        made.map_err(|e| wrong(e).of(FORMAT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_oversized_offsets_is_refused() {
        let mut lines = ParsedLines::new(ImportOptions::default(), Options::default());
        lines.push(b"{}").unwrap();
        let error_bytes = lines.bytes;
        lines.bytes = BYTES_MAX - error_bytes;
        lines.push(b"{}\r\n").unwrap();
        let refused = lines.push(b"{}").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::TooLarge);
        assert!(refused.message().contains("after 2 lines"), "{refused}");
        lines.push(b" \n").unwrap();
        let batch = lines.finish().unwrap();
        assert_eq!((batch.num_rows(), batch.column(0).null_count()), (3, 3));
        assert_eq!(batch.column(COLUMNS.len()).null_count(), 1);
    }
}
