//! The records of a ledger's files: walks, batches and parts between two positions.

use std::path::{Path, PathBuf};

use deedbook::Chained;
use deedbook::jobs::Split;
use deedbook::ledger::{
    self, Contents, FileInfo, LedgerConfig, LedgerFormat, LedgerStore, Options, Position, Record,
};
use deedbook::report::Damage;
use deedbook::{Error, ErrorKind, OnCorrupt, Result};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::common::errors::{OrRaise, invalid, to_py};
use crate::common::handle::Held;
use crate::ledger::batches::{Asked, FileBatches};
use crate::log::any_log::Format;
use crate::log::batches::{BATCH_BYTES, BATCH_ROWS, Batches};
use crate::log::iterators::{ToPython, Walk};
use crate::log::range::Ranged;

/// From the first position on, to before the second.
pub type Span = (Option<Position>, Option<Position>);

/// A ledger open for reading, with the files found at the opening.
pub struct Reader {
    pub found: Found,
    /// The handle for transactions.
    pub store: Held<LedgerStore>,
}

impl Reader {
    /// `config` gives the store's configuration, from the directory and the base.
    pub fn open(
        path: &Path,
        base: Option<&str>,
        config: impl FnOnce(PathBuf, String) -> LedgerConfig,
        options: &Options,
    ) -> Result<Self> {
        let found = Found::at(path, base)?;
        let Contents { path, base, .. } = &found.contents;
        let dir = if found.single { path.parent().unwrap_or(path) } else { path };
        let store = options.open_to_read(config(dir.into(), base.clone()))?;
        Ok(Self { found, store: Held::new(store) })
    }

    pub fn check_open(&self) -> Result<()> {
        match self.store.is_closed() {
            false => Ok(()),
            true => Err(self.found.error(ErrorKind::Closed, "the ledger is closed")),
        }
    }
}

/// The files of a ledger, or a single named file.
#[derive(Clone)]
pub struct Found {
    pub contents: Contents,
    /// Whether the path names a file. A named file must exist.
    single: bool,
}

impl Found {
    pub fn at(path: &Path, base: Option<&str>) -> Result<Self> {
        let contents = Options::default().contents(path, base)?;
        let single = !contents.path.is_dir();
        Ok(Self { contents, single })
    }

    fn error(&self, kind: ErrorKind, message: impl Into<String>) -> Error {
        Error::new(kind, message.into()).of(Format::Ledger.name()).at(&self.contents.path)
    }

    /// The files to read: all finished files, or the named file.
    fn wanted(&self, (start, stop): Span) -> Contents {
        let mut wanted = self.contents.clone();
        let is_read = |file: &FileInfo| self.single || !file.active;
        let begun = |file: &FileInfo| start.is_none_or(|start| file.index >= start.file);
        let ends = |stop: Position, index| (index, 0) < (stop.file, stop.record);
        let ended = |file: &FileInfo| stop.is_some_and(|stop| !ends(stop, file.index));
        wanted.files.retain(|file| is_read(file) && begun(file) && !ended(file));
        wanted
    }

    pub fn walk(&self, span: Span, on_corrupt: OnCorrupt) -> Between {
        Between { files: self.wanted(span).cursor(on_corrupt), span, over: false }
    }

    pub fn walk_back(&self, span: Span, on_corrupt: OnCorrupt) -> Box<dyn Walk> {
        Box::new(Back { files: self.wanted(span).cursor_back(on_corrupt), span })
    }

    /// The record at a position, also of a file that is being written.
    pub fn one<'py>(&self, py: Python<'py>, at: Position) -> PyResult<Bound<'py, PyAny>> {
        let after = Position { file: at.file, record: at.record.saturating_add(1) };
        let span = (Some(at), Some(after));
        let mut contents = self.contents.clone();
        contents.files.retain(|file| file.index == at.file);
        let files = contents.cursor(OnCorrupt::Raise);
        let record = Between { files, span, over: false }.record(py)?;
        record.ok_or_else(|| {
            let message = format!("no record {} in a file {}", at.record, at.file);
            to_py(py, &self.error(ErrorKind::OutOfRange, message))
        })
    }

    /// Between files only: a batch has records of whole files.
    fn check_whole(&self, py: Python<'_>, what: &str, (start, stop): Span) -> PyResult<()> {
        match [start, stop].into_iter().flatten().find(|position| position.record > 0) {
            None => Ok(()),
            Some(Position { file, record }) => {
                let message =
                    format!("{what} of whole files, from ({file}, 0), not ({file}, {record})");
                Err(invalid(py, message))
            }
        }
    }

    pub fn batches(
        &self,
        py: Python<'_>,
        span: Span,
        columns: Vec<Asked>,
        (rows, bytes): (usize, usize),
        on_corrupt: OnCorrupt,
    ) -> PyResult<FileBatches> {
        self.check_whole(py, "batches are", span)?;
        FileBatches::new(self.wanted(span).cursor(on_corrupt), columns, rows, bytes).or_raise(py)
    }

    pub fn splits(&self, py: Python<'_>, bytes: u64, span: Span) -> PyResult<Vec<Split>> {
        self.check_whole(py, "splits are", span)?;
        let cut = |file: FileInfo| match Options::default().open_file(&file.path) {
            // Sent meanwhile.
            Err(e) if e.kind() == ErrorKind::Missing && !self.single => Ok(Vec::new()),
            log => log?.splits(bytes),
        };
        let cut = || self.wanted(span).files.into_iter().map(cut).collect::<Result<Vec<_>>>();
        Ok(py.detach(cut).or_raise(py)?.concat())
    }
}

