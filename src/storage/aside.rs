//! Builds files and directories under other names, and renames them when whole.
//!
//! ```text
//! 1 begin      removes the files of an attempt that failed or was killed
//! 2            the caller makes the directory, and syncs all of it
//! 3 publish    renames it, then syncs the directory that it went to and the one that it came from
//! ```
//!
//! A crash before the rename leaves the place unchanged. A crash after the rename leaves the new
//! content. Dropping an [`Aside`] removes nothing, because a later writer may publish the same
//! directory: see `book/pier/publish.rs`.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use super::segmented::remove;
use super::{Storage, names_in, write_full};
use crate::error::{Error, Result};

/// A directory under construction.
#[derive(Debug)]
pub struct Aside<'a> {
    storage: &'a dyn Storage,
    path: PathBuf,
}

impl<'a> Aside<'a> {
    /// Errors name the removal with this text.
    pub const LEFT: &'static str = "remove what was left";

    /// The directory of an earlier attempt, unchanged.
    pub fn at(storage: &'a dyn Storage, path: PathBuf) -> Self {
        Self { storage, path }
    }

    /// A new attempt: remove the directory of an earlier attempt.
    pub fn begin(storage: &'a dyn Storage, path: PathBuf) -> Result<Self> {
        let aside = Self::at(storage, path);
        aside.remove(Self::LEFT)?;
        Ok(aside)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Remove the directory with its files, if there is one. Remove a symbolic link, not its
    /// target. Errors say that the caller cannot do `doing`.
    pub fn remove(&self, doing: &str) -> Result<()> {
        remove_tree(self.storage, &self.path, doing)
    }

    /// Rename the directory to `to`, durably. The caller has synced its files.
    pub fn publish(&self, to: &Path, doing: &str) -> Result<()> {
        self.storage.rename(&self.path, to).map_err(|e| Error::io(doing, to, e))?;
        sync_dir(self.storage, above(to))?;
        sync_dir(self.storage, above(&self.path))
    }

    /// Rename the files chosen by `which` into the directory `to`, sorted by name, durably.
    pub fn publish_files(
        &self,
        to: &Path,
        which: impl Fn(&OsStr) -> bool,
        doing: &str,
    ) -> Result<()> {
        let mut names = names_in(self.storage, &self.path)?;
        names.retain(|name| which(name));
        names.sort();
        for name in &names {
            let place = to.join(name);
            let renamed = self.storage.rename(&self.path.join(name), &place);
            renamed.map_err(|e| Error::io(doing, &place, e))?;
        }
        if names.is_empty() { Ok(()) } else { sync_dir(self.storage, to) }
    }
}

fn remove_tree(storage: &dyn Storage, dir: &Path, doing: &str) -> Result<()> {
    if !storage.is_dir(dir) {
        return Ok(());
    }
    let fail = |path: &Path, e| Error::io(doing, path, e);
    if storage.is_link(dir) {
        return storage.remove(dir).map_err(|e| fail(dir, e));
    }
    for name in storage.list(dir).map_err(|e| fail(dir, e))? {
        let path = dir.join(name);
        match storage.is_dir(&path) {
            true => remove_tree(storage, &path, doing)?,
            false => storage.remove(&path).map_err(|e| fail(&path, e))?,
        }
    }
    storage.remove_dir(dir).map_err(|e| fail(dir, e))
}

/// Make `path` hold exactly `bytes`, all or nothing: temporary file, fsync, rename, fsync of the
/// directory. When this returns, the new content is durable.
pub fn replace(storage: &dyn Storage, path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".tmp");
    replace_through(storage, path, &path.with_file_name(name), bytes, mode)
}

/// As [`replace`], through another temporary file of the directory. Callers choose the names of
/// some files, and `NAME.tmp` may be one of the names.
pub fn replace_through(
    storage: &dyn Storage,
    path: &Path,
    temporary: &Path,
    bytes: &[u8],
    mode: u32,
) -> io::Result<()> {
    remove(storage, temporary)?;
    let file = storage.create_new(temporary, mode)?;
    let written = write_full(&*file, bytes, 0).and_then(|()| file.sync_data());
    drop(file);
    if written.is_err() {
        // Ignored: on a full disk the removal may fail, too.
        let _ = storage.remove(temporary);
    }
    written.and_then(|()| move_to(storage, temporary, path))
}

/// Rename a file or a directory, durably: the directory that gets the name is synced first.
pub fn move_to(storage: &dyn Storage, from: &Path, to: &Path) -> io::Result<()> {
    storage.rename(from, to)?;
    storage.sync_dir(above(to))?;
    if above(from) == above(to) { Ok(()) } else { storage.sync_dir(above(from)) }
}

pub fn sync_dir(storage: &dyn Storage, dir: &Path) -> Result<()> {
    storage.sync_dir(dir).map_err(|e| Error::io("sync the directory", dir, e))
}

/// The directory that holds a path.
pub fn above(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}
