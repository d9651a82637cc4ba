//! Walking over the records of a segment in both directions.
//!
//! A walk reports pages without an intact record, from the first to the last of them, and never
//! skips damage in silence. Both directions find the same records and the same damage.

use std::io;

use crate::error::Result;
use crate::ground::slice::part;
use crate::scan::Bad;

use super::segment::{Found, PageDamage, Record, Segment};
use super::window::{READ_BYTES, Window};
use crate::nostr::bytes::event::Flags;
use crate::nostr::bytes::names::Searches;
use crate::nostr::bytes::page::{self, Head};
use crate::nostr::bytes::record::{self, Layout};

/// Looks at one page after the other.
#[derive(Debug)]
pub(crate) struct Looker {
    segment: Segment,
    window: Window,
    /// The end of the walk: the file's end, or the end of the expected pages.
    end: u64,
    /// A record of several pages, joined.
    whole: Vec<u8>,
    page_bytes: u32,
    /// Whether checksums are compared.
    sums: bool,
    /// The searches for lost tag names, if enabled.
    names: Option<Searches>,
}

/// An intact record at a page, which stays in memory until the next look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// The first byte of its first page.
    pub offset: u32,
    head: Head,
    layout: Layout,
    /// Whether the record's bytes were joined from several pages.
    is_put_together: bool,
    /// Whether lost tag names were recovered.
    is_recovered: bool,
}

impl Seen {
    /// The store's notes about the event.
    #[inline]
    pub(crate) fn flags(&self) -> Flags {
        self.layout.flags
    }
}

/// A step of a walk.
#[derive(Debug)]
pub(crate) enum Step {
    Record(Seen),
    Damage(PageDamage),
}

impl Looker {
    fn new(segment: Segment) -> Self {
        let page_bytes = segment.header().page_bytes;
        let window = Window::new(segment.file().clone(), 0, READ_BYTES);
        Self { segment, window, end: 0, whole: Vec::new(), page_bytes, sums: true, names: None }
    }

    /// Read the file's end once: the walk does not go beyond.
    #[inline]
    fn begin(&mut self) -> Result<()> {
        if self.window.end == 0 {
            self.window.end = self.segment.page_end()?;
            self.end = self.window.end.max(self.segment.missing().end.into());
        }
        Ok(())
    }

    /// The intact record that begins at a page, or the reason why there is none.
    fn look(&mut self, offset: u32) -> Result<Result<Seen, Bad>> {
        self.try_look(offset).map_err(|e| self.segment.failed(e))
    }

    #[inline]
    fn try_look(&mut self, offset: u32) -> io::Result<Result<Seen, Bad>> {
        if let Some(bad) = self.segment.missing_at(offset) {
            return Ok(Err(bad));
        }
        let head = match self.window.head(offset, self.page_bytes)? {
            Ok(head) => head,
            Err(bad) => {
                let page = self.window.at(offset.into(), self.page_bytes as usize)?;
                return Ok(Err(if page::is_blank(page) { UNWRITTEN } else { bad }));
            }
        };
        let waiting = self.segment.waiting_at(offset);
        let checked = if head.continuations > 0 {
            let gathered = self.window.gather(offset, head, self.page_bytes, &mut self.whole)?;
            if let Some(flags) = waiting {
                record::set_flags(&mut self.whole, flags);
            }
            gathered.and_then(|()| record::check_with(&self.whole, self.sums))
        } else {
            self.window.at(offset.into(), head.record_len as usize)?;
            if let Some(flags) = waiting {
                self.window.set_flags(offset, flags);
            }
            let bytes = self.window.at(offset.into(), head.record_len as usize)?;
            record::check_with(bytes, self.sums)
        };
        let is_put_together = head.continuations > 0;
        let seen = |layout| Seen { offset, head, layout, is_put_together, is_recovered: false };
        Ok(checked.map(|layout| match self.names.is_some() {
            true => self.named(seen(layout)),
            false => seen(layout),
        }))
    }

