//! The options of a backup, and its report.

use std::path::PathBuf;
use std::sync::Arc;

use crate::ground::setters::setters;
use crate::sidecar::LockTimeout;
use crate::storage::{Disk, Storage};

/// The options of a [backup](Self::backup).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BackupOptions {
    /// The file system of the log and of its backup.
    pub storage: Arc<dyn Storage>,
    /// How long the backup waits for another writer of the target; by default not at all.
    pub lock_timeout: LockTimeout,
    /// The copy notes the durable end after this number of bytes. The next backup continues there
    /// after an interruption.
    pub noted_every: u64,
}

impl Default for BackupOptions {
    fn default() -> Self {
        Self {
            storage: Arc::new(Disk),
            lock_timeout: LockTimeout::default(),
            noted_every: 64 << 20,
        }
    }
}

impl BackupOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }
}

setters! {
    BackupOptions {
        storage: Arc<dyn Storage>,
        noted_every: u64,
    }
    optional {}
    into { lock_timeout: LockTimeout }
}

/// The result of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupReport {
    /// The log.
    pub source: PathBuf,
    /// The backup.
    pub target: PathBuf,
    /// Name of the format.
    pub format: &'static str,
    /// Number of written files.
    pub copied_files: u64,
    /// Number of written bytes.
    pub copied_bytes: u64,
    /// Records that were copied and read back; `None` where the whole backup was read.
    pub new_records: Option<u64>,
    /// Positions of the first and the last record of the backup; `None` where it has none.
    pub bounds: Option<(u64, u64)>,
    /// Bytes of the backup's records, from the log's first byte on.
    pub total_bytes: u64,
}
