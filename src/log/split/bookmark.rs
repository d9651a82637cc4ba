//! Bookmarks: places between records for a reader that continues later, perhaps in another process.
//!
//! A bookmark has a byte, and the byte and checksum of two records: the log's first record and the
//! record before the place. A log that only grew keeps both records; after a cut, a replacement, or
//! new records up to the same length, they differ.

use std::fmt;

use crate::error::{ErrorKind, Result};
use crate::log::evidence::Border;
use crate::log::extent::Extent;
use crate::log::format::Format;
use crate::log::read::Snapshot;
use crate::log::read::cursor::Range;
use crate::log::split::Split;
use crate::log::split::identity::Anchor;
use crate::log::{Log, Shared};
use crate::scan::framing::Frame;
use crate::scan::{OnCorrupt, Scanned, Scanner};

/// A place between two records of a log, and the log's distinguishing marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bookmark {
    /// Byte of the record to come.
    pub offset: u64,
    /// Number of the record to come, where records have numbers and it is known.
    pub ordinal: Option<u64>,
    /// The log's first record at that time; `None` for a log without records.
    pub first: Option<Anchor>,
    /// The record before the place; `None` at the begin of a log and after damage.
    pub before: Option<Anchor>,
}

/// How far [`Book::advance`](crate::book::Book::advance), or another log's `advance`, goes.
#[derive(Clone, Copy, Debug)]
pub struct Reach {
    /// The last place.
    pub to: Option<Bookmark>,
    /// The most records, but one at least.
    pub records: Option<u64>,
    /// The most bytes with framing, but one record at least.
    pub bytes: Option<u64>,
    /// Only to where the log is known to be on stable storage, if it is known.
    pub durable: bool,
}

impl Default for Reach {
    fn default() -> Self {
        Self { to: None, records: None, bytes: None, durable: true }
    }
}

impl<F: Format> Log<F> {
    /// The present begin of the log.
    pub fn bookmark(&self) -> Result<Bookmark> {
        let shared = self.usable()?;
        shared.follow_head()?;
        let snapshot = shared.snapshot();
        shared.bookmark_at(&snapshot, snapshot.extent.start)
    }

    /// The place of the record that begins at a byte.
    pub fn bookmark_of_offset(&self, offset: u64) -> Result<Bookmark> {
        let shared = self.usable()?;
        let snapshot = shared.snapshot();
        shared.locate_offset(snapshot.extent, offset)?;
        shared.bookmark_at(&snapshot, offset)
    }

    /// How far a reader can continue from a place.
    pub fn advance(&self, from: &Bookmark, reach: &Reach) -> Result<Bookmark> {
        let shared = self.usable()?;
        let snapshot = shared.snapshot();
        shared.check_bookmark(&snapshot, from)?;
        let (extent, sure) = (snapshot.extent, sure_end(&snapshot));
        if from.offset >= sure && is_damaged(&snapshot) {
            let end = shared.end_after_damage(snapshot, from)?;
            return Ok(earlier(end, reach.to));
        }
        let durable = self.durable_offset()?.filter(|_| reach.durable && !is_damaged(&snapshot));
        let end = durable.map_or(sure, |durable| durable.clamp(extent.start, sure));
        let end = reach.to.map_or(end, |to| to.offset.min(end));
        if from.offset >= end {
            return Ok(*from);
        }
        let stop = shared.bounded(extent, from.offset, end, reach)?.unwrap_or_else(|| {
            // Records cannot be counted where one is damaged: up to the next border known.
            let border = shared.index().first_from(from.offset + 1);
            border.map_or(end, |entry| entry.offset.min(end))
        });
        shared.bookmark_at(&snapshot, stop).map(|stop| earlier(stop, reach.to))
    }

    /// Divide what lies between two bookmarks into parts of about `split_bytes` bytes.
    pub fn splits_between(
        &self,
        split_bytes: u64,
        from: &Bookmark,
        to: &Bookmark,
    ) -> Result<Vec<Split>> {
        let shared = self.usable()?;
        let snapshot = shared.snapshot();
        shared.check_bookmark(&snapshot, from)?;
        shared.check_bookmark(&snapshot, to)?;
        let sure = sure_end(&snapshot);
        let mut splits = Vec::new();
        let within = to.offset.min(sure);
        if from.offset < within {
            shared.catch_up(snapshot.extent);
            let ordinal = to.ordinal.filter(|_| within == to.offset);
            let stop = shared.border_at(&snapshot, within, ordinal)?;
            let start = shared.border_at(&snapshot, from.offset, from.ordinal)?;
            shared.divide(&snapshot, split_bytes, start, stop, &mut splits);
        }
        if to.offset > sure.max(from.offset) {
            let offset = from.offset.max(sure);
            let ordinal = from.ordinal.filter(|_| offset == from.offset);
            splits.push(shared.part(&snapshot, (offset, to.offset), ordinal, None));
        }
        Ok(splits)
    }
}

