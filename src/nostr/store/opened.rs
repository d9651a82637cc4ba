//! The result of opening a store: the report for its user, and the end of the write-ahead log for
//! the appends that complete it.

use std::path::PathBuf;

use crate::nostr::bytes::event::{Flags, Location};

/// The report of opening a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenReport {
    /// Entries of the write-ahead log after the last checkpoint.
    pub replayed: u64,
    /// Replayed events missing from the segments. A writer appends them again; a reader reads
    /// them from the log.
    pub appended_again: u64,
    /// Flags among the entries, set again.
    pub flags_set_again: u64,
    /// Files with the saved bytes of a cut segment or write-ahead log.
    pub saved: Vec<PathBuf>,
    /// Removed files: old segments or unfinished copies of a compaction, and empty segments that no
    /// manifest lists.
    pub removed: Vec<PathBuf>,
    /// Whether the manifest was missing, wrong or older than its copy. Opening rebuilt the manifest
    /// from the copy, or else from the segments.
    pub manifest_rebuilt: bool,
    /// Events added to the index.
    pub indexed: u64,
    /// With [`Recovery::Spec`](crate::Recovery::Spec): bytes cut from the write-ahead log.
    pub cut_bytes: u64,
    /// Intact events among the cut bytes, in no segment.
    pub cut_events: u64,
    /// Whether acknowledged events are missing: an earlier repair or cut noted a loss, or pages are
    /// missing.
    pub is_loss: bool,
}

/// The end of log and segments after the last checkpoint.
#[derive(Debug, Default)]
pub struct Tail {
    /// Events for which the log may have lost flags: the flags of events that they replace or
    /// delete.
    pub last: Vec<Location>,
    /// The flags in the log for readable events.
    pub flagged: Vec<(Location, Flags)>,
}
