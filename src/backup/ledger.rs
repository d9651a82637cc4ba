//! Ledgers: files that are written once, sent and removed, and the dead letters of refused records.
//!
//! The backup makes each file aside, so a file with its final name is whole. The backup removes a
//! file that the ledgers no longer have, after the counters mark the file's number as used.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::copier::growing::Growing;
use super::copier::{Copied, Copier, Step, Stop, once_more};
use super::source::{is_dir, names_saved, read_small, sorted_names, wait_until_none};
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::codec::{QUARANTINE_NAME, file_parts};
use crate::ledger::{Options, bases};
use crate::scan::Verdict;
use crate::sidecar::sidecar_dir;
use crate::storage::{LockAttempt, Storage};

const SETTINGS: &str = "settings";
const COUNTER: &str = "next-";
const JOBS: &str = "jobs-";
const LETTERS: &str = "dead-letters";
/// Passes over the files, whose sender removes some in each. Enough for refusals and replays.
const PASSES_MAX: u32 = 10;

/// Bring the backup of all ledgers in a directory up to date, and read all of it.
pub fn backup(
    storage: &Arc<dyn Storage>,
    ours: &Path,
    theirs: &Path,
    copier: &mut Copier<'_>,
) -> Result<Copied> {
    once_more(ours, "sent", || copy(storage, ours, theirs, copier))
}

fn copy(
    storage: &Arc<dyn Storage>,
    ours: &Path,
    theirs: &Path,
    copier: &mut Copier<'_>,
) -> Step<Copied> {
    let (disk, options) = (&**storage, Options::default().storage(storage.clone()));
    let (from, to) = (sidecar_dir(ours), sidecar_dir(theirs));
    let bases = bases(ours, &options)?;
    let jobs: Vec<PathBuf> = bases.iter().map(|base| from.join(format!("{JOBS}{base}"))).collect();
    for dir in &jobs {
        is_dir(disk, dir)?;
    }
    let intents: Vec<PathBuf> = jobs.iter().map(|dir| dir.join("transaction")).collect();
    // A commit locks its directory, and waits for the lock: this look refuses nobody.
    let is_free = |dir: &PathBuf| matches!(disk.lock(dir, false), Ok(LockAttempt::Held(_)));
    let is_alone = || Ok(cfg!(unix) && jobs.iter().filter(|dir| disk.is_dir(dir)).all(is_free));
    wait_until_none(disk, ours, &intents, is_alone)?;
    // Before the files, and again after them: a file that is refused meanwhile becomes letters.
    let mut letters = copy_letters(copier, &from, &to, &BTreeSet::new())?;
    let (mut sizes, mut there) = (BTreeMap::new(), BTreeSet::new());
    for _ in 0..PASSES_MAX {
        sizes.clear();
        // Before the files: it says how long a record may be.
        let settings = read_small(disk, &from.join(SETTINGS))?;
        copier.whole(&from.join(SETTINGS), &to.join(SETTINGS), settings.as_deref())?;
        let names = files(disk, ours, &bases)?;
        for name in &names {
            match copy_file(copier, &ours.join(name), &theirs.join(name), &options) {
                Ok(bytes) => drop(sizes.insert(name.clone(), bytes)),
                // It was sent.
                Err(Stop::Changed(_)) => {}
                Err(stop) => return Err(stop),
            }
        }
        // A missing file was sent, or now lies in one of the next directories.
        there = files(disk, ours, &bases)?.into_iter().collect();
        // Before removing a file: no later file may get its number.
        for file in small_files(disk, &from)? {
            let bytes = read_small(disk, &from.join(&file))?;
            copier.whole(&from.join(&file), &to.join(&file), bytes.as_deref())?;
        }
        for name in sorted_names(disk, &from.join(QUARANTINE_NAME))? {
            if names_file(&name) {
                let place = Path::new(QUARANTINE_NAME).join(name);
                copier.once(&from.join(&place), &to.join(&place))?;
            }
        }
        letters.extend(copy_letters(copier, &from, &to, &letters)?);
        copier.sync_names()?;
        // A missing file may have been refused, and its letters replayed into another file.
        if names.iter().all(|name| there.contains(name)) {
            break;
        }
    }
    for name in files(disk, theirs, &bases)?.into_iter().filter(|name| !there.contains(name)) {
        copier.remove(&theirs.join(name))?;
    }
    for letter in self::letters(disk, &to)?.difference(&letters) {
        copier.remove(&to.join(letter))?;
    }
    let dirs = sorted_names(disk, &to)?
        .into_iter()
        .filter(|name| names_letters(name) || name == QUARANTINE_NAME);
    for dir in dirs.map(|name| to.join(name)).chain([theirs.to_path_buf()]) {
        copier.sweep(&dir, |name| names_file(name) || names_letter(name))?;
    }
    copier.sync_names()?;
    for base in &bases {
        for (file, report) in options.verify_with(theirs, base, |_, _| copier.tell())? {
            if !report.ok() || report.verdict != Verdict::Clean {
                return Err(damaged(theirs, &file.path, &report.damages).into());
            }
        }
    }
    Ok(Copied { bounds: None, new_records: None, total_bytes: sizes.values().sum() })
}

