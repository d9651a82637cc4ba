//! Tests that want a process of their own: they kill writers, count allocations, set the logger.
//! cargo-nextest gives each test one; `cargo test` does not.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![allow(clippy::panic, clippy::print_stdout, clippy::print_stderr)]

#[macro_use]
#[path = "../support/mod.rs"]
mod support;

mod allocation;
mod book;
mod counting;
mod ledger_memory;
mod logged;
mod mapped_writes;
mod nostr_memory;
mod parts_memory;
mod wal;
