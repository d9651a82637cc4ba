//! Makes a book in a directory of its own, and renames the complete book's files to their places.
//!
//! ```text
//! 1 DIR/.converting      the book, all of it synced, and closed
//! 2 DIR/.deedbook/lock   made if it is missing, and held as by any writer; a log in DIR by now stays
//! 3 meta.bin, book.log   renamed to DIR, which is synced after each
//! 4 mark, index, ...     renamed to DIR/.deedbook, which is synced; of a book without deeds before 3,
//!                        as nothing but its mark says which event comes first
//! 5 DIR/.converting      removed
//! ```
//!
//! A crash before the rename of `book.log` leaves a directory without a log, and the next attempt
//! begins again. As long as a log lies in `.converting`, `meta.bin` in the directory is ours, and a
//! `.deedbook` without a trace of records is no book's. A crash after the rename leaves a complete
//! book: its metadata was renamed before, and the rest is only advisory.

use std::path::Path;

use crate::book::format::BookFormat;
use crate::book::layouts::refuse_padded;
use crate::book::names::{LOG_NAME, META_NAME};
use crate::book::options::Options;
use crate::error::{Error, ErrorKind, Result};
use crate::log::{Format as _, Place, look_first};
use crate::mode::Mode;
use crate::saving::{ensure_dir, refuse_link};
use crate::sidecar::{
    LOCK_NAME, PRIVATE_MODE, SIDECAR_NAME, WriterLock, sidecar_dir, tells_of_no_record,
};
use crate::storage::segmented::remove;
use crate::storage::{Aside, LockAttempt, LockGuard, Storage, located, names_in, sync_dir};

const ASIDE_NAME: &str = ".converting";
/// Renaming, in the words of errors.
const NAMING: &str = "give the copy its name";

/// A book under construction, and its place.
pub struct NewBook<'a> {
    options: &'a Options,
    place: Place,
    /// The directory of the construction.
    aside: Aside<'a>,
    /// Whether the directory is new.
    made: bool,
    /// Whether this attempt made the directory's `.deedbook`.
    made_sidecar: bool,
    /// The writer's, from when the files are renamed.
    lock: Option<WriterLock>,
    /// Locks the directory: two conversions at once would write one book.
    _lock: Box<dyn LockGuard>,
}

impl<'a> NewBook<'a> {
    /// The place of a book that must not exist. Removes files of an earlier attempt.
    pub fn new(options: &'a Options, target: &Path) -> Result<Self> {
        let storage = &*options.storage;
        let place = BookFormat::place(options, &located(storage, target)?)?;
        place.refuse_tail()?;
        refuse_log(options, &place)?;
        refuse_padded(options.layout.unwrap_or_default(), &place.log)?;
        let dir = &place.dir;
        let made = !storage.is_dir(dir);
        ensure_dir(storage, dir, options.file_mode)?;
        let lock = match storage.lock(dir, false).map_err(|e| Error::io("lock", dir, e))? {
            LockAttempt::Held(lock) => lock,
            LockAttempt::Busy(holder) => {
                let message = "another copy to this place is being made";
                let error = Error::new(ErrorKind::Locked, message).at(dir);
                return Err(error.with_holder(holder));
            }
        };
        // Another one may have ended meanwhile.
        refuse_log(options, &place)?;
        let aside = Aside::at(storage, dir.join(ASIDE_NAME));
        let (lock, _lock) = (None, lock);
        let mut new = Self { options, place, aside, made, made_sidecar: false, lock, _lock };
        new.clear()?;
        Ok(new)
    }

    pub fn path(&self) -> &Path {
        self.aside.path()
    }

