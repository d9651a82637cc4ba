//! Reading: bounds, one deed, ranges both ways, and looking for what others appended.

use std::ops::RangeInclusive;
use std::sync::atomic::Ordering;

use super::back::BackCursor;
use super::blocks::catch_up;
use super::cursor::{Cursor, OnCorrupt, Range, corrupt};
use super::format::{FORMAT, FRAMING_BYTES, HEADER_BYTES, MUG_BYTES, Packed, parse_header, reach};
use super::survey::Borders;
use super::tip::Tip;
use super::{Book, Mode, Shared};
use crate::error::{Error, ErrorKind, Result};
use crate::scan::{Damage, Found, Scanner, end_of_data};
use crate::sidecar::{Found as MarkFound, Mark, MarkFile, sidecar_dir};
use crate::storage::read_full;

/// One event of a book.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deed {
    /// Its number; `None` only behind damage that hid how many deeds are lost.
    pub event: Option<u64>,
    /// The mug as stored.
    pub mug: u32,
    /// The payload.
    pub jam: Vec<u8>,
}

/// Deeds of a range as an iterator; ends behind the first error.
#[derive(Debug)]
pub struct Iter {
    cursor: Cursor,
    failed: bool,
}

impl Iterator for Iter {
    type Item = Result<Deed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        match self.cursor.next() {
            Ok(deed) => deed
                .map(|deed| Ok(Deed { event: deed.event, mug: deed.mug, jam: deed.jam.to_vec() })),
            Err(error) => {
                self.failed = true;
                Some(Err(error))
            }
        }
    }
}

impl Book {
    /// First and last event, or `None` while empty.
    pub fn bounds(&self) -> Result<Option<RangeInclusive<u64>>> {
        let state = self.usable()?.state();
        Ok((state.tip.records > 0).then(|| state.tip.first..=state.last()))
    }

    /// Last event; the epoch while empty.
    pub fn last(&self) -> Result<u64> {
        Ok(self.usable()?.state().last())
    }

    /// The last event before this log's first one.
    pub fn epoch(&self) -> Result<u64> {
        Ok(self.usable()?.state().epoch)
    }

    /// Number of deeds.
    pub fn len(&self) -> Result<u64> {
        Ok(self.usable()?.state().tip.records)
    }

    /// Whether there are no deeds.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Byte behind the last deed.
    pub fn end(&self) -> Result<u64> {
        Ok(self.usable()?.state().tip.end)
    }

    /// Last event known to be on stable storage; the epoch if none is. `None` for a reader that
    /// finds no mark.
    pub fn durable_last(&self) -> Result<Option<u64>> {
        let shared = self.usable()?;
        if !shared.durability_known.load(Ordering::Acquire) {
            return Ok(None);
        }
        let state = shared.state();
        let records = shared.durable_records.load(Ordering::Acquire).min(state.tip.records);
        Ok(Some(state.epoch + records))
    }

    /// The deed with that number.
    pub fn read(&self, event: u64) -> Result<Deed> {
        let shared = self.usable()?;
        let (tip, epoch) = {
            let state = shared.state();
            (state.tip, state.epoch)
        };
        if tip.records == 0 || event < tip.first || event - tip.first >= tip.records {
            let message = match tip.records {
                0 => format!("event {event}, the log is empty (epoch {epoch})"),
                records => format!(
                    "event {event}, the log has {} to {}",
                    tip.first,
                    tip.first + records - 1
                ),
            };
            return Err(Error::new(ErrorKind::OutOfRange, message).of(FORMAT).at(&shared.log_path));
        }
        let mut cursor = self.cursor(event, Some(event + 1), OnCorrupt::Raise)?;
        match cursor.next()? {
            Some(deed) => Ok(Deed { event: deed.event, mug: deed.mug, jam: deed.jam.to_vec() }),
            None => {
                let message = format!("deed {event} is not where the index says");
                Err(Error::new(ErrorKind::Corrupt, message).of(FORMAT).at(&shared.log_path))
            }
        }
    }

