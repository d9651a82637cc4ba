//! Appending.
//!
//! One write puts a record, or a whole batch, behind the last one; one fsync of every segment
//! written makes everything before it durable; then the mark follows. A crash between leaves a tail
//! that recovery cuts.

use super::batch::{Batch, pack};
use super::format::{FORMAT, HEADER_BYTES, Lsn, check_len, encode_header};
use super::{Mode, Shared, State, Wal};
use crate::durability::Durability;
use crate::error::{Durable, Error, ErrorKind, Result};
use crate::locks::atomic::Ordering;
use crate::sidecar::{BLOCK_BYTES, Entry};
use crate::storage::write_full;

/// Appends up to this size go into preallocated space; longer ones extend the log themselves.
const SMALL_BYTES_MAX: u64 = 64 << 10;
/// Space reserved ahead: as much as was written since the last sync, within these limits. It is
/// written with zeros, which a sync has to wait for.
const AHEAD_BYTES: std::ops::RangeInclusive<u64> = (64 << 10)..=(8 << 20);
/// Longer payloads are written in parts rather than copied.
const COPIED_BYTES_MAX: usize = 1 << 20;

impl Wal {
    /// Append one record and return its LSN. When this returns, the record survives the death of
    /// the process, and with [`Durability::Always`] a power cut.
    pub fn append(&self, payload: &[u8]) -> Result<Lsn> {
        let shared = self.writable()?;
        let (lsn, end) = shared.append_one(payload)?;
        shared.after_append(end)?;
        Ok(lsn)
    }

    /// Append a batch with one write and return the first LSN, all or nothing for the caller that
    /// is told it succeeded. After a crash before the sync, a prefix of it may remain.
    pub fn append_batch(&self, batch: &Batch) -> Result<Lsn> {
        let shared = self.writable()?;
        let (lsn, end) = shared.append_encoded(batch)?;
        shared.after_append(end)?;
        Ok(lsn)
    }

    /// Append a batch, but with [`Durability::Always`] leave the sync to the caller: for a long
    /// series of batches that is acknowledged at its end.
    pub fn append_unsynced(&self, batch: &Batch) -> Result<Lsn> {
        let shared = self.writable()?;
        let (lsn, end) = shared.append_encoded(batch)?;
        if shared.options.durability != Durability::Always {
            shared.after_append(end)?;
        }
        Ok(lsn)
    }

    /// Append several payloads packed into one record: after a crash all of them are there, or
    /// none. [`Parts`](super::Parts) takes them apart; to programs that do not know it, it is an
    /// ordinary record.
    pub fn append_atomic<T: AsRef<[u8]>>(&self, parts: impl IntoIterator<Item = T>) -> Result<Lsn> {
        self.append(&pack(parts)?)
    }

    /// Append one record and sync, whatever the durability option.
    pub fn commit(&self, payload: &[u8]) -> Result<Lsn> {
        let shared = self.writable()?;
        let (lsn, end) = shared.append_one(payload)?;
        // Only up to this record: others may have appended more since, which need not be waited
        // for.
        shared.sync_to(end)?;
        Ok(lsn)
    }

    pub(super) fn writable(&self) -> Result<&Shared> {
        let shared = self.usable()?;
        if shared.mode == Mode::Read {
            return Err(shared.refused(ErrorKind::ReadOnly, "opened for reading"));
        }
        shared.commits.check().map_err(|e| e.of(FORMAT).at(&shared.place.log))?;
        Ok(shared)
    }
}

impl Shared {
    pub(super) fn refused(&self, kind: ErrorKind, message: impl Into<String>) -> Error {
        Error::new(kind, message).of(FORMAT).at(&self.place.log).with_durable(Durable::No)
    }

    /// Once more under the state's lock: `close` cuts and syncs under it, and then the lock of the
    /// log is free for others.
    pub(super) fn check_open(&self) -> Result<()> {
        match self.closed.load(Ordering::Acquire) {
            false => Ok(()),
            true => Err(self.refused(ErrorKind::Closed, "the log is closed")),
        }
    }

