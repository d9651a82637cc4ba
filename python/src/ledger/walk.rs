//! A walk over a ledger's files, one after another.

use std::collections::VecDeque;

use deedbook::ledger::{self, Cursor, FileInfo, LedgerFile, Options};
use deedbook::{Damage, ErrorKind, OnCorrupt, Result};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::common::errors::OrRaise;
use crate::log::iterators::Walk;
use crate::log::record::PyLedgerRecord;

/// A walk over the records of one file after another, each opened when it is its turn.
pub struct Files {
    files: VecDeque<FileInfo>,
    open: Option<(u32, Cursor)>,
    /// Those of the files before.
    damages: Vec<Damage>,
    on_corrupt: OnCorrupt,
    may_be_gone: bool,
}

impl Files {
    /// `may_be_gone`: whether a file that was sent meanwhile is passed over.
    pub fn new(files: VecDeque<FileInfo>, on_corrupt: OnCorrupt, may_be_gone: bool) -> Self {
        Self { files, open: None, damages: Vec::new(), on_corrupt, may_be_gone }
    }

    /// The next file that is there.
    pub fn next_log(&mut self) -> Result<Option<(u32, LedgerFile)>> {
        while let Some(file) = self.files.pop_front() {
            match ledger::open_file(&file.path, &Options::default()) {
                Err(e) if e.kind() == ErrorKind::Missing && self.may_be_gone => {}
                log => return Ok(Some((file.index, log?))),
            }
        }
        Ok(None)
    }

    /// The next file's records.
    pub fn next_cursor(&mut self) -> Result<Option<(u32, Cursor)>> {
        match self.next_log()? {
            Some((index, log)) => Ok(Some((index, log.cursor(self.on_corrupt)?))),
            None => Ok(None),
        }
    }

    /// Open no more files.
    pub fn end(&mut self) {
        self.files.clear();
    }

    /// Whether there is another record; the cursor stands on it. After an error there is none.
    fn advance<T>(
        &mut self,
        py: Python<'_>,
        give: impl Fn(u32, ledger::RecordRef<'_>) -> PyResult<T>,
    ) -> PyResult<Option<T>> {
        loop {
            if let Some((index, cursor)) = &mut self.open {
                let index = *index;
                let ready = cursor.ready();
                let record = match ready {
                    true => cursor.next(),
                    false => py.detach(|| cursor.next()),
                };
                match record {
                    Ok(Some(record)) => return give(index, record).map(Some),
                    Ok(None) => {}
                    Err(e) => {
                        self.end();
                        return Err::<(), _>(e).or_raise(py).map(|()| None);
                    }
                }
            }
            if let Some((_, done)) = self.open.take() {
                self.damages.extend_from_slice(done.damages());
            }
            self.open = py.detach(|| self.next_cursor()).or_raise(py)?;
            if self.open.is_none() {
                return Ok(None);
            }
        }
    }
}

impl Walk for Files {
    fn record<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.advance(py, |file, record| {
            let record = PyLedgerRecord::build(py, file, record.number, record.payload);
            Ok(Bound::new(py, record)?.into_any())
        })
    }

    fn payload<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        self.advance(py, |_, record| Ok(PyBytes::new(py, record.payload)))
    }

    fn damages(&self) -> Vec<Damage> {
        let open = self.open.iter().flat_map(|(_, cursor)| cursor.damages());
        self.damages.iter().chain(open).cloned().collect()
    }
}