    /// The deeds `start <= event < stop`, a snapshot of what is there now.
    pub fn iter(&self, start: u64, stop: Option<u64>) -> Result<Iter> {
        Ok(Iter { cursor: self.cursor(start, stop, OnCorrupt::Raise)?, failed: false })
    }

    /// The deeds `start <= event < stop` without an allocation each, a snapshot of what is there
    /// now; damage is raised, or passed over as far as the file goes.
    pub fn cursor(&self, start: u64, stop: Option<u64>, on_corrupt: OnCorrupt) -> Result<Cursor> {
        let shared = self.usable()?;
        let (tip, damage) = {
            let state = shared.state();
            (state.tip, state.damage.clone())
        };
        let first = if tip.records > 0 { tip.first } else { start };
        let start = start.max(first);
        let reaches_end = stop.is_none_or(|stop| stop > first.saturating_add(tip.records));
        let past_damage = on_corrupt == OnCorrupt::Skip && damage.is_some() && reaches_end;
        let mut end = tip.end;
        if past_damage {
            let fail = |e| Error::io("read the log", &shared.log_path, e).of(FORMAT);
            let file_end = shared.file.len().map_err(fail)?;
            let data_end = end_of_data(&*shared.file, tip.end, file_end).map_err(fail)?;
            end = reach(data_end, file_end);
        }
        let skips = on_corrupt == OnCorrupt::Skip;
        let (event, offset) = match start - first >= tip.records {
            true => (first.saturating_add(tip.records), tip.end),
            false => match shared.locate(tip, start) {
                Ok(offset) => (start, offset),
                // Damage before the range: walk over it from the last border known.
                Err(e) if skips && e.kind() == ErrorKind::Corrupt => {
                    let entry = shared.index().last_where(|entry| entry.ordinal <= start);
                    entry.map_or((first, HEADER_BYTES), |(_, entry)| (entry.ordinal, entry.offset))
                }
                Err(e) => return Err(e),
            },
        };
        // Damage without an extent in the file (a lost end) cannot be passed over, only raised.
        let trailing =
            damage.filter(|damage| reaches_end && (!past_damage || damage.offset >= end));
        let range = Range { offset, end, event: Some(event), stop };
        let (file, path) = (shared.file.clone(), shared.log_path.clone());
        let cursor = Cursor::new(file, path, shared.codec, range, on_corrupt, shared.borders());
        let mut cursor = cursor.with_trailing(trailing);
        if skips {
            cursor.skip_to(start)?;
        }
        Ok(cursor)
    }

    /// The deeds `start <= event < stop` backwards.
    pub fn cursor_back(&self, start: u64, stop: Option<u64>) -> Result<BackCursor> {
        let shared = self.usable()?;
        let tip = shared.state().tip;
        let behind = tip.first.saturating_add(tip.records);
        let stop = stop.unwrap_or(u64::MAX).min(behind);
        let start = start.max(tip.first);
        let (start, stop, end) = match tip.records > 0 && start < stop {
            false => (0, 0, tip.end),
            true if stop == behind => (start, stop, tip.end),
            true => (start, stop, shared.locate(tip, stop)?),
        };
        let (file, path) = (shared.file.clone(), shared.log_path.clone());
        Ok(BackCursor::new(file, path, shared.codec, end, stop, start))
    }

    /// Look for deeds that another process appended; returns the last event. A tail that is still
    /// being written is left for the next time; damage is an error.
    pub fn refresh(&self) -> Result<u64> {
        let shared = self.usable()?;
        if shared.mode == Mode::Read {
            shared.refresh()?;
        }
        self.last()
    }
}

impl Shared {
    pub(super) fn borders(&self) -> Borders {
        let state = self.state();
        let tip = state.tip;
        let mark = Mark { first: tip.first, records: tip.records, end: tip.end, ..Mark::default() };
        drop(state);
        Borders { index: self.index.clone(), mark: Some(mark), durable_end: None }
    }

