//! Writing: appends, syncs, cuts, and closing.

pub mod append;
pub mod batch;
mod bytes;
mod cut;
pub mod durable;
mod in_parts;
