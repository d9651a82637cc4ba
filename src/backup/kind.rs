//! Detects the kind of a log by the names at its path.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::source::{names_saved, unusable};
use super::target::has_begun;
use crate::book::{LOG_NAME, epoch_in_name};
use crate::error::{Error, ErrorKind, Result};
use crate::ledger;
use crate::log::space::Place;
use crate::sidecar::{SIDECAR_NAME, Settings, sidecar_dir};
use crate::storage::{Access, Storage, names_in};
use crate::wal::HEAD_NAME;
use crate::wal::codec::segment_index;

/// A kind of log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Book,
    Pier,
    /// Segments in a directory.
    Wal,
    /// One file.
    WalFile,
    Ledger,
    Store,
}

impl Kind {
    const ALL: [Self; 5] = [Self::Book, Self::Pier, Self::Wal, Self::Ledger, Self::Store];

    /// The format's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Book => "book",
            Self::Pier => "pier",
            Self::Wal | Self::WalFile => "wal",
            Self::Ledger => "ledger",
            Self::Store => "nostr",
        }
    }

    /// The format's name in a sentence.
    pub fn title(self) -> &'static str {
        match self {
            Self::Wal | Self::WalFile => "write-ahead log",
            Self::Store => "event store",
            other => other.name(),
        }
    }

    /// The paths of a log of this kind.
    pub fn place(self, path: &Path) -> Place {
        match self {
            Self::Book => Place::file_in(path, LOG_NAME),
            Self::WalFile => Place::file(path),
            Self::Pier | Self::Wal | Self::Ledger | Self::Store => Place::directory(path),
        }
    }

    /// The log that is backed up.
    pub fn of_source(storage: &Arc<dyn Storage>, path: &Path) -> Result<Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_dir = storage.is_dir(path);
        let found = Self::find(storage, path)?;
        let refuse = |message: String| Err(Error::new(ErrorKind::InvalidArgument, message));
        match found {
            Some(Self::WalFile) if name == LOG_NAME => {
                refuse(format!("{} is a file of a book: name its directory", path.display()))
            }
            Some(Self::WalFile) if ledger::is_ledger_file(path, &ledger_options(storage))? => {
                refuse(format!("{} is a file of a ledger: name its directory", path.display()))
            }
            Some(Self::WalFile) if names_saved(&name) => {
                refuse(format!("{} is what was cut off a log; copy it as a file", path.display()))
            }
            Some(kind) => Ok(kind),
            None => {
                let reason = if is_dir { "no log there" } else { "No such file or directory" };
                let missing = io::Error::new(io::ErrorKind::NotFound, reason);
                Err(Error::io("open the log", path, missing))
            }
        }
    }

    /// The kind of the log at a path; `None` if there is none.
    pub fn find(storage: &Arc<dyn Storage>, path: &Path) -> Result<Option<Self>> {
        if !storage.is_dir(path) {
            return match storage.open(path, Access::Read) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
                opened => opened
                    .map(|_| Some(Self::WalFile))
                    .map_err(|e| unusable("open the log", path, e)),
            };
        }
        let mut found = Vec::new();
        for kind in Self::ALL {
            if kind.is_shown(storage, path)? {
                found.push(kind);
            }
        }
        if let [one, other, ..] = found[..] {
            let (path_shown, one, other) = (path.display(), one.title(), other.title());
            let message = format!(
                "{path_shown} holds both a {one} and a {other}: move one of them to a directory of its own"
            );
            return Err(Error::new(ErrorKind::InvalidArgument, message));
        }
        if found.is_empty() {
            // The settings beside a log that is gone name its format.
            for kind in Self::ALL {
                let named = Settings::load(&**storage, &sidecar_dir(path), kind.name())?;
                found.extend(named.map(|_| kind));
            }
        }
        Ok(found.pop())
    }

    /// Whether the names in a directory say that it holds such a log.
    fn is_shown(self, storage: &Arc<dyn Storage>, path: &Path) -> Result<bool> {
        let disk = &**storage;
        let names = || names_in(disk, path);
        Ok(match self {
            Self::Book => names()?.iter().any(|name| name == LOG_NAME),
            Self::Pier => {
                let has_epochs = |dir: &Path| -> Result<bool> {
                    Ok(names_in(disk, dir)?
                        .iter()
                        .any(|name| epoch_in_name(Path::new(name)).is_some()))
                };
                let below = path.join(".urb").join("log");
                has_epochs(path)? || (disk.is_dir(&below) && has_epochs(&below)?)
            }
            Self::Wal | Self::WalFile => {
                names()?.iter().any(|name| segment_index(name).is_some() || name == HEAD_NAME)
            }
            Self::Ledger => !ledger::bases(path, &ledger_options(storage))?.is_empty(),
            #[cfg(feature = "nostr")]
            Self::Store => {
                let options = crate::nostr::Options::default().storage(storage.clone());
                crate::nostr::is_store(&options, path)?
            }
            #[cfg(not(feature = "nostr"))]
            Self::Store => false,
        })
    }
}

fn ledger_options(storage: &Arc<dyn Storage>) -> ledger::Options {
    ledger::Options::default().storage(storage.clone())
}

/// Whether a directory without a log holds other files than those of an interrupted first backup.
pub fn holds_others(storage: &Arc<dyn Storage>, path: &Path) -> Result<bool> {
    let below = path.join(".urb").join("log");
    if has_begun(&**storage, &sidecar_dir(path))? || has_begun(&**storage, &sidecar_dir(&below))? {
        return Ok(false);
    }
    Ok(storage.is_dir(path)
        && names_in(&**storage, path)?.iter().any(|name| name != SIDECAR_NAME && name != ".urb"))
}
