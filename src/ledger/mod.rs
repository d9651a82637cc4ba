#![doc = include_str!("FORMAT.md")]

mod append;
mod check;
pub(crate) mod codec;
#[cfg(feature = "arrow")]
mod columns;
mod contents;
mod counter;
mod directory;
mod durable;
mod fetch;
mod format;
mod lease;
mod look;
mod migrate;
mod options;
mod quota;
mod reader;
mod stage;
mod tally;
mod transact;
mod transient;
mod walk;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;

use crate::commit::GroupCommit;
use crate::durability::Durability;
use crate::error::{Durable, Error, ErrorKind, Result};
use crate::lines::{self, Locked, locked};
use crate::locks::Mutex;
use crate::locks::atomic::{AtomicBool, Ordering};
use crate::log::Log;
use crate::log::split::Split;
use crate::log::stats::Counters;
use crate::storage::fork_generation;
use append::State;
use codec::{Codec, FORMAT};
use directory::Directory;
use format::LedgerFormat;
use lease::Lease;
use tally::Tally;

pub use crate::log::verify::check_part;
pub use check::{
    FileInfo, FileReport, FileSalvage, files, open_file, salvage, verify, verify_file,
};
pub use codec::{RECORD_BYTES_MAX, file_name};
#[cfg(feature = "arrow")]
pub use columns::Column;
pub use contents::{Contents, Records, bases, contents, is_ledger_file};
pub use fetch::{Fetched, Removable};
pub use migrate::{FileMigration, Migration, inspect as inspect_migration, migrate};
pub use options::{Envelope, LedgerConfig, OnCorrupt, Options, WhenFull};
pub use reader::LedgerReader;
pub use stage::Stage;
pub use tally::LedgerStats;
pub use transient::{DataResult, DataStore, MemoryStore, TransientDB};
pub use walk::Payloads;

/// One file of a ledger, open for reading.
pub type LedgerFile = Log<LedgerFormat>;
/// Walks forwards over the [records](RecordRef) of a file.
pub type Cursor = crate::log::cursor::Cursor<LedgerFormat>;
/// The [records](Record) of a file as an iterator; ends after the first error.
pub type Iter = crate::log::cursor::Iter<LedgerFormat>;
/// Encoded records, appended by [`LedgerStore::append_batch`].
pub type Batch = crate::log::batch::Batch<Codec>;
/// A stream of Arrow record batches over a cursor.
#[cfg(feature = "arrow")]
pub type Batches = crate::log::arrow::Batches<LedgerFormat>;

/// One record of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its number in the file, from 0 on; `None` after damage that hid the count.
    pub number: Option<u64>,
    /// The byte of the file at which it begins.
    pub offset: u64,
    /// The payload.
    pub payload: Vec<u8>,
}

/// A record, borrowed from its cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordRef<'a> {
    /// Its number in the file, from 0 on; `None` after damage that hid the count.
    pub number: Option<u64>,
    /// The byte of the file at which it begins.
    pub offset: u64,
    /// The payload.
    pub payload: &'a [u8],
}

impl Batch {
    /// An empty batch for payloads of at most `record_bytes_max` bytes.
    pub fn new(record_bytes_max: u64) -> Self {
        Self::with_framing(Codec::new(record_bytes_max))
    }

    /// Add a record. The batch is unchanged if the payload is empty or beyond the limit.
    #[inline]
    pub fn push(&mut self, payload: &[u8]) -> Result<()> {
        self.push_tagged((), payload).map(drop)
    }
}

/// A file of a ledger.
impl LedgerFile {
    /// The file.
    pub fn path(&self) -> &Path {
        &self.shared.place.log
    }

    /// The records, up to the first damage, which is raised.
    pub fn iter(&self) -> Result<Iter> {
        Ok(Iter::new(self.cursor(crate::OnCorrupt::Raise)?))
    }

