//! The state of an open store, and the checks at the start of every call.

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt::{self, Debug, Formatter};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::Instant;

use super::tombstones::Tombstones;
use crate::error::{Durable, Error, ErrorKind, Result};
use crate::ground::lines::{self, Locked, locked, try_locked};
use crate::ground::locks::Mutex;
use crate::ground::locks::atomic::{AtomicBool, Ordering};
use crate::log::{Counters, Stats};
use crate::mode::Mode;
use crate::nostr::bytes::event::Location;
use crate::nostr::bytes::format::FORMAT;
use crate::nostr::bytes::policy::Address;
use crate::nostr::index::covered::Ends;
use crate::nostr::index::files::lent::Lent;
use crate::nostr::index::lookup::Index;
use crate::nostr::index::pending::Pending;
use crate::nostr::log::entry::Lsn;
use crate::nostr::log::wal::EventWal;
use crate::nostr::pages::manifest::Manifest;
use crate::nostr::pages::options::{History, Options};
use crate::nostr::pages::segments::Segments;
use crate::nostr::store::opened::OpenReport;
use crate::sidecar::{WriterLock, sidecar_dir};
use crate::storage::fork_generation;

/// A store of Nostr events. Handles may be shared by threads; clones are the same handle.
#[derive(Clone)]
pub struct EventStore {
    pub(crate) shared: Arc<Shared>,
    _owner: Arc<Owner>,
}

/// Shared by every clone of a handle: dropping the last clone closes the store.
struct Owner(Arc<Shared>);

pub(crate) struct Shared {
    pub dir: PathBuf,
    pub sidecar: PathBuf,
    pub options: Options,
    pub mode: Mode,
    /// How appends treat replaced events. The stored setting may differ until opening ends.
    pub history: History,
    /// `None` for a reader.
    pub wal: Option<EventWal>,
    pub opening: OpenReport,
    /// The fork generation at opening.
    fork_generation: u64,
    closed: AtomicBool,
    /// Whether a running compaction must end, because the handle closes.
    pub closing: AtomicBool,
    /// The lock of a compaction. A compaction takes this lock before the state's lock.
    pub compacting: Mutex<()>,
    /// The error of a failed close.
    close_failed: OnceLock<String>,
    /// The lock of a commit of staged events. A commit takes this lock before the state's lock.
    pub committing: Mutex<()>,
    state: Mutex<State>,
    lock: Mutex<Option<WriterLock>>,
    /// The thread that syncs and makes checkpoints in time.
    pub background: OnceLock<Thread>,
    /// The thread that compacts in time.
    pub compactor: OnceLock<Thread>,
}

impl Debug for EventStore {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Shared { dir, mode, closed, .. } = &*self.shared;
        f.debug_struct("EventStore")
            .field("path", dir)
            .field("mode", mode)
            .field("closed", &closed.load(Ordering::Acquire))
            .finish_non_exhaustive()
    }
}

/// The state that appends change.
#[derive(Debug)]
pub(crate) struct State {
    pub manifest: Manifest,
    pub segments: Segments,
    /// A reader has an index from its first query on, if it can copy the writer's index.
    pub index: Option<Arc<Index>>,
    /// The directory of a reader's index. The index is closed first.
    pub lent: Option<Lent>,
    /// Whether a reader has tried to get an index.
    pub has_asked: bool,
    /// Whether a look-up met another event than the index says.
    pub index_is_foreign: Cell<bool>,
    /// The first and the last event, once known.
    pub ends: Option<Ends>,
    pub pending: Pending,
    /// The locations of some current versions of replaceable and addressable events.
    pub heads: HashMap<Address, Location>,
    /// The deleted events, once an append has needed them.
    pub tombstones: Option<Tombstones>,
    /// No later entry of the write-ahead log sets flags. Opening sets this to the log's last entry,
    /// even if it sets no flags.
    pub flags_asked: Lsn,
    /// Bytes of the write-ahead log since the last checkpoint.
    pub wal_bytes: u64,
    /// When the first entry after the last checkpoint was logged.
    pub logged_since: Option<Instant>,
    /// Whether the last segment was begun and no stored manifest names it.
    pub is_unnamed: bool,
    /// When the thread of compactions last kept to the retention.
    pub retained_at: Option<Instant>,
    /// When the thread of compactions last began to compact, or failed to look.
    pub compacted_at: Option<Instant>,
    /// Why the segments may lack entries of the write-ahead log. The next opening repairs the
    /// segments.
    pub broken: Option<String>,
}