/// Copy the whole records of a file; returns their bytes. A damaged file replaces none.
fn copy_file(
    copier: &mut Copier<'_>,
    source: &Path,
    target: &Path,
    options: &Options,
) -> Step<u64> {
    let file = match options.open_file(source) {
        Err(e) if e.kind() == ErrorKind::Missing => {
            return Err(Stop::Changed(format!("{} is gone", source.display())));
        }
        opened => opened?,
    };
    let recovery = file.recovery();
    if recovery.verdict == Verdict::Corrupt {
        return Err(damaged(target, source, recovery.damage.as_slice()).into());
    }
    // A store may be writing the next record.
    let end = file.end()?;
    let (from, to) = (source.to_path_buf(), target.to_path_buf());
    let kept = copier.check(&Growing { source: from, target: to, base: 0, start: 0, end }, end)?;
    if kept == end && copier.is_file(target)? {
        return Ok(end);
    }
    let new = copier.stage_to(source, target, end)?;
    let report = options.verify_file(&new, &[], |_, _| copier.tell())?;
    if !report.ok() {
        copier.remove(&new)?;
        return Err(damaged(target, source, &report.damages).into());
    }
    copier.give_name(&new, target)?;
    Ok(end)
}

fn damaged(target: &Path, file: &Path, damages: &[crate::report::Damage]) -> Error {
    let reason = damages.first().map_or("", |damage| &*damage.reason);
    let (target, file) = (target.display(), file.display());
    let message =
        format!("{target}: the backup is damaged, as the ledger may be: {file}: {reason}");
    Error::new(ErrorKind::Corrupt, message)
}

/// The names of the ledgers' files, by number.
fn files(storage: &dyn Storage, dir: &Path, bases: &[String]) -> Result<Vec<String>> {
    let names = sorted_names(storage, dir)?;
    let mut found: Vec<(String, u32, String)> = Vec::new();
    for name in names {
        if let Some((index, base)) =
            file_parts(OsStr::new(&name)).filter(|(_, base)| bases.iter().any(|one| one == base))
        {
            found.push((base.to_string(), index, name.clone()));
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(.., name)| name).collect())
}

/// Whether a ledger gives such a name to a file, or to saved bytes of a cut.
fn names_file(name: &str) -> bool {
    file_parts(OsStr::new(name)).is_some() || names_saved(name)
}

/// Whether a file has dead letters.
fn names_letter(name: &str) -> bool {
    name.ends_with(".jsonl") && !name.starts_with('.')
}

/// Whether a directory of the sidecar holds dead letters.
fn names_letters(dir: &str) -> bool {
    dir == LETTERS || dir.strip_prefix(LETTERS).is_some_and(|rest| rest.starts_with('-'))
}

/// The files of dead letters, in the directories of all ledgers, by their places in the sidecar.
fn letters(storage: &dyn Storage, sidecar: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    for dir in sorted_names(storage, sidecar)? {
        if names_letters(&dir) {
            let names = sorted_names(storage, &sidecar.join(&dir))?;
            let names = names.into_iter().filter(|name| names_letter(name));
            found.extend(names.map(|name| Path::new(&dir).join(name)));
        }
    }
    Ok(found)
}

/// Copy the unfinished files of dead letters; returns the names of all.
fn copy_letters(
    copier: &mut Copier<'_>,
    from: &Path,
    to: &Path,
    done: &BTreeSet<PathBuf>,
) -> Step<BTreeSet<PathBuf>> {
    let found = letters(copier.storage, from)?;
    for letter in found.difference(done) {
        match copier.once(&from.join(letter), &to.join(letter)) {
            // It was replayed.
            Err(Stop::Changed(_)) => {}
            copied => copied?,
        }
    }
    Ok(found)
}

/// The counters of the sidecar, and the records of transactions.
fn small_files(storage: &dyn Storage, sidecar: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for name in sorted_names(storage, sidecar)? {
        if name.starts_with(COUNTER) {
            found.push(name.into());
        } else if name.starts_with(JOBS) && is_dir(storage, &sidecar.join(&name))? {
            found.push(Path::new(&name).join("transactions"));
        }
    }
    Ok(found)
}
