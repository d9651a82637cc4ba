//! Going on behind damage: where the next deed begins, and which number it has.
//!
//! Payloads may contain whole deeds, so what parses behind a broken frame need not be one. A
//! candidate counts if the length trailer before it spans exactly the damage, or if the chain from
//! it reaches a place known to lie between deeds: an entry of the index, the mark, or the end of the
//! data. Behind the mark none counts: the first damage there is a torn tail, to the end of the file,
//! so that all who look see the deeds that opening for write keeps.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::blocks::vouched;
use super::format::{FRAMING_BYTES, HEAD_BYTES, MUG_BYTES, Packed, reach};
use super::look::Looked;
use super::options::Options;
use super::recover::beyond_limit;
use crate::scan::{Bad, Damage, Found, Parse, Scanner, Step, Stop, end_of_data, find_intact};
use crate::sidecar::{Index, Mark, sidecar_dir};
use crate::storage::{Access, File, read_full};

/// A chain of intact deeds this long is believed without reaching a known place.
const CONVINCING_BYTES: u64 = 8 << 20;

/// Places known to lie between deeds.
#[derive(Clone, Debug)]
pub struct Borders {
    /// The index, as far as the mark vouches for it.
    pub index: Arc<Mutex<Index>>,
    /// The mark, if it is this log's.
    pub mark: Option<Mark>,
    /// Behind this byte nothing was acknowledged: what lies behind damage there is a torn tail, in
    /// which the deeds in a payload cannot be told from those of the log.
    pub durable_end: Option<u64>,
}

impl Borders {
    /// The borders that a log's sidecar knows.
    pub fn of(options: &Options, dir: &Path, looked: &Looked) -> Self {
        let index = vouched(options, dir, looked.mark.as_ref(), Access::Read);
        let (mark, durable_end) = (looked.mark, looked.findings.durable_end);
        Self { index: Arc::new(Mutex::new(index)), mark, durable_end }
    }

    /// No borders but those in the file.
    pub fn unknown(dir: &Path) -> Self {
        let index = Index::empty(&sidecar_dir(dir));
        Self { index: Arc::new(Mutex::new(index)), mark: None, durable_end: None }
    }

    /// The first known border at or behind a byte: its offset and the number of the deed there.
    fn first_from(&self, offset: u64) -> Option<(u64, u64)> {
        let index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = index.first_from(offset) {
            return Some((entry.offset, entry.ordinal));
        }
        drop(index);
        let mark = self.mark.filter(|mark| mark.records > 0 && mark.end >= offset)?;
        Some((mark.end, mark.first + mark.records))
    }
}

/// How to go on behind damage.
#[derive(Clone, Debug)]
pub struct Resync {
    /// The damage passed over; `None` if only unwritten zeros follow.
    pub damage: Option<Damage>,
    /// Where to go on, and the number of the deed there if it is known.
    pub next: Option<(u64, Option<u64>)>,
}

/// Find the next deed behind the damage at `offset`, before `end`.
pub fn resync(
    file: &dyn File,
    codec: Packed,
    offset: u64,
    why: &Stop,
    end: u64,
    event: Option<u64>,
    borders: &Borders,
) -> io::Result<Resync> {
    let damage = |to: u64, next: Option<u64>, lost: Option<u64>| Damage {
        offset,
        end: to,
        reason: match event {
            Some(event) => format!("deed {event}: {}", why.reason()),
            None => why.reason(),
        },
        next_intact: next,
        first_lost: event,
        records_lost: lost,
    };
    let unacknowledged = borders.durable_end.is_some_and(|durable| offset >= durable);
    // Neither length can be trusted there: a sector that is lost leaves zeros or what was in it
    // before, and what stands where a trailer should be may be a payload's.
    if unacknowledged && !beyond_limit(file, offset, Some(why), end)? {
        let written = end_of_data(file, offset, end)? > offset;
        return Ok(Resync { damage: written.then(|| damage(end, None, None)), next: None });
    }
    if let Stop::Bad(Bad { framed_len: Some(len), .. }) = why {
        let mut next = offset + len;
        let mut intact = parses_at(file, codec, next, end)?;
        // A damaged length may meet the equal length of the next deed where the trailer should be.
        let sooner = next.saturating_sub(8);
        if !intact
            && start_by_trailer(file, sooner)? == Some(offset)
            && parses_at(file, codec, sooner, end)?
        {
            (next, intact) = (sooner, true);
        }
        let number = event.and_then(|event| event.checked_add(1));
        return Ok(Resync {
            damage: Some(damage(next, intact.then_some(next), Some(1))),
            next: Some((next, number)),
        });
    }
    let data_end = end_of_data(file, offset, end)?;
    if data_end == offset {
        return Ok(Resync { damage: None, next: None });
    }
    let reach = reach(data_end, end);
    let claimed = claimed_end(file, codec, offset)?;
    let claimed_fits = match claimed.filter(|&claimed| claimed < data_end) {
        Some(claimed) => parses_at(file, codec, claimed, reach)?,
        None => false,
    };
    let mut from = offset + 1;
    while let Some(candidate) = find_intact(file, &codec, from, reach)? {
        // One damaged deed up to here, or two whose border the first one's length tells. The
        // trailer first: a length that was damaged may point at a deed further on.
        let lost = match start_by_trailer(file, candidate)? {
            Some(start) if start == offset => Some(1),
            _ if claimed_fits && claimed.is_some_and(|claimed| candidate >= claimed) => Some(1),
            start if start.is_some() && start == claimed => Some(2),
            _ => None,
        };
        if lost.is_some() {
            let number = event.zip(lost).and_then(|(event, lost)| event.checked_add(lost));
            let damage = Some(damage(candidate, Some(candidate), lost));
            return Ok(Resync { damage, next: Some((candidate, number)) });
        }
        let chain = follow_chain(file, codec, candidate, data_end, end, borders)?;
        if chain.believed && !claimed_fits && !unacknowledged {
            let number = chain.first_event;
            let lost = match (number, event) {
                (Some(number), Some(event)) => number.checked_sub(event),
                _ => None,
            };
            let damage = Some(damage(candidate, Some(candidate), lost));
            return Ok(Resync { damage, next: Some((candidate, number)) });
        }
        from = match claimed.filter(|_| claimed_fits) {
            Some(claimed) => chain.end.min(claimed).max(candidate + 1),
            None => chain.end.max(candidate + 1),
        };
    }
    Ok(Resync { damage: Some(damage(end, None, None)), next: None })
}

