//! Cutting a log between deeds into parts that can be read apart, for parallel readers.

use std::path::PathBuf;
use std::sync::Arc;

use super::Book;
use super::cursor::{Cursor, OnCorrupt, Range};
use super::format::{FORMAT, HEADER_BYTES, Packed};
use super::open::resolve;
use super::options::Options;
use super::survey::Borders;
use crate::error::{Error, ErrorKind, Result};
use crate::sidecar::{Index, sidecar_dir};
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
        if let Some(damage) = damage.filter(|_| reaches_end) {
            let fail = |e| Error::io("look at the log", &shared.log_path, e).of(FORMAT);
            splits.push(Split {
                path: shared.dir.clone(),
                first_event: Some(behind).filter(|_| tip.records > 0),
                deeds: None,
                offset: damage.offset.max(HEADER_BYTES),
                end: shared.file.len().map_err(fail)?.max(damage.offset.saturating_add(1)),
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
        let (dir, log) = resolve(&self.path, options);
        let fail = |e| Error::io("open the log", &log, e).of(FORMAT);
        let file = options.storage.open(&log, Access::Read).map_err(fail)?;
        let file: Arc<dyn File> = Arc::from(file);
        let there = file.len().map_err(fail)?;
        if there < self.end && self.deeds.is_some() {
            let message = format!("the file has {there} bytes, the split ends at {}", self.end);
            let error = Error::new(ErrorKind::LostRecords, message).of(FORMAT).at(&log);
            return Err(error.offset_at(there));
        }
        let codec = Packed { check, ..Packed::new(options.deed_bytes_max) };
        let range = Range { offset: self.offset, end: self.end, event: self.first_event, stop };
        let borders = Borders { index: Index::empty(&sidecar_dir(&dir)), mark: None };
        let mut cursor = Cursor::new(file, log, codec, range, on_corrupt, borders);
        if self.first_event.is_some_and(|first| first < start) {
            cursor.skip_to(start)?;
        }
        Ok(cursor)
    }
}
