//! How a write-ahead log is opened.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::Wal;
use super::record::{FORMAT, HEADER_BYTES, SEGMENT_BYTES};
use super::retain::Archive;
use crate::durability::Durability;
use crate::error::{Error, ErrorKind, Result};
pub use crate::mode::{Mode, Recovery};
use crate::retention::Retention;
use crate::setters::setters;
use crate::sidecar::LockTimeout;
use crate::storage::{Disk, Storage};

/// Where the log's bytes lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// In one file.
    Single,
    /// In segment files of a directory.
    Segmented {
        /// Size of every segment but the last.
        segment_bytes: u64,
    },
}

impl Layout {
    /// `single` or `segmented`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Segmented { .. } => "segmented",
        }
    }

    /// The size of a segment.
    pub fn segment_bytes(self) -> Option<u64> {
        match self {
            Self::Single => None,
            Self::Segmented { segment_bytes } => Some(segment_bytes),
        }
    }
}

impl Default for Layout {
    fn default() -> Self {
        Self::Segmented { segment_bytes: SEGMENT_BYTES }
    }
}

/// How a log is opened; see the fields.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// When appends are synced; by default the caller syncs.
    pub durability: Durability,
    /// What opening for write does with a tail that is not clean.
    pub recovery: Recovery,
    /// Layout of a new log, and one that an existing log must have. By default what is there, and
    /// for a new log segments of 64 MiB.
    pub layout: Option<Layout>,
    /// Limit of a payload, bytes. By default what the log was created with, or 64 MiB. A lower one
    /// limits appends only.
    pub record_bytes_max: Option<u64>,
    /// Unix permissions of new files, less the umask.
    pub file_mode: u32,
    /// A sync that takes longer is logged and counted.
    pub slow_sync: Duration,
    /// Called for every whole segment before it is removed.
    pub archive: Option<Archive>,
    /// What a log open for writing drops by itself, as [`Wal::retain`] does: at opening, and after the
    /// first sync in each segment. Where it cannot, it is logged, and appends go on.
    pub retention: Option<Retention>,
    /// How long opening for writing waits for another writer; by default not at all.
    pub lock_timeout: LockTimeout,
    /// The file system.
    pub storage: Arc<dyn Storage>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::Manual,
            recovery: Recovery::Valid,
            layout: None,
            record_bytes_max: None,
            file_mode: 0o600,
            slow_sync: Duration::from_secs(1),
            lock_timeout: LockTimeout::default(),
            archive: None,
            retention: None,
            storage: Arc::new(Disk),
        }
    }
}

setters! {
    Options {
        durability: Durability,
        recovery: Recovery,
        file_mode: u32,
        slow_sync: Duration,
        lock_timeout: LockTimeout,
        storage: Arc<dyn Storage>,
    }
    optional {
        layout: Layout,
        record_bytes_max: u64,
        archive: Archive,
        retention: Retention,
    }
}

impl Options {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Open the log in a directory of segments, or in one file.
    pub fn open(&self, path: impl AsRef<Path>, mode: Mode) -> Result<Wal> {
        Wal::open_with(path.as_ref(), mode, self.clone())
    }

    pub(super) fn check(&self) -> Result<()> {
        let limit = u64::from(u32::MAX) - HEADER_BYTES;
        if let Some(asked) = self.record_bytes_max.filter(|&asked| asked > limit) {
            let message = format!("record limit {asked} bytes, at most {limit}");
            return Err(Error::new(ErrorKind::InvalidArgument, message).of(FORMAT));
        }
        if self.layout.and_then(Layout::segment_bytes) == Some(0) {
            let message = "segment size 0, at least 1";
            return Err(Error::new(ErrorKind::InvalidArgument, message).of(FORMAT));
        }
        Ok(())
    }
}
