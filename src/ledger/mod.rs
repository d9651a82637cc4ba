#![doc = include_str!("FORMAT.md")]

pub(crate) mod codec;
pub(crate) mod directory;
mod engine;
mod fetch;
mod format;
mod jobs;
mod limits;
mod migrate;
mod offline;
mod options;
mod record;
mod repair;
mod store;
mod transient;

use std::path::Path;

use crate::error::Result;
use crate::log::{Log, Split, facade};
use codec::Codec;

#[doc(hidden)]
pub use codec::file_name;
pub use fetch::fetched::{DataResult, Removable};
pub use fetch::reader::LedgerReader;
pub use format::LedgerFormat;
pub use jobs::stage::Stage;
pub use migrate::{FileMigration, Migration};
pub use offline::back::Reverse;
pub use offline::contents::Contents;
#[doc(hidden)]
pub use offline::contents::{bases, is_ledger_file};
pub use offline::files::FileInfo;
pub use offline::follow::Follow;
#[doc(hidden)]
pub use options::Envelope;
pub use options::{LedgerConfig, OnCorrupt, Options, WhenFull};
pub use record::{Position, Record};
pub use store::LedgerStore;
pub use transient::{DataStore, MemoryStore, TransientDB};

pub(crate) type Files = crate::log::Chained<LedgerFormat>;
pub(crate) type Batch = crate::log::Batch<LedgerFormat>;

facade! {
    /// One file of a ledger, open for reading.
    LedgerFile(LedgerFormat) reads
}

impl Batch {
    /// An empty batch for payloads of at most `record_bytes_max` bytes.
    pub fn new(record_bytes_max: u64) -> Self {
        Self::with_framing(Codec::new(record_bytes_max))
    }

    /// Add a record. The batch is unchanged if the payload is empty or beyond the limit.
    ///
    /// # Errors
    ///
    /// Fails with [`TooLarge`](crate::ErrorKind::TooLarge) for a record beyond the limit.
    #[inline]
    pub fn push(&mut self, payload: &[u8]) -> Result<()> {
        self.push_tagged((), payload).map(drop)
    }
}

impl LedgerFile {
    /// The file.
    pub fn path(&self) -> &Path {
        &self.0.shared.place.log
    }

    /// Byte after the last record.
    pub(crate) fn end(&self) -> Result<u64> {
        Ok(self.0.extent()?.end)
    }

    /// The records, up to the first damage, which is raised.
    ///
    /// # Errors
    ///
    /// Fails with [`Corrupt`](crate::ErrorKind::Corrupt) where damage hides the place where the walk begins; see
    /// [Errors](crate#errors).
    pub fn iter(&self) -> Result<Iter> {
        Ok(Iter::new(self.cursor(crate::OnCorrupt::Raise)?))
    }

    /// Walk the records; damage is raised, or passed over as far as the file goes.
    ///
    /// # Errors
    ///
    /// Fails with [`Corrupt`](crate::ErrorKind::Corrupt) where damage hides the place where the walk begins; see
    /// [Errors](crate#errors).
    pub fn cursor(&self, on_corrupt: crate::OnCorrupt) -> Result<Cursor> {
        self.0.cursor_by_ordinal(0, None, on_corrupt)
    }

    /// Divide the records into parts of about `split_bytes` bytes. A file that is damaged after its
    /// valid prefix gets one more part for what lies there.
    ///
    /// # Errors
    ///
    /// Fails with [`OutOfRange`](crate::ErrorKind::OutOfRange) for a place that the log does not have; see
    /// [Errors](crate#errors).
    pub fn splits(&self, split_bytes: u64) -> Result<Vec<Split>> {
        let extent = self.0.usable()?.snapshot().extent;
        self.0.splits_over(split_bytes, extent.start, extent.end, true)
    }

    /// Walk the records of a part, without opening the log; without `check`, checksums are not compared.
    /// Another log at the path is [`ErrorKind::NotALog`](crate::ErrorKind::NotALog).
    ///
    /// # Errors
    ///
    /// Fails with [`NotALog`](crate::ErrorKind::NotALog) where another log lies at the path; see
    /// [Errors](crate#errors).
    pub fn read_split(
        split: &Split,
        options: &Options,
        on_corrupt: crate::OnCorrupt,
        check: bool,
    ) -> Result<Cursor> {
        Log::cursor_of_split(split, options, on_corrupt, check, None)
    }
}
