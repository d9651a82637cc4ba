//! Opening: lock, manifest, segments, write-ahead log, index, in this order.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::FORMAT;
use super::entry::Lsn;
use super::event::{EventRef, Id};
use super::manifest::Manifest;
use super::options::Options;
use super::recovery::{Opening, replay};
use super::segment::Found;
use super::segments::Segments;
use super::store::{EventStore, State, now};
use crate::error::{Error, ErrorKind, Result};
use crate::lines;
use crate::mend::{make_dir, sync_names};
use crate::mode::Mode;
use crate::sidecar::{WriterLock, sidecar_dir};
use crate::storage::{Access, located};

/// The directory of the write-ahead log.
const WAL_NAME: &str = "wal";

impl EventStore {
    /// Create a store in a directory that has none.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        Options::default().open(path, Mode::Create)
    }

    /// Open the store of a directory for reading and appending.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Options::default().open(path, Mode::Append)
    }

    pub(super) fn open_with(path: &Path, mode: Mode, options: Options) -> Result<Self> {
        let open = || {
            options.check()?;
            let dir = located(&*options.storage, path)?;
            match mode {
                Mode::Read => open_reader(dir, options.clone()),
                Mode::Append | Mode::Create => open_writer(dir, mode, options.clone()),
            }
        };
        open().map_err(|error: Error| error.of(FORMAT))
    }
}

/// Whether a directory holds a store.
pub fn is_store(options: &Options, dir: &Path) -> Result<bool> {
    Ok(!Segments::new(dir, options.storage.clone()).list()?.is_empty())
}

fn open_reader(dir: PathBuf, options: Options) -> Result<EventStore> {
    let mut opening = Opening::default();
    let mut segments = Segments::new(&dir, options.storage.clone());
    let files = segments.list()?;
    if files.is_empty() {
        return Err(Error::new(ErrorKind::Missing, "no event store there").at(&dir));
    }
    let manifest = manifest_of(&options, &dir, &files, &mut opening)?;
    for (&id, path) in &files {
        // What no manifest names was just begun, or is a copy.
        if manifest.names(id) || opening.manifest_rebuilt {
            segments.open(id, path, Access::Read, options.event_bytes_max)?;
        }
    }
    check_none_missing(&manifest, &files, &segments.dir)?;
    let state = State::new(manifest, segments, None);
    Ok(EventStore::assemble(dir, Mode::Read, options, opening, state, None))
}

fn open_writer(dir: PathBuf, mode: Mode, options: Options) -> Result<EventStore> {
    let storage = &*options.storage;
    make_dir(storage, &dir)?;
    let sidecar = sidecar_dir(&dir);
    make_dir(storage, &sidecar)?;
    let mut lock = WriterLock::acquire(storage, &sidecar, options.file_mode)?;
    // Deleting the sidecar deletes its lock.
    lock.add_log(storage, &dir)?;
    let mut opening = Opening::default();
    let mut segments = Segments::new(&dir, options.storage.clone());
    segments.make_dirs()?;
    // Also of the manifest: a power cut would bring one back that names what is deleted below.
    sync_names(storage, &sidecar, &dir)?;
    let files = segments.list()?;
    if mode == Mode::Create && !files.is_empty() {
        return Err(Error::new(ErrorKind::AlreadyExists, "an event store is there").at(&dir));
    }
    let mut manifest = manifest_of(&options, &dir, &files, &mut opening)?;
    check_none_missing(&manifest, &files, &segments.dir)?;
    for (&id, path) in &files {
        segments.open(id, path, Access::Write, options.event_bytes_max)?;
        manifest.next_segment_id = manifest.next_segment_id.max(id.saturating_add(1));
    }
    if !opening.manifest_rebuilt {
        let unnamed: Vec<u32> = files.keys().copied().filter(|&id| !manifest.names(id)).collect();
        remove_copies(&mut segments, unnamed, &mut opening)?;
    }
    let wal = options.wal().open(dir.join(WAL_NAME), Mode::Append)?;
    let checkpoint = wal.last_checkpoint();
    if files.is_empty() && checkpoint != Lsn(0) {
        let message =
            format!("no segment, but the write-ahead log has a checkpoint at {checkpoint}");
        return Err(Error::new(ErrorKind::LostRecords, message).at(&segments.dir));
    }
    if segments.by_id.is_empty() {
        segments.create(&options, manifest.next_segment_id, now())?;
        manifest.next_segment_id += 1;
    }
    if manifest.created_at == 0 {
        manifest.created_at = now();
    }
    manifest.page_bytes = segments.active()?.segment.header().page_bytes;
    let tail = replay(&wal, &manifest, &mut segments, &options, &mut opening)?;
    let mut state = State::new(manifest, segments, None);
    opening.indexed = state.open_index(&options, &sidecar)?;
    // What it covers says nothing of flags.
    state.index_changes(&[], &tail.flagged)?;
    let store = EventStore::assemble(dir, mode, options, opening, state, Some((wal, lock)));
    store.complete(&tail)?;
    // What was appended again is durable then, and the manifest says what is there.
    store.checkpoint()?;
    store.begin_pages()?;
    Ok(store)
}

