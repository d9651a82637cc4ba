//! Reading: bounds, one record, ranges, and looking for what others appended.

use super::cursor::{Cursor, OnCorrupt};
use super::format::{Codec, FORMAT, Lsn};
use super::open::fill;
use super::survey::Borders;
use super::tip::Tip;
use super::{Mode, Shared, Wal};
use crate::error::{Error, ErrorKind, Result};
use crate::locks::atomic::Ordering;
use crate::scan::{Found, Scanner};

/// One record of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The byte at which it begins.
    pub lsn: Lsn,
    /// The payload.
    pub payload: Vec<u8>,
}

/// Records of a range as an iterator; ends behind the first error.
#[derive(Debug)]
pub struct Iter {
    cursor: Cursor,
    failed: bool,
}

impl Iterator for Iter {
    type Item = Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        match self.cursor.next() {
            Ok(record) => record
                .map(|record| Ok(Record { lsn: record.lsn, payload: record.payload.to_vec() })),
            Err(error) => {
                self.failed = true;
                Some(Err(error))
            }
        }
    }
}

impl Wal {
    /// First and last record, or `None` while there are none.
    pub fn bounds(&self) -> Result<Option<(Lsn, Lsn)>> {
        let tip = self.usable()?.state().tip;
        Ok((tip.records > 0).then_some((Lsn(tip.start), Lsn(tip.last_offset))))
    }

    /// Where the first record begins, or will: 0 until a prefix is dropped.
    pub fn head(&self) -> Result<Lsn> {
        Ok(Lsn(self.usable()?.state().tip.start))
    }

    /// Where the next record will begin.
    pub fn end(&self) -> Result<Lsn> {
        Ok(Lsn(self.usable()?.state().tip.end))
    }

    /// The end of what is on stable storage; `None` if a reader finds nothing that tells it.
    pub fn durable_end(&self) -> Result<Option<Lsn>> {
        let shared = self.usable()?;
        if shared.mode != Mode::Read {
            return Ok(Some(Lsn(shared.commits.durable())));
        }
        let seen = shared.durable_seen.load(Ordering::Acquire);
        Ok((seen != u64::MAX).then_some(Lsn(seen)))
    }

    /// Number of records.
    pub fn len(&self) -> Result<u64> {
        Ok(self.usable()?.state().tip.records)
    }

    /// Whether there are no records.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// The payload of the record that begins at `lsn`. What only looks like a record, inside the
    /// payload of one, is refused.
    pub fn read(&self, lsn: Lsn) -> Result<Vec<u8>> {
        self.as_it_is_now(|shared| {
            let mut cursor = shared.cursor(Some(lsn), None, OnCorrupt::Raise)?;
            match cursor.next()? {
                Some(record) => Ok(record.payload.to_vec()),
                None => {
                    let message = format!("no record at lsn {lsn}, the log ends there");
                    Err(shared.outside(message))
                }
            }
        })
    }

    /// The records from `from` on (`None`: the first), which must be the beginning of one or the
    /// log's end.
    pub fn iter(&self, from: Option<Lsn>) -> Result<Iter> {
        Ok(Iter { cursor: self.cursor(from, None, OnCorrupt::Raise)?, failed: false })
    }

    /// Walk the records in `from..to`, both of which must lie between records, as far as the log
    /// goes now.
    pub fn cursor(
        &self,
        from: Option<Lsn>,
        to: Option<Lsn>,
        on_corrupt: OnCorrupt,
    ) -> Result<Cursor> {
        if from.is_none() {
            // The first record is what the head says now.
            self.usable()?.follow_head()?;
        }
        let cursor = self.as_it_is_now(|shared| shared.cursor(from, to, on_corrupt))?;
        Ok(cursor.of(self.shared.clone()))
    }
}

impl Shared {
    /// What is asked for is not in the log.
    pub(super) fn outside(&self, message: impl Into<String>) -> Error {
        Error::new(ErrorKind::OutOfRange, message).of(FORMAT).at(&self.place.log)
    }

