//! The index of the event store: what it finds, what it costs, and what damage and death leave.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod damage;
mod filters;
mod queries;
mod world;
