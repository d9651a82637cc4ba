//! The verbs that read a write-ahead log.

use std::ops::RangeBounds;

use super::format::WalFormat;
use super::{Cursor, Follow, Iter, Lsn, Options, Record, Reverse, Wal};
use crate::error::{ErrorKind, Result};
use crate::ground::range::ends;
use crate::log::{Bookmark, Log, PayloadReader, Split};
use crate::scan::OnCorrupt;

/// The bytes at which a range of records begins and ends.
fn bytes(lsns: impl RangeBounds<Lsn>) -> (Option<u64>, Option<u64>) {
    ends(lsns, |lsn| lsn.0)
}

impl Wal {
    /// First and last record, or `None` while there are none.
    ///
    /// # Errors
    ///
    /// Fails for a closed handle; see [Errors](crate#errors).
    pub fn bounds(&self) -> Result<Option<(Lsn, Lsn)>> {
        let extent = self.0.extent()?;
        Ok((extent.records > 0).then_some((Lsn(extent.start), Lsn(extent.last_offset))))
    }

    /// The LSN of the first record, or of the record to come: 0 until a prefix is dropped.
    ///
    /// # Errors
    ///
    /// Fails for a closed handle; see [Errors](crate#errors).
    pub fn head(&self) -> Result<Lsn> {
        Ok(Lsn(self.0.extent()?.start))
    }

    /// The LSN that the next record will get.
    ///
    /// # Errors
    ///
    /// Fails for a closed handle; see [Errors](crate#errors).
    pub fn end(&self) -> Result<Lsn> {
        Ok(Lsn(self.0.extent()?.end))
    }

    /// The record that begins at `lsn`. A look-alike inside the payload of a record is refused.
    ///
    /// # Errors
    ///
    /// Fails with [`OutOfRange`](crate::ErrorKind::OutOfRange) if there is no such record, and with
    /// [`Corrupt`](crate::ErrorKind::Corrupt) if it is damaged; see [Errors](crate#errors).
    pub fn read(&self, lsn: Lsn) -> Result<Record> {
        self.0.read_by_offset(lsn.0)
    }