    /// Walk the records; damage is raised, or passed over as far as the file goes.
    pub fn cursor(&self, on_corrupt: crate::OnCorrupt) -> Result<Cursor> {
        self.cursor_by_ordinal(0, None, on_corrupt)
    }

    /// Cut the records into parts of about `split_bytes` bytes. A file that is damaged after its
    /// valid prefix gets one more part for what lies there.
    pub fn splits(&self, split_bytes: u64) -> Result<Vec<Split>> {
        let extent = self.usable()?.snapshot().extent;
        self.splits_over(split_bytes, extent.start, extent.end, true)
    }

    /// Walk the records of a part, without opening the log; without `check`, checksums are not compared.
    /// Another log at the path is [`ErrorKind::NotALog`](crate::ErrorKind::NotALog).
    pub fn read_split(
        split: &Split,
        options: &Options,
        on_corrupt: crate::OnCorrupt,
        check: bool,
    ) -> Result<Cursor> {
        Self::cursor_of_split(split, options, on_corrupt, check, None)
    }
}

/// A ledger: records kept in files until they were sent. Handles may be shared by threads; clones are
/// the same handle.
///
/// ```
/// use std::io::Read;
/// use deedbook::ledger::{LedgerConfig, LedgerStore};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("spool");
/// let ledger = LedgerStore::new(LedgerConfig::lines(path, "events"))?;
/// ledger.append(br#"{"event":"page_view"}"#)?; // survives the death of the process
/// ledger.append_many([r#"{"event":"a"}"#, r#"{"event":"b"}"#])?;
///
/// let fetched = ledger.fetch(None, None)?.expect("there are records");
/// for mut reader in fetched.data.unwrap_or_default() {
///     let mut body = String::new();
///     reader.read_to_string(&mut body)?;
///     assert_eq!(body.len() as u64, reader.content_length());
///     assert_eq!(body, "{\"event\":\"page_view\"}\n{\"event\":\"a\"}\n{\"event\":\"b\"}");
/// }
/// ledger.remove(&fetched.removable.unwrap_or_default())?; // once it was sent
/// assert!(!ledger.has_data()?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct LedgerStore {
    shared: Arc<Shared>,
    _owner: Arc<Owner>,
}

/// Held by every clone of a handle, but not by the thread that syncs in the background: with the
/// last of them the store is closed, whatever that thread is doing.
struct Owner(Arc<Shared>);

struct Shared {
    directory: Directory,
    header: Envelope,
    footer: Envelope,
    separator: Vec<u8>,
    max_file_size: u64,
    options: Options,
    /// The codec that checks what is appended.
    codec: Codec,
    /// At opening.
    fork_generation: u64,
    closed: AtomicBool,
    state: Mutex<State>,
    lease: Mutex<Option<Lease>>,
    commits: GroupCommit,
    /// The thread that syncs every so often.
    background: OnceLock<Thread>,
    counters: Counters,
    tally: Tally,
}

impl LedgerStore {
    /// Open a ledger, with the specification's defaults. No file is read, and none is created before
    /// the first append. A commit that had begun is brought to its end; where that fails, a line of
    /// the log says why, and the next [`LedgerStore::commit_staged`] fails.
    pub fn new(config: LedgerConfig) -> Result<Self> {
        Options::default().open(config)
    }

    fn open_with(config: LedgerConfig, options: Options) -> Result<Self> {
        config.check()?;
        let LedgerConfig { storage_location: location, base_filename, max_file_size, .. } = config;
        let max_file_size = max_file_size as u64;
        options.check(&location, max_file_size)?;
        let directory = Directory::open(&options, &location, &base_filename);
        let shared = Arc::new(Shared {
            directory: directory.map_err(|e| e.of(FORMAT))?,
            header: config.header,
            footer: config.footer,
            separator: config.separator,
            max_file_size,
            codec: Codec::new(options.record_bytes_max),
            fork_generation: fork_generation(),
            closed: AtomicBool::new(false),
            state: Mutex::new(State::default()),
            lease: Mutex::new(None),
            commits: GroupCommit::new(0),
            background: OnceLock::new(),
            counters: Counters::default(),
            tally: Tally::default(),
            options,
        });
        if let Durability::Interval(interval) = shared.options.durability {
            durable::sync_every(&shared, interval).map_err(|e| e.of(FORMAT))?;
        }
        let store = Self { _owner: Arc::new(Owner(shared.clone())), shared };
        store.shared.finish_begun();
        Ok(store)
    }

