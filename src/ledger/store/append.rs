//! Appending: one write for a record, or for as much of a batch as fits into a file.
//!
//! The first append that needs a file creates and locks it. A file is finished when full, when
//! fetched, and after any incomplete write: nobody appends to a finished file again.

use std::io;

use super::state::{Active, State};
use crate::durability::Durability;
use crate::error::{Durable, Error, Result};
use crate::ground::lines::{self, try_locked};
use crate::ground::slice::{part, u32_at};
use crate::ledger::Batch;
use crate::ledger::codec::{FORMAT, HEADER_BYTES, WRITE_BYTES};
use crate::ledger::directory::Created;
use crate::ledger::record::Position;
use crate::ledger::store::{LedgerStore, Shared};
use crate::scan::framing::Framing;
use crate::storage::File;

/// A write of this size takes no further record.
const WRITE_BYTES_MAX: usize = 1 << 30;

/// The end of the ledger after an append.
#[derive(Clone, Copy, Debug, Default)]
pub struct Appended {
    /// Bytes appended by this store.
    pub end: u64,
    /// The part in finished files, if this append finished a file.
    pub finished: Option<u64>,
    /// The first and the last record, if there are any.
    pub at: (Position, Position),
}

impl LedgerStore {
    /// Append one record and return its position. After the return, the record survives a crash of the process, and a
    /// power cut if the durability option says so.
    ///
    /// # Errors
    ///
    /// Fails with [`TooLarge`](crate::ErrorKind::TooLarge) for a record beyond the limit, and with
    /// [`Poisoned`](crate::ErrorKind::Poisoned) after a write or sync that failed; see [Errors](crate#errors).
    pub fn append(&self, payload: &[u8]) -> Result<Position> {
        let shared = self.writable()?;
        let at = |e: Error| e.at(&shared.directory.path);
        shared.codec.check_len(payload.len()).map_err(at)?;
        let appended = shared.append_one(payload).map_err(|e| e.of(FORMAT))?;
        shared.after_append(appended)?;
        Ok(appended.at.0)
    }

    /// Append a batch, with one write for each file. Returns the positions of the first and the last record, or `None`
    /// for an empty batch. If an error leaves a part of the batch in the ledger, the error says so; a crash may then
    /// lose any of these records.
    ///
    /// # Errors
    ///
    /// Fails with [`TooLarge`](crate::ErrorKind::TooLarge) for a record beyond the limit, and with
    /// [`Poisoned`](crate::ErrorKind::Poisoned) after a write or sync that failed; see [Errors](crate#errors).
    pub fn append_batch(&self, batch: &Batch) -> Result<Option<(Position, Position)>> {
        let shared = self.writable()?;
        let appended = shared.append_encoded(batch)?;
        shared.after_append(appended)?;
        Ok((batch.records > 0).then_some(appended.at))
    }

    /// Append a batch, but with [`Durability::Always`] leave the sync to the caller: for a long series of batches that
    /// is acknowledged at its end. Once 64 finished files wait for a sync, this call syncs the finished files, but not
    /// the file being written.
    ///
    /// # Errors
    ///
    /// Fails with [`TooLarge`](crate::ErrorKind::TooLarge) for a record beyond the limit, and with
    /// [`Poisoned`](crate::ErrorKind::Poisoned) after a write or sync that failed; see [Errors](crate#errors).
    pub fn append_unsynced(&self, batch: &Batch) -> Result<Option<(Position, Position)>> {
        let shared = self.writable()?;
        let appended = shared.append_encoded(batch)?;
        match (shared.options.durability, appended.finished) {
            (Durability::Always, Some(finished)) => shared.sync_if_many(finished)?,
            (Durability::Always, None) => {}
            _ => shared.after_append(appended)?,
        }
        Ok((batch.records > 0).then_some(appended.at))
    }

