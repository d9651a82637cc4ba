//! Staging: a task writes whole files of the ledger, which a commit of its job gives their names.

use std::mem::take;

use super::record::{FORMAT, HEADER_BYTES};
use super::{Batch, LedgerStore};
use crate::error::Result;
use crate::log::framing::Framing;
use crate::storage::segmented::remove;
use crate::transaction::{Part, StagedFile, Target};

/// Staged with one write.
const STAGED_BYTES: usize = 1 << 20;

/// Records that a task stages for a commit of its job.
#[derive(Debug)]
pub struct Stage {
    store: LedgerStore,
    job: String,
    /// The part being staged, with what its file holds.
    part: Part,
    /// `None` until it has a record, but for the first one.
    file: Option<StagedFile>,
    /// Records of that part on their way to its file.
    batch: Batch,
    /// The parts before.
    finished: Vec<Part>,
    is_finished: bool,
}

impl LedgerStore {
    /// Stage records for a commit of `job`: the files of one attempt of a task. Any store may stage,
    /// in any process.
    pub fn stage(&self, job: &str, partition: u32, attempt: u64) -> Result<Stage> {
        let shared = self.usable()?;
        let part =
            Part { partition, sequence: 0, attempt, bytes: 0, records: 0, sum: 0, first: None };
        let begin = || {
            shared.directory.make_sidecar()?;
            // Only the task knows how long its records are: the commit may have another limit.
            let gate = shared.directory.gate()?;
            shared.directory.keep_limit(&gate, shared.options.record_bytes_max)?;
            drop(gate);
            StagedFile::create(&shared.desk(), job, &part)
        };
        let file = begin().map_err(|e| e.of(FORMAT))?;
        Ok(Stage {
            store: self.clone(),
            job: job.into(),
            part,
            file: Some(file),
            batch: Batch::with_framing(shared.codec),
            finished: Vec::new(),
            is_finished: false,
        })
    }
}

impl Stage {
    /// Add a record. What is staged is unchanged if the record is empty or beyond the limit.
    pub fn push(&mut self, payload: &[u8]) -> Result<()> {
        self.store.shared.codec.check_len(payload.len())?;
        if self.is_full_before(payload.len() as u64 + HEADER_BYTES) {
            self.end_part().map_err(|e| e.of(FORMAT))?;
        }
        self.batch.push(payload)?;
        match self.batch.bytes_len() >= STAGED_BYTES {
            true => self.flush().map_err(|e| e.of(FORMAT)),
            false => Ok(()),
        }
    }

    /// Records so far.
    pub fn len(&self) -> u64 {
        let finished: u64 = self.finished.iter().map(|part| part.records).sum();
        finished + self.part.records + self.batch.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Make the files durable. What this returns goes to the commit: no part if there is no record,
    /// and several if a file of the ledger would not hold them all.
    pub fn finish(mut self) -> Result<Vec<Part>> {
        self.end_part().map_err(|e| e.of(FORMAT))?;
        self.is_finished = true;
        Ok(take(&mut self.finished))
    }

    /// Here the cap is a hard one: nothing has to be acknowledged before the next file is created. A
    /// longer record has a file of its own.
    fn is_full_before(&self, bytes: u64) -> bool {
        let shared = &self.store.shared;
        let staged = self.part.bytes + self.batch.bytes_len() as u64;
        let records = self.part.records + self.batch.len();
        let full = |max: u64| records >= max;
        let by_records = shared.options.file_records_max.is_some_and(full);
        records > 0 && (staged + bytes > shared.max_file_size || by_records)
    }

    fn flush(&mut self) -> Result<()> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let file = match self.file.take() {
            Some(file) => file,
            None => StagedFile::create(&self.store.shared.desk(), &self.job, &self.part)?,
        };
        let file = self.file.insert(file);
        file.write(&self.batch.bytes)?;
        self.part.bytes += self.batch.bytes_len() as u64;
        self.part.records += self.batch.len();
        self.batch.clear();
        Ok(())
    }

    fn end_part(&mut self) -> Result<()> {
        self.flush()?;
        let desk = self.store.shared.desk();
        let Some(file) = self.file.take() else { return Ok(()) };
        if self.part.records == 0 {
            return file.discard(&desk);
        }
        let (bytes, sum) = file.finish(&desk)?;
        let Part { partition, sequence, attempt, records, .. } = self.part;
        let next = Part { sequence: sequence + 1, bytes: 0, records: 0, ..self.part.clone() };
        self.part = next;
        let part = Part { partition, sequence, attempt, bytes, records, sum, first: None };
        self.finished.push(part);
        Ok(())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if self.is_finished {
            return;
        }
        // What nothing can commit.
        let desk = self.store.shared.desk();
        for part in self.finished.iter().chain([&self.part]) {
            let _ = remove(desk.storage, &desk.part_path(&self.job, part));
        }
    }
}
