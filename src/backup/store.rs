//! An event store: pages and a write-ahead log that fit each other by a manifest.
//!
//! ```text
//! 1 stage     each file that differs, next to its place; files that changed meanwhile once more
//! 2 name      segments, then files of the log, then the small files, then the manifest; each synced before the next
//! 3 remove    the files that the store has no more
//! 4 verify    all of the copy
//! ```
//!
//! The segments are staged before the write-ahead log. A writer logs an event before appending it,
//! so the log has all events that the segments got after the manifest's checkpoint. Opening the
//! copy completes partial events.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::copier::{Copied, Copier, Step, Stop, once_more, open_source};
use super::source::{
    COPIED, is_dir, is_file, is_free, names_saved, read_beside, read_small, sorted_names,
    wait_until_none,
};
use crate::error::{Error, ErrorKind, Result};
use crate::mode::Mode;
use crate::nostr::log::entry::file_number;
use crate::nostr::pages::compacted::INTENT_NAME;
use crate::nostr::pages::file_names::{parse_name, parse_unfinished};
use crate::nostr::pages::manifest::Manifest;
use crate::nostr::{Check, EventStore, Options, stop_vouching};
use crate::sidecar::{SIDECAR_NAME, sidecar_dir};
use crate::storage::{Aside, FileId, Storage};

const MANIFEST: &str = "manifest.json";
const LOG: &str = "wal";
const SEGMENTS: &str = "data/segments";
const UNDER_WAY: &str = "transaction";
/// The index in the sidecar, which an opening makes again.
const INDEX: &str = "events";
/// The small files of the sidecar that a backup has. How far imports came is of the store alone.
const BESIDE: [&str; 6] =
    ["manifest", INTENT_NAME, "consumers", "loss", "settings", "transactions"];
/// The backup's own files.
const NOT_REMOVED: [&str; 4] = ["lock", "backup", UNDER_WAY, "imports.json"];
const DAMAGED_MAX: u32 = 3;
/// After this time without a change, the file's time will show a later change.
const SETTLED: Duration = Duration::from_secs(1);

/// The files that show a state of the store: a checkpoint, a rotation, a compaction or a commit
/// changes at least one.
#[derive(PartialEq)]
struct Seen {
    manifest: Option<Vec<u8>>,
    log_files: Vec<String>,
    transactions: Option<Vec<u8>>,
}

/// Files that were copied under another name, until all are there and fit each other.
#[derive(Default)]
struct Staged {
    /// The files without need for a second reading, and their state at the copy.
    known: BTreeMap<PathBuf, (FileId, u64, SystemTime)>,
    new: BTreeMap<PathBuf, PathBuf>,
}

/// Bring the backup of an event store up to date, and read all of it.
pub fn backup(
    storage: &Arc<dyn Storage>,
    ours: &Path,
    theirs: &Path,
    copier: &mut Copier<'_>,
) -> Result<Copied> {
    let disk = &**storage;
    if is_file(disk, &theirs.join(MANIFEST))? {
        refuse_other(disk, ours, theirs)?;
        // Damage must not replace the intact files of an earlier backup.
        let (source, target) = (ours.display(), theirs.display());
        let wrong = format!("{source} is damaged, and its backup {target} stays as it is");
        once_more(ours, "written", || {
            let seen = see(disk, ours)?;
            match check(storage, ours, &wrong, copier) {
                // A file of the listing has disappeared since.
                Err(e) if see(disk, ours)? != seen => Err(Stop::Changed(e.to_string())),
                checked => Ok(checked?),
            }
        })?;
    }
    let (mut staged, mut damaged) = (Staged::default(), 0);
    let wrong = format!("{}: the backup is damaged, as the store may be", theirs.display());
    once_more(ours, "written", || {
        let total_bytes = copy(storage, ours, theirs, copier, &mut staged)?;
        match check(storage, theirs, &wrong, copier) {
            // A page that the copy read in the middle of a write is whole in the next pass. Damage
            // stays.
            Err(e) if e.kind() == ErrorKind::Corrupt => {
                damaged += 1;
                if damaged == DAMAGED_MAX || is_free(disk, &sidecar_dir(ours))? {
                    return Err(e.into());
                }
                staged.known.clear();
                Err(Stop::Changed(e.to_string()))
            }
            checked => {
                checked.map(|()| Copied { total_bytes, ..Copied::default() }).map_err(Stop::Failed)
            }
        }
    })
}

