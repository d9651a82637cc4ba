#![doc = include_str!("FORMAT.md")]

mod copying;
mod deed;
mod engine;
mod epoch;
pub(crate) mod format;
mod in_parts;
mod inspect;
mod layouts;
#[cfg(feature = "lmdb")]
pub mod lmdb;
mod meta;
mod names;
mod options;
pub mod pier;
mod read;
#[allow(clippy::missing_errors_doc)] // Not public.
pub(crate) mod slots;

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::path::Path;

use crate::error::{Error, ErrorKind, Result};
use crate::ground::locks::lock;
use crate::ground::slice::part;
use crate::log::{Log, Repair, RepairReport, Wanted, facade};
use crate::mode::Mode;
use crate::scan::Step;
use crate::scan::framing::{Frame as _, Framing as _};
pub(crate) use layouts::codec::Codec;
use names::FORMAT;

pub use copying::convert::ConvertReport;
pub use deed::Deed;
#[doc(hidden)]
pub use epoch::epoch_in_name;
pub use format::BookFormat;
pub(crate) use in_parts::JamReader;
pub use layouts::Layout;
pub(crate) use layouts::packed::MAGIC;
pub use meta::Meta;
#[doc(hidden)]
pub use names::{LOG_NAME, META_NAME};
pub use options::Options;

pub(crate) type Batch = crate::log::Batch<BookFormat>;

facade! {
    /// An open event log. Handles may be shared by threads; clones are the same handle.
    Book(BookFormat) writes
}

impl Batch {
    /// An empty batch for deeds whose `len_d` is at most `deed_bytes_max`, encoded in the default
    /// layout. A log of another layout encodes the batch again; [`Book::batch`] spares the work.
    pub fn new(deed_bytes_max: u64) -> Self {
        Self::with_framing(Codec::new(Layout::default(), deed_bytes_max))
    }

    /// Add a deed. The batch is unchanged if the deed is beyond the limit.
    ///
    /// # Errors
    ///
    /// Fails with [`TooLarge`](crate::ErrorKind::TooLarge) for a record beyond the limit.
    #[inline]
    pub fn push(&mut self, mug: u32, jam: &[u8]) -> Result<()> {
        self.push_tagged(mug, jam).map(drop)
    }
}

impl Stage {
    /// Add a deed. A deed beyond the limit leaves the stage unchanged.
    ///
    /// # Errors
    ///
    /// Fails with [`TooLarge`](crate::ErrorKind::TooLarge) for a record beyond the limit.
    #[inline]
    pub fn push(&mut self, mug: u32, jam: &[u8]) -> Result<()> {
        self.push_tagged(mug, jam)
    }
}

impl Options {
    /// Open the book in a directory, or with a `book.log` named itself.
    ///
    /// # Errors
    ///
    /// Fails with [`Missing`](crate::ErrorKind::Missing) where there is nothing to read,
    /// [`NotALog`](crate::ErrorKind::NotALog) for other files, [`Locked`](crate::ErrorKind::Locked) while another
    /// handle appends, and [`Corrupt`](crate::ErrorKind::Corrupt) or [`LostRecords`](crate::ErrorKind::LostRecords)
    /// for damage that `recovery` does not allow; see [Errors](crate#errors).
    pub fn open(&self, path: impl AsRef<Path>, mode: Mode) -> Result<Book> {
        Ok(Book(Log::open_with(path.as_ref(), mode, self.clone())?))
    }

