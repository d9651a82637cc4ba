//! Where a log goes on after damage. One answer for cursors, splits, Arrow, verify and salvage.
//!
//! Payloads may contain whole records, so what parses after a damaged record need not be one of the
//! log's. What decides, in this order:
//!
//! 1. After the last acknowledged byte nothing counts: the first damage there is a torn tail.
//! 2. A damaged record whose length leads on to an intact record, to a known border or to the end of
//!    the data is one lost record; nothing inside it is tried.
//! 3. A record is *proved* if the records from it on reach a known border or the end of the data, or
//!    outlive the largest possible end of the damaged record.
//! 4. Inside the stretch that the damaged record's own length claims, a record counts only if a
//!    chain that begins there is proved, which refutes the claim.
//! 5. Any other intact record counts, as one that is not proved.
//!
//! A rescue also takes what 4 leaves out, and 2 where only one length says so, as not proved.

#[cfg(test)]
mod tests;

use std::io;

use crate::log::evidence::{Border, Evidence};
use crate::log::framing::Framing;
use crate::log::trailers::Trailers;
use crate::scan::{Bad, Damage, Scanned, Scanner, Stop};
use crate::search::{end_of_data, find_intact};
use crate::slice::part;
use crate::storage::{File, read_full};

/// How far a length that leads back to the damage is looked for.
const TRAILER_SEARCH_BYTES: u64 = 64 << 20;
/// The longest head of any format.
const HEAD_BYTES_MAX: usize = 32;

/// Where the search takes place.
#[derive(Clone, Copy, Debug)]
pub struct Stretch<'a, F> {
    /// The log's bytes.
    pub file: &'a dyn File,
    /// How records lie in them.
    pub framing: F,
    /// Byte of the damage.
    pub at: u64,
    /// Byte at which reading ends.
    pub end: u64,
    /// Number of the damaged record, where it is known.
    pub ordinal: Option<u64>,
    /// Take what may lie inside the damaged record, too.
    pub rescue: bool,
}

/// How to go on after damage.
#[derive(Clone, Debug, Default)]
pub struct Resync {
    /// The damage passed over; `None` if only unwritten zeros follow.
    pub damage: Option<Damage>,
    /// Where to go on, and the number of the record there if it is known.
    pub next: Option<(u64, Option<u64>)>,
    /// For a rescue that goes on inside the damaged record: where that ends.
    pub after: Option<After>,
}

/// Where a rescue goes on after the damaged record that it read inside.
#[derive(Clone, Copy, Debug)]
pub struct After {
    /// The byte, and the number of the record there if it is known.
    pub place: (u64, Option<u64>),
    /// Whether that record is proved.
    pub proved: bool,
}

/// A place to go on at.
struct Next {
    offset: u64,
    /// Number of the record there.
    ordinal: Option<u64>,
    /// Records lost before it.
    lost: Option<u64>,
    proved: bool,
}

impl Next {
    /// After one damaged record.
    fn one_lost(offset: u64, proved: bool) -> Self {
        Self { offset, ordinal: None, lost: Some(1), proved }
    }
}

