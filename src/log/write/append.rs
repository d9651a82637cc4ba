//! Appending.
//!
//! One write puts a record, or a whole batch, after the last record. One sync makes everything
//! before durable. Then the mark follows. A crash in between leaves a tail for recovery to cut.

use crate::error::{Durable, Error, ErrorKind, Result};
use crate::ground::locks::atomic::Ordering;
use crate::ground::slice::part;
use crate::log::format::{Format, TagOf};
use crate::log::read::payload::PART_BYTES;
use crate::log::write::batch::Batch;
use crate::log::{Log, Shared, State};
use crate::mode::Mode;
use crate::scan::framing::Framing;

/// The appended records.
#[derive(Clone, Copy, Debug)]
pub struct Appended {
    /// Number of the first record.
    pub ordinal: u64,
    /// Byte of the first record.
    pub offset: u64,
    /// Byte after the last record.
    pub end: u64,
}

/// The numbers that a record or a batch demands; a mismatch refuses all of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    /// Number of the first record to append.
    pub ordinal: Option<u64>,
    /// Number of the log's first record. An empty log takes the number over; any other log must
    /// have the number.
    pub first: Option<u64>,
}

/// Poisons the handle if appending panics, because its view of the log may be half changed.
pub(in crate::log) struct PoisonOnPanic<'a, F: Format>(pub(in crate::log) &'a Shared<F>);

impl<F: Format> Drop for PoisonOnPanic<'_, F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.commits.poison("a thread that appended panicked");
        }
    }
}

impl<F: Format> Log<F> {
    /// For calls that write something new: a poisoned handle begins nothing new.
    pub fn writable(&self) -> Result<&Shared<F>> {
        self.writable_as_before().map_err(Error::if_poisoned_nothing_begun)
    }

    /// For calls about an earlier write: a poisoned handle cannot say whether the write survived.
    pub fn writable_as_before(&self) -> Result<&Shared<F>> {
        let shared = self.usable()?;
        if shared.mode == Mode::Read {
            return Err(shared.refused(ErrorKind::ReadOnly, "the log was opened for reading only"));
        }
        shared.check_poisoned()?;
        Ok(shared)
    }

    /// Append one record, durably if the durability option asks for a sync.
    #[inline]
    pub fn append_tagged(&self, tag: TagOf<F>, payload: &[u8]) -> Result<Appended> {
        self.append_tagged_at(tag, payload, Wanted::default())
    }

    /// Append one record with the numbers that the caller demands.
    #[inline]
    pub fn append_tagged_at(
        &self,
        tag: TagOf<F>,
        payload: &[u8],
        wanted: Wanted,
    ) -> Result<Appended> {
        let shared = self.writable()?;
        let appended = shared.append_one_at(tag, payload, wanted)?;
        shared.after_append(appended.end)?;
        Ok(appended)
    }

    /// Append one record and sync, whatever the durability.
    #[inline]
    pub fn commit_tagged(&self, tag: TagOf<F>, payload: &[u8]) -> Result<Appended> {
        let shared = self.writable()?;
        let appended = shared.append_one(tag, payload)?;
        // Only up to this record: no need to wait for other threads' later records.
        shared.sync_to(appended.end)?;
        Ok(appended)
    }

    /// Append a batch in the log's own encoding, durably if the durability option asks for a sync.
    pub fn append_encoded(&self, batch: &Batch<F>, wanted: Wanted) -> Result<Appended> {
        let shared = self.writable()?;
        let appended = shared.append_batch_at(batch, wanted)?;
        if !batch.is_empty() {
            shared.after_append(appended.end)?;
        }
        Ok(appended)
    }

    /// Append a batch for a caller that syncs at the end of a series of batches.
    pub fn append_encoded_unsynced(&self, batch: &Batch<F>) -> Result<Appended> {
        let shared = self.writable()?;
        let appended = shared.append_batch_at(batch, Wanted::default())?;
        shared.after_append_unsynced(appended.end)?;
        Ok(appended)
    }
}

impl<F: Format> Shared<F> {
    pub fn refused(&self, kind: ErrorKind, message: impl Into<String>) -> Error {
        self.error(kind, message).with_durable(Durable::No)
    }

    pub(super) fn check_poisoned(&self) -> Result<()> {
        self.commits.check().map_err(|e| e.of(F::NAME).at(&self.place.log))
    }

    /// Check again under the state's lock: `close` cuts and syncs under the same lock, and then
    /// releases the lock of the log.
    pub fn check_open(&self) -> Result<()> {
        match self.closed.load(Ordering::Acquire) {
            false => Ok(()),
            true => Err(self.refused(ErrorKind::Closed, "the log is closed")),
        }
    }

    pub(in crate::log) fn next_ordinal(&self, state: &State, count: u64) -> Result<u64> {
        let next = state.extent.first.checked_add(state.extent.records);
        let fits = next.filter(|next| {
            seeded!(next.checked_add(count).is_some(),
            "event-numbers-wrap" => next.wrapping_add(count) < u64::MAX)
        });
        fits.ok_or_else(|| {
            let last = state.extent.next().saturating_sub(1);
            let noun = F::NOUN;
            let message = format!("{count} more after {noun} {last} would be numbered beyond 2^64");
            self.refused(ErrorKind::TooLarge, message)
        })
    }

