//! The current transaction, and the store's files for a transaction.

use std::path::Path;

use crate::error::{Error, ErrorKind, Result};
use crate::sidecar::check_name;
use crate::storage::{LockGuard, Storage};

const JOB_BYTES_MAX: usize = 128;

/// A transaction to commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// The job that staged the transaction: a name of letters, digits, `-` and `_`.
    pub job: String,
    /// Recognises a repeat; with `None`, a repeated commit appends again.
    pub id: Option<TransactionId>,
}

/// The application, and the transaction's number there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionId {
    /// The application: a name without white space.
    pub app: String,
    /// For a stream: the query, whose batches are numbered from 0 on without a gap. The last one alone
    /// is repeated.
    pub query: Option<String>,
    /// Number of the transaction. An application's numbers increase.
    pub version: u64,
}

/// The outcome of a commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Committed {
    /// Whether the log had the transaction already: nothing was appended.
    pub repeated: bool,
    /// Records appended.
    pub records: u64,
    /// Number, LSN or file of the first of them.
    pub first: Option<u64>,
}

/// The place of a store's transactions.
pub(crate) struct Desk<'a> {
    pub(crate) storage: &'a dyn Storage,
    pub(crate) sidecar: &'a Path,
    /// Unix permissions of new files.
    pub(crate) file_mode: u32,
    /// The byte at which records begin in a staged file: [`Shape::staged_from`](crate::scan::framing::Shape::staged_from).
    pub(crate) staged_from: u64,
}

/// The lock under which staged files are committed or removed.
pub(crate) type StagingLock = Option<Box<dyn LockGuard>>;

/// A file that a task staged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Number of the task's partition: parts are appended in this order. From [`Self::UNNUMBERED`] on, numbers are names:
    /// such partitions come last, in the caller's order.
    pub partition: u32,
    /// Number among the parts of the task.
    pub sequence: u32,
    /// Number of the attempt, which no other attempt of the job has.
    pub attempt: u64,
    /// Size, bytes.
    pub bytes: u64,
    /// Records.
    pub records: u64,
    /// CRC-32 of the file.
    pub sum: u32,
    /// The number that the first record must get.
    pub first: Option<u64>,
}

impl Part {
    /// The first name for the partition of a task that does not know the partition's number.
    pub const UNNUMBERED: u32 = 1 << 31;
}

/// Refuse a job's name that is no part of a file's name.
pub fn check_job(job: &str) -> Result<()> {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !job.is_empty() && job.len() <= JOB_BYTES_MAX && job.chars().all(is_fine) {
        return Ok(());
    }
    let message = format!(
        "job {job:?}: a name has 1 to {JOB_BYTES_MAX} bytes of letters, digits, \"-\" and \"_\""
    );
    Err(Error::new(ErrorKind::InvalidArgument, message))
}

impl Part {
    /// Name of the staged file.
    pub(crate) fn file_name(&self, job: &str) -> String {
        let Self { partition, sequence, attempt, .. } = self;
        format!("{job}.{partition}.{sequence}.{attempt}")
    }
}

impl Transaction {
    /// Refuse names and numbers that the files of a transaction cannot hold.
    pub(super) fn check(&self) -> Result<()> {
        check_job(&self.job)?;
        if let Some(TransactionId { app, query, version }) = &self.id {
            check_name("application", app)?;
            query.as_deref().map_or(Ok(()), |query| check_name("query", query))?;
            if *version > i64::MAX as u64 {
                let message = format!("transaction {version} of {app}: at most 2^63 - 1");
                return Err(Error::new(ErrorKind::InvalidArgument, message));
            }
        }
        Ok(())
    }
}