/// Find the next record after the damage; `name` is the damaged record's. `trailers` are those of the
/// same walk.
pub fn resync<F: Framing>(
    stretch: Stretch<'_, F>,
    why: &Stop,
    name: &str,
    evidence: &Evidence,
    is_beyond_limit: bool,
    trailers: &mut Trailers,
) -> io::Result<Resync> {
    let Stretch { file, at, end, ordinal, .. } = stretch;
    let data_end = end_of_data(file, at, end)?;
    if data_end == at {
        return Ok(Resync::default());
    }
    let unacknowledged = evidence.unacknowledged_from();
    let torn = unacknowledged.is_some_and(|from| at >= from) && !is_beyond_limit;
    if let Stop::Unlinked(bad) = why
        && !torn
    {
        return Ok(at_unlinked(stretch, bad, name));
    }
    let mut search = Search::new(stretch, data_end, evidence, trailers);
    let next = match torn {
        true => None,
        false => search.next(why)?,
    };
    let lost = next.as_ref().and_then(|next| {
        next.lost.or_else(|| next.ordinal.zip(ordinal).and_then(|(next, at)| next.checked_sub(at)))
    });
    let to = next.as_ref().map_or(end, |next| next.offset);
    let goes_on = next.as_ref().filter(|next| next.offset < end);
    // At a border may lie another damaged record.
    let intact = match goes_on {
        Some(next) => parses_at(file, stretch.framing, next.offset, end)?,
        None => false,
    };
    let damage = Damage {
        offset: at,
        end: to,
        reason: format!("{name}: {}", why.reason()),
        next_intact: goes_on.filter(|_| intact).map(|next| next.offset),
        next_proved: intact && goes_on.is_some_and(|next| next.proved),
        first_lost: ordinal,
        records_lost: lost,
    };
    let counted = |next: &Next| {
        let lost = next.lost.or(lost);
        let counted = ordinal.zip(lost).and_then(|(at, lost)| at.checked_add(lost));
        (next.offset, next.ordinal.or(counted))
    };
    let until = next.as_ref().map_or(search.until, |next| next.offset);
    let inside = match stretch.rescue && !torn {
        true => search.first_inside(until)?,
        false => None,
    };
    if let Some(inner) = inside {
        let damage = Damage { end: inner, next_intact: Some(inner), next_proved: false, ..damage };
        let after = next.as_ref().map(|next| After { place: counted(next), proved: next.proved });
        return Ok(Resync { damage: Some(damage), next: Some((inner, None)), after });
    }
    Ok(Resync { damage: Some(damage), next: goes_on.map(counted), after: None })
}

/// Go on with an intact record that does not follow the one before: none of its own bytes is damaged.
fn at_unlinked<F: Framing>(stretch: Stretch<'_, F>, bad: &Bad, name: &str) -> Resync {
    let Stretch { at, ordinal, .. } = stretch;
    let lost = bad.found.checked_sub(bad.expected);
    let damage = Damage {
        offset: at,
        end: at,
        reason: format!("{name}: {}", bad.reason()),
        next_intact: Some(at),
        next_proved: true,
        first_lost: ordinal,
        records_lost: lost,
    };
    let found = ordinal.zip(lost).and_then(|(ordinal, lost)| ordinal.checked_add(lost));
    Resync { damage: Some(damage), next: Some((at, found)), after: None }
}

/// Find the next intact record inside the damaged record that a rescue reads: none is proved there.
pub fn next_inside<F: Framing>(
    stretch: Stretch<'_, F>,
    why: &Stop,
    name: &str,
) -> io::Result<Resync> {
    let Stretch { file, framing, at, end, .. } = stretch;
    let next = find_intact(file, &framing, at + 1, end)?;
    let reason = format!("{name}: {}", why.reason());
    let to = next.unwrap_or(end);
    let damage = Damage { offset: at, end: to, reason, next_intact: next, ..Damage::default() };
    Ok(Resync { damage: Some(damage), next: next.map(|next| (next, None)), after: None })
}

/// Whether an intact record begins here.
fn parses_at<F: Framing>(file: &dyn File, framing: F, offset: u64, end: u64) -> io::Result<bool> {
    let mut scanner = Scanner::of_frames(framing, offset, end);
    Ok(matches!(scanner.next(file)?, Scanned::Record { .. }))
}

struct Search<'a, F> {
    stretch: Stretch<'a, F>,
    trailers: &'a mut Trailers,
    /// Byte after the last one that is not zero.
    data_end: u64,
    /// Up to where a record can reach.
    reach: u64,
    /// No record of the log begins from here on.
    until: u64,
    border: Option<Border>,
}

/// What the records from a candidate on lead to.
struct Chain {
    proved: bool,
    /// Where it ends.
    end: u64,
    /// Number of the candidate, if a border tells.
    ordinal: Option<u64>,
}