impl Staged {
    /// Copy a file unless already copied; returns its bytes.
    fn add(&mut self, copier: &mut Copier<'_>, source: &Path, target: &Path) -> Step<u64> {
        let fail = |e| Error::io("look at the file", source, e);
        let file = open_source(copier.storage, source)?;
        let (id, len) = (file.id().map_err(fail)?, file.len().map_err(fail)?);
        let modified = file.modified().map_err(fail)?;
        let now = modified.map(|at| (id, len, at));
        if now.is_none() || self.known.get(source) != now.as_ref() {
            self.known.remove(source);
            self.new.remove(target);
            if let Some(new) = copier.stage(source, target)? {
                self.new.insert(target.to_path_buf(), new);
            }
            let is_settled = |at: SystemTime| at.elapsed().is_ok_and(|since| since > SETTLED);
            if let Some(now) = now.filter(|(.., at)| is_settled(*at)) {
                self.known.insert(source.to_path_buf(), now);
            }
        }
        Ok(len)
    }

    /// Rename the staged files below a directory to their names, durably.
    fn put(&mut self, copier: &mut Copier<'_>, below: &Path) -> Step<()> {
        let targets: Vec<PathBuf> =
            self.new.keys().filter(|to| to.starts_with(below)).cloned().collect();
        for target in targets {
            if let Some(new) = self.new.remove(&target) {
                copier.give_name(&new, &target)?;
            }
        }
        copier.sync_names()
    }
}

/// One pass; returns the bytes of all files.
fn copy(
    storage: &Arc<dyn Storage>,
    ours: &Path,
    theirs: &Path,
    copier: &mut Copier<'_>,
    staged: &mut Staged,
) -> Step<u64> {
    let disk = &**storage;
    let intent = sidecar_dir(ours).join(UNDER_WAY);
    let is_alone = || is_free(disk, &sidecar_dir(ours));
    wait_until_none(disk, ours, std::slice::from_ref(&intent), is_alone)?;
    let seen = see(disk, ours)?;
    let (large, small) = files(disk, ours)?;
    // Files copied after a mark have all records under the mark.
    let mut beside = Vec::new();
    for file in small {
        beside.push((read_beside(disk, &ours.join(&file))?, file));
    }
    let mut total = 0;
    for file in &large {
        total += staged.add(copier, &ours.join(file), &theirs.join(file))?;
    }
    if see(disk, ours)? != seen || is_file(disk, &intent)? {
        return Err(Stop::Changed("a checkpoint, a compaction or a commit came".into()));
    }
    let mut kept: BTreeSet<PathBuf> =
        large.iter().chain(beside.iter().map(|(_, file)| file)).cloned().collect();
    staged.new.retain(|target, _| large.iter().any(|file| theirs.join(file) == *target));
    if !staged.new.is_empty() {
        copier.target.begin()?;
        // If somebody opened and wrote the copy, the copy's index covers events that the backup
        // removes.
        Aside::at(disk, sidecar_dir(theirs).join(INDEX)).remove("remove from the backup")?;
    }
    staged.put(copier, &theirs.join(SEGMENTS))?;
    if !staged.new.is_empty() {
        // The earlier backup's manifest belongs to the earlier log, not to the new log.
        let options = Options::default().storage(storage.clone());
        stop_vouching(&options, theirs)?;
    }
    staged.put(copier, theirs)?;
    beside.sort_by_key(|(_, file)| (file.ends_with("mark"), file.clone()));
    for (bytes, file) in &beside {
        copier.whole(&ours.join(file), &theirs.join(file), bytes.as_deref())?;
    }
    copier.sync_names()?;
    copier.whole(&ours.join(MANIFEST), &theirs.join(MANIFEST), seen.manifest.as_deref())?;
    copier.sync_names()?;
    kept.insert(MANIFEST.into());
    for left in below(disk, theirs)? {
        let name = left.file_name().unwrap_or_default().to_string_lossy();
        let is_own = NOT_REMOVED.iter().any(|own| name == *own);
        if !kept.contains(&left) && !is_own && !disk.is_dir(&theirs.join(&left)) {
            copier.remove(&theirs.join(&left))?;
        }
    }
    copier.sweep(theirs, |name| name == MANIFEST)?;
    copier.sync_names()?;
    Ok(total)
}

/// Refuse a target that is no earlier state of the store.
fn refuse_other(storage: &dyn Storage, ours: &Path, theirs: &Path) -> Result<()> {
    let (Some(here), Some(there)) = (manifest(storage, ours)?, manifest(storage, theirs)?) else {
        return Ok(());
    };
    let wrong = if here.created_at != there.created_at {
        ("began at second", there.created_at, here.created_at)
    } else if there.last_checkpoint_lsn > here.last_checkpoint_lsn {
        ("has entry", there.last_checkpoint_lsn, here.last_checkpoint_lsn)
    } else {
        return Ok(());
    };
    let (what, there, here) = wrong;
    let message = format!(
        "{} is no earlier state of {}: it {what} {there}, the store {here}; it is the backup of another store, or was \
         written: choose another directory",
        theirs.display(),
        ours.display()
    );
    Err(Error::new(ErrorKind::InvalidArgument, message))
}

