//! Searches in bytes of which no record's border is known.

use std::io;

use crate::log::framing::Framing;
use crate::scan::{READ_BYTES, Step, trailer_fits};
use crate::slice::{part, part_mut};
use crate::storage::{File, read_full};

/// The last byte of `start..end` that is not zero, plus one; `start` if all are zero.
pub fn end_of_data(file: &dyn File, start: u64, end: u64) -> io::Result<u64> {
    let mut block = vec![0; end.saturating_sub(start).min(READ_BYTES as u64) as usize];
    let mut stop = end;
    while stop > start {
        let from = stop.saturating_sub(READ_BYTES as u64).max(start);
        if file.data_from(from)? >= stop {
            stop = from;
            continue;
        }
        let target = part_mut(&mut block, ..(stop - from) as usize);
        let read = read_full(file, target, from)?;
        let seen = part(target, ..read);
        if let Some(at) = seen.iter().rposition(|&byte| byte != 0) {
            return Ok(from + at as u64 + 1);
        }
        stop = from;
    }
    Ok(start)
}

/// The first offset in `start..end` at which an intact record lies.
///
/// Tries every byte. A hostile file could make that quadratic, so the bytes checksummed are limited
/// to `8 * (end - start) + 64 MiB`; beyond that the answer is the offset reached, as if intact:
/// the caller is then as careful as it can be.
pub fn find_intact<P: Framing>(
    file: &dyn File,
    parse: &P,
    start: u64,
    end: u64,
) -> io::Result<Option<u64>> {
    let mut budget = (end.saturating_sub(start)).saturating_mul(8).saturating_add(64 << 20);
    let mut block = vec![0; end.saturating_sub(start).min(2 * READ_BYTES as u64) as usize];
    let mut record = Vec::new();
    let mut at = start;
    while at < end {
        // A record may begin with a few zeros of its own.
        at = at.max(file.data_from(at)?.saturating_sub(P::HEAD_BYTES as u64)).min(end);
        let want = (end - at).min(block.len() as u64) as usize;
        let target = part_mut(&mut block, ..want);
        let read = read_full(file, target, at)?;
        let there = part(target, ..read);
        if there.is_empty() {
            break;
        }
        // Keep half of the block after each candidate, so that short records are complete.
        let last = read < want || at + there.len() as u64 >= end;
        let candidates = if last { there.len() } else { there.len() / 2 };
        for i in 0..candidates {
            let offset = at + i as u64;
            let tail = part(there, i..);
            let need = match parse.parse(tail) {
                Step::Record { .. } => return Ok(Some(offset)),
                Step::Bad(_) | Step::Blank => continue,
                Step::NeedMore(need) => need,
            };
            if need > end - offset || need <= tail.len() as u64 {
                continue;
            }
            if trailer_fits(file, parse, tail, offset, need)?.is_err() {
                continue;
            }
            if need > budget {
                return Ok(Some(offset));
            }
            budget -= need;
            record.resize(need as usize, 0);
            let read = read_full(file, &mut record, offset)?;
            if let Step::Record { .. } = parse.parse(part(&record, ..read)) {
                return Ok(Some(offset));
            }
        }
        at += candidates as u64;
    }
    Ok(None)
}
