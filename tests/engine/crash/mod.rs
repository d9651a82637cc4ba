//! Power cuts and deaths at every storage call of every short history, and what else a crash can
//! leave, on the simulated disk; for every format.
//!
//! ```text
//! DEEDBOOK_CRASH_STATES   states to check, about
//! DEEDBOOK_CRASH_STEPS    longest history
//! DEEDBOOK_CRASH_SEED     seed of the samples
//! DEEDBOOK_CRASH_HISTORY  CONFIG:STEPS of one history, as a failure prints it
//! DEEDBOOK_TEST_SECONDS   time limit of each test (default 1800)
//! DEEDBOOK_TRUST_DIR      where crash-*.json is written
//! ```

mod durable;
mod index;
mod mend;
mod mutations;
mod openers;
mod torn;

use crate::support::harness;
use crate::support::prelude::*;
use harness::config::Config;
use harness::files::{cut, damage, last_offset, log_bytes};
use harness::history::{Moment, Run};
use harness::{ALWAYS, Log, Record, Subject, judge, mix, states, views, worst};

fn log_of(subject: &Subject, disk: &Sim) -> Vec<Record> {
    subject.open(disk, MANUAL).unwrap().read_all().unwrap()
}

// Promise: power-loss, missing-data, crash-in-recovery, slots-crash, wal-power-loss, wal-recovery, wal-record-in-record, wal-truncate, wal-acknowledged.
fn every_short_history_survives_every_crash(subject: &Subject) {
    harness::campaign::crash(subject);
}

for_every_subject! { every_short_history_survives_every_crash }
// Files that appends begin; the other tests want all records in one file, or in pieces of one.
for_subject! {
    nostr_wal_files, harness::subjects::NOSTR_WAL_FILES, every_short_history_survives_every_crash
}
