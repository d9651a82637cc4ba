//! The two sides of a ledger's handle, reader and writer, and their common facts.

use std::path::Path;

use deedbook::ledger::{self, LedgerReader, LedgerStore, Options};
use deedbook::{Durability, Error, ErrorKind, Result};

use crate::append::payload::Limit;
use crate::common::handle::Held;
use crate::ledger::PyLedger;
use crate::ledger::contents::{Found, Reader};
use crate::log::any_log::Format;

/// A handle is open for reading or for appending.
pub enum Side {
    Reader(Reader),
    Writer(Held<LedgerStore>),
}

impl PyLedger {
    /// The store of a writer. An error for a reader.
    pub fn store(&self) -> Result<&LedgerStore> {
        match &self.side {
            Side::Writer(store) => Ok(store),
            Side::Reader(reader) => {
                reader.check_open()?;
                let error = Error::new(ErrorKind::ReadOnly, "the ledger is open for reading");
                Err(error.of(Format::Ledger.name()).at(self.path_of()))
            }
        }
    }

    /// The store of either side; that of a reader is for transactions alone.
    pub fn either(&self) -> Result<&LedgerStore> {
        match &self.side {
            Side::Writer(store) => Ok(store),
            Side::Reader(reader) => {
                reader.check_open()?;
                Ok(&reader.store)
            }
        }
    }

    pub fn path_of(&self) -> &Path {
        match &self.side {
            Side::Writer(store) => store.path(),
            Side::Reader(reader) => &reader.found.contents.path,
        }
    }

    pub fn base_of(&self) -> &str {
        match &self.side {
            Side::Writer(store) => store.base_filename(),
            Side::Reader(reader) => &reader.found.contents.base,
        }
    }

    pub fn durability_of(&self) -> Durability {
        match &self.side {
            Side::Writer(store) => store.options().durability,
            Side::Reader(reader) => reader.store.options().durability,
        }
    }

    pub fn is_closed(&self) -> bool {
        match &self.side {
            Side::Writer(store) => store.is_closed(),
            Side::Reader(reader) => reader.store.is_closed(),
        }
    }

    /// The files to read. A reader has the files found at its opening, a writer lists the present
    /// files.
    pub fn found(&self) -> Result<Found> {
        match &self.side {
            Side::Reader(reader) => {
                reader.check_open()?;
                Ok(reader.found.clone())
            }
            Side::Writer(store) => {
                store.has_data()?; // an error if it is closed
                Found::at(store.path(), Some(store.base_filename()))
            }
        }
    }

    pub fn limit(&self) -> Limit {
        let bytes_max = match &self.side {
            Side::Writer(store) => store.options().record_bytes_max,
            Side::Reader(_) => Options::RECORD_BYTES_MAX,
        };
        Limit { format: "ledger", noun: "record", bytes_max }
    }

    /// A name that no other file ever gets, made from the birth time of the inode. Some file
    /// systems note no birth time. A later ledger's file may then get the same inode, so the name
    /// holds for this handle only.
    pub fn id_of(&self, reader: &LedgerReader, removable: &ledger::Removable) -> String {
        let (index, file) = (reader.index(), removable.file());
        match file.created_ns {
            0 => format!("{:016x}-{:x}-{index}", self.token, file.inode),
            born => format!("{born:x}-{:x}-{index}", file.inode),
        }
    }
}
