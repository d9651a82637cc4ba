//! Transactions of the event store: tasks stage events, a commit appends them.
//!
//! A staged file has the entries of the future write-ahead log, numbered from 0. Events are known
//! by their ids, so the next commit simply repeats an interrupted commit and skips the stored
//! events. No position needs to be noted. Readers may see the first events before the last are
//! appended. No event vanishes, because the intent is durable before the first append.

use std::collections::BTreeMap;

use super::handle::{EventStore, Shared};
use super::records::Records;
use crate::error::{Durable, Error, Result};
use crate::ground::lines::locked;
use crate::log::{StagedReader, StagedWriter};
use crate::nostr::bytes::event::{Event, EventRef};
use crate::nostr::bytes::format::FORMAT;
use crate::nostr::bytes::record;
use crate::nostr::log::codec::Codec;
use crate::nostr::log::entry::{Entry, Lsn, Op, Tag};
use crate::nostr::log::files::FileFormat;
use crate::scan::Bad;
use crate::scan::framing::Frame;
use crate::sidecar::{LockTimeout, WriterLock};
use crate::storage::above;
use crate::transaction::{
    self, Committed, Desk, Intent, Part, StagedJob, Target, Transaction, TransactionId,
};

/// The limits of one append, in events and in bytes.
const PIECE_EVENTS: usize = 4096;
const PIECE_BYTES: usize = 4 << 20;
/// The place of a transaction: anywhere.
const ANYWHERE: &str = "-";

/// Events staged by a task for a commit of the job. Dropping an unfinished stage deletes its
/// events.
#[must_use]
#[derive(Debug)]
pub struct Stage {
    store: EventStore,
    staged: StagedWriter<FileFormat>,
    /// The record of the event being staged.
    record: Records,
    scratch: Vec<u8>,
}

impl Stage {
    /// Add an event whose id is the hash of its content. A refused event leaves the staged file
    /// unchanged.
    ///
    /// # Errors
    ///
    /// Fails if the record cannot be staged; see [Errors](crate#errors).
    pub fn push(&mut self, event: &Event) -> Result<()> {
        let shared = self.store.usable()?;
        self.record.clear();
        self.record.push_checked(event, &mut self.scratch, shared)?;
        let tag = Tag { op: Op::Insert, lsn: Lsn(self.staged.len()), timestamp: 0 };
        self.staged.push(tag, &self.record.bytes).map_err(|e| e.of(FORMAT))
    }

    /// The number of events so far.
    pub fn len(&self) -> u64 {
        self.staged.len()
    }

    /// Whether there are no events.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Make the file durable. Give the returned part to the commit.
    ///
    /// # Errors
    ///
    /// Fails if the record cannot be staged; see [Errors](crate#errors).
    pub fn finish(mut self) -> Result<Part> {
        let shared = self.store.usable()?;
        self.staged.finish(&shared.desk()).map_err(|e| e.of(FORMAT))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.staged.give_up(&self.store.shared.desk());
    }
}

/// Transactions.
impl EventStore {
    /// Stage events for a commit of `job`, in the file of one attempt of a task. Any handle may
    /// stage, in any process.
    ///
    /// # Errors
    ///
    /// Fails if the record cannot be staged; see [Errors](crate#errors).
    pub fn stage(&self, job: &str, partition: u32, attempt: u64) -> Result<Stage> {
        let shared = self.usable()?;
        let part =
            Part { partition, sequence: 0, attempt, bytes: 0, records: 0, sum: 0, first: None };
        let staged = StagedWriter::create(&shared.desk(), job, part, staged_framing());
        let staged = staged.map_err(|e| e.of(FORMAT))?;
        let (record, scratch) = (Records::default(), Vec::new());
        Ok(Stage { store: self.clone(), staged, record, scratch })
    }

