//! How a book is opened.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::Book;
use super::codec::{DEED_BYTES_MAX, FORMAT, Layout, MUG_BYTES};
use crate::durability::Durability;
use crate::error::{Error, ErrorKind, Result};
pub use crate::mode::{Mode, Recovery};
use crate::setters::setters;
use crate::sidecar::LockTimeout;
use crate::storage::{Disk, Storage};

/// How a book is opened; see the fields.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// When appends are synced; the specification's default is always.
    pub durability: Durability,
    /// What opening for write does with a tail that is not clean.
    pub recovery: Recovery,
    /// Last event before this log's first one, for an empty log. By default the N of a directory
    /// named `0iN` (any other is refused there), what an earlier handle was given, or 0.
    pub epoch: Option<u64>,
    /// Layout on disk. By default that of the log, `packed` for a new one; any other than the log's
    /// is refused.
    pub layout: Option<Layout>,
    /// Limit of a deed's `len_d` (mug and jam), bytes.
    pub deed_bytes_max: u64,
    /// Unix permissions of new files, less the umask; the specification asks for 0644.
    pub file_mode: u32,
    /// A sync that takes longer is logged and counted.
    pub slow_sync: Duration,
    /// How long opening for writing waits for another writer; by default not at all.
    pub lock_timeout: LockTimeout,
    /// The file system.
    pub storage: Arc<dyn Storage>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::Always,
            recovery: Recovery::Valid,
            epoch: None,
            layout: None,
            deed_bytes_max: DEED_BYTES_MAX,
            file_mode: 0o644,
            slow_sync: Duration::from_secs(1),
            lock_timeout: LockTimeout::default(),
            storage: Arc::new(Disk),
        }
    }
}

setters! {
    Options {
        durability: Durability,
        recovery: Recovery,
        deed_bytes_max: u64,
        file_mode: u32,
        slow_sync: Duration,
        lock_timeout: LockTimeout,
        storage: Arc<dyn Storage>,
    }
    optional {
        epoch: u64,
        layout: Layout,
    }
}

impl Options {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Open the book in a directory, or with a `book.log` named itself.
    pub fn open(&self, path: impl AsRef<Path>, mode: Mode) -> Result<Book> {
        Book::open_with(path.as_ref(), mode, self.clone())
    }

    pub(super) fn check(&self) -> Result<()> {
        if self.deed_bytes_max < MUG_BYTES || self.deed_bytes_max > 1 << 62 {
            let message = format!("deed limit {} bytes, from 4 to 2^62", self.deed_bytes_max);
            return Err(Error::new(ErrorKind::InvalidArgument, message).of(FORMAT));
        }
        if self.epoch == Some(u64::MAX) {
            let message = "epoch 2^64 - 1 has no event after it";
            return Err(Error::new(ErrorKind::InvalidArgument, message).of(FORMAT));
        }
        Ok(())
    }
}
