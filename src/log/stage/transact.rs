//! Transactions of a log: tasks stage encoded records, a commit copies them after the last record.
//!
//! The first head is written last: readers see all of a transaction or none of it, like a batch.
//! After a power cut, the next opening compares the log's tail with the staged files, and appends
//! the rest.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use super::records::StagedWriter;
use crate::error::{Error, ErrorKind, Result};
use crate::ground::lines;
use crate::ground::locks::lock;
use crate::ground::slice::part;
use crate::log::extent::Extent;
use crate::log::format::{Format, Inspected, TagOf};
use crate::log::options::Common;
use crate::log::split::identity::Anchor;
use crate::log::write::append::PoisonOnPanic;
use crate::log::{Log, Shared, State};
use crate::scan::framing::Framing as _;
use crate::sidecar::{LockTimeout, WriterLock};
use crate::storage::end_of_data;
use crate::storage::{FileId, read_full};
use crate::transaction::{
    self, Committed, Desk, Intent, Part, StagedJob, Target, Transaction, TransactionId,
};

/// Records of one task, staged for a commit of the job. Dropping an unfinished `Stage` removes the
/// records.
#[must_use]
#[derive(Debug)]
pub struct Stage<F: Format> {
    log: Log<F>,
    staged: StagedWriter<F>,
}

impl<F: Format> Stage<F> {
    /// Add a record. The staged file is unchanged if the record is beyond the limit.
    pub(crate) fn push_tagged(&mut self, tag: TagOf<F>, payload: &[u8]) -> Result<()> {
        self.staged.push(tag, payload).map_err(|e| e.of(F::NAME))
    }

    /// Records so far.
    pub fn len(&self) -> u64 {
        self.staged.len()
    }

    /// Whether the stage is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Make the file durable. Hand the returned part to the commit.
    pub fn finish(mut self) -> Result<Part> {
        self.staged.finish(&self.log.shared.desk()).map_err(|e| e.of(F::NAME))
    }
}

impl<F: Format> Drop for Stage<F> {
    fn drop(&mut self) {
        self.staged.give_up(&self.log.shared.desk());
    }
}

/// Transactions.
impl<F: Format> Log<F> {
    /// Stage records for a commit of `job`.
    pub fn stage(
        &self,
        job: &str,
        partition: u32,
        attempt: u64,
        first: Option<u64>,
    ) -> Result<Stage<F>> {
        let shared = self.usable()?;
        let part = Part { partition, sequence: 0, attempt, bytes: 0, records: 0, sum: 0, first };
        let staged = StagedWriter::create(&shared.desk(), job, part, shared.appending);
        Ok(Stage { log: self.clone(), staged: staged.map_err(|e| e.of(F::NAME))? })
    }

    /// Append the records of a job's parts, all or nothing, and once.
    pub fn commit_staged(&self, transaction: &Transaction, parts: &[Part]) -> Result<Committed> {
        let shared = self.writable_as_before()?;
        let _committing = lock(&shared.exclusive);
        transaction::commit(shared, transaction, parts).map_err(|e| e.of(F::NAME))
    }

    /// The last transaction of each application.
    pub fn transactions(&self) -> Result<BTreeMap<String, TransactionId>> {
        self.usable()?.desk().noted().map_err(|e| e.of(F::NAME))
    }

    /// The staged and uncommitted files, by job.
    pub fn staged(&self) -> Result<Vec<StagedJob>> {
        self.usable()?.desk().staged().map_err(|e| e.of(F::NAME))
    }

    /// Remove a job's staged files, unless a commit of the job has begun.
    pub fn discard_staged(&self, job: &str) -> Result<bool> {
        self.usable()?.desk().discard(job).map_err(|e| e.of(F::NAME))
    }

    /// Give up an unfinished commit that cannot be finished.
    pub fn abandon_transaction(&self) -> Result<Option<Transaction>> {
        let shared = self.usable()?;
        let desk = shared.desk();
        let run = || {
            let (log, now) = (shared.place.locked(), LockTimeout::default());
            let _lock = WriterLock::acquire(desk.storage, desk.sidecar, log, &now)?;
            desk.abandon()
        };
        run().map_err(|e: Error| e.of(F::NAME))
    }