    /// Truncate a log after the valid prefix, after saving the rest in `book.log.cut-OFFSET` next to the log. A clean
    /// log does not change.
    ///
    /// # Errors
    ///
    /// Fails with [`Corrupt`](crate::ErrorKind::Corrupt) if the cut would remove intact records, unless forced, and
    /// with [`Locked`](crate::ErrorKind::Locked) while another handle appends; see [Errors](crate#errors).
    ///
    /// # Examples
    ///
    /// ```
    /// use deedbook::book::{Book, Options};
    /// use deedbook::report::Repair;
    ///
    /// # fn main() -> deedbook::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("log");
    /// Book::create(&path)?.close()?;
    /// let report = Options::new().repair(&path, Repair::default())?;
    /// assert_eq!((report.mended, report.cut_bytes), (true, 0));
    /// # Ok(())
    /// # }
    /// ```
    pub fn repair(&self, path: impl AsRef<Path>, how: Repair) -> Result<RepairReport> {
        crate::log::repair::<BookFormat>(path.as_ref(), self, how)
    }
}

impl Book {
    /// Directory of the book.
    pub fn path(&self) -> &Path {
        match self.0.shared.place.is_tail {
            true => &self.0.shared.place.log,
            false => &self.0.shared.place.dir,
        }
    }

    /// Layout on disk.
    pub fn layout(&self) -> Layout {
        self.0.shared.format.layout()
    }

    /// First and last event, or `None` while empty.
    ///
    /// # Errors
    ///
    /// Fails for a closed handle; see [Errors](crate#errors).
    pub fn bounds(&self) -> Result<Option<RangeInclusive<u64>>> {
        if self.0.shared.place.is_tail {
            return Ok(None);
        }
        let extent = self.0.numbered_extent()?;
        Ok((extent.records > 0).then(|| extent.first..=extent.next() - 1))
    }

    /// Last event; the epoch while empty.
    ///
    /// # Errors
    ///
    /// Fails for a closed handle; see [Errors](crate#errors).
    pub fn last(&self) -> Result<u64> {
        Ok(self.0.numbered_extent()?.next().saturating_sub(1))
    }

    /// The last event before this log's first one.
    ///
    /// # Errors
    ///
    /// Fails for a closed handle; see [Errors](crate#errors).
    pub fn epoch(&self) -> Result<u64> {
        Ok(self.0.numbered_extent()?.first.saturating_sub(1))
    }

    /// Byte after the last deed.
    ///
    /// # Errors
    ///
    /// Fails for a closed handle; see [Errors](crate#errors).
    pub fn end(&self) -> Result<u64> {
        Ok(self.0.extent()?.end)
    }

    /// Byte up to which the log is known to be on stable storage; `None` for a reader that finds no
    /// mark, or one since which another program appended.
    ///
    /// # Errors
    ///
    /// Fails for a closed handle; see [Errors](crate#errors).
    pub fn durable_end(&self) -> Result<Option<u64>> {
        self.0.durable_offset()
    }

    /// Last event known to be on stable storage; the epoch if none is. `None` for a reader that
    /// finds no mark, or one since which another program appended.
    ///
    /// # Errors
    ///
    /// Fails for a closed handle; see [Errors](crate#errors).
    pub fn durable_last(&self) -> Result<Option<u64>> {
        let epoch = self.epoch()?;
        Ok(self.0.durable_records()?.map(|records| epoch + records))
    }

    /// Return when the deed is on stable storage: the next sync serves all waiting calls, and without one, this call
    /// syncs.
    ///
    /// # Errors
    ///
    /// Fails with [`OutOfRange`](crate::ErrorKind::OutOfRange) for a missing record, and if the sync fails; see
    /// [Errors](crate#errors).
    pub fn wait_durable(&self, event: u64) -> Result<()> {
        let shared = self.0.writable()?;
        let extent = self.0.numbered_extent()?;
        if extent.records == 0 || !(extent.first..extent.next()).contains(&event) {
            let message = format!("no deed {event}, the log goes on with {}", extent.next());
            return Err(shared.error(ErrorKind::OutOfRange, message));
        }
        self.0.wait_durable_at(shared.locate_ordinal(extent, event)?)
    }

