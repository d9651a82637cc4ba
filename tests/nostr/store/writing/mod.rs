//! Appending, replacing, deleting, importing and compacting.

mod addresses;
mod dead_bytes;
mod imports;
pub mod large_compaction;
mod lifecycle;
mod long_work;
mod stories;
