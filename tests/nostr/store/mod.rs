//! The event store as a whole: queries and reads return the appended events, also after crashes.
//! `tests/tiers.txt` has the counts; DEEDBOOK_SEED is the seed of the samples.

mod disks;
mod index;
mod opening;
mod pages;
mod power;
mod reading;
mod repair;
mod writing;

/// Names that nearly every test here uses.
mod prelude {
    pub use std::collections::{BTreeMap, BTreeSet};
    pub use std::fs;
    pub use std::io::ErrorKind as Io;
    pub use std::ops::Range;
    pub use std::path::{Path, PathBuf};
    pub use std::sync::Arc;

    pub use deedbook::nostr::{
        Check, Event, EventStore, Filter, Flags, Id, ImportOptions, ImportReport, Include,
        Location, Options, Outcome, StoredEvent,
    };
    pub use deedbook::report::Repair;
    pub use deedbook::storage::sim::{Call, Fault, Sim, What};
    pub use deedbook::storage::{Access, Disk, Memory, Storage};
    pub use deedbook::{Durability, Durable, Error, ErrorKind, Mode, OnCorrupt, Recovery};

    pub use crate::store::disks::*;
    pub use crate::support::crashes::worst;
    pub use crate::support::report::{self, of_tier};
    pub use crate::support::store::events::nostr_keys::{author, number_of};
    pub use crate::support::store::events::*;
    pub use crate::support::store::ways::everything;
    pub use crate::support::store::world::{DIR, Run, options};
    pub use crate::support::watch::{Seen, watched};
}