/// Where the deed at `offset` ends if its length can be believed.
fn claimed_end(file: &dyn File, codec: Packed, offset: u64) -> io::Result<Option<u64>> {
    let mut head = [0; HEAD_BYTES as usize];
    let read = read_full(file, &mut head, offset)?;
    let len = match head.first_chunk() {
        Some(len) if read >= 8 => u64::from_le_bytes(*len),
        _ => return Ok(None),
    };
    let possible = (MUG_BYTES..=codec.deed_bytes_max).contains(&len);
    Ok(possible.then(|| offset.saturating_add(len + FRAMING_BYTES)))
}

/// Where the deed that ends at `end` begins, by its length trailer alone.
fn start_by_trailer(file: &dyn File, end: u64) -> io::Result<Option<u64>> {
    let mut trailer = [0; 8];
    let Some(at) = end.checked_sub(8) else { return Ok(None) };
    let read = read_full(file, &mut trailer, at)?;
    // Zeros are no deed's trailer, although they would span a damage of just the framing's size.
    let len = Some(u64::from_le_bytes(trailer)).filter(|&len| read == 8 && len >= MUG_BYTES);
    Ok(len.and_then(|len| end.checked_sub(len.checked_add(FRAMING_BYTES)?)))
}

fn parses_at(file: &dyn File, codec: Packed, offset: u64, end: u64) -> io::Result<bool> {
    let mut scanner = Scanner::new(codec, offset, end);
    Ok(matches!(scanner.next(file)?, Found::Record { .. }))
}

struct Chain {
    believed: bool,
    end: u64,
    first_event: Option<u64>,
}

/// Walk from a candidate until a border is reached or the chain breaks.
fn follow_chain(
    file: &dyn File,
    codec: Packed,
    candidate: u64,
    data_end: u64,
    end: u64,
    borders: &Borders,
) -> io::Result<Chain> {
    let border = borders.first_from(candidate);
    let mut scanner = Scanner::new(codec, candidate, end);
    let mut deeds = 0;
    loop {
        let at = scanner.position();
        if let Some((offset, ordinal)) = border.filter(|(offset, _)| *offset == at) {
            return Ok(Chain {
                believed: true,
                end: offset,
                first_event: ordinal.checked_sub(deeds),
            });
        }
        let convinced = border.is_none() && at - candidate > CONVINCING_BYTES;
        if at >= data_end || convinced {
            return Ok(Chain { believed: true, end: at, first_event: None });
        }
        match scanner.next(file)? {
            Found::Record { .. } => deeds += 1,
            Found::Stop { why: Stop::Bad(Bad { framed_len: Some(len), .. }), .. } => {
                scanner.seek(at + len);
                deeds += 1;
            }
            Found::Stop { .. } | Found::End => {
                return Ok(Chain { believed: false, end: at, first_event: None });
            }
        }
    }
}

/// Whether `bytes` begin with a whole deed by its lengths alone, so that no reading is needed.
pub fn is_whole(codec: Packed, bytes: &[u8]) -> bool {
    matches!(Packed { check: false, ..codec }.parse(bytes), Step::Record { .. })
}
