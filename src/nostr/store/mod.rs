//! An open store: appending, reading, deletions, checkpoints, and keeping the index.

pub(super) mod append;
pub(super) mod checkpoint;
pub(super) mod handle;
pub(super) mod hide;
pub(super) mod indexing;
pub(super) mod look_up;
pub(super) mod opened;
pub(super) mod read;
pub(super) mod records;
pub(super) mod tombstones;
pub(super) mod transact;
