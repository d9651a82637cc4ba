//! Large transactions: each task's staged file becomes an epoch, by renaming.
//!
//! ```text
//! 1 .urb/log/.deedbook/begun/0iN/   each part's staged file as `book.log`, with a header, and the
//!                                   other files of a new epoch; all synced
//! 2 the last epoch is synced and closed
//! 3 .urb/log/.deedbook/transaction  the intent; its place is `epochs` and the first N
//! 4 begun/0iN renamed to .urb/log/0iN, in order, both directories synced after each
//! 5 the transaction is noted in .urb/log/.deedbook/transactions, the intent removed
//! ```
//!
//! A crash before the intent leaves the pier unchanged, and leftovers in `begun`, which the next
//! writer removes. After the intent, the next writer renames the remaining files before it opens an
//! epoch. Readers meet the first new epoch, or more, and no new epoch disappears again.

use std::path::{Path, PathBuf};

use super::part::{OpenEpoch, extend, of_part};
use super::places::{Named, list, name_of};
use super::{FORMAT, LOG_NAME, Shared, roll};
use crate::book::layouts::codec::Codec;
use crate::book::layouts::packed::HEADER_BYTES;
use crate::book::{Layout, Options};
use crate::error::{Durable, Error, ErrorKind, Result};
use crate::ground::lines;
use crate::ground::locks::lock;
use crate::log::StagedReader;
use crate::mode::Mode;
use crate::saving::make_own_dir;
use crate::sidecar::sidecar_dir;
use crate::storage::{Aside, sync_dir};
use crate::transaction::{self, Committed, Desk, Intent, Target, Transaction};

const BEGUN_NAME: &str = "begun";
/// The beginning of an intent's place.
const PLACE: &str = "epochs ";

impl Shared {
    /// Whether a transaction makes an epoch of each part: the parts are large, and can be logs as
    /// they are. A last epoch without events takes the deeds itself: a new epoch would have the
    /// same name.
    pub(super) fn publishes(
        &self,
        epochs: &[OpenEpoch],
        parts: &[transaction::Part],
    ) -> Result<bool> {
        let Some((least, last)) = self.options.epoch_part_bytes.zip(epochs.last()) else {
            return Ok(false);
        };
        let filled = || parts.iter().filter(|part| part.records > 0);
        let bytes: u64 = filled().map(|part| part.bytes).sum();
        let is_large = bytes >= least.saturating_mul(filled().count() as u64);
        let layouts = [Some(last.book.layout()), self.options.layout];
        let is_packed = layouts.into_iter().flatten().all(|layout| layout == Layout::Packed);
        let records = filled().map(|part| part.records).sum();
        let event = last.book.last()?;
        let is_numbered = event.checked_add(records).is_some_and(|last| last < u64::MAX);
        Ok(is_large && is_packed && is_numbered && event > last.number)
    }

    /// Make an epoch of each part. The last epoch takes appends from now on.
    pub(super) fn publish(
        &self,
        epochs: &mut Vec<OpenEpoch>,
        transaction: &Transaction,
        parts: &[transaction::Part],
    ) -> Result<Committed> {
        let Some(last) = epochs.last().cloned() else { return Ok(Committed::default()) };
        let number = last.book.last()?;
        let target =
            Epochs { closing: Some((self, &last)), ..Epochs::of(&self.options, &self.dir) };
        let desk = target.desk();
        let gathered = self.gather(epochs, &desk, transaction, parts);
        gathered.map_err(|e| e.with_durable(Durable::No))?;
        let committed = transaction::commit(&target, transaction, parts);
        let is_named = || desk.storage.is_dir(&self.dir.join(name_of(number)));
        let is_begun = !matches!(Intent::load(&desk), Ok(None)) || is_named();
        match committed {
            Ok(done) => {
                if let Err(error) = self.take_up(epochs, &target) {
                    // The epochs exist. Later calls report the closed handle.
                    lines::warn(&error);
                    let _ = self.finish(epochs);
                }
                Ok(done)
            }
            Err(error) => {
                if !is_begun {
                    target.take_back(&transaction.job, parts, number);
                }
                if last.book.is_closed() {
                    self.go_on(epochs, is_begun);
                }
                Err(if is_begun { error } else { error.with_durable(Durable::No) })
            }
        }
    }

