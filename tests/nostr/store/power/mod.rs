//! Power cuts, deaths and calls that fail.

pub mod compaction;
mod crash;
mod faults;
mod needed;
pub mod processes;
mod rotation;
mod stories;
mod torn;
