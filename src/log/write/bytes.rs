//! The writes of an append: reserve space, write the bytes, take back a failed write.

use std::io;

use crate::error::{Error, ErrorKind, Result};
use crate::ground::lines;
use crate::ground::locks::lock;
use crate::log::extent::Extent;
use crate::log::format::Format;
use crate::log::{Shared, State};
use crate::sidecar::{Entry, INDEX_BLOCK_BYTES, Mark};
use crate::storage::write_full;

/// Appends up to this size go into preallocated space; longer appends extend the log themselves.
const SMALL_BYTES_MAX: u64 = 64 << 10;
/// Space reserved ahead: as many bytes as were written since the last sync, within these limits.
/// Zeros fill the space, and a sync has to wait for the zeros.
const AHEAD_BYTES: std::ops::RangeInclusive<u64> = (64 << 10)..=(8 << 20);

impl<F: Format> Shared<F> {
    /// Make the bytes written after the last record a part of the log.
    #[inline]
    pub(in crate::log) fn cover(
        &self,
        state: &mut State,
        extent: Extent,
        written: Option<&[u8]>,
    ) -> Result<()> {
        if self.turn.is_some() {
            let covered = self.seal.cover(&*self.file, state.extent.end, &extent, written);
            covered.map_err(|e| self.write_failed(state, e))?;
        }
        state.extent = extent;
        Ok(())
    }

    /// Note the end of a block, if it is long enough by now.
    #[inline]
    pub(in crate::log) fn close_block(&self, state: &mut State, ordinal: u64, offset: u64) {
        if offset < state.block_start + INDEX_BLOCK_BYTES {
            return;
        }
        // Advisory: without the sum, `verify` finds less.
        let sum = self.seal.block_sum(&*self.file, state.block_start..offset);
        let sum = sum.ok().flatten().unwrap_or(0);
        let mut index = self.index();
        index.push(Entry { ordinal, offset, sum });
        if index.wants_flush() {
            index.flush(&*self.common.storage);
        }
        state.block_start = offset;
    }

    /// Prepare for `len` more bytes: the bytes before the first record, and space. Positions never
    /// overflow.
    #[inline]
    pub(in crate::log) fn begin(&self, state: &mut State, len: u64) -> Result<()> {
        let Some(end) = state.extent.end.checked_add(len).filter(|&end| end < i64::MAX as u64)
        else {
            let at = state.extent.end;
            let message = format!("an append of {len} bytes at byte {at} would end beyond 2^63");
            return Err(self.refused(ErrorKind::TooLarge, message));
        };
        if end <= state.file_end && state.extent.records > 0 {
            return Ok(());
        }
        self.begin_slowly(state, len, end)
    }

    fn begin_slowly(&self, state: &mut State, len: u64, end: u64) -> Result<()> {
        if !state.mark_is_open {
            self.open_mark(state);
        }
        if state.extent.records == 0 {
            // Before the records: without the header they would look like damage.
            self.seal
                .begin(&*self.file, state.extent.first)
                .map_err(|e| self.write_failed(state, e))?;
        }
        if end <= state.file_end {
            return Ok(());
        }
        self.check_not_truncated(state).map_err(|e| self.write_failed(state, e))?;
        if len <= SMALL_BYTES_MAX && state.allocates {
            let unsynced = state.extent.end.saturating_sub(self.commits.durable());
            let ahead = unsynced.clamp(*AHEAD_BYTES.start(), *AHEAD_BYTES.end());
            let ahead = ahead.min(self.piece_bytes.unwrap_or(u64::MAX));
            match self.file.allocate(end.saturating_add(ahead)) {
                Ok(true) => state.file_end = end + ahead,
                // The disk lacks the space, though the append itself may still fit. The log may
                // have grown all the same; closing cuts it.
                Ok(false) | Err(_) => {
                    state.allocates = false;
                    state.file_end = state.file_end.max(self.file.len().unwrap_or(0));
                }
            }
        }
        Ok(())
    }

    /// Store the mark as open before anything is appended: a closed mark says nothing about later
    /// records. Advisory: a closed mark makes recovery careful, not wrong.
    fn open_mark(&self, state: &mut State) {
        let (entries, chain) = self.index().summary_at(state.extent.end);
        let mark = Mark {
            exact: self.is_exact(),
            index_entries: entries,
            index_chain: chain,
            ..state.extent.mark(state.file_id)
        };
        let mut file = lock(&self.mark_file);
        let stored =
            file.as_mut().map_or(Ok(()), |file| file.store(&mark).and_then(|()| file.sync()));
        match stored {
            Ok(()) => state.mark_is_open = true,
            Err(e) => self.warn("cannot mark the log as open", &e),
        }
    }

    pub fn warn(&self, what: &str, error: &dyn std::fmt::Display) {
        lines::warn(format_args!("{what}: {error} ({})", self.place.log.display()));
    }

    /// Write some bytes.
    pub(in crate::log) fn write(&self, state: &mut State, bytes: &[u8], at: u64) -> Result<()> {
        write_full(&*self.file, bytes, at).map_err(|e| self.write_failed(state, e))?;
        state.file_end = state.file_end.max(at + bytes.len() as u64);
        Ok(())
    }

    /// Roll a failed write back to the last good end, or poison the handle.
    fn write_failed(&self, state: &mut State, cause: io::Error) -> Error {
        let error = self.fail("append", cause).offset_at(state.extent.end);
        self.take_back(state, error)
    }

    /// Cut the bytes written after the last good end, or poison the handle.
    pub(in crate::log) fn take_back(&self, state: &mut State, error: Error) -> Error {
        self.commits.roll_back(error, || {
            self.check_not_truncated(state)?;
            self.file.set_len(state.extent.end)?;
            self.file.sync_data()?;
            state.file_end = state.extent.end;
            Ok(())
        })
    }

    /// Another process may have cut the file. Writing after the new end would leave zeros in place
    /// of records, and the next sync would vouch for the zeros.
    pub(super) fn check_not_truncated(&self, state: &State) -> io::Result<()> {
        self.check_len(state.extent.end)
    }

    pub(super) fn check_len(&self, end: u64) -> io::Result<()> {
        let len = self.file.len()?;
        match len < end {
            false => Ok(()),
            true => Err(io::Error::other(format!(
                "another process cut the log to {len} bytes, it had {}s up to {end}",
                F::NOUN
            ))),
        }
    }
}
