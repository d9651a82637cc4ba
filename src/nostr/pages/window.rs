//! A part of a segment's file in memory, from which walks and reads take heads and records.

use std::io;
use std::sync::Arc;

use crate::ground::slice::{part, part_mut};
use crate::nostr::bytes::event::Flags;
use crate::nostr::bytes::page::{self, Head};
use crate::nostr::bytes::record::{self, LONG_HEAD_BYTES};
use crate::scan::Bad;
use crate::storage::{File, read_full};

/// Bytes read at a time: small enough to stay in the processor's cache until they are parsed.
pub(super) const READ_BYTES: usize = 256 << 10;

/// A part of a file in memory.
#[derive(Debug)]
pub(super) struct Window {
    file: Arc<dyn File>,
    /// The end of what is read.
    pub(super) end: u64,
    /// Bytes read at a time.
    pub(super) block_bytes: usize,
    pub(super) buf: Vec<u8>,
    /// File offset of `buf[0]`.
    pub(super) start: u64,
}

impl Window {
    pub(crate) fn new(file: Arc<dyn File>, end: u64, block_bytes: usize) -> Self {
        Self { file, end, block_bytes, buf: Vec::new(), start: 0 }
    }

    /// At most `len` bytes from an offset on: fewer only at the end.
    #[inline]
    pub(super) fn at(&mut self, offset: u64, len: usize) -> io::Result<&[u8]> {
        self.near(offset, offset, len)
    }

    /// The same, reading from another offset on if these bytes are not in memory.
    #[inline]
    pub(super) fn near(&mut self, from: u64, offset: u64, len: usize) -> io::Result<&[u8]> {
        let want = (len as u64).min(self.end.saturating_sub(offset));
        let there = self.start..=self.start + self.buf.len() as u64;
        if !there.contains(&offset) || !there.contains(&(offset + want)) {
            let block = (self.block_bytes as u64).max(offset - from + want);
            self.buf.resize(block.min(self.end.saturating_sub(from)) as usize, 0);
            self.start = from;
            let read = read_full(&*self.file, &mut self.buf, from)?;
            self.buf.truncate(read);
        }
        // Nothing, where the file ends before it.
        let bytes = self.buf.get((offset - self.start) as usize..).unwrap_or_default();
        Ok(part(bytes, ..bytes.len().min(want as usize)))
    }

    /// Replace the flags of a record that is in memory.
    pub(super) fn set_flags(&mut self, offset: u32, flags: Flags) {
        let at = u64::from(offset).saturating_sub(self.start) as usize;
        record::set_flags(part_mut(&mut self.buf, at..), flags);
    }

    /// The beginning of the page at an offset.
    pub(crate) fn head(&mut self, offset: u32, page_bytes: u32) -> io::Result<Result<Head, Bad>> {
        let left = self.end.saturating_sub(offset.into());
        let page = self.at(offset.into(), LONG_HEAD_BYTES)?;
        Ok(Head::parse(page, page_bytes, left))
    }

    /// Put the bytes of a record together.
    pub(super) fn gather(
        &mut self,
        offset: u32,
        head: Head,
        page_bytes: u32,
        out: &mut Vec<u8>,
    ) -> io::Result<Result<(), Bad>> {
        out.clear();
        let first = head.record_len.min(page_bytes) as usize;
        out.extend_from_slice(self.at(offset.into(), first)?);
        for number in 0..head.continuations {
            let at = u64::from(offset) + u64::from(number + 1) * u64::from(page_bytes);
            let page = self.at(at, page_bytes as usize)?;
            match page::chunk(page, head.chunk_bytes(number, page_bytes)) {
                Ok(chunk) => out.extend_from_slice(chunk),
                Err(bad) => return Ok(Err(bad)),
            }
        }
        Ok(Ok(()))
    }
}