    /// Append the events of a job's parts durably, in the order of their partitions, all or
    /// nothing. The durability option does not matter. The store skips a transaction or an event
    /// that it already has. [`Committed::records`] counts the stored events.
    ///
    /// A commit that fails with [`Durable::No`] changed nothing. Any other failed commit has begun:
    /// the next commit or opening for writing finishes it.
    ///
    /// # Errors
    ///
    /// Fails with [`Contiguity`](crate::ErrorKind::Contiguity) for a transaction that is not the next of its
    /// application, and for parts that are missing or damaged; see [Errors](crate#errors).
    pub fn commit_staged(&self, transaction: &Transaction, parts: &[Part]) -> Result<Committed> {
        self.writable()?;
        let _committing = locked(&self.shared.committing);
        // The store may be closed.
        self.writable()?;
        transaction::commit(self, transaction, parts).map_err(|e| e.of(FORMAT))
    }

    /// The last transaction of each application.
    ///
    /// # Errors
    ///
    /// Fails if the files of the transactions cannot be read or are damaged; see [Errors](crate#errors).
    pub fn transactions(&self) -> Result<BTreeMap<String, TransactionId>> {
        self.usable()?.desk().noted().map_err(|e| e.of(FORMAT))
    }

    /// The staged, uncommitted events by job.
    ///
    /// # Errors
    ///
    /// Fails if the files of the transactions cannot be read or are damaged; see [Errors](crate#errors).
    pub fn staged(&self) -> Result<Vec<StagedJob>> {
        self.usable()?.desk().staged().map_err(|e| e.of(FORMAT))
    }

    /// Remove the staged files of a job, unless its commit has begun. Returns whether they are
    /// removed.
    ///
    /// # Errors
    ///
    /// Fails if the files of the transactions cannot be read or are damaged; see [Errors](crate#errors).
    pub fn discard_staged(&self, job: &str) -> Result<bool> {
        self.usable()?.desk().discard(job).map_err(|e| e.of(FORMAT))
    }

    /// Give up a commit that has begun and cannot finish, because its staged files are missing or
    /// damaged. Appended events stay. Call this on a handle for reading; it fails while the store
    /// is open for writing.
    ///
    /// # Errors
    ///
    /// Fails while the log is open for writing; see [Errors](crate#errors).
    pub fn abandon_transaction(&self) -> Result<Option<Transaction>> {
        let desk = self.usable()?.desk();
        let run = || {
            let (dir, now) = (above(desk.sidecar), LockTimeout::default());
            let _lock = WriterLock::acquire(desk.storage, desk.sidecar, dir, &now)?;
            desk.abandon()
        };
        run().map_err(|e: Error| e.of(FORMAT))
    }

    /// Finish a commit that has begun and failed.
    pub(crate) fn finish_transaction(&self) -> Result<()> {
        let _committing = locked(&self.shared.committing);
        transaction::finish(self).map_err(|e| e.of(FORMAT))
    }
}

impl Shared {
    fn desk(&self) -> Desk<'_> {
        let (storage, file_mode) = (&*self.options.storage, self.options.file_mode);
        Desk { storage, sidecar: &self.sidecar, file_mode, staged_from: 0 }
    }
}

/// The limits of records apply, because their errors name the event.
fn staged_framing() -> Codec {
    Codec::new(u32::MAX.into())
}

impl Target for EventStore {
    fn desk(&self) -> Desk<'_> {
        self.shared.desk()
    }

    fn apply(
        &self,
        job: &str,
        parts: &[Part],
        store: &mut dyn FnMut(String) -> Result<()>,
    ) -> Result<Committed> {
        let unchanged = |e: Error| e.with_durable(Durable::No);
        self.check_staged(job, parts).map_err(unchanged)?;
        seeded!("events-before-the-intent" => self.append_staged(job, parts)?);
        store(ANYWHERE.into())?;
        self.append_staged(job, parts)
    }

    fn finish(
        &self,
        intent: &Intent,
        _store: &mut dyn FnMut(String) -> Result<()>,
    ) -> Result<Option<Committed>> {
        let job = &intent.transaction.job;
        self.check_staged(job, &intent.parts)?;
        self.append_staged(job, &intent.parts).map(Some)
    }
}

