//! The right answer of every reader of a damaged log: the rules, without a line of the crate.
//!
//! 1. Above the end of an *open* mark nothing was acknowledged: the first damage there ends the log.
//!    A closed mark says nothing about the bytes after its end.
//! 2. A damaged record with an intact framing is one lost record. Intact: the length leads to an intact
//!    record, a known border or the end of the data, or the trailer leads back to the record's start.
//!    The next record is proved as in 3.
//! 3. Otherwise the next record is *proved* if its chain of records reaches a known border or
//!    the end of the data exactly, or outlives the longest record that could begin at the damage.
//! 4. The damaged record's head claims a stretch. Readers return records inside the stretch only if a
//!    chain from inside is proved, which refutes the claim. Otherwise only a salvage copies them.
//! 5. After the stretch, or without a claim, readers also return unproved records.
//! 6. A record whose head claims more bytes than exist may be torn, and its payload may hold all later
//!    bytes: nothing is proved there, but readers return the records.
//! 7. A damaged record without a length at its end may match its checksum with one changed bit in its
//!    length. The changed length then decides. If it ends before the claimed end, a chain must prove it.

use std::cell::Cell;

use crate::support::formats::framing::{Framing, Parsed};

#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// Borders between records: entries of the index, the end of the mark.
    pub borders: Vec<usize>,
    pub durable: Option<usize>,
    pub acknowledged: Option<usize>,
    pub limit: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub at: usize,
    pub len: usize,
    pub proved: bool,
    /// The record may lie inside a damaged record: only a salvage returns it.
    pub enclosed: bool,
}

/// A damaged stretch, and the place where the readers continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    pub at: usize,
    pub next: Option<usize>,
}

#[derive(Clone, Debug)]
pub struct Answer {
    pub pieces: Vec<Piece>,
    pub stretches: Vec<Stretch>,
    pub verdict: &'static str,
    pub valid_end: usize,
    /// The valid prefix ends below the mark.
    pub lost: bool,
    /// Lengths or trailers agree by chance: readers must agree with each other, but not with this answer.
    pub ambiguous: bool,
}

impl Answer {
    pub fn given(&self) -> impl Iterator<Item = &Piece> {
        self.pieces.iter().filter(|piece| !piece.enclosed)
    }

    pub fn prefix(&self) -> usize {
        self.given().take_while(|piece| piece.at < self.valid_end).count()
    }
}

/// The answer for some bytes. `edges`, of the appended records, only show where the rules cannot decide.
pub fn answer(
    framing: Framing,
    bytes: &[u8],
    start: usize,
    edges: &[usize],
    e: &Evidence,
) -> Answer {
    let data_end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |at| at + 1);
    let ambiguous = Cell::new(false);
    let torn = Cell::new(false);
    let log = Log { framing, bytes, data_end, edges, e, ambiguous: &ambiguous, torn: &torn };
    let (mut pieces, mut stretches) = (Vec::new(), Vec::new());
    let (mut at, mut proved) = (start, true);
    let mut verdict = "clean";
    while at < bytes.len() {
        if let Parsed::Intact(len) = log.parse(at) {
            pieces.push(Piece { at, len, proved, enclosed: false });
            at += len;
            continue;
        }
        if at >= data_end {
            verdict = "open";
            break;
        }
        if e.durable.is_some_and(|durable| at >= durable) {
            stretches.push(Stretch { at, next: None });
            break;
        }
        let found = log.resync(at);
        pieces.extend(found.enclosed);
        let next = found.next.map(|(next, _)| next).filter(|&next| next < data_end);
        stretches.push(Stretch { at, next });
        let Some((next, is_proved)) = found.next else { break };
        (at, proved) = (next, is_proved && !torn.get());
    }
    let end = bytes.len();
    let acknowledged = e.acknowledged.unwrap_or(0);
    let first_damage = stretches.first().map(|stretch| stretch.at);
    let valid_end = first_damage.unwrap_or(at.min(end));
    if stretches.is_empty() && valid_end < acknowledged {
        stretches.push(Stretch { at: valid_end, next: None });
    }
    let after = |piece: &Piece| piece.at > valid_end;
    if valid_end < acknowledged || (!stretches.is_empty() && pieces.iter().any(after)) {
        verdict = "corrupt";
    } else if !stretches.is_empty() {
        verdict = "torn";
    }
    let (lost, ambiguous) = (valid_end < acknowledged, ambiguous.get());
    Answer { pieces, stretches, verdict, valid_end, lost, ambiguous }
}

struct Log<'a> {
    framing: Framing,
    bytes: &'a [u8],
    data_end: usize,
    edges: &'a [usize],
    e: &'a Evidence,
    ambiguous: &'a Cell<bool>,
    /// A damaged record claimed more bytes than exist.
    torn: &'a Cell<bool>,
}

#[derive(Default)]
struct Resync {
    next: Option<(usize, bool)>,
    enclosed: Vec<Piece>,
}

