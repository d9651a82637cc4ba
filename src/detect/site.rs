//! A path and the names there: the formats recognise their logs by them.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::sidecar::SIDECAR_NAME;
use crate::storage::Storage;

/// A path under a look.
pub struct Site<'a> {
    pub storage: &'a Arc<dyn Storage>,
    pub path: &'a Path,
    /// The names in a directory; `None` for anything else. A name that is not UTF-8 belongs to no format.
    names: Option<Vec<String>>,
}

impl<'a> Site<'a> {
    /// `None` if nothing lies there.
    pub fn at(storage: &'a Arc<dyn Storage>, path: &'a Path) -> Result<Option<Self>> {
        let names = match storage.list(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) if e.kind() == io::ErrorKind::NotADirectory => None,
            names => {
                let names = names.map_err(|e| Error::io("list the directory", path, e))?;
                Some(names.into_iter().filter_map(|name| name.into_string().ok()).collect())
            }
        };
        Ok(Some(Self { storage, path, names }))
    }

    pub fn has(&self, name: &str) -> bool {
        self.names.iter().flatten().any(|found| found == name)
    }

    /// The first name in the directory that a format recognises.
    pub fn first(&self, recognises: impl Fn(&str) -> bool) -> Option<String> {
        self.names.iter().flatten().filter(|name| recognises(name)).min().cloned()
    }

    /// The first such name in a directory below.
    pub fn first_in(&self, dir: &str, recognises: impl Fn(&str) -> bool) -> Result<Option<String>> {
        let found =
            Site::at(self.storage, &self.path.join(dir))?.and_then(|dir| dir.first(recognises));
        Ok(found.map(|name| format!("{dir}/{name}")))
    }

    pub fn is_file(&self) -> bool {
        self.names.is_none()
    }

    /// The last part of the path.
    pub fn name(&self) -> &'a str {
        self.path.file_name().and_then(OsStr::to_str).unwrap_or_default()
    }
}

/// The sidecar of a log in a file: several files of a directory have one each.
pub fn sidecar_of_file(storage: &dyn Storage, path: &Path) -> Option<PathBuf> {
    let path = storage.absolute(path).ok()?;
    Some(path.parent()?.join(SIDECAR_NAME).join(path.file_name()?))
}
