//! A damaged log has one answer, whichever way it is read; and the wrong answers that were found.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![allow(clippy::print_stdout, dead_code)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../harness/report.rs"]
mod report;

#[path = "../log/book.rs"]
mod book;
#[path = "../log/framing.rs"]
mod framing;
#[path = "../log/oracle.rs"]
mod oracle;
#[path = "../log/specimen.rs"]
mod specimen;
#[path = "../log/subject.rs"]
mod subject;
#[path = "../log/views.rs"]
mod views;
#[path = "../log/wal.rs"]
mod wal;
#[path = "../harness/watch.rs"]
mod watch;

mod blocks;
mod cut_under_readers;
mod drift;
mod edges;
mod findings;
mod grid;
mod hooked;
mod judge;
mod judge_parts;
mod judge_writing;
mod matrix;
mod parts;
mod repair;
mod segments;
mod slots;
mod survivors;
mod tally;
mod wrong_files;

/// Every format that the suites run for.
const FORMATS: [&dyn subject::Format; 3] = [&book::BookFormat, &wal::SINGLE, &wal::TINY];
/// The same for logs of many megabytes.
const LARGE: [&dyn subject::Format; 3] = [&book::BookFormat, &wal::SINGLE, &wal::SEGMENTS];
