//! Appending, replacing, deleting, importing and compacting.

mod addresses;
mod beside_compaction;
mod dead_bytes;
mod imports;
pub mod large_compaction;
mod lifecycle;
mod long_work;
mod stories;
