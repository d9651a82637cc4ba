//! Opening: lock, manifest, segments, write-ahead log, index, unfinished commit, in this order.
//! Every check that may refuse the store runs before the first change. Damaged pages do not stop
//! opening, because a repair opens the store, too.

use std::path::{Path, PathBuf};

use super::adopt::adopt;
use super::look::{look, patiently};
use super::redo::redo;
use crate::error::{Error, ErrorKind, Result};
use crate::ground::interrupt::asking;
use crate::log::NOTED;
use crate::mode::Mode;
use crate::nostr::bytes::format::FORMAT;
use crate::nostr::damage::belonging::Belonging;
use crate::nostr::damage::checked_log::{Checked, check_log};
use crate::nostr::damage::spec;
use crate::nostr::index::pending::Batch;
use crate::nostr::log::entry::{Lsn, WAL_NAME};
use crate::nostr::log::wal::EventWal;
use crate::nostr::pages::options::Options;
use crate::nostr::pages::options::now;
use crate::nostr::pages::progress::Progress;
use crate::nostr::pages::segments::Segments;
use crate::nostr::store::handle::{EventStore, State};
use crate::nostr::store::opened::OpenReport;
use crate::saving::{make_dir, sync_names};
use crate::sidecar::{Loss, WriterLock, make_sidecar, noted_damage, refuse_linked, sidecar_dir};
use crate::storage::{Access, located};

/// With small sizes, the number of keys in one write to the index.
const SMALL_INDEX_KEYS: usize = 150;

/// The treatment of segments that lost pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damage {
    Refused,
    /// A repair opens the store, and removes the damage.
    Mended,
}

impl Options {
    /// Open the store in a directory.
    ///
    /// # Errors
    ///
    /// Fails with [`Missing`](crate::ErrorKind::Missing) where there is nothing to read,
    /// [`NotALog`](crate::ErrorKind::NotALog) for other files, [`Locked`](crate::ErrorKind::Locked) while another
    /// handle appends, and [`Corrupt`](crate::ErrorKind::Corrupt) or [`LostRecords`](crate::ErrorKind::LostRecords)
    /// for damage that `recovery` does not allow; see [Errors](crate#errors).
    pub fn open(&self, path: impl AsRef<Path>, mode: Mode) -> Result<EventStore> {
        EventStore::open_with(path.as_ref(), mode, self.clone())
    }
}

impl EventStore {
    /// Create a store in a directory that has none.
    ///
    /// # Errors
    ///
    /// Fails with [`Missing`](crate::ErrorKind::Missing) where there is nothing to read,
    /// [`NotALog`](crate::ErrorKind::NotALog) for other files, [`Locked`](crate::ErrorKind::Locked) while another
    /// handle appends, and [`Corrupt`](crate::ErrorKind::Corrupt) or [`LostRecords`](crate::ErrorKind::LostRecords)
    /// for damage that `recovery` does not allow; see [Errors](crate#errors).
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        Options::default().open(path, Mode::Create)
    }

    /// Open a store for reading. The handle reads the current events; open the store again to see
    /// later events.
    ///
    /// # Errors
    ///
    /// Fails with [`Missing`](crate::ErrorKind::Missing) where there is nothing to read,
    /// [`NotALog`](crate::ErrorKind::NotALog) for other files, [`Locked`](crate::ErrorKind::Locked) while another
    /// handle appends, and [`Corrupt`](crate::ErrorKind::Corrupt) or [`LostRecords`](crate::ErrorKind::LostRecords)
    /// for damage that `recovery` does not allow; see [Errors](crate#errors).
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Options::default().open(path, Mode::Read)
    }

    /// Open a store for appending, creating it if it is missing.
    ///
    /// # Errors
    ///
    /// Fails with [`Missing`](crate::ErrorKind::Missing) where there is nothing to read,
    /// [`NotALog`](crate::ErrorKind::NotALog) for other files, [`Locked`](crate::ErrorKind::Locked) while another
    /// handle appends, and [`Corrupt`](crate::ErrorKind::Corrupt) or [`LostRecords`](crate::ErrorKind::LostRecords)
    /// for damage that `recovery` does not allow; see [Errors](crate#errors).
    pub fn append_to(path: impl AsRef<Path>) -> Result<Self> {
        Options::default().open(path, Mode::Append)
    }

    pub(crate) fn open_with(path: &Path, mode: Mode, options: Options) -> Result<Self> {
        Self::open_and(path, mode, options, Damage::Refused)
    }

    /// Open a damaged store for writing, even with lost pages, which the caller noted. An
    /// unfinished commit must wait until the damage is removed: the caller finishes the commit.
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
                        Damage::Refused => {
                            store.finish_transaction()?;
                            store.begin_threads()?;
                            Ok(store)
                        }
                        Damage::Mended => {
                            seeded!("commit-ends-before-the-damage" => store.finish_transaction()?);
                            Ok(store)
                        }
                    }
                }
            })
        };
        open().map_err(|error: Error| error.of(FORMAT))
    }
}

/// Refuse to write to a store with noted damage.
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
    match EventStore::open_with(dir, Mode::Read, reader) {
        Err(error) if error.kind() == ErrorKind::Missing => Ok(()),
        store => store?.refuse_damage(dir),
    }
}

fn open_reader(dir: PathBuf, options: Options) -> Result<EventStore> {
    let (opening, state) = patiently(|is_last| look(&dir, &options, is_last))?;
    let options = options.with_settings_of(state.page_bytes(), &state.manifest.settings);
    Ok(EventStore::assemble(dir, Mode::Read, options, opening, state, None))
}