    #[inline]
    fn named(&mut self, mut seen: Seen) -> Seen {
        let mut layout = seen.layout;
        let named = self.names.as_ref().and_then(|searches| {
            self.segment.named(seen.offset, self.bytes(seen), &mut layout, searches)
        });
        if let Some(named) = named {
            self.whole = named;
            (seen.is_put_together, seen.is_recovered) = (true, true);
        }
        Seen { layout, ..seen }
    }

    fn found(&self, step: Step) -> Found<'_> {
        match step {
            Step::Record(seen) => Found::Record(self.record(seen)),
            Step::Damage(damage) => Found::Damage(damage),
        }
    }

    /// The last record looked at.
    #[inline]
    pub(crate) fn record(&self, seen: Seen) -> Record<'_> {
        let bytes = self.bytes(seen);
        let (end, event) = (self.end_of(seen) as u32, seen.layout.event(bytes));
        let (has_sum, is_recovered) = (seen.layout.has_sum, seen.is_recovered);
        Record { offset: seen.offset, end, bytes, event, has_sum, is_recovered }
    }

    /// The record's parts.
    #[inline]
    pub(crate) fn parts(&self, seen: Seen) -> record::Parts<'_> {
        seen.layout.parts(self.bytes(seen))
    }

    /// The record's bytes, without the heads of continuation pages.
    #[inline]
    pub(crate) fn bytes(&self, seen: Seen) -> &[u8] {
        match seen.is_put_together {
            true => &self.whole,
            false => {
                let at = (u64::from(seen.offset) - self.window.start) as usize;
                part(&self.window.buf, at..at + seen.head.record_len as usize)
            }
        }
    }

    /// The byte after the record's pages.
    #[inline]
    pub(crate) fn end_of(&self, seen: Seen) -> u64 {
        u64::from(seen.offset) + seen.head.pages_bytes(self.page_bytes)
    }
}

const UNWRITTEN: Bad = Bad {
    what: "unwritten pages",
    found: 1,
    against: "expected before the last record",
    expected: 0,
    framed_len: None,
};

/// Walks the records of a segment in their order.
#[derive(Debug)]
pub struct Forward {
    looker: Looker,
    position: u64,
    /// The start of another part of the walk.
    until: u64,
    /// Whether another part reports the damage before the next record.
    is_passing: bool,
}

impl Forward {
    pub(crate) fn new(segment: Segment, from: u32) -> Self {
        let (position, until) = (from.into(), u64::MAX);
        Self { looker: Looker::new(segment), position, until, is_passing: false }
    }

    /// Cut the walk at a page; returns the part before the page. The part has the records that
    /// begin before the page, and the damage up to the record after.
    #[cfg(feature = "arrow")]
    pub(crate) fn split_off_until(&mut self, until: u64) -> Self {
        let segment = self.looker.segment.clone();
        let rest =
            Self { position: until, until: self.until, is_passing: true, ..Self::new(segment, 0) };
        let rest = rest.with_checksums(self.looker.sums);
        let rest = match &self.looker.names {
            Some(searches) => rest.with_names(searches),
            None => rest,
        };
        let mut first = std::mem::replace(self, rest);
        first.until = until;
        first
    }

    /// The offset of the next look.
    #[cfg(feature = "arrow")]
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Choose whether to compare checksums.
    #[must_use]
    pub(crate) fn with_checksums(mut self, sums: bool) -> Self {
        self.looker.sums = sums;
        self
    }

    /// Recover lost tag names.
    #[must_use]
    pub(crate) fn with_names(mut self, searches: &Searches) -> Self {
        self.looker.names = Some(searches.clone());
        self
    }

