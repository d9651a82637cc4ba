//! A book is made in a directory of its own, and renamed to its place once it is complete.
//!
//! ```text
//! 1 DIR/.converting    the book, all of it synced
//! 2 meta.bin, then book.log, then .deedbook renamed to DIR, which is synced after each
//! ```
//!
//! A crash before `book.log` is renamed leaves a directory without a log, and the next attempt begins
//! again. A crash after it leaves a complete book: its metadata was renamed before, and `.deedbook` is only
//! advisory.

use std::io;
use std::path::{Path, PathBuf};

use super::codec::{LOG_NAME, META_NAME};
use super::format::{BookFormat, refuse_padded};
use super::options::Options;
use crate::error::{Error, ErrorKind, Result};
use crate::log::format::Format as _;
use crate::mend::{make_dir, remove_tree};
use crate::mode::Mode;
use crate::sidecar::sidecar_dir;
use crate::storage::{LockAttempt, LockGuard, located};

const ASIDE_NAME: &str = ".converting";

/// The place of a book that is being made.
pub struct Aside<'a> {
    options: &'a Options,
    dir: PathBuf,
    /// Whether the directory is new.
    made: bool,
    /// Locks the directory: two conversions at once would write one book.
    _lock: Box<dyn LockGuard>,
}

impl<'a> Aside<'a> {
    /// The place of a book that must not exist. Files that an earlier attempt left are removed.
    pub fn new(options: &'a Options, target: &Path) -> Result<Self> {
        let storage = &*options.storage;
        let place = BookFormat::place(options, &located(storage, target)?)?;
        BookFormat::prepare(options, &place, Mode::Create)?;
        refuse_padded(options.layout.unwrap_or_default(), &place.log)?;
        let dir = place.dir.to_path_buf();
        let made = !storage.is_dir(&dir);
        make_dir(storage, &dir)?;
        let lock = match storage.lock(&dir, false).map_err(|e| Error::io("lock", &dir, e))? {
            LockAttempt::Held(lock) => lock,
            LockAttempt::Busy(holder) => {
                let message = "another copy to this place is being made";
                let error = Error::new(ErrorKind::Locked, message).at(&dir);
                return Err(error.with_holder(holder));
            }
        };
        // Another one may have ended meanwhile.
        BookFormat::prepare(options, &place, Mode::Create)?;
        let new = Self { options, dir, made, _lock: lock };
        new.clear()?;
        Ok(new)
    }

    /// Where the book is made.
    pub fn path(&self) -> PathBuf {
        self.dir.join(ASIDE_NAME)
    }

    fn clear(&self) -> Result<()> {
        let Self { options, dir, .. } = self;
        let (storage, aside) = (&*options.storage, self.path());
        if storage.is_dir(&aside) {
            // It was renamed before the log. Without `.converting`, nothing would tell whose it is.
            self.remove_meta()?;
            return remove_tree(storage, &aside, "remove what was left");
        }
        let names = storage.list(dir).map_err(|e| Error::io("list the directory", dir, e))?;
        let sidecar = sidecar_dir(dir);
        let ours = [META_NAME.as_ref(), sidecar.file_name().unwrap_or_default()];
        match names.iter().find(|name| ours.contains(&name.as_os_str())) {
            None => Ok(()),
            Some(name) => {
                let message = "the directory of the copy holds what belongs to another book";
                Err(Error::new(ErrorKind::AlreadyExists, message).at(&dir.join(name)))
            }
        }
    }

    /// Remove the metadata that was renamed already, durably: an earlier attempt to may have been killed.
    fn remove_meta(&self) -> Result<()> {
        let Self { options, dir, .. } = self;
        let path = dir.join(META_NAME);
        match options.storage.remove(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            done => done.map_err(|e| Error::io("remove what was left", &path, e))?,
        }
        options.storage.sync_dir(dir).map_err(|e| Error::io("sync the directory", dir, e))
    }

    /// Rename the closed book to its place, durably.
    pub fn put(&self) -> Result<()> {
        let Self { options, dir, .. } = self;
        let (storage, aside) = (&*options.storage, self.path());
        let sidecar = sidecar_dir(dir);
        let names =
            [META_NAME.as_ref(), LOG_NAME.as_ref(), sidecar.file_name().unwrap_or_default()];
        let there = storage.list(&aside).map_err(|e| Error::io("list the directory", &aside, e))?;
        for name in names.into_iter().filter(|name| there.iter().any(|there| there == name)) {
            let place = dir.join(name);
            storage
                .rename(&aside.join(name), &place)
                .map_err(|e| Error::io("give the copy its name", &place, e))?;
            storage.sync_dir(dir).map_err(|e| Error::io("sync the directory", dir, e))?;
        }
        remove_tree(storage, &aside, "remove what was left")
    }

    /// Remove the files of the book, unless it has its place. An error of this is dropped: the caller reports
    /// the one that ended the work.
    pub fn give_up(&self) {
        let storage = &*self.options.storage;
        let has_log = |names: Vec<_>| names.iter().any(|name| name == LOG_NAME);
        if storage.list(&self.dir).map_or(true, has_log) {
            return;
        }
        if self.remove_meta().is_err() {
            return;
        }
        let _ = remove_tree(storage, &self.path(), "remove what was left");
        if self.made {
            let _ = storage.remove_dir(&self.dir);
        }
    }
}
