//! Appending and syncing.
//!
//! One write puts a deed, or a whole batch, behind the last one; one fsync makes everything before
//! it durable; then the mark follows. A crash between leaves a tail that recovery cuts.

use std::sync::atomic::Ordering;

use super::batch::{Batch, check_len};
use super::epoch::epoch_in_name;
use super::format::{
    FORMAT, FRAMING_BYTES, MUG_BYTES, encode_deed, encode_head, encode_header, encode_tail,
};
use super::{Book, Mode, Shared, State};
use crate::checksum::crc32_more;
use crate::durability::Durability;
use crate::error::{Durable, Error, ErrorKind, Result};
use crate::sidecar::{BLOCK_BYTES, Entry};
use crate::storage::write_full;

/// Appends up to this size go into preallocated space; longer ones extend the file themselves.
const SMALL_BYTES_MAX: usize = 64 << 10;
/// Space reserved ahead: as much as was written since the last sync, within these limits. It is
/// written with zeros, which a sync has to wait for.
const AHEAD_BYTES: std::ops::RangeInclusive<u64> = (64 << 10)..=(8 << 20);
/// Longer deeds are written in parts rather than copied.
const COPIED_BYTES_MAX: usize = 1 << 20;

impl Book {
    /// Append one deed and return its event number. When this returns, the deed survives the death
    /// of the process, and with [`Durability::Always`] a power cut.
    pub fn append(&self, mug: u32, jam: &[u8]) -> Result<u64> {
        let shared = self.writable()?;
        let (event, end) = shared.append_one(mug, jam)?;
        shared.after_append(end)?;
        Ok(event)
    }

    /// Append a batch with one write and return the first event number, all or nothing for the
    /// caller that is told it succeeded. `event`: the number that the first deed must get. `epoch`:
    /// the last event before this log, which an empty log takes over and any other must have.
    ///
    /// This is the specification's `u3_book_save`.
    pub fn append_batch(
        &self,
        batch: &Batch,
        event: Option<u64>,
        epoch: Option<u64>,
    ) -> Result<u64> {
        let shared = self.writable()?;
        let (first, end) = {
            let mut state = shared.state();
            shared.check_open()?;
            check_len(batch.jam_len_max, shared.options.deed_bytes_max)
                .map_err(|e| e.at(&shared.log_path))?;
            let epoch_before = state.epoch;
            shared.check_epoch(&mut state, epoch)?;
            let appended = shared.append_at(&mut state, event, batch);
            if appended.is_err() {
                state.epoch = epoch_before;
            }
            (appended?, state.tip.end)
        };
        if batch.is_empty() {
            return Ok(first);
        }
        shared.after_append(end)?;
        Ok(first)
    }

    /// Append a batch, but with [`Durability::Always`] leave the sync to the caller: for a long
    /// series of batches that is acknowledged at its end.
    pub fn append_unsynced(&self, batch: &Batch) -> Result<u64> {
        let shared = self.writable()?;
        let (first, end) = {
            let mut state = shared.state();
            let first = shared.next_event(&state, batch.deeds.max(1))?;
            if batch.is_empty() {
                return Ok(first);
            }
            shared.append_encoded(&mut state, first, batch)?;
            (first, state.tip.end)
        };
        if shared.options.durability != Durability::Always {
            shared.after_append(end)?;
        }
        Ok(first)
    }

    /// Append one deed and sync, whatever the durability option.
    pub fn commit(&self, mug: u32, jam: &[u8]) -> Result<u64> {
        let shared = self.writable()?;
        let (event, end) = shared.append_one(mug, jam)?;
        // Only up to this deed: others may have appended more since, which need not be waited for.
        shared.sync_to(end)?;
        Ok(event)
    }

    pub(super) fn writable(&self) -> Result<&Shared> {
        let shared = self.usable()?;
        if shared.mode == Mode::Read {
            return Err(shared.refused(ErrorKind::ReadOnly, "opened for reading"));
        }
        shared.commits.check().map_err(|e| e.of(FORMAT).at(&shared.log_path))?;
        Ok(shared)
    }
}

