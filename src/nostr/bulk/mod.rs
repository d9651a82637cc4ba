//! Work on a whole store: import, export, parts for other processes, and compaction.

pub(super) mod compaction;
mod copying;
pub(super) mod export;
pub(super) mod fragmentation;
pub(super) mod import;
pub(super) mod split;
