//! How to open a ledger: the place, the bytes around records in a request, and limits.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use super::codec::{FORMAT, RECORD_BYTES_MAX, RECORD_BYTES_WRITTEN};
use crate::durability::Durability;
use crate::error::{Error, ErrorKind, Result};
use crate::ground::setters::setters;
use crate::storage::{Disk, Storage};

/// Makes the bytes before or after the records of a file, each time a reader is made.
pub type Envelope = Box<dyn Fn() -> Vec<u8> + Send + Sync>;

/// The smallest cap of a file that the specification allows, bytes.
const FILE_BYTES_MIN: u64 = 100;
/// The cap of a file in [`LedgerConfig::lines`]: the usual servers take this much in one request.
const FILE_BYTES: usize = 475_000;

/// A ledger's place, and the bytes around its records in a request: the specification's
/// configuration. All else is in [`Options`].
pub struct LedgerConfig {
    /// Directory of the files. It is created if only the last part of the path is missing.
    pub storage_location: PathBuf,
    /// The ending of the files' names: `0-events`, `1-events`.
    pub base_filename: String,
    /// A file with more bytes is finished, and the next append begins another; at least 100.
    pub max_file_size: usize,
    /// Makes the bytes before the records of a file.
    pub header: Box<dyn Fn() -> Vec<u8> + Send + Sync>,
    /// Makes the bytes after the records of a file.
    pub footer: Box<dyn Fn() -> Vec<u8> + Send + Sync>,
    /// The bytes between two records.
    pub separator: Vec<u8>,
}

impl LedgerConfig {
    /// One record a line, no bytes around them, files of 475,000 bytes.
    pub fn lines(storage_location: impl Into<PathBuf>, base_filename: impl Into<String>) -> Self {
        Self {
            storage_location: storage_location.into(),
            base_filename: base_filename.into(),
            max_file_size: FILE_BYTES,
            header: Box::new(Vec::new),
            footer: Box::new(Vec::new),
            separator: b"\n".to_vec(),
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        let refused = |message: String| {
            let error = Error::new(ErrorKind::InvalidArgument, message).of(FORMAT);
            Err(error.at(&self.storage_location))
        };
        if (self.max_file_size as u64) < FILE_BYTES_MIN {
            let asked = self.max_file_size;
            return refused(format!("file size {asked} bytes, at least {FILE_BYTES_MIN}"));
        }
        check_base(&self.base_filename).or_else(refused)
    }
}

/// Whether a file's name can end with `base`.
pub(super) fn check_base(base: &str) -> Result<(), String> {
    if base.is_empty() || base.contains(['/', '\\', '\0']) {
        return Err(format!("base of the files' names {base:?}, must be a part of a file name"));
    }
    Ok(())
}

impl fmt::Debug for LedgerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LedgerConfig")
            .field("storage_location", &self.storage_location)
            .field("base_filename", &self.base_filename)
            .field("max_file_size", &self.max_file_size)
            .field("separator", &self.separator)
            .finish_non_exhaustive()
    }
}

/// How to treat a file with intact records after damage. Two cases do not depend on the choice. If
/// only the end of a file is torn, the records before are sent, and the file is removed. If a whole
/// record exceeds [`Options::record_bytes_max`], and does not come right after damage, the file
/// goes to the quarantine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnCorrupt {
    /// Send the records before the damage; [`LedgerStore::remove`](super::LedgerStore::remove) moves the file to
    /// `.deedbook/quarantine/`, and [`salvage`](Options::salvage) copies the other records from there.
    #[default]
    Quarantine,
    /// Send the intact records after the damage as well. The file goes to the quarantine only if it
    /// has further records that may lie in a damaged record's payload.
    Skip,
    /// Send the records before the damage and remove the file, as the specification says. The
    /// records after the damage are lost.
    Stop,
}

impl FromStr for OnCorrupt {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "quarantine" => Ok(Self::Quarantine),
            "skip" => Ok(Self::Skip),
            "stop" => Ok(Self::Stop),
            _ => {
                let known = "must be one of \"quarantine\", \"skip\", \"stop\"";
                let message = format!("on_corrupt {text:?}, {known}");
                Err(Error::new(ErrorKind::InvalidArgument, message).of(FORMAT))
            }
        }
    }
}

