#![doc = include_str!("FORMAT.md")]

pub(crate) mod codec;
mod dropping;
mod engine;
mod files;
pub(crate) mod format;
mod inspect;
mod options;
mod pack;
mod proof;
mod read;
mod record;

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::durability::Durability;
use crate::error::Result;
use crate::log::{Inspected, Log, Repair, RepairReport, SalvageReport, Shared, Wanted, facade};
use crate::mode::Mode;
use codec::Codec;

#[doc(hidden)]
pub use crate::storage::segmented::head::{HEAD_NAME, head_bytes};
pub use codec::Lsn;
#[doc(hidden)]
pub use codec::segment_name;
pub use dropping::cut::{Cut, Dropped};
pub use format::WalFormat;
pub use options::{Layout, Options};
#[doc(hidden)]
pub use pack::pack;
pub use record::Record;

pub(crate) type Batch = crate::log::Batch<WalFormat>;

facade! {
    /// An open write-ahead log. Handles may be shared by threads; clones are the same handle.
    Wal(WalFormat) writes
}

impl Stage {
    /// Add a record. A record beyond the limit leaves the stage unchanged.
    ///
    /// # Errors
    ///
    /// Fails with [`TooLarge`](crate::ErrorKind::TooLarge) for a record beyond the limit.
    #[inline]
    pub fn push(&mut self, payload: &[u8]) -> Result<()> {
        self.push_tagged((), payload)
    }
}

impl Batch {
    /// An empty batch for payloads of at most `record_bytes_max` bytes.
    pub fn new(record_bytes_max: u64) -> Self {
        Self::with_framing(Codec::new(record_bytes_max))
    }

    /// Add a record and return the record's byte in the batch. The LSN from [`Wal::append_batch`] plus this byte is the
    /// record's LSN. A payload beyond the limit leaves the batch unchanged.
    ///
    /// # Errors
    ///
    /// Fails with [`TooLarge`](crate::ErrorKind::TooLarge) for a record beyond the limit.
    #[inline]
    pub fn push(&mut self, payload: &[u8]) -> Result<u64> {
        self.push_tagged((), payload)
    }
}

impl Options {
    /// Open the log in a directory of segments, or in one file.
    ///
    /// # Errors
    ///
    /// Fails with [`Missing`](crate::ErrorKind::Missing) where there is nothing to read,
    /// [`NotALog`](crate::ErrorKind::NotALog) for other files, [`Locked`](crate::ErrorKind::Locked) while another
    /// handle appends, and [`Corrupt`](crate::ErrorKind::Corrupt) or [`LostRecords`](crate::ErrorKind::LostRecords)
    /// for damage that `recovery` does not allow; see [Errors](crate#errors).
    pub fn open(&self, path: impl AsRef<Path>, mode: Mode) -> Result<Wal> {
        Ok(Wal(Log::open_with(path.as_ref(), mode, self.clone())?))
    }

    /// Truncate a log after its valid prefix. The removed bytes are saved next to the log in `log.cut-BYTE` (for a
    /// single file `NAME.cut-BYTE`). Segments after a gap are renamed to `*.wal.cut`, and a head marker
    /// that only the mark still knows is written again. A clean log stays as it is.
    ///
    /// # Errors
    ///
    /// Fails with [`Corrupt`](crate::ErrorKind::Corrupt) if the cut would remove intact records, unless forced, and
    /// with [`Locked`](crate::ErrorKind::Locked) while another handle appends; see [Errors](crate#errors).
    ///
    /// # Examples
    ///
    /// ```
    /// use deedbook::report::Repair;
    /// use deedbook::wal::{Options, Wal};
    ///
    /// # fn main() -> deedbook::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("log");
    /// Wal::create(&path)?.close()?;
    /// let report = Options::new().repair(&path, Repair::default())?;
    /// assert!(report.mended);
    /// # Ok(())
    /// # }
    /// ```
    pub fn repair(&self, path: impl AsRef<Path>, how: Repair) -> Result<RepairReport> {
        crate::log::repair::<WalFormat>(path.as_ref(), self, how)
    }

