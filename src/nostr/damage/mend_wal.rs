//! Cutting a damaged write-ahead log.
//!
//! The segments have all events logged before the last checkpoint. So the cut must keep the
//! checkpoint, and can lose later events only. A log that continued from an earlier checkpoint
//! would bring dropped events back.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use super::belonging::Belonging;
use super::checked_log::{ends_before, no_log};
use super::rescue::{LogFile, LogState};
use super::witnesses::Expected;
use crate::error::{Error, Result};
use crate::ground::slice::part_mut;
use crate::log::Repair;
use crate::nostr::bytes::event::Id;
use crate::nostr::bytes::record;
use crate::nostr::log::codec::Codec;
use crate::nostr::log::entry::{
    Entry, HEADER_BYTES, Lsn, Tag, encode_file_header, file_name, file_number,
};
use crate::nostr::log::files::{FileFormat, lost_files, numbers};
use crate::nostr::pages::manifest::Manifest;
use crate::nostr::pages::options::Options;
use crate::nostr::pages::options::now;
use crate::nostr::pages::segments::Segments;
use crate::saving::{make_own_dir, rewrite, save_tail};
use crate::scan::framing::Framing as _;
use crate::scan::{Damage, Verdict};
use crate::sidecar::{refuse_linked, sidecar_dir};
use crate::storage::segmented::remove;
use crate::storage::{Access, read_full, replace};

/// A byte of the log: the file's index in the list, and the byte of the file.
type Place = (usize, u64);

/// The changes that make the files of a log usable again.
#[derive(Debug, Default)]
pub struct LogPlan {
    pub damages: Vec<Damage>,
    pub cut_bytes: u64,
    pub cut_events: u64,
    pub is_loss: bool,
    /// The files.
    logs: Vec<PathBuf>,
    /// The number of first files to set aside.
    drop_first: usize,
    /// The checkpoint, and the bytes before it in the next file, which are set aside.
    trim: Option<(Lsn, u64)>,
    /// The first damage after the checkpoint: everything from there on is cut.
    cut: Option<Place>,
    /// The last known checkpoint, if no file stays: the new log begins with this checkpoint.
    begin: Option<Lsn>,
    /// Missing files.
    lost: Vec<PathBuf>,
    /// The last checkpoint.
    pub checkpoint: Lsn,
    /// Whether the log has the manifest's checkpoint.
    has_known: bool,
}

