//! The search for the next record after damage. Cursors, splits, Arrow, verify and salvage all
//! search here, and therefore give one answer.
//!
//! Payloads may contain whole records. So bytes after a damaged record that parse need not be a
//! record of the log. The following rules decide, in order:
//!
//! 1. After the last acknowledged byte nothing counts: the first damage there is a torn tail.
//! 2. A damaged record counts as one lost record if its length leads on to an intact record, to a
//!    known border or to the end of the data; nothing inside the record is tried.
//! 3. A record is *proved* if the records from it on reach a known border or the end of the data,
//!    or outlive the largest possible end of the damaged record.
//! 4. Inside the stretch that the damaged record's own length claims, a record counts only if a
//!    chain from the record on is proved, which refutes the claim.
//! 5. Any other intact record counts, but unproved.
//!
//! A rescue also takes the records that rule 4 leaves out, and those of rule 2 if only one length
//! leads on, all unproved.
//!
//! A length that leads beyond the data may belong to a torn record, whose payload may end with the
//! data. Then no later record is proved, because all of them may lie inside the torn record. If one
//! bit of a length is wrong, the checksum shows which bit. A shorter length than the found length
//! is believed only if the records after it are proved: an attacker can make a payload in which a
//! part has the right checksum.
//!
//! Work is linear: a walk keeps the last chain, and a [`Budget`](crate::scan::search::Budget) ends
//! the search if records lie within each other and make the search quadratic.

mod chain;
#[cfg(test)]
pub mod cost;
mod learnt;
mod lengths;
mod search;
mod trailers;

use std::io;

use crate::log::evidence::Evidence;
use crate::scan::framing::Framing;
use crate::scan::{Bad, Damage, Stop};

pub use learnt::Learnt;
pub use search::Stretch;
use search::{Next, Search, find};

/// The end of the reason in a report, once the budget is spent.
const GIVEN_UP: &str =
    "; records lie within each other here, and the search for intact ones was ended";

/// How to continue after damage.
#[derive(Clone, Debug, Default)]
pub struct Resync {
    /// The damage passed over; `None` if only unwritten zeros follow.
    pub damage: Option<Damage>,
    /// The byte to continue at, and the number of the record there, if known.
    pub next: Option<(u64, Option<u64>)>,
    /// Whether the records from there on may lie inside a damaged record.
    pub inside: bool,
    /// For a rescue that reads inside the damaged record: the place after the record.
    pub after: Option<After>,
}

/// The place after a damaged record that a rescue reads inside.
#[derive(Clone, Copy, Debug)]
pub struct After {
    /// The byte, and the number of the record there if it is known.
    pub place: (u64, Option<u64>),
    /// Whether that record is proved.
    pub proved: bool,
    /// Whether no record follows. Then the damaged record may reach up to `place`.
    pub is_end: bool,
}

/// Find the next record after the damage. `name` is the damaged record's name, `learnt` the walk's
/// memory.
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
        true => seeded!(None, "torn-record-gives-inner-ones" => search.next(why)?),
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
        ..Damage::default()
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
        let after = match &next {
            Some(next) => After { place: counted(next), proved: next.proved, is_end: false },
            None => After { place: (until, None), proved: false, is_end: true },
        };
        let (next, after) = (Some((inner, None)), Some(after));
        return Ok(Resync { damage: Some(damage), next, inside: true, after });
    }
    let inside = goes_on.is_some_and(|next| next.inside);
    Ok(Resync { damage: Some(damage), next: goes_on.map(counted), inside, after: None })
}

/// Continue with an intact record that does not follow the record before: its own bytes are
/// undamaged.
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
        ..Damage::default()
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

#[cfg(test)]
mod tests;
