//! The layout `slots`: the golden files byte for byte, what its header decides, what a mark adds.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![allow(clippy::print_stdout, clippy::print_stderr, dead_code)]

#[path = "../common/mod.rs"]
mod common;

mod damage;
mod golden;
mod header;
mod marks;
mod model;
mod support;
