//! The event store as a whole: what is appended is found, survives, and is given back.
//!
//! ```text
//! DEEDBOOK_NOSTR_STEPS      longest history of the crash enumeration
//! DEEDBOOK_NOSTR_HISTORIES  longer ones by chance
//! DEEDBOOK_NOSTR_STATES     states of each moment that a power cut leaves, at most
//! DEEDBOOK_NOSTR_FAULT_STRIDE  each fault strikes every such call
//! DEEDBOOK_NOSTR_KILLS      processes killed
//! DEEDBOOK_SEED             seed of the samples
//! ```

mod addresses;
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
mod needed;
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
mod torn;
mod witnesses;

use crate::support::watch;
