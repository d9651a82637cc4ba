//! Book as a format of these suites.

use deedbook::book::{Deed, Layout, Options};

use super::range;
use crate::support::formats::subject::*;
use crate::support::prelude::*;
use arrow_array::{Array, BinaryArray, Int32Array, Int64Array, RecordBatch, UInt64Array};

pub struct BookFormat {
    layout: Option<Layout>,
}

/// The packed layout, or whatever a log is in that is there.
pub const BOOK: BookFormat = BookFormat { layout: None };
/// The layout whose deeds have no checksum of their own.
pub const SLOTS: BookFormat = BookFormat { layout: Some(Layout::Slots) };

pub fn options(at: &At, how: How) -> Options {
    Options::new()
        .durability(how.durability)
        .recovery(how.recovery)
        .deed_bytes_max(
            how.record_bytes_max.map_or(deedbook::book::Options::DEED_BYTES_MAX, |max| max + 4),
        )
        .storage(at.storage.clone())
}

impl BookFormat {
    fn options(&self, at: &At, how: How) -> Options {
        options(at, how).layout(self.layout)
    }
}

impl Format for BookFormat {
    methods_of_the_options!(BookLog);

    fn name(&self) -> &'static str {
        if self.layout.is_some() { "book-slots" } else { "book" }
    }

    fn framing(&self) -> Framing {
        if self.layout.is_some() { Framing::Slots } else { Framing::Book }
    }

    fn first_ordinal(&self) -> u64 {
        1
    }

    fn ordinal_after(&self, ordinal: u64, _payload_len: usize) -> u64 {
        ordinal + 1
    }

    fn first_file(&self, path: &Path) -> PathBuf {
        path.join("book.log")
    }
}

pub struct BookLog(pub Book);

fn record(deed: Deed<&[u8]>) -> Record {
    let Deed { event, offset, mug, jam } = deed;
    Record { ordinal: event, offset, tag: mug, bytes: jam.to_vec() }
}

fn drain(cursor: Result<deedbook::Cursor<deedbook::book::BookFormat>>) -> Walk {
    drained!(cursor)
}

fn read_split(
    split: &Split,
    options: &Options,
    within: (Option<u64>, Option<u64>),
    skip: bool,
) -> Walk {
    drain(Book::read_split(split, options, range(within.0, within.1), on_corrupt(skip), true))
}

impl Log for BookLog {
    methods_of_the_handle!();
    methods_of_a_public_handle!(std::convert::identity);

    fn append(&self, tag: u32, bytes: &[u8]) -> Result<u64> {
        self.0.append(tag, bytes)
    }

    fn append_from(&self, tag: u32, len: u64, payload: &mut dyn Read) -> Result<u64> {
        self.0.append_from(tag, len, payload)
    }

    fn read_in_parts(&self, ordinal: u64) -> (Vec<u8>, Result<()>) {
        match self.0.jam_reader(ordinal) {
            Ok(mut reader) => parts(|block| reader.read_part(block)),
            Err(error) => (Vec::new(), Err(error)),
        }
    }

    fn append_batch(&self, events: &[Event]) -> Result<u64> {
        let mut batch =
            Batch::<deedbook::book::BookFormat>::new(deedbook::book::Options::DEED_BYTES_MAX);
        for (tag, bytes) in events {
            batch.push(*tag, bytes)?;
        }
        self.0.append_batch(&batch, None, None)
    }

    fn commit(&self, tag: u32, bytes: &[u8]) -> Result<u64> {
        self.0.commit(tag, bytes)
    }

    fn end(&self) -> Result<u64> {
        self.0.end()
    }

    fn durable(&self) -> Result<Option<u64>> {
        Ok(self.0.durable_last()?.map(|last| last + 1))
    }

    fn read(&self, ordinal: u64) -> Result<Event> {
        let deed = self.0.read(ordinal)?;
        assert_eq!(deed.event, Some(ordinal), "another deed");
        Ok((deed.mug, deed.jam))
    }

    fn arrow(&self, skip: bool) -> Walk {
        let columns = ["event", "mug", "jam", "offset"];
        match self.0.cursor(.., on_corrupt(skip)) {
            Ok(cursor) => {
                let mut batches = deedbook::Batches::new(cursor, &columns, 3, 1 << 20).unwrap();
                rows(&mut batches, |batch, row| {
                    let tag = batch.column(1).as_any().downcast_ref::<Int32Array>().unwrap();
                    Record {
                        ordinal: number(batch, 0, row),
                        offset: number(batch, 3, row).unwrap(),
                        tag: tag.value(row) as u32,
                        bytes: payload(batch, 2, row),
                    }
                })
            }
            Err(error) => Walk::failed(error),
        }
    }
}

pub fn rows(
    batches: &mut dyn Iterator<Item = Result<RecordBatch>>,
    record: impl Fn(&RecordBatch, usize) -> Record,
) -> Walk {
    let mut walk = Walk::default();
    for batch in batches {
        match batch {
            Ok(batch) => {
                walk.records.extend((0..batch.num_rows()).map(|row| record(&batch, row)));
            }
            Err(error) => {
                walk.error = Some(error);
                break;
            }
        }
    }
    walk
}

pub fn number(batch: &RecordBatch, column: usize, row: usize) -> Option<u64> {
    let column = batch.column(column);
    if column.is_null(row) {
        return None;
    }
    let signed = column.as_any().downcast_ref::<Int64Array>().map(|array| array.value(row) as u64);
    signed.or_else(|| column.as_any().downcast_ref::<UInt64Array>().map(|array| array.value(row)))
}

pub fn payload(batch: &RecordBatch, column: usize, row: usize) -> Vec<u8> {
    let column = batch.column(column).as_any().downcast_ref::<BinaryArray>().unwrap();
    column.value(row).to_vec()
}
