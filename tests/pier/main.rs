//! Piers: epochs in order, read as one log; what does not fit is refused; a roll survives crashes.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![allow(dead_code)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../harness/watch.rs"]
mod watch;

mod crash;
mod grid;
mod open;
mod publish;
mod read;
mod retain;
mod roll;
mod support;
mod transact;
