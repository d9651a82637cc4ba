//! Searches in bytes without a known border of a record.

use std::io;

use crate::ground::slice::{part, part_mut};
use crate::scan::framing::{Framing, FramingExt};
use crate::scan::{Bad, Step, trailer_fits};
use crate::storage::{File, READ_BYTES, read_full};

/// The first read of a search, which most often finds a record close by. Each further read is twice
/// as long.
const FIRST_BLOCK_BYTES: usize = 16 << 10;

/// The bytes that may still be read where a hostile file could make a search quadratic.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    left: u64,
    /// Whether more was asked for than was left.
    pub is_spent: bool,
}

impl Budget {
    /// For a search in this many bytes: `8 * bytes + 64 MiB`.
    pub fn for_bytes(bytes: u64) -> Self {
        Self { left: bytes.saturating_mul(8).saturating_add(64 << 20), is_spent: false }
    }

    /// So many bytes.
    #[cfg(test)]
    pub fn of(left: u64) -> Self {
        Self { left, is_spent: false }
    }

    /// Take `bytes` of the budget. After a first refusal, refuse everything.
    pub fn take(&mut self, bytes: u64) -> bool {
        match self.left.checked_sub(bytes).filter(|_| !self.is_spent) {
            Some(left) => self.left = left,
            None => self.is_spent = true,
        }
        !self.is_spent
    }
}

/// The first offset in `start..end` at which an intact record lies.
///
/// Tries every byte. A hostile file could make the time quadratic, so the search checksums at most
/// `8 * (end - start) + 64 MiB` bytes. Beyond the limit the answer is the offset reached, as if a
/// record were intact there: the caller then takes the most careful course.
pub fn find_intact<P: Framing>(
    file: &dyn File,
    parse: &P,
    start: u64,
    end: u64,
) -> io::Result<Option<u64>> {
    find_intact_within(file, parse, start, end, &mut Budget::for_bytes(end.saturating_sub(start)))
}

