//! A damaged log has one answer, whichever way it is read.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![allow(clippy::print_stdout, dead_code)]

mod common;
#[path = "harness/report.rs"]
mod report;

#[path = "log/blocks.rs"]
mod blocks;
#[path = "log/book.rs"]
mod book;
#[path = "log/drift.rs"]
mod drift;
#[path = "log/findings.rs"]
mod findings;
#[path = "log/framing.rs"]
mod framing;
#[path = "log/hooked.rs"]
mod hooked;
#[path = "log/judge.rs"]
mod judge;
#[path = "log/matrix.rs"]
mod matrix;
#[path = "log/oracle.rs"]
mod oracle;
#[path = "log/specimen.rs"]
mod specimen;
#[path = "log/subject.rs"]
mod subject;
#[path = "log/tally.rs"]
mod tally;
#[path = "log/views.rs"]
mod views;
#[path = "log/wal.rs"]
mod wal;

/// Every format that the suites run for.
const FORMATS: [&dyn subject::Format; 3] = [&book::BookFormat, &wal::SINGLE, &wal::TINY];
/// The same for logs of many megabytes.
const LARGE: [&dyn subject::Format; 3] = [&book::BookFormat, &wal::SINGLE, &wal::SEGMENTS];
