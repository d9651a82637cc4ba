//! The verbs that read a book.

use std::ops::RangeBounds;

use super::{Book, Cursor, Deed, Follow, Iter, Options, Reverse};
use crate::error::{ErrorKind, Result};
use crate::ground::range::ends;
use crate::log::{Bookmark, Log, Split, bytes_of};
use crate::scan::OnCorrupt;

/// The first event of a range, and the event after its last one.
pub(super) fn numbers(events: impl RangeBounds<u64>) -> (u64, Option<u64>) {
    let (start, stop) = ends(events, |event| *event);
    (start.unwrap_or(0), stop)
}

impl Book {
    /// The deed with that number.
    ///
    /// # Errors
    ///
    /// Fails with [`OutOfRange`](crate::ErrorKind::OutOfRange) if there is no such record, and with
    /// [`Corrupt`](crate::ErrorKind::Corrupt) if it is damaged; see [Errors](crate#errors).
    pub fn read(&self, event: u64) -> Result<Deed> {
        self.0.read_by_ordinal(event)
    }

    /// The deeds with numbers in a range: a snapshot of the log as it is now.
    ///
    /// # Errors
    ///
    /// Fails with [`Corrupt`](crate::ErrorKind::Corrupt) where damage hides the place where the walk begins; see
    /// [Errors](crate#errors).
    ///
    /// # Examples
    ///
    /// ```
    /// use deedbook::book::Book;
    ///
    /// # fn main() -> deedbook::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("log");
    /// let book = Book::create(&path)?;
    /// (0u8..5).try_for_each(|n| book.append(0, &[n]).map(drop))?;
    /// let jams: Result<Vec<_>, _> = book.iter(2..4)?.map(|deed| deed.map(|deed| deed.jam)).collect();
    /// assert_eq!(jams?, [[1], [2]]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn iter(&self, events: impl RangeBounds<u64>) -> Result<Iter> {
        Ok(Iter::new(self.cursor(events, OnCorrupt::Raise)?))
    }

    /// The deeds with numbers in a range, without an allocation each: a snapshot of the log as it is now.
    /// Damage is raised, or passed over as far as the file goes.
    ///
    /// # Errors
    ///
    /// Fails with [`Corrupt`](crate::ErrorKind::Corrupt) where damage hides the place where the walk begins; see
    /// [Errors](crate#errors).
    ///
    /// # Examples
    ///
    /// ```
    /// use deedbook::OnCorrupt;
    /// use deedbook::book::Book;
    ///
    /// # fn main() -> deedbook::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("log");
    /// let book = Book::create(&path)?;
    /// book.append(0, b"first")?;
    /// let mut cursor = book.cursor(.., OnCorrupt::Raise)?;
    /// while let Some(deed) = cursor.next()? {
    ///     assert_eq!(deed.jam, b"first");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn cursor(&self, events: impl RangeBounds<u64>, on_corrupt: OnCorrupt) -> Result<Cursor> {
        let (start, stop) = numbers(events);
        self.0.cursor_by_ordinal(start, stop, on_corrupt)
    }

    /// The deeds with numbers in a range, the last one first.
    ///
    /// # Errors
    ///
    /// Fails with [`Corrupt`](crate::ErrorKind::Corrupt) where damage hides the place where the walk begins; see
    /// [Errors](crate#errors).
    pub fn cursor_back(&self, events: impl RangeBounds<u64>) -> Result<Reverse> {
        let (start, stop) = numbers(events);
        self.0.reverse_by_ordinal(start, stop)
    }

    /// Read what another process appended; returns the last event. A tail that is still
    /// being written is left for the next time; damage is an error.
    ///
    /// # Errors
    ///
    /// Fails with [`OutOfRange`](crate::ErrorKind::OutOfRange) where records that this handle knew were cut off, and
    /// with [`Corrupt`](crate::ErrorKind::Corrupt) for damage; see [Errors](crate#errors).
    pub fn refresh(&self) -> Result<u64> {
        self.0.refresh_extent()?;
        self.last()
    }

    /// Follow the log from event `start` on (`None`: its first).
    ///
    /// # Errors
    ///
    /// Fails with [`Corrupt`](crate::ErrorKind::Corrupt) where damage hides the place where the walk begins; see
    /// [Errors](crate#errors).
    ///
    /// # Examples
    ///
    /// ```
    /// use deedbook::book::Book;
    /// use std::time::Duration;
    ///
    /// # fn main() -> deedbook::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("log");
    /// let book = Book::create(&path)?;
    /// let mut follow = book.follow(None)?;
    /// book.append(0, b"first")?;
    /// assert_eq!(follow.next(Duration::from_secs(1))?.map(|deed| deed.event), Some(Some(1)));
    /// # Ok(())
    /// # }
    /// ```
    pub fn follow(&self, start: Option<u64>) -> Result<Follow> {
        self.0.follow_ordinal(start.unwrap_or(0))
    }

    /// Divide the deeds with numbers in a range into parts of about `split_bytes` bytes. If the log is damaged after
    /// its valid prefix, the last part covers the bytes after the prefix.
    ///
    /// # Errors
    ///
    /// Fails with [`OutOfRange`](crate::ErrorKind::OutOfRange) for a place that the log does not have; see
    /// [Errors](crate#errors).
    ///
    /// # Examples
    ///
    /// ```
    /// use deedbook::OnCorrupt;
    /// use deedbook::book::{Book, Options};
    ///
    /// # fn main() -> deedbook::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("log");
    /// let book = Book::create(&path)?;
    /// book.append(0, b"first")?;
    /// for split in book.splits(64 << 20, ..)? {
    ///     // In another process, too.
    ///     let mut deeds = Book::read_split(&split, &Options::new(), .., OnCorrupt::Raise, true)?;
    ///     assert_eq!(deeds.next()?.map(|deed| deed.event), Some(Some(1)));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn splits(&self, split_bytes: u64, events: impl RangeBounds<u64>) -> Result<Vec<Split>> {
        let (start, stop) = numbers(events);
        let snapshot = self.0.usable()?.snapshot();
        let next = snapshot.extent.next();
        if !snapshot.numbered {
            let end = snapshot.extent.start;
            return self.0.splits_over(split_bytes, end, end, true);
        }
        let reaches_end = stop.is_none_or(|stop| stop > next);
        let (start, stop) =
            (start.max(snapshot.extent.first), stop.map_or(next, |stop| stop.min(next)));
        let (from, to) = bytes_of(&self.0.shared, &snapshot, start, stop)?;
        self.0.splits_over(split_bytes, from, to, reaches_end)
    }

    /// The place of the deed with this number, or of the next deed.
    ///
    /// # Errors
    ///
    /// Fails with [`OutOfRange`](crate::ErrorKind::OutOfRange) for a place that the log does not have; see
    /// [Errors](crate#errors).
    pub fn bookmark_at(&self, event: u64) -> Result<Bookmark> {
        let extent = self.0.numbered_extent()?;
        if extent.records == 0 || !(extent.first..=extent.next()).contains(&event) {
            let message = format!(
                "no deed {event}, the log begins with {} and goes on with {}",
                extent.first,
                extent.next()
            );
            return Err(self.0.shared.error(ErrorKind::OutOfRange, message));
        }
        self.0.bookmark_of_offset(self.0.shared.locate_ordinal(extent, event)?)
    }

    /// Walk the deeds of a part with numbers in a range, without opening the log; without `check`,
    /// checksums are not compared. Another log at the path is
    /// [`ErrorKind::NotALog`].
    ///
    /// # Errors
    ///
    /// Fails with [`NotALog`](crate::ErrorKind::NotALog) where another log lies at the path; see
    /// [Errors](crate#errors).
    pub fn read_split(
        split: &Split,
        options: &Options,
        events: impl RangeBounds<u64>,
        on_corrupt: OnCorrupt,
        check: bool,
    ) -> Result<Cursor> {
        let (start, stop) = numbers(events);
        let mut cursor = Log::cursor_of_split(split, options, on_corrupt, check, stop)?;
        if split.ordinal.is_some_and(|first| first < start) {
            cursor.skip_to(start)?;
        }
        Ok(cursor)
    }
}
