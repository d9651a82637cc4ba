//! The dropped records of a truncation, reported before or after the truncation.

use crate::error::{Error, ErrorKind, Result};
use crate::log::Extent;
use crate::mode::Mode;
use crate::scan::framing::Framing;
use crate::scan::{Scanned, Scanner};
use crate::wal::codec::{Codec, FORMAT, HEADER_BYTES, Lsn};
use crate::wal::format::WalFormat;
use crate::wal::{Shared, Wal};

/// A truncation to ask about with [`Wal::would_drop`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// [`Wal::truncate_before`].
    Before(Lsn),
    /// [`Wal::truncate_before_all`].
    BeforeAll(Lsn),
    /// [`Wal::truncate_after`].
    After(Lsn),
    /// [`Wal::truncate_from`].
    From(Lsn),
}

/// The dropped records of a truncation, or of a possible truncation, and the rest of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dropped {
    /// Number of dropped records.
    pub records: u64,
    /// Bytes of the records with headers.
    pub bytes: u64,
    /// The log's new head.
    pub head: Lsn,
    /// The log's new end.
    pub end: Lsn,
}

impl Dropped {
    /// The difference between a log and its rest.
    pub(super) fn between(before: Extent, left: Extent) -> Self {
        Self {
            records: before.records - left.records,
            bytes: (before.end - before.start) - (left.end - left.start),
            head: Lsn(left.start),
            end: Lsn(left.end),
        }
    }
}

impl Wal {
    /// The records that a truncation would drop. Changes nothing, so a handle for reading works, too. Fails as the
    /// truncation would. A reader does not check durability, because opening for writing makes all records durable.
    ///
    /// # Errors
    ///
    /// Fails with [`OutOfRange`](crate::ErrorKind::OutOfRange) for a place inside a record, and with
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for unsynced records or records needed by a consumer; see
    /// [Errors](crate#errors).
    pub fn would_drop(&self, cut: Cut) -> Result<Dropped> {
        let shared = self.0.usable()?;
        let extent = shared.extent();
        let left = shared.left_after(extent, cut)?;
        if shared.mode != Mode::Read {
            let (lsn, end) = match cut {
                Cut::Before(lsn) | Cut::BeforeAll(lsn) => (lsn, lsn.0),
                Cut::After(_) | Cut::From(_) => (Lsn(left.last_offset), left.end),
            };
            shared.check_durable(lsn, end)?;
        }
        Ok(Dropped::between(extent, left))
    }
}

impl Shared<WalFormat> {
    fn left_after(&self, extent: Extent, cut: Cut) -> Result<Extent> {
        match cut {
            Cut::Before(lsn) => {
                self.check_segmented()?;
                self.check_consumers(lsn)?;
                self.extent_from(extent, lsn)
            }
            Cut::BeforeAll(lsn) => {
                self.check_segmented()?;
                self.extent_from(extent, lsn)
            }
            Cut::After(lsn) => self.extent_until(extent, lsn, true),
            Cut::From(lsn) => self.extent_until(extent, lsn, false),
        }
    }

    /// The present log from the record at `lsn` on.
    pub(super) fn extent_from(&self, extent: Extent, lsn: Lsn) -> Result<Extent> {
        let before = self.records_before(extent, lsn)?;
        let (first, records) = (extent.first + before, extent.records - before);
        let first_sum = self.sum_at(lsn.0, extent.end)?;
        Ok(match records {
            0 => Extent::empty(first, lsn.0),
            _ => Extent { first, records, start: lsn.0, first_sum, ..extent },
        })
    }

    /// The present log with the record at `lsn` as the last record, or without the record.
    pub(super) fn extent_until(&self, extent: Extent, lsn: Lsn, keep: bool) -> Result<Extent> {
        let before = self.records_before(extent, lsn)?;
        if lsn.0 == extent.end {
            let message = format!("no record at lsn {lsn}, the log ends there");
            return Err(self.refused(ErrorKind::OutOfRange, message));
        }
        let mut scanner = Scanner::of_frames(self.framing, lsn.0, extent.end);
        let mut kept = Extent::empty(extent.first, extent.start);
        kept.first_sum = extent.first_sum;
        kept.records = before;
        kept.end = lsn.0;
        if keep {
            self.step(&mut scanner, &mut kept)?;
            return Ok(kept);
        }
        if kept.records == 0 {
            return Ok(Extent::empty(extent.first, extent.start));
        }
        // Find the record before by walking from an earlier border.
        let near = self.index().last_where(|entry| entry.offset < lsn.0);
        let from = match near.filter(|(_, entry)| entry.offset >= extent.start) {
            Some((_, entry)) => entry.offset,
            None => extent.start,
        };
        let mut scanner = Scanner::of_frames(self.framing.by_lengths(), from, lsn.0);
        kept.end = from;
        while kept.end < lsn.0 {
            self.step(&mut scanner, &mut kept)?;
        }
        kept.records = before;
        kept.first_sum = extent.first_sum;
        Ok(kept)
    }

    /// The number of records before `lsn`.
    fn records_before(&self, extent: Extent, lsn: Lsn) -> Result<u64> {
        let counted = |ordinal: u64| {
            let before = ordinal.checked_sub(extent.first)?;
            let after = extent.records.checked_sub(before)?;
            let fits = |records: u64, bytes: u64| {
                records <= bytes / HEADER_BYTES && (records == 0) == (bytes == 0)
            };
            (fits(before, lsn.0 - extent.start) && fits(after, extent.end - lsn.0))
                .then_some(before)
        };
        if let Some(before) = counted(self.locate_offset(extent, lsn.0)?) {
            return Ok(before);
        }
        // The index is advisory. Without the index, count the records from the head on.
        self.index().cut(0);
        counted(self.locate_offset(extent, lsn.0)?).ok_or_else(|| {
            let Extent { records, start, end, .. } = extent;
            let message = format!("lsn {lsn}: not {records} records from {start} to {end}");
            Error::new(ErrorKind::Corrupt, message).of(FORMAT).at(&self.place.log).offset_at(lsn.0)
        })
    }

    fn step(&self, scanner: &mut Scanner<Codec>, extent: &mut Extent) -> Result<()> {
        let at = scanner.position();
        let fail = |e| Error::io("read the log", &self.place.log, e).of(FORMAT).offset_at(at);
        match scanner.next(&*self.file).map_err(fail)? {
            Scanned::Record { offset, frame } => {
                extent.push(offset, frame);
                Ok(())
            }
            Scanned::Stop { why, .. } => {
                let message = format!("record at lsn {at}: {}", why.reason());
                let error = Error::new(ErrorKind::Corrupt, message).of(FORMAT);
                Err(error.at(&self.place.log).offset_at(at))
            }
            Scanned::End => Err(self.refused(ErrorKind::OutOfRange, format!("no record at {at}"))),
        }
    }

    fn sum_at(&self, offset: u64, end: u64) -> Result<u32> {
        if offset == end {
            return Ok(0);
        }
        let mut scanner = Scanner::of_frames(self.framing, offset, end);
        let mut one = Extent::empty(0, offset);
        self.step(&mut scanner, &mut one)?;
        Ok(one.last_sum)
    }
}
