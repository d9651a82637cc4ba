//! Transactions of a pier: tasks stage deeds for the last epoch. A commit appends the deeds there,
//! or makes epochs of them (`publish`).
//!
//! Each epoch keeps its own record of transactions, and the pier a record of transactions that made
//! epochs. A commit carries over the application's record, so that a repeat is recognised after a
//! roll, and takes along files staged before the roll.

use std::collections::BTreeMap;

use super::part::OpenEpoch;
use super::publish::Epochs;
use super::{FORMAT, Pier, Shared};
use crate::book::{Layout, Stage};
use crate::error::{ErrorKind, Result};
use crate::sidecar::{LockTimeout, WriterLock};
use crate::transaction::{self, Committed, StagedJob, Target, Transaction, TransactionId};

impl Pier {
    /// Stage deeds for a commit of `job`; as [`Book::stage`](crate::book::Book::stage). The commit finds only deeds in
    /// the layout of the last epoch.
    ///
    /// # Errors
    ///
    /// Fails if the record cannot be staged; see [Errors](crate#errors).
    pub fn stage(
        &self,
        job: &str,
        partition: u32,
        attempt: u64,
        first: Option<u64>,
    ) -> Result<Stage> {
        // The last epoch known to a reader may be dropped by now.
        self.find_more()?;
        self.on_last(|book| book.stage(job, partition, attempt, first))
    }

    /// Append the deeds of a job's parts to the last epoch, or make an epoch of each part, as the
    /// option [`epoch_part_bytes`](crate::book::Options#structfield.epoch_part_bytes) says; as
    /// [`Book::commit_staged`](crate::book::Book::commit_staged). A transaction in an earlier
    /// epoch's record is a repeat, too.
    ///
    /// Readers see the epochs of a commit one after the other. If a failed commit may have begun, the call closes the
    /// handle; opening the pier again finishes the commit.
    ///
    /// # Errors
    ///
    /// Fails with [`Contiguity`](crate::ErrorKind::Contiguity) for a transaction that is not the next of its
    /// application, and for parts that are missing or damaged; see [Errors](crate#errors).
    pub fn commit_staged(
        &self,
        transaction: &Transaction,
        parts: &[transaction::Part],
    ) -> Result<Committed> {
        let shared = self.shared.writable()?;
        if shared.options.epoch_part_bytes.is_some() {
            let (_held, mut epochs) = shared.changing();
            if shared.publishes(&epochs, parts)? {
                let published = shared.publish(&mut epochs, transaction, parts);
                return published.map_err(|e| e.of(FORMAT));
            }
        }
        self.with(|epochs| {
            let Some((last, before)) = epochs.split_last() else {
                return Err(shared.refused(ErrorKind::Closed, "the pier is closed"));
            };
            if let Some(id) = &transaction.id
                && let Some(known) = shared.known(epochs, &id.app)?
            {
                last.book.0.note_transaction(&known)?;
            }
            let layout: Layout = last.book.layout();
            for earlier in before.iter().filter(|part| part.book.layout() == layout) {
                last.book.0.adopt_staged(&earlier.book.0.desk()?, &transaction.job, parts)?;
            }
            if layout == Layout::Packed {
                // Leftovers of a commit that was to make epochs, and did not begin.
                let desk = Epochs::of(&shared.options, &shared.dir);
                last.book.0.adopt_staged(&desk.desk(), &transaction.job, parts)?;
            }
            last.book.commit_staged(transaction, parts)
        })
    }

    /// The last transaction of each application, in whichever epoch.
    ///
    /// # Errors
    ///
    /// Fails if the files of the transactions cannot be read or are damaged; see [Errors](crate#errors).
    pub fn transactions(&self) -> Result<BTreeMap<String, TransactionId>> {
        self.with(|epochs| self.shared.noted(epochs))
    }

    /// The staged and uncommitted deeds, by job.
    ///
    /// # Errors
    ///
    /// Fails if the files of the transactions cannot be read or are damaged; see [Errors](crate#errors).
    pub fn staged(&self) -> Result<Vec<StagedJob>> {
        // A retention may have moved the files to an epoch unknown to a reader.
        self.find_more()?;
        self.with(|epochs| {
            let mut jobs: BTreeMap<String, StagedJob> = BTreeMap::new();
            let own = Epochs::of(&self.shared.options, &self.shared.dir);
            let staged = epochs.iter().map(|part| part.book.staged());
            for found in std::iter::once(own.desk().staged()).chain(staged) {
                for found in found? {
                    let Some(job) = jobs.get_mut(&found.job) else {
                        jobs.insert(found.job.clone(), found);
                        continue;
                    };
                    job.files += found.files;
                    job.bytes += found.bytes;
                    job.modified = job.modified.max(found.modified);
                    job.is_committing |= found.is_committing;
                }
            }
            Ok(jobs.into_values().collect())
        })
    }

    /// Remove a job's staged deeds, unless the commit has begun. Returns whether they are gone.
    ///
    /// # Errors
    ///
    /// Fails if the files of the transactions cannot be read or are damaged; see [Errors](crate#errors).
    pub fn discard_staged(&self, job: &str) -> Result<bool> {
        self.find_more()?;
        self.with(|epochs| {
            let mut gone =
                Epochs::of(&self.shared.options, &self.shared.dir).desk().discard(job)?;
            for part in epochs {
                gone &= part.book.discard_staged(job)?;
            }
            Ok(gone)
        })
    }

    /// Give up a commit that has begun and cannot finish, as
    /// [`Book::abandon_transaction`](crate::book::Book::abandon_transaction). Epochs made by the commit stay.
    ///
    /// # Errors
    ///
    /// Fails while the log is open for writing; see [Errors](crate#errors).
    pub fn abandon_transaction(&self) -> Result<Option<Transaction>> {
        let Shared { options, dir, sidecar, .. } = &*self.shared;
        let storage = &*options.storage;
        let mut abandoned = None;
        if storage.is_dir(sidecar) {
            let now = LockTimeout::default();
            let locked = WriterLock::acquire(storage, sidecar, dir, &now);
            let _lock = locked.map_err(|e| e.of(FORMAT))?;
            abandoned = Epochs::of(options, dir).desk().abandon().map_err(|e| e.of(FORMAT))?;
        }
        Ok(self.on_last(|book| book.abandon_transaction())?.or(abandoned))
    }
}

impl Shared {
    /// The last transaction of each application, from the records of the pier and of each epoch.
    fn noted(&self, epochs: &[OpenEpoch]) -> Result<BTreeMap<String, TransactionId>> {
        let mut all = Epochs::of(&self.options, &self.dir).desk().noted()?;
        for part in epochs {
            for (app, found) in part.book.transactions()? {
                if all.get(&app).is_none_or(|noted| noted.version <= found.version) {
                    all.insert(app, found);
                }
            }
        }
        Ok(all)
    }

    /// The last transaction of an application. If the last epoch's record has the application, the entry began as a
    /// copy of the newest entry; only the pier may have noted a newer transaction since.
    pub(super) fn known(&self, epochs: &[OpenEpoch], app: &str) -> Result<Option<TransactionId>> {
        let last = epochs.last().map_or(Ok(BTreeMap::new()), |last| last.book.transactions())?;
        let known = match last.contains_key(app) {
            true => self.noted(epochs.last().map_or(&[], std::slice::from_ref))?,
            false => self.noted(epochs)?,
        };
        Ok({ known }.remove(app))
    }
}
