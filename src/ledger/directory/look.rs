//! A look at a finished file: the records to send, and the damage.

use std::path::Path;
use std::sync::Arc;

use super::Finished;
use crate::error::{Error, Result};
use crate::ground::locks::Mutex;
use crate::ledger::codec::{Codec, FORMAT};
use crate::ledger::format::LedgerFormat;
use crate::ledger::options::{OnCorrupt, Options};
use crate::log::{Cursor, Evidence, Format, Range, Source, Space, begins_beyond_limit, verdict};
use crate::mode::Depth;
use crate::scan::framing::Frame;
use crate::scan::{Damage, Verdict};
use crate::sidecar::Index;

/// How files are looked at.
#[derive(Clone, Copy, Debug)]
pub struct Looking {
    /// Limit of a payload.
    pub record_bytes_max: u64,
    pub on_corrupt: OnCorrupt,
}

impl Looking {
    /// As the options say, with the limit that the ledger keeps.
    pub fn new(options: &Options, kept_limit: u64) -> Self {
        let record_bytes_max = options.record_bytes_max.max(kept_limit);
        Self { record_bytes_max, on_corrupt: options.on_corrupt }
    }
}

/// Consecutive records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub start: u64,
    pub end: u64,
}

/// The findings of a look: the records to send, all checked.
#[derive(Clone, Debug)]
pub struct Seen {
    pub codec: Codec,
    pub runs: Vec<Run>,
    pub records: u64,
    /// Bytes of the records' payloads.
    pub payload_bytes: u64,
    /// How the file ends.
    pub verdict: Verdict,
    /// The damaged stretches.
    pub damages: Vec<Damage>,
    /// Whether the file holds nothing at all, or zeros alone.
    pub blank: bool,
    /// Whether intact records are in the file that are not sent.
    pub withheld: bool,
    /// With [`OnCorrupt::Skip`]: how many of them a rescue finds.
    pub left_out: u64,
    /// Whether a record only exceeds the limit, and is no damage.
    pub beyond_limit: bool,
}

/// Read a file once, and check every record. A damaged one is read again.
pub fn look(looking: &Looking, found: &Finished) -> Result<Seen> {
    let Finished { path, file, len, .. } = found;
    let format = LedgerFormat::new(looking.record_bytes_max);
    let source = Source {
        file: file.clone(),
        path: path.clone(),
        format,
        framing: format.framing(),
        // A ledger keeps no mark: only the file itself gives facts.
        evidence: Evidence::new(Arc::new(Mutex::new(Index::empty(Path::new("")))), None, None),
    };
    let range = Range { offset: 0, end: *len, ordinal: Some(0), stop: None };
    let mut cursor = Cursor::new(source.clone(), range.clone(), crate::scan::OnCorrupt::Skip);
    let mut seen = Seen::untouched(looking);
    let mut valid_end = 0;
    while let Some((_, offset, frame)) = cursor.advance()? {
        let prefix = cursor.damages().is_empty();
        if prefix {
            valid_end = offset + frame.len();
        }
        // Records that may lie inside a damaged record are not sent.
        if prefix || (looking.on_corrupt == OnCorrupt::Skip && !cursor.may_be_inside()) {
            seen.add(offset, frame);
        }
    }
    seen.damages = cursor.damages().to_vec();
    if valid_end < *len {
        // The engine judges the end of the file, like `verify`.
        let fail = |e| Error::io("read the file", path, e).of(FORMAT);
        let again = format.inspect_file(file.clone(), *len, Depth::Full).map_err(fail)?;
        seen.verdict = verdict(&again, &seen.damages, valid_end, false);
        seen.blank = again.findings.data_end == 0;
        let space = Space::new(file.clone(), 0, *len);
        seen.beyond_limit = again.findings.beyond_limit;
        for damage in &seen.damages {
            seen.beyond_limit |=
                begins_beyond_limit(&format, &space, damage.offset).map_err(fail)?;
        }
        if (seen.verdict, looking.on_corrupt) == (Verdict::Corrupt, OnCorrupt::Skip) {
            seen.left_out = rescued(source, range)?.saturating_sub(seen.records);
        }
        seen.withheld = match (seen.verdict, looking.on_corrupt) {
            // A rescue with this limit would not take the record.
            _ if seen.beyond_limit => true,
            // Nobody knows the content of the rest.
            (Verdict::Corrupt, _) if cursor.gave_up() => true,
            (Verdict::Corrupt, OnCorrupt::Skip) => seen.left_out > 0,
            (verdict, _) => verdict == Verdict::Corrupt,
        };
    }
    seen.blank |= *len == 0;
    Ok(seen)
}

/// How many records a rescue takes, including records inside a damaged record.
fn rescued(source: Source<LedgerFormat>, range: Range) -> Result<u64> {
    let mut cursor = Cursor::new(source, range, crate::scan::OnCorrupt::Skip).rescuing();
    let mut records = 0;
    while cursor.advance()?.is_some() {
        records += 1;
    }
    Ok(records)
}

impl Seen {
    /// Before the look.
    pub fn untouched(looking: &Looking) -> Self {
        Self {
            codec: LedgerFormat::new(looking.record_bytes_max).framing(),
            runs: Vec::new(),
            records: 0,
            payload_bytes: 0,
            verdict: Verdict::Clean,
            damages: Vec::new(),
            blank: false,
            withheld: false,
            left_out: 0,
            beyond_limit: false,
        }
    }

    fn add(&mut self, offset: u64, frame: crate::ledger::codec::Frame) {
        let end = offset + frame.len();
        self.records += 1;
        self.payload_bytes += frame.payload_len();
        match self.runs.last_mut().filter(|run| run.end == offset) {
            Some(run) => run.end = end,
            None => self.runs.push(Run { start: offset, end }),
        }
    }
}
