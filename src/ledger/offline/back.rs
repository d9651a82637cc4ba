//! The records of a ledger's files backwards, the newest file first.

use std::fmt::{self, Debug, Formatter};
use std::vec;

use super::contents::Contents;
use super::files::FileInfo;
use crate::error::{ErrorKind, Result};
use crate::ledger::LedgerFile;
use crate::ledger::format::LedgerFormat;
use crate::ledger::record::Record;
use crate::log::{Format as _, Reverse as FileReverse};
use crate::scan::{Damage, OnCorrupt};

/// Walks backwards over the records of a ledger's files, and ends after the first error.
pub struct Reverse {
    contents: Contents,
    on_corrupt: OnCorrupt,
    /// The files still to walk, the newest first.
    left: vec::IntoIter<FileInfo>,
    /// The number of the current file, and its walk.
    at: Option<(u32, OfFile)>,
    damages: Vec<Damage>,
}

/// The walk over one file.
enum OfFile {
    /// The engine's walk: the records after the last damage, then the damage as an error.
    Raising(Box<FileReverse<LedgerFormat>>),
    /// All intact records. The file was read forwards, because only a forward walk numbers records after damage.
    Skipping(vec::IntoIter<Record>),
}

impl Contents {
    /// The records of all files, the newest first. An error for damage comes after the later records of the file. A walk
    /// that passes over damage holds one file in memory. A file that was sent meanwhile has no records.
    pub fn cursor_back(&self, on_corrupt: OnCorrupt) -> Reverse {
        let files: Vec<_> = self.files.iter().rev().cloned().collect();
        let (left, damages) = (files.into_iter(), Vec::new());
        Reverse { contents: self.clone(), on_corrupt, left, at: None, damages }
    }
}

impl Reverse {
    /// The next record and the number of its file, going down.
    ///
    /// # Errors
    ///
    /// Fails with [`Corrupt`](crate::ErrorKind::Corrupt) for damage, unless the walk passes over it. The walk ends
    /// after an error.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<(u32, Record)>> {
        let stepped = self.step();
        if stepped.is_err() {
            // The file before would leave a gap after the error.
            (self.at, self.left) = (None, Vec::new().into_iter());
        }
        stepped
    }

    /// The damaged stretches passed over up to now, each by bytes of its file.
    pub fn damages(&self) -> &[Damage] {
        &self.damages
    }

    fn step(&mut self) -> Result<Option<(u32, Record)>> {
        loop {
            if let Some((number, walk)) = &mut self.at {
                let record = match walk {
                    OfFile::Raising(walk) => walk.next()?.map(LedgerFormat::own),
                    OfFile::Skipping(records) => records.next_back(),
                };
                if let Some(record) = record {
                    return Ok(Some((*number, record)));
                }
            }
            let Some(file) = self.left.next() else { return Ok(None) };
            self.at = match self.contents.open(&file)? {
                Some(log) => Some((file.index, self.begin(&log)?)),
                None => None,
            };
        }
    }

    fn begin(&mut self, log: &LedgerFile) -> Result<OfFile> {
        if self.on_corrupt == OnCorrupt::Raise {
            return Ok(OfFile::Raising(Box::new(log.0.reverse_by_ordinal(0, None)?)));
        }
        let (mut records, mut cursor) = (Vec::new(), log.cursor(OnCorrupt::Skip)?);
        while let Some(record) = cursor.next()? {
            records.push(LedgerFormat::own(record));
        }
        self.damages.extend_from_slice(cursor.damages());
        Ok(OfFile::Skipping(records.into_iter()))
    }
}

impl Contents {
    /// One of the files; `None` if it was sent meanwhile. A file named by the path must exist.
    pub(super) fn open(&self, file: &FileInfo) -> Result<Option<LedgerFile>> {
        match self.options.open_file(&file.path) {
            Err(e) if e.kind() == ErrorKind::Missing && file.path != self.path => Ok(None),
            log => log.map(Some),
        }
    }
}

impl Debug for Reverse {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let at = self.at.as_ref().map(|(number, _)| number);
        f.debug_struct("Reverse")
            .field("path", &self.contents.path)
            .field("at", &at)
            .finish_non_exhaustive()
    }
}
