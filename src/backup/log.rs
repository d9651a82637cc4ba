//! Backups of the logs of the engine, whose records follow each other up to a mark.
//!
//! ```text
//! 1 look      the mark and the small files of the log, while no commit is under way
//! 2 open      the source, for reading: up to where the mark vouches for it
//! 3 check     the target's files: they begin as the log does, or the backup is refused
//! 4 grow      the target's mark is opened, as a writer does; the files are continued, and synced
//! 5 verify    the new records are read back
//! 6 vouch     the small files are replaced, their names synced, then the mark is
//! ```
//!
//! The mark comes last, so the copy has all records under its mark. A crash leaves the earlier
//! backup, with an unacknowledged tail.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::copier::growing::Growing;
use super::copier::{Copied, Copier, Step, Stop, once_more};
use super::source::{
    COPIED, is_dir, is_file, is_free, names_saved, read_beside, read_small, sorted_names,
    wait_until_none,
};
use crate::error::{Error, ErrorKind, Result};
use crate::log::Extent;
use crate::log::Format;
use crate::log::Log;
use crate::log::Place;
use crate::log::check;
use crate::mode::Mode;
use crate::scan::Verdict;
use crate::sidecar::{Mark, MarkFile};
use crate::storage::{Storage, above};

/// In the sidecar while a commit of staged records, or a cut, is under way.
const UNDER_WAY: [&str; 2] = ["transaction", "cut"];
/// The small file copied first, and the small file copied last.
const FIRST: &str = "settings";
const LAST: &str = "mark";
/// So many bytes are read back at a time.
const PART_BYTES: u64 = 64 << 20;
/// The most looks at the small files; a look may find them changing.
const LOOKS_MAX: u32 = 2000;
const PAUSE: Duration = Duration::from_micros(200);

/// A format of the engine that can be backed up.
pub trait Backed: Format {
    /// Small files of the format, besides the log's own.
    const BESIDE: &'static [&'static str] = &[];

    /// How a log is read for a backup.
    fn reading(storage: Arc<dyn Storage>) -> Self::Options;

    /// The log's first bytes, which change in place.
    fn first_bytes(_storage: &dyn Storage, _place: &Place) -> Result<Vec<u8>> {
        Ok(Vec::new())
    }

    /// The bytes of the backup, and how many of the first bytes change in place. `end` is the
    /// mark's end.
    fn span(log: &Log<Self>, first_bytes: &[u8], end: u64) -> Step<Span>;

    /// The files of these bytes.
    fn files(
        storage: &dyn Storage,
        ours: &Place,
        theirs: &Place,
        span: &Span,
    ) -> Result<Vec<Growing>>;

    /// Before the files grow.
    fn before(_copier: &mut Copier<'_>, _ours: &Place, _theirs: &Place, _span: &Span) -> Step<()> {
        Ok(())
    }

    /// After the files have grown.
    fn after(_copier: &mut Copier<'_>, _ours: &Place, _theirs: &Place, _span: &Span) -> Step<()> {
        Ok(())
    }
}

/// The bytes that a backup has.
#[derive(Clone, Debug)]
pub struct Span {
    pub start: u64,
    pub end: u64,
    /// The bytes that change in place, or the head marker, read together with the mark.
    pub first_bytes: Vec<u8>,
    pub segment_bytes: Option<u64>,
}

/// Makes the directory of a backup for the given bytes.
pub type Begin<'a> = dyn Fn(&mut Copier<'_>, &Span) -> Step<()> + 'a;

/// The small files of a log at rest.
struct Beside {
    mark: Option<Mark>,
    files: BTreeMap<String, Vec<u8>>,
    first_bytes: Vec<u8>,
}

/// Bring the backup of a log up to date, and read the new records back.
pub fn backup<F: Backed>(
    storage: &Arc<dyn Storage>,
    ours: &Place,
    theirs: &Place,
    copier: &mut Copier<'_>,
) -> Result<Copied> {
    backup_into::<F>(storage, ours, theirs, copier, &|_, _| Ok(()))
}

/// As [`backup`]; `begin` makes the directory of a new backup.
pub fn backup_into<F: Backed>(
    storage: &Arc<dyn Storage>,
    ours: &Place,
    theirs: &Place,
    copier: &mut Copier<'_>,
    begin: &Begin<'_>,
) -> Result<Copied> {
    for place in [ours, theirs] {
        if place.single {
            is_dir(&**storage, above(&place.sidecar))?;
        }
        is_dir(&**storage, &place.sidecar)?;
    }
    once_more(&ours.log, "dropped", || copy::<F>(storage, ours, theirs, copier, begin))
}

