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
    /// Append one deed, reading the `jam_len` bytes of the jam in parts, and return the event number. If the reader
    /// fails or ends early, the log stays as before. Other calls on this handle may wait meanwhile. The reader must not
    /// use this log, or the call waits for itself.
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

    /// The jam of the deed at an offset from a cursor.
    pub(super) fn jam_at(&self, offset: u64) -> Result<JamReader> {
        let shared = self.0.usable()?;
        shared.payload_at(self.0.extent()?, None, offset)
    }

    /// The jam of a deed, in parts. Reading the last part proves the deed intact.
    ///
    /// # Errors
    ///
    /// Fails with [`OutOfRange`](crate::ErrorKind::OutOfRange) for a missing record, and with
    /// [`Corrupt`](crate::ErrorKind::Corrupt) for a damaged record; see [Errors](crate#errors).
    pub fn jam_reader(&self, event: u64) -> Result<JamReader> {
        self.0.payload_by_ordinal(event)
    }
}
