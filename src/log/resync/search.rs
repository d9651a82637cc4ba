//! One search: the places where the next record may begin, in the order of the rules.

use std::io;

use super::learnt::{Learnt, Near};
use crate::log::evidence::{Border, Evidence};
use crate::scan::framing::Framing;
use crate::scan::search::{Budget, find_intact_within};
use crate::scan::{Bad, Scanned, Scanner, Stop};
use crate::storage::File;

/// A longer record is only looked at if the budget has its bytes.
const SHORT_RECORD_BYTES: u64 = 4 << 10;

/// The bytes to search.
#[derive(Clone, Copy, Debug)]
pub struct Stretch<'a, F> {
    /// The log's bytes.
    pub file: &'a dyn File,
    /// How records lie in the bytes.
    pub framing: F,
    /// Byte of the damage.
    pub at: u64,
    /// Byte after the last byte to read.
    pub end: u64,
    /// Number of the damaged record, where it is known.
    pub ordinal: Option<u64>,
    /// Also take records that may lie inside the damaged record.
    pub rescue: bool,
}

/// A place to continue at.
pub(super) struct Next {
    pub(super) offset: u64,
    /// Number of the record there.
    pub(super) ordinal: Option<u64>,
    /// Records lost before the candidate.
    pub(super) lost: Option<u64>,
    pub(super) proved: bool,
    /// It may lie inside a damaged record.
    pub(super) inside: bool,
}

impl Next {
    /// The next record, after one damaged record.
    fn one_lost(offset: u64, proved: bool) -> Self {
        Self { offset, ordinal: None, lost: Some(1), proved, inside: false }
    }
}

/// The end of a chain, and whether the chain proves its candidate.
pub(super) struct Chain {
    pub(super) proved: bool,
    /// The byte after its last record.
    pub(super) end: u64,
    /// Number of the candidate, if a border gives it.
    pub(super) ordinal: Option<u64>,
}

pub(super) struct Search<'a, F: Framing> {
    pub(super) stretch: Stretch<'a, F>,
    /// The log's bytes, those near the damage in memory.
    pub(super) near: Near<'a>,
    pub(super) learnt: &'a mut Learnt<F>,
    /// Byte after the last byte other than zero.
    pub(super) data_end: u64,
    /// Up to where a record can reach.
    pub(super) reach: u64,
    /// No record of the log begins from here on.
    pub(super) until: u64,
    pub(super) border: Option<Border>,
}

impl<'a, F: Framing> Search<'a, F> {
    pub(super) fn new(
        stretch: Stretch<'a, F>,
        near: Near<'a>,
        data_end: u64,
        evidence: &Evidence,
        learnt: &'a mut Learnt<F>,
    ) -> Self {
        let reach = data_end.saturating_add(F::TRAILING_ZEROS_MAX).min(stretch.end);
        let acknowledged = evidence.unacknowledged_from().filter(|&from| from > stretch.at);
        let until = acknowledged.map_or(reach, |from| from.min(reach));
        let border = evidence.border_after(stretch.at).filter(|b| b.offset <= stretch.end);
        Self { stretch, near, learnt, data_end, reach, until, border }
    }

    pub(super) fn next(&mut self, why: &Stop) -> io::Result<Option<Next>> {
        let at = self.stretch.at;
        // Both lengths agree and only the content is damaged.
        if let Stop::Bad(Bad { framed_len: Some(len), .. }) = why {
            return self.after_framed(at + len).map(Some);
        }
        // A length that leads over a known border is none.
        let limit = self.border.map_or(u64::MAX, |border| border.offset);
        let claimed = self.claimed_end(at)?.filter(|&claimed| claimed <= limit);
        // A torn record ends with the data. A record in the torn record's payload may end there,
        // too.
        let is_torn = claimed.is_some_and(|claimed| claimed > self.reach);
        let fits = match claimed {
            Some(claimed) => self.is_end(claimed) || self.parses_at(claimed)?,
            None => false,
        };
        if let Some(offset) = self.end_by_trailer(at)? {
            return self.after_one(offset).map(Some);
        }
        let corrected = self.corrected_end(at)?;
        if let Some(offset) = corrected.filter(|&end| claimed.is_none_or(|claimed| end > claimed)) {
            return Ok(Some(Next::one_lost(offset, true)));
        }
        if let Some(offset) = claimed.filter(|_| fits) {
            return self.after_one(offset).map(Some);
        }
        if let Some(offset) = corrected {
            let proved = self.is_end(offset) || self.follow(offset)?.proved;
            self.learnt.is_torn |= is_torn && !proved;
            return Ok(Some(Next { inside: !proved, ..Next::one_lost(offset, proved) }));
        }
        self.learnt.is_torn |= is_torn;
        let inside = claimed.map_or(at, |claimed| claimed.min(self.until));
        // The first candidate inside the claimed stretch that nothing proves.
        let mut held: Option<Next> = None;
        let mut from = at + 1;
        while let Some(offset) = self.find(from, self.until)? {
            if let Some(lost) = self.lost_by_trailer(offset, claimed)? {
                let next = Next::one_lost(offset, true);
                return Ok(Some(Next { lost: Some(lost), ..next }));
            }
            let chain = self.follow(offset)?;
            let Chain { ordinal, proved, .. } = chain;
            let next = Next { offset, ordinal, lost: None, proved, inside: false };
            if offset >= inside {
                return Ok(Some(next));
            }
            if chain.proved {
                return Ok(Some(held.unwrap_or(next)));
            }
            held.get_or_insert(next);
            from = chain.end.max(offset + 1).min(inside);
        }
        // A record begins at a border, whatever lies before it.
        let at_border = |border: Border| Next {
            offset: border.offset,
            ordinal: border.ordinal,
            lost: None,
            proved: true,
            inside: false,
        };
        Ok(self.border.map(at_border))
    }

