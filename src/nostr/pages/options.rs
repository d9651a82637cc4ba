//! How an event store is opened, and the ranges of its parameters.

use std::io;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::durability::Durability;
use crate::error::{Error, ErrorKind, Result};
use crate::ground::lines;
use crate::ground::setters::setters;
use crate::mode::Recovery;
use crate::nostr::bytes::format::FORMAT;
use crate::nostr::bytes::page::{PAGE_BYTES_OF_REFERENCE, check_page_bytes};
use crate::nostr::bytes::record::RECORD_BYTES_MAX;
use crate::nostr::log::wal::WalOptions;
use crate::retention::{Archive, Retention};
use crate::sidecar::{LockTimeout, WriterLock, sidecar_dir};
use crate::storage::{Disk, Storage};

pub(super) mod settings;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// The accepted shares of bytes for a compaction.
const RATIOS: RangeInclusive<f64> = 0.1..=0.5;
/// The accepted times between two checkpoints, in ms.
const CHECKPOINT_INTERVAL_MS: RangeInclusive<u64> = 1000..=24 * 60 * 60 * 1000;
/// The default size of a page, bytes.
const PAGE_BYTES: u32 = 4096;
/// Offsets within a segment have 32 bits, so the last page must begin below.
pub(super) const SEGMENT_BYTES_LIMIT: u64 = 1 << 32;

/// One disk for all stores, so that handles share its caches.
static DISK: LazyLock<Arc<Disk>> = LazyLock::new(|| Arc::new(Disk));

/// How appends treat replaced events. The store keeps the setting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum History {
    /// Flag a replaced event: queries skip the event, and the next compaction drops it.
    #[default]
    Drop,
    /// Keep every version, and return every version.
    Keep,
}

/// The options for opening a store; see the fields.
///
/// The sizes of pages and segments, the batches, the checkpoints and the compaction ratio are
/// settings of the store: `None`, the default, stands for the stored value, and an opening for
/// writing stores another value for later openings.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// When to sync appends: by default within 100 ms, or after 10 MiB if earlier.
    pub durability: Option<Durability>,
    /// How opening for writing treats damage in the write-ahead log after the last checkpoint.
    /// [`Recovery::Valid`] refuses the log, and [`Recovery::Spec`] cuts the log at the damage. A
    /// store has no [`Recovery::Acknowledged`]: opening keeps the events of the segments.
    pub recovery: Recovery,
    /// Size of a page of a new segment, bytes: a power of two from 1024 to 65536. The reference
    /// implementation reads 4096, 8192 and 16384 only. By default the size of the last segment; 4096
    /// for a new store.
    pub page_bytes: Option<u32>,
    /// The size from which a segment gets no more events: 10 MiB to 4 GiB minus a page; 1 GiB for a
    /// new store.
    pub segment_bytes: Option<u64>,
    /// With the default durability: the longest time until a sync, 10 ms to 1 s; 100 ms for a new
    /// store.
    pub batch_interval: Option<Duration>,
    /// With the default durability: the most bytes until a sync, 1 to 100 MiB; 10 MiB for a new
    /// store.
    pub batch_bytes: Option<u64>,
    /// The size at which a file of the write-ahead log is finished: 10 MiB to 10 GiB. The file with
    /// the last checkpoint stays until a later file has a checkpoint. So the log takes up to about
    /// so many bytes of the disk, and deleted events stay readable in the log for as long.
    pub wal_segment_bytes: u64,
    /// A checkpoint is made after so many bytes of the write-ahead log, so opening replays at most
    /// about as many; 256 MiB for a new store. A checkpoint deletes the log's files that lie wholly
    /// before it.
    pub checkpoint_bytes: Option<u64>,
    /// A checkpoint also follows an append after so much time, so opening replays the appends of
    /// about this time at most: 1 s to a day; 300 s for a new store. The thread that syncs in time
    /// makes the checkpoint. With a durability without such a thread, a later append does.
    pub checkpoint_interval: Option<Duration>,
    /// The share of deleted, replaced or expired bytes at which a compaction is due: 0.1 to 0.5; 0.2
    /// for a new store.
    pub compaction_ratio: Option<f64>,
    /// Whether a compaction starts by itself once a segment reaches the ratio, at most once an hour.
    /// Appends and queries go on meanwhile.
    pub auto_compact: bool,
    /// The events to keep, by kinds: [`EventStore::retain`](crate::nostr::EventStore::retain) with
    /// each of the rules, at the opening and once an hour.
    pub(crate) retention: Vec<(Vec<u16>, Retention)>,
    pub(crate) archive: Option<Archive>,
    /// Whether new records have a checksum of their own.
    pub checksums: bool,
    /// Limit of a new record, bytes. Readers accept larger stored records.
    pub event_bytes_max: u32,
    /// How appends treat replaced events. The store keeps the setting for later openings without
    /// one. By default the stored setting; [`History::Drop`] for a new store. A reader ignores this
    /// option. [`EventStore::history`](crate::nostr::EventStore::history) returns the setting in
    /// force.
    pub history: Option<History>,
    /// Unix permissions of new files, minus the umask. New directories are listable for everyone
    /// who may read the files.
    pub file_mode: u32,
    /// A longer sync is logged and counted.
    pub slow_sync: Duration,
    /// How long opening for writing waits for another writer; by default not at all.
    pub lock_timeout: LockTimeout,
    /// Whether opening reads all of the store first, and refuses it for damage anywhere.
    pub check_all: bool,
    /// The file system for all files except the index.
    pub storage: Arc<dyn Storage>,
    /// Whether to read segments through a shared map. A map covers the bytes that a segment has
    /// when it is opened, becomes full, or leaves a compaction. Reads are some per cent quicker,
    /// and the pages read count as memory of the process. Linux only; see [`struct@Disk`] for its
    /// handler of SIGBUS.
    pub mapped_reads: bool,
    /// Whether the index lies in files. Otherwise every opening builds the index in memory.
    pub index_on_disk: bool,
    /// Whether sizes below the ranges are accepted: for tests.
    #[doc(hidden)]
    pub small: bool,
    /// The clock that decides which events are expired, in seconds from 1970: for tests.
    #[doc(hidden)]
    pub clock: fn() -> u64,
    /// The least time between two compactions that start by themselves: for tests.
    #[doc(hidden)]
    pub compaction_wait: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: None,
            recovery: Recovery::Valid,
            page_bytes: None,
            segment_bytes: None,
            batch_interval: None,
            batch_bytes: None,
            wal_segment_bytes: GIB,
            checkpoint_bytes: None,
            checkpoint_interval: None,
            compaction_ratio: None,
            auto_compact: true,
            retention: Vec::new(),
            archive: None,
            checksums: true,
            event_bytes_max: 100_000_000,
            history: None,
            file_mode: 0o600,
            slow_sync: Duration::from_secs(1),
            lock_timeout: LockTimeout::default(),
            check_all: false,
            storage: DISK.clone(),
            mapped_reads: false,
            index_on_disk: true,
            small: false,
            clock: now,
            compaction_wait: Duration::from_secs(3600),
        }
    }
}

