//! What only a write-ahead log has, on the simulated disk: records dropped at both ends, segments, a
//! head marker, consumers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![allow(clippy::print_stdout)]

#[path = "../harness/mod.rs"]
mod harness;

mod changed;
mod places;
mod sync;
mod truncation;
