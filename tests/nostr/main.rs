//! The event store, its bytes, its log and its index.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![allow(clippy::panic, clippy::print_stdout, clippy::print_stderr)]

#[macro_use]
#[path = "../support/mod.rs"]
mod support;

mod bytes;
mod entries;
mod index;
mod store;
