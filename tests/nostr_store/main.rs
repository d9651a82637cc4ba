//! The event store as a whole: what is appended is found, survives, and is given back.
//!
//! ```text
//! DEEDBOOK_NOSTR_STEPS      longest history of the crash enumeration
//! DEEDBOOK_NOSTR_HISTORIES  longer ones by chance
//! DEEDBOOK_NOSTR_STATES     states of each moment that a power cut leaves (default 1 to 24)
//! DEEDBOOK_NOSTR_FAULT_STRIDE  each fault strikes every such call
//! DEEDBOOK_NOSTR_KILLS      processes killed
//! DEEDBOOK_SEED             seed of the samples
//! ```

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::indexing_slicing, clippy::print_stdout)]

#[cfg(unix)]
#[path = "../common/index_files.rs"]
mod index_files;
#[path = "../harness/report.rs"]
#[allow(dead_code)]
mod report;
#[path = "../harness/watch.rs"]
mod watch;

mod addresses;
#[cfg(feature = "arrow")]
mod columns;
mod covered;
mod crash;
mod damage;
mod damaged_pages;
mod expiration;
mod faults;
mod foreign_index;
mod goes_bad;
mod gone;
mod history;
mod imports;
mod judge;
mod known;
mod large_compaction;
mod lifecycle;
mod logged_flags;
mod long_work;
mod lossy;
mod lost_log;
mod lost_pages;
mod manifest;
mod matrix;
mod mend;
mod noted;
mod openers;
#[cfg(feature = "arrow")]
mod parsed;
mod parts;
mod processes;
mod reference;
mod rescue;
mod rotation;
mod salvage_log;
mod sizes;
mod spec;
mod stale_index;
mod stories;
mod support;
mod torn;
mod ways;
mod witnesses;
mod world;