    /// The directory, absolute.
    pub fn path(&self) -> &Path {
        &self.shared.directory.path
    }

    /// What the files' names end with.
    pub fn base_filename(&self) -> &str {
        &self.shared.directory.base
    }

    /// A file that has more bytes is finished.
    pub fn max_file_size(&self) -> u64 {
        self.shared.max_file_size
    }

    /// The options it was opened with.
    pub fn options(&self) -> &Options {
        &self.shared.options
    }

    /// Whether the handle is closed.
    pub fn is_closed(&self) -> bool {
        self.shared.closed.load(Ordering::Acquire)
    }

    /// What this handle did since it was opened.
    pub fn stats(&self) -> LedgerStats {
        self.shared.tally.read(&self.shared.counters)
    }

    /// Bytes that this handle appended and that no sync of its own covers: what a power cut could take.
    pub fn unsynced_bytes(&self) -> u64 {
        let durable = self.shared.commits.durable();
        self.shared.state().written.saturating_sub(durable)
    }

    /// The file being written.
    fn active_path(&self) -> Option<PathBuf> {
        self.shared.state().active.as_ref().map(|active| active.path.clone())
    }

    fn usable(&self) -> Result<&Shared> {
        if self.shared.is_forked() {
            return Err(self.shared.forked_error());
        }
        self.shared.check_open()?;
        Ok(&self.shared)
    }

    /// For calls that write something new: a poisoned handle begins nothing of it.
    fn writable(&self) -> Result<&Shared> {
        self.writable_as_before().map_err(Error::if_poisoned_nothing_begun)
    }

    /// For calls about something written before: a poisoned handle cannot say what became of it.
    fn writable_as_before(&self) -> Result<&Shared> {
        let shared = self.usable()?;
        shared.check_writable()?;
        Ok(shared)
    }
}

impl Shared {
    fn state(&self) -> Locked<'_, State> {
        locked(&self.state)
    }

    fn check_open(&self) -> Result<()> {
        match self.closed.load(Ordering::Acquire) {
            false => Ok(()),
            true => Err(self.refused(ErrorKind::Closed, "the ledger is closed")),
        }
    }

    /// Once more under the state's lock: closing finishes the file under it, and a sync may have failed
    /// since.
    fn check_writable(&self) -> Result<()> {
        self.check_open()?;
        self.commits.check().map_err(|e| e.of(FORMAT).at(&self.directory.path))
    }

    fn is_forked(&self) -> bool {
        self.fork_generation != fork_generation()
    }

    fn forked_error(&self) -> Error {
        let message = "opened before a fork, by the parent; open it again in this process";
        self.refused(ErrorKind::Forked, message)
    }

    fn refused(&self, kind: ErrorKind, message: &str) -> Error {
        let error = Error::new(kind, message).of(FORMAT).at(&self.directory.path);
        error.with_durable(Durable::No)
    }
}

impl std::fmt::Debug for LedgerStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Shared { directory, closed, .. } = &*self.shared;
        f.debug_struct("LedgerStore")
            .field("path", &directory.path)
            .field("base", &directory.base)
            .field("closed", &closed.load(Ordering::Acquire))
            .finish_non_exhaustive()
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // If closing failed, that call returned the error.
        if !self.0.closed.load(Ordering::Acquire)
            && let Err(error) = self.0.finish()
        {
            // What was acknowledged is as durable as it was.
            lines::warn(format_args!("closing a dropped handle failed: {error}"));
        }
    }
}
