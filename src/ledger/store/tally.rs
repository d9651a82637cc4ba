//! The counters of a store.

use crate::locks::atomic::{AtomicU64, Ordering};
use crate::log::{Counters, Stats};

/// The records that a store refused or moved away. The counters of every log have the dropped
/// records.
#[derive(Debug)]
pub struct Tally {
    rejected_records: AtomicU64,
    rejected_bytes: AtomicU64,
    quarantined_files: AtomicU64,
}

/// Counters of a store since its opening.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LedgerStats {
    /// Appends and syncs.
    pub log: Stats,
    /// Files dropped because the ledger was full.
    pub dropped_files: u64,
    /// Records in them.
    pub dropped_records: u64,
    /// Bytes in them.
    pub dropped_bytes: u64,
    /// Records refused because the ledger was full, or too small even for them.
    pub rejected_records: u64,
    /// Bytes of the refused records.
    pub rejected_bytes: u64,
    /// Damaged files moved to `.deedbook/quarantine/`.
    pub quarantined_files: u64,
}

impl Default for Tally {
    fn default() -> Self {
        let zero = || AtomicU64::new(0);
        Self { rejected_records: zero(), rejected_bytes: zero(), quarantined_files: zero() }
    }
}

impl Tally {
    /// Count records that were refused for want of room.
    pub fn rejected(&self, records: u64, bytes: u64) {
        self.rejected_records.fetch_add(records, Ordering::Relaxed);
        self.rejected_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Count a file that was moved away.
    pub fn quarantined(&self) {
        self.quarantined_files.fetch_add(1, Ordering::Relaxed);
    }

    /// All of it, with the counters of appends and syncs.
    pub fn read(&self, counters: &Counters) -> LedgerStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let log = counters.read();
        LedgerStats {
            dropped_files: log.dropped_files,
            dropped_records: log.dropped_records,
            dropped_bytes: log.dropped_bytes,
            log,
            rejected_records: read(&self.rejected_records),
            rejected_bytes: read(&self.rejected_bytes),
            quarantined_files: read(&self.quarantined_files),
        }
    }
}
