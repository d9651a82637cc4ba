//! Cutting a log between deeds into parts that can be read apart, for parallel readers.

use std::path::PathBuf;
use std::sync::Arc;

use super::Book;
use super::cursor::{Cursor, OnCorrupt, Range};
use super::format::{FORMAT, Packed};
use super::look::resolve;
use super::options::Options;
use super::survey::Borders;
use crate::error::{Error, Result};
use crate::scan::Damage;
use crate::storage::{Access, File};

/// A part of a log between two deeds: a path and numbers, readable without opening the book.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// Directory of the book.
    pub path: PathBuf,
    /// Number of the first deed.
    pub first_event: Option<u64>,
    /// Number of deeds, where it is known.
    pub deeds: Option<u64>,
    /// Byte of the first deed.
    pub offset: u64,
    /// Byte behind the last deed.
    pub end: u64,
}

impl Book {
    /// Cut the deeds `start <= event < stop` into parts of about `split_bytes` bytes. A log that
    /// is damaged behind its valid prefix gets one more part for what lies there.
    pub fn splits(&self, split_bytes: u64, start: u64, stop: Option<u64>) -> Result<Vec<Split>> {
        let shared = self.usable()?;
        let (tip, damage) = {
            let state = shared.state();
            (state.tip, state.damage.clone())
        };
        let behind = tip.first.saturating_add(tip.records);
        let reaches_end = stop.is_none_or(|stop| stop > behind);
        let stop = stop.unwrap_or(behind).min(behind);
        let mut event = start.max(tip.first);
        let mut splits = Vec::new();
        if tip.records > 0 && event < stop {
            shared.catch_up(tip);
            let mut offset = shared.locate(tip, event)?;
            let end = if stop == behind { tip.end } else { shared.locate(tip, stop)? };
            let index = shared.index().clone();
            while offset < end {
                let target = offset.saturating_add(split_bytes.max(1));
                let border = match index.last_where(|entry| entry.offset <= target) {
                    Some((_, entry)) if entry.offset > offset && entry.offset < end => Some(entry),
                    // Not one whole block within the target: the next block's end.
                    _ => index.first_from(offset + 1).filter(|entry| entry.offset < end),
                };
                let (next, to) = border.map_or((stop, end), |entry| (entry.ordinal, entry.offset));
                // A remnant much shorter than a split is not worth one of its own.
                let (next, to) = if end - to < split_bytes / 8 { (stop, end) } else { (next, to) };
                splits.push(Split {
                    path: shared.dir.clone(),
                    first_event: Some(event),
                    deeds: Some(next - event),
                    offset,
                    end: to,
                });
                (event, offset) = (next, to);
            }
        }
        // Damage in the header is not behind the deeds; `recovery` tells it.
        if reaches_end && damage.is_some_and(|damage| damage.offset >= tip.end) {
            let fail = |e| Error::io("look at the log", &shared.log_path, e).of(FORMAT);
            let there = shared.file.len().map_err(fail)?;
            let vouched = shared.recovery.durable_end.unwrap_or(0);
            splits.push(Split {
                path: shared.dir.clone(),
                first_event: Some(behind).filter(|_| tip.records > 0),
                deeds: None,
                offset: tip.end,
                end: there.max(vouched).max(tip.end.saturating_add(1)),
            });
        }
        Ok(splits)
    }
}

impl Split {
    /// Walk the deeds of the part with `start <= event < stop`.
    pub fn cursor(
        &self,
        options: &Options,
        start: u64,
        stop: Option<u64>,
        on_corrupt: OnCorrupt,
        check: bool,
    ) -> Result<Cursor> {
        options.check()?;
        let (dir, log) = resolve(&self.path, options);
        let fail = |e| Error::io("open the log", &log, e).of(FORMAT);
        let file = options.storage.open(&log, Access::Read).map_err(fail)?;
        let file: Arc<dyn File> = Arc::from(file);
        let there = file.len().map_err(fail)?;
        let missing = (there < self.end).then(|| Damage {
            offset: there.max(self.offset),
            end: self.end,
            reason: format!("the file has {there} bytes, there were deeds up to {}", self.end),
            next_intact: None,
            first_lost: None,
            records_lost: None,
        });
        let codec = Packed { check, ..Packed::new(options.deed_bytes_max) };
        let end = self.end.min(there);
        let range = Range { offset: self.offset, end, event: self.first_event, stop };
        let borders = Borders::unknown(&dir);
        let cursor = Cursor::new(file, log, codec, range, on_corrupt, borders);
        let mut cursor = cursor.with_trailing(missing);
        if self.first_event.is_some_and(|first| first < start) {
            cursor.skip_to(start)?;
        }
        Ok(cursor)
    }
}