/// As [`find_intact`], with the rest of a budget. A spent budget ends the search, and the answer is
/// the offset reached.
pub fn find_intact_within<P: Framing>(
    file: &dyn File,
    parse: &P,
    start: u64,
    end: u64,
    budget: &mut Budget,
) -> io::Result<Option<u64>> {
    let mut block_bytes = FIRST_BLOCK_BYTES;
    let mut block = Vec::new();
    let mut record = Vec::new();
    let mut at = start;
    while at < end {
        // A record may begin with a few zeros of its own.
        at = at.max(file.data_from(at)?.saturating_sub(P::HEAD_BYTES as u64)).min(end);
        let want = (end - at).min(block_bytes as u64) as usize;
        block_bytes = (2 * block_bytes).min(2 * READ_BYTES);
        block.resize(want, 0);
        let target = part_mut(&mut block, ..);
        let read = read_full(file, target, at)?;
        let there = part(target, ..read);
        if there.is_empty() {
            break;
        }
        // Keep half of the block after each candidate, so that short records are complete in
        // memory.
        let last = read < want || at + there.len() as u64 >= end;
        let candidates = if last { there.len() } else { there.len() / 2 };
        for i in 0..candidates {
            let offset = at + i as u64;
            let tail = part(there, i..);
            let need = match parse.parse(tail) {
                Step::Record { .. } => return Ok(Some(offset)),
                Step::Bad(Bad { what: "checksum", .. }) => {
                    let len = parse.claimed_len(part(tail, ..P::HEAD_BYTES.min(tail.len())));
                    if !budget.take(len.unwrap_or_default()) {
                        return Ok(Some(offset));
                    }
                    continue;
                }
                Step::Bad(_) | Step::Blank => continue,
                Step::NeedMore(need) => need,
            };
            if need > end - offset || need <= tail.len() as u64 {
                continue;
            }
            if !matches!(trailer_fits(file, parse, tail, offset, need)?, Some(Ok(()))) {
                continue;
            }
            if !budget.take(need) {
                return Ok(Some(offset));
            }
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

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, clippy::unwrap_used)]

    use super::*;
    use crate::scan::toy::Toy;
    use crate::storage::counted::Counted;

    const BLOCK: usize = READ_BYTES;
    const FRAMING_BYTES: usize = Toy::FRAMING_BYTES;

    fn codec() -> Toy {
        Toy::new(1 << 32)
    }

    /// A record of the given size.
    fn record(size: usize) -> Vec<u8> {
        let mut record = Vec::new();
        codec().encode(&mut record, 7, &vec![0xff; size - FRAMING_BYTES]);
        record
    }

    /// A file of `len` bytes, all `byte` except in the given parts.
    fn file(len: usize, byte: u8, parts: &[(usize, &[u8])]) -> Counted {
        let mut file = Counted::of(vec![byte; len]);
        for (at, part) in parts {
            file.bytes[*at..*at + part.len()].copy_from_slice(part);
        }
        file
    }

    #[test]
    fn records_are_found_at_any_place_and_length() {
        let len = 6 * BLOCK;
        for size in [30, 5_000, BLOCK, BLOCK + 1, 2 * BLOCK, 2 * BLOCK + 1, 3 * BLOCK] {
            for at in [0, 1, 8_000, BLOCK - 20, BLOCK, BLOCK + 1, 2 * BLOCK - 10, len - size] {
                for byte in [0, 0xee] {
                    let file = file(len, byte, &[(at, &record(size))]);
                    let find = |from: usize, to: usize| {
                        find_intact(&file, &codec(), from as u64, to as u64).unwrap()
                    };
                    let what = format!("{size} bytes at {at} between {byte}s");
                    assert_eq!(find(0, len), Some(at as u64), "{what}");
                    assert_eq!(find(at, at + size), Some(at as u64), "{what}");
                    assert_eq!(find(0, at + size - 1), None, "{what}, cut");
                    assert_eq!(find(at + 1, len), None, "{what}, from its second byte on");
                }
            }
        }
    }

    #[test]
    fn holes_are_not_searched() {
        let mut file = file(40 * BLOCK, 0, &[(38 * BLOCK + 7, &record(50))]);
        file.has_holes = true;
        let found = find_intact(&file, &codec(), 10, 40 * BLOCK as u64).unwrap();
        assert_eq!(found, Some(38 * BLOCK as u64 + 7));
        assert!(file.read() <= 2 * BLOCK as u64, "{}", file.read());
    }

    #[test]
    fn bytes_that_are_gone_are_no_record() {
        let mut file = file(3 * BLOCK, 0xee, &[(100, &record(2 * BLOCK + 50))]);
        let end = file.bytes.len() as u64;
        file.bytes.truncate(2 * BLOCK);
        assert_eq!(find_intact(&file, &codec(), 0, end).unwrap(), None);
        file.bytes.clear();
        assert_eq!(find_intact(&file, &codec(), 0, end).unwrap(), None);
    }

    /// Heads and trailers that lie within each other like brackets, none with a true checksum: each
    /// byte would be checksummed as often as there are pairs.
    #[test]
    fn a_hostile_file_costs_bounded_reads() {
        let (len, pairs) = (3 * BLOCK, 300);
        let mut file = file(len, 0xee, &[]);
        let need = |pair: usize| len - 16 * pair;
        for pair in 0..pairs {
            let length = (need(pair) - FRAMING_BYTES + 4) as u64;
            for at in [8 * pair, len - 8 * pair - 8] {
                file.bytes[at..at + 8].copy_from_slice(&length.to_le_bytes());
            }
        }
        let mut budget = 8 * len + (64 << 20);
        let tried = (0..pairs).take_while(|&pair| {
            let pays = need(pair) <= budget;
            budget -= if pays { need(pair) } else { 0 };
            pays
        });
        let tried = tried.count();
        assert!((50..250).contains(&tried), "{tried}");
        let found = find_intact(&file, &codec(), 0, len as u64).unwrap();
        assert_eq!(found, Some(8 * tried as u64));
        assert!(file.read() < 90 << 20, "{}", file.read());
    }

    /// A pattern of 8 bytes, each the head of a record that lies in the block. Nobody counted these
    /// candidates, and 4 MB cost some 134 GB of checksums.
    #[test]
    fn bytes_in_the_block_are_counted() {
        // Each length is also the trailer of the record that another length claims.
        let (len, claim) = (4_usize << 20, 100_004_u64);
        let file = Counted::of(claim.to_le_bytes().repeat(len / 8));
        let found = find_intact(&file, &Toy::new(1 << 20), 0, len as u64).unwrap();
        let tried = (8 * len as u64 + (64 << 20)) / (claim + 20);
        assert_eq!(found, Some(8 * tried));
    }
}
