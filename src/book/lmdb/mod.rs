//! Urbit's event logs in LMDB: reading, migration to books, and back. `FORMAT.md` of the book
//! describes their layout.

mod copy;
mod metadata;
mod options;
mod pages;
mod place;
mod read;
mod report;
mod trip;
mod walk;
mod write;

pub use options::Options;
pub use read::Environment;
pub use report::{EpochReport, Report};

pub(super) use metadata::{read_top, save_top};

pub(super) const DATA_NAME: &str = "data.mdb";
pub(super) const EVENTS: &str = "EVENTS";
pub(super) const META: &str = "META";
const LMDB: &str = "lmdb";