fn open_or_cut(dir: &Path, mode: Mode, options: &Options, damage: Damage) -> Result<EventStore> {
    let open =
        |opening, lock| open_writer(dir.to_owned(), (mode, damage), options.clone(), opening, lock);
    match open(OpenReport::default(), None) {
        Err(error) if spec::is_asked(options, dir, &error) => {
            let (opening, lock) = spec::cut_log(options, dir)?.ok_or(error)?;
            open(opening, Some(lock))
        }
        opened => opened,
    }
}

fn open_writer(
    dir: PathBuf,
    (mode, damage): (Mode, Damage),
    options: Options,
    mut opening: OpenReport,
    lock: Option<WriterLock>,
) -> Result<EventStore> {
    let storage = &*options.storage;
    make_dir(storage, &dir, options.file_mode)?;
    let sidecar = sidecar_dir(&dir);
    make_sidecar(storage, &sidecar)?;
    // The caller who cut the log holds the lock already.
    let is_mended = damage == Damage::Mended || lock.is_some();
    let lock = match lock {
        Some(lock) => lock,
        None => options.lock_store(&dir)?,
    };
    opening.is_loss = Loss::load(storage, &sidecar)?.is_some();
    let mut segments = Segments::new(&dir, options.storage.clone());
    segments.make_dirs(options.file_mode)?;
    // This includes the manifest: a power cut would bring an old manifest back, with the names of
    // files deleted below.
    sync_names(storage, &sidecar, &dir)?;
    let (mut belonging, files) = Belonging::load(&options, &dir)?;
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
    let begun = segments.forget(&belonging.begun(&segments));
    let last = segments.by_id.values().next_back().map(|open| open.segment.header().page_bytes);
    let last = last.unwrap_or(belonging.manifest.page_bytes);
    let options = options.with_settings_of(last, &belonging.manifest.settings);
    // The directory is created below.
    let wal_dir = dir.join(WAL_NAME);
    let is_whole = storage.is_dir(&wal_dir);
    belonging.check_no_gap(&segments, is_whole)?;
    let to_mend = damage == Damage::Mended;
    let Checked { vouched, unstored } =
        check_log(&options, &wal_dir, &belonging, &segments, to_mend)?;
    // Every check that may refuse the log ran earlier: from here on the log is open for writing.
    let wal = EventWal::open_unread(&wal_dir, Mode::Append, options.wal())?;
    match vouched {
        Some((after, _)) => wal.go_on_after(after),
        None => wal.find_checkpoint()?,
    }
    opening.saved.extend(wal.recovery().saved_to);
    opening.removed = belonging.finish_compaction(&options, &dir, &mut segments, begun)?;
    opening.manifest_rebuilt = belonging.is_rebuilt() && !files.is_empty();
    let is_adopted = vouched.is_none() && !files.is_empty();
    if is_adopted {
        // The manifest of the coming checkpoint says that the segments are durable.
        segments.sync_all()?;
    }
    let is_ours = !belonging.may_be_of_others();
    let covered = belonging.covered(&segments, wal.last_checkpoint());
    let mut manifest = belonging.manifest;
    manifest.next_segment_id = segments.next_free(manifest.next_segment_id);
    if segments.by_id.is_empty() {
        options.warn_of_pages(&dir);
        segments.create(&options, manifest.take_segment_id()?, now())?;
    }
    if manifest.created_at == 0 {
        manifest.created_at = now();
    }
    manifest.page_bytes = segments.active()?.segment.header().page_bytes;
    let tail = match vouched {
        Some((after, end)) => {
            redo(&wal, after, end, &mut segments, options.file_mode, &mut opening)?
        }
        None => adopt(&wal, &mut segments, &options, (covered, is_mended, is_ours), &mut opening)?,
    };
    segments.count_last(&manifest)?;
    if vouched.is_some() {
        segments.take_counts(&manifest, &tail.flagged)?;
    }
    // A record that the manifest vouches for may have lost its end. A later append must not
    // complete it by accident.
    opening.saved.extend(segments.void_unfinished(options.file_mode)?);
    let mut state = State::new(manifest, segments);
    // An index that covers a later entry knows flags that the log lost, and is rebuilt.
    state.flags_asked = Lsn(wal.next_lsn().0 - 1).max(Lsn(state.manifest.last_checkpoint_lsn));
    if options.small {
        state.pending = state.pending.with_keys_max(SMALL_INDEX_KEYS);
    }
    let mut progress = Progress::silent();
    opening.indexed = match is_adopted {
        true => state.remake_index(&options, &sidecar, &mut progress)?,
        false => state.open_index(&options, &sidecar, &mut progress)?,
    };
    // The index does not cover flags, so the index takes the flags here.
    state.index_changes(Batch::default(), &tail.flagged.iter().copied().collect())?;
    let store = EventStore::assemble(dir, mode, options, opening, state, Some((wal, lock)));
    let completed = store.complete(&tail).and_then(|()| store.append_again(unstored));
    // Dropping an intact handle makes a checkpoint: no later opening would complete the rest.
    completed
        .inspect_err(|error| store.shared.state().broken = Some(error.message().to_owned()))?;
    // Appends use the new setting from here on: the checkpoint stores the setting before the first
    // append.
    store.shared.state().manifest.history = store.history();
    // The checkpoint makes the repeated appends durable, and stores a manifest with the segments.
    store.checkpoint()?;
    store.begin_pages()?;
    Ok(store)
}