fn copy<F: Backed>(
    storage: &Arc<dyn Storage>,
    ours: &Place,
    theirs: &Place,
    copier: &mut Copier<'_>,
    begin: &Begin<'_>,
) -> Step<Copied> {
    let options = F::reading(storage.clone());
    let disk = &**storage;
    let beside = look::<F>(disk, ours)?;
    let span = {
        let log = Log::<F>::open_with(&ours.log, Mode::Read, options.clone())?;
        refuse_damage(&log, &ours.log, &theirs.log)?;
        let extent = log.extent()?;
        let end = match (log.durable_offset()?, beside.mark) {
            (Some(_), Some(mark)) => mark.end.min(extent.end),
            (Some(durable), _) => durable.min(extent.end),
            (None, _) => extent.end,
        };
        F::span(&log, &beside.first_bytes, end)?
    };
    if span.start > span.end {
        return Err(Stop::Changed("all that was there was dropped".into()));
    }
    let (mark, _) = theirs.load_mark(disk)?;
    let before = mark.map(|mark| mark.end);
    let durable = before.unwrap_or(0).max(copier.target.durable());
    let files = F::files(disk, ours, theirs, &span)?;
    let mut kept = Vec::new();
    for file in &files {
        kept.push(copier.check(file, durable)?);
    }
    begin(copier, &span)?;
    copier.make_dir(&theirs.sidecar)?;
    copier.whole(&ours.sidecar.join(FIRST), &theirs.sidecar.join(FIRST), beside.bytes(FIRST))?;
    if let Some(mark) = mark.filter(|mark| mark.end < span.end) {
        open_mark(copier, theirs, mark)?;
    }
    F::before(copier, ours, theirs, &span)?;
    for (file, kept) in files.iter().zip(kept) {
        copier.grow(file, kept)?;
    }
    copier.sync_names()?;
    F::after(copier, ours, theirs, &span)?;
    for name in F::BESIDE {
        let bytes = read_small(disk, &ours.dir.join(name))?;
        copier.whole(&ours.dir.join(name), &theirs.dir.join(name), bytes.as_deref())?;
    }
    copy_saved(copier, ours, theirs)?;
    let copied = read_back::<F>(&theirs.log, &options, before, span.end, copier)?;
    for name in sorted_names(disk, &theirs.sidecar)? {
        let is_gone = COPIED.contains(&&*name) && !beside.files.contains_key(&name);
        if is_gone && name != FIRST && name != LAST {
            copier.remove(&theirs.sidecar.join(name))?;
        }
    }
    for (name, bytes) in beside.files.iter().filter(|(name, _)| *name != LAST) {
        copier.whole(&ours.sidecar.join(name), &theirs.sidecar.join(name), Some(bytes))?;
    }
    copier.sync_names()?;
    copier.whole(&ours.sidecar.join(LAST), &theirs.sidecar.join(LAST), beside.bytes(LAST))?;
    copier.sync_names()?;
    Ok(copied)
}

impl Beside {
    fn bytes(&self, name: &str) -> Option<&[u8]> {
        self.files.get(name).map(|bytes| &**bytes)
    }
}

/// Look at the small files while no commit is under way. A commit that begins after the read of the
/// mark is for the next backup, as a whole. A commit that ended between the two looks has stored
/// another mark.
fn look<F: Backed>(storage: &dyn Storage, place: &Place) -> Step<Beside> {
    let intents: Vec<PathBuf> = UNDER_WAY.iter().map(|name| place.sidecar.join(name)).collect();
    let mark_path = place.sidecar.join(LAST);
    for look in 1.. {
        wait_until_none(storage, &place.log, &intents, || is_free(storage, &place.sidecar))?;
        let bytes = read_small(storage, &mark_path)?;
        let (mark, _) = place.load_mark(storage)?;
        let first_bytes = F::first_bytes(storage, place)?;
        let mut files = BTreeMap::new();
        for name in sorted_names(storage, &place.sidecar)? {
            if COPIED.contains(&&*name) && name != LAST {
                let found = read_beside(storage, &place.sidecar.join(&name))?;
                files.extend(found.map(|bytes| (name, bytes)));
            }
        }
        let mut at_rest = true;
        for intent in &intents {
            at_rest &= !is_file(storage, intent)?;
        }
        // A log whose mark moves all the time hides a commit without a name.
        let is_same = read_small(storage, &mark_path)? == bytes
            && F::first_bytes(storage, place)? == first_bytes;
        if at_rest && (is_same || look >= LOOKS_MAX) {
            files.extend(bytes.map(|bytes| (LAST.to_string(), bytes)));
            return Ok(Beside { mark, files, first_bytes });
        }
        std::thread::sleep(PAUSE);
    }
    Err(Stop::Changed("its mark moved all the time".into()))
}

