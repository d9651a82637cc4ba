//! A path and the names in it, by which the formats recognise their logs.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::sidecar::SIDECAR_NAME;
use crate::storage::{Disk, Lies, Storage};

/// A path that is looked at.
pub struct Site<'a> {
    pub path: &'a Path,
    /// The names in a directory, in order; `None` for anything else. A name that is not UTF-8 belongs to
    /// no format.
    pub names: Option<Vec<String>>,
}

impl<'a> Site<'a> {
    /// `None` if nothing lies there.
    pub fn at(path: &'a Path) -> Result<Option<Self>> {
        let names = match Disk.list(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) if e.kind() == io::ErrorKind::NotADirectory => None,
            names => {
                let names = names.map_err(|e| Error::io("list the directory", path, e))?;
                Some(texts(&names))
            }
        };
        Ok(Some(Self { path, names }))
    }

    pub fn has(&self, name: &str) -> bool {
        self.names.iter().flatten().any(|found| found == name)
    }

    /// The first name in the directory that a format recognises.
    pub fn first(&self, recognises: impl Fn(&str) -> bool) -> Option<String> {
        self.names.iter().flatten().find(|name| recognises(name)).cloned()
    }

    pub fn is_file(&self) -> bool {
        self.names.is_none()
    }

    /// The last part of the path.
    pub fn name(&self) -> &'a str {
        name_of(self.path)
    }
}

fn texts(names: &[impl AsRef<OsStr>]) -> Vec<String> {
    let texts = names.iter().filter_map(|name| name.as_ref().to_str());
    let mut texts: Vec<String> = texts.map(str::to_owned).collect();
    texts.sort_unstable();
    texts
}

/// The names in a directory, in order; none if it cannot be listed.
pub fn names_in(dir: &Path) -> Vec<String> {
    texts(&Disk.list(dir).unwrap_or_default())
}

/// The last part of a path.
pub fn name_of(path: &Path) -> &str {
    path.file_name().and_then(OsStr::to_str).unwrap_or_default()
}

/// Whether a regular file lies at a path, or where links there lead.
pub fn is_file(path: &Path) -> bool {
    matches!(Lies::behind(path), Ok(Lies::File(_)))
}

/// The sidecar of a log in a file: several files of a directory have one each.
pub fn sidecar_of_file(path: &Path) -> Option<PathBuf> {
    let path = Disk.absolute(path).ok()?;
    Some(path.parent()?.join(SIDECAR_NAME).join(path.file_name()?))
}