    fn storage(&self) -> &'a dyn Storage {
        &*self.options.storage
    }

    /// Remove the files of an earlier attempt, or refuse a directory with a part of another book.
    fn clear(&mut self) -> Result<()> {
        let begun = self.holds_log()?;
        let Place { dir, sidecar, .. } = self.place.clone();
        let has_meta = holds(self.storage(), &dir, META_NAME)?;
        let of_another = |path: &Path| {
            let message = "the directory of the copy holds what belongs to another book";
            Err(Error::new(ErrorKind::AlreadyExists, message).at(path))
        };
        if has_meta && !begun {
            return of_another(&dir.join(META_NAME));
        }
        if holds(self.storage(), &dir, SIDECAR_NAME)?
            && !tells_of_no_record(self.storage(), &sidecar)?
        {
            return of_another(&sidecar);
        }
        if has_meta {
            // Under the lock: no writer has come meanwhile, whose metadata this would be.
            let _lock = self.lock_writers()?;
            self.remove_meta()?;
        } else if begun {
            // The attempt may have been killed between its removal and the sync.
            sync_dir(self.storage(), &dir)?;
        }
        self.aside.remove(Aside::LEFT)
    }

    /// Rename the files of the closed book to their places, durably. `is_empty`: the book has no
    /// deeds.
    pub fn put(&mut self, is_empty: bool) -> Result<()> {
        self.lock = Some(self.lock_writers()?);
        if is_empty {
            self.put_sidecar()?;
        }
        for put in [META_NAME, LOG_NAME] {
            self.aside.publish_files(&self.place.dir, |name| name == put, NAMING)?;
        }
        if !is_empty {
            self.put_sidecar()?;
        }
        self.aside.remove(Aside::LEFT)
    }

    /// Rename the files in the book's `.deedbook`, except for the lock, because the lock at the
    /// place is held.
    fn put_sidecar(&self) -> Result<()> {
        let beside = Aside::at(self.storage(), sidecar_dir(self.path()));
        beside.publish_files(&self.place.sidecar, |name| name != LOCK_NAME, NAMING)
    }

    /// Remove the files of the book, unless renamed to their place. Files that a writer made
    /// meanwhile stay. An error here is dropped: the caller reports the error that ended the work.
    pub fn give_up(&self) {
        // Before the lock was taken, metadata in the directory can only be a writer's.
        let stays = || !self.holds_log().unwrap_or(false) || self.remove_meta().is_err();
        if self.lock.is_some() && stays() {
            return;
        }
        let _ = self.aside.remove(Aside::LEFT);
        // A directory with files stays.
        if self.made_sidecar {
            let _ = self.storage().remove_dir(&self.place.sidecar);
        }
        if self.made {
            let _ = self.storage().remove_dir(&self.place.dir);
        }
    }

    /// Take the lock of the book's writer. No log may be there by then.
    fn lock_writers(&mut self) -> Result<WriterLock> {
        let (storage, sidecar) = (self.storage(), &self.place.sidecar);
        self.made_sidecar |= !storage.is_dir(sidecar);
        refuse_link(storage, sidecar)?;
        ensure_dir(storage, sidecar, PRIVATE_MODE)?;
        let lock = WriterLock::of_sidecar(storage, sidecar, &self.options.lock_timeout)?;
        refuse_log(self.options, &self.place)?;
        Ok(lock)
    }

    /// Whether the log still lies aside. Before its rename, metadata in the directory belongs to
    /// it.
    fn holds_log(&self) -> Result<bool> {
        Ok(self.storage().is_dir(self.path()) && holds(self.storage(), self.path(), LOG_NAME)?)
    }

    /// Remove the metadata that was renamed already, durably: without `.converting`, nobody would
    /// know its owner.
    fn remove_meta(&self) -> Result<()> {
        let path = self.place.dir.join(META_NAME);
        remove(self.storage(), &path).map_err(|e| Error::io(Aside::LEFT, &path, e))?;
        sync_dir(self.storage(), &self.place.dir)
    }
}

/// Refuse a place that has a log, of any format.
fn refuse_log(options: &Options, place: &Place) -> Result<()> {
    look_first::<BookFormat>(options, &*options.storage, place, Mode::Create)
}

fn holds(storage: &dyn Storage, dir: &Path, name: &str) -> Result<bool> {
    Ok(names_in(storage, dir)?.iter().any(|there| there == name))
}