    /// Note a transaction of another log, durably.
    pub fn note_transaction(&self, id: &TransactionId) -> Result<()> {
        let shared = self.writable()?;
        let _committing = lock(&shared.exclusive);
        shared.desk().note(id).map_err(|e| e.of(F::NAME))
    }

    /// The store of the log's transactions.
    pub(crate) fn desk(&self) -> Result<Desk<'_>> {
        Ok(self.usable()?.desk())
    }

    /// Take over a job's staged files from another desk, as far as the files lie there.
    pub(crate) fn adopt_staged(&self, from: &Desk<'_>, job: &str, parts: &[Part]) -> Result<()> {
        self.writable()?.desk().adopt(from, job, parts).map_err(|e| e.of(F::NAME))
    }

    /// Finish a commit that began and failed.
    pub fn finish_transaction(&self) -> Result<()> {
        let shared = self.writable_as_before()?;
        let _committing = lock(&shared.exclusive);
        transaction::finish(shared).map_err(|e| e.of(F::NAME))
    }
}

/// Whether all bytes after the records of a log belong to a commit that a crash interrupted: the
/// staged files have the bytes, and the commit continues from there. `false` if not certain.
pub(crate) fn is_staged<F: Format>(common: &Common, sidecar: &Path, found: &Inspected<F>) -> bool {
    let (storage, file_mode) = (&*common.storage, common.file_mode);
    let staged_from = found.format.framing().shape().staged_from;
    let desk = Desk { storage, sidecar, file_mode, staged_from };
    let (extent, file) = (found.findings.extent, &*found.space.file);
    let Ok(Some(intent)) = Intent::load(&desk) else { return false };
    let Some(place) = Begin::decode(&intent.place) else { return false };
    if desk.check_parts(&intent.transaction.job, &intent.parts).is_err() {
        return false; // the copy may be all that is left of it
    }
    let look = || -> io::Result<bool> {
        let here = Begin::of(&extent, file.id()?);
        let is_here = (here.offset, here.first, here.before)
            == (place.offset, place.first, place.before)
            && (here.first.is_some() || place.file.is_still(here.file));
        let copied = intent.parts.iter().map(|part| part.bytes).sum::<u64>();
        let written = end_of_data(file, extent.end, file.len()?)?;
        Ok(is_here && written <= extent.end.saturating_add(copied))
    };
    look().unwrap_or(false)
}

/// The place in a log at which a transaction begins: the byte, the log's first record, and the record before the byte.
/// The file identifies a log without records.
struct Begin {
    offset: u64,
    first: Option<Anchor>,
    before: Option<Anchor>,
    file: FileId,
}

impl Begin {
    fn of(extent: &Extent, file: FileId) -> Self {
        let is_empty = extent.records == 0;
        let anchor = |offset, sum| Some(Anchor { offset, sum }).filter(|_| !is_empty);
        Self {
            offset: extent.end,
            first: anchor(extent.start, extent.first_sum),
            before: anchor(extent.last_offset, extent.last_sum),
            file,
        }
    }

    fn encode(&self) -> String {
        let shown = |anchor: Option<Anchor>| anchor.map_or("-".into(), |anchor| anchor.to_string());
        let FileId { device, inode, created_ns } = self.file;
        let (first, before) = (shown(self.first), shown(self.before));
        format!("{} {first} {before} {device}:{inode}:{created_ns}", self.offset)
    }

    fn decode(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let offset = words.next()?.parse().ok()?;
        let mut anchor = || match words.next()? {
            "-" => Some(None),
            word => word.parse().ok().map(Some),
        };
        let (first, before) = (anchor()?, anchor()?);
        let mut numbers = words.next()?.split(':').map(|number| number.parse().ok());
        let mut number = || numbers.next().flatten();
        let file = FileId { device: number()?, inode: number()?, created_ns: number()? };
        Some(Self { offset, first, before, file })
    }
}