impl<'a, F: Framing> Search<'a, F> {
    fn new(
        stretch: Stretch<'a, F>,
        data_end: u64,
        evidence: &Evidence,
        trailers: &'a mut Trailers,
    ) -> Self {
        let reach = data_end.saturating_add(F::TRAILING_ZEROS_MAX).min(stretch.end);
        let acknowledged = evidence.unacknowledged_from().filter(|&from| from > stretch.at);
        let until = acknowledged.map_or(reach, |from| from.min(reach));
        let border = evidence.border_after(stretch.at).filter(|b| b.offset <= stretch.end);
        Self { stretch, trailers, data_end, reach, until, border }
    }

    fn next(&mut self, why: &Stop) -> io::Result<Option<Next>> {
        let at = self.stretch.at;
        // Both lengths agree and only the content is damaged.
        if let Stop::Bad(Bad { framed_len: Some(len), .. }) = why {
            return self.after_framed(at + len).map(Some);
        }
        // A length that leads over a known border is none.
        let limit = self.border.map_or(u64::MAX, |border| border.offset);
        let claimed = self.claimed_end(at)?.filter(|&claimed| claimed <= limit);
        let fits = match claimed {
            Some(claimed) => self.is_end(claimed) || self.parses_at(claimed)?,
            None => false,
        };
        if let Some(offset) = self.end_by_trailer(at)? {
            return self.after_one(offset).map(Some);
        }
        if let Some(offset) = claimed.filter(|_| fits) {
            return self.after_one(offset).map(Some);
        }
        let inside = claimed.map_or(at, |claimed| claimed.min(self.until));
        // The first candidate inside the claimed stretch that nothing proves.
        let mut held: Option<Next> = None;
        let mut from = at + 1;
        while let Some(offset) = find_intact(self.file(), &self.stretch.framing, from, self.until)?
        {
            if let Some(lost) = self.lost_by_trailer(offset, claimed)? {
                let next = Next::one_lost(offset, true);
                return Ok(Some(Next { lost: Some(lost), ..next }));
            }
            let chain = self.follow(offset)?;
            let Chain { proved, ordinal, .. } = chain;
            let next = Next { offset, ordinal, lost: None, proved };
            if offset >= inside {
                return Ok(Some(next));
            }
            if proved {
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
        };
        Ok(self.border.map(at_border))
    }

    fn file(&self) -> &'a dyn File {
        self.stretch.file
    }

    /// After a record of which only the content is damaged.
    fn after_framed(&mut self, end: u64) -> io::Result<Next> {
        let mut offset = end;
        // A damaged length may meet the equal length of the next record where its trailer should
        // be; then the true end is before that.
        let sooner = end - F::TRAILER_BYTES as u64;
        if !self.parses_at(end)?
            && self.start_by_trailer(sooner)? == Some(self.stretch.at)
            && self.parses_at(sooner)?
        {
            offset = sooner;
        }
        self.after_one(offset)
    }

    /// After one damaged record, which ends where a record begins or the data ends.
    fn after_one(&mut self, offset: u64) -> io::Result<Next> {
        let proved = self.is_end(offset) || self.follow(offset)?.proved;
        Ok(Next::one_lost(offset, proved))
    }

    /// The first intact record inside the damaged one, which ends at `end`.
    fn first_inside(&self, end: u64) -> io::Result<Option<u64>> {
        let Stretch { at, framing, .. } = self.stretch;
        find_intact(self.file(), &framing, at + 1, end)
    }

    /// How many records are lost up to a candidate, by the length that stands before it: one that
    /// begins at the damage, or two whose common border the first one's length tells. A length that
    /// leads over a known border is none.
    fn lost_by_trailer(&self, candidate: u64, claimed: Option<u64>) -> io::Result<Option<u64>> {
        let is_over_border = self.border.is_some_and(|border| border.offset < candidate);
        Ok(match self.start_by_trailer(candidate)? {
            Some(start) if start == self.stretch.at && !is_over_border => Some(1),
            Some(start) if Some(start) == claimed => Some(2),
            _ => None,
        })
    }

