//! The report of a migration.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use crate::book::Meta;

/// The outcome for a log: an epoch of a pier, or a single log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EpochReport {
    /// The directory read.
    pub source: PathBuf,
    /// The directory written.
    pub dest: PathBuf,
    /// The last event before the log.
    pub epoch: u64,
    /// First and last event; `None` of a log without events.
    pub events: Option<RangeInclusive<u64>>,
    /// Bytes of the events' jams.
    pub bytes: u64,
    /// Events that the destination had before: compared, not written.
    pub found: u64,
    /// Its metadata.
    pub meta: Meta,
}

/// The events that were brought, or would be.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// The place read.
    pub source: PathBuf,
    /// The place written.
    pub dest: PathBuf,
    /// Whether nothing was changed.
    pub dry_run: bool,
    /// Events in all, those found included. Each was compared with the source.
    pub events: u64,
    /// Bytes of the jams.
    pub bytes: u64,
    /// Events that an earlier run had brought.
    pub found: u64,
    /// The first missing event, if an earlier run had brought the events before.
    pub resumed_from: Option<u64>,
    /// The logs, in the order of their events.
    pub epochs: Vec<EpochReport>,
    /// The metadata. For a pier, the metadata of its top directory.
    pub meta: Meta,
    /// The duration of the run.
    pub seconds: f64,
}
