//! Appending, replacing, deleting, importing, retaining and compacting.

mod addresses;
mod beside_compaction;
mod dead_bytes;
mod imports;
pub mod large_compaction;
mod lifecycle;
mod long_work;
mod retention;
mod stories;
