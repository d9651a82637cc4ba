//! The report of what was brought.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use crate::book::Meta;

/// The outcome for one log: that of a pier's epoch, or the only one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EpochReport {
    /// Directory that was read.
    pub source: PathBuf,
    /// Directory that was written.
    pub dest: PathBuf,
    /// The last event before it.
    pub epoch: u64,
    /// First and last event; `None` of a log without events.
    pub events: Option<RangeInclusive<u64>>,
    /// Bytes of the events' jams.
    pub bytes: u64,
    /// Events that the destination held before. They were compared, not written.
    pub found: u64,
    /// Its metadata.
    pub meta: Meta,
}

/// The events that were brought, or would be.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// The place that was read.
    pub source: PathBuf,
    /// The place that was written.
    pub dest: PathBuf,
    /// Whether nothing was changed.
    pub dry_run: bool,
    /// Events in all, those found included. Each was compared with the source.
    pub events: u64,
    /// Bytes of their jams.
    pub bytes: u64,
    /// Events that an earlier run had brought.
    pub found: u64,
    /// The first event that was not there, if an earlier run had brought those before.
    pub resumed_from: Option<u64>,
    /// The logs, in the order of their events.
    pub epochs: Vec<EpochReport>,
    /// The metadata: of a pier, what its top directory says.
    pub meta: Meta,
    /// How long it took.
    pub seconds: f64,
}