impl LogPlan {
    /// Read all files of the log in a directory. `stored` holds the events of the segments.
    pub fn make(
        options: &Options,
        dir: &Path,
        manifest: &Manifest,
        logs: &[LogFile],
        stored: &HashSet<Id>,
    ) -> Result<Self> {
        let logs: Vec<&LogFile> = logs.iter().filter(|log| log.number.is_some()).collect();
        let paths = logs.iter().map(|log| log.path.clone()).collect();
        let (mut plan, known) = (Self { logs: paths, ..Self::default() }, manifest.checkpoint());
        let mut checkpoint: Option<(Place, Lsn)> = None;
        let (mut wrong, mut states): (Vec<(Place, bool)>, Vec<LogState>) = (Vec::new(), Vec::new());
        let mut before: Option<(u64, Option<Lsn>)> = None;
        // The number of the first entry, and whether the entry is the first in its file.
        let (mut seen, mut begins) = (Lsn(0), None);
        for (at, log) in logs.iter().enumerate() {
            let (mut first, mut last) = (None, None);
            let state = log.each(options, &mut |entered| {
                first.get_or_insert(entered.lsn);
                last = Some(entered.lsn);
                seen = seen.max(entered.lsn);
                begins.get_or_insert((entered.lsn, entered.offset == HEADER_BYTES as u64));
                plan.has_known |= entered.entry == Entry::Checkpoint && entered.lsn == known;
                if entered.entry == Entry::Checkpoint && entered.is_proved {
                    checkpoint = Some(((at, entered.offset), entered.lsn));
                }
                Ok(())
            })?;
            let number = log.number.unwrap_or_default();
            if let Some((number_before, last_before)) = before {
                let follows = |(last, first): (Lsn, Lsn)| first.0 == last.0 + 1;
                if number != number_before + 1 || !last_before.zip(first).is_none_or(follows) {
                    wrong.push(((at, 0), true));
                    let reason = "entries before the first one are missing".into();
                    plan.damages.push(Damage::of_file(&log.path, 0..0, reason));
                }
            }
            before = Some((number, last));
            let is_newest = at + 1 == logs.len();
            let is_fine = match state.verdict {
                Some(Verdict::Clean | Verdict::Open) => true,
                // Opening cuts a torn end.
                Some(Verdict::Torn) => is_newest && state.loss.is_none(),
                _ => false,
            };
            if !is_fine {
                let byte = if state.verdict.is_some() { state.valid_end } else { 0 };
                wrong.push(((at, byte), state.loss.is_some()));
                wrong.extend(state.damages.iter().map(|damage| ((at, damage.offset), false)));
                plan.damages.extend(state.damages.iter().cloned());
            }
            states.push(state);
        }
        let named = states.iter().map(|state| state.named).filter(|named| may_name(*named, seen));
        let named = named.max().unwrap_or_default();
        if let (None, Some((begins, true)), Some(log)) = (checkpoint, begins, logs.first())
            && begins.0 > named.0 + 1
        {
            wrong.push(((0, 0), true));
            let reason =
                format!("entries before lsn {begins} are missing, and no checkpoint covers them");
            plan.damages.push(Damage::of_file(&log.path, 0..0, reason));
        }
        let newest = logs.iter().filter_map(|log| log.number).max();
        for (path, error) in lost_files(&*options.storage, dir, newest)? {
            wrong.push(((logs.len(), 0), true));
            let reason = error.message().to_owned();
            plan.damages.push(Damage::of_file(&path, 0..0, reason));
            plan.lost.push(path);
        }
        if logs.is_empty() && plan.lost.is_empty() && known > Lsn(0) {
            wrong.push(((0, 0), true));
            let (path, reason) = (dir.join(file_name(0)), no_log(manifest));
            plan.damages.push(Damage::of_file(path, 0..0, reason));
        }
        let is_older = !logs.is_empty() && known > seen;
        if let Some(log) = logs.last().filter(|_| is_older) {
            wrong.push(((0, 0), true));
            let reason = ends_before(Lsn(seen.0 + 1), manifest);
            plan.damages.push(Damage::of_file(&log.path, 0..0, reason));
        }
        let from = checkpoint.map_or((0, 0), |(place, _)| place);
        plan.cut = wrong.iter().map(|(place, _)| *place).filter(|place| *place >= from).min();
        plan.is_loss = wrong.iter().any(|(place, is_loss)| *is_loss && *place >= from) || is_older;
        if let Some(((file, offset), lsn)) = checkpoint {
            let is_wrong = |in_file: &dyn Fn(usize) -> bool| {
                wrong.iter().any(|(place, _)| in_file(place.0) && *place < (file, offset))
            };
            if is_wrong(&|at| at <= file) {
                plan.drop_first = file;
            }
            if is_wrong(&|at| at == file) {
                plan.trim = Some((lsn, offset));
            }
        }
        let last = named.max(known);
        plan.checkpoint = checkpoint.map_or(named, |(_, lsn)| lsn.max(named));
        if !wrong.is_empty() && last > checkpoint.map_or(Lsn(0), |(_, lsn)| lsn) {
            // The checkpoint itself is damaged or missing. The whole log is cut, because the rest
            // would continue from an earlier checkpoint.
            (plan.cut, plan.trim, plan.drop_first) = (Some((0, 0)), None, 0);
        }
        if let Some((file, offset)) = plan.cut {
            let bytes: u64 = states.iter().skip(file).map(|state| state.bytes).sum();
            plan.cut_bytes = bytes.saturating_sub(offset);
            plan.cut_events = cut_events(options, &logs, (file, offset), last, stored)?;
            plan.begin = Some(last).filter(|lsn| (file, offset) == (0, 0) && *lsn > Lsn(0));
        }
        Ok(plan)
    }

    /// The events of the log that belong in a segment and are in none.
    pub fn only_in_log(
        &self,
        options: &Options,
        logs: &[LogFile],
        expected: &Expected,
        stored: &HashSet<Id>,
    ) -> Result<HashSet<Id>> {
        let mut found = HashSet::new();
        for log in logs.iter().filter(|log| log.number.is_some() && !expected.is_empty()) {
            log.each(options, &mut |entered| {
                if let Entry::Insert { record } = entered.entry
                    && expected.has(entered.lsn)
                    && let Ok(event) = record::parse(record)
                    && !stored.contains(&event.id)
                {
                    found.insert(event.id);
                }
                Ok(())
            })?;
        }
        Ok(found)
    }

