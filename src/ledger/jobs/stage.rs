//! Staging: a task writes whole files of the ledger. A commit of the job renames them.

use std::mem::take;

use crate::error::Result;
use crate::ledger::codec::{FORMAT, HEADER_BYTES};
use crate::ledger::format::LedgerFormat;
use crate::ledger::store::LedgerStore;
use crate::log::StagedWriter;
use crate::scan::framing::Framing;
use crate::storage::segmented::remove;
use crate::transaction::{Part, Target};

/// Records of one task, staged for a commit of the job. Dropping an unfinished `Stage` removes the
/// records.
#[must_use]
#[derive(Debug)]
pub struct Stage {
    store: LedgerStore,
    job: String,
    /// The part being staged, before its records.
    part: Part,
    /// The part's file. `None` until the part has a record; the first part has a file from the
    /// start.
    file: Option<StagedWriter<LedgerFormat>>,
    /// The parts before.
    finished: Vec<Part>,
    is_finished: bool,
}

impl LedgerStore {
    /// Stage records for a commit of `job`: the files of one attempt of a task. Any store may stage,
    /// in any process.
    ///
    /// # Errors
    ///
    /// Fails if the record cannot be staged; see [Errors](crate#errors).
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
            StagedWriter::create(&shared.desk(), job, part.clone(), shared.codec)
        };
        let file = begin().map_err(|e| e.of(FORMAT))?;
        Ok(Stage {
            store: self.clone(),
            job: job.into(),
            part,
            file: Some(file),
            finished: Vec::new(),
            is_finished: false,
        })
    }
}

impl Stage {
    /// Add a record. An empty record, or a record beyond the limit, leaves the stage unchanged.
    ///
    /// # Errors
    ///
    /// Fails if the record cannot be staged; see [Errors](crate#errors).
    pub fn push(&mut self, payload: &[u8]) -> Result<()> {
        let shared = self.store.shared.clone();
        shared.codec.check_len(payload.len())?;
        let mut add = || {
            if self.is_full_before(payload.len() as u64 + HEADER_BYTES) {
                self.end_part()?;
            }
            let file = match self.file.take() {
                Some(file) => file,
                None => {
                    let part = self.part.clone();
                    StagedWriter::create(&shared.desk(), &self.job, part, shared.codec)?
                }
            };
            self.file.insert(file).push((), payload)
        };
        add().map_err(|e| e.of(FORMAT))
    }

    /// Records so far.
    pub fn len(&self) -> u64 {
        let finished: u64 = self.finished.iter().map(|part| part.records).sum();
        finished + self.file.as_ref().map_or(0, StagedWriter::len)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Make the files durable. Pass the returned parts to the commit: no part without records,
    /// several if the records exceed one file of the ledger.
    ///
    /// # Errors
    ///
    /// Fails if the record cannot be staged; see [Errors](crate#errors).
    pub fn finish(mut self) -> Result<Vec<Part>> {
        self.end_part().map_err(|e| e.of(FORMAT))?;
        self.is_finished = true;
        Ok(take(&mut self.finished))
    }

    /// In staging, the cap is hard: no acknowledgement waits for the next file. A longer record
    /// gets a separate file.
    fn is_full_before(&self, bytes: u64) -> bool {
        let shared = &self.store.shared;
        let Some(file) = &self.file else { return false };
        let by_records = shared.options.file_records_max.is_some_and(|max| file.len() >= max);
        file.len() > 0 && (file.bytes_len() + bytes > shared.max_file_size || by_records)
    }

    fn end_part(&mut self) -> Result<()> {
        let desk = self.store.shared.desk();
        let Some(mut file) = self.file.take() else { return Ok(()) };
        if file.len() == 0 {
            file.give_up(&desk);
            return Ok(());
        }
        let part = file.finish(&desk)?;
        self.part.sequence += 1;
        self.finished.push(part);
        Ok(())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // A forked child leaves the parent's files alone.
        if self.is_finished || self.store.shared.is_forked() {
            return;
        }
        // Remove files that no commit can take.
        let desk = self.store.shared.desk();
        if let Some(file) = &self.file {
            file.give_up(&desk);
        }
        for part in &self.finished {
            let path = desk.part_path(&self.job, part);
            let _ = path.map(|path| remove(desk.storage, &path));
        }
    }
}
