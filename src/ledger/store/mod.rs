//! The handle of a ledger, and the state shared by its clones.

pub(super) mod append;
pub(super) mod durable;
pub(super) mod open;
pub(super) mod quota;
pub(super) mod state;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;

use super::codec::{Codec, FORMAT};
use super::directory::Directory;
use super::directory::lease::Lease;
use super::options::{Envelope, Options};
use crate::commit::GroupCommit;
use crate::error::{Durable, Error, ErrorKind, Result};
use crate::ground::lines::{self, Locked, locked};
use crate::ground::locks::Mutex;
use crate::ground::locks::atomic::{AtomicBool, Ordering};
use crate::log::{Counters, Stats};
use crate::mode::Mode;
use crate::storage::fork_generation;
use state::State;

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
    pub(super) shared: Arc<Shared>,
    pub(super) _owner: Arc<Owner>,
}

/// Held by every clone of a handle, but not by the background thread. When the last clone is
/// dropped, the store closes, whatever the thread is doing.
pub(super) struct Owner(pub(super) Arc<Shared>);

pub(super) struct Shared {
    pub(super) directory: Directory,
    pub(super) mode: Mode,
    pub(super) header: Envelope,
    pub(super) footer: Envelope,
    pub(super) separator: Vec<u8>,
    pub(super) max_file_size: u64,
    pub(super) options: Options,
    /// The codec for appending.
    pub(super) codec: Codec,
    /// At opening.
    pub(super) fork_generation: u64,
    pub(super) closed: AtomicBool,
    pub(super) state: Mutex<State>,
    pub(super) lease: Mutex<Option<Lease>>,
    pub(super) commits: GroupCommit,
    /// The thread for timed syncs.
    pub(super) background: OnceLock<Thread>,
    pub(super) counters: Counters,
}

impl LedgerStore {
    /// The directory, absolute.
    pub fn path(&self) -> &Path {
        &self.shared.directory.path
    }

    /// The end of the files' names.
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

    /// Counts since the opening of the handle.
    pub fn stats(&self) -> Stats {
        self.shared.counters.read()
    }

    /// Bytes appended by this handle and not covered by a sync of its own: a power cut could lose
    /// them.
    pub fn unsynced_bytes(&self) -> u64 {
        let durable = self.shared.commits.durable();
        self.shared.state().written.saturating_sub(durable)
    }

    /// The file being written.
    pub(super) fn active_path(&self) -> Option<PathBuf> {
        self.shared.state().active.as_ref().map(|active| active.path.clone())
    }

    pub(super) fn usable(&self) -> Result<&Shared> {
        if self.shared.is_forked() {
            return Err(self.shared.forked_error());
        }
        self.shared.check_open()?;
        Ok(&self.shared)
    }

    /// For calls that append, send or remove.
    pub(super) fn sending(&self) -> Result<&Shared> {
        let shared = self.usable()?;
        shared.check_mode()?;
        Ok(shared)
    }

    /// For calls that write something new: a poisoned handle begins nothing new.
    pub(super) fn writable(&self) -> Result<&Shared> {
        self.writable_as_before().map_err(Error::if_poisoned_nothing_begun)
    }

    /// For calls about an earlier write: a poisoned handle cannot say whether the write survived.
    pub(super) fn writable_as_before(&self) -> Result<&Shared> {
        let shared = self.usable()?;
        shared.check_writable()?;
        Ok(shared)
    }
}

impl Shared {
    pub(super) fn state(&self) -> Locked<'_, State> {
        locked(&self.state)
    }

    pub(super) fn check_open(&self) -> Result<()> {
        match self.closed.load(Ordering::Acquire) {
            false => Ok(()),
            true => Err(self.refused(ErrorKind::Closed, "the ledger is closed")),
        }
    }

    fn check_mode(&self) -> Result<()> {
        match self.mode {
            Mode::Read => Err(self.refused(ErrorKind::ReadOnly, "the ledger is open for reading")),
            _ => Ok(()),
        }
    }

    /// Once more under the state's lock: closing finishes the file under it, and a sync may have failed
    /// since.
    pub(super) fn check_writable(&self) -> Result<()> {
        self.check_open()?;
        self.check_mode()?;
        self.commits.check().map_err(|e| e.of(FORMAT).at(&self.directory.path))
    }

    pub(super) fn is_forked(&self) -> bool {
        self.fork_generation != fork_generation()
    }

    pub(super) fn forked_error(&self) -> Error {
        let message = "opened before a fork, by the parent; open it again in this process";
        self.refused(ErrorKind::Forked, message)
    }

    pub(super) fn refused(&self, kind: ErrorKind, message: &str) -> Error {
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
            // The acknowledged records are as durable as before.
            lines::warn(format_args!("closing a dropped handle failed: {error}"));
        }
    }
}
