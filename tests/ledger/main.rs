//! Ledgers: bytes, rotation, several handles and processes, damage, crashes, faults, limits.
//!
//! ```text
//! DEEDBOOK_LEDGER_STATES   states of each moment of a history that a power cut leaves (default 24)
//! DEEDBOOK_LEDGER_STEPS    longest history of the crash enumeration (default 3)
//! DEEDBOOK_LEDGER_KILLS    writers killed (default 40)
//! DEEDBOOK_SEED            seed of the samples
//! ```
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![allow(clippy::print_stdout)]

#[path = "../answers/hooked.rs"]
#[allow(dead_code)]
mod hooked;
#[path = "../harness/report.rs"]
#[allow(dead_code)]
mod report;
#[path = "../harness/watch.rs"]
#[allow(dead_code)]
mod watch;

mod contents;
mod crash;
mod damage;
mod denied;
mod faults;
mod golden;
mod grid;
mod handles;
mod judge;
#[allow(dead_code)] // the fuzz target goes on after crashes
mod known;
mod lease;
mod limits;
mod migrate;
#[allow(dead_code)] // the fuzz target goes on after crashes
mod oracle;
mod processes;
mod properties;
mod reader;
mod removal;
mod rotation;
mod sha256;
mod support;
mod transient;
