#![doc = include_str!("FORMAT.md")]

mod back;
mod background;
mod batch;
#[cfg(feature = "arrow")]
mod batches;
mod consumers;
mod cursor;
mod follow;
mod format;
mod intent;
mod look;
mod mend;
mod open;
mod options;
mod place;
mod reader;
mod recover;
mod refresh;
mod report;
mod retain;
mod segments;
mod settings;
mod split;
mod stats;
mod survey;
mod sync;
mod tail;
mod tip;
mod truncate;
mod verify;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;

use crate::commit::GroupCommit;
use crate::error::{Error, ErrorKind, Result};
use crate::locks::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::locks::{Mutex, MutexGuard, lock};
use crate::scan::Damage;
use crate::sidecar::{Index, MarkFile, WriterLock};
use crate::storage::{File, FileId, fork_generation};
use format::Codec;
use place::Place;
use segments::Segments;
use stats::Counters;
use tip::Tip;

pub use back::BackCursor;
pub use batch::{Batch, Parts, pack};
#[cfg(feature = "arrow")]
pub use batches::{Batches, Column};
pub use cursor::{Cursor, OnCorrupt, RecordRef};
pub use follow::Follow;
pub use format::{HEAD_NAME, HEADER_BYTES, Lsn, RECORD_BYTES_MAX, SEGMENT_BYTES, segment_name};
pub use mend::{repair, salvage};
pub use options::{Layout, Mode, Options, Recovery};
pub use reader::{Iter, Record};
pub use report::{RecoveryReport, RepairReport, SalvageReport, SalvageRun, VerifyReport};
pub use retain::{Archive, Retention};
pub use split::Split;
pub use stats::Stats;
pub use verify::verify;

/// An open write-ahead log. Handles may be shared by threads; clones are the same handle.
#[derive(Clone, Debug)]
pub struct Wal {
    shared: Arc<Shared>,
    _owner: Arc<Owner>,
}

/// Held by every clone of a handle, but not by the thread that syncs in the background: with the
/// last of them the log is closed, whatever that thread is doing.
#[derive(Debug)]
struct Owner(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    options: Options,
    mode: Mode,
    place: Place,
    layout: Layout,
    codec: Codec,
    /// Limit of a payload for appends.
    record_bytes_max: u64,
    file: Arc<dyn File>,
    segments: Option<Arc<Segments>>,
    /// Fork generation at opening.
    born: u64,
    closed: AtomicBool,
    state: Mutex<State>,
    index: Arc<Mutex<Index>>,
    commits: GroupCommit,
    /// For a reader: byte up to which the mark says the log is durable; `u64::MAX` if unknown.
    durable_seen: AtomicU64,
    mark_file: Mutex<Option<MarkFile>>,
    lock: Mutex<Option<WriterLock>>,
    /// How often this handle cut the log's end.
    cuts: AtomicU64,
    /// Held while the consumers are read, changed and written.
    consumers: Mutex<()>,
    /// The thread that syncs every so often.
    background: OnceLock<Thread>,
    counters: Counters,
    recovery: RecoveryReport,
}

/// What appends change.
#[derive(Debug)]
struct State {
    tip: Tip,
    /// The lowest segment's file, or the single one.
    file_id: FileId,
    /// Byte behind the space that is there: behind the last record there may be zeros.
    file_end: u64,
    /// Whether space can be reserved ahead.
    allocates: bool,
    scratch: Vec<u8>,
    /// Begin of the index's open block.
    block_start: u64,
    /// For a reader: damage behind the tip.
    damage: Option<Damage>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        lock(&self.index)
    }

    fn forked(&self) -> bool {
        self.born != fork_generation()
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // Nobody is left to be told; what was acknowledged is durable already.
        let _ = self.0.finish();
    }
}

impl Wal {
    /// Open a log for reading.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Options::default().open(path, Mode::Read)
    }

    /// Create a log that must not exist, for appending.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        Options::default().open(path, Mode::Create)
    }

    /// Open a log for appending, creating it if it is missing.
    pub fn append_to(path: impl AsRef<Path>) -> Result<Self> {
        Options::default().open(path, Mode::Append)
    }

    /// Sync (unless the durability is none), cut the space reserved ahead, and release the lock.
    /// Closing twice is fine.
    pub fn close(&self) -> Result<()> {
        if self.shared.forked() {
            return Err(self.forked_error());
        }
        self.shared.finish()
    }

    /// Whether the handle is closed.
    pub fn is_closed(&self) -> bool {
        self.shared.closed.load(Ordering::Acquire)
    }

    /// The single file, or the directory of the segments.
    pub fn path(&self) -> &Path {
        &self.shared.place.log
    }

    /// What the handle may do.
    pub fn mode(&self) -> Mode {
        self.shared.mode
    }

    /// Where the log's bytes lie.
    pub fn layout(&self) -> Layout {
        self.shared.layout
    }

    /// Limit of a payload for appends, bytes.
    pub fn record_bytes_max(&self) -> u64 {
        self.shared.record_bytes_max
    }

    /// The options it was opened with.
    pub fn options(&self) -> &Options {
        &self.shared.options
    }

    /// What opening found and did.
    pub fn recovery(&self) -> &RecoveryReport {
        &self.shared.recovery
    }

    /// The segment files from the one with the head on; of a single file that file.
    pub fn segment_paths(&self) -> Result<Vec<PathBuf>> {
        let shared = self.usable()?;
        Ok(match &shared.segments {
            None => vec![shared.place.log.clone()],
            Some(segments) => segments.range().map(|index| segments.path(index)).collect(),
        })
    }

    fn usable(&self) -> Result<&Shared> {
        if self.shared.forked() {
            return Err(self.forked_error());
        }
        if self.is_closed() {
            let error = Error::new(ErrorKind::Closed, "the log is closed");
            return Err(error.of(format::FORMAT).at(&self.shared.place.log));
        }
        Ok(&self.shared)
    }

    fn forked_error(&self) -> Error {
        let message = "opened before a fork, by the parent; open it anew in this process";
        Error::new(ErrorKind::Forked, message).of(format::FORMAT).at(&self.shared.place.log)
    }
}