impl Shared {
    fn refused(&self, kind: ErrorKind, message: impl Into<String>) -> Error {
        Error::new(kind, message).of(FORMAT).at(&self.log_path).with_durable(Durable::No)
    }

    fn next_event(&self, state: &State, count: u64) -> Result<u64> {
        let next = match state.tip.records {
            0 => state.epoch.checked_add(1),
            records => state.tip.first.checked_add(records),
        };
        let fits = next.filter(|next| next.checked_add(count).is_some());
        fits.ok_or_else(|| {
            let message = format!("{count} more events behind {}, beyond 2^64", state.last());
            self.refused(ErrorKind::TooLarge, message)
        })
    }

    /// Once more under the state's lock: `close` cuts and syncs under it, and then the lock of the
    /// log is free for others.
    fn check_open(&self) -> Result<()> {
        match self.closed.load(Ordering::Acquire) {
            false => Ok(()),
            true => Err(self.refused(ErrorKind::Closed, "the book is closed")),
        }
    }

    fn check_epoch(&self, state: &mut State, epoch: Option<u64>) -> Result<()> {
        let Some(epoch) = epoch.filter(|&epoch| epoch != state.epoch) else {
            return Ok(());
        };
        if state.tip.records > 0 {
            let message = format!("epoch {epoch}, the log has {}", state.epoch);
            return Err(self.refused(ErrorKind::Contiguity, message));
        }
        if let Some(named) = epoch_in_name(&self.dir).filter(|&named| named != epoch) {
            let message = format!("epoch {epoch}, but the directory says {named}");
            return Err(self.refused(ErrorKind::Contiguity, message));
        }
        state.epoch = epoch;
        Ok(())
    }

    /// Append one deed; returns its number and the byte behind it.
    fn append_one(&self, mug: u32, jam: &[u8]) -> Result<(u64, u64)> {
        check_len(jam.len(), self.options.deed_bytes_max).map_err(|e| e.at(&self.log_path))?;
        let mut state = self.state();
        self.check_open()?;
        let event = self.next_event(&state, 1)?;
        self.append_deed(&mut state, event, mug, jam)?;
        Ok((event, state.tip.end))
    }

    fn append_deed(&self, state: &mut State, event: u64, mug: u32, jam: &[u8]) -> Result<()> {
        let len = jam.len() as u64 + MUG_BYTES + FRAMING_BYTES;
        let offset = state.tip.end;
        self.begin(state, event, len)?;
        let crc = if jam.len() <= COPIED_BYTES_MAX {
            let mut scratch = std::mem::take(&mut state.scratch);
            scratch.clear();
            let crc = encode_deed(&mut scratch, mug, jam);
            let written = self.write(state, &[&scratch]);
            state.scratch = scratch;
            written?;
            crc
        } else {
            let head = encode_head(mug, jam.len());
            let (tail, crc) = encode_tail(&head, jam);
            self.write(state, &[&head, jam, &tail])?;
            crc
        };
        if state.tip.records == 0 {
            self.index().start(crc);
        }
        state.tip.push(offset, len, crc);
        if state.block_start + BLOCK_BYTES <= state.tip.end {
            self.close_block(state, event + 1, offset + len);
        }
        Ok(())
    }

    fn append_at(&self, state: &mut State, event: Option<u64>, batch: &Batch) -> Result<u64> {
        let first = self.next_event(state, batch.deeds.max(1))?;
        if let Some(event) = event.filter(|&event| event != first) {
            let message = format!("event {event}, the log goes on with {first}");
            return Err(self.refused(ErrorKind::Contiguity, message));
        }
        if !batch.is_empty() {
            self.append_encoded(state, first, batch)?;
        }
        Ok(first)
    }

