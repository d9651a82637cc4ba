//! Transactions of a ledger: tasks stage whole files, a commit renames them into the ledger.
//!
//! The intent has the index of the first file. A file missing among the staged files was renamed before, and may have
//! been sent since: a rename happens once. So a commit can be finished again and again, whatever senders do meanwhile.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::error::{Durable, Error, ErrorKind, Result};
use crate::ground::lines;
use crate::ledger::codec::{Codec, FORMAT, RECORD_BYTES_LIMIT};
use crate::ledger::directory::{Directory, Gate, is_no_file};
use crate::ledger::store::{LedgerStore, Shared};
use crate::log::StagedReader;
use crate::saving::{make_own_dir, sync_names};
use crate::sidecar::{PRIVATE_MODE, lock_within};
use crate::storage::{Access, LockAttempt, LockGuard};
use crate::transaction::{
    self, Committed, Desk, Intent, Part, StagedJob, Target, Transaction, TransactionId,
};

/// How long to wait for another store's commit.
const COMMIT_WAIT: Duration = Duration::from_secs(30);
/// Files renamed under one hold of the directory. Other stores wait for the directory.
const RENAMED_AT_ONCE: usize = 1000;

/// Transactions.
impl LedgerStore {
    /// Move the files of a job's parts into the ledger, in the order of their partitions, all or
    /// nothing, and durably, whatever the durability option. The files follow all records that this
    /// store appended, and count against the limit of all files like an append. A repeated
    /// transaction moves nothing.
    ///
    /// A commit that fails with [`Durable::No`] changed nothing. Any other failed commit has begun: the next opening,
    /// or the next commit, finishes the commit.
    ///
    /// # Errors
    ///
    /// Fails with [`Contiguity`](crate::ErrorKind::Contiguity) if the transaction is not the application's next, and
    /// for missing or damaged parts; see [Errors](crate#errors).
    pub fn commit_staged(&self, transaction: &Transaction, parts: &[Part]) -> Result<Committed> {
        let shared = self.writable_as_before()?;
        let run = || {
            let _held = lines::hold();
            let locked = shared.directory.make_jobs().and_then(|()| shared.directory.lock_jobs());
            let _committing = locked.map_err(|e| e.with_durable(Durable::No))?;
            transaction::commit(shared, transaction, parts)
        };
        run().map_err(|e: Error| e.of(FORMAT))
    }

    /// The last transaction of each application.
    ///
    /// # Errors
    ///
    /// Fails if the files of the transactions cannot be read or are damaged; see [Errors](crate#errors).
    pub fn transactions(&self) -> Result<BTreeMap<String, TransactionId>> {
        self.usable()?.desk().noted().map_err(|e| e.of(FORMAT))
    }

    /// The staged and uncommitted files, by job.
    ///
    /// # Errors
    ///
    /// Fails if the files of the transactions cannot be read or are damaged; see [Errors](crate#errors).
    pub fn staged(&self) -> Result<Vec<StagedJob>> {
        self.usable()?.desk().staged().map_err(|e| e.of(FORMAT))
    }

    /// Remove a job's staged files, unless the commit has begun. Returns whether they are gone.
    ///
    /// # Errors
    ///
    /// Fails if the files of the transactions cannot be read or are damaged; see [Errors](crate#errors).
    pub fn discard_staged(&self, job: &str) -> Result<bool> {
        self.usable()?.desk().discard(job).map_err(|e| e.of(FORMAT))
    }

    /// Give up a commit that has begun and cannot finish. Files already in the ledger stay. Waits for another store's
    /// running commit.
    ///
    /// # Errors
    ///
    /// Fails while the log is open for writing; see [Errors](crate#errors).
    pub fn abandon_transaction(&self) -> Result<Option<Transaction>> {
        let shared = self.usable()?;
        if !shared.directory.storage.is_dir(&shared.directory.jobs) {
            return Ok(None);
        }
        let run = || {
            let _held = lines::hold();
            let _committing = shared.directory.lock_jobs()?;
            shared.desk().abandon()
        };
        run().map_err(|e: Error| e.of(FORMAT))
    }
}

