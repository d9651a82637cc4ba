//! Ledgers: bytes, rotation, several handles and processes, damage, crashes, faults, limits.
//!
//! ```text
//! DEEDBOOK_LEDGER_STATES   states of each moment of a history that a power cut leaves (default 24)
//! DEEDBOOK_LEDGER_STEPS    longest history of the crash enumeration (default 3)
//! DEEDBOOK_LEDGER_FILES    files in the way of a start (10,000 to 100,000)
//! DEEDBOOK_LEDGER_KILLS    writers killed (default 40)
//! DEEDBOOK_SEED            seed of the samples
//! ```

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
