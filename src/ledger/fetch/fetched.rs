//! The result of a fetch: readers, and the names of the files to be removed.

use super::reader::LedgerReader;
use crate::storage::FileId;

/// The result of a fetch. [`LedgerStore::fetch`](crate::ledger::LedgerStore::fetch) returns readers, and the files to
/// remove after sending each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataResult<T = Vec<LedgerReader>, R = Removable> {
    /// The data.
    pub data: Option<T>,
    /// The files to remove after sending the data, in the order of the data.
    pub removable: Option<Vec<R>>,
    /// Whether more records wait than this fetch returned within the limits.
    pub more: bool,
}

/// A fetched file, to be removed after sending. Names the file itself, not a later file with the
/// same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Removable {
    pub(super) index: u32,
    pub(super) file: FileId,
    /// Whether the file is to be quarantined instead of removed.
    pub(super) quarantine: bool,
}

impl Removable {
    /// Name a file again, as [`LedgerStore::fetch`](crate::ledger::LedgerStore::fetch) named it,
    /// maybe in another process.
    ///
    /// On a file system without times of creation (`created_ns` is 0), an inode alone cannot tell a
    /// file from a later one. A `Removable` is then valid only as long as the file's reader.
    pub fn new(index: u32, file: FileId, quarantine: bool) -> Self {
        Self { index, file, quarantine }
    }

    /// The file's number. No other file of the ledger ever gets it.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// The identity of the file.
    pub fn file(&self) -> FileId {
        self.file
    }

    /// Whether removing moves it to `.deedbook/quarantine/`.
    pub fn is_quarantined(&self) -> bool {
        self.quarantine
    }
}
