//! The event store's own write-ahead log: its bytes, its files, what crashes and damage leave.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod crash;
mod files;
mod golden;
mod threads;
