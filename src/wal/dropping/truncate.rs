//! Dropping a prefix and cutting the end: the checks of a truncation's LSN. The engine cuts
//! (`src/log/write/cut.rs`).

use super::cut::Dropped;
use crate::error::{Durable, ErrorKind, Result};
use crate::ground::lines;
use crate::log::Extent;
use crate::wal::codec::{Lsn, segment_name};
use crate::wal::files::stored_sum;
use crate::wal::format::WalFormat;
use crate::wal::{Shared, Wal};

impl Wal {
    /// Drop every record before `lsn`; with the log's end, drop all records. Removes the segments left without records.
    /// Needs a segmented log, and the LSN of a record's beginning. [`Wal::would_drop`] reports the records beforehand.
    ///
    /// The dropped records must be on stable storage already ([`Wal::sync`]), and no named consumer may need a dropped
    /// record: else [`ErrorKind::InvalidArgument`]. Dropping records also syncs the later records.
    ///
    /// # Errors
    ///
    /// Fails with [`OutOfRange`](crate::ErrorKind::OutOfRange) for an LSN off any record boundary, and with
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for unsynced records or records needed by a consumer; see
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
    /// wal.append(b"applied")?;
    /// let next = wal.commit(b"not yet")?;
    /// assert_eq!(wal.truncate_before(next)?.records, 1);
    /// assert_eq!(wal.head()?, next);
    /// # Ok(())
    /// # }
    /// ```
    pub fn truncate_before(&self, lsn: Lsn) -> Result<Dropped> {
        self.drop_prefix(lsn, true)
    }

    /// As [`Wal::truncate_before`], but ignores the needs of consumers.
    ///
    /// # Errors
    ///
    /// Fails with [`OutOfRange`](crate::ErrorKind::OutOfRange) for an LSN off any record boundary, and with
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for unsynced records or records needed by a consumer; see
    /// [Errors](crate#errors).
    pub fn truncate_before_all(&self, lsn: Lsn) -> Result<Dropped> {
        self.drop_prefix(lsn, false)
    }

    fn drop_prefix(&self, lsn: Lsn, heed_consumers: bool) -> Result<Dropped> {
        let shared = self.0.writable()?;
        shared.check_segmented()?;
        self.0.finish_transaction()?;
        // No other thread may ask for an older record meanwhile.
        let _consumers = shared.lock_consumers()?;
        if heed_consumers {
            // A refusal changed nothing.
            shared.check_consumers(lsn).map_err(|e| e.with_durable(Durable::No))?;
        }
        let dropped = shared.archive_and_drop_before(lsn)?;
        if !heed_consumers {
            // The caller dropped records even if consumers needed the records.
            shared.consumers().raise(lsn.0)?;
        }
        Ok(dropped)
    }

    /// Keep the record that begins at `lsn` as the last record, and drop every later record.
    ///
    /// # Errors
    ///
    /// Fails with [`OutOfRange`](crate::ErrorKind::OutOfRange) for an LSN off any record boundary, and with
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for unsynced records or records needed by a consumer; see
    /// [Errors](crate#errors).
    pub fn truncate_after(&self, lsn: Lsn) -> Result<Dropped> {
        self.drop_end(lsn, true)
    }

    /// Drop the record that begins at `lsn`, and every later record.
    ///
    /// # Errors
    ///
    /// Fails with [`OutOfRange`](crate::ErrorKind::OutOfRange) for an LSN off any record boundary, and with
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for unsynced records or records needed by a consumer; see
    /// [Errors](crate#errors).
    pub fn truncate_from(&self, lsn: Lsn) -> Result<Dropped> {
        self.drop_end(lsn, false)
    }

    fn drop_end(&self, lsn: Lsn, keep: bool) -> Result<Dropped> {
        let shared = self.0.writable()?;
        self.0.finish_transaction()?;
        let _consumers = shared.lock_consumers()?;
        let left = |extent| {
            let kept = shared.extent_until(extent, lsn, keep)?;
            shared.check_durable(Lsn(kept.last_offset), kept.end)?;
            Ok(kept)
        };
        shared.logging_dropped(|| shared.drop_end(left, stored_sum))
    }
}

impl Shared<WalFormat> {
    /// Log the segments that a cut removed, even if the cut failed.
    fn logging_dropped(&self, cut: impl FnOnce() -> Result<[Extent; 2]>) -> Result<Dropped> {
        let segments = || self.files.segments().map(|segments| segments.range());
        let before = segments();
        let done = cut();
        if let (Some(before), Some(after)) = (before, segments()) {
            self.log_dropped(before.start..after.start.min(before.end));
            self.log_dropped(after.end.max(before.start)..before.end);
        }
        done.map(|[before, left]| Dropped::between(before, left))
    }

    /// Only segmented logs can drop a prefix.
    pub(in crate::wal) fn check_segmented(&self) -> Result<()> {
        match self.files.segments() {
            Some(_) => Ok(()),
            None => {
                let message = "a single file has no prefix to drop; segmented logs have";
                Err(self.refused(ErrorKind::Unsupported, message))
            }
        }
    }

    /// Drop the records before `lsn`. The caller holds the consumers' lock.
    pub(super) fn archive_and_drop_before(&self, lsn: Lsn) -> Result<Dropped> {
        self.archive_before(lsn).map_err(|e| e.with_durable(Durable::No))?;
        let extent = self.extent();
        if lsn.0 > extent.start && self.check_durable(lsn, lsn.0).is_ok() {
            self.extent_from(extent, lsn).map_err(|e| e.with_durable(Durable::No))?;
            // Sync here, while others can append: appends wait for the sync below.
            self.sync_and_keep_to(extent.end)?;
        }
        let first = || self.files.segments().map_or(0, |segments| segments.range().start);
        let before = first();
        let left = |extent| {
            let kept = self.extent_from(extent, lsn)?;
            self.check_durable(lsn, lsn.0)?;
            Ok(kept)
        };
        let dropped = self.logging_dropped(|| self.drop_begin(left))?;
        self.counters.dropped(first().saturating_sub(before), dropped.records, dropped.bytes);
        Ok(dropped)
    }

    fn log_dropped(&self, segments: std::ops::Range<u64>) {
        if !segments.is_empty() {
            let (first, count) = (segment_name(segments.start), segments.end - segments.start);
            lines::info(format_args!(
                "segments dropped: {count}, from {first} on ({})",
                self.place.log.display()
            ));
        }
    }

    pub(super) fn check_durable(&self, lsn: Lsn, end: u64) -> Result<()> {
        let durable = self.durable();
        if end <= durable {
            return Ok(());
        }
        let message = format!("lsn {lsn} is not durable, the log is up to {durable}; sync first");
        Err(self.refused(ErrorKind::InvalidArgument, message))
    }
}
