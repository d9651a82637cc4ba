//! Retention: the prefix that a log may drop, by size, age and consumption.

use std::time::{Duration, SystemTime};

use super::cut::Dropped;
use crate::error::{Error, Result};
use crate::ground::locks::atomic::Ordering;
use crate::log::{Extent, Range};
use crate::retention::{Archive, Retention};
use crate::scan::OnCorrupt;
use crate::storage::segmented::Segmented;
use crate::transaction;
use crate::wal::codec::{FORMAT, Lsn, segment_name};
use crate::wal::format::WalFormat;
use crate::wal::{Shared, Wal};

impl Wal {
    /// Drop the prefix that `retention` allows, whole segments at a time, but no unsynced record and no record needed
    /// by a consumer. Returns the dropped records, possibly none.
    ///
    /// # Errors
    ///
    /// Fails for a handle for reading ([`ReadOnly`](crate::ErrorKind::ReadOnly)); see [Errors](crate#errors).
    ///
    /// # Examples
    ///
    /// ```
    /// use deedbook::Retention;
    /// use deedbook::wal::Wal;
    ///
    /// # fn main() -> deedbook::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("log");
    /// let wal = Wal::create(&path)?;
    /// wal.commit(b"set x = 1")?;
    /// // Whole segments only, and never the last one.
    /// assert_eq!(wal.retain(&Retention::new().bytes_max(1 << 30))?.records, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn retain(&self, retention: &Retention) -> Result<Dropped> {
        let shared = self.0.writable()?;
        shared.check_segmented()?;
        self.0.finish_transaction()?;
        let _consumers = shared.lock_consumers()?;
        shared.drop_allowed(retention)
    }

    /// The records that [`Wal::retain`] would drop. Changes nothing, so a handle for reading works, too. A reader
    /// regards all records found at the opening as durable.
    ///
    /// # Errors
    ///
    /// Fails for a closed handle; see [Errors](crate#errors).
    pub fn retainable(&self, retention: &Retention) -> Result<Dropped> {
        let shared = self.0.usable()?;
        shared.check_segmented()?;
        let head = shared.allowed_head(retention)?;
        let extent = shared.extent();
        let left = head.map_or(Ok(extent), |head| shared.extent_from(extent, head))?;
        Ok(Dropped::between(extent, left))
    }
}

impl Shared<WalFormat> {
    /// Drop the prefix that the option `retention` allows, if the log has reached another segment since the last time.
    /// If another thread or process is dropping records or setting a consumer, do not wait: the next sync will try
    /// again.
    pub(in crate::wal) fn keep_to_retention(&self) {
        let (Some(given), Some(segments)) = (self.options.retention, self.files.segments()) else {
            return;
        };
        let bytes = segments.segment_bytes();
        let (segment, last) = (self.durable() / bytes, &self.format.retained_in);
        // Store the segment's number plus 1: 0 means none yet.
        if last.fetch_max(segment + 1, Ordering::AcqRel) > segment {
            return;
        }
        match self.drop_given(&given) {
            Ok(true) => {}
            Ok(false) => last.store(segment, Ordering::Release),
            Err(error) => self.warn("cannot drop what the retention allows", &error),
        }
    }

    /// Returns `false` if the next sync must try again.
    fn drop_given(&self, given: &Retention) -> Result<bool> {
        let Some(_consumers) = self.try_lock_consumers()? else { return Ok(false) };
        transaction::finish(self)?;
        self.drop_allowed(given)?;
        Ok(true)
    }

    /// Drop the prefix that `retention` allows. The caller holds the consumers' lock.
    fn drop_allowed(&self, retention: &Retention) -> Result<Dropped> {
        if let Some(head) = self.allowed_head(retention)? {
            return self.archive_and_drop_before(head);
        }
        let extent = self.extent();
        Ok(Dropped::between(extent, extent))
    }

    /// The head after dropping the prefix that `retention` allows; `None` if the head stays.
    fn allowed_head(&self, retention: &Retention) -> Result<Option<Lsn>> {
        let Some(segments) = self.files.segments() else { return Ok(None) };
        let extent = self.extent();
        let slowest = self.consumers().load()?.into_values().min();
        let bytes = segments.segment_bytes();
        let mut allowed = 0;
        if let Some(most) = retention.bytes_max {
            allowed = allowed.max(extent.end.saturating_sub(most));
        }
        if let Some(age) = retention.age_max {
            // A record that begins in an old segment is as old as the segment.
            let floor = self.older_than(segments, age, bytes)?;
            allowed = allowed.max(self.first_record_from(extent, floor)?.0);
        }
        if let (true, Some(needed)) = (retention.consumed, slowest) {
            allowed = allowed.max(needed);
        }
        let allowed = allowed.min(slowest.unwrap_or(u64::MAX)).min(self.durable());
        // The new head is the first record of a segment, and everything before is dropped. Take the
        // segment of `allowed`, or an earlier segment if a record reaches over the segment's begin.
        for index in (0..=allowed / bytes).rev() {
            let floor = index * bytes;
            if floor <= extent.start {
                return Ok(None);
            }
            let head = self.first_record_from(extent, floor)?;
            if head.0 <= allowed {
                return Ok(Some(head));
            }
        }
        Ok(None)
    }

    /// The byte after the leading segments last written more than `age` ago, up to the first
    /// younger segment. A clock set back makes everything young.
    fn older_than(&self, segments: &Segmented, age: Duration, bytes: u64) -> Result<u64> {
        let now = SystemTime::now();
        let range = segments.range();
        let mut floor = range.start * bytes;
        for index in range.start..range.end.saturating_sub(1) {
            let path = segments.path(index);
            let written = self
                .common
                .storage
                .open(&path, crate::storage::Access::Read)
                .and_then(|file| file.modified())
                .map_err(|e| Error::io("look at the segment", &path, e).of(FORMAT))?;
            let old = written.and_then(|at| now.duration_since(at).ok()).is_some_and(|is| is > age);
            if !old {
                break;
            }
            floor = (index + 1) * bytes;
        }
        Ok(floor)
    }

    /// The first record that begins at or after a byte, or the end without such a record.
    fn first_record_from(&self, extent: Extent, byte: u64) -> Result<Lsn> {
        let near = self.index().last_where(|entry| entry.offset <= byte);
        let from = near.map_or(extent.start, |(_, entry)| entry.offset.max(extent.start));
        let range = Range { offset: from, end: extent.end, ordinal: None, stop: None };
        let file = self.file.clone();
        let cursor = self.cursor_over(file, range, OnCorrupt::Raise, self.snapshot());
        let mut cursor = cursor.without_checksums();
        while cursor.offset() < byte {
            if cursor.advance()?.is_none() {
                break;
            }
        }
        Ok(Lsn(cursor.offset()))
    }

    /// Hand the segments below `lsn` to the archive. The caller holds the consumers' lock, which
    /// keeps out other truncations; appends continue meanwhile.
    pub(super) fn archive_before(&self, lsn: Lsn) -> Result<()> {
        let (Some(Archive(hook)), Some(segments)) = (&self.options.archive, self.files.segments())
        else {
            return Ok(());
        };
        self.locate_offset(self.extent(), lsn.0)?;
        self.check_durable(lsn, lsn.0)?;
        let bytes = segments.segment_bytes();
        for index in segments.range().start..lsn.0 / bytes {
            hook(index, &segments.path(index)).map_err(|e| {
                let doing = format!("archive segment {}", segment_name(index));
                Error::io(&doing, &segments.path(index), e).of(FORMAT)
            })?;
        }
        Ok(())
    }
}