    /// Move the staged parts in epochs to the pier's desk, and note the transaction's history
    /// there.
    fn gather(
        &self,
        epochs: &[OpenEpoch],
        desk: &Desk<'_>,
        transaction: &Transaction,
        parts: &[transaction::Part],
    ) -> Result<()> {
        if let Some(last) = epochs.last() {
            // An intent of the epoch itself comes first: its staged files would be moved away.
            last.book.0.finish_transaction()?;
        }
        for epoch in epochs.iter().filter(|epoch| epoch.book.layout() == Layout::Packed) {
            desk.adopt(&epoch.book.0.desk()?, &transaction.job, parts)?;
        }
        let id = transaction.id.as_ref();
        match id.map_or(Ok(None), |id| self.known(epochs, &id.app))? {
            Some(known) => desk.note(&known),
            None => Ok(()),
        }
    }

    /// Open the epochs of a commit, and reopen the epoch before for reading.
    fn take_up(&self, epochs: &mut Vec<OpenEpoch>, target: &Epochs<'_>) -> Result<()> {
        let Some(last) = epochs.last_mut().filter(|last| last.book.is_closed()) else {
            return Ok(());
        };
        let number = last.number;
        last.book = of_part(&self.options).open(&last.dir, Mode::Read)?;
        let named = list(target.desk().storage, &self.dir)?;
        let begun = named.partition_point(|named| named.number <= number);
        extend(&self.options, epochs, named.get(begun..).unwrap_or_default(), Mode::Append)
    }
}

/// Finish a commit that crashed while renaming epochs; call before opening any epoch.
pub(super) fn finish(options: &Options, dir: &Path) -> Result<()> {
    transaction::finish(&Epochs::of(options, dir))
}

/// Remove epochs that a commit made and did not rename. Call only without an intent.
pub(super) fn remove_begun(options: &Options, dir: &Path) -> Result<()> {
    let begun = sidecar_dir(dir).join(BEGUN_NAME);
    Aside::at(&*options.storage, begun).remove(Aside::LEFT).map_err(|e| e.of(FORMAT))
}

/// The desk for a pier's published transactions.
pub(super) struct Epochs<'a> {
    options: &'a Options,
    dir: &'a Path,
    sidecar: PathBuf,
    /// The last epoch, which a commit closes.
    closing: Option<(&'a Shared, &'a OpenEpoch)>,
}

impl<'a> Epochs<'a> {
    pub(super) fn of(options: &'a Options, dir: &'a Path) -> Self {
        Self { options, dir, sidecar: sidecar_dir(dir), closing: None }
    }

    fn begun(&self, number: u64) -> PathBuf {
        self.sidecar.join(BEGUN_NAME).join(name_of(number))
    }

    /// Check for every possible refusal, make the epochs, and store the intent.
    fn begin(
        &self,
        job: &str,
        parts: &[transaction::Part],
        store: &mut dyn FnMut(String) -> Result<()>,
    ) -> Result<u64> {
        let Some((shared, last)) = self.closing else { return Ok(0) };
        let number = last.book.last()?;
        if let Some(misfit) = transaction::misfit(parts, number + 1, "event") {
            return Err(shared.refused(ErrorKind::Contiguity, misfit));
        }
        remove_begun(self.options, self.dir)?;
        let begun = self.sidecar.join(BEGUN_NAME);
        make_own_dir(self.desk().storage, &begun, self.options.file_mode)?;
        for (part, number) in numbered(parts, number) {
            self.make(job, part, number, &last.dir)?;
        }
        shared.close_last(last, number)?;
        store(format!("{PLACE}{number}"))?;
        Ok(number)
    }

    /// Make an epoch of a part below `begun`. The part is read once, to compare its checksums.
    fn make(&self, job: &str, part: &transaction::Part, number: u64, before: &Path) -> Result<()> {
        let desk = self.desk();
        let codec = Codec::new(Layout::Packed, self.options.deed_bytes_max);
        let mut staged = StagedReader::open(&desk, job, part, codec)?;
        while staged.next()?.is_some() {}
        drop(staged);
        let (place, path) = (self.begun(number), desk.part_path(job, part)?);
        roll::make(self.options, place, number, Some((before, Layout::Packed)), Some(&path))?;
        Ok(())
    }

