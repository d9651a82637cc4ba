//! Reading across epochs: one deed, and walks in both directions.

use std::ops::{Bound, RangeBounds};

use super::part::OpenEpoch;
use super::{Pier, ends_of};
use crate::book::format::BookFormat;
use crate::book::read::numbers;
use crate::book::{Book, Deed, JamReader, Reverse};
use crate::error::{ErrorKind, Result};
use crate::log::{Chained, Split};
use crate::scan::OnCorrupt;

pub(crate) type Cursor = Chained<BookFormat>;
pub(crate) type Iter = crate::log::Iter<BookFormat>;

impl Pier {
    /// Read one deed.
    ///
    /// # Errors
    ///
    /// Fails with [`OutOfRange`](crate::ErrorKind::OutOfRange) for a missing record, and with
    /// [`Corrupt`](crate::ErrorKind::Corrupt) for a damaged record; see [Errors](crate#errors).
    pub fn read(&self, event: u64) -> Result<Deed> {
        self.in_epoch_of(event, |book| book.read(event))
    }

    /// The jam of a deed, in parts; as [`Book::jam_reader`].
    ///
    /// # Errors
    ///
    /// Fails with [`OutOfRange`](crate::ErrorKind::OutOfRange) for a missing record, and with
    /// [`Corrupt`](crate::ErrorKind::Corrupt) for a damaged record; see [Errors](crate#errors).
    pub fn jam_reader(&self, event: u64) -> Result<JamReader> {
        self.in_epoch_of(event, |book| book.jam_reader(event))
    }

    /// Ask the epoch that has an event.
    pub(super) fn in_epoch_of<T>(&self, event: u64, ask: impl Fn(&Book) -> Result<T>) -> Result<T> {
        self.with(|parts| {
            let (epoch, last) = ends_of(parts)?;
            match parts.iter().rev().find(|part| part.number < event && event <= last) {
                Some(part) => ask(&part.book),
                None => {
                    // The event may have been lost in damage at the end of the last epoch.
                    if event > last
                        && let Some(Err(lost)) = parts.last().map(|part| ask(&part.book))
                        && lost.kind() == ErrorKind::Corrupt
                    {
                        return Err(lost);
                    }
                    let message = match last > epoch {
                        true => format!("no deed {event}, the pier has {} to {last}", epoch + 1),
                        false => format!("no deed {event}, the pier is empty"),
                    };
                    Err(self.shared.error(ErrorKind::OutOfRange, message))
                }
            }
        })
    }

    /// The deeds with numbers in a range, in a snapshot of the pier.
    ///
    /// # Errors
    ///
    /// Fails with [`Corrupt`](crate::ErrorKind::Corrupt) where damage hides the place where the walk begins; see
    /// [Errors](crate#errors).
    pub fn iter(&self, events: impl RangeBounds<u64>) -> Result<Iter> {
        Ok(Iter::new(self.cursor(events, OnCorrupt::Raise)?))
    }

    /// The deeds with numbers in a range, without an allocation each, in a snapshot of the pier. Damage is raised, or
    /// passed over up to the end of the epoch.
    ///
    /// # Errors
    ///
    /// Fails with [`Corrupt`](crate::ErrorKind::Corrupt) where damage hides the place where the walk begins; see
    /// [Errors](crate#errors).
    pub fn cursor(&self, events: impl RangeBounds<u64>, on_corrupt: OnCorrupt) -> Result<Cursor> {
        let (start, stop) = numbers(events);
        let walk = |book: &Book| book.0.cursor_by_ordinal(start, stop, on_corrupt);
        Ok(Cursor::new(self.walks(start, stop, walk)?.into_iter().map(Ok)))
    }

    /// The deeds with numbers in a range, the last first.
    ///
    /// # Errors
    ///
    /// Fails with [`Corrupt`](crate::ErrorKind::Corrupt) where damage hides the place where the walk begins; see
    /// [Errors](crate#errors).
    pub fn cursor_back(&self, events: impl RangeBounds<u64>) -> Result<Reverse> {
        let (start, stop) = numbers(events);
        let walk = |book: &Book| book.0.reverse_by_ordinal(start, stop);
        let walks = self.walks(start, stop, walk)?.into_iter();
        let mut walks: Vec<Reverse> = walks.map(|(_, walk)| walk).collect();
        match walks.pop() {
            Some(last) => Ok(last.with_before(walks)),
            // No epoch has events of the range.
            None => self.on_last(|book| book.0.reverse_by_ordinal(0, Some(0))),
        }
    }

    /// Divide the deeds with numbers in a range into parts of about `split_bytes` bytes, epoch after epoch. Each part
    /// lies in a single epoch: [`Book::read_split`] reads it. If an epoch is damaged after its valid prefix, its last
    /// part covers the bytes after the prefix.
    ///
    /// # Errors
    ///
    /// Fails for a closed handle; see [Errors](crate#errors).
    ///
    /// # Examples
    ///
    /// ```
    /// use deedbook::OnCorrupt;
    /// use deedbook::book::pier::Pier;
    /// use deedbook::book::{Book, Options};
    ///
    /// # fn main() -> deedbook::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("zod");
    /// let pier = Pier::append_to(&path)?;
    /// pier.append(0, b"first")?;
    /// pier.roll()?;
    /// pier.append(0, b"second")?;
    /// for (event, split) in (1..).zip(pier.splits(64 << 20, ..)?) {
    ///     // In another process, too.
    ///     let mut deeds = Book::read_split(&split, &Options::new(), .., OnCorrupt::Raise, true)?;
    ///     assert_eq!(deeds.next()?.map(|deed| deed.event), Some(Some(event)));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn splits(&self, split_bytes: u64, events: impl RangeBounds<u64>) -> Result<Vec<Split>> {
        let (start, stop) = numbers(events);
        let range = (Bound::Included(start), stop.map_or(Bound::Unbounded, Bound::Excluded));
        let splits = self.walks(start, stop, |book| book.splits(split_bytes, range))?;
        Ok(splits.into_iter().flat_map(|(_, splits)| splits).collect())
    }

    /// A walk for each epoch that has events of the range, with the epoch's number.
    fn walks<W>(
        &self,
        start: u64,
        stop: Option<u64>,
        walk: impl Fn(&Book) -> Result<W>,
    ) -> Result<Vec<(u64, W)>> {
        self.with(|parts| {
            let ends = parts.iter().skip(1).map(|part| Some(part.number)).chain([None]);
            let meets = |(part, end): &(&OpenEpoch, Option<u64>)| {
                end.is_none_or(|last| start <= last)
                    && stop.is_none_or(|stop| stop > part.number.saturating_add(1))
            };
            let met = parts.iter().zip(ends).filter(meets);
            met.map(|(part, _)| Ok((part.number, walk(&part.book)?))).collect()
        })
    }
}

/// All deeds that are there now.
impl IntoIterator for &Pier {
    type Item = Result<Deed>;
    type IntoIter = Iter;

    fn into_iter(self) -> Iter {
        Iter::new(self.cursor(.., OnCorrupt::Raise))
    }
}