impl EventStore {
    pub(crate) fn assemble(
        dir: PathBuf,
        mode: Mode,
        options: Options,
        opening: OpenReport,
        state: State,
        writer: Option<(EventWal, WriterLock)>,
    ) -> Self {
        let (wal, lock) = writer.unzip();
        let stored = state.manifest.history;
        let history = if wal.is_some() { options.history.unwrap_or(stored) } else { stored };
        let shared = Arc::new(Shared {
            sidecar: sidecar_dir(&dir),
            dir,
            options,
            mode,
            history,
            wal,
            opening,
            fork_generation: fork_generation(),
            closed: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            compacting: Mutex::new(()),
            close_failed: OnceLock::new(),
            committing: Mutex::new(()),
            state: Mutex::new(state),
            lock: Mutex::new(lock),
            background: OnceLock::new(),
            compactor: OnceLock::new(),
        });
        Self { _owner: Arc::new(Owner(shared.clone())), shared }
    }

    /// The directory, absolute.
    pub fn path(&self) -> &Path {
        &self.shared.dir
    }

    /// The options of the opening.
    pub fn options(&self) -> &Options {
        &self.shared.options
    }

    /// How appends treat replaced events: the option of the opening, or else the stored setting.
    pub fn history(&self) -> History {
        self.shared.history
    }

    /// The mode of the opening.
    pub fn mode(&self) -> Mode {
        self.shared.mode
    }

    /// The report of the opening.
    pub fn opening(&self) -> &OpenReport {
        &self.shared.opening
    }

    /// Counters of this handle's work on the write-ahead log. A record is an event, a change of
    /// flags or a checkpoint. All counters are zero for a reader.
    ///
    /// # Errors
    ///
    /// Fails for a closed handle; see [Errors](crate#errors).
    pub fn stats(&self) -> Result<Stats> {
        let wal = self.usable()?.wal.as_ref();
        Ok(wal.map_or_else(|| Counters::default().read(), EventWal::stats))
    }

    /// Unsynced bytes of the write-ahead log, which a power cut could lose. 0 for a reader.
    ///
    /// # Errors
    ///
    /// Fails for a closed handle; see [Errors](crate#errors).
    pub fn unsynced_bytes(&self) -> Result<u64> {
        let wal = self.usable()?.wal.as_ref();
        Ok(wal.map_or(0, EventWal::unsynced_bytes))
    }

    /// Whether the handle is closed.
    pub fn is_closed(&self) -> bool {
        self.shared.is_closed()
    }

    /// Whether a call closes the handle: for tests.
    #[doc(hidden)]
    pub fn is_closing(&self) -> bool {
        self.shared.closing.load(Ordering::Acquire)
    }

    /// Make a [checkpoint](Self::checkpoint), and close. A second call waits for the first, and
    /// fails if the first failed.
    ///
    /// # Errors
    ///
    /// Fails if the last sync fails. The handle is closed all the same.
    pub fn close(&self) -> Result<()> {
        self.shared.close()
    }

    pub(crate) fn usable(&self) -> Result<&Shared> {
        let shared = &*self.shared;
        if shared.fork_generation != fork_generation() {
            let message = "opened before a fork, by the parent; open it again in this process";
            return Err(shared.refused(ErrorKind::Forked, message));
        }
        if self.is_closed() {
            return Err(shared.refused(ErrorKind::Closed, "the store is closed"));
        }
        Ok(shared)
    }

