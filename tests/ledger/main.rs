//! Ledgers: bytes, rotation, several handles and processes, damage, crashes, faults, limits.
//! `tests/tiers.txt` has the counts; DEEDBOOK_SEED is the seed of the samples.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![allow(clippy::panic, clippy::print_stdout, clippy::print_stderr)]

#[macro_use]
#[path = "../support/mod.rs"]
mod support;

mod back;
mod contents;
mod crash;
mod damage;
mod denied;
mod faults;
mod follow;
mod golden;
mod grid;
mod handles;
mod lease;
mod limits;
mod migrate;
mod names;
mod needed;
mod processes;
mod reader;
mod removal;
mod repair;
mod rotation;
mod transient;

mod prelude {
    pub use deedbook::ledger::{Options, WhenFull};

    pub use crate::support::ledger::spool::*;
    pub use crate::support::prelude::*;
    pub use crate::support::report;
    // Both have a name like this.
    pub use crate::support::ledger::spool::DIR;
}