    /// The entries after the last checkpoint of a whole log, if the segments do not continue with
    /// them: readers lack their events.
    pub fn left_out(&self, belonging: &Belonging, segments: &Segments) -> Expected {
        let go_on = self.has_known && belonging.vouches(segments).is_some();
        let has_none = go_on || !self.damages.is_empty();
        Expected::later(if has_none { Lsn(u64::MAX) } else { self.checkpoint })
    }

    /// Whether the log has all events after the manifest's checkpoint, its last.
    pub fn has_all_after(&self, manifest: &Manifest) -> bool {
        let is_last = manifest.checkpoint() == self.checkpoint && self.checkpoint > Lsn(0);
        is_last && !manifest.is_log_cut && !self.cuts() && !self.is_loss
    }

    /// Whether the cut removes entries from after the last checkpoint.
    pub fn cuts(&self) -> bool {
        self.cut.is_some()
    }
}

/// Whether to believe the checkpoint named by a header. Its entry is in the log, or lies after the
/// last intact entry, perhaps in damage. A higher number may be torn.
pub fn may_name(named: Lsn, seen: Lsn) -> bool {
    named.0 <= seen.0.saturating_add(1)
}

/// The intact events from a place on, after a checkpoint, that are not stored.
fn cut_events(
    options: &Options,
    logs: &[&LogFile],
    (file, offset): Place,
    checkpoint: Lsn,
    stored: &HashSet<Id>,
) -> Result<u64> {
    let mut cut = HashSet::new();
    for (at, log) in logs.iter().enumerate().skip(file) {
        log.each(options, &mut |entered| {
            if let Entry::Insert { record } = entered.entry
                && (at, entered.offset) >= (file, offset)
                && entered.lsn > checkpoint
                && let Ok(event) = record::parse(record)
                && !stored.contains(&event.id)
            {
                cut.insert(event.id);
            }
            Ok(())
        })?;
    }
    Ok(cut.len() as u64)
}

/// Carry out the plan, once the segments are on stable storage; returns the files with the saved
/// bytes.
pub fn mend(
    options: &Options,
    dir: &Path,
    segments: &BTreeMap<u32, PathBuf>,
    plan: &LogPlan,
) -> Result<Vec<PathBuf>> {
    let mut saved = Vec::new();
    if plan.cuts() {
        make_durable(options, segments)?;
    }
    forget_removed(options, dir, plan)?;
    plan.lost.iter().try_for_each(|path| forget(options, path))?;
    if let Some((file, offset)) = plan.cut {
        // Cut the newest files first, so that the other files have no gap. A file damaged from its
        // beginning is set aside whole.
        let whole = file + usize::from(offset > 0 || plan.begin.is_some());
        for path in plan.logs.iter().skip(whole).rev() {
            saved.push(set_aside(options, dir, path)?);
        }
    }
    if let Some(checkpoint) = plan.begin {
        let first = plan.logs.first().cloned().unwrap_or_else(|| dir.join(file_name(0)));
        saved.extend(begin(options, dir, &first, checkpoint)?);
    }
    for path in plan.logs.iter().take(plan.drop_first) {
        saved.push(set_aside(options, dir, path)?);
    }
    if let (Some((lsn, offset)), Some(path)) = (plan.trim, plan.logs.get(plan.drop_first)) {
        saved.extend(trim(options, path, lsn, offset)?);
    }
    if let Some((file, offset)) = plan.cut
        && let Some(path) = plan.logs.get(file).filter(|_| offset > 0)
    {
        let may = Repair { force: true, accept_loss: true, dry_run: false };
        let with = options.wal().file(Lsn(1), Lsn(0));
        let report = crate::log::repair::<FileFormat>(path, &with, may)?;
        saved.extend(report.saved);
    }
    Ok(saved)
}

/// Make the segments durable before the repair deletes the log with the same events. Events after
/// the last checkpoint, and flags in any segment, may be in the cache only. After a failed sync, no
/// later sync writes the cached pages, so the repair writes all pages again.
fn make_durable(options: &Options, there: &BTreeMap<u32, PathBuf>) -> Result<()> {
    for path in there.values() {
        let failed = |e| Error::io("sync the segment", path, e);
        let file = options.storage.open(path, Access::Write).map_err(failed)?;
        let end = file.len().map_err(failed)?;
        rewrite(&*file, 0, end).map_err(failed)?;
        file.sync_data().map_err(failed)?;
    }
    Ok(())
}

