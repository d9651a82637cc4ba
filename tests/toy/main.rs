//! The toy format, an example of how one is written: in the matrix of damage of all formats. The
//! crash and fault tests run for it, too; see `subject.rs`.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![allow(clippy::print_stdout, dead_code)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../harness/report.rs"]
mod report;

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

#[path = "../answers/judge.rs"]
mod judge;
#[path = "../answers/judge_parts.rs"]
mod judge_parts;
#[path = "../answers/judge_writing.rs"]
mod judge_writing;
#[path = "../answers/matrix.rs"]
mod matrix;
#[path = "../answers/tally.rs"]
mod tally;

mod answers;
mod format;

/// Every format that the suites run for.
const FORMATS: [&dyn subject::Format; 1] = [&answers::TOY];