    /// Byte of an event that exists.
    pub(super) fn locate(&self, tip: Tip, event: u64) -> Result<u64> {
        if event == tip.first + tip.records - 1 {
            return Ok(tip.last_offset);
        }
        self.catch_up(tip);
        let entry = self.index().last_where(|entry| entry.ordinal <= event);
        let (mut at, from) = match entry {
            Some((_, entry)) => (entry.ordinal, entry.offset),
            None => (tip.first, HEADER_BYTES),
        };
        let codec = Packed { check: false, ..self.codec };
        let mut scanner = Scanner::new(codec, from, tip.end);
        while at < event {
            let found = scanner.next(&*self.file);
            match found.map_err(|e| Error::io("read the log", &self.log_path, e).of(FORMAT))? {
                Found::Record { .. } => at += 1,
                Found::Stop { offset, why } => {
                    let damage = Damage {
                        offset,
                        end: tip.end,
                        reason: format!("deed {at}: {}", why.reason()),
                        next_intact: None,
                        first_lost: Some(at),
                        records_lost: None,
                    };
                    return Err(corrupt(&self.log_path, &damage, ErrorKind::Corrupt));
                }
                Found::End => {
                    let message = format!("the log ends before deed {at}");
                    return Err(Error::new(ErrorKind::Corrupt, message)
                        .of(FORMAT)
                        .at(&self.log_path));
                }
            }
        }
        Ok(scanner.position())
    }

    fn refresh(&self) -> Result<()> {
        let fail = |e| Error::io("read the log", &self.log_path, e).of(FORMAT);
        let mut state = self.state();
        if state.damage.is_some() {
            return Ok(());
        }
        // The mark before the file: what it vouches for must then be found.
        let mark = match MarkFile::load(&*self.options.storage, &sidecar_dir(&self.dir)) {
            Ok(MarkFound::Mark(mark)) if mark.records > 0 => Some(mark),
            _ => None,
        };
        let file_end = self.file.len().map_err(fail)?;
        if file_end < state.tip.end {
            let message = format!(
                "the file was cut to {file_end} bytes, it had deeds up to {}",
                state.tip.end
            );
            return Err(Error::new(ErrorKind::Corrupt, message).of(FORMAT).at(&self.log_path));
        }
        if state.tip.records == 0 {
            let mut header = [0; HEADER_BYTES as usize];
            let read = read_full(&*self.file, &mut header, 0).map_err(fail)?;
            let first = parse_header(header.get(..read).unwrap_or_default());
            state.header_first = first.map_err(|e| e.at(&self.log_path))?;
            if state.header_first == 0 {
                return Ok(());
            }
            state.tip.first = state.header_first;
            state.epoch = state.header_first - 1;
        }
        let mut scanner = Scanner::new(self.codec, state.tip.end, file_end);
        while let Found::Record { offset, frame } = scanner.next(&*self.file).map_err(fail)? {
            state.tip.push(offset, frame.jam_len + MUG_BYTES + FRAMING_BYTES, frame.crc);
        }
        let tip = state.tip;
        let ours = |mark: &Mark| mark.first == tip.first && mark.first_sum == tip.first_sum;
        if let Some(mark) = mark.filter(ours) {
            self.durable_records.store(mark.records.min(tip.records), Ordering::Release);
            self.durability_known.store(true, Ordering::Release);
            if mark.end > tip.end {
                let message = format!(
                    "deed {}: damaged or missing, acknowledged up to byte {}",
                    tip.first + tip.records,
                    mark.end
                );
                let error = Error::new(ErrorKind::LostRecords, message).of(FORMAT);
                return Err(error.at(&self.log_path).offset_at(tip.end));
            }
        }
        Ok(())
    }

    /// Have the index in memory reach the end of the log, if it lags far behind.
    pub(super) fn catch_up(&self, tip: Tip) {
        catch_up(&mut self.index(), &*self.file, self.codec, tip);
    }
}
