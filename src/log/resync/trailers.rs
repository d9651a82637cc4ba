//! The lengths at the ends of records, and the bytes they lead back to. After damage, a search asks the same bytes
//! about many beginnings. `Trailers` reads each byte once: otherwise the time to read a log with many damaged records
//! grows with the square of the log's size.

use std::collections::BTreeSet;
use std::io;

use crate::ground::slice::{part, part_mut};
use crate::scan::framing::{Framing, FramingExt};
use crate::scan::search::Budget;
use crate::storage::{File, READ_BYTES, read_full};

/// The largest number of spans, about 50 MiB. Beyond the limit, a search reads bytes again.
const SPANS_MAX: usize = 1 << 20;
/// A jump further ahead than this drops the spans.
const AHEAD_BYTES_MAX: u64 = 4 << 20;

/// Spans: from the byte that a length leads back to, to the end of the length.
#[derive(Debug, Default)]
pub struct Trailers {
    /// Spans that begin before are not known.
    from: u64,
    /// Spans that end after are not known.
    scanned: u64,
    /// The begin and the end of each span.
    spans: BTreeSet<(u64, u64)>,
}

impl Trailers {
    /// The first end after byte `after`, and not after `most`, whose length leads back to `at`.
    /// Every read comes out of the budget: a walk that jumps far ahead reads the bytes again.
    pub fn next_end<F: Framing>(
        &mut self,
        file: &dyn File,
        framing: F,
        at: u64,
        after: u64,
        most: u64,
        budget: &mut Budget,
    ) -> io::Result<Option<u64>> {
        if after >= most {
            return Ok(None);
        }
        let first = at + F::RECORD_BYTES_MIN - 1;
        // A little ahead, the bytes in between are looked at as well: a walk along a chain of records
        // comes back, and would find nothing known.
        if at < self.from || first > self.scanned.saturating_add(AHEAD_BYTES_MAX) {
            *self = Self { from: at, scanned: first, spans: BTreeSet::new() };
        }
        loop {
            let found = self.spans.range((at, after.saturating_add(1))..=(at, most)).next();
            if found.is_some() || self.scanned >= most {
                return Ok(found.map(|&(_, end)| end));
            }
            let to = most.min(self.scanned + READ_BYTES as u64);
            if self.spans.len() < SPANS_MAX {
                if !budget.take(to - self.scanned) {
                    return Ok(None);
                }
                let spans = spans_ending_in(file, framing, self.scanned, to)?;
                self.spans.extend(spans.into_iter().filter(|&(start, _)| start >= self.from));
                self.scanned = to;
            } else {
                return search(file, framing, at, after.max(self.scanned), most, budget);
            }
        }
    }
}

/// Search without remembering spans.
fn search<F: Framing>(
    file: &dyn File,
    framing: F,
    at: u64,
    after: u64,
    most: u64,
    budget: &mut Budget,
) -> io::Result<Option<u64>> {
    let mut from = after;
    while from < most {
        let to = most.min(from + READ_BYTES as u64);
        if !budget.take(to - from) {
            break;
        }
        let spans = spans_ending_in(file, framing, from, to)?;
        if let Some((_, end)) = spans.into_iter().find(|&(start, _)| start == at) {
            return Ok(Some(end));
        }
        from = to;
    }
    Ok(None)
}

/// Begin and end of the spans whose lengths end in the bytes `from + 1..=to`.
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
    let lengths = part(&block, ..read).windows(len).map(|bytes| framing.claimed_len(bytes));
    let spans = lengths.zip(ends);
    Ok(spans.filter_map(|(len, end)| Some((end.checked_sub(len?)?, end))).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::*;
    use crate::book::{Codec, Layout};
    use crate::storage::counted::Counted;

    fn budget() -> Budget {
        Budget::for_bytes(1 << 30)
    }

    fn records(count: usize) -> (Counted, Codec, Vec<u64>) {
        let framing = Codec::new(Layout::Packed, 1 << 32);
        let (mut file, mut edges) = (Counted::default(), vec![0]);
        for n in 0..count {
            framing.encode(&mut file.bytes, 0, &vec![0xff; n % 90]);
            edges.push(file.bytes.len() as u64);
        }
        (file, framing, edges)
    }

    /// A fuzzer found a log of 215 KB with a damaged deed every 60 bytes: for each deed, the search
    /// looked at all later bytes, twenty times over, and took minutes.
    #[test]
    fn each_byte_is_read_once_for_many_beginnings() {
        let (file, framing, edges) = records(20_000);
        let most = *edges.last().unwrap();
        let mut trailers = Trailers::default();
        for edge in edges.windows(2) {
            let end =
                trailers.next_end(&file, framing, edge[0], edge[0], most, &mut budget()).unwrap();
            assert_eq!(end, Some(edge[1]));
            // Hardly another length leads back, so the test asks for all bytes.
            trailers.next_end(&file, framing, edge[0], edge[1], most, &mut budget()).unwrap();
        }
        let read = file.read();
        assert!(read < most + most / 100, "{read} bytes read of {most}");
    }

    /// A walk along a chain of records looked far ahead between two records, dropped its knowledge
    /// of the bytes between, and read them again: 12 s for 200 KB.
    #[test]
    fn a_look_ahead_forgets_nothing() {
        let (file, framing, edges) = records(20_000);
        let most = *edges.last().unwrap();
        let mut trailers = Trailers::default();
        for (near, far) in edges.iter().zip(&edges[10_000..]) {
            for at in [*near, *far] {
                trailers.next_end(&file, framing, at, at, most, &mut budget()).unwrap();
            }
        }
        let read = file.read();
        assert!(read < most + most / 100, "{read} bytes read of {most}");
    }

    #[test]
    fn known_trailers_equal_a_search_in_any_order() {
        let (file, framing, edges) = records(2_000);
        let most = *edges.last().unwrap();
        let mut trailers = Trailers::default();
        for at in (0..most).step_by(37).chain([5, 0, most - 30]) {
            for (after, most) in [(at, most), (at + 100, most), (at, at + 60), (most, most)] {
                let most = most.min(edges[2_000]);
                let known =
                    trailers.next_end(&file, framing, at, after, most, &mut budget()).unwrap();
                let found = search(&file, framing, at, after, most, &mut budget()).unwrap();
                assert_eq!(known, found, "from {at} after {after} to {most}");
            }
        }
    }
}