    /// A torn record may hold all later records, so every later record is unproved.
    pub(super) fn judged(&self, next: Next) -> Next {
        match self.learnt.is_torn {
            true => Next { proved: false, inside: true, ..next },
            false => next,
        }
    }

    fn find(&mut self, from: u64, to: u64) -> io::Result<Option<u64>> {
        find(&self.near, self.stretch.framing, from, to, &mut self.learnt.search)
    }

    /// After a record with damage only in its content.
    fn after_framed(&mut self, end: u64) -> io::Result<Next> {
        let mut offset = end;
        // A damaged length may lead to an equal length in the next record, in place of the trailer.
        // Then the true end lies before.
        let sooner = end - F::TRAILER_BYTES as u64;
        if !self.parses_at(end)?
            && self.start_by_trailer(sooner)? == Some(self.stretch.at)
            && self.parses_at(sooner)?
        {
            offset = sooner;
        }
        self.after_one(offset)
    }

    /// After one damaged record that ends at the begin of a record or the end of the data.
    fn after_one(&mut self, offset: u64) -> io::Result<Next> {
        let proved = self.is_end(offset) || self.follow(offset)?.proved;
        Ok(Next::one_lost(offset, proved))
    }

    /// The first intact record inside the damaged record, which ends at `end`.
    pub(super) fn first_inside(&mut self, end: u64) -> io::Result<Option<u64>> {
        self.find(self.stretch.at + 1, end)
    }

    /// How many records are lost up to a candidate, by the length in front of the candidate: one
    /// record that begins at the damage, or two records, if the first one's length gives their
    /// common border. A length that leads over a known border does not count.
    fn lost_by_trailer(&self, candidate: u64, claimed: Option<u64>) -> io::Result<Option<u64>> {
        let is_over_border = self.border.is_some_and(|border| border.offset < candidate);
        Ok(match self.start_by_trailer(candidate)? {
            Some(start) if start == self.stretch.at && !is_over_border => Some(1),
            Some(start) if Some(start) == claimed => Some(2),
            _ => None,
        })
    }

    /// Whether a record that ends here needs no follower to be believed.
    pub(super) fn is_end(&self, offset: u64) -> bool {
        self.border.is_some_and(|border| border.offset == offset)
            || (self.data_end..=self.reach).contains(&offset)
    }

    /// Whether an intact record begins here.
    pub(super) fn parses_at(&mut self, offset: u64) -> io::Result<bool> {
        self.parses_up_to(offset, self.reach)
    }

    pub(super) fn parses_up_to(&mut self, offset: u64, end: u64) -> io::Result<bool> {
        let claimed = self.claimed_end(offset)?.filter(|&claimed| claimed <= end);
        let len = claimed.map_or(0, |claimed| claimed - offset);
        if len > SHORT_RECORD_BYTES && !self.learnt.search.take(len) {
            return Ok(false);
        }
        let mut scanner = Scanner::of_frames(self.stretch.framing, offset, end);
        Ok(matches!(scanner.next(&self.near)?, Scanned::Record { .. }))
    }
}

/// The first intact record in `from..to`, as long as there is a budget.
pub(super) fn find<F: Framing>(
    file: &dyn File,
    framing: F,
    from: u64,
    to: u64,
    budget: &mut Budget,
) -> io::Result<Option<u64>> {
    if budget.is_spent {
        return Ok(None);
    }
    let found = find_intact_within(file, &framing, from, to, budget)?;
    let goes_on = budget.take(found.unwrap_or(to).saturating_sub(from));
    Ok(found.filter(|_| goes_on))
}