setters! {
    Options {
        recovery: Recovery,
        wal_segment_bytes: u64,
        auto_compact: bool,
        checksums: bool,
        event_bytes_max: u32,
        file_mode: u32,
        slow_sync: Duration,
        check_all: bool,
        storage: Arc<dyn Storage>,
        mapped_reads: bool,
        index_on_disk: bool,
    }
    optional {}
    filled {
        durability: Durability,
        page_bytes: u32,
        segment_bytes: u64,
        batch_interval: Duration,
        batch_bytes: u64,
        checkpoint_bytes: u64,
        checkpoint_interval: Duration,
        compaction_ratio: f64,
        history: History,
    }
    into { lock_timeout: LockTimeout }
}

impl Options {
    /// The highest limit of a new record, bytes: the default.
    pub const RECORD_BYTES_MAX: u32 = RECORD_BYTES_MAX;

    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Add a rule: hide the events of these kinds that `retention` lets go, as
    /// [`EventStore::retain`](crate::nostr::EventStore::retain) does. A thread of the handle does so
    /// soon after the opening, and once an hour.
    #[must_use]
    pub fn retention(mut self, kinds: impl IntoIterator<Item = u16>, retention: Retention) -> Self {
        self.retention.push((kinds.into_iter().collect(), retention));
        self
    }

    /// Call `hook` with the number and the path of each segment that a compaction will replace. The
    /// segment still has the events that the compaction drops. If the hook fails, the compaction
    /// fails, and the segment stays. Appends and queries go on meanwhile. A hook that compacts or
    /// closes the store waits for itself. The store may call the hook again for the same segment:
    /// after a crash, after a failure, and if appends interfere with the compaction. A repair, which
    /// takes out damaged pages, calls no hook: it saves the pages itself.
    #[must_use]
    pub fn archive(
        mut self,
        hook: impl Fn(u64, &Path) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.archive = Some(Archive(Arc::new(hook)));
        self
    }

