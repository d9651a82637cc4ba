//! Opening a store: for a reader in memory, for a writer by replaying the log into the segments.

pub(super) mod logged_flags;
pub(super) mod look;
pub(super) mod opening;
pub(super) mod part_flags;
pub(super) mod recovery;
pub(super) mod rest;
pub(super) mod served_log;
