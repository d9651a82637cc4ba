//! Opening a store: for a writer by redoing what the log has after the manifest's checkpoint, for a reader in memory.

pub(super) mod adopt;
pub(super) mod look;
pub(super) mod opening;
pub(super) mod redo;