/// Up to where the records are known to lie one after the other.
fn sure_end(snapshot: &Snapshot) -> u64 {
    if snapshot.numbered { snapshot.extent.end } else { snapshot.extent.start }
}

fn is_damaged(snapshot: &Snapshot) -> bool {
    snapshot.trailing.is_some() || !snapshot.numbered
}

fn first_of(extent: &Extent) -> Option<Anchor> {
    (extent.records > 0).then_some(Anchor { offset: extent.start, sum: extent.first_sum })
}

fn earlier(stop: Bookmark, to: Option<Bookmark>) -> Bookmark {
    to.filter(|to| to.offset <= stop.offset).unwrap_or(stop)
}

impl<F: Format> Shared<F> {
    /// Fail unless a bookmark still is a place of this log.
    fn check_bookmark(&self, snapshot: &Snapshot, bookmark: &Bookmark) -> Result<()> {
        let extent = snapshot.extent;
        let refuse = |kind, message: String| Err(self.error(kind, message));
        let another = |that: &dyn fmt::Display, here: &dyn fmt::Display| {
            let read = bookmark.offset;
            let message = format!(
                "another log than the one that was read up to byte {read}: that one had the record \
                 {that} (byte and checksum), here is {here}"
            );
            refuse(ErrorKind::NotALog, message)
        };
        let first = first_of(&extent);
        if let (Some(that), Some(here)) = (bookmark.first, first)
            && that.offset == here.offset
            && that.sum != here.sum
        {
            return another(&that, &here);
        }
        let name = F::name_of(bookmark.ordinal, bookmark.offset);
        if bookmark.offset < extent.start {
            let begin = extent.start;
            let message = format!("{name} was dropped, the log begins at byte {begin}");
            return refuse(ErrorKind::OutOfRange, message);
        }
        let there = match is_damaged(snapshot) {
            true => self.end_of_all(snapshot)?,
            false => extent.end,
        };
        if bookmark.offset > there {
            let message = format!(
                "the log was read up to byte {} and ends at byte {there} now: its end was cut",
                bookmark.offset
            );
            return refuse(ErrorKind::OutOfRange, message);
        }
        let here = match bookmark.offset <= sure_end(snapshot) {
            true => match self.walk_to(extent, bookmark.offset)? {
                Walked::Border { before, .. } => before,
                Walked::Inside => {
                    return another(&format_args!("to byte {}", bookmark.offset), &"none");
                }
                // Damage proves nothing.
                Walked::Damaged => return Ok(()),
            },
            false => match bookmark.before {
                Some(before) => {
                    let now = before.now(&*self.file, self.framing, there);
                    Some(now.map_err(|e| self.fail("read the log", e))?)
                }
                None => None,
            },
        };
        match (bookmark.before, here) {
            (Some(that), Some(here)) if that != here => another(&that, &here),
            _ => Ok(()),
        }
    }

    /// A bookmark at a byte between records of the valid prefix.
    fn bookmark_at(&self, snapshot: &Snapshot, offset: u64) -> Result<Bookmark> {
        let extent = snapshot.extent;
        let (ordinal, before) = match self.walk_to(extent, offset)? {
            Walked::Border { ordinal, before } => (Some(ordinal), before),
            _ => (self.known_ordinal(offset), None),
        };
        // An empty log may yet get another first number.
        let is_certain =
            F::NUMBERED && snapshot.numbered && (extent.records > 0 || is_damaged(snapshot));
        let ordinal = ordinal.filter(|_| is_certain);
        Ok(Bookmark { offset, ordinal, first: first_of(&extent), before })
    }

    /// The number of the record at a border of the valid prefix, where it is known.
    fn border_at(&self, snapshot: &Snapshot, offset: u64, ordinal: Option<u64>) -> Result<Border> {
        let ordinal = match self.walk_to(snapshot.extent, offset)? {
            Walked::Border { ordinal, .. } => Some(ordinal),
            _ => ordinal.or_else(|| self.known_ordinal(offset)),
        };
        Ok(Border { offset, ordinal: ordinal.filter(|_| snapshot.numbered) })
    }

    fn known_ordinal(&self, offset: u64) -> Option<u64> {
        let entry = self.index().first_from(offset).filter(|entry| entry.offset == offset);
        entry.map(|entry| entry.ordinal)
    }

    /// Walk to a byte of the valid prefix, from the last border known before it. Checksums are
    /// compared: a damaged length leads anywhere.
    fn walk_to(&self, extent: Extent, offset: u64) -> Result<Walked> {
        if offset == extent.start {
            return Ok(Walked::Border { ordinal: extent.first, before: None });
        }
        if offset == extent.end {
            let before = Some(Anchor { offset: extent.last_offset, sum: extent.last_sum });
            return Ok(Walked::Border { ordinal: extent.next(), before });
        }
        self.catch_up(extent);
        let near = self.index().last_where(|entry| entry.offset < offset);
        let (mut ordinal, from) = self.border_of(near.map(|(_, entry)| entry), extent);
        let mut scanner = Scanner::of_frames(self.framing, from, extent.end);
        let mut before = None;
        while scanner.position() < offset {
            match self.next_intact(&mut scanner)? {
                Some(record) => before = Some(record),
                None => return Ok(Walked::Damaged),
            }
            ordinal = ordinal.saturating_add(1);
        }
        Ok(match scanner.position() == offset {
            true => Walked::Border { ordinal, before },
            false => Walked::Inside,
        })
    }