    fn append_encoded(&self, state: &mut State, first: u64, batch: &Batch) -> Result<()> {
        let base = state.tip.end;
        self.begin(state, first, batch.bytes.len() as u64)?;
        // Taken, because `write` would add all the bytes to the open block.
        let (sum_before, start_before) = (state.block_sum.take(), state.block_start);
        let written = self.write(state, &[&batch.bytes]);
        state.block_sum = sum_before;
        written?;
        if state.tip.records == 0 {
            self.index().start(batch.first_sum);
            state.tip.first_sum = batch.first_sum;
        }
        state.tip.records += batch.deeds;
        state.tip.end = base + batch.bytes.len() as u64;
        state.tip.last_offset = base + batch.last_at as u64;
        state.tip.last_sum = batch.last_sum;
        let (mut from, mut start) = (0, start_before);
        for &(deeds, at) in &batch.cuts {
            if base + at as u64 - start < BLOCK_BYTES {
                continue;
            }
            let block = batch.bytes.get(from..at).unwrap_or_default();
            state.block_sum = state.block_sum.map(|sum| crc32_more(sum, block));
            self.close_block(state, first + deeds, base + at as u64);
            (from, start) = (at, base + at as u64);
        }
        let rest = batch.bytes.get(from..).unwrap_or_default();
        state.block_sum = state.block_sum.map(|sum| crc32_more(sum, rest));
        // The batches may be smaller than a block.
        if state.block_start + BLOCK_BYTES <= state.tip.end {
            self.close_block(state, first + batch.deeds, state.tip.end);
        }
        Ok(())
    }

    fn close_block(&self, state: &mut State, ordinal: u64, offset: u64) {
        let entry = Entry { ordinal, offset, sum: state.block_sum.unwrap_or(0) };
        let mut index = self.index();
        index.push(entry);
        if index.wants_flush() {
            index.flush(&*self.options.storage, self.options.file_mode);
        }
        drop(index);
        state.block_start = offset;
        state.block_sum = Some(0);
    }

    /// Put the first event's number into the header with the first save, and reserve space.
    fn begin(&self, state: &mut State, event: u64, len: u64) -> Result<()> {
        if state.tip.records == 0 {
            if state.header_first != event {
                // In front of the deeds: deeds without a number could not be told from damage.
                write_full(&*self.file, &encode_header(event), 0)
                    .map_err(|e| self.write_failed(state, e))?;
                state.header_first = event;
            }
            state.tip.first = event;
        }
        let end = state.tip.end.saturating_add(len);
        if end > state.file_end {
            self.check_whole(state).map_err(|e| self.write_failed(state, e))?;
        }
        if end > state.file_end && len <= SMALL_BYTES_MAX as u64 && state.allocates {
            let unsynced = state.tip.end.saturating_sub(self.commits.durable());
            let ahead = unsynced.clamp(*AHEAD_BYTES.start(), *AHEAD_BYTES.end());
            match self.file.allocate(end.saturating_add(ahead)) {
                Ok(true) => state.file_end = end + ahead,
                Ok(false) => state.allocates = false,
                Err(_) => {
                    // No space for that much, though the append itself may still fit. The file may
                    // have grown all the same; closing cuts it.
                    state.allocates = false;
                    state.file_end = state.file_end.max(self.file.len().unwrap_or(0));
                }
            }
        }
        Ok(())
    }

    /// Write parts one behind the other at the end of the log.
    fn write(&self, state: &mut State, parts: &[&[u8]]) -> Result<()> {
        let mut at = state.tip.end;
        for part in parts {
            write_full(&*self.file, part, at).map_err(|e| self.write_failed(state, e))?;
            at += part.len() as u64;
        }
        for part in parts {
            state.block_sum = state.block_sum.map(|sum| crc32_more(sum, part));
        }
        state.file_end = state.file_end.max(at);
        Ok(())
    }

    /// Roll a failed write back to the last good end, or poison the handle.
    fn write_failed(&self, state: &mut State, cause: std::io::Error) -> Error {
        let error = Error::io("append", &self.log_path, cause).of(FORMAT).offset_at(state.tip.end);
        self.commits.roll_back(error, || {
            self.check_whole(state)?;
            self.file.set_len(state.tip.end)?;
            self.file.sync_data()?;
            state.file_end = state.tip.end;
            Ok(())
        })
    }
}
