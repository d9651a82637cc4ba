//! Cutting a log between records into parts that can be read apart, for parallel readers.

use std::path::PathBuf;
use std::sync::Arc;

use super::cursor::{Cursor, OnCorrupt};
use super::format::{Codec, FORMAT, Lsn};
use super::open::{look_patiently, place_of};
use super::options::Options;
use super::survey::Borders;
use super::{Shared, Wal};
use crate::error::{Error, Result};
use crate::locks::Mutex;
use crate::mode::Depth;
use crate::scan::Damage;
use crate::sidecar::Index;

/// A part of a log between two records: a path and numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// The log.
    pub path: PathBuf,
    /// Its first record.
    pub lsn: Lsn,
    /// Byte behind its last record.
    pub end: Lsn,
    /// Number of records, where it is known.
    pub records: Option<u64>,
}

impl Wal {
    /// Cut the records in `start..stop` into parts of about `split_bytes` bytes, and at least one
    /// for each segment's bytes. A log that is damaged behind its valid prefix gets one more part
    /// for what lies there.
    pub fn splits(
        &self,
        split_bytes: u64,
        start: Option<Lsn>,
        stop: Option<Lsn>,
    ) -> Result<Vec<Split>> {
        let shared = self.usable()?;
        let (tip, damage) = {
            let state = shared.state();
            (state.tip, state.damage.clone())
        };
        if let Some(start) = start.filter(|start| start.0 > tip.end && damage.is_none()) {
            return Err(shared.outside(format!("lsn {start}, the log ends at {}", tip.end)));
        }
        let most = self.layout().segment_bytes().unwrap_or(u64::MAX);
        let split_bytes = split_bytes.clamp(1, most);
        let reaches_end = stop.is_none_or(|stop| stop.0 > tip.end);
        let stop = stop.map_or(tip.end, |stop| stop.0.min(tip.end));
        let mut from = start.map_or(tip.start, |start| start.0.max(tip.start));
        let mut splits = Vec::new();
        if from < stop {
            shared.catch_up(tip);
            let mut ordinal = shared.locate(tip, Lsn(from))?;
            let last = shared.locate(tip, Lsn(stop))?;
            while from < stop {
                let (to, behind) = shared.border(from, stop, split_bytes, last);
                splits.push(self.split(from, to, Some(behind.saturating_sub(ordinal))));
                (from, ordinal) = (to, behind);
            }
        }
        if reaches_end && damage.is_some() {
            let fail = |e| Error::io("look at the log", &shared.place.log, e).of(FORMAT);
            let there = shared.file.len().map_err(fail)?;
            let vouched = shared.recovery.durable_end.unwrap_or(0);
            let end = there.max(vouched).max(tip.end.saturating_add(1));
            splits.push(self.split(tip.end, end, None));
        }
        Ok(splits)
    }

    fn split(&self, lsn: u64, end: u64, records: Option<u64>) -> Split {
        Split { path: self.path().to_path_buf(), lsn: Lsn(lsn), end: Lsn(end), records }
    }
}

impl Shared {
    /// Where a part that begins at `from` ends, and the ordinal of the record there: the last known
    /// border within reach, else the next one.
    fn border(&self, from: u64, stop: u64, split_bytes: u64, last: u64) -> (u64, u64) {
        let target = from.saturating_add(split_bytes);
        let index = self.index();
        let border = match index.last_where(|entry| entry.offset <= target) {
            Some((_, entry)) if entry.offset > from && entry.offset < stop => Some(entry),
            _ => index.first_from(from + 1).filter(|entry| entry.offset < stop),
        };
        // A remnant much shorter than a part is not worth one of its own.
        match border.filter(|entry| stop - entry.offset >= split_bytes / 8) {
            Some(entry) => (entry.offset, entry.ordinal),
            None => (stop, last),
        }
    }
}

impl Split {
    /// Walk the records of the part.
    pub fn cursor(&self, options: &Options, on_corrupt: OnCorrupt, check: bool) -> Result<Cursor> {
        let place = place_of(&self.path, options)?;
        let looked = look_patiently(options, &place, Depth::Begin).map_err(|e| e.of(FORMAT))?;
        let there = looked.file.len().map_err(|e| Error::io("look at the log", &place.log, e))?;
        let (Lsn(start), Lsn(end)) = (self.lsn, self.end);
        let head = looked.findings.tip.start;
        let missing = (there < end || start < head).then(|| Damage {
            offset: there.max(start),
            end,
            reason: format!("the log has bytes {head} to {there}, there were records up to {end}"),
            next_intact: None,
            first_lost: None,
            records_lost: None,
        });
        let index = Arc::new(Mutex::new(Index::empty(&place.sidecar)));
        let durable_end = looked.findings.durable_end;
        let known_end = looked.mark.map(|mark| mark.end);
        let borders = Borders { index, known_end, durable_end };
        let codec = Codec { check, ..looked.codec };
        let (start, end) = (start.max(head), end.min(there).max(head));
        let cursor = Cursor::new(looked.file, &place.log, codec, start, end, on_corrupt, borders);
        Ok(cursor.with_trailing(missing))
    }
}
