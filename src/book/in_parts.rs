//! Deeds of any size, in one block of memory.

use std::io::Read;

use super::Book;
use super::format::BookFormat;
use crate::error::Result;

pub(crate) type JamReader = crate::log::PayloadReader<BookFormat>;

impl JamReader {
    /// The mug of the deed.
    pub fn mug(&self) -> u32 {
        self.frame().mug
    }
}

impl Book {
    /// Append one deed whose jam of `jam_len` bytes is read while it is written, and return its event
    /// number. A reader that ends before, or fails, leaves the log as it was. Other calls on
    /// this handle may wait meanwhile; so a reader that uses this log waits for itself.
    ///
    /// # Errors
    ///
    /// Fails with [`TooLarge`](crate::ErrorKind::TooLarge) for a record beyond the limit, and with
    /// [`Poisoned`](crate::ErrorKind::Poisoned) after a write or sync that failed; see [Errors](crate#errors).
    pub fn append_from(&self, mug: u32, jam_len: u64, jam: &mut dyn Read) -> Result<u64> {
        let appended = self.0.append_payload(mug, jam_len, jam)?;
        self.0.shared.after_append(appended.end)?;
        Ok(appended.ordinal)
    }

    /// The jam of the deed at a byte that a cursor met.
    pub(super) fn jam_at(&self, offset: u64) -> Result<JamReader> {
        let shared = self.0.usable()?;
        shared.payload_at(self.0.extent()?, None, offset)
    }

    /// The jam of the deed with that number, in parts. The deed is proved intact with the last one.
    ///
    /// # Errors
    ///
    /// Fails with [`OutOfRange`](crate::ErrorKind::OutOfRange) if there is no such record, and with
    /// [`Corrupt`](crate::ErrorKind::Corrupt) if it is damaged; see [Errors](crate#errors).
    pub fn jam_reader(&self, event: u64) -> Result<JamReader> {
        self.0.payload_by_ordinal(event)
    }
}
