//! How a write-ahead log is opened.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::codec::{FORMAT, HEADER_BYTES, RECORD_BYTES_MAX, SEGMENT_BYTES};
use crate::durability::Durability;
use crate::error::{Error, ErrorKind, Result};
use crate::ground::setters::setters;
use crate::log::{Common, log_options};
use crate::mode::Recovery;
use crate::retention::{Archive, Retention};
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
        /// The prefix that a log open for writing drops by itself, like
        /// [`Wal::retain`](super::Wal::retain): at opening, and after the first sync in each
        /// segment. A failure is logged, and appends continue.
        retention: Retention,
    }
    hidden {
        /// Called for every whole segment before it is removed.
        archive: Archive,
    }
}

impl Options {
    /// The default limit of a payload, bytes.
    pub const RECORD_BYTES_MAX: u64 = RECORD_BYTES_MAX;
    /// The default size of a segment, bytes.
    pub const SEGMENT_BYTES: u64 = SEGMENT_BYTES;

    /// Call `hook` with the number and the path of every segment before the removal. If the hook fails,
    /// nothing is removed and the head stays. Appends and reads continue meanwhile. A hook that
    /// truncates the log or sets its consumers waits for itself.
    ///
    /// The call that drops waits for the hook: [`Wal::retain`](super::Wal::retain), a truncation,
    /// an opening, or the first sync in a segment. With [`Durability::Interval`] the background thread
    /// waits, and syncs nothing while the hook works: keep the hook short. The log may call the hook
    /// again for the same segment: after a crash, or after the hook failed for a later segment.
    #[must_use]
    pub fn archive(
        mut self,
        hook: impl Fn(u64, &Path) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.archive = Some(Archive(Arc::new(hook)));
        self
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