    /// Rename an epoch to its place, durably.
    fn name(&self, number: u64) -> Result<()> {
        let begun = Aside::at(&*self.options.storage, self.begun(number));
        roll::put(&begun, self.dir, number)?;
        Ok(())
    }

    /// Move the parts back to the staged files, after a commit that did not begin.
    fn take_back(&self, job: &str, parts: &[transaction::Part], number: u64) {
        let desk = self.desk();
        let mut parts = parts.to_vec();
        parts.sort_by_key(|part| (part.partition, part.sequence));
        for (part, number) in numbered(&parts, number) {
            // A part after the error has no file.
            let Ok(path) = desk.part_path(job, part) else { continue };
            let _ = desk.storage.rename(&self.begun(number).join(LOG_NAME), &path);
        }
        remove_begun(self.options, self.dir).unwrap_or_else(lines::warn);
    }
}

/// The parts with deeds, each with the number of its epoch.
fn numbered(
    parts: &[transaction::Part],
    first: u64,
) -> impl Iterator<Item = (&transaction::Part, u64)> {
    parts.iter().filter(|part| part.records > 0).scan(first, |next, part| {
        let number = *next;
        *next = next.saturating_add(part.records);
        Some((part, number))
    })
}

impl Target for Epochs<'_> {
    fn desk(&self) -> Desk<'_> {
        Desk {
            storage: &*self.options.storage,
            sidecar: &self.sidecar,
            file_mode: self.options.file_mode,
            staged_from: HEADER_BYTES,
        }
    }

    fn apply(
        &self,
        job: &str,
        parts: &[transaction::Part],
        store: &mut dyn FnMut(String) -> Result<()>,
    ) -> Result<Committed> {
        let begun = self.begin(job, parts, store);
        let first = begun.map_err(|e| e.with_durable(Durable::No))?;
        let mut done = Committed { first: Some(first + 1), ..Committed::default() };
        for (part, number) in numbered(parts, first) {
            self.name(number).map_err(|e| e.with_durable(Durable::Unknown))?;
            done.records += part.records;
        }
        if let Some((shared, _)) = self.closing {
            let mut stats = lock(&shared.finished);
            stats.appends += 1;
            stats.records += done.records;
            stats.bytes += parts.iter().map(|part| part.bytes).sum::<u64>();
        }
        Ok(done)
    }

    fn finish(
        &self,
        intent: &Intent,
        _store: &mut dyn FnMut(String) -> Result<()>,
    ) -> Result<Option<Committed>> {
        let number = intent.place.strip_prefix(PLACE).and_then(|number| number.parse().ok());
        let first: u64 = number.ok_or_else(|| {
            let message = format!("the intent of a commit has the place {:?}", intent.place);
            Error::new(ErrorKind::Unsupported, message).of(FORMAT).at(&self.sidecar)
        })?;
        // A crashed commit may have left a rename unsynced.
        let storage = &*self.options.storage;
        let begun = self.sidecar.join(BEGUN_NAME);
        if storage.is_dir(&begun) {
            sync_dir(storage, &begun)?;
        }
        let named = list(storage, self.dir)?;
        let last = named.last().map(|named| named.number);
        if let Some(last) = named.last().filter(|last| last.number < first) {
            self.check_unchanged(last, first)?;
        }
        let mut done = Committed::default();
        // The parts were renamed in order.
        let left = |&(_, number): &(_, u64)| last.is_none_or(|last| last < number);
        for (part, number) in numbered(&intent.parts, first).filter(left) {
            self.name(number)?;
            done.records += part.records;
        }
        Ok(Some(done))
    }
}

impl Epochs<'_> {
    /// Fail if the last event of the epoch before has changed since the commit began.
    fn check_unchanged(&self, last: &Named, first: u64) -> Result<()> {
        let book = of_part(self.options).open(&last.dir, Mode::Read)?;
        let event = book.last()?;
        if event == first {
            return Ok(());
        }
        let message = format!(
            "a commit began after event {first}, and epoch {} ends with event {event} now",
            name_of(last.number)
        );
        Err(Error::new(ErrorKind::Contiguity, message).of(FORMAT).at(&last.dir))
    }
}
