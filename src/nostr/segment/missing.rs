//! Pages of a segment that were stored durably and are not there any more.

use std::ops::Range;

use super::Segment;
use crate::scan::Bad;

impl Segment {
    /// Pages that were stored up to a byte, durably. Those that are not there are damage: walks report it, and
    /// what is appended comes after it, where it would have come before the loss.
    pub(in crate::nostr) fn expect_pages(&mut self, up_to: u32) {
        if self.end < up_to {
            self.missing = self.end..up_to;
            self.end = up_to;
        }
    }

    /// The pages that are missing.
    pub(in crate::nostr) fn missing(&self) -> Range<u32> {
        self.missing.clone()
    }

    /// How many bytes of pages are there between two offsets.
    pub(in crate::nostr) fn bytes_there(&self, Range { start, end }: Range<u32>) -> u32 {
        let Range { start: from, end: to } = self.missing;
        let lacks = end.min(to).saturating_sub(start.max(from));
        (end - start).saturating_sub(lacks)
    }

    /// What is wrong with a page if it is missing.
    #[inline]
    pub(in crate::nostr) fn missing_at(&self, offset: u32) -> Option<Bad> {
        let Range { start, end } = self.missing;
        self.missing.contains(&offset).then_some(Bad {
            what: "pages are missing from byte",
            found: start.into(),
            against: "events were stored up to",
            expected: end.into(),
            framed_len: None,
        })
    }
}