    pub(crate) fn writable(&self) -> Result<(&Shared, &EventWal)> {
        let shared = self.usable()?;
        match &shared.wal {
            Some(wal) => Ok((shared, wal)),
            None => Err(shared.refused(ErrorKind::ReadOnly, "the store is open for reading")),
        }
    }
}

impl Shared {
    pub(crate) fn state(&self) -> Locked<'_, State> {
        locked(&self.state)
    }

    /// The state, unless another thread has its lock.
    pub(super) fn free_state(&self) -> Option<Locked<'_, State>> {
        try_locked(&self.state)
    }

    /// Whether the handle is closed or closing.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub(crate) fn refused(&self, kind: ErrorKind, message: &str) -> Error {
        Error::new(kind, message).of(FORMAT).at(&self.dir).with_durable(Durable::No)
    }

    fn close(&self) -> Result<()> {
        if self.fork_generation != fork_generation() {
            return Ok(());
        }
        // Another process may compact or commit as soon as this process has closed the store.
        self.closing.store(true, Ordering::Release);
        let _compacting = crate::ground::locks::lock(&self.compacting);
        let _committing = locked(&self.committing);
        if self.closed.swap(true, Ordering::AcqRel) {
            return match self.close_failed.get() {
                Some(why) => {
                    seeded!(Err(self.refused(ErrorKind::Poisoned, why)), "close-forgets-its-failure" => Ok(()))
                }
                None => Ok(()),
            };
        }
        let done = match &self.wal {
            Some(wal) => self.finish(wal),
            None => Ok(()),
        };
        // Release the files held by the state, even in a poisoned handle.
        let mut state = self.state();
        state.segments.by_id.clear();
        (state.index, state.lent) = (None, None);
        drop(state);
        *crate::ground::locks::lock(&self.lock) = None;
        for thread in [&self.background, &self.compactor].into_iter().filter_map(OnceLock::get) {
            thread.unpark();
        }
        done.map_err(|error| {
            let _ = self.close_failed.set(format!("closing failed: {}", error.message()));
            error.of(FORMAT)
        })
    }

    fn finish(&self, wal: &EventWal) -> Result<()> {
        let mut state = self.state();
        let checkpoint = match &state.broken {
            Some(_) => Ok(()),
            None => self.checkpoint(wal, &mut state),
        };
        state.pending.leave();
        state.index = None;
        checkpoint.and(wal.close())
    }
}

impl State {
    pub(crate) fn new(manifest: Manifest, segments: Segments) -> Self {
        Self {
            manifest,
            segments,
            index: None,
            lent: None,
            has_asked: false,
            index_is_foreign: Cell::new(false),
            ends: None,
            pending: Pending::default(),
            heads: HashMap::new(),
            tombstones: None,
            flags_asked: Lsn(0),
            wal_bytes: 0,
            logged_since: None,
            is_unnamed: false,
            retained_at: None,
            compacted_at: None,
            broken: None,
        }
    }

    /// The error of a store whose segments may lack entries of the write-ahead log.
    pub(crate) fn check(&self, shared: &Shared) -> Result<()> {
        match &self.broken {
            None => Ok(()),
            Some(why) => {
                let message = format!("an earlier write failed: {why}; open the store again");
                Err(shared.refused(ErrorKind::Poisoned, &message))
            }
        }
    }

    pub(crate) fn index(&self) -> Result<&Index> {
        // Only a reader may have no index, and a reader changes nothing.
        self.index
            .as_deref()
            .ok_or_else(|| Error::new(ErrorKind::ReadOnly, "a reader has no index"))
    }

    /// The page size for new records.
    pub(crate) fn page_bytes(&self) -> u32 {
        self.manifest.page_bytes
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // If closing failed, its caller got the error.
        if !self.0.closed.load(Ordering::Acquire)
            && let Err(error) = self.0.close()
        {
            // Acknowledged events are as durable as before.
            lines::warn(format_args!("closing a dropped handle failed: {error}"));
        }
    }
}
