//! The index of the event store: what it finds, what it costs, and what damage and death leave.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![allow(clippy::print_stdout, clippy::print_stderr)]

#[path = "../common/index_files.rs"]
mod index_files;

mod damage;
mod filters;
mod forged;
mod queries;
mod world;