impl<F: Format> Target for Shared<F> {
    fn desk(&self) -> Desk<'_> {
        Desk {
            storage: &*self.common.storage,
            sidecar: &self.place.sidecar,
            file_mode: self.common.file_mode,
            staged_from: self.appending.shape().staged_from,
        }
    }

    fn apply(
        &self,
        job: &str,
        parts: &[Part],
        store: &mut dyn FnMut(String) -> Result<()>,
    ) -> Result<Committed> {
        let records = parts.iter().map(|part| part.records).sum();
        let _held = lines::hold();
        let appended = {
            // From here on no other thread appends: the bytes at the place belong to the
            // transaction.
            let _turn = self.turn();
            let mut state = self.state();
            let _guard = PoisonOnPanic(self);
            self.check_open()?;
            let ordinal = self.next_ordinal(&state, records)?;
            let misfit = transaction::misfit(parts, ordinal, F::NOUN).filter(|_| F::NUMBERED);
            if let Some(message) = misfit {
                return Err(self.refused(ErrorKind::Contiguity, message));
            }
            store(Begin::of(&state.extent, state.file_id).encode())?;
            let first = if F::NUMBERED { ordinal } else { state.extent.end };
            self.append_parts(&mut state, job, parts, 0)?;
            (first, state.extent.end)
        };
        let (first, end) = appended;
        self.sync_and_keep_to(end)?;
        Ok(Committed { repeated: false, records, first: Some(first) })
    }

    fn finish(
        &self,
        intent: &Intent,
        store: &mut dyn FnMut(String) -> Result<()>,
    ) -> Result<Option<Committed>> {
        let mut place = Begin::decode(&intent.place).ok_or_else(|| {
            let message = format!("the intent of a commit has the place {:?}", intent.place);
            self.refused(ErrorKind::Unsupported, message)
        })?;
        let job = &intent.transaction.job;
        let _held = lines::hold();
        let turn = self.turn();
        let mut state = self.state();
        let _guard = PoisonOnPanic(self);
        if !self.is_of(&state, &place, job, &intent.parts)? {
            return Ok(None);
        }
        if place.offset > state.extent.end {
            // A power cut lost unsynced records before the place.
            place = Begin::of(&state.extent, state.file_id);
            store(place.encode())?;
        }
        let (bytes, there) = self.common_prefix(&state, &place, job, &intent.parts)?;
        let records = intent.parts.iter().map(|part| part.records).sum::<u64>() - there;
        if records > 0 {
            self.append_parts(&mut state, job, &intent.parts, bytes)?;
        }
        let end = state.extent.end;
        drop((state, turn));
        self.sync_and_keep_to(end)?;
        Ok(Some(Committed { repeated: false, records, first: None }))
    }
}

impl<F: Format> Shared<F> {
    /// Whether a place is in this log. A place in another log has another first record, or another record before the
    /// byte. An empty log may have got the transaction's first records since.
    fn is_of(&self, state: &State, place: &Begin, job: &str, parts: &[Part]) -> Result<bool> {
        let extent = state.extent;
        let here = Begin::of(&extent, state.file_id);
        if here.first.is_none() {
            return Ok(place.file.is_still(here.file));
        }
        let Some(first) = place.first else {
            return Ok(self.common_prefix(state, place, job, parts)?.0 > 0);
        };
        if here.first.is_some_and(|here| here.offset == first.offset && here.sum != first.sum) {
            return Ok(false);
        }
        if let Some(before) = place.before.filter(|before| before.offset >= extent.start)
            && place.offset <= extent.end
        {
            let now = before.now(&*self.file, self.framing, extent.end);
            return Ok(now.map_err(|e| self.fail("read the log", e))?.sum == before.sum);
        }
        Ok(true)
    }

    /// The bytes and records of the parts already present at a place.
    fn common_prefix(
        &self,
        state: &State,
        place: &Begin,
        job: &str,
        parts: &[Part],
    ) -> Result<(u64, u64)> {
        let Extent { start, end, .. } = state.extent;
        if place.offset < start {
            let message = format!(
                "a commit began at byte {}, and the log begins at byte {start} now",
                place.offset
            );
            return Err(self.refused(ErrorKind::OutOfRange, message));
        }
        let (mut bytes, mut records) = (0, 0);
        let mut there = Vec::new();
        for staged in parts {
            let mut staged = self.open_staged(job, staged)?;
            while let Some((record, _)) = staged.next()? {
                there.resize(record.len(), 0);
                let at = place.offset + bytes;
                if at + record.len() as u64 > end {
                    return Ok((bytes, records));
                }
                let read = read_full(&*self.file, &mut there, at);
                let read = read.map_err(|e| self.fail("read the log", e))?;
                if part(&there, ..read) != record {
                    return Ok((bytes, records));
                }
                bytes += record.len() as u64;
                records += 1;
            }
        }
        Ok((bytes, records))
    }
}
