//! A part of a log that can be read without opening the whole log.

use std::path::PathBuf;

use deedbook::book::{self, Book, BookFormat};
use deedbook::jobs::Split;
use deedbook::ledger::{self, LedgerFile, LedgerFormat};
use deedbook::wal::{self, Wal, WalFormat};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::common::arguments::numbers;
use crate::common::errors::{OrRaise, invalid};
use crate::common::fs_path::FsPath;
use crate::common::progress::Progress;
use crate::common::reports::PyPartReport;
use crate::log::any_log::{Format, bounds};
use crate::log::batches::{BatchStream, checks, columns, on_corrupt};
use crate::nostr::columns::Picked;

const FIELDS: [&str; 10] = [
    "format",
    "path",
    "ordinal",
    "records",
    "offset",
    "end",
    "unacknowledged_from",
    "known_end",
    "identity",
    "segment_bytes",
];

#[doc = doc!("Split")]
#[pyclass(frozen, eq, name = "Split", module = "deedbook")]
#[derive(PartialEq)]
pub struct PySplit {
    pub format: Format,
    pub split: Split,
}

#[pymethods]
impl PySplit {
    #[new]
    #[pyo3(signature = (format, path, ordinal, records, offset, end, unacknowledged_from=None,
                        known_end=None, identity=None, segment_bytes=None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        format: &str,
        #[pyo3(from_py_with = crate::common::fs_path::path)] path: PathBuf,
        #[pyo3(from_py_with = numbers::ordinal)] ordinal: Option<u64>,
        #[pyo3(from_py_with = numbers::records)] records: Option<u64>,
        #[pyo3(from_py_with = numbers::offset)] offset: u64,
        #[pyo3(from_py_with = numbers::end)] end: u64,
        #[pyo3(from_py_with = numbers::unacknowledged_from)] unacknowledged_from: Option<u64>,
        #[pyo3(from_py_with = numbers::known_end)] known_end: Option<u64>,
        identity: Option<&str>,
        #[pyo3(from_py_with = numbers::segment_bytes)] segment_bytes: Option<u64>,
    ) -> PyResult<Self> {
        let format = Format::by_name(py, format)?;
        let identity = identity.map(str::parse).transpose().or_raise(py)?;
        let begin = Split { ordinal, records, ..Split::new(path, offset, end) };
        let split = Split { unacknowledged_from, known_end, identity, segment_bytes, ..begin };
        Ok(Self { format, split })
    }

    #[classattr]
    fn __match_args__(py: Python<'_>) -> PyResult<Py<PyTuple>> {
        Ok(PyTuple::new(py, FIELDS)?.unbind())
    }

    fn __getnewargs__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let Split { ordinal, records, offset, end, segment_bytes, .. } = self.split;
        let Split { unacknowledged_from, known_end, .. } = self.split;
        let (format, path, identity) = (self.format(), self.path(), self.identity());
        let fields = (
            format,
            path,
            ordinal,
            records,
            offset,
            end,
            unacknowledged_from,
            known_end,
            identity,
            segment_bytes,
        );
        fields.into_pyobject(py)
    }

    #[doc = doc!("Split".to_dict)]
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fields = PyDict::new(py);
        for (name, value) in FIELDS.iter().zip(self.__getnewargs__(py)?) {
            fields.set_item(name, value)?;
        }
        Ok(fields)
    }

    #[doc = doc!("Split".format)]
    #[getter]
    fn format(&self) -> &'static str {
        self.format.name()
    }

    #[doc = doc!("Split".path)]
    #[getter]
    fn path(&self) -> FsPath {
        self.split.path.clone().into()
    }

    #[doc = doc!("Split".ordinal)]
    #[getter]
    fn ordinal(&self) -> Option<u64> {
        self.split.ordinal
    }

    #[doc = doc!("Split".records)]
    #[getter]
    fn records(&self) -> Option<u64> {
        self.split.records
    }

    #[doc = doc!("Split".offset)]
    #[getter]
    fn offset(&self) -> u64 {
        self.split.offset
    }

    #[doc = doc!("Split".end)]
    #[getter]
    fn end(&self) -> u64 {
        self.split.end
    }

    #[doc = doc!("Split".unacknowledged_from)]
    #[getter]
    fn unacknowledged_from(&self) -> Option<u64> {
        self.split.unacknowledged_from
    }

    #[doc = doc!("Split".known_end)]
    #[getter]
    fn known_end(&self) -> Option<u64> {
        self.split.known_end
    }

    #[doc = doc!("Split".identity)]
    #[getter]
    fn identity(&self) -> Option<String> {
        self.split.identity.map(|identity| identity.to_string())
    }

    #[doc = doc!("Split".segment_bytes)]
    #[getter]
    fn segment_bytes(&self) -> Option<u64> {
        self.split.segment_bytes
    }

    #[doc = doc!("Split".check)]
    #[pyo3(signature = (*, record_bytes_max=None, progress=None))]
    fn check(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::record_bytes_max)] record_bytes_max: Option<u64>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<PyPartReport> {
        let split = &self.split;
        let report = match self.format {
            Format::Book => {
                let options = book_options(record_bytes_max);
                Progress::run(py, progress, |progress| {
                    options.verify_part(split, |done, all| progress.call(done, all))
                })
            }
            Format::Wal => {
                let options = wal::Options::new().record_bytes_max(record_bytes_max);
                Progress::run(py, progress, |progress| {
                    options.verify_part(split, |done, all| progress.call(done, all))
                })
            }
            Format::Ledger => {
                let options = ledger_options(record_bytes_max);
                Progress::run(py, progress, |progress| {
                    options.verify_part(split, |done, all| progress.call(done, all))
                })
            }
            Format::Nostr => {
                let message = "check: a part of an event store is for EventStore.verify_part";
                Err(invalid(py, message.into()))
            }
        };
        report.map(|report| (&report).into())
    }

    #[doc = doc!("Split".batches)]
    #[pyo3(signature = (*, start=None, stop=None, columns=None, batch_rows=65536,
                        batch_bytes=2097152, on_corrupt="raise", verify="crc",
                        record_bytes_max=None, include=None, filter=None))]
    #[allow(clippy::too_many_arguments)]
    fn batches(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::start)] start: Option<u64>,
        #[pyo3(from_py_with = numbers::stop)] stop: Option<u64>,
        columns: Option<Vec<String>>,
        #[pyo3(from_py_with = numbers::batch_rows)] batch_rows: usize,
        #[pyo3(from_py_with = numbers::batch_bytes)] batch_bytes: usize,
        on_corrupt: &str,
        verify: &str,
        #[pyo3(from_py_with = numbers::record_bytes_max)] record_bytes_max: Option<u64>,
        include: Option<&str>,
        filter: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<BatchStream> {
        if self.format != Format::Nostr && (include.is_some() || filter.is_some()) {
            let message = "include and filter: are for a part of an event store";
            return Err(invalid(py, message.into()));
        }
        let on_corrupt = self::on_corrupt(py, on_corrupt)?;
        let check = checks(py, verify)?;
        match self.format {
            Format::Book => {
                let columns = self::columns(py, columns, deedbook::Batches::<BookFormat>::DEFAULT)?;
                let options = book_options(record_bytes_max);
                let (split, range) = (&self.split, bounds(start, stop));
                let cursor = py
                    .detach(|| Book::read_split(split, &options, range, on_corrupt, check))
                    .or_raise(py)?;
                let batches = deedbook::Batches::new(cursor, &columns, batch_rows, batch_bytes);
                Ok(BatchStream::new(Box::new(batches.or_raise(py)?)))
            }
            Format::Wal => {
                let columns = self::columns(py, columns, deedbook::Batches::<WalFormat>::DEFAULT)?;
                let options = wal::Options::new().record_bytes_max(record_bytes_max);
                let split = within(&self.split, start.unwrap_or(0), stop.unwrap_or(u64::MAX));
                let cursor = py
                    .detach(|| Wal::read_split(&split, &options, on_corrupt, check))
                    .or_raise(py)?;
                let batches = deedbook::Batches::new(cursor, &columns, batch_rows, batch_bytes);
                Ok(BatchStream::new(Box::new(batches.or_raise(py)?)))
            }
            Format::Ledger | Format::Nostr if (start, stop) != (None, None) => {
                let message = match self.format {
                    Format::Nostr => "start and stop: a part of an event store is read as a whole",
                    _ => "start and stop: a part of a ledger's file is read as a whole",
                };
                Err(invalid(py, message.into()))
            }
            Format::Nostr => {
                let include = include.unwrap_or("live");
                let picked = Picked::new(py, columns, (batch_rows, batch_bytes), include, filter)?;
                let picked = picked.with_check(check);
                let limit = record_bytes_max.map(u32::try_from).transpose();
                let limit = limit.map_err(|_| {
                    invalid(py, "record_bytes_max: an event has less than 4 GiB".into())
                })?;
                crate::nostr::columns::of_split(py, &self.split, limit, on_corrupt, picked)
            }
            Format::Ledger => {
                let columns =
                    self::columns(py, columns, deedbook::Batches::<LedgerFormat>::DEFAULT)?;
                let options = ledger_options(record_bytes_max);
                let cursor = py
                    .detach(|| LedgerFile::read_split(&self.split, &options, on_corrupt, check))
                    .or_raise(py)?;
                let batches = deedbook::Batches::new(cursor, &columns, batch_rows, batch_bytes);
                Ok(BatchStream::new(Box::new(batches.or_raise(py)?)))
            }
        }
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let fields = FIELDS.iter().zip(self.__getnewargs__(py)?);
        let shown = fields.map(|(name, value)| Ok(format!("{name}={}", value.repr()?)));
        Ok(format!("Split({})", shown.collect::<PyResult<Vec<_>>>()?.join(", ")))
    }
}