/// The manifest of a store; `None` if there is no readable manifest.
fn manifest(storage: &dyn Storage, store: &Path) -> Result<Option<Manifest>> {
    match Manifest::load(storage, store) {
        Err(e) if e.kind() == ErrorKind::Unsupported => Ok(None),
        loaded => loaded,
    }
}

fn see(storage: &dyn Storage, store: &Path) -> Result<Seen> {
    Ok(Seen {
        manifest: read_small(storage, &store.join(MANIFEST))?,
        log_files: sorted_names(storage, &store.join(LOG))?,
        transactions: read_small(storage, &sidecar_dir(store).join("transactions"))?,
    })
}

/// The files of a store in the order of copying, and the small files. Leaves out derived files, and
/// segments without an entry in the manifest. With the intent of a compaction, takes all segments,
/// also under unfinished names: opening the copy finishes the compaction.
fn files(storage: &dyn Storage, store: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let manifest = manifest(storage, store)?;
    let segment = |file: &Path| parse_name(&file.file_name().unwrap_or_default().to_string_lossy());
    let is_compacted = is_file(storage, &sidecar_dir(store).join(INTENT_NAME))?;
    let is_named = |file: &PathBuf| {
        if is_compacted || is_unfinished(file) {
            return is_compacted;
        }
        let number = segment(file).filter(|_| file.starts_with(SEGMENTS));
        let Some((number, manifest)) = number.zip(manifest.as_ref()) else { return true };
        manifest.segments.iter().any(|segment| segment.id == number)
    };
    let found = below(storage, store)?.into_iter().filter(|file| is_copied(file) && is_named(file));
    let is_small = |file: &PathBuf| file.components().any(|part| part.as_os_str() == SIDECAR_NAME);
    let (small, mut large): (Vec<PathBuf>, Vec<PathBuf>) = found.partition(is_small);
    large.sort_by_key(|file| (file.starts_with(LOG), segment(file), file.clone()));
    Ok((large, small))
}

/// All files and directories below a store, by relative path.
fn below(storage: &dyn Storage, store: &Path) -> Result<Vec<PathBuf>> {
    is_dir(storage, &store.join("data"))?;
    let logs = Path::new(LOG).join(SIDECAR_NAME);
    let mut dirs = vec![
        PathBuf::from(SEGMENTS),
        PathBuf::from(LOG),
        logs.clone(),
        PathBuf::from(SIDECAR_NAME),
    ];
    for name in sorted_names(storage, &store.join(&logs))? {
        if file_number(OsStr::new(&*name)).is_some() {
            dirs.push(logs.join(name));
        }
    }
    let mut found = Vec::new();
    for dir in dirs {
        for name in sorted_names(storage, &store.join(&dir))? {
            found.push(dir.join(name));
        }
    }
    Ok(found)
}

/// Whether a compaction is filling the segment.
fn is_unfinished(file: &Path) -> bool {
    file.file_name().and_then(|name| parse_unfinished(name.to_str()?)).is_some()
}

/// Whether a backup copies the store's file of that path.
fn is_copied(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let dir = file.parent().unwrap_or(Path::new(""));
    if dir == Path::new(SEGMENTS) {
        parse_name(&name).is_some() || is_unfinished(file) || names_saved(&name)
    } else if dir == Path::new(LOG) {
        file_number(OsStr::new(&*name)).is_some() || names_saved(&name)
    } else if dir == Path::new(SIDECAR_NAME) {
        BESIDE.contains(&&*name)
    } else {
        COPIED.contains(&&*name)
    }
}

/// Read a whole store; fail if the store has damage.
fn check(
    storage: &Arc<dyn Storage>,
    store: &Path,
    wrong: &str,
    copier: &mut Copier<'_>,
) -> Result<()> {
    let options = Options::default().storage(storage.clone()).index_on_disk(false);
    let opened = EventStore::open_with(store, Mode::Read, options)?;
    let report = opened.verify_with(Check::Id, &mut |_, _| copier.tell())?;
    if report.ok() {
        return Ok(());
    }
    let faults = report.first_faults.iter().map(|fault| fault.reason.clone());
    let reasons: Vec<String> =
        faults.chain(report.log_damages.iter().map(|part| part.reason.clone())).take(10).collect();
    Err(Error::new(ErrorKind::Corrupt, format!("{wrong}: {}", reasons.join("; "))))
}
