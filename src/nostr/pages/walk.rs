//! Walking over the records of a segment in both directions.
//!
//! Pages without an intact record are reported, from the first to the last of them, and never passed
//! over in silence. Both directions find the same records and the same damage.

use std::io;

use crate::error::Result;
use crate::scan::Bad;
use crate::slice::part;

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
    /// Where the walk ends: where the file does, or the pages that it should have.
    end: u64,
    /// A record of several pages, put together.
    whole: Vec<u8>,
    page_bytes: u32,
    /// Whether checksums are compared.
    sums: bool,
    /// How lost names of tags are looked for, if they are.
    names: Option<Searches>,
}

/// An intact record at a page, which is in memory until the next look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// The first byte of its first page.
    pub offset: u32,
    head: Head,
    layout: Layout,
    /// Whether its bytes were put together, and not read as they are.
    is_put_together: bool,
    /// Whether lost names of tags were found.
    is_recovered: bool,
}

impl Seen {
    /// What the store notes of the event.
    #[inline]
    pub(crate) fn flags(&self) -> Flags {
        self.layout.flags
    }
}

/// What a walk steps onto.
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

    /// Ask for the file's end, once: the walk does not go beyond it.
    #[inline]
    fn begin(&mut self) -> Result<()> {
        if self.window.end == 0 {
            self.window.end = self.segment.page_end()?;
            self.end = self.window.end.max(self.segment.missing().end.into());
        }
        Ok(())
    }

    /// Whether an intact record begins at a page; else why not.
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

    /// The record that was looked at last.
    #[inline]
    pub(crate) fn record(&self, seen: Seen) -> Record<'_> {
        let bytes = self.bytes(seen);
        let (end, event) = (self.end_of(seen) as u32, seen.layout.event(bytes));
        let (has_sum, is_recovered) = (seen.layout.has_sum, seen.is_recovered);
        Record { offset: seen.offset, end, bytes, event, has_sum, is_recovered }
    }

    /// Its parts.
    #[inline]
    pub(crate) fn parts(&self, seen: Seen) -> record::Parts<'_> {
        seen.layout.parts(self.bytes(seen))
    }

    /// Its bytes, without the heads of continuation pages.
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

    /// The byte after its pages.
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
    /// Where another part of the walk begins.
    until: u64,
    /// Whether another part has the damage before the next record.
    is_passing: bool,
}

impl Forward {
    pub(crate) fn new(segment: Segment, from: u32) -> Self {
        let (position, until) = (from.into(), u64::MAX);
        Self { looker: Looker::new(segment), position, until, is_passing: false }
    }

    /// Cut the walk at a page; gives what comes before. That has the records that begin before, and the
    /// damage up to the next one.
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

    /// Where the next look is.
    #[cfg(feature = "arrow")]
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// The same; whether checksums are compared.
    #[must_use]
    pub(crate) fn with_checksums(mut self, sums: bool) -> Self {
        self.looker.sums = sums;
        self
    }

    /// The same, with names of tags that the program lost that wrote them.
    #[must_use]
    pub(crate) fn with_names(mut self, searches: &Searches) -> Self {
        self.looker.names = Some(searches.clone());
        self
    }

    /// The next record, or the pages up to it that hold none.
    #[allow(clippy::should_implement_trait)] // borrows
    pub fn next(&mut self) -> Result<Option<Found<'_>>> {
        let step = self.step()?;
        Ok(step.map(|step| self.looker.found(step)))
    }

    /// The same; a record stands until the next step.
    #[inline]
    pub(crate) fn step(&mut self) -> Result<Option<Step>> {
        self.looker.begin()?;
        let mut damage: Option<PageDamage> = None;
        while self.position < self.looker.end {
            // A part without any record ends here; one that has damage goes on to the next record.
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

    /// Has the record that was stepped onto last.
    #[inline]
    pub(crate) fn looker(&self) -> &Looker {
        &self.looker
    }
}

/// Walks the records of a segment, the last one first.
#[derive(Debug)]
pub struct Reverse {
    looker: Looker,
    /// What is left ends here.
    position: u64,
}

impl Reverse {
    pub(crate) fn new(segment: Segment) -> Self {
        let position = segment.end().into();
        Self { looker: Looker::new(segment), position }
    }

    /// The same; whether checksums are compared.
    #[must_use]
    pub(crate) fn with_checksums(mut self, sums: bool) -> Self {
        self.looker.sums = sums;
        self
    }

    /// The same, with names of tags that the program lost that wrote them.
    #[must_use]
    pub(crate) fn with_names(mut self, searches: &Searches) -> Self {
        self.looker.names = Some(searches.clone());
        self
    }

    /// The record before, or the pages after it that hold none.
    #[cfg(feature = "sim")] // the store steps; only tests of a segment alone ask for this
    #[allow(clippy::should_implement_trait)] // borrows
    pub fn next(&mut self) -> Result<Option<Found<'_>>> {
        let step = self.step()?;
        Ok(step.map(|step| self.looker.found(step)))
    }

    /// The same; a record stands until the next step.
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
                    // What follows the record, and does not belong to it.
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

    /// Has the record that was stepped onto last.
    #[inline]
    pub(crate) fn looker(&self) -> &Looker {
        &self.looker
    }

    /// The last page before `end` that goes on with no other.
    fn begin_before(&mut self, end: u64) -> Result<u32> {
        let page_bytes = u64::from(self.looker.page_bytes);
        let mut offset = end - page_bytes;
        loop {
            // Whole blocks that end here, so that going back reads each once.
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