    /// Append one deed and return the event number. After the return, the deed survives a crash of the process, and
    /// with [`Durability::Always`](crate::Durability::Always) a power cut.
    ///
    /// # Errors
    ///
    /// Fails with [`TooLarge`](crate::ErrorKind::TooLarge) for a record beyond the limit, and with
    /// [`Poisoned`](crate::ErrorKind::Poisoned) after a write or sync that failed; see [Errors](crate#errors).
    ///
    /// # Examples
    ///
    /// ```
    /// use deedbook::book::Book;
    ///
    /// # fn main() -> deedbook::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("log");
    /// let book = Book::create(&path)?;
    /// assert_eq!(book.append(0, b"first")?, 1);
    /// assert_eq!(book.append(7, b"with a mug")?, 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn append(&self, mug: u32, jam: &[u8]) -> Result<u64> {
        let appended = self.0.append_tagged(mug, jam)?;
        Ok(appended.ordinal)
    }

    /// An empty batch in the layout of the log, with the log's limit.
    pub fn batch(&self) -> Batch {
        Batch::with_framing(self.0.shared.appending)
    }

    /// A batch in the layout of this log.
    fn encoded<'a>(&self, batch: &'a Batch) -> Result<Cow<'a, Batch>> {
        if batch.framing().layout == self.layout() {
            return Ok(Cow::Borrowed(batch));
        }
        let mut encoded = self.batch();
        let mut rest = &batch.bytes[..];
        while let Step::Record { frame, len } = batch.framing().parse(rest) {
            encoded
                .push(frame.mug, frame.payload(rest))
                .map_err(|e| e.at(&self.0.shared.place.log))?;
            rest = part(rest, len as usize..);
        }
        Ok(Cow::Owned(encoded))
    }

    /// Append a batch with one write and return the first event number. After an error, no deed of
    /// the batch is acknowledged. `event`: the number that the first deed must get. `epoch`: the
    /// last event before the log. An empty log takes over the epoch, any other log must have it.
    ///
    /// This is the specification's `u3_book_save`.
    ///
    /// # Errors
    ///
    /// Fails with [`TooLarge`](crate::ErrorKind::TooLarge) for a record beyond the limit, and with
    /// [`Poisoned`](crate::ErrorKind::Poisoned) after a write or sync that failed; see [Errors](crate#errors).
    ///
    /// # Examples
    ///
    /// ```
    /// use deedbook::book::Book;
    ///
    /// # fn main() -> deedbook::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("log");
    /// let book = Book::create(&path)?;
    /// let mut batch = book.batch();
    /// batch.push(0, b"first")?;
    /// batch.push(0, b"second")?;
    /// assert_eq!(book.append_batch(&batch, None, None)?, 1);
    /// assert_eq!(book.last()?, 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn append_batch(
        &self,
        batch: &Batch,
        event: Option<u64>,
        epoch: Option<u64>,
    ) -> Result<u64> {
        self.0.writable()?;
        let wanted = self.wanted(event, epoch)?;
        Ok(self.0.append_encoded(self.encoded(batch)?.as_ref(), wanted)?.ordinal)
    }

    /// Append one deed as [`Book::append_batch`] appends a batch, without a copy of a long deed.
    #[doc(hidden)]
    pub fn append_at(&self, mug: u32, jam: &[u8], event: u64, epoch: Option<u64>) -> Result<u64> {
        self.0.writable()?;
        let wanted = self.wanted(Some(event), epoch)?;
        Ok(self.0.append_tagged_at(mug, jam, wanted)?.ordinal)
    }

    fn wanted(&self, event: Option<u64>, epoch: Option<u64>) -> Result<Wanted> {
        let first = epoch.map(|epoch| self.first_after(epoch)).transpose()?;
        Ok(Wanted { ordinal: event, first })
    }

    /// The number of the first deed after an epoch, if a log at this place can have the number.
    fn first_after(&self, epoch: u64) -> Result<u64> {
        match epoch::demanded_by_name(&self.0.shared.place.dir, self.layout()) {
            Some(named) if named != epoch => {
                let message =
                    format!("epoch {epoch} asked for, but the directory's name says {named}");
                Err(self.0.shared.refused(ErrorKind::Contiguity, message))
            }
            _ => epoch.checked_add(1).ok_or_else(|| {
                let message = format!("events after epoch {epoch} would be numbered beyond 2^64");
                self.0.shared.refused(ErrorKind::TooLarge, message)
            }),
        }
    }

    /// Append a batch, but with [`Durability::Always`](crate::Durability::Always) leave the sync to the
    /// caller: for a long series of batches that is acknowledged at its end.
    ///
    /// # Errors
    ///
    /// Fails with [`TooLarge`](crate::ErrorKind::TooLarge) for a record beyond the limit, and with
    /// [`Poisoned`](crate::ErrorKind::Poisoned) after a write or sync that failed; see [Errors](crate#errors).
    pub fn append_unsynced(&self, batch: &Batch) -> Result<u64> {
        self.0.writable()?;
        Ok(self.0.append_encoded_unsynced(self.encoded(batch)?.as_ref())?.ordinal)
    }

    /// Append one deed and sync, whatever the durability option.
    ///
    /// # Errors
    ///
    /// Fails with [`TooLarge`](crate::ErrorKind::TooLarge) for a record beyond the limit, and with
    /// [`Poisoned`](crate::ErrorKind::Poisoned) after a write or sync that failed; see [Errors](crate#errors).
    pub fn commit(&self, mug: u32, jam: &[u8]) -> Result<u64> {
        let appended = self.0.commit_tagged(mug, jam)?;
        Ok(appended.ordinal)
    }

    /// As [`Book::close`], but the files stay open while cursors use them: the C interface promises it.
    #[doc(hidden)]
    pub fn close_keeping_files(&self) -> Result<()> {
        self.0.close_keeping_files()
    }

    /// The metadata.
    ///
    /// # Errors
    ///
    /// Fails for a damaged file; see [Errors](crate#errors).
    pub fn meta(&self) -> Result<Meta> {
        let shared = self.0.usable()?;
        Meta::read(&*shared.common.storage, &shared.place.dir)
    }

    /// Change the metadata fields that are `Some`, durably and all at once.
    ///
    /// # Errors
    ///
    /// Fails for a handle for reading ([`ReadOnly`](crate::ErrorKind::ReadOnly)) and for a damaged file; see
    /// [Errors](crate#errors).
    ///
    /// # Examples
    ///
    /// ```
    /// use deedbook::book::{Book, Meta};
    ///
    /// # fn main() -> deedbook::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("log");
    /// let book = Book::create(&path)?;
    /// book.save_meta(&Meta { life: Some(1), ..Meta::default() })?;
    /// assert_eq!(book.meta()?.life, Some(1));
    /// # Ok(())
    /// # }
    /// ```
    pub fn save_meta(&self, meta: &Meta) -> Result<()> {
        self.save_meta_of(|| Ok(*meta))
    }

    /// As [`Book::save_meta`], with the result of `decide`, called once nothing can refuse the save.
    fn save_meta_of(&self, decide: impl FnOnce() -> Result<Meta>) -> Result<()> {
        let shared = self.0.usable()?;
        if shared.mode == Mode::Read {
            let error = Error::new(ErrorKind::ReadOnly, "the log was opened for reading only");
            return Err(error.of(FORMAT).at(&shared.place.dir.join(META_NAME)));
        }
        let _changing = lock(&shared.exclusive);
        decide()?.save(&*shared.common.storage, &shared.place.dir, shared.common.file_mode)
    }

    /// The bytes of one metadata key (`who`, `version`, `life`, `fake`); `None` if nobody ever saved metadata.
    ///
    /// # Errors
    ///
    /// Fails for a damaged file; see [Errors](crate#errors).
    pub fn read_meta(&self, key: &str) -> Result<Option<Vec<u8>>> {
        let shared = self.0.usable()?;
        meta::read_key(&*shared.common.storage, &shared.place.dir, key)
    }
}
