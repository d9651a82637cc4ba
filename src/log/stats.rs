//! Counters of a handle, and times of its syncs.

use std::path::Path;
use std::time::Duration;

use crate::ground::lines;
use crate::ground::locks::atomic::{AtomicU64, Ordering};

/// Buckets of latencies: less than 2, 4, 8 ... microseconds, the last one without an upper bound.
const BUCKETS: usize = 32;

/// Counters of a handle. Counting takes no lock.
#[derive(Debug)]
pub struct Counters {
    appends: AtomicU64,
    records: AtomicU64,
    bytes: AtomicU64,
    slow_syncs: AtomicU64,
    /// Nanoseconds of the longest slow sync that was not logged yet.
    nanos_total: AtomicU64,
    nanos_max: AtomicU64,
    dropped_files: AtomicU64,
    dropped_records: AtomicU64,
    dropped_bytes: AtomicU64,
    rejected_records: AtomicU64,
    rejected_bytes: AtomicU64,
    quarantined_files: AtomicU64,
    latency: Vec<AtomicU64>,
}

/// Counters of a handle since its opening.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Calls that appended.
    pub appends: u64,
    /// Records appended.
    pub records: u64,
    /// Bytes appended, headers included.
    pub bytes: u64,
    /// Syncs of the log.
    pub syncs: u64,
    /// Syncs among these that took longer than the option `slow_sync`.
    pub slow_syncs: u64,
    /// Time of all syncs, nanoseconds.
    pub sync_nanos_total: u64,
    /// Time of the longest sync, nanoseconds.
    pub sync_nanos_max: u64,
    /// Upper bound in microseconds (`u64::MAX`: none) and how many syncs took less, but not less
    /// than the bound before.
    pub sync_latency: Vec<(u64, u64)>,
    /// Pieces dropped from the log's beginning, by any call or rule: segments of a write-ahead log,
    /// epochs of a pier, files of a full ledger.
    pub dropped_files: u64,
    /// Records in them.
    pub dropped_records: u64,
    /// Bytes in them.
    pub dropped_bytes: u64,
    /// Records refused because the ledger was full, or too small even for them.
    pub rejected_records: u64,
    /// Bytes of the refused records.
    pub rejected_bytes: u64,
    /// Damaged files of a ledger moved to `.deedbook/quarantine/`.
    pub quarantined_files: u64,
}

impl Stats {
    /// The latency that a share `q` (0 to 1) of the syncs did not pass, rounded up to a bucket's
    /// bound; `None` without syncs.
    pub fn quantile(&self, q: f64) -> Option<Duration> {
        let wanted = (q.clamp(0.0, 1.0) * self.syncs as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let (bound, _) = self.sync_latency.iter().find(|(_, count)| {
            seen += count;
            seen >= wanted
        })?;
        let longest = Duration::from_nanos(self.sync_nanos_max);
        Some(Duration::from_micros(*bound).min(longest))
    }

    /// Add the counts of another log.
    pub(crate) fn add(&mut self, other: &Self) {
        self.appends += other.appends;
        self.records += other.records;
        self.bytes += other.bytes;
        self.syncs += other.syncs;
        self.slow_syncs += other.slow_syncs;
        self.sync_nanos_total += other.sync_nanos_total;
        self.sync_nanos_max = self.sync_nanos_max.max(other.sync_nanos_max);
        self.dropped_files += other.dropped_files;
        self.dropped_records += other.dropped_records;
        self.dropped_bytes += other.dropped_bytes;
        self.rejected_records += other.rejected_records;
        self.rejected_bytes += other.rejected_bytes;
        self.quarantined_files += other.quarantined_files;
        if self.sync_latency.is_empty() {
            self.sync_latency.clone_from(&other.sync_latency);
            return;
        }
        for ((_, count), (_, more)) in self.sync_latency.iter_mut().zip(&other.sync_latency) {
            *count += more;
        }
    }
}

impl Default for Counters {
    fn default() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            appends: zero(),
            records: zero(),
            bytes: zero(),
            slow_syncs: zero(),
            nanos_total: zero(),
            nanos_max: zero(),
            dropped_files: zero(),
            dropped_records: zero(),
            dropped_bytes: zero(),
            rejected_records: zero(),
            rejected_bytes: zero(),
            quarantined_files: zero(),
            latency: std::iter::repeat_with(zero).take(BUCKETS).collect(),
        }
    }
}