/// How an append behaves that would take the ledger over [`Options::bytes_total_max`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WhenFull {
    /// Fail like on a full disk: an error of kind [`ErrorKind::Io`] whose source is
    /// [`QuotaExceeded`](std::io::ErrorKind::QuotaExceeded). No acknowledged record is lost.
    #[default]
    Reject,
    /// Remove the oldest files. [`LedgerStore::stats`](super::LedgerStore::stats) counts the
    /// dropped records.
    DropOldest,
}

impl FromStr for WhenFull {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "reject" => Ok(Self::Reject),
            "drop_oldest" => Ok(Self::DropOldest),
            _ => {
                let message =
                    format!("on_full {text:?}, must be one of \"reject\", \"drop_oldest\"");
                Err(Error::new(ErrorKind::InvalidArgument, message).of(FORMAT))
            }
        }
    }
}

/// How to open a ledger, beyond the specification's configuration; see the fields.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// When appends are synced; by default never, as specified. [`Durability::Rotate`] and
    /// [`Durability::Manual`] sync each file when it is finished.
    pub durability: Durability,
    /// How to treat a file with intact records after damage.
    pub on_corrupt: OnCorrupt,
    /// A file with this many records is finished, and the next append begins another.
    pub file_records_max: Option<u64>,
    /// Limit of all files together, bytes. The store counts the bytes if the last count is older than a second, or if
    /// the store has removed files since and needs the room, and with [`WhenFull::DropOldest`] always before dropping a
    /// file. The store does not see additions of other stores in between.
    pub bytes_total_max: Option<u64>,
    /// How an append behaves at the limit.
    pub when_full: WhenFull,
    /// Limit of a payload, bytes: 1 MiB by default. A lower limit applies to appends only.
    pub record_bytes_max: u64,
    /// Unix permissions of new files, less the umask. Users with permission to read the files may list new directories.
    pub file_mode: u32,
    /// A sync that takes longer is logged and counted.
    pub slow_sync: Duration,
    /// The file system.
    pub storage: Arc<dyn Storage>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::None,
            on_corrupt: OnCorrupt::Quarantine,
            file_records_max: None,
            bytes_total_max: None,
            when_full: WhenFull::Reject,
            record_bytes_max: RECORD_BYTES_MAX,
            file_mode: 0o600,
            slow_sync: Duration::from_secs(1),
            storage: Arc::new(Disk),
        }
    }
}

setters! {
    Options {
        durability: Durability,
        on_corrupt: OnCorrupt,
        when_full: WhenFull,
        record_bytes_max: u64,
        file_mode: u32,
        slow_sync: Duration,
        storage: Arc<dyn Storage>,
    }
    optional {
        file_records_max: u64,
        bytes_total_max: u64,
    }
}

impl Options {
    /// The default limit of a payload, bytes.
    pub const RECORD_BYTES_MAX: u64 = RECORD_BYTES_MAX;

    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Fail for options that make no sense together.
    pub(super) fn check(&self, location: &Path, max_file_size: u64) -> Result<()> {
        let refused = |message: String| {
            Err(Error::new(ErrorKind::InvalidArgument, message).of(FORMAT).at(location))
        };
        self.durability.check().map_err(|error| error.of(FORMAT).at(location))?;
        let limit = RECORD_BYTES_WRITTEN;
        if !(1..=limit).contains(&self.record_bytes_max) {
            let asked = self.record_bytes_max;
            return refused(format!("record_bytes_max={asked} must be 1 to {limit}"));
        }
        if self.file_records_max == Some(0) {
            return refused("limit of a file 0 records, at least 1".into());
        }
        match self.bytes_total_max {
            Some(total) if total < max_file_size => {
                refused(format!("max_bytes={total} must be at least batch_bytes={max_file_size}"))
            }
            _ => Ok(()),
        }
    }
}
