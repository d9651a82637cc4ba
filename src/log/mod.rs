//! The engine: one append-only log of framed records in one space of bytes, with a high-water mark
//! and an index beside it. A format plugs in as a [`Framing`](crate::scan::framing::Framing) and a
//! [`Format`](format::Format); [`Book`](crate::book::Book) and [`Wal`](crate::wal::Wal) are logs of
//! theirs.
//!
//! ```text
//! bytes      framing  extent  evidence  resync   pure, or reading a file only
//! opening    inspect (format)  find_end  settle  open   find; decide; write; assemble
//! appending  batch  append  payload  durable  transact  staged  stats  index
//! reading    cursor  reverse  read  refresh  follow  split  bookmark  identity  arrow  notice
//! checking   verify  noted  salvage  carry  repair  report
//! ```

pub(crate) mod append;
#[cfg(feature = "arrow")]
pub mod arrow;
pub(crate) mod batch;
pub(crate) mod beyond_limit;
pub(crate) mod bookmark;
mod carry;
pub(crate) mod conclude;
pub(crate) mod cursor;
pub(crate) mod durable;
pub(crate) mod evidence;
pub(crate) mod extent;
pub(crate) mod find_end;
pub(crate) mod findings;
pub(crate) mod follow;
pub mod format;
pub(crate) mod identity;
pub(crate) mod index;
pub(crate) mod noted;
pub(crate) mod notice;
pub(crate) mod open;
pub(crate) mod options;
pub(crate) mod payload;
pub(crate) mod read;
pub(crate) mod refresh;
pub(crate) mod repair;
pub(crate) mod report;
pub(crate) mod resync;
pub(crate) mod reverse;
pub(crate) mod salvage;
pub(crate) mod settle;
pub(crate) mod space;
pub(crate) mod split;
pub(crate) mod stage;
pub(crate) mod stats;
pub(crate) mod verify;
pub(crate) mod walk;

pub use crate::scan::framing;

use std::fmt::{self, Debug, Formatter};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::thread::Thread;

use crate::commit::GroupCommit;
use crate::error::{Error, ErrorKind, Result};
use crate::lines::{self, Locked, locked};
use crate::locks::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::locks::{Mutex, lock};
use crate::log::evidence::{Border, Evidence};
use crate::log::extent::Extent;
use crate::log::format::Format;
use crate::log::options::Common;
use crate::log::report::RecoveryReport;
use crate::log::space::{Beyond, Place};
use crate::log::stats::Counters;
use crate::mode::Mode;
use crate::scan::Damage;
use crate::sidecar::{Index, MarkFile, WriterLock};
use crate::storage::{Closable, File, FileId, fork_generation};

/// An open log. Handles may be shared by threads; clones are the same handle.
#[derive(Clone)]
pub struct Log<F: Format> {
    pub(crate) shared: Arc<Shared<F>>,
    _owner: Arc<Owner<F>>,
}

/// Held by every clone of a handle, but not by the thread that syncs in the background: with the
/// last of them the log is closed, whatever that thread is doing.
struct Owner<F: Format>(Arc<Shared<F>>);

pub struct Shared<F: Format> {
    pub(crate) format: F,
    /// The codec that reads.
    pub(crate) framing: F::Framing,
    /// The codec that checks what is appended.
    pub(crate) appending: F::Framing,
    pub(crate) options: F::Options,
    pub(crate) common: Common,
    pub(crate) mode: Mode,
    pub(crate) place: Place,
    pub(crate) file: Arc<dyn File>,
    /// The file and what lies after a gap, to be given back by closing.
    pub(crate) open_files: Mutex<Vec<Arc<Closable>>>,
    /// Space is reserved at most so far ahead.
    piece_bytes: Option<u64>,
    /// At opening.
    fork_generation: u64,
    closed: AtomicBool,
    state: Mutex<State>,
    index: Arc<Mutex<Index>>,
    pub(crate) commits: GroupCommit,
    /// For a writer.
    durable_records: AtomicU64,
    pub(crate) mark_file: Mutex<Option<MarkFile>>,
    lock: Mutex<Option<WriterLock>>,
    /// How often this handle cut the log's end.
    pub(crate) cuts: AtomicU64,
    /// Where it cut.
    pub(crate) cut_ends: Mutex<Vec<u64>>,
    /// Held while a format's own files are read, changed and written.
    pub(crate) exclusive: Mutex<()>,
    /// The thread that syncs every so often.
    background: OnceLock<Thread>,
    pub(crate) counters: Counters,
    recovery: RecoveryReport,
}

impl<F: Format> Debug for Log<F> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.shared.fmt(f)
    }
}

impl<F: Format> Debug for Shared<F> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let closed = self.closed.load(Ordering::Acquire);
        f.debug_struct("Log")
            .field("format", &F::NAME)
            .field("path", &self.place.log)
            .field("mode", &self.mode)
            .field("closed", &closed)
            .finish_non_exhaustive()
    }
}

