//! Transactions: records that tasks staged, perhaps in other processes, are appended all together
//! and once.
//!
//! ```text
//! .deedbook/staged/JOB.PARTITION.SEQUENCE.ATTEMPT   records, encoded as the log will have them
//! .deedbook/transaction                             the intent of a commit that has begun
//! .deedbook/transactions                            what was committed last, of each application
//! ```
//!
//! A commit stores the intent, appends, syncs, notes the transaction, and removes the intent. A
//! crash after the first step is brought to its end by the next opening for writing, and never
//! undone: no reader sees a record that vanishes later.

mod intent;
mod record;
mod records;
mod staging;

use std::path::Path;

use crate::error::{Durable, Error, ErrorKind, Result};
use crate::lines;
use crate::sidecar::check_name;
use crate::storage::{LockGuard, Storage};

pub use intent::Intent;
pub use record::Noted;
pub(crate) use records::{StagedReader, StagedWriter};
pub use staging::{Part, StagedJob};

const GIVE_UP: &str = "a commit had begun and cannot be brought to its end; deedbook vacuum \
                       --abandon gives it up";

/// What is committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// The job whose tasks staged it: a name of letters, digits, `-` and `_`.
    pub job: String,
    /// By which a repeat is recognised; `None`: a commit that is repeated appends again.
    pub id: Option<TransactionId>,
}

/// Which transaction of which application it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionId {
    /// The application: a name without white space.
    pub app: String,
    /// For a stream: the query, whose batches are numbered from 0 on without a gap. The last one alone
    /// is repeated.
    pub query: Option<String>,
    /// Number of the transaction: of one application, each is above the one before.
    pub version: u64,
}

/// What a commit did.
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

/// Where a store keeps its transactions.
pub(crate) struct Desk<'a> {
    pub(crate) storage: &'a dyn Storage,
    pub(crate) sidecar: &'a Path,
    /// Unix permissions of new files.
    pub(crate) file_mode: u32,
    /// Where records begin in a staged file: [`Framing::staged_from`](crate::scan::framing::Framing::staged_from).
    pub(crate) staged_from: u64,
}

/// The lock under which staged files are committed or removed.
pub(crate) type StagingLock = Option<Box<dyn LockGuard>>;

/// A store that takes transactions.
pub(crate) trait Target {
    fn desk(&self) -> Desk<'_>;

    /// Check that the parts fit, `store` the intent with the place at which they will lie, and
    /// append them, durably. An error with [`Durable::No`] means that no reader saw any of it.
    fn apply(
        &self,
        job: &str,
        parts: &[Part],
        store: &mut dyn FnMut(String) -> Result<()>,
    ) -> Result<Committed>;

    /// Append what is missing of a commit that has begun, durably; `store` its intent with another
    /// place first, if it is to lie elsewhere. `None` if its place is in another log.
    fn finish(
        &self,
        intent: &Intent,
        store: &mut dyn FnMut(String) -> Result<()>,
    ) -> Result<Option<Committed>>;
}

/// Append the parts in the order of their partitions, all or nothing, once.
pub(crate) fn commit(
    target: &impl Target,
    transaction: &Transaction,
    parts: &[Part],
) -> Result<Committed> {
    transaction.check()?;
    finish(target)?;
    let desk = target.desk();
    // Held until the intent is stored: what it will name stays.
    let mut lock = desk.lock()?;
    if let Some(id) = &transaction.id
        && desk.is_repeated(id)?
    {
        let TransactionId { app, version, .. } = id;
        lines::info(format_args!("transaction {version} of {app} is there already"));
        desk.remove_files(&transaction.job).unwrap_or_else(lines::warn);
        return Ok(Committed { repeated: true, ..Committed::default() });
    }
    seeded!("noted-before-appended" => transaction.id.iter().try_for_each(|id| desk.note(id))?);
    let parts = staging::in_order(parts, &transaction.job)?;
    desk.check_parts(&transaction.job, &parts)?;
    let mut store = |place| {
        let intent = Intent { transaction: transaction.clone(), place, parts: parts.clone() };
        intent.store(&desk)?;
        lock.take();
        Ok(())
    };
    let committed = match parts.iter().any(|part| part.records > 0) {
        false => Committed::default(),
        true => target.apply(&transaction.job, &parts, &mut store).map_err(|error| {
            match error.durable() == Some(Durable::No) && Intent::clear(&desk).is_err() {
                // The next opening for writing finds the intent.
                true => error.with_durable(Durable::Unknown),
                false => error,
            }
        })?,
    };
    desk.conclude(transaction)?;
    Ok(committed)
}

/// Bring a commit to its end that has begun, if there is one. An error says what is known of what the
/// caller is about to do: nothing of it began.
pub(crate) fn finish(target: &impl Target) -> Result<()> {
    finish_begun(target).map_err(|error| match error.durable() {
        Some(_) => error,
        None => error.with_durable(Durable::No),
    })
}

fn finish_begun(target: &impl Target) -> Result<()> {
    let desk = target.desk();
    let loaded = Intent::load(&desk).map_err(with_advice)?;
    let Some(intent) = loaded else { return Ok(()) };
    let job = &intent.transaction.job;
    let place = desk.sidecar.display();
    let mut store = |place| Intent { place, ..intent.clone() }.store(&desk);
    let finished = target.finish(&intent, &mut store).map_err(with_advice)?;
    if let Some(finished) = finished {
        let records = finished.records;
        lines::warn(format_args!(
            "the commit of job {job}, which had begun, is done: {records} records were missing \
             ({place})"
        ));
        return desk.conclude(&intent.transaction);
    }
    lines::warn(format_args!(
        "the commit of job {job} had begun in another log than this: it is dropped ({place})"
    ));
    Intent::clear(&desk)
}

/// What fails now may work later, but for what is missing or damaged.
fn with_advice(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Io => error,
        _ => error.with_advice(GIVE_UP),
    }
}

/// What is wrong with parts that say which number their first record must get, where the first of all
/// gets `next`.
pub(crate) fn misfit(parts: &[Part], next: u64, noun: &str) -> Option<String> {
    let mut ordinal = next;
    for part in parts {
        if let Some(first) = part.first.filter(|&first| first != ordinal) {
            return Some(format!(
                "partition {} begins with {noun} {first}, and would get {ordinal}: the log goes on \
                 with {next}",
                part.partition
            ));
        }
        ordinal += part.records;
    }
    None
}

impl Desk<'_> {
    /// Note that a transaction is durable, and remove what it needed.
    fn conclude(&self, transaction: &Transaction) -> Result<()> {
        seeded!("intent-goes-first" => Intent::clear(self)?);
        if let Some(id) = &transaction.id {
            self.note(id)?;
        }
        Intent::clear(self)?;
        // The records are there: what is left goes with the next commit.
        self.remove_files(&transaction.job).unwrap_or_else(lines::warn);
        Ok(())
    }

    /// Give up a commit that has begun: what it appended stays. Returns whether there was one. The
    /// caller holds the lock of the log's writer.
    pub(crate) fn abandon(&self) -> Result<Option<Transaction>> {
        let _lock = self.lock()?;
        // Also one that is damaged.
        let intent = Intent::load(self).unwrap_or_default();
        Intent::clear(self)?;
        Ok(intent.map(|intent| intent.transaction))
    }
}

impl Transaction {
    fn check(&self) -> Result<()> {
        staging::check_job(&self.job)?;
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
