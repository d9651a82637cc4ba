//! The state of an open log: appends change it, and a reader's looks at the files.

use super::evidence::Border;
use super::extent::Extent;
use super::space::Beyond;
use crate::scan::Damage;
use crate::storage::FileId;

/// The state that appends change. A reader has what it saw last.
#[derive(Debug)]
pub struct State {
    pub extent: Extent,
    /// Whether the number of the first record is known.
    pub numbered: bool,
    /// The log's file, or the lowest one.
    pub file_id: FileId,
    /// Byte after the space that is there: after the last record there may be zeros.
    pub file_end: u64,
    /// Whether space can be reserved ahead.
    pub allocates: bool,
    /// Whether the mark on the disk says that the log is open.
    pub mark_is_open: bool,
    pub(super) scratch: Vec<u8>,
    /// Begin of the index's open block.
    pub block_start: u64,
    /// For a reader: the end of what the mark vouches for.
    pub(super) durable: Option<Border>,
    /// For a reader: records before it.
    pub(super) durable_records: u64,
    /// For a reader: whether another program appended since the mark.
    pub(super) is_outdated: bool,
    /// For a reader: byte from which on nothing was acknowledged.
    pub(super) unacknowledged_from: Option<u64>,
    /// For a reader: damage after the extent, or before it.
    pub(super) damage: Option<Damage>,
    /// For a reader: damage after the extent, where that is not all.
    pub(super) after: Option<Damage>,
    /// For a reader: what lies after a gap.
    pub(super) beyond: Option<Beyond>,
}
