//! Appending any iterable of bytes-like objects, and any Arrow array of them.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, StructArray};
use arrow_schema::DataType;
use deedbook::Batch;
use deedbook::Durability;
use deedbook::book::BookFormat;
use deedbook::wal::{Lsn, Wal, WalFormat};
use pyo3::prelude::*;
use pyo3::types::PyIterator;
use pyo3_arrow::input::AnyArray;

use crate::append::payload::{Limit, bytes_of, each};
use crate::append::positions::{PyPositions, Range};
use crate::book::deeds::Deeds;
use crate::common::arguments::number;
use crate::common::errors::{OrRaise, invalid};
use crate::common::logging::check_signals;

/// Bytes appended with one write. Larger parts are no faster and need memory.
pub const PART_BYTES: usize = 256 << 10;

/// Mugs of the jams: none, or exactly as many.
enum Mugs<'py> {
    None,
    Each(Bound<'py, PyIterator>),
}

impl<'py> Mugs<'py> {
    fn new(mugs: Option<&Bound<'py, PyAny>>) -> PyResult<Self> {
        mugs.map_or(Ok(Self::None), |mugs| Ok(Self::Each(mugs.try_iter()?)))
    }

    fn next(&mut self, py: Python<'py>, count: u64) -> PyResult<u32> {
        match self {
            Self::None => Ok(0),
            Self::Each(mugs) => match mugs.next() {
                Some(mug) => number(&mug?, "mug"),
                None => Err(invalid(py, format!("{count} mugs, but more jams"))),
            },
        }
    }

    fn finish(&mut self, py: Python<'py>, count: u64) -> PyResult<()> {
        match self {
            Self::Each(mugs) => match mugs.next() {
                Some(_) => Err(invalid(py, format!("{count} jams, but more mugs"))),
                None => Ok(()),
            },
            Self::None => Ok(()),
        }
    }
}

/// Encode all of an iterable into a batch.
fn collect<'py>(
    jams: &Bound<'py, PyAny>,
    mugs: Option<&Bound<'py, PyAny>>,
    limit: Limit,
    mut batch: Batch<BookFormat>,
) -> PyResult<Batch<BookFormat>> {
    let py = jams.py();
    let mut mugs = Mugs::new(mugs)?;
    each(jams, |jam| {
        let mug = mugs.next(py, batch.len())?;
        let jam = bytes_of(jam, limit)?;
        batch.push(mug, jam.as_ref()).or_raise(py)?;
        Ok(jam.as_ref().len())
    })?;
    mugs.finish(py, batch.len())?;
    Ok(batch)
}

/// Takes an endless stream of records and appends it in parts.
pub trait Sink: Send {
    /// The column of a table with the payload.
    const COLUMN: &'static str;

    fn push(&mut self, mug: u32, payload: &[u8]) -> deedbook::Result<()>;
    /// Whether the sink must be flushed before the next record.
    fn is_full(&self) -> bool {
        false
    }
    /// After an error the batch is dropped; the error has the number of records already appended.
    fn flush(&mut self) -> deedbook::Result<()> {
        Ok(())
    }
    /// Records taken so far.
    fn taken(&self) -> u64;
}

/// Appends parts of an endless stream of deeds.
struct Appender<'a> {
    book: &'a dyn Deeds,
    batch: Batch<BookFormat>,
    first: Option<u64>,
    appended: u64,
    last: u64,
}

impl<'a> Appender<'a> {
    fn new(book: &'a dyn Deeds) -> Self {
        let batch = book.batch();
        Self { book, batch, first: None, appended: 0, last: 0 }
    }

    fn finish(&mut self) -> deedbook::Result<(u64, u64)> {
        self.flush()?;
        if self.book.options().durability == Durability::Always {
            self.book.sync()?;
        }
        Ok((self.first.unwrap_or(self.last), self.last))
    }
}

impl Sink for Appender<'_> {
    const COLUMN: &'static str = "jam";

    fn push(&mut self, mug: u32, jam: &[u8]) -> deedbook::Result<()> {
        self.batch.push(mug, jam)?;
        self.appended += 1;
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.batch.bytes_len() >= PART_BYTES
    }

    fn flush(&mut self) -> deedbook::Result<()> {
        if self.batch.is_empty() && self.first.is_some() {
            return Ok(());
        }
        let (appended, len) = (self.book.append_unsynced(&self.batch), self.batch.len());
        self.batch.clear();
        let first = appended?;
        self.first.get_or_insert(first);
        self.last = first + len;
        Ok(())
    }

    fn taken(&self) -> u64 {
        self.appended
    }
}

