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
    pub use std::ops::Range;

    pub use deedbook::nostr::{
        Check, Event, Filter, Flags, Id, ImportOptions, ImportReport, Include, Location, Options,
        Outcome, StoredEvent,
    };

    pub use crate::store::disks::*;
    pub use crate::support::crashes::worst;
    pub use crate::support::harness::faulty::expect_typed;
    pub use crate::support::prelude::*;
    pub use crate::support::report;
    pub use crate::support::store::events::nostr_keys::{author, number_of};
    pub use crate::support::store::events::*;
    pub use crate::support::store::judge::{look, recover};
    pub use crate::support::store::known::Known;
    pub use crate::support::store::ways::everything;
    pub use crate::support::store::world::{DIR, Run, options};
}