impl Shared {
    /// Finish a commit after a crash or a failure of its store. Without an unfinished commit, the
    /// call looks at one path. If the commit cannot be finished, appends and sending continue.
    pub(in crate::ledger) fn finish_begun(&self) {
        if matches!(Intent::load(&self.desk()), Ok(None)) {
            return;
        }
        let _held = lines::hold();
        let jobs = &self.directory.jobs;
        let finished = match self.directory.storage.lock(jobs, false) {
            Ok(LockAttempt::Held(_committing)) => transaction::finish(self),
            // Another store is committing.
            Ok(LockAttempt::Busy(_)) => Ok(()),
            Err(e) => Err(Error::io("lock the directory", jobs, e)),
        };
        if let Err(error) = finished {
            lines::warn(format_args!("{error}"));
        }
    }

    /// Refuse a staged file that changed after the task.
    fn check_staged(&self, job: &str, part: &Part) -> Result<()> {
        // A task may have a higher limit than this store. No record is longer than its part.
        let codec = Codec::new(RECORD_BYTES_LIMIT);
        let mut staged = StagedReader::open(&self.desk(), job, part, codec)?;
        while staged.next()?.is_some() {}
        staged.check_len()
    }

    /// Check for every possible refusal, and store the intent. Returns the index of the first file.
    fn begin_commit(
        &self,
        job: &str,
        parts: &[&Part],
        store: &mut dyn FnMut(String) -> Result<()>,
    ) -> Result<u32> {
        for part in parts {
            self.check_staged(job, part)?;
        }
        // First the earlier records of this store.
        self.finish_and_sync()?;
        let records = parts.iter().map(|part| part.records).sum();
        let bytes = parts.iter().map(|part| part.bytes).sum();
        let mut state = self.state();
        self.check_writable()?;
        self.make_room(&mut state, records, bytes)?;
        drop(state);
        let gate = self.directory.gate()?;
        let counted = self.directory.counted()?;
        let begun = self.directory.claim_next(&gate, parts.len());
        let begun = begun.and_then(|first| store(first.to_string()).map(|()| first));
        // Without an intent on disk nothing uses the claimed indexes. Remove an intent if syncing the name failed.
        let is_unused = || {
            let desk = self.desk();
            matches!(Intent::load(&desk), Ok(None)) || Intent::clear(&desk).is_ok()
        };
        if begun.is_err() && is_unused() {
            self.directory.unclaim(&gate, counted).unwrap_or_else(lines::warn);
        }
        begun
    }

    /// Rename the parts that are still staged, from `first` on, durably.
    fn publish(
        &self,
        job: &str,
        parts: &[&Part],
        mut first: u32,
        store: &mut dyn FnMut(String) -> Result<()>,
    ) -> Result<Committed> {
        let mut committed = Committed::default();
        let mut bytes = 0;
        let mut named = |part: &Part, index: u32| {
            committed.first.get_or_insert(index.into());
            committed.records += part.records;
            bytes += part.bytes;
        };
        while !self.name_all(job, parts, first, &mut named)? {
            // Another program took the index. Move all files after the other program's file, to
            // keep the order.
            first = self.directory.claim_next(&self.directory.gate()?, parts.len())?;
            store(first.to_string())?;
        }
        self.directory.sync()?;
        let mut state = self.state();
        // Count the present files again.
        state.held = None;
        if committed.records > 0 {
            self.counters.appended(committed.records, bytes);
        }
        Ok(committed)
    }

    /// Rename the parts that are still staged. `false` if another program has taken an index.
    fn name_all(
        &self,
        job: &str,
        parts: &[&Part],
        first: u32,
        named: &mut dyn FnMut(&Part, u32),
    ) -> Result<bool> {
        let (desk, directory) = (self.desk(), &self.directory);
        let mut next = u64::from(first);
        for parts in parts.chunks(RENAMED_AT_ONCE) {
            let gate = directory.gate()?;
            for part in parts {
                let index = directory.index(next)?;
                match directory.publish(&gate, &desk.part_path(job, part)?, index)? {
                    Published::Now => named(part, index),
                    Published::Before => {}
                    Published::Taken => return Ok(false),
                }
                next += 1;
            }
        }
        Ok(true)
    }
}