/// Appends parts of an endless stream of records of a WAL.
struct Recorder<'a> {
    wal: &'a Wal,
    batch: deedbook::Batch<WalFormat>,
    first: Option<Lsn>,
    taken: u64,
    /// Bytes of the last record, including the header.
    last_len: usize,
    end: u64,
}

impl Sink for Recorder<'_> {
    const COLUMN: &'static str = "payload";

    fn push(&mut self, _mug: u32, payload: &[u8]) -> deedbook::Result<()> {
        self.last_len = self.batch.bytes_len();
        self.batch.push(payload)?;
        self.last_len = self.batch.bytes_len() - self.last_len;
        self.taken += 1;
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.batch.bytes_len() >= PART_BYTES
    }

    fn flush(&mut self) -> deedbook::Result<()> {
        if self.batch.is_empty() && self.first.is_some() {
            return Ok(());
        }
        let (appended, bytes) = (self.wal.append_unsynced(&self.batch), self.batch.bytes_len());
        self.batch.clear();
        let lsn = appended?;
        self.first.get_or_insert(lsn);
        self.end = lsn.0 + bytes as u64;
        Ok(())
    }

    fn taken(&self) -> u64 {
        self.taken
    }
}

/// Append every record of an iterable or an Arrow object. Records before an error stay appended.
pub fn append_records(
    wal: &Wal,
    limit: Limit,
    payloads: &Bound<'_, PyAny>,
) -> PyResult<PyPositions> {
    let py = payloads.py();
    let batch = Batch::<WalFormat>::new(wal.record_bytes_max());
    let mut recorder = Recorder { wal, batch, first: None, taken: 0, last_len: 0, end: 0 };
    let fed = feed(&mut recorder, limit, payloads, None);
    let finished = py.detach(|| {
        recorder.flush()?;
        if wal.options().durability == Durability::Always {
            wal.sync()?;
        }
        let (end, records) = (recorder.end, recorder.taken);
        let first = recorder.first.map_or(end, |lsn| lsn.0);
        Ok(Range::Sparse { first, last: end - recorder.last_len as u64, end, records })
    });
    fed?;
    finished.or_raise(py).map(PyPositions)
}

pub fn is_arrow(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(object.hasattr("__arrow_c_stream__")? || object.hasattr("__arrow_c_array__")?)
}

/// Whether deeds are appended as one batch, and the checks of the batch.
#[derive(Clone, Copy)]
pub struct Batched {
    pub atomic: bool,
    pub event: Option<u64>,
    pub epoch: Option<u64>,
}

/// Append every record of an iterable or an Arrow object. Records before an error stay appended,
/// except in a batch.
pub fn append_many<'py>(
    book: &dyn Deeds,
    limit: Limit,
    jams: &Bound<'py, PyAny>,
    mugs: Option<&Bound<'py, PyAny>>,
    asked: Batched,
) -> PyResult<PyPositions> {
    let py = jams.py();
    let (first, end) = if asked.atomic {
        let batch = collect(jams, mugs, limit, book.batch())?;
        let appended = py.detach(|| book.append_batch(&batch, asked.event, asked.epoch));
        let first = appended.or_raise(py)?;
        (first, first + batch.len())
    } else if asked.event.is_some() || asked.epoch.is_some() {
        return Err(invalid(py, "event and epoch are checked of a batch: say atomic=True".into()));
    } else {
        let mut appender = Appender::new(book);
        let fed = feed(&mut appender, limit, jams, mugs);
        let finished = py.detach(|| appender.finish());
        fed?;
        finished.or_raise(py)?
    };
    Ok(PyPositions(Range::Dense { first, end }))
}

/// Give a sink every record of an iterable or an Arrow object.
pub fn feed<S: Sink>(
    sink: &mut S,
    limit: Limit,
    records: &Bound<'_, PyAny>,
    mugs: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    match (is_arrow(records)?, mugs) {
        (true, Some(_)) => {
            let message = "mugs beside an Arrow object; give it a mug column";
            Err(invalid(records.py(), message.into()))
        }
        (true, None) => feed_arrow(sink, records),
        (false, mugs) => feed_iterable(sink, limit, records, mugs),
    }
}

