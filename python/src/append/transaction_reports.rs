//! The values of transactions: a task's stage, all stages, the commit.

use std::time::UNIX_EPOCH;

use deedbook::jobs::{Committed, Part, StagedJob, TransactionId};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::common::reports::{check_known, field, plain, report};

report!(PyStagedPart, "StagedPart", Part, {
    partition: u32 = |part| part.partition,
    sequence: u32 = |part| part.sequence,
    attempt: u64 = |part| part.attempt,
    bytes: u64 = |part| part.bytes,
    records: u64 = |part| part.records,
    sum: u32 = |part| part.sum,
    first: Option<u64> = |part| part.first,
});

impl From<&PyStagedPart> for Part {
    fn from(part: &PyStagedPart) -> Self {
        let PyStagedPart { partition, sequence, attempt, bytes, records, sum, first } = *part;
        Self { partition, sequence, attempt, bytes, records, sum, first }
    }
}

report!(PyCommitted, "Committed", Committed, {
    repeated: bool = |committed| committed.repeated,
    records: u64 = |committed| committed.records,
    first: Option<u64> = |committed| committed.first,
});

report!(PyStagedJob, "StagedJob", StagedJob, {
    job: String = |staged| staged.job.clone(),
    files: u64 = |staged| staged.files,
    bytes: u64 = |staged| staged.bytes,
    modified: Option<f64> = |staged| {
        let since = staged.modified?.duration_since(UNIX_EPOCH).ok()?;
        Some(since.as_secs_f64())
    },
    is_committing: bool = |staged| staged.is_committing,
});

report!(PyCommittedTransaction, "CommittedTransaction", TransactionId, {
    app: String = |id| id.app.clone(),
    version: u64 = |id| id.version,
    query: Option<String> = |id| id.query.clone(),
});