impl EventStore {
    /// Read the parts to their ends, to refuse damaged or too large events before the first append.
    fn check_staged(&self, job: &str, parts: &[Part]) -> Result<()> {
        self.read_staged(job, parts, &mut |_| Ok(()))
    }

    /// Append the events that only the parts have, durably.
    fn append_staged(&self, job: &str, parts: &[Part]) -> Result<Committed> {
        let mut stored = 0;
        let mut append = |records: &mut Records| {
            let outcomes = self.append_unsynced(records)?;
            stored += outcomes.iter().filter(|outcome| outcome.is_stored()).count() as u64;
            Ok(())
        };
        let appended = self.read_staged(job, parts, &mut append);
        appended.and_then(|()| self.sync()).map_err(|error| match stored {
            0 => error,
            // Readers may have seen the earlier pieces.
            _ => error.with_durable(Durable::Unknown),
        })?;
        Ok(Committed { repeated: false, records: stored, first: None })
    }

    /// Read the events of the parts in their order, in pieces, as records for appends of this
    /// handle.
    fn read_staged(
        &self,
        job: &str,
        parts: &[Part],
        take: &mut dyn FnMut(&mut Records) -> Result<()>,
    ) -> Result<()> {
        let shared = self.usable()?;
        let mut piece = Records::default();
        for part in parts {
            let mut staged = StagedReader::open(&shared.desk(), job, part, staged_framing())?;
            let mut number = 0u64;
            while let Some((entry, frame)) = staged.next()? {
                let pushed = match event_in(frame.tag.op, frame.payload(entry)) {
                    Ok(event) => Ok(piece.push_stored(&event, &shared.options)),
                    Err(bad) => Err(bad.reason()),
                };
                pushed
                    .map_err(|why| staged.changed(format!("event {number} of it: {why}")))?
                    .map_err(|e| e.at(&shared.dir))?;
                number += 1;
                if piece.len() >= PIECE_EVENTS || piece.bytes.len() >= PIECE_BYTES {
                    take(&mut piece)?;
                    piece.clear();
                }
            }
        }
        match piece.len() {
            0 => Ok(()),
            _ => take(&mut piece),
        }
    }
}

/// The event of a staged entry.
fn event_in(op: Op, data: &[u8]) -> Result<EventRef<'_>, Bad> {
    match Entry::parse(op, data)? {
        Entry::Insert { record } => record::parse(record),
        _ => {
            let (found, expected) = (op as u64, Op::Insert as u64);
            let (what, against) = ("op type", "must be");
            Err(Bad { what, found, against, expected, framed_len: None })
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Mode;
    use crate::nostr::{Id, Options};
    use crate::storage::Memory;

    #[test]
    fn events_are_given_in_pieces() {
        let storage = Arc::new(Memory::new());
        let options = Options { storage, index_on_disk: false, ..Options::default() };
        let store = options.open("/events", Mode::Create).unwrap();
        let mut parts = Vec::new();
        for (partition, count, content_len) in [(0, PIECE_EVENTS + 4, 0), (1, 5, PIECE_BYTES / 3)] {
            let mut stage = store.stage("job", partition, 0).unwrap();
            for number in 0..count {
                let mut event = Event {
                    id: Id([0; 32]),
                    pubkey: [0; 32],
                    created_at: number as u32,
                    kind: 1,
                    tags: Vec::new(),
                    content: "x".repeat(content_len),
                    sig: [0; 64],
                };
                event.id = event.canonical_id();
                stage.push(&event).unwrap();
            }
            parts.push(stage.finish().unwrap());
        }
        let mut pieces = Vec::new();
        let mut take = |piece: &mut Records| {
            pieces.push(piece.len());
            Ok(())
        };
        store.read_staged("job", &parts, &mut take).unwrap();
        assert_eq!(pieces, [PIECE_EVENTS, 4 + 3, 2]);
    }
}
