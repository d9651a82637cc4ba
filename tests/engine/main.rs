//! The promises of every kind of log: crashes, failing calls, damage, transactions, hostile files.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![allow(clippy::panic, clippy::print_stdout, clippy::print_stderr)]
// The fuzz targets bring a part of tests/support along.
#![allow(clippy::duplicate_mod)]

#[macro_use]
#[path = "../support/mod.rs"]
mod support;

mod answers;
mod backup;
mod closing;
mod crash;
mod faults;
mod files;
mod fuzz_corpus;
mod log;
mod transactions;
