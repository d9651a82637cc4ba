//! Where the lengths at the ends of records lead back to. After damage the same bytes are asked for
//! many beginnings, so each is looked at once: else a log of many damaged records takes the square of
//! its size to read.

use std::collections::BTreeSet;
use std::io;

use crate::log::framing::Framing;
use crate::slice::{part, part_mut};
use crate::storage::{File, read_full};

const BLOCK_BYTES: usize = 256 << 10;
/// What is known takes no more memory than some 50 MiB; beyond that, bytes are looked at again.
const SPANS_MAX: usize = 1 << 20;

/// What lies between a byte and a length that leads back to it, as far as it was looked for.
#[derive(Debug, Default)]
pub struct Trailers {
    /// Spans that begin before are not known.
    from: u64,
    /// Spans that end after are not known.
    scanned: u64,
    /// Where each begins and ends.
    spans: BTreeSet<(u64, u64)>,
}

impl Trailers {
    /// The first end after byte `after`, and not after `most`, whose length leads back to `at`.
    pub fn next_end<F: Framing>(
        &mut self,
        file: &dyn File,
        framing: F,
        at: u64,
        after: u64,
        most: u64,
    ) -> io::Result<Option<u64>> {
        let first = at + F::RECORD_BYTES_MIN - 1;
        if at < self.from || first > self.scanned {
            *self = Self { from: at, scanned: first, spans: BTreeSet::new() };
        }
        loop {
            let found = self.spans.range((at, after.saturating_add(1))..=(at, most)).next();
            if found.is_some() || self.scanned >= most {
                return Ok(found.map(|&(_, end)| end));
            }
            let to = most.min(self.scanned + BLOCK_BYTES as u64);
            if self.spans.len() < SPANS_MAX {
                let spans = spans_ending_in(file, framing, self.scanned, to)?;
                self.spans.extend(spans.into_iter().filter(|&(start, _)| start >= self.from));
                self.scanned = to;
            } else {
                return search(file, framing, at, after.max(self.scanned), most);
            }
        }
    }
}

/// The same without remembering anything.
fn search<F: Framing>(
    file: &dyn File,
    framing: F,
    at: u64,
    after: u64,
    most: u64,
) -> io::Result<Option<u64>> {
    let mut from = after;
    while from < most {
        let to = most.min(from + BLOCK_BYTES as u64);
        let spans = spans_ending_in(file, framing, from, to)?;
        if let Some((_, end)) = spans.into_iter().find(|&(start, _)| start == at) {
            return Ok(Some(end));
        }
        from = to;
    }
    Ok(None)
}

/// Begin and end of what the lengths span that end in the bytes `from + 1..=to`.
fn spans_ending_in<F: Framing>(
    file: &dyn File,
    framing: F,
    from: u64,
    to: u64,
) -> io::Result<Vec<(u64, u64)>> {
    let len = F::TRAILER_BYTES;
    let begin = (from + 1).saturating_sub(len as u64);
    let mut block = vec![0; (to - begin) as usize];
    let read = read_full(file, part_mut(&mut block, ..), begin)?;
    let ends = begin + len as u64..;
    let lengths = part(&block, ..read).windows(len).map(|bytes| framing.trailed_len(bytes));
    let spans = lengths.zip(ends);
    Ok(spans.filter_map(|(len, end)| Some((end.checked_sub(len?)?, end))).collect())
}
