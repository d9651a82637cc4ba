//! How a write-ahead log is opened.

use std::sync::Arc;
use std::time::Duration;

use super::codec::{FORMAT, HEADER_BYTES, RECORD_BYTES_MAX, SEGMENT_BYTES};
use super::dropping::archive::Archive;
use crate::durability::Durability;
use crate::error::{Error, ErrorKind, Result};
use crate::log::{Common, log_options};
use crate::mode::Recovery;
use crate::retention::Retention;
use crate::setters::setters;
use crate::sidecar::LockTimeout;
use crate::storage::{Disk, Storage};

/// The layout of the log's bytes.
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

log_options! {
    /// How a log is opened; see the fields.
    Options {
        /// When appends are synced; by default the caller syncs.
        durability: Durability = Durability::Manual,
        /// Unix permissions of new files, less the umask. Who may read them may list new directories.
        file_mode: u32 = 0o600,
    }
    optional {
        /// Layout of a new log, and the layout that an existing log must have. By default the
        /// present layout, and for a new log segments of 64 MiB.
        layout: Layout,
        /// Limit of a payload, bytes. By default the limit from the log's creation, or 64 MiB. A
        /// lower limit applies to appends only.
        record_bytes_max: u64,
        /// Called for every whole segment before it is removed.
        archive: Archive,
        /// The prefix that a log open for writing drops by itself, like
        /// [`Wal::retain`](super::Wal::retain): at opening, and after the first sync in each
        /// segment. A failure is logged, and appends continue.
        retention: Retention,
    }
}

impl Options {
    /// The default limit of a payload, bytes.
    pub const RECORD_BYTES_MAX: u64 = RECORD_BYTES_MAX;
    /// The default size of a segment, bytes.
    pub const SEGMENT_BYTES: u64 = SEGMENT_BYTES;

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
