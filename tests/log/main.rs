//! What every log format promises, by tests that run for each of them.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![allow(clippy::print_stdout, clippy::print_stderr, dead_code)]

#[path = "../common/mod.rs"]
mod common;

mod book;
mod framing;
mod large;
mod oracle;
mod properties;
mod specimen;
mod subject;
mod views;
mod wal;

/// Every format that the suites run for.
const FORMATS: [&dyn subject::Format; 3] = [&book::BookFormat, &wal::SINGLE, &wal::TINY];
/// The same for logs of many megabytes.
const LARGE: [&dyn subject::Format; 3] = [&book::BookFormat, &wal::SINGLE, &wal::SEGMENTS];
