//! Opening: lock, manifest, segments, write-ahead log, index, a commit that had begun, in this order. All that may
//! refuse the store is asked before anything changes.
//! Damaged pages do not end it: a repair opens the store, too.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::logged_flags::add_logged;
use super::recovery::{Opening, replay};
use crate::error::{Error, ErrorKind, Result};
use crate::interrupt::asking;
use crate::log::noted::NOTED;
use crate::mend::{make_dir, sync_names};
use crate::mode::Mode;
use crate::nostr::bulk::import::Check;
use crate::nostr::bytes::event::Id;
use crate::nostr::bytes::format::FORMAT;
use crate::nostr::bytes::page::PAGE_BYTES_READ;
use crate::nostr::bytes::record;
use crate::nostr::damage::belonging::Belonging;
use crate::nostr::damage::checked_log::check_log;
use crate::nostr::damage::rescue::DamagedPart;
use crate::nostr::damage::spec;
use crate::nostr::index::pending::Batch;
use crate::nostr::log::entry::{Entry, Lsn};
use crate::nostr::mend::check::Fault;
use crate::nostr::pages::options::Options;
use crate::nostr::pages::progress::Progress;
use crate::nostr::pages::segments::Segments;
use crate::nostr::store::handle::{EventStore, State, now};
use crate::scan::OnCorrupt;
use crate::sidecar::{Loss, WriterLock, make_sidecar, noted_damage, refuse_linked, sidecar_dir};
use crate::storage::{Access, located};

/// The directory of the write-ahead log.
pub(crate) const WAL_NAME: &str = "wal";
/// With small sizes, so many keys are written to the index at once.
const SMALL_INDEX_KEYS: usize = 150;
/// A reader names so many numbers that are missing without a manifest.
const GAPS_MAX: usize = 1000;
/// So often a reader looks at what a writer may be changing.
pub(crate) const READER_TRIES: u32 = 8;

/// What becomes of segments that lost pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damage {
    Refused,
    /// A repair opens the store, and takes the damage out.
    Mended,
}

impl EventStore {
    /// Create a store in a directory that has none.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        Options::default().open(path, Mode::Create)
    }

    /// Open a store for reading. It reads the events that are there now; open it again to see
    /// later ones.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Options::default().open(path, Mode::Read)
    }

    /// Open a store for appending, creating it if it is missing.
    pub fn append_to(path: impl AsRef<Path>) -> Result<Self> {
        Options::default().open(path, Mode::Append)
    }

    pub(crate) fn open_with(path: &Path, mode: Mode, options: Options) -> Result<Self> {
        Self::open_and(path, mode, options, Damage::Refused)
    }

    /// Open a damaged store for writing, also one that lost pages, which the caller noted. A commit that has
    /// begun may not end before the damage is out: the caller finishes it.
    pub(crate) fn open_to_mend(path: &Path, options: Options) -> Result<Self> {
        Self::open_and(path, Mode::Append, options, Damage::Mended)
    }

    fn open_and(path: &Path, mode: Mode, options: Options, damage: Damage) -> Result<Self> {
        let open = || {
            options.check()?;
            if let (Some(durability), true) = (options.durability, mode != Mode::Read) {
                durability.check()?;
            }
            let dir = located(&*options.storage, path)?;
            if options.check_all {
                check_all(&dir, &options)?;
            }
            if damage == Damage::Refused {
                refuse_noted(&dir, &options, mode)?;
            }
            asking(options.lock_timeout.check(), &dir, || match mode {
                Mode::Read => open_reader(dir.clone(), options.clone()),
                Mode::Append | Mode::Create => {
                    let store = open_or_cut(&dir, mode, &options, damage)?;
                    match damage {
                        Damage::Refused => store.finish_transaction().map(|()| store),
                        Damage::Mended => Ok(store),
                    }
                }
            })
        };
        open().map_err(|error: Error| error.of(FORMAT))
    }
}

