//! Power cuts and deaths at every storage call of every short history of a write-ahead log, with
//! prefixes dropped and ends cut, on the simulated disk. The settings are those of `crash.rs`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![allow(clippy::print_stdout)]

mod harness;

use harness::campaign::Campaign;
use harness::report;
use harness::wal::{ALPHABET, LONGER, SEGMENTS, SINGLE, TINY, WalSubject};

const CONFIGS: [&str; 7] = [
    "manual",
    "always",
    "manual-reserve",
    "always-reserve",
    "manual-acknowledged",
    "always-acknowledged",
    "none",
];
/// Of one file no prefix can be dropped.
const ALPHABET_SINGLE: &str = "0<=>SbLstcr";
const LONGER_SINGLE: &str = "0<=>SbLsr0<=>SbLsr1tucCKH";

fn survives(subject: &WalSubject, alphabet: &'static str, longer: &'static str, share: u64) {
    let states = report::number("DEEDBOOK_CRASH_STATES", 1_000_000);
    // From nothing; and with records to drop.
    let families = &[("", alphabet, 0), ("bLs", alphabet, 1)];
    let states = states * share / 100;
    Campaign { subject, configs: &CONFIGS, families, longer, states }.run();
}

#[test]
fn a_log_of_one_file_survives_every_crash_of_every_short_history() {
    survives(&SINGLE, ALPHABET_SINGLE, LONGER_SINGLE, 40);
}

#[test]
fn a_log_of_segments_survives_every_crash_of_every_short_history() {
    survives(&SEGMENTS, ALPHABET, LONGER, 40);
}

#[test]
fn a_log_of_tiny_segments_survives_every_crash_of_every_short_history() {
    survives(&TINY, ALPHABET, LONGER, 40);
}