    /// Append one record if one write to the file being written is enough: no sync, no other file, no wait for another
    /// thread. `None` means nothing was appended: call [`LedgerStore::append`]. For event loops: with
    /// [`Durability::Always`] the caller has to sync.
    ///
    /// # Errors
    ///
    /// Fails with [`TooLarge`](crate::ErrorKind::TooLarge) for a record beyond the limit, and with
    /// [`Poisoned`](crate::ErrorKind::Poisoned) after a write or sync that failed; see [Errors](crate#errors).
    pub fn try_append(&self, payload: &[u8]) -> Result<Option<Position>> {
        let shared = self.writable()?;
        let at = |e: Error| e.at(&shared.directory.path);
        shared.codec.check_len(payload.len()).map_err(at)?;
        let Some(mut state) = try_locked(&shared.state) else { return Ok(None) };
        if !shared.takes_one_write(&state, payload.len() as u64 + HEADER_BYTES) {
            return Ok(None);
        }
        let appended = shared.append_under(&mut state, payload).map_err(|e| e.of(FORMAT))?;
        Ok(Some(appended.at.0))
    }

    /// Append several records as [`LedgerStore::append_batch`] does.
    ///
    /// # Errors
    ///
    /// Fails with [`TooLarge`](crate::ErrorKind::TooLarge) for a record beyond the limit, and with
    /// [`Poisoned`](crate::ErrorKind::Poisoned) after a write or sync that failed; see [Errors](crate#errors).
    pub fn append_many<T: AsRef<[u8]>>(
        &self,
        payloads: impl IntoIterator<Item = T>,
    ) -> Result<Option<(Position, Position)>> {
        let mut batch = Batch::new(self.writable()?.codec.record_bytes_max);
        for payload in payloads {
            batch.push(payload.as_ref())?;
        }
        self.append_batch(&batch)
    }
}

impl Shared {
    fn append_one(&self, payload: &[u8]) -> Result<Appended> {
        self.append_under(&mut self.state(), payload)
    }

    /// The checksum covers the copy, so the caller's bytes may change meanwhile.
    fn append_under(&self, state: &mut State, payload: &[u8]) -> Result<Appended> {
        self.check_writable().map_err(Error::if_poisoned_nothing_begun)?;
        let mut record = std::mem::take(&mut state.scratch);
        record.clear();
        self.codec.encode(&mut record, (), payload);
        let written = self.write(state, &record, 1);
        state.scratch = record;
        let appended = written?;
        self.counters.appended(1, payload.len() as u64 + HEADER_BYTES);
        Ok(appended)
    }

    /// Whether a record of `bytes` bytes fits into the open file, without a sync, without closing the file, and without
    /// a look at the other files.
    fn takes_one_write(&self, state: &State, bytes: u64) -> bool {
        let fits = |active: &Active| !self.would_be_full(active, bytes, 1);
        let unsynced = (state.written + bytes).saturating_sub(self.commits.durable());
        let syncs = matches!(self.options.durability, Durability::Bytes(max) if unsynced >= max);
        state.active.as_ref().is_some_and(fits) && !syncs && self.has_room(state, bytes)
    }

    fn append_encoded(&self, batch: &Batch) -> Result<Appended> {
        let at = |e: Error| e.at(&self.directory.path);
        self.codec.check_len(batch.payload_len_max.max(1)).map_err(at)?;
        let mut state = self.state();
        self.check_writable().map_err(Error::if_poisoned_nothing_begun)?;
        let written = self.write(&mut state, &batch.bytes, batch.records);
        let appended = written.map_err(|e| e.of(FORMAT))?;
        self.counters.appended(batch.records, batch.bytes.len() as u64);
        Ok(appended)
    }

    /// Write encoded records, to one or several files.
    fn write(&self, state: &mut State, bytes: &[u8], records: u64) -> Result<Appended> {
        let mut appended = Appended { end: state.written, finished: None, ..Appended::default() };
        if bytes.is_empty() {
            return Ok(appended);
        }
        self.make_room(state, records, bytes.len() as u64)?;
        let (mut at, mut done) = (0, 0);
        while at < bytes.len() {
            let written = self.write_part(state, part(bytes, at..));
            let (len, count) = written.map_err(|error| match done {
                0 => error,
                _ => {
                    let message = format!("{done} of {records} records of the batch are there");
                    error.with_durable(Durable::Unknown).with_advice(&message)
                }
            })?;
            (at, done) = (at + len, done + count);
            if let Some(Active { index: file, records, .. }) = state.active {
                let last = Position { file, record: records.saturating_sub(1) };
                let first = Position { file, record: records.saturating_sub(count) };
                appended.at = (if done == count { first } else { appended.at.0 }, last);
            }
            if state.active.as_ref().is_some_and(|active| self.is_full(active)) {
                self.finish_active(state);
                appended.finished = Some(state.written);
            }
        }
        appended.end = state.written;
        Ok(appended)
    }

