//! Durable pages of a segment that are missing now.

use std::ops::Range;
use std::path::Path;

use super::Segment;
use crate::error::{Error, Result};
use crate::nostr::bytes::page::Header;
use crate::scan::Bad;
use crate::storage::{Memory, Storage as _};

impl Segment {
    /// A segment with a missing file: all its pages are missing.
    pub(crate) fn missing_as(path: &Path, segment: u32, page_bytes: u32, end: u32) -> Result<Self> {
        let nothing = Memory::new().create_new(Path::new("/missing"), 0o600);
        let nothing = nothing.map_err(|e| Error::io("stand in for the segment", path, e))?;
        let (records, created_at, compacted_at) = (0, 0, 0);
        let next_free = page_bytes;
        let header = Header { page_bytes, created_at, segment, records, next_free, compacted_at };
        let mut segment = Self::with_header(nothing.into(), path, header)?;
        segment.expect_pages(end.max(page_bytes.saturating_mul(2)));
        Ok(segment)
    }

    /// Whether the segment's file is missing.
    pub(crate) fn is_missing(&self) -> bool {
        self.missing.start == self.header.page_bytes
            && self.missing.end == self.end
            && self.header.created_at == 0
    }

    /// Expect pages up to a byte, because they were stored durably. Missing pages are damage, and
    /// walks report them. Appends come after the missing pages, at the same offset as before the
    /// loss.
    pub(crate) fn expect_pages(&mut self, up_to: u32) {
        if self.end < up_to {
            self.missing = self.end..up_to;
            self.end = up_to;
        }
    }

    /// The missing pages.
    pub(crate) fn missing(&self) -> Range<u32> {
        self.missing.clone()
    }

    /// The bytes of existing pages between two offsets.
    pub(crate) fn bytes_there(&self, Range { start, end }: Range<u32>) -> u32 {
        let Range { start: from, end: to } = self.missing;
        let lacks = end.min(to).saturating_sub(start.max(from));
        (end - start).saturating_sub(lacks)
    }

    /// The error of a page, if the page is missing.
    #[inline]
    pub(crate) fn missing_at(&self, offset: u32) -> Option<Bad> {
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
