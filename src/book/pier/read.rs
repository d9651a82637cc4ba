//! Reading across epochs: one deed, and walks in both directions.

use std::collections::VecDeque;

use super::part::Part;
use super::{Pier, ends_of};
use crate::book::format::BookFormat;
use crate::book::{self, Book, Deed, DeedRef, JamReader};
use crate::error::{ErrorKind, Result};
use crate::log::format::Format;
use crate::scan::{Damage, OnCorrupt};

/// Walks forwards over [deeds](DeedRef), epoch after epoch. A snapshot: what is appended later is not
/// given.
#[derive(Debug)]
pub struct Cursor {
    /// Those still to be walked; the first one is being walked.
    walks: VecDeque<book::Cursor>,
    /// Of those that are done.
    damages: Vec<Damage>,
}

/// Walks backwards over [deeds](Deed), epoch after epoch.
#[derive(Debug)]
pub struct Reverse {
    walks: VecDeque<book::Reverse>,
}

/// [Deeds](Deed) of a range as an iterator; ends after the first error.
#[derive(Debug)]
pub struct Iter {
    walk: Option<Result<Cursor>>,
}

impl Pier {
    /// The deed with that number.
    pub fn read(&self, event: u64) -> Result<Deed> {
        self.in_epoch_of(event, |book| book.read(event))
    }

    /// The jam of the deed with that number, in parts; as [`Book::jam_reader`].
    pub fn jam_reader(&self, event: u64) -> Result<JamReader> {
        self.in_epoch_of(event, |book| book.jam_reader(event))
    }

    /// Ask the epoch that has an event.
    fn in_epoch_of<T>(&self, event: u64, ask: impl Fn(&Book) -> Result<T>) -> Result<T> {
        self.with(|parts| {
            let (epoch, last) = ends_of(parts)?;
            match parts.iter().rev().find(|part| part.number < event && event <= last) {
                Some(part) => ask(&part.book),
                None => {
                    // Damage at the end of the last epoch may have taken the event.
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

    /// The deeds `start <= event < stop`, a snapshot of what is there now.
    pub fn iter(&self, start: u64, stop: Option<u64>) -> Result<Iter> {
        Ok(Iter { walk: Some(Ok(self.cursor(start, stop, OnCorrupt::Raise)?)) })
    }

    /// The deeds `start <= event < stop` without an allocation each, a snapshot of what is there
    /// now; damage is raised, or passed over up to the end of its epoch.
    pub fn cursor(&self, start: u64, stop: Option<u64>, on_corrupt: OnCorrupt) -> Result<Cursor> {
        let walk = |book: &Book| book.cursor(start, stop, on_corrupt);
        Ok(Cursor { walks: self.walks(start, stop, walk)?, damages: Vec::new() })
    }

    /// The deeds `start <= event < stop` backwards.
    pub fn cursor_back(&self, start: u64, stop: Option<u64>) -> Result<Reverse> {
        let mut walks = self.walks(start, stop, |book| book.cursor_back(start, stop))?;
        walks.make_contiguous().reverse();
        Ok(Reverse { walks })
    }

    /// A walk for each epoch that has events of the range.
    fn walks<W>(
        &self,
        start: u64,
        stop: Option<u64>,
        walk: impl Fn(&Book) -> Result<W>,
    ) -> Result<VecDeque<W>> {
        self.with(|parts| {
            let ends = parts.iter().skip(1).map(|part| Some(part.number)).chain([None]);
            let meets = |(part, end): &(&Part, Option<u64>)| {
                end.is_none_or(|last| start <= last)
                    && stop.is_none_or(|stop| stop > part.number.saturating_add(1))
            };
            let met = parts.iter().zip(ends).filter(meets);
            met.map(|(part, _)| walk(&part.book)).collect()
        })
    }
}

impl Cursor {
    /// The next deed.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<DeedRef<'_>>> {
        loop {
            let Some(walk) = self.walks.front_mut() else { return Ok(None) };
            let Some((ordinal, offset, frame)) = walk.advance()? else {
                self.damages.extend_from_slice(walk.damages());
                self.walks.pop_front();
                continue;
            };
            let bytes = self.walks.front().map_or(&[][..], book::Cursor::bytes);
            return Ok(Some(BookFormat::show(ordinal, offset, frame, bytes)));
        }
    }

    /// The damaged stretches passed over so far, each by its bytes in the log of its epoch.
    pub fn damages(&self) -> Vec<Damage> {
        let walked = self.walks.front().map_or(&[][..], book::Cursor::damages);
        [&self.damages, walked].concat()
    }

    /// Whether the next deed lies in memory already, so that [`Cursor::next`] will not read.
    pub fn ready(&self) -> bool {
        match self.walks.front() {
            Some(walk) => walk.ready(),
            None => true,
        }
    }

    /// The walks over each epoch, in order.
    pub fn into_epochs(self) -> impl Iterator<Item = book::Cursor> + Send {
        self.walks.into_iter()
    }
}

impl Reverse {
    /// The next deed, going down.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Deed>> {
        while let Some(walk) = self.walks.front_mut() {
            if let Some(deed) = walk.next()?.map(BookFormat::own) {
                return Ok(Some(deed));
            }
            self.walks.pop_front();
        }
        Ok(None)
    }
}

impl Iterator for Iter {
    type Item = Result<Deed>;

    fn next(&mut self) -> Option<Self::Item> {
        let error = match self.walk.as_mut()? {
            Ok(cursor) => match cursor.next() {
                Ok(deed) => return deed.map(|deed| Ok(BookFormat::own(deed))),
                Err(error) => Some(error),
            },
            Err(_) => None,
        };
        let begun = self.walk.take()?;
        error.or(begun.err()).map(Err)
    }
}

/// All deeds that are there now.
impl IntoIterator for &Pier {
    type Item = Result<Deed>;
    type IntoIter = Iter;

    fn into_iter(self) -> Iter {
        Iter { walk: Some(self.cursor(0, None, OnCorrupt::Raise)) }
    }
}
