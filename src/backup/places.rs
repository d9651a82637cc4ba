//! The two places of a backup: the source log, and the target if it may take the log.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::source::is_file;
use super::target::has_begun;
use crate::book::LOG_NAME;
use crate::detect::{Kind, require_on};
use crate::error::{Error, ErrorKind, Result};
use crate::log::Place;
use crate::sidecar::{SIDECAR_NAME, sidecar_dir};
use crate::storage::{Storage, names_in};

/// The source log.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    pub kind: Kind,
    /// Whether the log is one file, and no directory.
    pub single: bool,
}

impl Source {
    /// The log at a path. A file of a log in a directory is refused.
    pub fn at(storage: &Arc<dyn Storage>, path: &Path) -> Result<Self> {
        let single = !storage.is_dir(path);
        if single {
            is_file(&**storage, path)?;
        }
        let found = require_on(storage, path, None)?;
        let (shown, title) = (path.display(), found.kind.title());
        let refuse = |message| Err(Error::new(ErrorKind::InvalidArgument, message));
        if found.saved {
            refuse(format!("{shown} is what was cut off a {title} and saved; copy it as a file"))
        } else if single && found.kind != Kind::Wal {
            refuse(format!("{shown} is a file of a {title}: name its directory"))
        } else {
            Ok(Self { kind: found.kind, single })
        }
    }

    /// The paths of such a log.
    pub fn place(self, path: &Path) -> Place {
        match self.kind {
            Kind::Book => Place::file_in(path, LOG_NAME),
            _ if self.single => Place::file(path),
            _ => Place::directory(path),
        }
    }

    /// Refuse a target that can be no backup of the log. Nothing is changed.
    pub fn check_target(
        self,
        storage: &Arc<dyn Storage>,
        source: &Path,
        target: &Path,
    ) -> Result<()> {
        let refuse = |kind, message: String| Err(Error::new(kind, message));
        let (here, there) = (source.display(), target.display());
        let (ours, theirs) = (resolved(&**storage, source), resolved(&**storage, target));
        if ours == theirs {
            return refuse(ErrorKind::InvalidArgument, format!("{there} is the log itself"));
        }
        if !self.single && (theirs.starts_with(&ours) || ours.starts_with(&theirs)) {
            let message = format!("{here} and {there} lie in each other: choose another directory");
            return refuse(ErrorKind::InvalidArgument, message);
        }
        let is_dir = storage.is_dir(target);
        if !is_dir && !is_file(&**storage, target)? {
            return Ok(());
        }
        if self.single == is_dir {
            let message = match is_dir {
                true => format!("{there} is a directory, {here} a file"),
                false => format!("{there} is no directory as {here} is"),
            };
            return refuse(ErrorKind::NotALog, message);
        }
        match require_on(storage, target, None) {
            Ok(found) if found.kind == self.kind => Ok(()),
            Ok(found) => {
                let title = found.kind.title();
                let message = format!("{there} holds a {title}, {here} another format");
                refuse(ErrorKind::NotALog, message)
            }
            Err(e) if e.kind() != ErrorKind::Missing => Err(e),
            Err(_) if is_dir && holds_others(storage, target)? => {
                let message =
                    format!("{there} holds other files and no log: choose another directory");
                refuse(ErrorKind::InvalidArgument, message)
            }
            Err(_) => Ok(()),
        }
    }
}

/// Whether a directory without a log holds other files than those of an interrupted first backup.
fn holds_others(storage: &Arc<dyn Storage>, path: &Path) -> Result<bool> {
    let below = path.join(".urb").join("log");
    if has_begun(&**storage, &sidecar_dir(path))? || has_begun(&**storage, &sidecar_dir(&below))? {
        return Ok(false);
    }
    Ok(names_in(&**storage, path)?.iter().any(|name| name != SIDECAR_NAME && name != ".urb"))
}

/// A path without links, as far as the path exists.
fn resolved(storage: &dyn Storage, path: &Path) -> PathBuf {
    match (storage.canonical(path), path.parent(), path.file_name()) {
        (Ok(canonical), ..) => canonical,
        (Err(_), Some(parent), Some(name)) => resolved(storage, parent).join(name),
        _ => path.to_path_buf(),
    }
}
