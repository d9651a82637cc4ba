//! The write-ahead log.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![allow(clippy::panic, clippy::print_stdout, clippy::print_stderr)]

#[macro_use]
#[path = "../support/mod.rs"]
mod support;

mod damage;
mod golden;
mod intent;
mod keep;
mod own;
mod places;
mod readers;
mod regressions;
mod scale;
mod segment_sizes;
mod tools;
mod truncation;
