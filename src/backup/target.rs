//! The target of a backup. One process at a time has the target, and a file there says whether the
//! last backup ended.
//!
//! ```text
//! .deedbook/backup     text with a checksum
//!   inode N      of this file: in a copy that another program made it is another one
//!   ended 0 0    the last backup ended: everything there is on stable storage
//!   begun N M    it did not; N bytes of the log are on stable storage. M is the epoch of a pier, else 0
//! ```
//!
//! The file says `begun`, durably, before the first change: a power cut may leave garbage at the
//! place of the copy. Later texts need not be durable: with an older text, the next backup only
//! copies more bytes again. Numbers have 20 digits: all texts have the same length, and a single
//! write replaces the text.

use std::cell::Cell;
use std::io;
use std::path::{Path, PathBuf};

use super::options::BackupOptions;
use super::source::{is_dir, is_file};
use crate::error::{Error, ErrorKind, Result};
use crate::log::Place;
use crate::saving::sync_above;
use crate::sidecar::note::value;
use crate::sidecar::{Found, Note, PRIVATE_MODE, WriterLock, is_missing, make_sidecar, with_sum};
use crate::storage::{Access, Storage, above, names_in, sync_dir, write_full};

const NAME: &str = "backup";

/// The state of the last backup, as the target notes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It ended.
    Ended,
    /// The backup did not end, and so many bytes of a part of the log are durable.
    Begun { durable: u64, part: u64 },
    /// There was no backup: another program made the files.
    Foreign,
}

/// The target of a backup, locked.
pub struct Target<'a> {
    pub storage: &'a dyn Storage,
    /// The bytes to write between two notes of the durable end.
    pub noted_every: u64,
    path: PathBuf,
    found: State,
    /// The part of the log that is copied now.
    part: Cell<u64>,
    /// Whether this backup has changed anything.
    has_begun: Cell<bool>,
    _lock: WriterLock,
}

impl<'a> Target<'a> {
    /// Lock the target, and sync the files that another program or an interrupted backup left unsynced.
    pub fn open(place: &Place, options: &'a BackupOptions) -> Result<Self> {
        let BackupOptions { lock_timeout, noted_every, .. } = options;
        let (storage, noted_every) = (&*options.storage, *noted_every);
        make_sidecar(storage, &place.sidecar)?;
        // Not on the log itself: readers of a ledger lock it, too.
        let lock = WriterLock::of_sidecar(storage, &place.sidecar, lock_timeout)?;
        let path = place.sidecar.join(NAME);
        let state = load(storage, &path)?;
        if state != State::Ended {
            sync_all(storage, place)?;
        }
        let (part, has_begun) = (Cell::new(0), Cell::new(false));
        Ok(Self { storage, noted_every, path, found: state, part, has_begun, _lock: lock })
    }

    /// Whether the last backup was interrupted: bytes after its marks may not be durable.
    pub fn was_interrupted(&self) -> bool {
        matches!(self.found, State::Begun { .. })
    }

    /// Go on with another part of the log: an epoch of a pier.
    pub fn go_on_with(&self, part: u64) {
        self.part.set(part);
    }

    /// The durable bytes of this part after an interrupted backup.
    pub fn durable(&self) -> u64 {
        match self.found {
            State::Begun { durable, part } if part == self.part.get() => durable,
            _ => 0,
        }
    }

    /// Note durably that a backup is under way, before the first change.
    pub fn begin(&self) -> Result<()> {
        if self.has_begun.replace(true) {
            return Ok(());
        }
        let is_new = self.found == State::Foreign;
        let fail = |e| Error::io("note the state of the backup", &self.path, e);
        self.note(self.durable())?;
        let file = self.storage.open(&self.path, Access::Read).map_err(fail)?;
        file.sync_data().map_err(fail)?;
        if is_new { sync_dir(self.storage, above(&self.path)) } else { Ok(()) }
    }

    /// Note that so many bytes of the log are durable.
    pub fn note(&self, durable: u64) -> Result<()> {
        self.store("begun", durable, self.part.get())
    }

    /// Say that the backup has ended.
    pub fn end(&self) -> Result<()> {
        if self.has_begun.get() || self.found != State::Ended {
            self.store("ended", 0, 0)?;
        }
        Ok(())
    }