/// Delete the sidecars of files removed by a checkpoint, durably. A log without files begins with
/// the first number again. A sidecar brought back by a power cut would describe the next files
/// wrongly.
fn forget_removed(options: &Options, dir: &Path, plan: &LogPlan) -> Result<()> {
    let first = plan.logs.first().and_then(|path| file_number(path.file_name()?));
    let Some(first) = first.filter(|_| plan.cuts() || plan.drop_first > 0) else { return Ok(()) };
    let beside = numbers(&*options.storage, &sidecar_dir(dir))?;
    let mut removed = beside.into_iter().filter(|number| *number < first);
    removed.try_for_each(|number| forget(options, &dir.join(file_name(number))))
}

/// Rename a file, to take it out of the log.
fn set_aside(options: &Options, dir: &Path, path: &Path) -> Result<PathBuf> {
    forget(options, path)?;
    put_aside(options, dir, path)
}

/// Rename a file without a sidecar.
pub fn put_aside(options: &Options, dir: &Path, path: &Path) -> Result<PathBuf> {
    let storage = &*options.storage;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut aside = path.with_file_name(format!("{name}.cut-0"));
    let mut tries = 1;
    while storage.open(&aside, Access::Read).is_ok() {
        tries += 1;
        aside.set_file_name(format!("{name}.cut-0.{tries}"));
    }
    storage.rename(path, &aside).map_err(|e| Error::io("set the file aside", path, e))?;
    storage.sync_dir(dir).map_err(|e| Error::io("sync the directory", dir, e))?;
    Ok(aside)
}

/// Make the log hold only this checkpoint, in one step, after saving its first file whole; the
/// other files are set aside. So the numbers continue after the checkpoint, and the manifest and
/// the log agree.
fn begin(options: &Options, dir: &Path, path: &Path, checkpoint: Lsn) -> Result<Option<PathBuf>> {
    let storage = &*options.storage;
    make_own_dir(storage, dir, options.file_mode)?;
    let saved = match storage.open(path, Access::Read) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        file => {
            let file = file.map_err(|e| Error::io("read the log", path, e))?;
            save_tail(storage, &*file, path, options.file_mode, 0)?
        }
    };
    let mut bytes = encode_file_header(checkpoint).to_vec();
    let tag = Tag { op: Entry::Checkpoint.op(), lsn: checkpoint, timestamp: now() };
    Codec::new(options.wal().data_bytes_max).encode(&mut bytes, tag, &Entry::Checkpoint.data());
    forget(options, path)?;
    replace(storage, path, &bytes, options.file_mode)
        .map_err(|e| Error::io("replace the log", path, e))?;
    Ok(saved)
}

/// Make a file begin with the checkpoint, after saving the file whole.
fn trim(options: &Options, path: &Path, lsn: Lsn, offset: u64) -> Result<Option<PathBuf>> {
    let storage = &*options.storage;
    let failed = |e: io::Error| Error::io("read the log", path, e);
    let file = storage.open(path, Access::Read).map_err(failed)?;
    let saved = save_tail(storage, &*file, path, options.file_mode, 0)?;
    let len = file.len().map_err(failed)?.saturating_sub(offset);
    let mut bytes = encode_file_header(lsn).to_vec();
    let header = bytes.len();
    bytes.resize(header + len as usize, 0);
    let rest = part_mut(&mut bytes, header..);
    let read = read_full(&*file, rest, offset).map_err(failed)?;
    bytes.truncate(header + read);
    forget(options, path)?;
    replace(storage, path, &bytes, options.file_mode)
        .map_err(|e| Error::io("replace the log", path, e))?;
    Ok(saved)
}

/// Delete the files next to a file, because they describe bytes that have moved.
fn forget(options: &Options, path: &Path) -> Result<()> {
    let storage = &*options.storage;
    let sidecar = crate::log::Place::file(path).sidecar;
    refuse_linked(storage, &sidecar)?;
    let names = match storage.list(&sidecar) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        names => names.map_err(|e| Error::io("list the directory", &sidecar, e))?,
    };
    for name in names {
        let path = sidecar.join(name);
        remove(storage, &path).map_err(|e| Error::io("remove the file", &path, e))?;
    }
    storage.sync_dir(&sidecar).map_err(|e| Error::io("sync the directory", &sidecar, e))
}