/// What appends change, and for a reader what it knows of the log.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) extent: Extent,
    /// Whether the number of the first record is known.
    pub(crate) numbered: bool,
    /// The log's file, or the lowest one.
    pub(crate) file_id: FileId,
    /// Byte after the space that is there: after the last record there may be zeros.
    pub(crate) file_end: u64,
    /// Whether space can be reserved ahead.
    pub(crate) allocates: bool,
    /// Whether the mark on the disk says that the log is open.
    pub(crate) mark_is_open: bool,
    scratch: Vec<u8>,
    /// Begin of the index's open block.
    pub(crate) block_start: u64,
    /// For a reader: the end of what the mark vouches for.
    durable: Option<Border>,
    /// For a reader: records before it.
    durable_records: u64,
    /// For a reader: whether another program appended since the mark.
    is_outdated: bool,
    /// For a reader: byte from which on nothing was acknowledged.
    unacknowledged_from: Option<u64>,
    /// For a reader: damage after the extent, or before it.
    damage: Option<Damage>,
    /// For a reader: damage after the extent, where that is not all.
    after: Option<Damage>,
    /// For a reader: what lies after a gap.
    beyond: Option<Beyond>,
}

impl<F: Format> Shared<F> {
    pub(crate) fn state(&self) -> Locked<'_, State> {
        locked(&self.state)
    }

    pub(crate) fn index(&self) -> Locked<'_, Index> {
        locked(&self.index)
    }

    /// A dropped handle does not: its cursors read on.
    fn give_back(&self) {
        lock(&self.open_files).drain(..).for_each(|file| file.close());
        self.format.give_back();
        self.index().give_back();
    }

    fn is_forked(&self) -> bool {
        self.fork_generation != fork_generation()
    }

    pub(crate) fn fail(&self, doing: &str, error: std::io::Error) -> Error {
        Error::io(doing, &self.place.log, error).of(F::NAME)
    }

    pub(crate) fn error(&self, kind: ErrorKind, message: impl Into<String>) -> Error {
        Error::new(kind, message).of(F::NAME).at(&self.place.log)
    }

    /// What is known of the log from elsewhere than its records.
    fn evidence(&self, state: &State) -> Evidence {
        let Extent { end, .. } = state.extent;
        let ordinal = Some(state.extent.next()).filter(|_| state.numbered);
        let (known, unacknowledged) = match self.mode {
            // The end of the extent was scanned or hopped to: a border if no damage follows it.
            Mode::Read => {
                let scanned = Border { offset: end, ordinal };
                let known = state.durable.filter(|durable| durable.offset > end);
                (known.unwrap_or(scanned), state.unacknowledged_from)
            }
            // All of it was found intact, or written by this handle.
            _ => (Border { offset: end, ordinal }, Some(end)),
        };
        let durable = state.durable.filter(|_| self.mode == Mode::Read);
        Evidence::new(self.index.clone(), Some(known), unacknowledged).with_durable(durable)
    }
}

impl<F: Format> Drop for Owner<F> {
    fn drop(&mut self) {
        if let Err(error) = self.0.finish() {
            // What was acknowledged is durable already.
            lines::warn(format_args!("closing a dropped handle failed: {error}"));
        }
    }
}

/// What every log has.
impl<F: Format> Log<F> {
    /// Sync, cut the space reserved ahead, and release the lock.
    /// A second call waits for the first, and fails if that failed. All files and maps are given back,
    /// also where cursors and followers are left: these fail with [`ErrorKind::Closed`].
    pub fn close(&self) -> Result<()> {
        if self.shared.is_forked() {
            return Err(self.forked_error());
        }
        let finished = self.shared.finish();
        self.shared.give_back();
        finished
    }

    /// The same, but the files stay open while cursors use them: another handle goes on with the log, or
    /// an interface promises it.
    #[doc(hidden)]
    pub fn close_keeping_files(&self) -> Result<()> {
        match self.shared.is_forked() {
            true => Err(self.forked_error()),
            false => self.shared.finish(),
        }
    }

    /// Whether the handle is closed.
    pub fn is_closed(&self) -> bool {
        self.shared.closed.load(Ordering::Acquire)
    }

    /// What the handle may do.
    pub fn mode(&self) -> Mode {
        self.shared.mode
    }

    /// The options it was opened with.
    pub fn options(&self) -> &F::Options {
        &self.shared.options
    }

    /// What opening found and did.
    pub fn recovery(&self) -> &RecoveryReport {
        &self.shared.recovery
    }

    /// The log's directory `.deedbook`.
    pub fn sidecar(&self) -> &Path {
        &self.shared.place.sidecar
    }

    pub(crate) fn usable(&self) -> Result<&Shared<F>> {
        if self.shared.is_forked() {
            return Err(self.forked_error());
        }
        if self.is_closed() {
            return Err(self.shared.refused(ErrorKind::Closed, "the log is closed"));
        }
        Ok(&self.shared)
    }

    fn forked_error(&self) -> Error {
        let message = "opened before a fork, by the parent; open it again in this process";
        self.shared.refused(ErrorKind::Forked, message)
    }
}
