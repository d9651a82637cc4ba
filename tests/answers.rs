//! A damaged log has one answer, whichever way it is read.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![allow(clippy::print_stdout, dead_code)]

mod common;
#[path = "harness/report.rs"]
mod report;

#[path = "log/book.rs"]
mod book;
#[path = "log/framing.rs"]
mod framing;
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
#[path = "log/wal.rs"]
mod wal;

/// Every format that the suites run for.
const FORMATS: [&dyn subject::Format; 3] = [&book::BookFormat, &wal::SINGLE, &wal::TINY];
