//! Events of JSON lines as Arrow columns: the function `parse_events`.

use deedbook::nostr::{ImportOptions, Options, ParsedLines};
use pyo3::prelude::*;
use pyo3_arrow::PyRecordBatch;

use crate::append::input::{Sink, feed};
use crate::append::payload::Limit;
use crate::common::arguments::numbers;
use crate::common::errors::OrRaise;
use crate::nostr::arguments as words;

/// Parsed at once without the GIL.
const PART_BYTES: usize = 1 << 20;

#[doc = doc!("parse_events")]
#[pyfunction]
#[pyo3(signature = (lines, /, *, check="id", event_bytes_max=100_000_000))]
pub fn parse_events(
    lines: &Bound<'_, PyAny>,
    check: &str,
    #[pyo3(from_py_with = numbers::event_bytes_max)] event_bytes_max: u32,
) -> PyResult<PyRecordBatch> {
    let py = lines.py();
    let options = ImportOptions::new().check(words::check(py, check)?);
    let store = Options::new().event_bytes_max(event_bytes_max);
    let parsed = ParsedLines::new(options, store);
    let mut waiting = Waiting { parsed, bytes: Vec::new(), lens: Vec::new() };
    // A line that is too long is a bad line.
    let limit = Limit { format: "nostr", noun: "line", bytes_max: u64::MAX };
    feed(&mut waiting, limit, lines, None)?;
    let finished = py.detach(move || waiting.flush().and_then(|()| waiting.parsed.finish()));
    finished.or_raise(py).map(PyRecordBatch::new)
}

/// Lines that wait until there are enough to parse.
struct Waiting {
    parsed: ParsedLines,
    bytes: Vec<u8>,
    /// How long each is.
    lens: Vec<usize>,
}

impl Sink for Waiting {
    const COLUMN: &'static str = "value";

    fn push(&mut self, _mug: u32, line: &[u8]) -> deedbook::Result<()> {
        self.bytes.extend_from_slice(line);
        self.lens.push(line.len());
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.bytes.len() >= PART_BYTES
    }

    fn flush(&mut self) -> deedbook::Result<()> {
        let mut rest = self.bytes.as_slice();
        for &len in &self.lens {
            let (line, later) = rest.split_at(len);
            self.parsed.push(line)?;
            rest = later;
        }
        self.bytes.clear();
        self.lens.clear();
        Ok(())
    }

    fn taken(&self) -> u64 {
        (self.parsed.len() + self.lens.len()) as u64
    }
}