/// Refuse to write to a store of which damage is noted.
fn refuse_noted(dir: &Path, options: &Options, mode: Mode) -> Result<()> {
    let (storage, sidecar) = (&*options.storage, sidecar_dir(dir));
    if mode == Mode::Read || !storage.is_dir(&sidecar) {
        return Ok(());
    }
    refuse_linked(storage, &sidecar)?;
    let Some(found) = noted_damage(storage, &sidecar)? else { return Ok(()) };
    let error = Error::new(ErrorKind::Corrupt, found.reason).at(dir).offset_at(found.offset);
    Err(error.with_advice(NOTED))
}

/// Read all of a store before it is opened.
fn check_all(dir: &Path, options: &Options) -> Result<()> {
    let reader = Options { check_all: false, ..options.clone() };
    let report = match EventStore::open_with(dir, Mode::Read, reader) {
        Err(error) if error.kind() == ErrorKind::Missing => return Ok(()),
        store => store?.verify(Check::Id)?,
    };
    let of_page = |Fault { location: at, reason, .. }: Fault| {
        (u64::from(at.offset), format!("segment {}: {reason}", at.segment))
    };
    let of_log =
        |part: DamagedPart| (part.offset, format!("{}: {}", part.path.display(), part.reason));
    let mut faults = report.first_faults.into_iter().map(of_page);
    let mut damages = report.log_damages.into_iter().map(of_log);
    match faults.next().or_else(|| damages.next()) {
        None => Ok(()),
        Some((offset, reason)) => {
            Err(Error::new(ErrorKind::Corrupt, reason).at(dir).offset_at(offset))
        }
    }
}

/// Whether a directory holds a store.
pub fn is_store(options: &Options, dir: &Path) -> Result<bool> {
    Ok(!Segments::new(dir, options.storage.clone()).list()?.is_empty())
}

fn open_reader(dir: PathBuf, options: Options) -> Result<EventStore> {
    let mut tries = 1;
    loop {
        match look(&dir, &options, tries == READER_TRIES) {
            // A writer that compacts removes what was named.
            Err(error)
                if [ErrorKind::Missing, ErrorKind::LostRecords].contains(&error.kind())
                    && tries < READER_TRIES =>
            {
                tries += 1;
            }
            Err(error) => return Err(error),
            Ok((opening, state)) => {
                return Ok(EventStore::assemble(dir, Mode::Read, options, opening, state, None));
            }
        }
    }
}

/// Look at the store as a reader. At the last look, a missing segment is damage.
pub(crate) fn look(dir: &Path, options: &Options, is_last: bool) -> Result<(Opening, State)> {
    let (belonging, files) = Belonging::load(options, dir)?;
    let mut segments = Segments::new(dir, options.storage.clone());
    if files.is_empty() && belonging.missing(&files).is_empty() {
        return Err(Error::new(ErrorKind::Missing, "no event store there").at(dir));
    }
    if !is_last {
        belonging.check_none_missing(&files, &segments.dir)?;
    }
    for (&id, path) in files.iter().filter(|(id, _)| !belonging.passes_over(**id)) {
        segments.open(id, path, Access::Read, options)?;
    }
    belonging.expect_all_pages(&mut segments);
    let copies = belonging.copies(&segments)?;
    let is_whole = options.storage.is_dir(&dir.join(WAL_NAME));
    if !is_last {
        belonging.check_no_gap(&segments, &copies, is_whole)?;
    }
    let gap = belonging.gap(&segments, &copies, is_whole);
    segments.forget(&copies);
    stand_in(&belonging, &files, gap, &mut segments)?;
    leave_unfinished(options, dir, &mut segments)?;
    let appended_again = add_logged(options, dir, &belonging.manifest, &mut segments)?;
    let manifest_rebuilt = belonging.is_rebuilt();
    let is_noted = Loss::load(&*options.storage, &sidecar_dir(dir))?.is_some();
    let is_loss = is_noted || segments.lack_pages() || belonging.foreign(&segments).is_some();
    let opening = Opening { appended_again, manifest_rebuilt, is_loss, ..Opening::default() };
    Ok((opening, State::new(belonging.manifest, segments)))
}

