#![doc = include_str!("FORMAT.md")]

mod back;
mod background;
mod batch;
#[cfg(feature = "arrow")]
mod batches;
mod blocks;
mod cursor;
mod epoch;
mod follow;
mod format;
mod look;
mod mend;
mod meta;
mod open;
mod options;
mod reader;
mod recover;
mod report;
mod split;
mod survey;
mod sync;
mod tail;
mod tip;
mod verify;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;

use crate::commit::GroupCommit;
use crate::error::{Error, ErrorKind, Result};
use crate::scan::Damage;
use crate::sidecar::{Index, MarkFile, WriterLock};
use crate::storage::{File, FileId, fork_generation};
use tip::Tip;

pub use back::BackCursor;
pub use batch::Batch;
#[cfg(feature = "arrow")]
pub use batches::{Batches, Column};
pub use cursor::{Cursor, DeedRef, OnCorrupt};
pub use follow::Follow;
pub use format::{DEED_BYTES_MAX, LOG_NAME, Layout, META_NAME, Packed};
pub use mend::{repair, salvage};
pub use meta::{META_BYTES, Meta};
pub use options::{Mode, Options, Recovery};
pub use reader::{Deed, Iter};
pub use recover::MarkUse;
pub use report::{RecoveryReport, RepairReport, SalvageReport, SalvageRun, VerifyReport};
pub use split::Split;
pub use verify::verify;

/// An open event log. Handles may be shared by threads; clones are the same handle.
#[derive(Clone, Debug)]
pub struct Book {
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
    dir: PathBuf,
    log_path: PathBuf,
    codec: Packed,
    file: Arc<dyn File>,
    file_id: FileId,
    /// Fork generation at opening.
    born: u64,
    closed: AtomicBool,
    state: Mutex<State>,
    index: Arc<Mutex<Index>>,
    commits: GroupCommit,
    durable_records: AtomicU64,
    /// Whether anything is known of durability: always for a writer, with a mark for a reader.
    durability_known: AtomicBool,
    mark_file: Mutex<Option<MarkFile>>,
    lock: Mutex<Option<WriterLock>>,
    /// Held while the metadata is read, changed and written.
    meta: Mutex<()>,
    /// The thread that syncs every so often.
    background: OnceLock<Thread>,
    recovery: RecoveryReport,
}

/// What appends change.
#[derive(Debug)]
struct State {
    tip: Tip,
    epoch: u64,
    /// `fir_d` as it stands in the file.
    header_first: u64,
    /// Size of the file: behind the last deed there may be zeros.
    file_end: u64,
    /// Whether space can be reserved ahead.
    allocates: bool,
    scratch: Vec<u8>,
    /// Begin and running checksum of the index's open block; `None` if its begin was not seen.
    block_start: u64,
    block_sum: Option<u32>,
    /// For a reader: damage behind the tip.
    damage: Option<Damage>,
}

impl State {
    /// Last event; the epoch while empty.
    fn last(&self) -> u64 {
        match self.tip.records {
            0 => self.epoch,
            records => self.tip.first + (records - 1),
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
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

impl Book {
    /// Open a book for reading.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Options::default().open(path, Mode::Read)
    }

    /// Create a book that must not exist, for appending.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        Options::default().open(path, Mode::Create)
    }

    /// Open a book for appending, creating it if it is missing.
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

    /// Directory of the book.
    pub fn path(&self) -> &Path {
        &self.shared.dir
    }

    /// What the handle may do.
    pub fn mode(&self) -> Mode {
        self.shared.mode
    }

    /// Layout on disk.
    pub fn layout(&self) -> Layout {
        Layout::Packed
    }

    /// The options it was opened with.
    pub fn options(&self) -> &Options {
        &self.shared.options
    }

    /// What opening found and did.
    pub fn recovery(&self) -> &RecoveryReport {
        &self.shared.recovery
    }

    /// The metadata.
    pub fn meta(&self) -> Result<Meta> {
        let shared = self.usable()?;
        Meta::read(&*shared.options.storage, &shared.dir)
    }

    /// Change the metadata fields that are `Some`, durably and all at once.
    pub fn save_meta(&self, meta: &Meta) -> Result<()> {
        let shared = self.usable()?;
        if shared.mode == Mode::Read {
            let error = Error::new(ErrorKind::ReadOnly, "opened for reading");
            return Err(error.of(format::FORMAT).at(&shared.dir.join(META_NAME)));
        }
        let _changing = shared.meta.lock().unwrap_or_else(PoisonError::into_inner);
        meta.save(&*shared.options.storage, &shared.dir, shared.options.file_mode)
    }

    /// The bytes of one metadata key (`who`, `version`, `life`, `fake`); `None` where nothing was
    /// ever saved.
    pub fn read_meta(&self, key: &str) -> Result<Option<Vec<u8>>> {
        let shared = self.usable()?;
        meta::read_key(&*shared.options.storage, &shared.dir, key)
    }

    fn usable(&self) -> Result<&Shared> {
        if self.shared.forked() {
            return Err(self.forked_error());
        }
        if self.is_closed() {
            let error = Error::new(ErrorKind::Closed, "the book is closed");
            return Err(error.of(format::FORMAT).at(&self.shared.log_path));
        }
        Ok(&self.shared)
    }

    fn forked_error(&self) -> Error {
        let message = "opened before a fork, by the parent; open it anew in this process";
        Error::new(ErrorKind::Forked, message).of(format::FORMAT).at(&self.shared.log_path)
    }
}