    /// Write as many records as the active file takes. Returns the numbers of bytes and records.
    fn write_part(&self, state: &mut State, bytes: &[u8]) -> Result<(usize, u64)> {
        let active = match state.active.take() {
            Some(active) => active,
            None => self.begin_file(state).map_err(|e| e.with_durable(Durable::No))?,
        };
        let active = state.active.insert(active);
        let (mut len, mut count) = (0, 0);
        while !self.would_be_full(active, len as u64, count) && len < WRITE_BYTES_MAX {
            let Some(payload_len) = u32_at(bytes, len) else { break };
            let more = payload_len as usize + HEADER_BYTES as usize;
            if count > 0 && (len + more) as u64 > WRITE_BYTES {
                break;
            }
            len += more;
            count += 1;
        }
        match write_once(&*active.file, part(bytes, ..len), active.len) {
            Err(e) => Err(self.write_failed(state, e)),
            Ok(()) => {
                active.len += len as u64;
                active.records += count;
                state.written += len as u64;
                if let Some(held) = &mut state.held {
                    held.bytes += len as u64;
                }
                Ok((len, count))
            }
        }
    }

    fn begin_file(&self, state: &mut State) -> Result<Active> {
        let gate = self.directory.gate()?;
        self.directory.keep_limit(&gate, self.options.record_bytes_max)?;
        let created = self.directory.create(&gate, state.next_index)?;
        let Created { index, path, file, id, lock } = created;
        state.next_index = u64::from(index) + 1;
        state.names_unsynced = true;
        if self.options.durability == Durability::None {
            state.begun.note(index);
        }
        Ok(Active { index, path, file, id, len: 0, records: 0, _lock: lock })
    }

    fn is_full(&self, active: &Active) -> bool {
        self.would_be_full(active, 0, 0)
    }

    /// The cap is soft, as specified: the record that exceeds the cap is still in the file.
    fn would_be_full(&self, active: &Active, bytes: u64, records: u64) -> bool {
        let full = |max: u64| active.records + records >= max;
        active.len + bytes > self.max_file_size || self.options.file_records_max.is_some_and(full)
    }

    /// Cut off the leftovers of a failed write, and continue in another file.
    fn write_failed(&self, state: &mut State, cause: io::Error) -> Error {
        let Some(Active { file, path, len, .. }) = &state.active else {
            return Error::io("append", &self.directory.path, cause);
        };
        let error = Error::io("append", path, cause).of(FORMAT).offset_at(*len);
        let error = self.commits.roll_back(error, || {
            file.set_len(*len)?;
            file.sync_data()
        });
        self.finish_active(state);
        error
    }

    /// Never append to the active file again, and let others fetch it. Remove a file without a
    /// record: on a full disk, each append would leave one.
    pub(in crate::ledger) fn finish_active(&self, state: &mut State) {
        let Some(active) = state.active.take() else { return };
        if active.records > 0 {
            if self.options.durability != Durability::None {
                state.unsynced.push(active.file.clone());
            }
            return;
        }
        let removed = self
            .directory
            .gate()
            .and_then(|gate| self.directory.remove_unseen(&gate, &active.path, active.id));
        match removed {
            // The index is free unless another store went on: the next file lists the directory.
            Ok(()) => state.next_index = 0,
            // The next fetch removes the file.
            Err(error) => lines::warn(format_args!("an empty file remains: {error}")),
        }
    }
}

/// Write once. Cut a short write off again: only the last record of a file may be torn.
fn write_once(file: &dyn File, bytes: &[u8], at: u64) -> io::Result<()> {
    loop {
        match file.write_at(bytes, at) {
            Ok(written) if written == bytes.len() => return Ok(()),
            Ok(written) => {
                // A second write shows the reason: most often the disk is full.
                if let Err(e) = file.write_at(part(bytes, written..), at + written as u64)
                    && e.kind() != io::ErrorKind::Interrupted
                {
                    return Err(e);
                }
                let message = format!("{written} of {} bytes were written", bytes.len());
                return Err(io::Error::new(io::ErrorKind::WriteZero, message));
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}