    /// The records of a range, whose ends must lie between records: `lsn..`, `a..b` or `..`. A snapshot of
    /// the log as it is now.
    ///
    /// # Errors
    ///
    /// Fails with [`OutOfRange`](crate::ErrorKind::OutOfRange) for an end that is not between records; see
    /// [Errors](crate#errors).
    ///
    /// # Examples
    ///
    /// ```
    /// use deedbook::wal::Wal;
    ///
    /// # fn main() -> deedbook::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("log");
    /// let wal = Wal::create(&path)?;
    /// let (first, second) = (wal.append(b"one")?, wal.append(b"two")?);
    /// assert_eq!(wal.iter(second..)?.count(), 1);
    /// assert_eq!(wal.iter(first..second)?.count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn iter(&self, lsns: impl RangeBounds<Lsn>) -> Result<Iter> {
        Ok(Iter::new(self.cursor(lsns, OnCorrupt::Raise)?))
    }

    /// The records of a range, whose ends must lie between records, without an allocation each: a snapshot of
    /// the log as it is now. Damage is raised, or passed over as far as the log goes.
    ///
    /// # Errors
    ///
    /// Fails with [`OutOfRange`](crate::ErrorKind::OutOfRange) for an end that is not between records; see
    /// [Errors](crate#errors).
    pub fn cursor(&self, lsns: impl RangeBounds<Lsn>, on_corrupt: OnCorrupt) -> Result<Cursor> {
        let (from, to) = bytes(lsns);
        self.0.cursor_by_offset(from, to, on_corrupt)
    }

    /// The payload of the record at an LSN, in parts. The record is proved intact with the last one.
    ///
    /// # Errors
    ///
    /// Fails with [`OutOfRange`](crate::ErrorKind::OutOfRange) if there is no such record, and with
    /// [`Corrupt`](crate::ErrorKind::Corrupt) if it is damaged; see [Errors](crate#errors).
    pub fn payload_reader(&self, lsn: Lsn) -> Result<PayloadReader<WalFormat>> {
        self.0.payload_by_offset(lsn.0)
    }

    /// The records of a range, whose ends must lie between records, the last one first.
    ///
    /// # Errors
    ///
    /// Fails with [`OutOfRange`](crate::ErrorKind::OutOfRange) for an end that is not between records; see
    /// [Errors](crate#errors).
    pub fn cursor_back(&self, lsns: impl RangeBounds<Lsn>) -> Result<Reverse> {
        let (from, to) = bytes(lsns);
        self.0.reverse_by_offset(from, to)
    }

    /// Look for records that other processes appended, or dropped from the front; returns the end.
    /// A log whose end was truncated is an error: records that the handle read are gone. A writer knows its end.
    ///
    /// # Errors
    ///
    /// Fails with [`OutOfRange`](crate::ErrorKind::OutOfRange) where records that this handle knew were cut off, and
    /// with [`Corrupt`](crate::ErrorKind::Corrupt) for damage; see [Errors](crate#errors).
    pub fn refresh(&self) -> Result<Lsn> {
        Ok(Lsn(self.0.refresh_extent()?.end))
    }

    /// Follow the log from the record at `from` on (`None`: the first record).
    ///
    /// # Errors
    ///
    /// Fails with [`OutOfRange`](crate::ErrorKind::OutOfRange) for an end that is not between records; see
    /// [Errors](crate#errors).
    pub fn follow(&self, from: Option<Lsn>) -> Result<Follow> {
        self.0.follow_offset(from.map(|lsn| lsn.0))
    }

    /// Divide the records of a range into parts of about `split_bytes` bytes. Damaged bytes after
    /// the valid prefix get one more part.
    ///
    /// # Errors
    ///
    /// Fails with [`OutOfRange`](crate::ErrorKind::OutOfRange) for a place that the log does not have; see
    /// [Errors](crate#errors).
    pub fn splits(&self, split_bytes: u64, lsns: impl RangeBounds<Lsn>) -> Result<Vec<Split>> {
        let (start, stop) = bytes(lsns);
        let snapshot = self.0.usable()?.snapshot();
        let extent = snapshot.extent;
        if let Some(start) =
            start.filter(|&start| start > extent.end && snapshot.trailing.is_none())
        {
            let message = format!("no record at lsn {start}, the log ends at byte {}", extent.end);
            return Err(self.0.shared.error(ErrorKind::OutOfRange, message));
        }
        let reaches_end = stop.is_none_or(|stop| stop > extent.end);
        let to = stop.map_or(extent.end, |stop| stop.min(extent.end));
        let from = start.map_or(extent.start, |start| start.max(extent.start));
        self.0.splits_over(split_bytes, from, to, reaches_end)
    }

    /// The place of the record at an LSN, or of the record to come.
    ///
    /// # Errors
    ///
    /// Fails with [`OutOfRange`](crate::ErrorKind::OutOfRange) for a place that the log does not have; see
    /// [Errors](crate#errors).
    pub fn bookmark_at(&self, lsn: Lsn) -> Result<Bookmark> {
        self.0.bookmark_of_offset(lsn.0)
    }

    /// Walk the records of a part, without opening the log; without `check`, checksums are not compared.
    /// Another log at the path is [`ErrorKind::NotALog`].
    ///
    /// # Errors
    ///
    /// Fails with [`NotALog`](crate::ErrorKind::NotALog) where another log lies at the path; see
    /// [Errors](crate#errors).
    pub fn read_split(
        split: &Split,
        options: &Options,
        on_corrupt: OnCorrupt,
        check: bool,
    ) -> Result<Cursor> {
        Log::cursor_of_split(split, options, on_corrupt, check, None)
    }
}