    /// Append in the caller's turn. `append` gets the number of the first of `count` records, which
    /// is the number that the caller demands.
    fn in_turn(
        &self,
        payload_len_max: usize,
        count: u64,
        wanted: Wanted,
        append: impl FnOnce(&mut State, u64) -> Result<Appended>,
    ) -> Result<Appended> {
        self.appending.check_len(payload_len_max).map_err(|e| e.at(&self.place.log))?;
        let _turn = self.turn();
        let mut state = self.state();
        let state = &mut *state;
        let _guard = PoisonOnPanic(self);
        self.check_open()?;
        let first_before = state.extent.first;
        match wanted.first {
            Some(first) if state.extent.records == 0 => state.extent.first = first,
            Some(first) if first != first_before => {
                let (asked, has) = (first.saturating_sub(1), first_before.saturating_sub(1));
                let message = format!("epoch {asked} asked for, but the log has epoch {has}");
                return Err(self.refused(ErrorKind::Contiguity, message));
            }
            _ => {}
        }
        let appended = self.next_ordinal(state, count.max(1)).and_then(|next| {
            if let Some(wanted) = wanted.ordinal.filter(|&wanted| wanted != next) {
                let message =
                    format!("event {wanted} is not the next: the log goes on with {next}");
                return Err(self.refused(ErrorKind::Contiguity, message));
            }
            append(state, next)
        });
        if appended.is_err() {
            state.extent.first = first_before;
        }
        appended
    }

    /// Append one record.
    pub fn append_one(&self, tag: TagOf<F>, payload: &[u8]) -> Result<Appended> {
        self.append_one_at(tag, payload, Wanted::default())
    }

    fn append_one_at(&self, tag: TagOf<F>, payload: &[u8], wanted: Wanted) -> Result<Appended> {
        let len = payload.len();
        if len <= PART_BYTES {
            return self
                .append_with(len, wanted, true, |state| self.write_copied(state, tag, payload));
        }
        let mut rest = payload;
        self.append_filled(tag, len, wanted, &mut |out| {
            let (next, left) = rest.split_at(out.len());
            out.copy_from_slice(next);
            rest = left;
            Ok(())
        })
    }

    /// Append one record. `write` writes the record after the last record. `in_one` says that
    /// `write` leaves the whole record in `state.scratch`.
    pub(super) fn append_with(
        &self,
        payload_len: usize,
        wanted: Wanted,
        in_one: bool,
        write: impl FnOnce(&mut State) -> Result<(u64, u32)>,
    ) -> Result<Appended> {
        self.in_turn(payload_len, 1, wanted, |state, ordinal| {
            let offset = state.extent.end;
            let (len, sum) = write(state)?;
            let mut extent = state.extent;
            extent.push_parts(offset, len, sum);
            let scratch = std::mem::take(&mut state.scratch);
            let covered = self.cover(state, extent, in_one.then_some(&scratch));
            state.scratch = scratch;
            covered?;
            self.close_block(state, ordinal + 1, offset + len);
            self.counters.appended(1, len);
            Ok(Appended { ordinal, offset, end: state.extent.end })
        })
    }

    /// The checksum covers the copy, so the caller's bytes may change meanwhile.
    fn write_copied(&self, state: &mut State, tag: TagOf<F>, payload: &[u8]) -> Result<(u64, u32)> {
        let mut scratch = std::mem::take(&mut state.scratch);
        scratch.clear();
        let sum = self.appending.encode(&mut scratch, tag, payload);
        let len = scratch.len() as u64;
        let at = state.extent.end;
        let written = self.begin(state, len).and_then(|()| self.write(state, &scratch, at));
        state.scratch = scratch;
        written.map(|()| (len, sum))
    }

    /// Append a batch. After an error, no record of the batch is acknowledged.
    pub fn append_batch_at(&self, batch: &Batch<F>, wanted: Wanted) -> Result<Appended> {
        self.in_turn(batch.payload_len_max, batch.records, wanted, |state, ordinal| {
            self.append_encoded(state, batch, ordinal)
        })
    }

    fn append_encoded(
        &self,
        state: &mut State,
        batch: &Batch<F>,
        ordinal: u64,
    ) -> Result<Appended> {
        let offset = state.extent.end;
        if batch.is_empty() {
            return Ok(Appended { ordinal, offset, end: offset });
        }
        let bytes = &batch.bytes;
        self.begin(state, bytes.len() as u64)?;
        if batch.records == 1 {
            self.write(state, bytes, offset)?;
        } else {
            // The first head is written last. A reader sees the batch once all bytes are there, and
            // no record of the batch if the rest finds no room.
            let head = F::Framing::HEAD_BYTES;
            seeded!("first-head-first" => self.write(state, part(bytes, ..head), offset)?);
            self.write(state, part(bytes, head..), offset + head as u64)?;
            self.write(state, part(bytes, ..head), offset)?;
        }
        let mut extent = state.extent;
        if extent.records == 0 {
            extent.first_sum = seeded!(batch.first_sum, "first-sum-forgotten" => 0);
        }
        extent.records += batch.records;
        extent.end = offset + bytes.len() as u64;
        extent.last_offset = offset + batch.last_at as u64;
        extent.last_sum = batch.last_sum;
        self.cover(state, extent, Some(bytes))?;
        for &(records, at) in &batch.cuts {
            self.close_block(state, ordinal + records, offset + at as u64);
        }
        // The batches may be smaller than a block.
        self.close_block(state, ordinal + batch.records, state.extent.end);
        self.counters.appended(batch.records, bytes.len() as u64);
        Ok(Appended { ordinal, offset, end: state.extent.end })
    }
}