    /// Accept sizes below the ranges: for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn small(mut self, small: bool) -> Self {
        self.small = small;
        self
    }

    /// Use another clock to decide which events are expired: for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn clock(mut self, clock: fn() -> u64) -> Self {
        self.clock = clock;
        self
    }

    /// The second that decides which events are expired.
    pub(crate) fn now(&self) -> u64 {
        (self.clock)()
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.recovery == Recovery::Acknowledged {
            let message = "recovery \"acknowledged\", an event store has \"valid\" and \"spec\"";
            return Err(refused(message.into()));
        }
        let page_bytes = self.page_size();
        check_page_bytes(page_bytes).map_err(refused)?;
        self.within("segment size", self.segment_size(), segment_sizes(page_bytes))?;
        self.within("event limit", self.event_bytes_max.into(), 4096..=100_000_000)?;
        if !self.small {
            let asked = self.checkpoint_time().as_millis().try_into().unwrap_or(u64::MAX);
            self.within("checkpoint interval in ms", asked, CHECKPOINT_INTERVAL_MS)?;
        }
        self.retention.iter().try_for_each(|(_, rule)| check_retention(rule))?;
        let asked = self.ratio();
        if !RATIOS.contains(&asked) {
            return Err(refused(format!("compaction ratio {asked}, may be 0.1 to 0.5")));
        }
        Ok(())
    }

    /// The accepted values of a range.
    fn accepted(&self, range: &RangeInclusive<u64>) -> RangeInclusive<u64> {
        if self.small { 1..=*range.end() } else { range.clone() }
    }

    /// The size of a page of a new segment.
    pub(crate) fn page_size(&self) -> u32 {
        self.page_bytes.unwrap_or(PAGE_BYTES)
    }

    /// Say that the reference implementation reads no pages of this size.
    pub(crate) fn warn_of_pages(&self, dir: &Path) {
        let page_bytes = self.page_size();
        if !PAGE_BYTES_OF_REFERENCE.contains(&page_bytes) {
            lines::warn(format_args!(
                "the event store gets pages of {page_bytes} bytes; the reference implementation reads 4096, 8192 and \
                 16384 only ({})",
                dir.display()
            ));
        }
    }

    /// The size at which a segment is full.
    pub(crate) fn segment_size(&self) -> u64 {
        self.segment_bytes.unwrap_or(GIB)
    }

    /// The time after which a thread of the store syncs, if the durability asks for a thread.
    pub(crate) fn sync_time(&self) -> Option<Duration> {
        match self.durability {
            None => Some(self.batch_time()),
            Some(Durability::Interval(time)) => Some(time),
            Some(_) => None,
        }
    }

    /// The longest time until a sync.
    pub(crate) fn batch_time(&self) -> Duration {
        self.batch_interval.unwrap_or(Duration::from_millis(100))
    }

    /// The most bytes until a sync.
    fn batch_size(&self) -> u64 {
        self.batch_bytes.unwrap_or(10 * MIB)
    }

    /// The bytes of the write-ahead log between two checkpoints.
    pub(crate) fn checkpoint_size(&self) -> u64 {
        self.checkpoint_bytes.unwrap_or(256 * MIB)
    }

    /// The time from an append to the next checkpoint.
    pub(crate) fn checkpoint_time(&self) -> Duration {
        self.checkpoint_interval.unwrap_or(Duration::from_secs(300))
    }

    /// The share of bytes at which a compaction is due.
    pub(crate) fn ratio(&self) -> f64 {
        self.compaction_ratio.unwrap_or(0.2)
    }

    /// Lock the store in a directory for the only writer.
    pub(crate) fn lock_store(&self, dir: &Path) -> Result<WriterLock> {
        WriterLock::acquire(&*self.storage, &sidecar_dir(dir), dir, &self.lock_timeout)
    }

    /// The options of the write-ahead log, which checks their ranges.
    pub(crate) fn wal(&self) -> WalOptions {
        WalOptions {
            durability: match self.durability {
                // The store syncs itself, so that appending threads share a sync.
                Some(Durability::Always) => Some(Durability::Manual),
                other => other,
            },
            batch_interval: self.batch_time(),
            batch_bytes: self.batch_size(),
            segment_bytes: self.wal_segment_bytes,
            file_mode: self.file_mode,
            slow_sync: self.slow_sync,
            storage: self.storage.clone(),
            is_timed: false,
            small: self.small,
            ..WalOptions::default()
        }
    }

    fn within(&self, what: &str, asked: u64, range: RangeInclusive<u64>) -> Result<()> {
        let range = self.accepted(&range);
        if !range.contains(&asked) {
            let (least, most) = range.into_inner();
            return Err(refused(format!("{what} {asked}, may be {least} to {most}")));
        }
        Ok(())
    }
}

/// Refuse a rule about consumers.
pub(crate) fn check_retention(retention: &Retention) -> Result<()> {
    match retention.consumed {
        true => Err(refused("retention by consumers, an event store has none".into())),
        false => Ok(()),
    }
}

/// The valid sizes for a segment with pages of `page_bytes`.
fn segment_sizes(page_bytes: u32) -> RangeInclusive<u64> {
    10 * MIB..=SEGMENT_BYTES_LIMIT - u64::from(page_bytes)
}

fn refused(message: String) -> Error {
    Error::new(ErrorKind::InvalidArgument, message).of(FORMAT)
}

/// Seconds from 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