/// The records between two positions.
pub struct Between {
    files: Chained<LedgerFormat>,
    span: Span,
    over: bool,
}

impl Between {
    /// Unnumbered records follow damage that hid the count, so they come after all numbered
    /// records.
    fn is_before(start: Position, file: u64, record: &Record<&[u8]>) -> bool {
        file == u64::from(start.file) && record.number.is_some_and(|number| number < start.record)
    }

    fn is_after(stop: Position, file: u64, record: &Record<&[u8]>) -> bool {
        file == u64::from(stop.file) && record.number.is_none_or(|number| number >= stop.record)
    }

    fn next<T>(
        &mut self,
        py: Python<'_>,
        make: impl Fn(&(u64, Record<&[u8]>)) -> PyResult<T>,
    ) -> PyResult<Option<T>> {
        let (start, stop) = self.span;
        while !self.over {
            let files = &mut self.files;
            let found = match files.ready() {
                true => files.next_numbered(),
                false => py.detach(move || files.next_numbered()),
            };
            let Some(found) = found.or_raise(py)? else { break };
            if start.is_some_and(|start| Self::is_before(start, found.0, &found.1)) {
                continue;
            }
            if stop.is_some_and(|stop| Self::is_after(stop, found.0, &found.1)) {
                self.over = true;
                break;
            }
            return make(&found).map(Some);
        }
        Ok(None)
    }
}

impl Walk for Between {
    fn record<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.next(py, |found| found.to_python(py))
    }

    fn payload<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        self.next(py, |found| Ok(PyBytes::new(py, found.payload())))
    }

    fn damages(&self) -> Vec<Damage> {
        self.files.damages().to_vec()
    }
}

/// The records between two positions, the last one first.
struct Back {
    files: ledger::Reverse,
    span: Span,
}

impl Back {
    fn next(&mut self) -> Result<Option<(u64, Record)>> {
        let (start, stop) = self.span;
        while let Some((file, record)) = self.files.next()? {
            let (file, shown) = (u64::from(file), as_ref(&record));
            if stop.is_some_and(|stop| Between::is_after(stop, file, &shown)) {
                continue;
            }
            // No record before the start follows in another file.
            let over = start.is_some_and(|start| Between::is_before(start, file, &shown));
            return Ok(Some((file, record)).filter(|_| !over));
        }
        Ok(None)
    }
}

pub fn as_ref(record: &Record) -> Record<&[u8]> {
    Record { number: record.number, offset: record.offset, payload: &record.payload }
}

impl Walk for Back {
    fn record<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let found = py.detach(|| self.next()).or_raise(py)?;
        found.map(|(file, record)| (file, as_ref(&record)).to_python(py)).transpose()
    }

    fn payload<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let found = py.detach(|| self.next()).or_raise(py)?;
        Ok(found.map(|(_, record)| PyBytes::new(py, &record.payload)))
    }

    fn damages(&self) -> Vec<Damage> {
        self.files.damages().to_vec()
    }
}

/// A slice of a ledger.
pub struct Slice {
    pub found: Found,
    pub span: Span,
}

impl Ranged for Slice {
    fn walk(&self) -> Result<Box<dyn Walk>> {
        Ok(Box::new(self.found.walk(self.span, OnCorrupt::Raise)))
    }

    fn walk_back(&self, _py: Python<'_>) -> PyResult<Box<dyn Walk>> {
        Ok(self.found.walk_back(self.span, OnCorrupt::Raise))
    }

    fn batches(&self, py: Python<'_>) -> PyResult<Box<dyn Batches>> {
        let (columns, sizes) = (Asked::default_columns(), (BATCH_ROWS, BATCH_BYTES));
        Ok(Box::new(self.found.batches(py, self.span, columns, sizes, OnCorrupt::Raise)?))
    }
}