impl Counters {
    /// Count an append. The caller holds the lock of the log's state, so a load and a store
    /// suffice, in a fraction of the time of an addition for several threads.
    #[inline]
    pub fn appended(&self, records: u64, bytes: u64) {
        for (counter, more) in [(&self.appends, 1), (&self.records, records), (&self.bytes, bytes)]
        {
            counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
        }
    }

    /// Count a sync.
    pub fn synced(&self, took: Duration, slow: Duration, log: &Path) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let bucket = (nanos / 1000).checked_ilog2().unwrap_or(0) as usize;
        if let Some(bucket) = self.latency.get(bucket.min(BUCKETS - 1)) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.nanos_total.fetch_add(nanos, Ordering::Relaxed);
        self.nanos_max.fetch_max(nanos, Ordering::Relaxed);
        if took > slow {
            self.slow_syncs.fetch_add(1, Ordering::Relaxed);
            // Users ask about a slow disk first.
            lines::warn(format_args!(
                "slow sync: {took:.1?}, limit {slow:.1?} ({})",
                log.display()
            ));
        }
    }

    /// Count pieces dropped from the log's beginning.
    pub fn dropped(&self, files: u64, records: u64, bytes: u64) {
        self.dropped_files.fetch_add(files, Ordering::Relaxed);
        self.dropped_records.fetch_add(records, Ordering::Relaxed);
        self.dropped_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Count records that were refused for want of room.
    pub fn rejected(&self, records: u64, bytes: u64) {
        self.rejected_records.fetch_add(records, Ordering::Relaxed);
        self.rejected_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Count a file that was moved away.
    pub fn quarantined(&self) {
        self.quarantined_files.fetch_add(1, Ordering::Relaxed);
    }

    /// The present counts.
    pub fn read(&self) -> Stats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let bound = |i: usize| if i + 1 < BUCKETS { 2 << i } else { u64::MAX };
        let latency = self.latency.iter().enumerate();
        let sync_latency: Vec<_> = latency.map(|(i, count)| (bound(i), read(count))).collect();
        Stats {
            appends: read(&self.appends),
            records: read(&self.records),
            bytes: read(&self.bytes),
            syncs: sync_latency.iter().map(|(_, count)| count).sum(),
            slow_syncs: read(&self.slow_syncs),
            sync_nanos_total: read(&self.nanos_total),
            sync_nanos_max: read(&self.nanos_max),
            sync_latency,
            dropped_files: read(&self.dropped_files),
            dropped_records: read(&self.dropped_records),
            dropped_bytes: read(&self.dropped_bytes),
            rejected_records: read(&self.rejected_records),
            rejected_bytes: read(&self.rejected_bytes),
            quarantined_files: read(&self.quarantined_files),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_fall_into_their_buckets() {
        let counters = Counters::default();
        for micros in [0, 1, 2, 3, 4, 1000, 1500] {
            counters.synced(
                Duration::from_micros(micros),
                Duration::from_micros(1200),
                Path::new("log"),
            );
        }
        let stats = counters.read();
        let filled: Vec<_> = stats.sync_latency.iter().filter(|(_, n)| *n > 0).copied().collect();
        assert_eq!(filled, [(2, 2), (4, 2), (8, 1), (1024, 1), (2048, 1)]);
        assert_eq!((stats.syncs, stats.slow_syncs), (7, 1));
        assert_eq!(stats.quantile(0.5), Some(Duration::from_micros(4)));
        assert_eq!(stats.quantile(1.0), Some(Duration::from_micros(1500)));
        assert_eq!(Stats::default().quantile(0.5), None);
    }

    #[test]
    fn two_logs_count_as_one() {
        let (first, second) = (Counters::default(), Counters::default());
        for (counters, micros) in [(&first, 3), (&second, 900), (&second, 3)] {
            counters.appended(2, 10);
            counters.dropped(1, 2, 3);
            counters.synced(Duration::from_micros(micros), Duration::ZERO, Path::new("log"));
        }
        let mut both = Stats::default();
        both.add(&first.read());
        both.add(&second.read());
        let filled: Vec<_> = both.sync_latency.iter().filter(|(_, n)| *n > 0).copied().collect();
        assert_eq!(filled, [(4, 2), (1024, 1)]);
        assert_eq!((both.appends, both.records, both.bytes), (3, 6, 30));
        assert_eq!((both.syncs, both.slow_syncs), (3, 3));
        assert_eq!((both.dropped_files, both.dropped_records, both.dropped_bytes), (3, 6, 9));
        assert_eq!((both.sync_nanos_total, both.sync_nanos_max), (906_000, 900_000));
    }
}