fn feed_iterable<'py, S: Sink>(
    appender: &mut S,
    limit: Limit,
    jams: &Bound<'py, PyAny>,
    mugs: Option<&Bound<'py, PyAny>>,
) -> PyResult<()> {
    let py = jams.py();
    let mut mugs = Mugs::new(mugs)?;
    for jam in jams.try_iter()? {
        let jam = jam?;
        let mug = mugs.next(py, appender.taken())?;
        appender.push(mug, bytes_of(&jam, limit)?.as_ref()).or_raise(py)?;
        if appender.is_full() {
            py.detach(|| appender.flush()).or_raise(py)?;
            check_signals(py)?;
        }
    }
    mugs.finish(py, appender.taken())
}

fn feed_arrow<S: Sink>(appender: &mut S, jams: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = jams.py();
    let reader = jams.extract::<AnyArray>()?.into_reader()?;
    // The producer may need the GIL. Only our own work runs without the GIL.
    for array in reader {
        let array = array.map_err(|e| invalid(py, format!("arrow: {e}")))?;
        let row = appender.taken();
        let fed = py.detach(|| feed_array(appender, &array));
        match fed {
            Err(Fault::Argument(message)) => {
                return Err(invalid(py, format!("{message} (array from row {row})")));
            }
            Err(Fault::Log(error)) => Err::<(), _>(error).or_raise(py)?,
            Ok(()) => {}
        }
        check_signals(py)?;
    }
    Ok(())
}

enum Fault {
    Argument(String),
    Log(deedbook::Error),
}

impl From<deedbook::Error> for Fault {
    fn from(error: deedbook::Error) -> Self {
        Self::Log(error)
    }
}

fn feed_array<S: Sink>(appender: &mut S, array: &ArrayRef) -> Result<(), Fault> {
    let Some(table) = array.as_any().downcast_ref::<StructArray>() else {
        return feed_column(appender, array, None);
    };
    let names = table.column_names().join(", ");
    let jam = table.column_by_name(S::COLUMN);
    let jam =
        jam.ok_or_else(|| Fault::Argument(format!("no column {:?} among {names}", S::COLUMN)))?;
    feed_column(appender, jam, table.column_by_name("mug"))
}

fn feed_column<S: Sink>(
    appender: &mut S,
    jams: &ArrayRef,
    mugs: Option<&ArrayRef>,
) -> Result<(), Fault> {
    for (name, column) in [(S::COLUMN, Some(jams)), ("mug", mugs)] {
        let nulls = column.and_then(|column| column.nulls());
        let null = nulls.and_then(|nulls| (0..nulls.len()).find(|&row| nulls.is_null(row)));
        if let Some(row) = null {
            return Err(Fault::Argument(format!("{name} is null in row {row}")));
        }
    }
    let mug = mug_getter(mugs)?;
    macro_rules! feed {
        ($array:expr) => {{
            for (row, jam) in $array.iter().enumerate() {
                let bytes: &[u8] = jam.unwrap_or_default().as_ref();
                appender.push(mug(row), bytes)?;
                if appender.is_full() {
                    appender.flush()?;
                }
            }
            Ok(())
        }};
    }
    match jams.data_type() {
        DataType::Binary => feed!(jams.as_binary::<i32>()),
        DataType::LargeBinary => feed!(jams.as_binary::<i64>()),
        DataType::BinaryView => feed!(jams.as_binary_view()),
        DataType::Utf8 => feed!(jams.as_string::<i32>()),
        DataType::LargeUtf8 => feed!(jams.as_string::<i64>()),
        DataType::Utf8View => feed!(jams.as_string_view()),
        other => Err(Fault::Argument(format!(
            "{} of Arrow type {other}, binary or string needed",
            S::COLUMN
        ))),
    }
}

type MugOf<'a> = Box<dyn Fn(usize) -> u32 + Send + 'a>;

fn mug_getter(mugs: Option<&ArrayRef>) -> Result<MugOf<'_>, Fault> {
    use arrow_array::types::{Int32Type, UInt32Type};
    let Some(mugs) = mugs else {
        return Ok(Box::new(|_| 0));
    };
    match mugs.data_type() {
        DataType::Int32 => {
            let mugs = mugs.as_primitive::<Int32Type>();
            Ok(Box::new(|row| mugs.values().get(row).copied().unwrap_or(0) as u32))
        }
        DataType::UInt32 => {
            let mugs = mugs.as_primitive::<UInt32Type>();
            Ok(Box::new(|row| mugs.values().get(row).copied().unwrap_or(0)))
        }
        other => Err(Fault::Argument(format!("mug of Arrow type {other}, int32 or uint32 needed"))),
    }
}