/// Count the events of a missing segment as damage, as for lost pages.
fn stand_in(
    belonging: &Belonging,
    files: &BTreeMap<u32, PathBuf>,
    gap: Option<(u32, u32)>,
    segments: &mut Segments,
) -> Result<()> {
    let of_others = segments.by_id.values().next().map(|open| open.segment.header().page_bytes);
    let of_manifest = Some(belonging.manifest.page_bytes)
        .filter(|size| size.is_power_of_two() && PAGE_BYTES_READ.contains(size));
    let page_bytes = of_others.or(of_manifest).unwrap_or(4096);
    for id in belonging.missing(files) {
        let end = belonging.manifest.pages_end(id, page_bytes).unwrap_or_default();
        segments.insert_missing(id, page_bytes, end)?;
    }
    let numbers = gap.into_iter().flat_map(|(first, last)| first..last);
    for id in numbers.filter(|id| !files.contains_key(id)).take(GAPS_MAX) {
        segments.insert_missing(id, page_bytes, 0)?;
    }
    Ok(())
}

/// Have a reader end before a record that the last segment has in part, if the write-ahead log has it: a
/// writer is appending it, or the next one makes it good. That is no damage.
fn leave_unfinished(options: &Options, dir: &Path, segments: &mut Segments) -> Result<()> {
    let mut before = None;
    for _ in 0..READER_TRIES {
        let Some(open) = segments.by_id.values_mut().next_back() else { return Ok(()) };
        let Some(record) = open.segment.unfinished()? else { return Ok(()) };
        let place = (record.offset, open.segment.end());
        let earlier = before.replace(place);
        // What has come by now the next look has; a writer may be quicker than all of them.
        if !record.has_come || earlier.is_some() {
            if is_logged(options, dir, record.id)? {
                open.segment = open.segment.clone().until(record.offset);
                return Ok(());
            }
            // It may be whole by now, and the log empty. What is the same once more is damage.
            if earlier == Some(place) {
                return Ok(());
            }
        }
        let (last, path) = (open.segment.header().segment, open.segment.path().to_owned());
        segments.open(last, &path, Access::Read, options)?;
    }
    Ok(())
}

/// Whether the write-ahead log has an event after its last checkpoint.
fn is_logged(options: &Options, dir: &Path, id: Id) -> Result<bool> {
    let wal = match options.wal().open(dir.join(WAL_NAME), Mode::Read) {
        Err(e) if e.kind() == ErrorKind::Io => return Err(e),
        // What is wrong with it does not concern what can be read.
        Err(_) => return Ok(false),
        Ok(wal) => wal,
    };
    let mut entries = wal.replay(OnCorrupt::Skip)?;
    while let Some(found) = entries.next()? {
        if let Entry::Insert { record } = found.entry
            && record::parse(record).is_ok_and(|event| event.id == id)
        {
            return Ok(true);
        }
    }
    Ok(false)
}

fn open_or_cut(dir: &Path, mode: Mode, options: &Options, damage: Damage) -> Result<EventStore> {
    let open =
        |opening, lock| open_writer(dir.to_owned(), (mode, damage), options.clone(), opening, lock);
    match open(Opening::default(), None) {
        Err(error) if spec::is_asked(options, dir, &error) => {
            let (opening, lock) = spec::cut_log(options, dir)?.ok_or(error)?;
            open(opening, Some(lock))
        }
        opened => opened,
    }
}

/// Be the only writer.
pub(crate) fn lock_store(options: &Options, dir: &Path) -> Result<WriterLock> {
    let (storage, sidecar) = (&*options.storage, sidecar_dir(dir));
    WriterLock::acquire(storage, &sidecar, dir, &options.lock_timeout)
}

