//! The verbs that append to the newest epoch, and make its deeds durable.

use std::io::Read;

use super::Pier;
use crate::book::{Batch, Book};
use crate::error::Result;
use crate::mode::Mode;

impl Pier {
    /// An empty batch in the layout of the last epoch; as [`Book::batch`].
    pub fn batch(&self) -> Batch {
        // A closed pier gets here; its append reports the error.
        let any = || Batch::new(self.shared.options.deed_bytes_max);
        self.on_last(|book| Ok(book.batch())).unwrap_or_else(|_| any())
    }

    /// Append one deed to the last epoch; as [`Book::append`].
    ///
    /// # Errors
    ///
    /// Fails with [`TooLarge`](crate::ErrorKind::TooLarge) for a record beyond the limit, and with
    /// [`Poisoned`](crate::ErrorKind::Poisoned) after a write or sync that failed; see [Errors](crate#errors).
    pub fn append(&self, mug: u32, jam: &[u8]) -> Result<u64> {
        self.on_last(|book| book.append(mug, jam))
    }

    /// Append a deed from a reader, without holding the jam in memory; as [`Book::append_from`].
    ///
    /// # Errors
    ///
    /// Fails with [`TooLarge`](crate::ErrorKind::TooLarge) for a record beyond the limit, and with
    /// [`Poisoned`](crate::ErrorKind::Poisoned) after a write or sync that failed; see [Errors](crate#errors).
    pub fn append_from(&self, mug: u32, jam_len: u64, jam: &mut dyn Read) -> Result<u64> {
        self.on_last(|book| book.append_from(mug, jam_len, jam))
    }

    /// Append a batch to the last epoch; as [`Book::append_batch`], where `epoch` is the last
    /// epoch's.
    ///
    /// # Errors
    ///
    /// Fails with [`TooLarge`](crate::ErrorKind::TooLarge) for a record beyond the limit, and with
    /// [`Poisoned`](crate::ErrorKind::Poisoned) after a write or sync that failed; see [Errors](crate#errors).
    pub fn append_batch(
        &self,
        batch: &Batch,
        event: Option<u64>,
        epoch: Option<u64>,
    ) -> Result<u64> {
        self.on_last(|book| book.append_batch(batch, event, epoch))
    }

    /// Append a batch to the last epoch; as [`Book::append_unsynced`].
    ///
    /// # Errors
    ///
    /// Fails with [`TooLarge`](crate::ErrorKind::TooLarge) for a record beyond the limit, and with
    /// [`Poisoned`](crate::ErrorKind::Poisoned) after a write or sync that failed; see [Errors](crate#errors).
    pub fn append_unsynced(&self, batch: &Batch) -> Result<u64> {
        self.on_last(|book| book.append_unsynced(batch))
    }

    /// Append one deed and sync; as [`Book::commit`].
    ///
    /// # Errors
    ///
    /// Fails with [`TooLarge`](crate::ErrorKind::TooLarge) for a record beyond the limit, and with
    /// [`Poisoned`](crate::ErrorKind::Poisoned) after a write or sync that failed; see [Errors](crate#errors).
    pub fn commit(&self, mug: u32, jam: &[u8]) -> Result<u64> {
        self.on_last(|book| book.commit(mug, jam))
    }

    /// Return when every deed appended so far is on stable storage.
    ///
    /// # Errors
    ///
    /// Fails if the sync fails, now or before ([`Poisoned`](crate::ErrorKind::Poisoned)); see [Errors](crate#errors).
    pub fn sync(&self) -> Result<()> {
        self.on_last(Book::sync)
    }

    /// Return when the deed with that number is on stable storage; as [`Book::wait_durable`]. A roll synced the
    /// deeds of the epochs before.
    ///
    /// # Errors
    ///
    /// Fails with [`OutOfRange`](crate::ErrorKind::OutOfRange) if there is no such record, and if the sync fails; see
    /// [Errors](crate#errors).
    pub fn wait_durable(&self, event: u64) -> Result<()> {
        self.shared.writable()?;
        self.in_epoch_of(event, |book| match book.mode() {
            Mode::Read => Ok(()),
            Mode::Append | Mode::Create => book.wait_durable(event),
        })
    }
}
