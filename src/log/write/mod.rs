//! Writing: appends, syncs, and closing.

pub mod append;
pub mod batch;
mod bytes;
pub mod durable;
mod in_parts;