    /// The next record, if it is intact.
    fn next_intact(&self, scanner: &mut Scanner<F::Framing>) -> Result<Option<Anchor>> {
        match scanner.next(&*self.file).map_err(|e| self.fail("read the log", e))? {
            Scanned::Record { offset, frame } => Ok(Some(Anchor { offset, sum: frame.sum() })),
            _ => Ok(None),
        }
    }

    /// The last byte between records within `reach`, from `from` on and up to `end`; `None` if
    /// damage hides the byte.
    fn bounded(&self, extent: Extent, from: u64, end: u64, reach: &Reach) -> Result<Option<u64>> {
        let bytes_to = reach.bytes.map(|bytes| from.saturating_add(bytes));
        let mut ordinal = 0;
        let mut ordinal_to = None;
        if let Some(records) = reach.records {
            let Walked::Border { ordinal: first, .. } = self.walk_to(extent, from)? else {
                return Ok(None);
            };
            (ordinal, ordinal_to) = (first, Some(first.saturating_add(records.max(1))));
        }
        if reach.records.is_none() && bytes_to.is_none_or(|to| to >= end) {
            return Ok(Some(end));
        }
        let within = |offset: u64, ordinal: u64| {
            offset <= bytes_to.unwrap_or(end).min(end) && ordinal <= ordinal_to.unwrap_or(u64::MAX)
        };
        self.catch_up(extent);
        let near = self.index().last_where(|entry| within(entry.offset, entry.ordinal));
        let mut stop = from;
        if let Some((_, entry)) = near.filter(|(_, entry)| entry.offset > from) {
            (ordinal, stop) = (entry.ordinal, entry.offset);
        }
        let framing = seeded!(self.framing, "bookmark-believes-lengths" =>
            crate::scan::framing::Framing::by_lengths(self.framing));
        let mut scanner = Scanner::of_frames(framing, stop, extent.end);
        while stop < end && ordinal_to.is_none_or(|to| ordinal < to) {
            if self.next_intact(&mut scanner)?.is_none() {
                return Ok(None);
            }
            ordinal = ordinal.saturating_add(1);
            // Take one record, of any length.
            if !within(scanner.position(), ordinal) && stop > from {
                break;
            }
            stop = scanner.position();
        }
        Ok(Some(stop.min(end)))
    }

    /// The end of all bytes, at least the end of the acknowledged bytes, and at least a byte after
    /// the records.
    fn end_of_all(&self, snapshot: &Snapshot) -> Result<u64> {
        let (_, there) = self.whole(snapshot)?;
        let acknowledged = self.recovery.durable_end.unwrap_or(0);
        Ok(there.max(acknowledged).max(sure_end(snapshot).saturating_add(1)))
    }

    /// The end of the readable bytes after damage: the end of the last intact record, or of later
    /// damage.
    fn end_after_damage(&self, snapshot: Snapshot, from: &Bookmark) -> Result<Bookmark> {
        let (file, there) = self.whole(&snapshot)?;
        let (sure, all) = (sure_end(&snapshot), self.end_of_all(&snapshot)?);
        let offset = from.offset.max(sure);
        let ordinal = from.ordinal.filter(|_| offset == from.offset);
        let range = Range { offset, end: there.max(offset), ordinal, stop: None };
        let mut cursor = self.cursor_over(file, range, OnCorrupt::Skip, snapshot);
        let mut end = Bookmark { offset, ..*from };
        while let Some((ordinal, offset, frame)) = cursor.advance()? {
            end = Bookmark {
                offset: offset + frame.len(),
                ordinal: ordinal.and_then(|n| n.checked_add(1)).filter(|_| F::NUMBERED),
                first: from.first,
                before: Some(Anchor { offset, sum: frame.sum() }),
            };
        }
        // There is damage after the last intact record, or no intact record at all.
        let is_damaged = cursor.damages().last().is_some_and(|damage| damage.end > end.offset);
        if is_damaged || (end.offset == sure && all > from.offset) {
            return Ok(Bookmark { offset: all, ordinal: None, before: None, first: from.first });
        }
        Ok(end)
    }
}

/// The end of a walk to a byte.
enum Walked {
    /// To a record, or to the end.
    Border { ordinal: u64, before: Option<Anchor> },
    /// Into a record.
    Inside,
    /// To a damaged record before it.
    Damaged,
}
