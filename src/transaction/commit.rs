//! The commit of a transaction: all of it, once, whatever crashes between.

use super::desk::{Committed, Desk, Part, Transaction, TransactionId};
use super::intent::Intent;
use super::staging::in_order;
use crate::error::{Durable, Error, ErrorKind, Result};
use crate::ground::lines;
use crate::storage::sync_dir;

const GIVE_UP: &str = "a commit had begun and cannot be brought to its end; deedbook vacuum \
                       --abandon gives it up";

/// A store that takes transactions.
pub(crate) trait Target {
    fn desk(&self) -> Desk<'_>;

    /// Check that the parts fit, `store` the intent with the place of the records, and append the
    /// records, durably. After an error with [`Durable::No`], no reader saw a record.
    fn apply(
        &self,
        job: &str,
        parts: &[Part],
        store: &mut dyn FnMut(String) -> Result<()>,
    ) -> Result<Committed>;

    /// Append the missing records of an unfinished commit, durably. If the records will lie
    /// elsewhere, `store` the intent with the new place first. `None` if the intent's place is in
    /// another log.
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
    // Held until the intent is stored: the staged files stay meanwhile.
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
    let parts = in_order(parts, &transaction.job)?;
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

/// Finish an unfinished commit, if there is one. An error here says [`Durable::No`] about the
/// caller's own call, because nothing of the call has begun.
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
    // The process that stored the intent may have died before it synced the name. Without the name, a power cut
    // would leave the records of a commit that nobody knows.
    sync_dir(desk.storage, desk.sidecar)?;
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

/// A failed commit may work later, unless something is missing or damaged.
fn with_advice(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Io => error,
        _ => error.with_advice(GIVE_UP),
    }
}

/// The first mismatch of parts that demand a number for their first record. The first part gets
/// `next`.
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
    /// Note a transaction as durable, and remove its files.
    fn conclude(&self, transaction: &Transaction) -> Result<()> {
        seeded!("intent-goes-first" => Intent::clear(self)?);
        if let Some(id) = &transaction.id {
            self.note(id)?;
        }
        Intent::clear(self)?;
        // The records are there. The next commit removes leftover files.
        self.remove_files(&transaction.job).unwrap_or_else(lines::warn);
        Ok(())
    }

    /// Give up an unfinished commit. Its appended records stay. Returns whether there was a commit.
    /// The caller holds the lock of the log's writer.
    pub(crate) fn abandon(&self) -> Result<Option<Transaction>> {
        let _lock = self.lock()?;
        // A damaged intent is given up, too.
        let intent = Intent::load(self).unwrap_or_default();
        Intent::clear(self)?;
        Ok(intent.map(|intent| intent.transaction))
    }
}
