//! The place of a record: from number to byte, and from byte to number.

use crate::error::{ErrorKind, Result};
use crate::log::Shared;
use crate::log::extent::Extent;
use crate::log::format::Format;
use crate::log::look::index::{INDEX_LAG_BYTES_MAX, catch_up};
use crate::scan::framing::Framing;
use crate::scan::{Scanned, Scanner};

impl<F: Format> Shared<F> {
    /// Byte of an existing record, or of the next append.
    pub fn locate_ordinal(&self, extent: Extent, ordinal: u64) -> Result<u64> {
        if ordinal >= extent.next() {
            return Ok(extent.end);
        }
        if ordinal + 1 == extent.next() {
            return Ok(extent.last_offset);
        }
        self.catch_up(extent);
        let near = self.index().last_where(|entry| entry.ordinal <= ordinal);
        let (at, from) = self.border_of(near.map(|(_, entry)| entry), extent);
        let (_, offset) = self.hop(extent, (at, from), |at, _| at >= ordinal)?;
        Ok(offset)
    }

    /// Number of the record at a byte, or of the next append. Believes lengths alone, from the
    /// nearest known border on.
    pub fn locate_offset(&self, extent: Extent, offset: u64) -> Result<u64> {
        let name = || F::name_of(None, offset);
        let refuse = |message| Err(self.error(ErrorKind::OutOfRange, message));
        if offset < extent.start {
            return refuse(format!("{} was dropped, the log begins at {}", name(), extent.start));
        }
        if offset > extent.end {
            return refuse(format!("no {}, the log ends at byte {}", name(), extent.end));
        }
        if offset == extent.end {
            return Ok(extent.next());
        }
        if offset == extent.start {
            return Ok(extent.first);
        }
        let near = self.index().last_where(|entry| entry.offset <= offset);
        let from = self.border_of(near.map(|(_, entry)| entry), extent);
        let mut before = extent.start;
        let (ordinal, at) = self.hop(extent, from, |_, at| {
            let done = at >= offset;
            if !done {
                before = at;
            }
            done
        })?;
        match at == offset {
            true => Ok(ordinal),
            false => refuse(format!(
                "no {}: byte {offset} lies inside the {}",
                name(),
                F::name_of(Some(ordinal - 1), before)
            )),
        }
    }

    /// An entry of the index as ordinal and byte, or the log's begin.
    pub(in crate::log) fn border_of(
        &self,
        entry: Option<crate::sidecar::Entry>,
        extent: Extent,
    ) -> (u64, u64) {
        let begin = (extent.first, extent.start);
        let entry = entry.filter(|entry| entry.offset >= extent.start);
        entry.map_or(begin, |entry| (entry.ordinal, entry.offset))
    }

    /// Hop from length to length from a border, given as ordinal and byte, until `done` says so.
    fn hop(
        &self,
        extent: Extent,
        from: (u64, u64),
        mut done: impl FnMut(u64, u64) -> bool,
    ) -> Result<(u64, u64)> {
        let (mut ordinal, from) = from;
        let mut scanner = Scanner::of_frames(self.framing.by_lengths(), from, extent.end);
        loop {
            let at = scanner.position();
            if done(ordinal, at) {
                return Ok((ordinal, at));
            }
            if scanner.next_in_memory().is_some() {
                ordinal = ordinal.saturating_add(1);
                continue;
            }
            let found = scanner.next(&*self.file);
            match found.map_err(|e| self.fail("read the log", e).offset_at(at))? {
                Scanned::Record { .. } => ordinal = ordinal.saturating_add(1),
                Scanned::Stop { offset, why } => {
                    let name = F::name_of(Some(ordinal), offset);
                    let message = format!("{name}: {}", why.reason());
                    return Err(self.error(ErrorKind::Corrupt, message).offset_at(offset));
                }
                Scanned::End => {
                    let name = F::name_of(Some(ordinal), at);
                    let message = format!("the log ends before {name}");
                    return Err(self.error(ErrorKind::Corrupt, message).offset_at(at));
                }
            }
        }
    }

    /// Have the index in memory reach the end of the log, if it lags far.
    pub(in crate::log) fn catch_up(&self, extent: Extent) {
        catch_up::<F>(&mut self.index(), &*self.file, self.framing, extent, INDEX_LAG_BYTES_MAX);
    }
}
