//! The files of a ledger, looked at without a store: nothing is changed.

use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::ledger::LedgerFile;
use crate::ledger::codec::FORMAT;
use crate::ledger::directory::Directory;
use crate::ledger::options::Options;
use crate::log::Log;
use crate::mode::Mode;
use crate::storage::Access;

/// A file of a ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileInfo {
    /// Its number.
    pub index: u32,
    /// The file.
    pub path: PathBuf,
    /// Size in bytes.
    pub bytes: u64,
    /// Whether a store is writing it.
    pub active: bool,
}

impl Options {
    /// The files of a ledger, the oldest first; none if there is no such directory.
    ///
    /// # Errors
    ///
    /// Fails if the files cannot be read; see [Errors](crate#errors).
    pub fn files(&self, location: impl AsRef<Path>, base_filename: &str) -> Result<Vec<FileInfo>> {
        list(location.as_ref(), base_filename, self, Err)
    }

    /// One file for reading, also while a store writes it; a snapshot.
    ///
    /// # Errors
    ///
    /// Fails if the files cannot be read; see [Errors](crate#errors).
    pub fn open_file(&self, path: impl AsRef<Path>) -> Result<LedgerFile> {
        Ok(LedgerFile(Log::open_with(path.as_ref(), Mode::Read, self.clone())?))
    }
}

/// As [`Options::files`]; `unreadable` is asked about a file that cannot be opened, which has 0 bytes then.
pub(super) fn list(
    location: &Path,
    base_filename: &str,
    options: &Options,
    unreadable: impl Fn(Error) -> Result<()>,
) -> Result<Vec<FileInfo>> {
    let directory = Directory::at(options, location, base_filename)?;
    if !directory.storage.is_dir(&directory.path) {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for index in directory.indexes().map_err(|e| e.of(FORMAT))? {
        let path = directory.path_of(index);
        let len = directory.storage.open(&path, Access::Read).and_then(|file| file.len());
        let bytes = match len {
            Ok(bytes) => bytes,
            // Sent by now, or no file.
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidInput) => {
                continue;
            }
            Err(e) => {
                unreadable(Error::io("open the file", &path, e).of(FORMAT))?;
                found.push(FileInfo { index, path, bytes: 0, active: false });
                continue;
            }
        };
        let finished = directory.gate().and_then(|gate| directory.finished(&gate, index));
        let active = finished.map_err(|e| e.of(FORMAT))?.is_none();
        found.push(FileInfo { index, path, bytes, active });
    }
    Ok(found)
}
