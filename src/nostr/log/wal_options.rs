//! How the event store's write-ahead log is opened, and the ranges of its parameters.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use super::entry::{FORMAT, FRAMING_BYTES, Lsn};
use super::files::FileOptions;
use crate::durability::Durability;
use crate::error::{Error, ErrorKind, Result};
use crate::ground::setters::setters;
use crate::log::Common;
use crate::mode::Recovery;
use crate::nostr::bytes::record::RECORD_BYTES_MAX;
use crate::sidecar::LockTimeout;
use crate::storage::{Disk, Storage};

const MIB: u64 = 1 << 20;
/// The longest time until a sync, in ms.
pub const BATCH_INTERVAL_MS: RangeInclusive<u64> = 10..=1000;
/// The most bytes until a sync.
pub const BATCH_BYTES: RangeInclusive<u64> = MIB..=100 * MIB;

/// The options for opening a log; see the fields.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WalOptions {
    /// When to sync appends. By default, within `batch_interval`, or after `batch_bytes` if
    /// earlier.
    pub durability: Option<Durability>,
    /// With the default durability: the longest time until a sync, 10 ms to 1 s.
    pub batch_interval: Duration,
    /// With the default durability: the number of unsynced bytes that triggers a sync, 1 to 100
    /// MiB.
    pub batch_bytes: u64,
    /// The size at which a file is finished and the next file begins: 10 MiB to 10 GiB.
    pub segment_bytes: u64,
    /// Limit of an entry's data, bytes.
    pub data_bytes_max: u64,
    /// How opening for writing treats a tail that is not clean.
    pub recovery: Recovery,
    /// Unix permissions of new files, minus the umask. New directories are listable for everyone
    /// who may read the files.
    pub file_mode: u32,
    /// A longer sync is logged and counted.
    pub slow_sync: Duration,
    /// The file system.
    pub storage: Arc<dyn Storage>,
    /// Whether a thread of the log syncs in time. A store has such a thread itself.
    #[doc(hidden)]
    pub is_timed: bool,
    /// Whether sizes below the ranges are accepted: for tests.
    #[doc(hidden)]
    pub small: bool,
}

impl Default for WalOptions {
    fn default() -> Self {
        Self {
            durability: None,
            batch_interval: Duration::from_millis(100),
            batch_bytes: 10 * MIB,
            segment_bytes: 1024 * MIB,
            data_bytes_max: u64::from(RECORD_BYTES_MAX),
            recovery: Recovery::Valid,
            file_mode: 0o600,
            slow_sync: Duration::from_secs(1),
            storage: Arc::new(Disk),
            is_timed: true,
            small: false,
        }
    }
}

setters! {
    WalOptions {
        batch_interval: Duration,
        batch_bytes: u64,
        segment_bytes: u64,
        data_bytes_max: u64,
        recovery: Recovery,
        file_mode: u32,
        slow_sync: Duration,
        storage: Arc<dyn Storage>,
    }
    optional {}
    filled {
        durability: Durability,
    }
}

impl WalOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Accept sizes below the ranges: for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn small(mut self, small: bool) -> Self {
        self.small = small;
        self
    }

    pub(crate) fn check(&self) -> Result<()> {
        let interval = self.batch_interval.as_millis().try_into().unwrap_or(u64::MAX);
        let limit = u64::from(u32::MAX) - FRAMING_BYTES;
        for (what, asked, range) in [
            ("batch interval in ms", interval, BATCH_INTERVAL_MS),
            ("batch size", self.batch_bytes, BATCH_BYTES),
            ("size of a WAL file", self.segment_bytes, 10 * MIB..=10 * 1024 * MIB),
            ("limit of an entry", self.data_bytes_max, 1..=limit),
        ] {
            let (least, most) = (if self.small { 1 } else { *range.start() }, *range.end());
            if !(least..=most).contains(&asked) {
                let message = format!("{what} {asked}, may be {least} to {most}");
                return Err(Error::new(ErrorKind::InvalidArgument, message).of(FORMAT));
            }
        }
        Ok(())
    }

    pub(crate) fn file(&self, first: Lsn, checkpoint: Lsn) -> FileOptions {
        let durability = self.durability.unwrap_or(Durability::Interval(self.batch_interval));
        let common = Common {
            durability: match durability {
                Durability::Interval(_) if !self.is_timed => Durability::Manual,
                other => other,
            },
            recovery: self.recovery,
            file_mode: self.file_mode,
            slow_sync: self.slow_sync,
            lock_timeout: LockTimeout::default(), // the store has waited
            check_all: false,
            storage: self.storage.clone(),
        };
        FileOptions { common, data_bytes_max: self.data_bytes_max, first, checkpoint }
    }
}
