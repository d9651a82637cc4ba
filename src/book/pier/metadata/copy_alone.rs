//! The metadata in a build without LMDB: only the last epoch's copy. A pier may have its own
//! metadata in LMDB.

use crate::book::pier::Pier;
use crate::book::{Book, Meta};
use crate::error::Result;

impl Pier {
    /// The metadata of the last epoch. With the feature `lmdb`, the metadata of the pier, which
    /// Vere keeps in `.urb/log/data.mdb`.
    ///
    /// # Errors
    ///
    /// Fails for a damaged file, and on a closed handle; see [Errors](crate#errors).
    pub fn meta(&self) -> Result<Meta> {
        self.on_last(Book::meta)
    }

    /// Change the last epoch's metadata fields that are `Some`, durably and all at once. With the
    /// feature `lmdb`, the call also changes the pier's own metadata, which Vere keeps in
    /// `.urb/log/data.mdb`: without the feature, both differ afterwards.
    ///
    /// # Errors
    ///
    /// Fails for a handle for reading ([`ReadOnly`](crate::ErrorKind::ReadOnly)) and for a damaged file; see
    /// [Errors](crate#errors).
    pub fn save_meta(&self, meta: &Meta) -> Result<()> {
        self.on_last(|book| book.save_meta(meta))
    }
}
