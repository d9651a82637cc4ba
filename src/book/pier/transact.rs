//! Transactions of a pier: tasks stage deeds for its last epoch, and a commit appends them there.
//!
//! Each epoch keeps its own record of transactions. A commit carries over what an earlier epoch knows
//! of the application, so that a repeat is recognised after a roll, and takes along what was staged
//! before it.

use std::collections::BTreeMap;

use super::{Part, Pier};
use crate::book::{Layout, Stage};
use crate::error::Result;
use crate::transaction::{self, Committed, Noted, StagedJob, Transaction, TransactionId};

impl Pier {
    /// Stage deeds for a commit of `job`; as [`Book::stage`](crate::book::Book::stage). Of another
    /// layout than that of the last epoch at the commit, they are not found there.
    pub fn stage(
        &self,
        job: &str,
        partition: u32,
        attempt: u64,
        first: Option<u64>,
    ) -> Result<Stage> {
        self.on_last(|book| book.stage(job, partition, attempt, first))
    }

    /// Append what the parts of a job hold to the last epoch;
    /// as [`Book::commit_staged`](crate::book::Book::commit_staged). A transaction that an earlier
    /// epoch has is a repeat, too.
    pub fn commit_staged(
        &self,
        transaction: &Transaction,
        parts: &[transaction::Part],
    ) -> Result<Committed> {
        self.with(|epochs| {
            let Some((last, before)) = epochs.split_last() else {
                return Err(self.shared.error(crate::ErrorKind::Closed, "the pier is closed"));
            };
            if let Some(id) = &transaction.id {
                carry_record(last, before, &id.app)?;
            }
            let layout: Layout = last.book.layout();
            for earlier in before.iter().filter(|part| part.book.layout() == layout) {
                last.book.adopt_staged(&earlier.book, &transaction.job, parts)?;
            }
            last.book.commit_staged(transaction, parts)
        })
    }

    /// The last transaction of each application, in whichever epoch.
    pub fn transactions(&self) -> Result<BTreeMap<String, Noted>> {
        self.with(|epochs| {
            let mut all = BTreeMap::new();
            for part in epochs {
                all.extend(part.book.transactions()?);
            }
            Ok(all)
        })
    }

    /// What was staged and not committed, by job.
    pub fn staged(&self) -> Result<Vec<StagedJob>> {
        self.with(|epochs| {
            let mut jobs: BTreeMap<String, StagedJob> = BTreeMap::new();
            for part in epochs {
                for found in part.book.staged()? {
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

    /// Remove what a job staged, unless its commit has begun. Returns whether it is gone.
    pub fn discard_staged(&self, job: &str) -> Result<bool> {
        self.with(|epochs| {
            let mut gone = true;
            for part in epochs {
                gone &= part.book.discard_staged(job)?;
            }
            Ok(gone)
        })
    }

    /// Give up a commit that has begun in the last epoch and cannot be brought to its end;
    /// as [`Book::abandon_transaction`](crate::book::Book::abandon_transaction).
    pub fn abandon_transaction(&self) -> Result<Option<Transaction>> {
        self.on_last(|book| book.abandon_transaction())
    }
}

/// Note in the last epoch what the newest of the earlier ones knows of an application.
fn carry_record(last: &Part, before: &[Part], app: &str) -> Result<()> {
    if last.book.transactions()?.contains_key(app) {
        return Ok(());
    }
    for part in before.iter().rev() {
        if let Some(Noted { version, query }) = part.book.transactions()?.remove(app) {
            return last.book.note_transaction(&TransactionId { app: app.into(), query, version });
        }
    }
    Ok(())
}
