//! The texts of errors and reports.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![allow(clippy::panic, clippy::print_stdout, clippy::print_stderr)]

#[macro_use]
#[path = "../support/mod.rs"]
mod support;

mod error_texts;
mod reports;
mod shown;