impl Log<'_> {
    fn parse(&self, at: usize) -> Parsed {
        self.framing.parse(self.bytes, at, self.e.limit)
    }

    fn is_intact(&self, at: usize) -> bool {
        matches!(self.parse(at), Parsed::Intact(_))
    }

    fn border_from(&self, at: usize) -> Option<usize> {
        let there = |border: &&usize| (at..=self.bytes.len()).contains(*border);
        self.e.borders.iter().filter(there).min().copied()
    }

    /// Whether the data ends at `at`; a deed's own length ends in zeros.
    fn is_end(&self, at: usize) -> bool {
        let zeros = if self.framing.is_book() { 7 } else { 0 };
        at == self.bytes.len() || (self.data_end..=self.data_end + zeros).contains(&at)
    }

    /// Whether a record that ends at `end` leads to an intact record or to the end.
    fn leads(&self, end: usize) -> bool {
        let known = self.e.borders.contains(&end) || self.is_end(end) || self.is_intact(end);
        end <= self.bytes.len() && known
    }

    /// The end of the damaged record at `at`, by its own lengths.
    fn end_by_framing(&self, at: usize) -> Option<usize> {
        let Parsed::Bad { claim, agrees } = self.parse(at) else { return None };
        let most = self.border_from(at + 1).unwrap_or(self.bytes.len());
        let claimed = claim.map(|len| at + len).filter(|&end| end <= most);
        let by_trailer = |&end: &usize| {
            self.framing.start_by_trailer(self.bytes, end) == Some(at) && self.leads(end)
        };
        let trailed = (at + self.framing.around()..=most).find(by_trailer);
        trailed.or(claimed.filter(|&end| agrees || self.leads(end)))
    }

    /// The end of the damaged record at `at`, if its checksum matches with one changed bit in the length.
    fn end_by_one_bit(&self, at: usize, most: usize) -> Option<usize> {
        if self.framing.is_book() {
            return None;
        }
        let bits = self.framing.length().flat_map(|byte| (0..8).map(move |bit| (byte, bit)));
        let ends = bits.filter_map(|(byte, bit)| {
            let mut bytes = self.bytes.get(at..most)?.to_vec();
            *bytes.get_mut(byte)? ^= 1 << bit;
            match self.framing.parse(&bytes, 0, self.e.limit) {
                Parsed::Intact(len) => Some(at + len),
                Parsed::Bad { .. } => None,
            }
        });
        ends.max()
    }

    fn resync(&self, at: usize) -> Resync {
        let Parsed::Bad { claim, .. } = self.parse(at) else { unreachable!() };
        if let Some(end) = self.end_by_framing(at) {
            let between = self.edges.iter().filter(|&&edge| edge > at && edge <= end).count();
            if between != 1 || !self.edges.contains(&end) || !self.edges.contains(&at) {
                self.ambiguous.set(true);
            }
            let next = (end < self.bytes.len()).then(|| (end, self.is_proved(at, end)));
            return Resync { next, enclosed: self.inside(at + 1, end) };
        }
        let border = self.border_from(at + 1);
        let most = border.unwrap_or(self.bytes.len());
        // A length that crosses a known border is wrong.
        let claimed = claim.map(|len| at.saturating_add(len));
        let claimed = claimed.filter(|&end| border.is_none_or(|border| end <= border));
        let is_torn = claimed.is_some_and(|end| end > self.data_end && !self.is_end(end));
        if let Some(end) = self.end_by_one_bit(at, most) {
            if !self.edges.contains(&end) || !self.edges.contains(&at) {
                self.ambiguous.set(true);
            }
            let is_shorter = claimed.is_some_and(|claimed| end < claimed);
            let proved = !is_shorter || self.is_proved(at, end);
            self.torn.set(self.torn.get() || (is_torn && !proved));
            let next = (end < self.bytes.len()).then_some((end, proved));
            return Resync { next, enclosed: self.inside(at + 1, end) };
        }
        self.torn.set(self.torn.get() || is_torn);
        let first_from = |from: usize| (from..most).find(|&at| self.is_intact(at));
        let mut found = Resync::default();
        let mut from = at + 1;
        if let Some(end) = claimed.map(|end| end.min(self.bytes.len())) {
            let mut inside = (at + 1..end).filter(|&inner| self.is_intact(inner));
            if !inside.any(|inner| self.is_proved(at, inner)) {
                found.enclosed = self.inside(at + 1, end);
                from = end;
            }
        }
        found.next = match first_from(from) {
            Some(next) => Some((next, !self.torn.get() && self.is_proved(at, next))),
            None => border.map(|border| (border, true)),
        };
        let is_wrong = |(next, proved): (usize, bool)| {
            // Damage at a border counts as one stretch or two. A chain may end by chance at the end of the data.
            let is_damaged = next < self.bytes.len() && !self.is_intact(next);
            is_damaged || (proved && !self.edges.contains(&next))
        };
        if found.next.is_some_and(is_wrong) {
            self.ambiguous.set(true);
        }
        found
    }

    fn inside(&self, mut at: usize, end: usize) -> Vec<Piece> {
        let mut pieces = Vec::new();
        while at < end {
            match self.parse(at) {
                Parsed::Intact(len) => {
                    if at + len > end {
                        self.ambiguous.set(true);
                    }
                    pieces.push(Piece { at, len, proved: false, enclosed: true });
                    at += len;
                }
                Parsed::Bad { .. } => at += 1,
            }
        }
        pieces
    }

    /// Whether the chain from `from` proves that a record begins there, after damage at `damage`.
    fn is_proved(&self, damage: usize, from: usize) -> bool {
        let border = self.border_from(from);
        let longest = damage.saturating_add(self.framing.around() + self.e.limit);
        let mut at = from;
        loop {
            if border == Some(at) || at > longest {
                return true;
            }
            match border {
                Some(border) if at > border => {
                    // Across a known border: certainly no record of the log.
                    self.ambiguous.set(true);
                    return false;
                }
                None if self.is_end(at) => return true,
                _ => {}
            }
            at = match self.parse(at) {
                Parsed::Intact(len) => at + len,
                Parsed::Bad { .. } => match self.end_by_framing(at) {
                    Some(end) => end,
                    None => return false,
                },
            };
        }
    }
}