    /// Copy every intact record to a new log, in the same layout unless the options name another. The copies get new
    /// LSNs from 0 on; the report has both LSNs. The new log keeps the consumers and the record of committed
    /// transactions.
    ///
    /// # Errors
    ///
    /// Fails where there is no log to read, and with [`AlreadyExists`](crate::ErrorKind::AlreadyExists) for a target
    /// that is a log; see [Errors](crate#errors).
    ///
    /// # Examples
    ///
    /// ```
    /// use deedbook::wal::{Options, Wal};
    ///
    /// # fn main() -> deedbook::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("log");
    /// let wal = Wal::create(&path)?;
    /// wal.append(b"one")?;
    /// wal.close()?;
    /// let report = Options::new().salvage(&path, dir.path().join("copy"))?;
    /// assert_eq!(report.records, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn salvage(
        &self,
        source: impl AsRef<Path>,
        target: impl AsRef<Path>,
    ) -> Result<SalvageReport> {
        self.salvage_with(source, target, |_, _| Ok(()))
    }

    /// As [`salvage`](Self::salvage). `progress` gets the bytes done and the total, and its error ends the copying.
    ///
    /// # Errors
    ///
    /// Fails where there is no log to read, and with [`AlreadyExists`](crate::ErrorKind::AlreadyExists) for a target
    /// that is a log; see [Errors](crate#errors). An error of `progress` ends the work and is returned.
    pub fn salvage_with(
        &self,
        source: impl AsRef<Path>,
        target: impl AsRef<Path>,
        progress: impl FnMut(u64, u64) -> Result<()>,
    ) -> Result<SalvageReport> {
        // A single file has no size to name; the size of the source's segments may be unknown.
        let asked = self.layout;
        let source_is_dir = self.storage.is_dir(source.as_ref());
        let reading = match asked {
            Some(Layout::Segmented { .. }) if source_is_dir => self.clone(),
            _ => Self { layout: None, ..self.clone() },
        };
        let create = |found: &Inspected<WalFormat>| {
            let copying = Self {
                durability: Durability::Manual,
                layout: asked.or(Some(found.format.layout())),
                record_bytes_max: Some(found.format.record_bytes_max()),
                ..self.clone()
            };
            crate::log::create_copy::<WalFormat>(target.as_ref(), copying)
        };
        crate::log::salvage(source.as_ref(), &reading, create, |_| (), None, progress)
    }
}

impl Wal {
    /// The single file, or the directory of the segments.
    pub fn path(&self) -> &Path {
        &self.0.shared.place.log
    }

    /// The layout of the log's bytes.
    pub fn layout(&self) -> Layout {
        self.0.shared.format.layout()
    }

    /// Limit of a payload for appends, bytes.
    pub fn record_bytes_max(&self) -> u64 {
        self.0.shared.appending.record_bytes_max
    }

    /// The segment files, beginning with the segment of the head; a log in a single file has one path.
    ///
    /// # Errors
    ///
    /// Fails for a closed handle; see [Errors](crate#errors).
    pub fn segment_paths(&self) -> Result<Vec<PathBuf>> {
        let shared = self.0.usable()?;
        Ok(match shared.files.segments() {
            None => vec![shared.place.log.clone()],
            Some(segments) => segments.range().map(|index| segments.path(index)).collect(),
        })
    }

    /// The end of the records on stable storage. A reader returns `None` without a mark, or when another
    /// program appended after the mark was written.
    ///
    /// # Errors
    ///
    /// Fails for a closed handle; see [Errors](crate#errors).
    pub fn durable_end(&self) -> Result<Option<Lsn>> {
        Ok(self.0.durable_offset()?.map(Lsn))
    }

    /// Return when the record at `lsn` is on stable storage: the next sync serves all waiting calls, and without one,
    /// this call syncs.
    ///
    /// # Errors
    ///
    /// Fails with [`OutOfRange`](crate::ErrorKind::OutOfRange) for a missing record, and if the sync fails; see
    /// [Errors](crate#errors).
    pub fn wait_durable(&self, lsn: Lsn) -> Result<()> {
        self.0.wait_durable_at(lsn.0)
    }

