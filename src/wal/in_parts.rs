//! Records of any size, in one block of memory.

use std::io::Read;

use super::format::WalFormat;
use super::{Lsn, Wal};
use crate::error::Result;
use crate::log::PayloadReader;

impl Wal {
    /// Append one record whose payload of `len` bytes is read while it is written, and return its LSN.
    /// A reader that ends before, or fails, leaves the log as it was. Other calls on this
    /// handle may wait meanwhile; so a reader that uses this log waits for itself.
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

    /// The payload of the record at an LSN, in parts. The record is proved intact with the last one.
    ///
    /// # Errors
    ///
    /// Fails with [`OutOfRange`](crate::ErrorKind::OutOfRange) if there is no such record, and with
    /// [`Corrupt`](crate::ErrorKind::Corrupt) if it is damaged; see [Errors](crate#errors).
    pub fn payload_reader(&self, lsn: Lsn) -> Result<PayloadReader<WalFormat>> {
        self.0.payload_by_offset(lsn.0)
    }
}