/// Refuse a damaged source: the backup stays unchanged.
fn refuse_damage<F: Backed>(log: &Log<F>, source: &Path, target: &Path) -> Result<()> {
    let recovery = log.recovery();
    if recovery.verdict != Verdict::Corrupt {
        return Ok(());
    }
    let reason = recovery.damage.as_ref().map(|damage| damage.reason.clone()).unwrap_or_default();
    let (source, target) = (source.display(), target.display());
    let message = format!("{source} is damaged, and its backup {target} stays as it is: {reason}");
    Err(Error::new(ErrorKind::Corrupt, message).offset_at(recovery.valid_end))
}

/// Store the target's mark as open, like a writer before an append: bytes that a crash leaves after
/// the mark are then a torn tail, not damage.
fn open_mark(copier: &mut Copier<'_>, place: &Place, mark: Mark) -> Result<()> {
    if !mark.closed && !copier.target.was_interrupted() {
        return Ok(());
    }
    copier.target.begin()?;
    let open = || -> io::Result<()> {
        let mut file = MarkFile::open(copier.storage, &place.sidecar)?;
        file.store(&Mark { closed: false, ..mark })?;
        file.sync()
    };
    open().map_err(|e| Error::io("open the mark", &place.log, e))
}

/// Copy the files with bytes that were cut off the log.
fn copy_saved(copier: &mut Copier<'_>, ours: &Place, theirs: &Place) -> Step<()> {
    let base = ours.log.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for name in sorted_names(copier.storage, &ours.dir)? {
        // A single file may have other files next to it.
        let is_ours = !ours.shares_dir() || name.starts_with(&base);
        if names_saved(&name) && is_ours {
            copier.once(&ours.dir.join(&name), &theirs.dir.join(&name))?;
        }
    }
    Ok(())
}

/// Read the records of a backup after byte `from`, and compare their checksums. All up to byte `end` must be intact.
fn read_back<F: Backed>(
    log: &Path,
    options: &F::Options,
    from: Option<u64>,
    end: u64,
    copier: &mut Copier<'_>,
) -> Step<Copied> {
    let copy = Log::<F>::open_with(log, Mode::Read, options.clone())?;
    let (recovery, extent) = (copy.recovery(), copy.extent()?);
    let damaged = |place: &str, reason: String| {
        let message =
            format!("{}: the backup is damaged{place}, as the log may be: {reason}", log.display());
        Error::new(ErrorKind::Corrupt, message)
    };
    if recovery.verdict == Verdict::Corrupt || extent.end < end {
        let reason = recovery.damage.as_ref().map(|damage| damage.reason.clone());
        let reason = reason.unwrap_or_else(|| format!("the log was acknowledged up to byte {end}"));
        return Err(damaged(&format!(" after byte {}", extent.end), reason).into());
    }
    let Extent { first, records, start, last_offset, .. } = extent;
    let mut copied = Copied { bounds: None, new_records: Some(0), total_bytes: extent.end };
    if records == 0 {
        return Ok(copied);
    }
    copied.bounds =
        Some(if F::NUMBERED { (first, extent.next() - 1) } else { (start, last_offset) });
    let from = from.map_or(start, |from| from.clamp(start, extent.end));
    let mut new_records = 0;
    for part in copy.splits_over(PART_BYTES, from, extent.end, true)? {
        let checked = check::<F>(&part, options, |_, _| copier.tell())?;
        if let Some(damage) = checked.damages.into_iter().next() {
            return Err(damaged("", damage.reason).into());
        }
        new_records += checked.records;
    }
    copied.new_records = Some(new_records);
    Ok(copied)
}
