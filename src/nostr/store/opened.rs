//! The result of opening a store: the report for its user, and the end of the write-ahead log for the appends that
//! complete it.

use std::path::PathBuf;

use crate::nostr::bytes::event::{Flags, Location};

/// The report of opening a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenReport {
    /// Entries of the write-ahead log after the last checkpoint.
    pub replayed: u64,
    /// Events among them that the segments had lost. A writer appends them again; a reader has them from the log.
    pub appended_again: u64,
    /// Flags among them that were set again.
    pub flags_set_again: u64,
    /// Files in which the cut end of a segment, or of the write-ahead log, was saved.
    pub saved: Vec<PathBuf>,
    /// Files of segments that no manifest names and that hold nothing else: removed.
    pub removed: Vec<PathBuf>,
    /// Whether the manifest was missing, wrong or older than its copy, and is made again: from the copy,
    /// or else from the segments.
    pub manifest_rebuilt: bool,
    /// Events that the index did not have yet.
    pub indexed: u64,
    /// With [`Recovery::Spec`](crate::Recovery::Spec): bytes of the write-ahead log that were cut.
    pub cut_bytes: u64,
    /// Intact events that went with them, and that no segment has.
    pub cut_events: u64,
    /// Whether acknowledged events are missing: a repair or such a cut noted it, or pages are missing.
    pub is_loss: bool,
}

/// The end of log and segments after the last checkpoint.
#[derive(Debug, Default)]
pub struct Tail {
    /// The events after which the log may have lost the flags of those that they replace or delete.
    pub last: Vec<Location>,
    /// The flags that the log had, of events that can be read.
    pub flagged: Vec<(Location, Flags)>,
}
