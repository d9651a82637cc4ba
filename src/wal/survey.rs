//! Going on behind damage: where the next record begins.
//!
//! Payloads may contain whole records, so what parses behind a broken one need not be one. A
//! candidate counts if the chain of records from it reaches a place known to lie between records:
//! an entry of the index, the mark, or the end of the data. Where the damaged record's own length
//! leads to such a chain, nothing inside it is tried.

use std::io;
use std::sync::Arc;

use super::format::{Codec, HEADER_BYTES};
use crate::locks::{Mutex, lock};
use crate::scan::{Damage, Found, Scanner, Stop, end_of_data, find_intact};
use crate::sidecar::Index;
use crate::storage::{File, read_full};

/// A chain of intact records this long is believed without reaching a known place.
const CONVINCING_BYTES: u64 = 8 << 20;

/// Places known to lie between records.
#[derive(Clone, Debug)]
pub struct Borders {
    /// The index, as far as the mark vouches for it.
    pub index: Arc<Mutex<Index>>,
    /// The end of the records that the mark vouches for, if it is this log's.
    pub known_end: Option<u64>,
    /// Behind this byte nothing was acknowledged: what lies behind damage there is a torn tail, in
    /// which the records in a payload cannot be told from those of the log.
    pub durable_end: Option<u64>,
}

impl Borders {
    /// The first known border at or behind a byte.
    fn first_from(&self, offset: u64) -> Option<u64> {
        if let Some(entry) = lock(&self.index).first_from(offset) {
            return Some(entry.offset);
        }
        self.known_end.filter(|&end| end >= offset)
    }
}

/// How to go on behind damage.
#[derive(Clone, Debug)]
pub struct Resync {
    /// The damage passed over; `None` if only unwritten zeros follow.
    pub damage: Option<Damage>,
    /// Where to go on.
    pub next: Option<u64>,
}

/// Find the next record behind the damage at `offset`, before `end`.
pub fn resync(
    file: &dyn File,
    codec: Codec,
    offset: u64,
    why: &Stop,
    end: u64,
    borders: &Borders,
) -> io::Result<Resync> {
    let found = |to: u64, next: Option<u64>, lost: Option<u64>| Resync {
        damage: Some(Damage {
            offset,
            end: to,
            reason: format!("record at lsn {offset}: {}", why.reason()),
            next_intact: next,
            first_lost: None,
            records_lost: lost,
        }),
        next,
    };
    let data_end = end_of_data(file, offset, end)?;
    if data_end == offset {
        return Ok(Resync { damage: None, next: None });
    }
    if borders.durable_end.is_some_and(|durable| offset >= durable) {
        return Ok(found(end, None, None));
    }
    // If its length can be right, all that is left may be the inside of a record that was torn:
    // what looks like records there is believed only if it leads to a place known from elsewhere.
    let may_be_inside = matches!(why, Stop::Incomplete { .. });
    let known_only = may_be_inside
        || claimed_end(file, codec, offset, end)?.is_some_and(|claimed| claimed >= data_end);
    let believed =
        |candidate| follow_chain(file, codec, candidate, data_end, end, borders, known_only);
    // Above it the records in a torn payload cannot be told from others, so nothing is looked for
    // there; but a record begins exactly there, if one does.
    let durable = borders.durable_end.filter(|&durable| durable <= end);
    let limit = durable.unwrap_or(end);
    let behind = durable.filter(|&durable| durable < data_end);
    if let Some(claimed) = claimed_end(file, codec, offset, end)? {
        if durable == Some(claimed) {
            return Ok(found(claimed, behind, Some(1)));
        }
        if claimed < data_end.min(limit) && believed(claimed)?.0 {
            return Ok(found(claimed, Some(claimed), Some(1)));
        }
    }
    match find_chain(file, codec, offset + 1, limit, &believed)?.or(behind) {
        Some(next) => Ok(found(next, Some(next), None)),
        None => Ok(found(end, None, None)),
    }
}

/// The first candidate whose chain is believed.
fn find_chain(
    file: &dyn File,
    codec: Codec,
    start: u64,
    end: u64,
    believed: &dyn Fn(u64) -> io::Result<(bool, u64)>,
) -> io::Result<Option<u64>> {
    let mut from = start;
    while let Some(candidate) = find_intact(file, &codec, from, end)? {
        match believed(candidate)? {
            (true, _) => return Ok(Some(candidate)),
            (false, broken_at) => from = broken_at.max(candidate + 1),
        }
    }
    Ok(None)
}

/// Where the record at `offset` ends if its length can be believed.
fn claimed_end(file: &dyn File, codec: Codec, offset: u64, end: u64) -> io::Result<Option<u64>> {
    let mut header = [0; HEADER_BYTES as usize];
    let read = read_full(file, &mut header, offset)?;
    let [_, _, _, _, length @ ..] = header;
    let length = u64::from(u32::from_le_bytes(length));
    let claimed = offset + HEADER_BYTES + length;
    let possible = read == header.len() && length <= codec.record_bytes_max && claimed <= end;
    Ok(possible.then_some(claimed))
}

/// Walk from a candidate until a known border is reached, or the chain breaks; and where.
fn follow_chain(
    file: &dyn File,
    codec: Codec,
    candidate: u64,
    data_end: u64,
    end: u64,
    borders: &Borders,
    known_only: bool,
) -> io::Result<(bool, u64)> {
    let border = borders.first_from(candidate);
    if border == Some(candidate) {
        return Ok((parses_at(file, codec, candidate, end)?, candidate));
    }
    let mut scanner = Scanner::new(codec, candidate, end);
    let mut intact = 0;
    loop {
        let at = scanner.position();
        let convinced = border.is_none() && at - candidate > CONVINCING_BYTES;
        let ends = !known_only && at >= data_end;
        if intact > 0 && (border == Some(at) || ends || convinced) {
            return Ok((true, at));
        }
        if border.is_some_and(|border| at > border) {
            return Ok((false, at));
        }
        match scanner.next(file)? {
            Found::Record { .. } => intact += 1,
            // Another damaged record whose length leads on to an intact one.
            Found::Stop { why: Stop::Bad(bad), .. } if bad.what == "checksum" && intact > 0 => {
                match claimed_end(file, codec, at, end)? {
                    Some(claimed) if parses_at(file, codec, claimed, end)? => scanner.seek(claimed),
                    _ => return Ok((false, at)),
                }
            }
            Found::Stop { .. } | Found::End => return Ok((false, at)),
        }
    }
}

fn parses_at(file: &dyn File, codec: Codec, offset: u64, end: u64) -> io::Result<bool> {
    let mut scanner = Scanner::new(codec, offset, end);
    Ok(matches!(scanner.next(file)?, Found::Record { .. }))
}
