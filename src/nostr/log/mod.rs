//! The write-ahead log of the store: numbered entries in files that follow each other.

pub(super) mod checkpoints;
pub(super) mod codec;
pub(crate) mod entry;
pub(super) mod files;
pub(super) mod replay;
pub mod wal;
pub(super) mod wal_options;
pub(super) mod wal_state;