    /// Append one record and return its LSN. The returned record survives the death of the process, and with [`Durability::Always`] a power cut.
    ///
    /// # Errors
    ///
    /// Fails with [`TooLarge`](crate::ErrorKind::TooLarge) for a record beyond the limit, and with
    /// [`Poisoned`](crate::ErrorKind::Poisoned) after a write or sync that failed; see [Errors](crate#errors).
    ///
    /// # Examples
    ///
    /// ```
    /// use deedbook::wal::Wal;
    ///
    /// # fn main() -> deedbook::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("log");
    /// let wal = Wal::create(&path)?;
    /// let lsn = wal.append(b"set x = 1")?;
    /// assert_eq!(wal.read(lsn)?.payload, b"set x = 1");
    /// # Ok(())
    /// # }
    /// ```
    pub fn append(&self, payload: &[u8]) -> Result<Lsn> {
        let appended = self.0.append_tagged((), payload)?;
        Ok(Lsn(appended.offset))
    }

    /// Append one record whose payload of `len` bytes is read while it is written, and return its LSN.
    /// A reader that ends early, or fails, leaves the log unchanged. Other calls on the
    /// handle may wait meanwhile: a reader that calls the same log never returns.
    ///
    /// # Errors
    ///
    /// Fails with [`TooLarge`](crate::ErrorKind::TooLarge) for a record beyond the limit, and with
    /// [`Poisoned`](crate::ErrorKind::Poisoned) after a write or sync that failed; see [Errors](crate#errors).
    pub fn append_from(&self, len: u64, payload: &mut dyn Read) -> Result<Lsn> {
        let appended = self.0.append_payload((), len, payload)?;
        self.0.shared.after_append(appended.end)?;
        Ok(Lsn(appended.offset))
    }

    /// Append a batch with one write and return the first LSN; an error means that none of it is
    /// acknowledged. After a crash before the sync, a prefix of it may remain.
    ///
    /// # Errors
    ///
    /// Fails with [`TooLarge`](crate::ErrorKind::TooLarge) for a record beyond the limit, and with
    /// [`Poisoned`](crate::ErrorKind::Poisoned) after a write or sync that failed; see [Errors](crate#errors).
    pub fn append_batch(&self, batch: &Batch) -> Result<Lsn> {
        Ok(Lsn(self.0.append_encoded(batch, Wanted::default())?.offset))
    }

    /// Append a batch, but with [`Durability::Always`] leave the sync to the caller: for a long
    /// series of batches that is acknowledged at its end.
    ///
    /// # Errors
    ///
    /// Fails with [`TooLarge`](crate::ErrorKind::TooLarge) for a record beyond the limit, and with
    /// [`Poisoned`](crate::ErrorKind::Poisoned) after a write or sync that failed; see [Errors](crate#errors).
    pub fn append_unsynced(&self, batch: &Batch) -> Result<Lsn> {
        Ok(Lsn(self.0.append_encoded_unsynced(batch)?.offset))
    }

    /// Append several payloads packed into one record: after a crash all of them are there, or
    /// none. [`Record::parts`] takes them apart. Other programs see an ordinary record.
    ///
    /// # Errors
    ///
    /// Fails with [`TooLarge`](crate::ErrorKind::TooLarge) for a record beyond the limit, and with
    /// [`Poisoned`](crate::ErrorKind::Poisoned) after a write or sync that failed; see [Errors](crate#errors).
    ///
    /// # Examples
    ///
    /// ```
    /// use deedbook::wal::Wal;
    ///
    /// # fn main() -> deedbook::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("log");
    /// let wal = Wal::create(&path)?;
    /// let lsn = wal.append_atomic(["debit", "credit"])?;
    /// let record = wal.read(lsn)?;
    /// assert_eq!(record.parts().map(Iterator::count), Some(2));
    /// # Ok(())
    /// # }
    /// ```
    pub fn append_atomic<T: AsRef<[u8]>>(&self, parts: impl IntoIterator<Item = T>) -> Result<Lsn> {
        self.append(&pack(parts)?)
    }

    /// Append one record and sync, whatever the durability option.
    ///
    /// # Errors
    ///
    /// Fails with [`TooLarge`](crate::ErrorKind::TooLarge) for a record beyond the limit, and with
    /// [`Poisoned`](crate::ErrorKind::Poisoned) after a write or sync that failed; see [Errors](crate#errors).
    pub fn commit(&self, payload: &[u8]) -> Result<Lsn> {
        let appended = self.0.commit_tagged((), payload)?;
        Ok(Lsn(appended.offset))
    }
}