fn open_writer(
    dir: PathBuf,
    (mode, damage): (Mode, Damage),
    options: Options,
    mut opening: Opening,
    lock: Option<WriterLock>,
) -> Result<EventStore> {
    let storage = &*options.storage;
    make_dir(storage, &dir, options.file_mode)?;
    let sidecar = sidecar_dir(&dir);
    make_sidecar(storage, &sidecar)?;
    // Who was asked to cut the log holds the lock already.
    let is_mended = damage == Damage::Mended || lock.is_some();
    let lock = match lock {
        Some(lock) => lock,
        None => lock_store(&options, &dir)?,
    };
    opening.is_loss = Loss::load(storage, &sidecar)?.is_some();
    let mut segments = Segments::new(&dir, options.storage.clone());
    segments.make_dirs(options.file_mode)?;
    // Also of the manifest: a power cut would bring one back that names what is deleted below.
    sync_names(storage, &sidecar, &dir)?;
    let (belonging, files) = Belonging::load(&options, &dir)?;
    if mode == Mode::Create && !files.is_empty() {
        return Err(Error::new(ErrorKind::AlreadyExists, "an event store is there").at(&dir));
    }
    belonging.check_none_missing(&files, &segments.dir)?;
    for (&id, path) in &files {
        segments.open(id, path, Access::Write, &options)?;
    }
    belonging.expect_all_pages(&mut segments);
    if damage == Damage::Refused {
        belonging.check_no_pages_missing(&segments)?;
        belonging.check_none_foreign(&segments)?;
    }
    let copies = belonging.copies(&segments)?;
    // It is made below.
    let wal_dir = dir.join(WAL_NAME);
    let is_whole = storage.is_dir(&wal_dir);
    belonging.check_no_gap(&segments, &copies, is_whole)?;
    let to_mend = damage == Damage::Mended;
    let unstored = check_log(&options, &wal_dir, &belonging, &segments, to_mend)?;
    // What refuses the log leaves it as it is.
    let wal = options.wal().open(&wal_dir, Mode::Append)?;
    opening.saved.extend(wal.recovery().saved_to);
    wal.believe_lost(Lsn(belonging.manifest.last_checkpoint_lsn))?;
    if !copies.is_empty() {
        opening.removed = segments.remove(&copies)?;
    }
    if belonging.is_unnamed() {
        opening.saved.extend(segments.cut_torn(options.file_mode)?);
    }
    opening.manifest_rebuilt = belonging.is_rebuilt() && !files.is_empty();
    let joins = segments.by_id.keys().any(|&id| !belonging.manifest.names(id));
    let may_be_of_others = !files.is_empty() && (joins || belonging.may_be_of_others());
    if may_be_of_others {
        // The manifest that the checkpoint stores says that they are durable.
        segments.sync_all()?;
    }
    let mut manifest = belonging.manifest;
    let last = segments.by_id.values().next_back().map(|open| open.segment.header().page_bytes);
    let options = options.with_sizes_of(last, &manifest);
    manifest.next_segment_id = segments.next_free(manifest.next_segment_id);
    if segments.by_id.is_empty() {
        segments.create(&options, manifest.take_segment_id()?, now())?;
    }
    if manifest.created_at == 0 {
        manifest.created_at = now();
    }
    manifest.page_bytes = segments.active()?.segment.header().page_bytes;
    let written = (may_be_of_others, is_mended);
    let tail = replay(&wal, &manifest, written, &mut segments, &options, &mut opening)?;
    segments.count_last(&manifest)?;
    opening.saved.extend(segments.void_unfinished(options.file_mode)?);
    let mut state = State::new(manifest, segments);
    // An index that covers a later entry knows flags that the log lost: it is made again.
    state.flags_asked = Lsn(wal.next_lsn().0 - 1).max(Lsn(state.manifest.last_checkpoint_lsn));
    if options.small {
        state.pending = state.pending.with_keys_max(SMALL_INDEX_KEYS);
    }
    let mut progress = Progress::silent();
    opening.indexed = match may_be_of_others {
        true => state.remake_index(&options, &sidecar, &mut progress)?,
        false => state.open_index(&options, &sidecar, &mut progress)?,
    };
    // What it covers says nothing of flags.
    state.index_changes(Batch::default(), &tail.flagged.iter().copied().collect())?;
    let store = EventStore::assemble(dir, mode, options, opening, state, Some((wal, lock)));
    let completed = store.complete(&tail).and_then(|()| store.append_again(unstored));
    // A dropped handle that is not broken makes a checkpoint: no later opening would complete anything.
    completed
        .inspect_err(|error| store.shared.state().broken = Some(error.message().to_owned()))?;
    // From here on appends go by it: the checkpoint stores it before the first of them.
    store.shared.state().manifest.history = store.history();
    // What was appended again is durable then, and the manifest says what is there.
    store.checkpoint()?;
    store.begin_pages()?;
    Ok(store)
}
