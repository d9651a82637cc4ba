//! A seal: the part of a log's file that says the number of the first record, and where the log ends.

use std::fmt::Debug;
use std::io;
use std::ops::Range;

use crate::error::Result;
use crate::log::extent::Extent;
use crate::storage::File;

/// The end of a log, as the files state it. An open log has one seal. The default methods suit a
/// log whose records alone show the end.
pub trait Seal: Debug + Send + Sync {
    /// Whether a record counts only once [`Seal::cover`] has written so. Then no sync may cover
    /// half of an append, no space is reserved after the last record, and an open mark of an empty
    /// log proves that no commit ever returned.
    fn counts(&self) -> bool {
        false
    }

    /// Write the header before the first record, whose number is `_first`.
    fn begin(&self, _file: &dyn File, _first: u64) -> io::Result<()> {
        Ok(())
    }

    /// State in the file that the records from byte `_from` to the end of `_extent` count: the last
    /// step of an append, if the seal [counts](Seal::counts). After a failure the file states the
    /// same end as before. `_written` has the records' bytes, if at hand.
    fn cover(
        &self,
        _file: &dyn File,
        _from: u64,
        _extent: &Extent,
        _written: Option<&[u8]>,
    ) -> io::Result<()> {
        Ok(())
    }

    /// The covered records are on stable storage.
    fn synced(&self) {}

    /// Whether the header says that the log ends with `_extent`.
    fn is_sealed(&self, _extent: &Extent) -> bool {
        true
    }

    /// State in the file that the log ends with `_extent`, before an opening cuts the file there.
    /// Write the statement again even if unchanged: the last sync may have failed. Needed if the
    /// header lies outside the page of the first record, which opening writes again.
    fn seal(&self, _file: &dyn File, _extent: &Extent) -> io::Result<()> {
        Ok(())
    }

    /// The checksum of a block of records, for the index of a log whose records have none.
    fn block_sum(&self, _file: &dyn File, _block: Range<u64>) -> io::Result<Option<u32>> {
        Ok(None)
    }

    /// For readers: the end of the log within the file's `_there` bytes. The reader knows `_known`
    /// of the log.
    fn end_now(&self, _file: &dyn File, _known: &Extent, there: u64) -> io::Result<u64> {
        Ok(there)
    }

    /// For readers of an empty log: the number of the first record, once it is known.
    fn first_now(&self, _file: &dyn File, known: u64) -> Result<Option<u64>> {
        Ok(Some(known))
    }
}

/// The seal of a log whose records alone say where it ends.
#[derive(Clone, Copy, Debug)]
pub struct Plain;

impl Seal for Plain {}
