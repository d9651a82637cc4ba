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
//!
//! A length that leads beyond the data may be that of a torn record, whose payload may end with the
//! data: then nothing after it is proved, and all of it may lie inside that record. If one bit of a
//! length is wrong, the checksum tells which one. A shorter length than the one found is only believed
//! if the records after it are proved: a payload can be made so that a part of it has its checksum.
//!
//! Work is linear: a walk keeps the chain that it followed last, and a [`Budget`](crate::search::Budget)
//! ends the search where records lie within each other so that it could be quadratic.

#[cfg(test)]
mod cost;
#[cfg(test)]
mod tests;

use std::io;

use crate::log::evidence::{Border, Evidence};
use crate::log::framing::Framing;
use crate::log::learnt::{Learnt, Near, Walked};
use crate::log::trailers::Trailers;
use crate::scan::{Bad, Damage, READ_BYTES, Scanned, Scanner, Stop};
use crate::search::{Budget, find_intact_within};
use crate::slice::{part, part_mut};
use crate::storage::{File, read_full};

/// How far a length that leads back to the damage is looked for.
const TRAILER_SEARCH_BYTES: u64 = 64 << 20;
/// What a report says once the search for records has ended.
const GIVEN_UP: &str =
    "; records lie within each other here, and the search for intact ones was ended";
/// A longer record is only looked at if the budget has its bytes.
const SHORT_RECORD_BYTES: u64 = 4 << 10;
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
    /// Whether the records from there on may lie inside a damaged record.
    pub inside: bool,
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
    /// It may lie inside a damaged record.
    inside: bool,
}

impl Next {
    /// After one damaged record.
    fn one_lost(offset: u64, proved: bool) -> Self {
        Self { offset, ordinal: None, lost: Some(1), proved, inside: false }
    }
}

/// Find the next record after the damage; `name` is the damaged record's. `learnt` is the same walk's.
pub fn resync<F: Framing>(
    stretch: Stretch<'_, F>,
    why: &Stop,
    name: &str,
    evidence: &Evidence,
    is_beyond_limit: bool,
    learnt: &mut Learnt<F>,
) -> io::Result<Resync> {
    let Stretch { file, at, end, ordinal, .. } = stretch;
    let data_end = learnt.begin(file, at, end)?;
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
    let near = learnt.near(file);
    let mut search = Search::new(stretch, near, data_end, evidence, learnt);
    let next = match torn {
        true => None,
        false => search.next(why)?.map(|next| search.judged(next)),
    };
    let lost = next.as_ref().and_then(|next| {
        next.lost.or_else(|| next.ordinal.zip(ordinal).and_then(|(next, at)| next.checked_sub(at)))
    });
    let to = next.as_ref().map_or(end, |next| next.offset);
    let goes_on = next.as_ref().filter(|next| next.offset < end);
    // At a border may lie another damaged record.
    let intact = match goes_on {
        Some(next) => search.parses_up_to(next.offset, end)?,
        None => false,
    };
    let given_up = if search.learnt.search.is_spent { GIVEN_UP } else { "" };
    let damage = Damage {
        offset: at,
        end: to,
        reason: format!("{name}: {}{given_up}", why.reason()),
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
        return Ok(Resync { damage: Some(damage), next: Some((inner, None)), inside: true, after });
    }
    let inside = goes_on.is_some_and(|next| next.inside);
    Ok(Resync { damage: Some(damage), next: goes_on.map(counted), inside, after: None })
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
    Resync { damage: Some(damage), next: Some((at, found)), ..Resync::default() }
}

/// Find the next intact record inside the damaged record that a rescue reads: none is proved there.
pub fn next_inside<F: Framing>(
    stretch: Stretch<'_, F>,
    why: &Stop,
    name: &str,
    learnt: &mut Learnt<F>,
) -> io::Result<Resync> {
    let Stretch { file, framing, at, end, .. } = stretch;
    let next = find(&learnt.near(file), framing, at + 1, end, &mut learnt.search)?;
    let reason = format!("{name}: {}", why.reason());
    let to = next.unwrap_or(end);
    let damage = Damage { offset: at, end: to, reason, next_intact: next, ..Damage::default() };
    let next = next.map(|next| (next, None));
    Ok(Resync { damage: Some(damage), next, inside: true, after: None })
}