    /// Append one record; returns its LSN and the byte behind it.
    fn append_one(&self, payload: &[u8]) -> Result<(Lsn, u64)> {
        check_len(payload.len(), self.record_bytes_max).map_err(|e| e.at(&self.place.log))?;
        let len = HEADER_BYTES + payload.len() as u64;
        // Before the lock, which others wait for.
        let (header, sum) = encode_header(payload);
        let mut state = self.state();
        let state = &mut *state;
        self.check_open()?;
        let offset = state.tip.end;
        self.begin(state, len)?;
        if payload.len() <= COPIED_BYTES_MAX {
            let mut scratch = std::mem::take(&mut state.scratch);
            scratch.clear();
            scratch.extend_from_slice(&header);
            scratch.extend_from_slice(payload);
            let written = self.write(state, &[&scratch]);
            state.scratch = scratch;
            written?;
        } else {
            self.write(state, &[&header, payload])?;
        }
        state.tip.push(offset, len, sum);
        if state.block_start + BLOCK_BYTES <= state.tip.end {
            self.close_block(state, state.tip.first + state.tip.records, state.tip.end);
        }
        self.counters.appended(1, len);
        Ok((Lsn(offset), state.tip.end))
    }

    fn append_encoded(&self, batch: &Batch) -> Result<(Lsn, u64)> {
        check_len(batch.len_max, self.record_bytes_max).map_err(|e| e.at(&self.place.log))?;
        let mut state = self.state();
        let state = &mut *state;
        self.check_open()?;
        let base = state.tip.end;
        if batch.is_empty() {
            return Ok((Lsn(base), base));
        }
        self.begin(state, batch.bytes.len() as u64)?;
        self.write(state, &[&batch.bytes])?;
        if state.tip.records == 0 {
            state.tip.first_sum = batch.first_sum;
        }
        self.counters.appended(batch.records, batch.bytes.len() as u64);
        let before = state.tip.first + state.tip.records;
        state.tip.records += batch.records;
        state.tip.end = base + batch.bytes.len() as u64;
        state.tip.last_offset = base + batch.last_at as u64;
        state.tip.last_sum = batch.last_sum;
        for &(records, at) in &batch.cuts {
            let offset = base + at as u64;
            if offset - state.block_start >= BLOCK_BYTES {
                self.close_block(state, before + records, offset);
            }
        }
        // The batches may be smaller than a block.
        if state.block_start + BLOCK_BYTES <= state.tip.end {
            self.close_block(state, before + batch.records, state.tip.end);
        }
        Ok((Lsn(base), state.tip.end))
    }

    fn close_block(&self, state: &mut State, ordinal: u64, offset: u64) {
        let mut index = self.index();
        index.push(Entry { ordinal, offset, sum: 0 });
        if index.wants_flush() {
            index.flush(&*self.options.storage, self.options.file_mode);
        }
        state.block_start = offset;
    }

    /// Reserve space for so many bytes and more. Positions never overflow.
    fn begin(&self, state: &mut State, len: u64) -> Result<()> {
        let Some(end) = state.tip.end.checked_add(len).filter(|&end| end < i64::MAX as u64) else {
            let message = format!("{len} bytes more behind {}, beyond 2^63", state.tip.end);
            return Err(self.refused(ErrorKind::TooLarge, message));
        };
        if end <= state.file_end {
            return Ok(());
        }
        self.check_whole(state).map_err(|e| self.write_failed(state, e))?;
        if len <= SMALL_BYTES_MAX && state.allocates {
            let unsynced = state.tip.end.saturating_sub(self.commits.durable());
            let ahead = unsynced.clamp(*AHEAD_BYTES.start(), *AHEAD_BYTES.end());
            // At most one segment ahead, however small they are.
            let ahead = ahead.min(self.layout.segment_bytes().unwrap_or(u64::MAX));
            match self.file.allocate(end.saturating_add(ahead)) {
                Ok(true) => state.file_end = end + ahead,
                Ok(false) => {
                    state.allocates = false;
                    state.file_end = state.file_end.max(self.file.len().unwrap_or(0));
                }
                Err(_) => {
                    // No space for that much, though the append itself may still fit. The log may
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
        state.file_end = state.file_end.max(at);
        Ok(())
    }

    /// Roll a failed write back to the last good end, or poison the handle.
    fn write_failed(&self, state: &mut State, cause: std::io::Error) -> Error {
        let error = Error::io("append", &self.place.log, cause).of(FORMAT);
        let error = error.offset_at(state.tip.end);
        self.commits.roll_back(error, || {
            self.check_whole(state)?;
            self.file.set_len(state.tip.end)?;
            self.file.sync_data()?;
            state.file_end = state.tip.end;
            Ok(())
        })
    }
}
