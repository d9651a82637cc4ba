//! The logs at a path, and the destination of each.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use super::DATA_NAME;
use crate::book::epoch::epoch_in_name;
use crate::book::{LOG_NAME, Meta};
use crate::error::{Error, ErrorKind, Result};
use crate::saving::ensure_dir;
use crate::storage::{Access, Storage, located, read_full};

/// Directories of a destination that is a pier: `PIER/.urb/log/0iN`.
const PIER_DIRS: usize = 4;
/// `epoc.txt` and `vere.txt` are a number and a version.
const TEXT_BYTES_MAX: usize = 4096;

/// How a log lies on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Lmdb,
    Book,
}

impl Kind {
    /// The version in `epoc.txt` for an epoch of this kind.
    pub fn version(self) -> &'static str {
        match self {
            Self::Lmdb => "2",
            Self::Book => "3",
        }
    }

    fn file(self) -> &'static str {
        match self {
            Self::Lmdb => DATA_NAME,
            Self::Book => LOG_NAME,
        }
    }
}

/// One log.
#[derive(Clone, Debug)]
pub struct Leg {
    pub kind: Kind,
    pub source: PathBuf,
    pub dest: PathBuf,
    /// The epoch's number in a pier.
    pub epoch: Option<u64>,
}

/// Facts about a log before the copy.
#[derive(Clone)]
pub struct Looked {
    pub epoch: u64,
    pub events: Option<RangeInclusive<u64>>,
    pub meta: Meta,
}

/// All logs of a path, and the top directories of piers.
#[derive(Debug)]
pub struct Plan {
    pub parts: Vec<Leg>,
    pub top: Option<(PathBuf, PathBuf)>,
}

impl Plan {
    /// Look at the source, and refuse a destination that is none.
    pub fn of(storage: &dyn Storage, source: &Path, dest: &Path, to: Kind) -> Result<Self> {
        let (source, dest) = (located(storage, source)?, located(storage, dest)?);
        let log = source.join(".urb").join("log");
        let plan = if storage.is_dir(&log) {
            Self::of_pier(storage, log, dest.join(".urb").join("log"), to)?
        } else {
            Self::of_one(storage, source, dest, to)?
        };
        plan.parts.iter().try_for_each(|part| part.check_dest(storage, to))?;
        Ok(plan)
    }

    fn of_one(storage: &dyn Storage, source: PathBuf, dest: PathBuf, to: Kind) -> Result<Self> {
        let names_file = source.file_name().is_some_and(|name| name == DATA_NAME);
        let source = match source.parent() {
            Some(parent) if names_file && !storage.is_dir(&source) => parent.to_path_buf(),
            _ => source,
        };
        let refuse = |kind, message| Err(Error::new(kind, message).at(&source));
        if !storage.is_dir(&source) {
            return refuse(ErrorKind::Missing, "no directory there".to_owned());
        }
        if let Some((epoch, _)) = epochs(storage, &source)?.first() {
            let message =
                format!("the log of a pier, with the epoch 0i{epoch}; name the pier itself");
            return refuse(ErrorKind::InvalidArgument, message);
        }
        let is = |kind: Kind| storage.open(&source.join(kind.file()), Access::Read).is_ok();
        match (to, is(Kind::Lmdb), is(Kind::Book)) {
            (Kind::Book, true, _) => {}
            (Kind::Book, false, true) => {
                return refuse(ErrorKind::InvalidArgument, "a book already".to_owned());
            }
            (Kind::Lmdb, _, true) => {}
            (Kind::Lmdb, true, false) => {
                return refuse(ErrorKind::InvalidArgument, "in LMDB already".to_owned());
            }
            (_, false, false) => {
                let wanted = if to == Kind::Book { Kind::Lmdb } else { Kind::Book };
                let message = format!("neither a pier nor a directory with {}", wanted.file());
                return refuse(ErrorKind::Missing, message);
            }
        }
        let kind = if to == Kind::Book { Kind::Lmdb } else { Kind::Book };
        Ok(Self { parts: vec![Leg { kind, source, dest, epoch: None }], top: None })
    }