    fn store(&self, what: &str, durable: u64, part: u64) -> Result<()> {
        let fail = |e| Error::io("note the state of the backup", &self.path, e);
        let file = match self.storage.open(&self.path, Access::Write) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                self.storage.create_new(&self.path, PRIVATE_MODE).map_err(fail)?
            }
            opened => opened.map_err(fail)?,
        };
        let inode = file.id().map_err(fail)?.inode;
        let text = with_sum(&format!("inode {inode:020}\n{what} {durable:020} {part:020}\n"));
        write_full(&*file, text.as_bytes(), 0).map_err(fail)
    }
}

/// Whether a backup has begun there.
pub fn has_begun(storage: &dyn Storage, sidecar: &Path) -> Result<bool> {
    is_file(storage, &sidecar.join(NAME))
}

fn load(storage: &dyn Storage, path: &Path) -> Result<State> {
    let note = Note { storage, path: path.to_path_buf(), what: "the state of the backup" };
    let lines = match note.find(is_missing)? {
        Found::Absent => return Ok(State::Foreign),
        Found::Damaged => return Ok(State::Begun { durable: 0, part: 0 }),
        Found::Lines(lines) => lines,
    };
    let file = storage.open(path, Access::Read).and_then(|file| file.id());
    let inode = file.map_err(|e| Error::io("look at the state of the backup", path, e))?.inode;
    let mut lines = lines.lines();
    let is_ours = value(lines.next(), "inode") == Some(&*format!("{inode:020}"));
    Ok(match lines.next() {
        _ if !is_ours => State::Foreign,
        line if value(line, "ended").is_some() => State::Ended,
        line => {
            let mut numbers = value(line, "begun").unwrap_or_default().split(' ');
            let mut number = || numbers.next().and_then(|number| number.parse().ok()).unwrap_or(0);
            State::Begun { durable: number(), part: number() }
        }
    })
}

/// Make the directory of a new backup, with the permissions of the log's.
pub fn make_target(storage: &dyn Storage, target: &Path, source: &Path) -> Result<()> {
    if storage.is_dir(target) {
        return Ok(());
    }
    storage.create_dir(target).map_err(|e| Error::io("create the backup", target, e))?;
    if let Ok(Some(mode)) = storage.mode(source) {
        let _ = storage.set_mode(target, mode & 0o777 | 0o700);
    }
    Ok(())
}

/// Sync the files of a target, and the names in its directories and the directories above.
fn sync_all(storage: &dyn Storage, place: &Place) -> Result<()> {
    if place.shares_dir() {
        let base = place.log.file_name().unwrap_or_default().as_encoded_bytes();
        for name in names_in(storage, &place.dir)? {
            if name.as_encoded_bytes().starts_with(base) {
                sync_file(storage, &place.dir.join(name))?;
            }
        }
    } else {
        sync_below(storage, &place.dir)?;
    }
    sync_below(storage, &place.sidecar)?;
    let mut dir = &*place.sidecar;
    while let Some(parent) = dir.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        sync_above(storage, dir)?;
        dir = parent;
    }
    Ok(())
}

fn sync_below(storage: &dyn Storage, dir: &Path) -> Result<()> {
    if !is_dir(storage, dir)? {
        return Ok(());
    }
    for name in names_in(storage, dir)? {
        let path = dir.join(name);
        match storage.is_dir(&path) {
            true if storage.is_link(&path) => {}
            true => sync_below(storage, &path)?,
            false => sync_file(storage, &path)?,
        }
    }
    sync(storage.sync_dir(dir), dir)
}

/// A backup has only regular files that the owner may read. Other files are not the backup's.
fn sync_file(storage: &dyn Storage, path: &Path) -> Result<()> {
    sync(storage.open(path, Access::Read).and_then(|file| file.sync_data()), path)
}

fn sync(done: io::Result<()>, path: &Path) -> Result<()> {
    use io::ErrorKind::{InvalidInput, NotFound, PermissionDenied};
    match done {
        Err(e) if matches!(e.kind(), InvalidInput | NotFound | PermissionDenied) => Ok(()),
        done => done.map_err(|e| Error::io("sync the backup", path, e)),
    }
}

/// The error of a target that is written, or backed up to, by somebody else.
pub fn name_holder(error: Error, target: &Path) -> Error {
    if error.kind() != ErrorKind::Locked {
        return error;
    }
    let who = error.holder().map_or("another process".into(), |pid| format!("process {pid}"));
    let message = format!("{} is open for writing, by {who}", target.display());
    Error::new(ErrorKind::Locked, message).with_holder(error.holder())
}
