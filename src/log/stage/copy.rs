//! Staged records on their way into a log.

use super::records::StagedReader;
use crate::error::Result;
use crate::log::extent::Extent;
use crate::log::format::Format;
use crate::log::{Shared, State};
use crate::scan::framing::{Frame, Framing};
use crate::sidecar::INDEX_BLOCK_BYTES;
use crate::transaction::{Part, Target};

/// The size of a write.
const COPIED_BYTES: usize = 1 << 20;

impl<F: Format> Shared<F> {
    /// Append the parts except for their first `skip` bytes, a number of whole records.
    pub(super) fn append_parts(
        &self,
        state: &mut State,
        job: &str,
        parts: &[Part],
        skip: u64,
    ) -> Result<()> {
        let total = parts.iter().map(|part| part.bytes).sum::<u64>() - skip;
        self.begin(state, total)?;
        let mut copy = Copy::after(state, skip);
        for part in parts {
            let opened = self.open_staged(job, part);
            let mut staged = opened.map_err(|e| self.take_back(state, e))?;
            while let Some((record, frame)) = staged
                .next()
                .map_err(|e| seeded!(self.take_back(state, e), "damaged-part-stays" => e))?
            {
                copy.push::<F::Framing>(record, frame.sum());
                if copy.bytes.len() >= COPIED_BYTES {
                    copy.flush(self, state)?;
                }
            }
        }
        copy.flush(self, state)?;
        // Before the first head's write no reader sees the new records.
        self.write(state, &copy.head, state.extent.end)?;
        self.cover(state, copy.extent, None)?;
        for &(ordinal, offset) in &copy.cuts {
            self.close_block(state, ordinal, offset);
        }
        self.counters.appended(copy.appended, total);
        Ok(())
    }

    pub(super) fn open_staged<'a>(
        &self,
        job: &str,
        part: &'a Part,
    ) -> Result<StagedReader<'a, F::Framing>> {
        StagedReader::open(&self.desk(), job, part, self.appending)
    }
}

/// Records on their way into a log.
struct Copy {
    /// Bytes of the parts that are there already.
    skip: u64,
    /// The log with the copied records.
    extent: Extent,
    /// Records copied.
    appended: u64,
    /// The first record's head.
    head: Vec<u8>,
    /// The bytes of the next write, and their place.
    bytes: Vec<u8>,
    at: u64,
    /// Begin of the index's open block.
    block_start: u64,
    /// Possible ends of blocks for the index: number of the next record, and byte.
    cuts: Vec<(u64, u64)>,
}

impl Copy {
    fn after(state: &State, skip: u64) -> Self {
        let State { extent, block_start, .. } = *state;
        let (head, bytes, cuts) = (Vec::new(), Vec::with_capacity(COPIED_BYTES), Vec::new());
        Self { skip, extent, appended: 0, head, bytes, at: extent.end, block_start, cuts }
    }

    fn push<C: Framing>(&mut self, record: &[u8], sum: u32) {
        let len = record.len() as u64;
        if self.skip > 0 {
            self.skip = self.skip.saturating_sub(len);
            return;
        }
        let mut rest = record;
        if self.head.is_empty() {
            let (head, body) = record.split_at(C::HEAD_BYTES.min(record.len()));
            (self.head, rest) = (head.to_vec(), body);
            self.at += head.len() as u64;
        }
        self.bytes.extend_from_slice(rest);
        self.appended += 1;
        let offset = self.extent.end;
        self.extent.push_parts(offset, len, sum);
        if self.extent.end >= self.block_start + INDEX_BLOCK_BYTES {
            self.block_start = self.extent.end;
            self.cuts.push((self.extent.next(), self.extent.end));
        }
    }

    fn flush<F: Format>(&mut self, shared: &Shared<F>, state: &mut State) -> Result<()> {
        shared.write(state, &self.bytes, self.at)?;
        self.at += self.bytes.len() as u64;
        self.bytes.clear();
        Ok(())
    }
}
