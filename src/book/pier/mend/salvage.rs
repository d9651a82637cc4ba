//! Copying intact deeds to a new pier, epoch after epoch, under their own numbers.
//!
//! ```text
//! for each epoch, the oldest first:
//! 1 TO/.urb/log/.deedbook/next   the epoch salvaged as a book; a stub for each lost deed, up to the
//!                                next epoch's first deed; the texts that go with an epoch
//! 2 TO/.urb/log/0iN              the new name of `next`; both directories synced
//! last: the pier's transactions, consumers and `data.mdb`
//! ```
//!
//! A crash leaves a pier that ends earlier.

use std::path::Path;

use super::verify::{Report, sized};
use crate::book::copying::salvage::STUB;
use crate::book::epoch::demanded_by_name;
use crate::book::pier::open::{acquire, check_found};
use crate::book::pier::part::of_part;
use crate::book::pier::places::{LMDB_NAME, Named, check_joint, list, log_dir, name_of, small};
use crate::book::pier::publish::Epochs;
use crate::book::pier::{FORMAT, roll};
use crate::book::{Book, LOG_NAME, Options};
use crate::durability::Durability;
use crate::error::{Error, ErrorKind, Result};
use crate::log::{SalvageReport, carry_transactions};
use crate::mode::Mode;
use crate::sidecar::{CONSUMERS_WAIT, Consumers, sidecar_dir};
use crate::storage::{Aside, Storage, located, replace};
use crate::transaction::Target;

/// The size of a write of stubs.
const BATCH_BYTES: usize = 4 << 20;
/// The pier's own metadata has a few pages.
const METADATA_BYTES_MAX: usize = 16 << 20;

impl Report<SalvageReport> {
    /// Whether the copy has every deed.
    pub fn ok(&self) -> bool {
        self.gaps.is_empty() && self.total.damages.is_empty() && self.total.loss.is_none()
    }
}

impl Options {
    /// Copy every intact deed of a pier to a new pier, each epoch as
    /// [`salvage_keeping_numbers`](Self::salvage_keeping_numbers) copies a book. A stub also replaces each deed lost at
    /// the end of a sealed epoch: the next epoch keeps its number. The copy has the consumers and the committed
    /// transactions of the pier. The source never changes.
    ///
    /// # Errors
    ///
    /// Fails where there is no pier to read, with [`AlreadyExists`](crate::ErrorKind::AlreadyExists) for a target that is
    /// a pier, with [`Corrupt`](crate::ErrorKind::Corrupt) if the number of lost deeds is not proved, and with
    /// [`Contiguity`](crate::ErrorKind::Contiguity) for epochs that overlap, or leave out more events than the logs have
    /// bytes. The copy then ends before the epoch. See [Errors](crate#errors).
    ///
    /// # Examples
    ///
    /// ```
    /// use deedbook::book::{Options, pier::Pier};
    ///
    /// # fn main() -> deedbook::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("zod");
    /// let pier = Pier::append_to(&path)?;
    /// pier.append(0, b"first")?;
    /// pier.close()?;
    /// let report = Options::new().salvage_pier(&path, dir.path().join("copy"))?;
    /// assert_eq!((report.ok(), report.total.records), (true, 1));
    /// # Ok(())
    /// # }
    /// ```
    pub fn salvage_pier(
        &self,
        source: impl AsRef<Path>,
        target: impl AsRef<Path>,
    ) -> Result<Report<SalvageReport>> {
        self.salvage_pier_with(source, target, |_, _| Ok(()))
    }

    /// As [`salvage_pier`](Self::salvage_pier). `progress` is called with bytes done and bytes in all, and its error
    /// ends the copying.
    ///
    /// # Errors
    ///
    /// Fails as [`salvage_pier`](Self::salvage_pier). An error of `progress` ends the work and is returned.
    pub fn salvage_pier_with(
        &self,
        source: impl AsRef<Path>,
        target: impl AsRef<Path>,
        progress: impl FnMut(u64, u64) -> Result<()>,
    ) -> Result<Report<SalvageReport>> {
        salvage(source.as_ref(), target.as_ref(), &of_part(self), progress)
            .map_err(|e| e.of(FORMAT))
    }
}

