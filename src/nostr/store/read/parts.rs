//! Split a walk into parts that threads can walk at once.

use std::collections::VecDeque;

use crate::nostr::bytes::page::PAGE_BYTES;

use super::{Events, Scan};

impl Events {
    /// Take the next parts off a forward walk of a whole store. There are `count` parts at most,
    /// each with about `bytes` bytes of one segment. The parts and the rest of this walk, in order,
    /// return the same events and the same damage as the whole walk.
    pub(crate) fn take_parts(&mut self, count: usize, bytes: u64) -> Vec<Self> {
        // Cut at an offset where pages of any size begin.
        let bytes = bytes.next_multiple_of((*PAGE_BYTES.end()).into());
        let mut parts = Vec::new();
        while self.is_whole && parts.len() < count {
            let Some((segment, Scan::Forward(scan))) = &mut self.scan else {
                if self.scan.is_some() || !self.begin_segment() {
                    break;
                }
                continue;
            };
            let (from, end) = (scan.position(), u64::from(segment.end()));
            // A remnant much shorter than a part joins the part before.
            let part = match end.saturating_sub(from) > bytes + bytes / 4 {
                true => Some((segment.clone(), Scan::Forward(scan.split_off_until(from + bytes)))),
                false => self.scan.take(),
            };
            let new = Self::new(VecDeque::new(), self.include, self.on_corrupt, false, self.now);
            let is_logged = self.is_logged.clone();
            parts.push(Self { scan: part, is_whole: false, sums: self.sums, is_logged, ..new });
        }
        parts
    }
}