/// The first intact record in `from..to`, as long as there is a budget.
fn find<F: Framing>(
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

struct Search<'a, F: Framing> {
    stretch: Stretch<'a, F>,
    /// The log's bytes, those near the damage in memory.
    near: Near<'a>,
    learnt: &'a mut Learnt<F>,
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

    fn next(&mut self, why: &Stop) -> io::Result<Option<Next>> {
        let at = self.stretch.at;
        // Both lengths agree and only the content is damaged.
        if let Stop::Bad(Bad { framed_len: Some(len), .. }) = why {
            return self.after_framed(at + len).map(Some);
        }
        // A length that leads over a known border is none.
        let limit = self.border.map_or(u64::MAX, |border| border.offset);
        let claimed = self.claimed_end(at)?.filter(|&claimed| claimed <= limit);
        // What is torn ends with the data, and so may a record in its payload.
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

    /// Nothing is proved inside what a torn record may claim, whatever else is damaged there.
    fn judged(&self, next: Next) -> Next {
        match self.learnt.is_torn {
            true => Next { proved: false, inside: true, ..next },
            false => next,
        }
    }

    fn find(&mut self, from: u64, to: u64) -> io::Result<Option<u64>> {
        find(&self.near, self.stretch.framing, from, to, &mut self.learnt.search)
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
    fn first_inside(&mut self, end: u64) -> io::Result<Option<u64>> {
        self.find(self.stretch.at + 1, end)
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
        let mut trailers = std::mem::take(&mut self.learnt.trailers);
        let found = self.end_by(&mut trailers, at);
        self.learnt.trailers = trailers;
        found
    }

    fn end_by(&mut self, trailers: &mut Trailers, at: u64) -> io::Result<Option<u64>> {
        if F::TRAILER_BYTES == 0 {
            return Ok(None);
        }
        let most = self.border.map_or(self.reach, |border| border.offset.min(self.reach));
        let most = most.min(at.saturating_add(TRAILER_SEARCH_BYTES));
        let Stretch { file, framing, .. } = self.stretch;
        let mut after = at;
        while let Some(end) =
            trailers.next_end(file, framing, at, after, most, &mut self.learnt.search)?
        {
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

    /// Whether an intact record begins here.
    fn parses_at(&mut self, offset: u64) -> io::Result<bool> {
        self.parses_up_to(offset, self.reach)
    }

    fn parses_up_to(&mut self, offset: u64, end: u64) -> io::Result<bool> {
        let claimed = self.claimed_end(offset)?.filter(|&claimed| claimed <= end);
        let len = claimed.map_or(0, |claimed| claimed - offset);
        if len > SHORT_RECORD_BYTES && !self.learnt.search.take(len) {
            return Ok(false);
        }
        let mut scanner = Scanner::of_frames(self.stretch.framing, offset, end);
        Ok(matches!(scanner.next(&self.near)?, Scanned::Record { .. }))
    }

    /// Where the damaged record at `at` ends, if one of its lengths leads on.
    fn own_end(&mut self, trailers: &mut Trailers, at: u64) -> io::Result<Option<u64>> {
        if let Some(end) = self.end_by(trailers, at)? {
            return Ok(Some(end));
        }
        let claimed = self.claimed_end(at)?;
        match claimed {
            Some(end) if self.is_end(end) || self.parses_at(end)? => Ok(claimed),
            _ => Ok(None),
        }
    }

    /// Where the damaged record at `at` ends, if only one bit of its length is wrong: its checksum
    /// says so. A format whose records end with their length needs no such guess.
    fn corrected_end(&mut self, at: u64) -> io::Result<Option<u64>> {
        if F::TRAILER_BYTES > 0 {
            return Ok(None);
        }
        let mut head = [0; HEAD_BYTES_MAX];
        if read_full(&self.near, &mut head, at)? < F::HEAD_BYTES {
            return Ok(None);
        }
        let framing = self.stretch.framing;
        let len_of = |head: &[u8]| framing.claimed_len(part(head, ..F::HEAD_BYTES));
        let most = self.border.map_or(self.reach, |border| border.offset.min(self.reach));
        let (as_found, left) = (len_of(&head), most.saturating_sub(at));
        let mut guesses = Vec::new();
        for (byte, bit) in
            (0..F::HEAD_BYTES).flat_map(|byte| (0..8).map(move |bit| (byte, 1 << bit)))
        {
            let mut other = head;
            part_mut(&mut other, byte..=byte).iter_mut().for_each(|byte| *byte ^= bit);
            let len = len_of(&other).filter(|&len| Some(len) != as_found && len <= left);
            guesses.extend(len.map(|len| (len, at + byte as u64, bit)));
        }
        // The longest one that fits: what lies in the record is not taken for what follows it.
        guesses.sort_unstable_by(|a, b| b.cmp(a));
        for (len, byte, bit) in guesses {
            if !self.learnt.corrections.take(len) {
                return Ok(None);
            }
            let mut scanner = Scanner::of_frames(framing, at, at + len);
            let found = scanner.next(&self.near.flipped(byte, bit))?;
            if matches!(found, Scanned::Record { .. }) {
                return Ok(Some(at + len));
            }
        }
        Ok(None)
    }

    /// Where the record at `offset` ends by its head.
    fn claimed_end(&self, offset: u64) -> io::Result<Option<u64>> {
        let mut head = [0; HEAD_BYTES_MAX];
        let read = read_full(&self.near, &mut head, offset)?;
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
        let read = read_full(&self.near, &mut trailer, at)?;
        if read < bytes {
            return Ok(None);
        }
        let len = self.stretch.framing.trailed_len(part(&trailer, ..bytes));
        Ok(len.and_then(|len| end.checked_sub(len)))
    }

    /// Walk from a candidate until it is proved or the chain breaks. One that stands on the chain that
    /// was walked last has its answer there.
    fn follow(&mut self, candidate: u64) -> io::Result<Chain> {
        let goal = (self.border.map(|border| border.offset), self.data_end);
        let mut known = self.learnt.chain.take().filter(|chain| chain.goal == goal);
        if let Some(chain) = &mut known
            && self.catch_up(chain, candidate)?
        {
            let led_to = self.walk(chain, candidate);
            self.learnt.chain = known;
            return led_to;
        }
        let scanner = || Scanner::of_frames(self.stretch.framing, candidate, self.reach);
        let (tail, head) = (scanner(), scanner());
        let mut chain = Walked { tail, head, records: 0, is_broken: false, goal };
        let led_to = self.walk(&mut chain, candidate);
        // One inside a payload is forgotten.
        let led_further = |known: &Walked<F>| known.head.position() > chain.head.position();
        self.learnt.chain = Some(known.filter(led_further).unwrap_or(chain));
        led_to
    }

    /// Whether a candidate stands on a chain, which begins there then.
    fn catch_up(&mut self, chain: &mut Walked<F>, candidate: u64) -> io::Result<bool> {
        let mut trailers = std::mem::take(&mut self.learnt.trailers);
        let mut at = chain.tail.position();
        while at < candidate && at < chain.head.position() {
            if !self.step(&mut chain.tail, &mut trailers)? {
                break;
            }
            chain.records = chain.records.saturating_sub(1);
            at = chain.tail.position();
        }
        self.learnt.trailers = trailers;
        // Alone, what broke the chain may be intact: it does not follow the record before.
        let is_new = chain.is_broken && chain.records == 0;
        Ok(at == candidate && !is_new)
    }

    /// Step over a record, or over a damaged one of which a length leads on.
    fn step(&mut self, scanner: &mut Scanner<F>, trailers: &mut Trailers) -> io::Result<bool> {
        let at = scanner.position();
        match scanner.next(&self.near)? {
            Scanned::Record { .. } => {}
            Scanned::Stop { .. } => match self.own_end(trailers, at)? {
                Some(next) => scanner.seek(next),
                None => {
                    self.pay_for_claimed(at)?;
                    return Ok(false);
                }
            },
            Scanned::End => return Ok(false),
        }
        Ok(self.learnt.search.take(scanner.position() - at))
    }

    /// Pay for the bytes of a damaged record, which were read. A length at its end is read first where
    /// the record is long.
    fn pay_for_claimed(&mut self, at: u64) -> io::Result<()> {
        let claimed = self.claimed_end(at)?.filter(|&end| end <= self.reach);
        let most = if F::TRAILER_BYTES > 0 { READ_BYTES as u64 } else { u64::MAX };
        self.learnt.search.take(claimed.map_or(0, |end| most.min(end - at)));
        Ok(())
    }

    fn walk(&mut self, chain: &mut Walked<F>, candidate: u64) -> io::Result<Chain> {
        let mut ahead = std::mem::take(&mut self.learnt.ahead);
        let led_to = self.walk_on(chain, &mut ahead, candidate);
        self.learnt.ahead = ahead;
        led_to
    }

    fn walk_on(
        &mut self,
        chain: &mut Walked<F>,
        ahead: &mut Trailers,
        candidate: u64,
    ) -> io::Result<Chain> {
        let Stretch { framing, at, .. } = self.stretch;
        let border = self.border.filter(|border| border.offset >= candidate);
        let largest = at.saturating_add(framing.record_bytes_max());
        loop {
            let (end, records) = (chain.head.position(), chain.records);
            let broken = Chain { proved: false, end, ordinal: None };
            if let Some(border) = border {
                if end == border.offset {
                    let ordinal = border.ordinal.and_then(|next| next.checked_sub(records));
                    return Ok(Chain { proved: true, ordinal, ..broken });
                }
                if end > border.offset {
                    return Ok(broken);
                }
            }
            if records > 0 && (end >= self.data_end || end > largest) {
                return Ok(Chain { proved: true, ..broken });
            }
            if chain.is_broken {
                return Ok(broken);
            }
            match self.step(&mut chain.head, ahead)? {
                true => chain.records += 1,
                false => chain.is_broken = true,
            }
        }
    }
}