fn salvage(
    source: &Path,
    target: &Path,
    options: &Options,
    mut progress: impl FnMut(u64, u64) -> Result<()>,
) -> Result<Report<SalvageReport>> {
    let storage = &*options.storage;
    let from = log_dir(storage, &located(storage, source)?)?;
    let (named, sizes) = sized(storage, &from)?;
    let target = located(storage, target)?;
    let to = log_dir(storage, &target)?;
    let refuse_pier = || check_found(options, Mode::Create, &list(storage, &to)?);
    refuse_pier()?;
    let lock = acquire(options, &target, &to)?;
    refuse_pier()?;
    let (bytes, mut done) = (sizes.iter().sum(), 0);
    let mut all = Report::<SalvageReport>::default();
    all.total.path.clone_from(&from);
    all.total.copy = Some(to.clone());
    for (at, (named_here, size)) in named.iter().zip(sizes).enumerate() {
        let aside = Aside::begin(storage, sidecar_dir(&to).join(roll::NEXT_NAME))?;
        let mut report =
            options.salvage_keeping_numbers(&named_here.dir, aside.path(), |at, _| {
                // An epoch that grows meanwhile has no more of the whole.
                progress(done + at.min(size), bytes)
            })?;
        done += size;
        let gap =
            complete(options, aside.path(), (named_here, named.get(at + 1)), bytes, &mut report)?;
        if let Err(error) = roll::label(options, aside.path(), Some(&named_here.dir)) {
            report.not_carried.push(error.to_string());
            roll::label(options, aside.path(), None)?;
        }
        let Named { number, dir } = roll::put(&aside, &to, named_here.number)?;
        report.copy = Some(dir.join(LOG_NAME));
        all.gaps.extend(gap);
        add(&mut all.total, &report);
        all.epochs.push((number, report));
        progress(done, bytes)?;
    }
    let desk = |dir| Epochs::of(options, dir);
    carry_transactions(&desk(&from).desk(), &desk(&to).desk(), FORMAT, &mut all.total)?;
    let copy = options.open_pier(&target, Mode::Read)?;
    all.total.transactions = copy.transactions()?.len() as u64;
    carry_consumers(storage, (&from, &to), copy.last()?.saturating_add(1), &mut all.total)?;
    carry_metadata(options, (&from, &to), &mut all.total)?;
    drop(lock);
    Ok(all)
}

/// Add to an epoch's copy a stub for each deed lost before the next epoch. Returns the gap in words.
fn complete(
    options: &Options,
    copy: &Path,
    (epoch, after): (&Named, Option<&Named>),
    most: u64,
    report: &mut SalvageReport,
) -> Result<Option<String>> {
    let copy = options.clone().durability(Durability::Manual).open(copy, Mode::Append)?;
    let begins = copy.epoch()?;
    if demanded_by_name(&epoch.dir, copy.layout()).is_some_and(|number| number != begins) {
        let name = name_of(epoch.number);
        let message =
            format!("epoch {name} begins with event {} by its log", begins.saturating_add(1));
        return Err(Error::new(ErrorKind::Contiguity, message).at(&epoch.dir));
    }
    let next = copy.last()?.saturating_add(1);
    let joint = after.map_or(Ok(()), |after| check_joint(epoch.number, next, after));
    let missing = after.and_then(|after| after.number.saturating_add(1).checked_sub(next));
    let gap = match (joint, missing) {
        (Ok(()), _) => None,
        (Err(gap), Some(missing)) if missing <= most => {
            add_stubs(&copy, next, missing, report)?;
            Some(gap.message().to_string())
        }
        (Err(gap), _) => return Err(gap),
    };
    copy.close()?;
    Ok(gap)
}

fn add_stubs(copy: &Book, first: u64, count: u64, report: &mut SalvageReport) -> Result<()> {
    let mut batch = copy.batch();
    for event in first..first + count {
        batch.push(STUB.tag, STUB.payload)?;
        report.stubs.push(event);
        if batch.bytes_len() >= BATCH_BYTES {
            copy.append_unsynced(&batch)?;
            batch.clear();
        }
    }
    copy.append_unsynced(&batch)?;
    Ok(())
}

/// Add the report of an epoch.
fn add(total: &mut SalvageReport, epoch: &SalvageReport) {
    total.records += epoch.records;
    total.uncertain += epoch.uncertain;
    total.runs.extend_from_slice(&epoch.runs);
    total.damages.extend_from_slice(&epoch.damages);
    total.loss = total.loss.or(epoch.loss);
    total.source_bytes += epoch.source_bytes;
    total.stubs.extend_from_slice(&epoch.stubs);
    total.unfinished_transactions += epoch.unfinished_transactions;
    total.not_carried.extend_from_slice(&epoch.not_carried);
}

/// Store the consumers next to the copy. A consumer after the end of the copy needs the next deed.
fn carry_consumers(
    storage: &dyn Storage,
    (from, to): (&Path, &Path),
    next: u64,
    report: &mut SalvageReport,
) -> Result<()> {
    let (from, to) = (sidecar_dir(from), sidecar_dir(to));
    let mut found = match (Consumers { storage, sidecar: &from, format: FORMAT }).load() {
        Ok(found) => found,
        Err(error) => {
            report.not_carried.push(error.to_string());
            return Ok(());
        }
    };
    for (name, event) in found.iter_mut().filter(|(_, event)| **event > next) {
        report.moved_consumers.push(name.clone());
        *event = next;
    }
    report.consumers = found.len() as u64;
    if found.is_empty() {
        return Ok(());
    }
    let consumers = Consumers { storage, sidecar: &to, format: FORMAT };
    let _lock = consumers.lock(CONSUMERS_WAIT)?;
    consumers.store(&found)
}

/// Copy the metadata that Vere keeps in LMDB.
fn carry_metadata(
    options: &Options,
    (from, to): (&Path, &Path),
    report: &mut SalvageReport,
) -> Result<()> {
    let storage = &*options.storage;
    let place = to.join(LMDB_NAME);
    match small(storage, &from.join(LMDB_NAME), "metadata", METADATA_BYTES_MAX) {
        Ok(Some(bytes)) => replace(storage, &place, &bytes, options.file_mode)
            .map_err(|e| Error::io("store the metadata", &place, e)),
        Ok(None) => Ok(()),
        Err(error) => {
            report.not_carried.push(error.to_string());
            Ok(())
        }
    }
}