fn manifest_of(
    options: &Options,
    dir: &Path,
    files: &BTreeMap<u32, PathBuf>,
    opening: &mut Opening,
) -> Result<Manifest> {
    if let Some(manifest) = Manifest::load(&*options.storage, dir)? {
        return Ok(manifest);
    }
    opening.manifest_rebuilt = !files.is_empty();
    let next_segment_id = files.keys().next_back().map_or(0, |last| last.saturating_add(1));
    Ok(Manifest { next_segment_id, ..Manifest::default() })
}

fn check_none_missing(
    manifest: &Manifest,
    files: &BTreeMap<u32, PathBuf>,
    dir: &Path,
) -> Result<()> {
    let missing = manifest.segments.iter().find(|segment| !files.contains_key(&segment.id));
    missing.map_or(Ok(()), |missing| {
        let message = format!(
            "segment {} is missing, the manifest says {} events",
            missing.id, missing.record_count
        );
        Err(Error::new(ErrorKind::LostRecords, message).at(dir))
    })
}

/// Delete segments that no manifest names, as a crash leaves them: their events that count stand in
/// others. One with an event of its own stays.
fn remove_copies(segments: &mut Segments, unnamed: Vec<u32>, opening: &mut Opening) -> Result<()> {
    if unnamed.is_empty() {
        return Ok(());
    }
    let mut own: BTreeMap<u32, BTreeSet<Id>> = BTreeMap::new();
    for &id in &unnamed {
        let ids = own.entry(id).or_default();
        each_event(segments, id, |event| {
            if event.flags.is_live() {
                ids.insert(event.id);
            }
        })?;
    }
    let named: Vec<u32> =
        segments.by_id.keys().copied().filter(|id| !unnamed.contains(id)).collect();
    for id in named {
        each_event(segments, id, |event| {
            own.values_mut().for_each(|ids| {
                ids.remove(&event.id);
            });
        })?;
    }
    let (copies, kept): (Vec<u32>, Vec<u32>) =
        unnamed.into_iter().partition(|id| own.get(id).is_none_or(BTreeSet::is_empty));
    for id in kept {
        lines::warn(format_args!("segment {id} is not in the manifest and has events of its own"));
    }
    opening.removed = segments.remove(&copies)?;
    Ok(())
}

fn each_event(segments: &Segments, id: u32, mut take: impl FnMut(&EventRef<'_>)) -> Result<()> {
    let Some(open) = segments.by_id.get(&id) else { return Ok(()) };
    let mut scan = open.segment.scan(0);
    while let Some(found) = scan.next()? {
        if let Found::Record(found) = found {
            take(&found.event);
        }
    }
    Ok(())
}
