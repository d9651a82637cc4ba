//! Work on a whole store: import, export, parts for other processes, retention and compaction.

pub(super) mod compaction;
mod copying;
pub(super) mod export;
mod following;
pub(super) mod fragmentation;
pub(super) mod import;
pub(super) mod moving;
pub(super) mod retain;
pub(super) mod split;