    fn of_pier(storage: &dyn Storage, source: PathBuf, dest: PathBuf, to: Kind) -> Result<Self> {
        let mut parts = Vec::new();
        for (epoch, source) in epochs(storage, &source)? {
            let kind = kind_of(storage, &source)?;
            let dest = dest.join(format!("0i{epoch}"));
            parts.push(Leg { kind, source, dest, epoch: Some(epoch) });
        }
        if parts.is_empty() {
            // A pier of version 1: its events lie in the top directory itself.
            let dest = dest.join("0i0");
            parts.push(Leg { kind: Kind::Lmdb, source: source.clone(), dest, epoch: Some(0) });
            if to == Kind::Lmdb {
                let message = "a pier without epochs is in LMDB already";
                return Err(Error::new(ErrorKind::InvalidArgument, message).at(&source));
            }
        }
        if storage.is_dir(&dest) {
            for (epoch, path) in epochs(storage, &dest)? {
                if !parts.iter().any(|part| part.epoch == Some(epoch)) {
                    let message = format!("the destination has an epoch {epoch}, the source none");
                    return Err(Error::new(ErrorKind::AlreadyExists, message).at(&path));
                }
            }
        }
        Ok(Self { parts, top: Some((source, dest)) })
    }
}

impl Leg {
    /// Refuse a destination that holds a log of the other kind: the source itself, for one.
    fn check_dest(&self, storage: &dyn Storage, to: Kind) -> Result<()> {
        let other = if to == Kind::Book { Kind::Lmdb } else { Kind::Book };
        let path = self.dest.join(other.file());
        if storage.open(&path, Access::Read).is_ok() {
            let message = format!("the destination holds a {}", other.file());
            return Err(Error::new(ErrorKind::AlreadyExists, message).at(&self.dest));
        }
        Ok(())
    }

    /// Make the directories above the destination, durably, and make the names of existing
    /// directories durable. The directories above the given destination only have to exist.
    pub fn make_dirs(&self, storage: &dyn Storage, file_mode: u32) -> Result<()> {
        let own = if self.epoch.is_some() { PIER_DIRS } else { 1 };
        let paths = self.dest.ancestors().enumerate();
        let made: Vec<_> =
            paths.take_while(|(above, path)| *above < own || !storage.is_dir(path)).collect();
        made.iter().rev().try_for_each(|(_, path)| ensure_dir(storage, path, file_mode))
    }
}

/// The epochs in a directory, in order.
fn epochs(storage: &dyn Storage, dir: &Path) -> Result<Vec<(u64, PathBuf)>> {
    let names = storage.list(dir).map_err(|e| Error::io("list the epochs", dir, e))?;
    let paths = names.into_iter().map(|name| dir.join(name));
    let mut found: Vec<_> = paths
        .filter_map(|path| epoch_in_name(&path).map(|epoch| (epoch, path)))
        .filter(|(_, path)| storage.is_dir(path))
        .collect();
    found.sort();
    Ok(found)
}

/// The kind in an epoch's `epoc.txt`.
fn kind_of(storage: &dyn Storage, dir: &Path) -> Result<Kind> {
    let path = dir.join("epoc.txt");
    let refuse = |kind, message| Err(Error::new(kind, message).at(&path));
    let Some(text) = read_text(storage, &path)? else {
        return refuse(ErrorKind::Missing, "an epoch without its epoc.txt".to_owned());
    };
    match String::from_utf8_lossy(&text).trim() {
        "1" | "2" => Ok(Kind::Lmdb),
        "3" => Ok(Kind::Book),
        other => {
            let message = format!("an epoch of version {other:?}, must be 1, 2 or 3");
            refuse(ErrorKind::Unsupported, message)
        }
    }
}

/// The bytes of a small file; `None` if it is not there.
pub fn read_text(storage: &dyn Storage, path: &Path) -> Result<Option<Vec<u8>>> {
    let fail = |e| Error::io("read the epoch", path, e);
    let file = match storage.open(path, Access::Read) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(fail)?,
    };
    let mut bytes = vec![0; TEXT_BYTES_MAX];
    let read = read_full(&*file, &mut bytes, 0).map_err(fail)?;
    bytes.truncate(read);
    Ok(Some(bytes))
}