    /// The next record, or the pages without a record before it.
    #[allow(clippy::should_implement_trait)] // borrows
    pub fn next(&mut self) -> Result<Option<Found<'_>>> {
        let step = self.step()?;
        Ok(step.map(|step| self.looker.found(step)))
    }

    /// Step to the next record; the record stays until the next step.
    #[inline]
    pub(crate) fn step(&mut self) -> Result<Option<Step>> {
        self.looker.begin()?;
        let mut damage: Option<PageDamage> = None;
        while self.position < self.looker.end {
            // A part without a record ends here; a part with damage goes on to the next record.
            if self.is_passing && self.position >= self.until {
                break;
            }
            let offset = self.position as u32;
            match self.looker.look(offset)? {
                Ok(_) if damage.is_some() || self.position >= self.until => break,
                Ok(seen) => {
                    self.position = self.looker.end_of(seen);
                    self.is_passing = false;
                    return Ok(Some(Step::Record(seen)));
                }
                Err(bad) => {
                    self.position += u64::from(self.looker.page_bytes);
                    if self.is_passing {
                        continue;
                    }
                    let end = self.position as u32;
                    let begin = || PageDamage { offset, end, reason: bad.reason() };
                    damage.get_or_insert_with(begin).end = end;
                }
            }
        }
        Ok(damage.map(Step::Damage))
    }

    /// The record of the last step.
    #[inline]
    pub(crate) fn looker(&self) -> &Looker {
        &self.looker
    }
}

/// Walks the records of a segment, the last one first.
#[derive(Debug)]
pub struct Reverse {
    looker: Looker,
    /// The end of the pages still to walk.
    position: u64,
}

impl Reverse {
    pub(crate) fn new(segment: Segment) -> Self {
        let position = segment.end().into();
        Self { looker: Looker::new(segment), position }
    }

    /// Choose whether to compare checksums.
    #[must_use]
    pub(crate) fn with_checksums(mut self, sums: bool) -> Self {
        self.looker.sums = sums;
        self
    }

    /// Recover lost tag names.
    #[must_use]
    pub(crate) fn with_names(mut self, searches: &Searches) -> Self {
        self.looker.names = Some(searches.clone());
        self
    }

    /// The record before, or the pages without a record after it.
    #[cfg(feature = "sim")] // the store steps; only tests of a segment alone ask for this
    #[allow(clippy::should_implement_trait)] // borrows
    pub fn next(&mut self) -> Result<Option<Found<'_>>> {
        let step = self.step()?;
        Ok(step.map(|step| self.looker.found(step)))
    }

    /// Step to the record before; the record stays until the next step.
    #[inline]
    pub(crate) fn step(&mut self) -> Result<Option<Step>> {
        self.looker.begin()?;
        let page_bytes = u64::from(self.looker.page_bytes);
        let mut damage: Option<PageDamage> = None;
        while self.position > page_bytes {
            let offset = self.begin_before(self.position)?;
            let (offset, bad) = match self.looker.look(offset)? {
                Err(bad) => (offset, bad),
                Ok(seen) if self.looker.end_of(seen) < self.position => {
                    // The pages after the record that do not belong to the record.
                    let after = self.looker.end_of(seen) as u32;
                    match self.looker.look(after)? {
                        Err(bad) => (after, bad),
                        Ok(_) => break,
                    }
                }
                Ok(_) if damage.is_some() => break,
                Ok(seen) => {
                    self.position = offset.into();
                    return Ok(Some(Step::Record(seen)));
                }
            };
            let end = damage.map_or(self.position as u32, |after| after.end);
            damage = Some(PageDamage { offset, end, reason: bad.reason() });
            self.position = offset.into();
        }
        Ok(damage.map(Step::Damage))
    }

    /// The record of the last step.
    #[inline]
    pub(crate) fn looker(&self) -> &Looker {
        &self.looker
    }

    /// The last page before `end` that is no continuation page.
    fn begin_before(&mut self, end: u64) -> Result<u32> {
        let page_bytes = u64::from(self.looker.page_bytes);
        let mut offset = end - page_bytes;
        loop {
            // Read whole blocks that end here, so that a backward walk reads each block once.
            let from = (offset + page_bytes).saturating_sub(READ_BYTES as u64).max(page_bytes);
            let window = &mut self.looker.window;
            let page = window.near(from, offset, page_bytes as usize);
            let page = page.map_err(|e| self.looker.segment.failed(e))?;
            if !page::is_continuation(page) || offset <= page_bytes {
                return Ok(offset as u32);
            }
            offset -= page_bytes;
        }
    }
}