    /// Where the damaged record at `at` ends, by a length that leads back to it, and on to an intact
    /// record, a border or the end of the data.
    fn end_by_trailer(&mut self, at: u64) -> io::Result<Option<u64>> {
        if F::TRAILER_BYTES == 0 {
            return Ok(None);
        }
        let most = self.border.map_or(self.reach, |border| border.offset.min(self.reach));
        let most = most.min(at.saturating_add(TRAILER_SEARCH_BYTES));
        let Stretch { file, framing, .. } = self.stretch;
        let mut after = at;
        while let Some(end) = self.trailers.next_end(file, framing, at, after, most)? {
            if self.is_end(end) || self.parses_at(end)? {
                return Ok(Some(end));
            }
            after = end;
        }
        Ok(None)
    }

    /// Whether a record that ends here needs no follower to be believed.
    fn is_end(&self, offset: u64) -> bool {
        self.border.is_some_and(|border| border.offset == offset)
            || (self.data_end..=self.reach).contains(&offset)
    }

    fn parses_at(&self, offset: u64) -> io::Result<bool> {
        parses_at(self.file(), self.stretch.framing, offset, self.reach)
    }

    /// Where the damaged record at `at` ends, if one of its lengths leads on.
    fn own_end(&mut self, at: u64) -> io::Result<Option<u64>> {
        if let Some(end) = self.end_by_trailer(at)? {
            return Ok(Some(end));
        }
        let claimed = self.claimed_end(at)?;
        match claimed {
            Some(end) if self.is_end(end) || self.parses_at(end)? => Ok(claimed),
            _ => Ok(None),
        }
    }

    /// Where the record at `offset` ends by its head.
    fn claimed_end(&self, offset: u64) -> io::Result<Option<u64>> {
        let mut head = [0; HEAD_BYTES_MAX];
        let read = read_full(self.file(), &mut head, offset)?;
        if read < F::HEAD_BYTES {
            return Ok(None);
        }
        let len = self.stretch.framing.claimed_len(part(&head, ..F::HEAD_BYTES));
        Ok(len.and_then(|len| offset.checked_add(len)))
    }

    /// Where the record that ends at `end` begins, by the length at its end.
    fn start_by_trailer(&self, end: u64) -> io::Result<Option<u64>> {
        let bytes = F::TRAILER_BYTES;
        let Some(at) = end.checked_sub(bytes as u64).filter(|_| bytes > 0) else {
            return Ok(None);
        };
        let mut trailer = [0; 16];
        let read = read_full(self.file(), &mut trailer, at)?;
        if read < bytes {
            return Ok(None);
        }
        let len = self.stretch.framing.trailed_len(part(&trailer, ..bytes));
        Ok(len.and_then(|len| end.checked_sub(len)))
    }

    /// Walk from a candidate until it is proved or the chain breaks.
    fn follow(&mut self, candidate: u64) -> io::Result<Chain> {
        let Stretch { framing, at, .. } = self.stretch;
        let border = self.border.filter(|border| border.offset >= candidate);
        let largest = at.saturating_add(framing.record_bytes_max());
        let mut scanner = Scanner::of_frames(framing, candidate, self.reach);
        let mut records = 0;
        loop {
            let end = scanner.position();
            let broken = Chain { proved: false, end, ordinal: None };
            if let Some(border) = border {
                if end == border.offset {
                    let ordinal = border.ordinal.and_then(|next| next.checked_sub(records));
                    return Ok(Chain { proved: true, end, ordinal });
                }
                if end > border.offset {
                    return Ok(broken);
                }
            }
            if records > 0 && (end >= self.data_end || end > largest) {
                return Ok(Chain { proved: true, ..broken });
            }
            match scanner.next(self.file())? {
                Scanned::Record { .. } => records += 1,
                // Another damaged record, of which a length leads on.
                Scanned::Stop { .. } => match self.own_end(end)? {
                    Some(next) => {
                        scanner.seek(next);
                        records += 1;
                    }
                    None => return Ok(broken),
                },
                Scanned::End => return Ok(broken),
            }
        }
    }
}
