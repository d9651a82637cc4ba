//! Appending a long record: its payload is given in parts.

use std::io::{self, Read};

use crate::error::{ErrorKind, Result};
use crate::ground::slice::part_mut;
use crate::log::format::{Format, TagOf};
use crate::log::read::payload::PART_BYTES;
use crate::log::write::append::{Appended, Wanted};
use crate::log::{Log, Shared, State};
use crate::scan::framing::{Framing, FramingExt};

impl<F: Format> Log<F> {
    /// Append one record whose payload of `len` bytes is read while it is written. Appends and new
    /// walks wait meanwhile.
    pub fn append_payload(
        &self,
        tag: TagOf<F>,
        len: u64,
        payload: &mut dyn Read,
    ) -> Result<Appended> {
        let shared = self.writable()?;
        let Ok(len) = usize::try_from(len) else {
            let message = format!("payload of {len} bytes, this machine addresses {}", usize::MAX);
            return Err(shared.error(ErrorKind::TooLarge, message));
        };
        let mut read = 0;
        shared.append_filled(tag, len, Wanted::default(), &mut |part| {
            let mut filled = 0;
            while filled < part.len() {
                match payload.read(part_mut(part, filled..)) {
                    Ok(0) => {
                        let message = format!("the payload ends after {read} bytes, size {len}");
                        return Err(shared.error(ErrorKind::InvalidArgument, message));
                    }
                    Ok(more) => (filled, read) = (filled + more, read + more),
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Err(e) => return Err(shared.fail("read the payload to append", e)),
                }
            }
            Ok(())
        })
    }
}

impl<F: Format> Shared<F> {
    /// Append one record whose payload `fill` gives in parts, each as long as the bytes to fill.
    pub(super) fn append_filled(
        &self,
        tag: TagOf<F>,
        len: usize,
        wanted: Wanted,
        fill: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<Appended> {
        self.append_with(len, wanted, false, |state| self.write_in_parts(state, tag, len, fill))
    }

    /// The head is written last: before, no reader sees the record.
    fn write_in_parts(
        &self,
        state: &mut State,
        tag: TagOf<F>,
        payload_len: usize,
        fill: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<(u64, u32)> {
        let framing = self.appending;
        let (mut head, mut tail) = framing.around(tag, payload_len);
        let len = head.len() as u64 + payload_len as u64 + tail.len() as u64;
        self.begin(state, len)?;
        let offset = state.extent.end;
        let mut at = offset + head.len() as u64;
        let payload_end = at + payload_len as u64;
        let mut sum = framing.sum_of_head(&head);
        let mut block = std::mem::take(&mut state.scratch);
        while at < payload_end {
            block.resize((payload_end - at).min(PART_BYTES as u64) as usize, 0);
            fill(&mut block).map_err(|e| self.take_back(state, e))?;
            sum = F::Framing::SUM.more(sum, &block);
            self.write(state, &block, at)?;
            at += block.len() as u64;
        }
        block.clear();
        state.scratch = block;
        framing.store_sum(&mut head, &mut tail, sum);
        if !tail.is_empty() {
            self.write(state, &tail, at)?;
        }
        self.write(state, &head, offset)?;
        Ok((len, F::Framing::SUM.short(sum)))
    }
}