    fn cursor(&self, from: Option<Lsn>, to: Option<Lsn>, on_corrupt: OnCorrupt) -> Result<Cursor> {
        let (tip, damage) = {
            let state = self.state();
            (state.tip, state.damage.clone())
        };
        let start = from.map_or(tip.start, |lsn| lsn.0);
        // Skipping reads on behind the valid prefix, where no border is known.
        let behind = damage.is_some() && start > tip.end;
        if start != tip.start && !behind {
            self.locate(tip, Lsn(start))?;
        }
        let end = match (to, &damage) {
            (Some(to), _) if to.0 <= tip.end => {
                self.locate(tip, to)?;
                to.0
            }
            (_, Some(_)) => {
                let fail = |e| Error::io("look at the log", &self.place.log, e).of(FORMAT);
                let there = self.file.len().map_err(fail)?.max(tip.end);
                to.map_or(there, |to| to.0.min(there))
            }
            (_, None) => tip.end,
        };
        let trailing = damage.filter(|damage| damage.offset >= end && to.is_none());
        let cursor = Cursor::new(
            self.file.clone(),
            &self.place.log,
            self.codec,
            start,
            end,
            on_corrupt,
            self.borders(),
        );
        Ok(cursor.with_trailing(trailing))
    }

    /// Walk `start..end`, both known to lie between records.
    pub(super) fn cursor_over(&self, start: u64, end: u64, on_corrupt: OnCorrupt) -> Cursor {
        let (file, borders) = (self.file.clone(), self.borders());
        Cursor::new(file, &self.place.log, self.codec, start, end, on_corrupt, borders)
    }

    pub(super) fn borders(&self) -> Borders {
        let durable_end = match self.mode {
            Mode::Read => {
                let seen = self.durable_seen.load(Ordering::Acquire);
                Some(seen).filter(|&seen| seen < u64::MAX).max(self.recovery.durable_end)
            }
            // Everything up to the tip was found intact, or written by this handle.
            _ => Some(self.state().tip.end),
        };
        Borders { index: self.index.clone(), known_end: durable_end, durable_end }
    }

    /// The ordinal of the record at `lsn`, or of the one that the end will get. Lengths alone are
    /// believed on the way, from the nearest known border.
    pub(super) fn locate(&self, tip: Tip, lsn: Lsn) -> Result<u64> {
        let Lsn(target) = lsn;
        let refuse = |message| Err(self.outside(message));
        if target < tip.start {
            return refuse(format!("lsn {lsn} was dropped, the log begins at {}", tip.start));
        }
        if target > tip.end {
            return refuse(format!("lsn {lsn}, the log ends at {}", tip.end));
        }
        if target == tip.end {
            return Ok(tip.first + tip.records);
        }
        let near = self.index().last_where(|entry| entry.offset <= target);
        let (mut ordinal, from) = match near.filter(|(_, entry)| entry.offset >= tip.start) {
            Some((_, entry)) => (entry.ordinal, entry.offset),
            None => (tip.first, tip.start),
        };
        let codec = Codec { check: false, ..self.codec };
        let mut scanner = Scanner::new(codec, from, tip.end);
        while scanner.position() < target {
            let at = scanner.position();
            let found = scanner.next(&*self.file).map_err(|e| {
                Error::io("read the log", &self.place.log, e).of(FORMAT).offset_at(at)
            })?;
            match found {
                Found::Record { .. } => ordinal += 1,
                Found::Stop { offset, why } => {
                    let message = format!("record at lsn {offset}: {}", why.reason());
                    let error = Error::new(ErrorKind::Corrupt, message).of(FORMAT);
                    return Err(error.at(&self.place.log).offset_at(offset));
                }
                Found::End => break,
            }
            if scanner.position() > target {
                let message = format!("lsn {lsn} lies inside the record at lsn {at}");
                return Err(self.outside(message));
            }
        }
        Ok(ordinal)
    }

    /// Have the index in memory reach the end of the log, if it lags far behind.
    pub(super) fn catch_up(&self, tip: Tip) {
        fill(&mut self.index(), &*self.file, self.codec, tip);
    }
}
