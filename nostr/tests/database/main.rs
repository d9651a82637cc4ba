//! The trait of rust-nostr on an event store: its shared cases, and the promises beyond them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod common;
mod own;
mod shared;