/// The parts of logs of one format, as the core takes them.
pub fn of_format(
    py: Python<'_>,
    parts: Option<Vec<PyRef<'_, PySplit>>>,
    format: Format,
) -> PyResult<Vec<Split>> {
    let parts = parts.unwrap_or_default();
    parts.iter().map(|part| of_one(py, part, format).cloned()).collect()
}

/// A part of a log of this format.
pub fn of_one<'a>(py: Python<'_>, part: &'a PySplit, format: Format) -> PyResult<&'a Split> {
    match part.format == format {
        true => Ok(&part.split),
        false => {
            let (is, wanted) = (part.format.name(), format.name());
            Err(invalid(py, format!("a part of the format {is}, must be of {wanted}")))
        }
    }
}

fn book_options(record_bytes_max: Option<u64>) -> book::Options {
    let deed_bytes_max = record_bytes_max.unwrap_or(book::Options::DEED_BYTES_MAX);
    book::Options::new().deed_bytes_max(deed_bytes_max)
}

fn ledger_options(record_bytes_max: Option<u64>) -> ledger::Options {
    let options = ledger::Options::default();
    let record_bytes_max = record_bytes_max.unwrap_or(options.record_bytes_max);
    options.record_bytes_max(record_bytes_max)
}

/// The bytes of a part that lie in `start..stop`.
fn within(split: &Split, start: u64, stop: u64) -> Split {
    let offset = split.offset.max(start).min(split.end);
    let end = split.end.min(stop).max(offset);
    match (offset, end) == (split.offset, split.end) {
        true => split.clone(),
        // Only the ends of a part are known to lie between records.
        false => Split { offset, end, ordinal: None, records: None, ..split.clone() },
    }
}
