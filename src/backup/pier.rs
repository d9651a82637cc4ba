//! A pier: its epochs are books in a row. Meanwhile the pier drops first epochs and begins new
//! ones.
//!
//! An epoch begun meanwhile is for the next backup. The backup removes an epoch that the pier
//! dropped, after all other epochs are there.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::copier::{Copied, Copier, Step, Stop, once_more};
use super::log::{self, Span};
use super::source::{is_dir, is_file, is_free, read_small, sorted_names, wait_until_none};
use crate::book::format::BookFormat;
use crate::book::pier::Pier;
use crate::book::{LOG_NAME, Options, epoch_in_name};
use crate::error::{Error, ErrorKind, Result};
use crate::log::Place;
use crate::mode::Mode;
use crate::saving::refuse_link;
use crate::sidecar::sidecar_dir;
use crate::storage::{Aside, Storage, above, move_to};

const TRANSACTION: &str = "transaction";
const CONSUMERS: &str = "consumers";
const TRANSACTIONS: &str = "transactions";
/// The directories for a writer's new epoch, and for an epoch that a writer drops.
const NEXT: &str = "next";
const DROPPED: &str = "dropped";
/// Vere's metadata, in LMDB.
const METADATA: &str = "data.mdb";
/// The most copies of a file that somebody writes meanwhile.
const PASSES_MAX: u32 = 10;

/// The directory of a pier's epochs.
pub fn log_dir(storage: &Arc<dyn Storage>, path: &Path) -> Result<PathBuf> {
    Ok(open(storage, path)?.log_dir().to_path_buf())
}

fn open(storage: &Arc<dyn Storage>, path: &Path) -> Result<Pier> {
    Options::new().storage(storage.clone()).open_pier(path, Mode::Read)
}

/// Bring the backup of a pier up to date. `ours` and `theirs` are the directories of the epochs.
pub fn backup(
    storage: &Arc<dyn Storage>,
    ours: &Path,
    theirs: &Path,
    copier: &mut Copier<'_>,
) -> Result<Copied> {
    let mut new_records = 0;
    let mut copied =
        once_more(ours, "dropped", || copy(storage, ours, theirs, copier, &mut new_records))?;
    copied.new_records = Some(new_records);
    Ok(copied)
}

fn copy(
    storage: &Arc<dyn Storage>,
    ours: &Path,
    theirs: &Path,
    copier: &mut Copier<'_>,
    new_records: &mut u64,
) -> Step<Copied> {
    let disk = &**storage;
    for dir in [ours, theirs] {
        refuse_links(disk, dir)?;
    }
    let (epochs, transactions) = epochs_without_a_commit(storage, ours)?;
    let mut total_bytes = 0;
    for &number in &epochs {
        let name = format!("0i{number}");
        let (from, to) = (
            Place::file_in(&ours.join(&name), LOG_NAME),
            Place::file_in(&theirs.join(&name), LOG_NAME),
        );
        copier.target.go_on_with(number);
        let begin =
            |copier: &mut Copier<'_>, span: &Span| begin_epoch(copier, span, &from, &to, theirs);
        match log::backup_into::<BookFormat>(storage, &from, &to, copier, &begin) {
            Ok(copied) => {
                *new_records += copied.new_records.unwrap_or(0);
                total_bytes += copied.total_bytes;
            }
            Err(_) if !disk.is_dir(&from.dir) => {
                return Err(Stop::Changed(format!("{name} was dropped")));
            }
            Err(error) => return Err(error.into()),
        }
    }
    let (from, to) = (sidecar_dir(ours), sidecar_dir(theirs));
    let consumers = read_small(disk, &from.join(CONSUMERS))?;
    copier.whole(&from.join(CONSUMERS), &to.join(CONSUMERS), consumers.as_deref())?;
    copier.whole(&from.join(TRANSACTIONS), &to.join(TRANSACTIONS), transactions.as_deref())?;
    copy_metadata(copier, &ours.join(METADATA), &theirs.join(METADATA))?;
    copier.sync_names()?;
    drop_before(copier, theirs, epochs.first().copied().unwrap_or(0))?;
    let bounds = open(storage, theirs)?.bounds()?.map(|bounds| (*bounds.start(), *bounds.end()));
    Ok(Copied { bounds, new_records: None, total_bytes })
}