impl Target for Shared {
    fn desk(&self) -> Desk<'_> {
        self.directory.desk()
    }

    fn apply(
        &self,
        job: &str,
        parts: &[Part],
        store: &mut dyn FnMut(String) -> Result<()>,
    ) -> Result<Committed> {
        let parts = with_records(parts);
        let begun = self.begin_commit(job, &parts, store);
        let first = begun.map_err(|e| e.with_durable(Durable::No))?;
        let published = self.publish(job, &parts, first, store);
        published.map_err(|e| e.with_durable(Durable::Unknown))
    }

    fn finish(
        &self,
        intent: &Intent,
        store: &mut dyn FnMut(String) -> Result<()>,
    ) -> Result<Option<Committed>> {
        let first = intent.place.parse().map_err(|_| {
            let message = format!("the intent of a commit has the place {:?}", intent.place);
            self.refused(ErrorKind::Unsupported, &message)
        })?;
        let parts = with_records(&intent.parts);
        for part in &parts {
            match self.check_staged(&intent.transaction.job, part) {
                // The part was renamed before.
                Err(e) if is_gone(&e) => {}
                checked => checked?,
            }
        }
        self.publish(&intent.transaction.job, &parts, first, store).map(Some)
    }
}

fn is_gone(error: &Error) -> bool {
    error.io_source().is_some_and(|e| e.kind() == io::ErrorKind::NotFound)
}

fn with_records(parts: &[Part]) -> Vec<&Part> {
    parts.iter().filter(|part| part.records > 0).collect()
}

/// The rename of a staged file.
enum Published {
    /// The file has its name now.
    Now,
    /// The file had its name before, and may have been sent since.
    Before,
    /// Another file has its name.
    Taken,
}

impl Directory {
    /// The place of the transactions.
    pub(in crate::ledger) fn desk(&self) -> Desk<'_> {
        let Self { storage, jobs, file_mode, .. } = self;
        Desk { storage: &**storage, sidecar: jobs, file_mode: *file_mode, staged_from: 0 }
    }

    /// The directory of transactions, durably there.
    fn make_jobs(&self) -> Result<()> {
        self.make_sidecar()?;
        make_own_dir(&*self.storage, &self.jobs, PRIVATE_MODE)?;
        sync_names(&*self.storage, &self.sidecar(), &self.path)
    }

    /// One commit at a time, across all stores, because there is only one intent.
    fn lock_jobs(&self) -> Result<Box<dyn LockGuard>> {
        lock_within(&*self.storage, &self.jobs, COMMIT_WAIT)
    }

    /// Claim the next `count` indexes, durably. Returns the first. No store creates a file with a claimed index.
    fn claim_next(&self, gate: &Gate, count: usize) -> Result<u32> {
        let first = self.after_last()?.max(self.counted()?);
        let last = self
            .index((first + seeded!(count, "one-index-claimed" => 1) as u64).saturating_sub(1))?;
        self.claim(gate, last)?;
        self.index(first)
    }

    /// Rename a staged file, unless already done. Another implementation ignores claims and may have made a file with
    /// the same name, which stays.
    fn publish(&self, _gate: &Gate, staged: &Path, index: u32) -> Result<Published> {
        let named = self.path_of(index);
        let id = match self.storage.open(staged, Access::Read).and_then(|file| file.id()) {
            Ok(id) => id,
            // A missing file is the only sign of an earlier rename. A file without permission to
            // open is not missing.
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Published::Before),
            Err(e) => return Err(Error::io("open the staged file", staged, e)),
        };
        let fail = |e| Error::io("rename the staged file", staged, e);
        match self.storage.open(&named, Access::Read).and_then(|file| file.id()) {
            // A power cut left both names of one file, and a rename would keep both.
            Ok(there) if there == id => self.storage.remove(staged).map_err(fail)?,
            Ok(_) => {
                seeded!(return Ok(Published::Taken),
                    "foreign-file-replaced" => self.storage.rename(staged, &named).map_err(fail)?)
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                self.storage.rename(staged, &named).map_err(fail)?;
            }
            Err(e) if is_no_file(&e) => return Ok(Published::Taken),
            Err(e) => return Err(Error::io("open the file", &named, e)),
        }
        Ok(Published::Now)
    }
}
