//! What only an event store tells a backup: which files it has, and which state of it they are.

use std::ffi::OsStr;
use std::path::Path;

use crate::error::{ErrorKind, Result};
use crate::nostr::log::entry::file_number;
use crate::nostr::pages::manifest::Manifest;
use crate::nostr::pages::segments::parse_name;
use crate::storage::Storage;

/// What a manifest says of the store's state.
pub(crate) struct State {
    /// Seconds from 1970.
    pub created_at: u64,
    pub last_checkpoint_lsn: u64,
    segments: Vec<u32>,
}

impl State {
    /// The state of a store; `None` without a manifest that can be understood.
    pub(crate) fn load(storage: &dyn Storage, dir: &Path) -> Result<Option<Self>> {
        let manifest = match Manifest::load(storage, dir) {
            Err(e) if e.kind() == ErrorKind::Unsupported => None,
            manifest => manifest?,
        };
        Ok(manifest.map(|manifest| {
            let (created_at, last_checkpoint_lsn) =
                (manifest.created_at, manifest.last_checkpoint_lsn);
            let segments = manifest.segments.iter().map(|segment| segment.id).collect();
            Self { created_at, last_checkpoint_lsn, segments }
        }))
    }

    /// Whether a segment is the store's.
    pub(crate) fn names(&self, segment: u32) -> bool {
        self.segments.contains(&segment)
    }
}

/// The number of a segment by its file's name.
pub(crate) fn segment_number(name: &str) -> Option<u32> {
    parse_name(name)
}

/// Whether a name is that of a file of the write-ahead log.
pub(crate) fn is_log_file(name: &str) -> bool {
    file_number(OsStr::new(name)).is_some()
}