fn refuse_links(storage: &dyn Storage, dir: &Path) -> Result<()> {
    refuse_link(storage, &sidecar_dir(dir))?;
    for name in epochs_in(storage, dir)? {
        refuse_link(storage, &dir.join(format!("0i{name}")))?;
    }
    Ok(())
}

/// The numbers of the epochs in a directory, the first one first.
fn epochs_in(storage: &dyn Storage, dir: &Path) -> Result<Vec<u64>> {
    let names = sorted_names(storage, dir)?;
    let mut numbers: Vec<u64> =
        names.iter().filter_map(|name| epoch_in_name(Path::new(name))).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// The epochs and the record of transactions between two commits: a commit may make epochs.
fn epochs_without_a_commit(
    storage: &Arc<dyn Storage>,
    ours: &Path,
) -> Step<(Vec<u64>, Option<Vec<u8>>)> {
    let (disk, sidecar) = (&**storage, sidecar_dir(ours));
    let (intent, record) = (sidecar.join(TRANSACTION), sidecar.join(TRANSACTIONS));
    wait_until_none(disk, ours, std::slice::from_ref(&intent), || is_free(disk, &sidecar))?;
    let transactions = read_small(disk, &record)?;
    let epochs = open(storage, ours)?.epochs()?.iter().map(|epoch| epoch.number).collect();
    if is_file(disk, &intent)? || read_small(disk, &record)? != transactions {
        return Err(Stop::Changed("transactions were committed".into()));
    }
    Ok((epochs, transactions))
}

/// Give the target a missing epoch. The epoch gets its name with a header and no deeds: an epoch
/// without a log is damage.
fn begin_epoch(
    copier: &mut Copier<'_>,
    span: &Span,
    from: &Place,
    to: &Place,
    theirs: &Path,
) -> Step<()> {
    if is_dir(copier.storage, &to.dir)? {
        return Ok(());
    }
    copier.target.begin()?;
    let aside = Aside::begin(copier.storage, sidecar_dir(theirs).join(NEXT))?;
    copier.make_dir(aside.path())?;
    copier.whole(&from.log, &aside.path().join(LOG_NAME), Some(&span.first_bytes))?;
    if let Ok(Some(mode)) = copier.storage.mode(&from.dir) {
        let _ = copier.storage.set_mode(aside.path(), mode & 0o777 | 0o700);
    }
    copier.sync_names()?;
    Ok(aside.publish(&to.dir, "name the epoch of the backup")?)
}

/// Copy a file that LMDB may write. A copy is whole if a second reading finds the same bytes. If
/// the pier lost the file, the backup keeps its own copy: no program can make the file again.
fn copy_metadata(copier: &mut Copier<'_>, source: &Path, target: &Path) -> Step<()> {
    if !copier.is_file(source)? {
        return Ok(());
    }
    for _ in 0..PASSES_MAX {
        let Some(new) = copier.stage(source, target)? else { return Ok(()) };
        if copier.same(source, &new)? {
            return copier.give_name(&new, target);
        }
        copier.remove(&new)?;
    }
    let message =
        format!("{} is written again and again: back the pier up once more", source.display());
    Err(Error::new(ErrorKind::Locked, message).into())
}

/// Remove the epochs of the backup that the pier has dropped, from the first on.
fn drop_before(copier: &mut Copier<'_>, theirs: &Path, first: u64) -> Step<()> {
    let doing = "remove from the backup";
    for number in epochs_in(copier.storage, theirs)?.into_iter().filter(|&number| number < first) {
        copier.target.begin()?;
        let aside = Aside::begin(copier.storage, sidecar_dir(theirs).join(DROPPED))?;
        let epoch = theirs.join(format!("0i{number}"));
        move_to(copier.storage, &epoch, aside.path()).map_err(|e| Error::io(doing, &epoch, e))?;
        aside.remove(doing)?;
    }
    copier.sync_names()
}

/// Have the directories down to the epochs of the backup.
pub fn make_log_dir(storage: &dyn Storage, top: &Path, theirs: &Path) -> Result<()> {
    if theirs != top && !is_dir(storage, theirs)? {
        make_log_dir(storage, top, above(theirs))?;
        storage
            .create_dir_as(theirs, 0o777)
            .map_err(|e| Error::io("create the backup", theirs, e))?;
    }
    Ok(())
}
