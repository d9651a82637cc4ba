//! A pier's event log: the epochs `0iN` in `.urb/log`, each a book, read as one log.
//!
//! N is the last event before the epoch, so each epoch must begin right after the last event of the
//! epoch before. Finished epochs are only read. The last epoch takes appends, until [`Pier::roll`]
//! starts another. [`Pier::retain`] drops first epochs, and the pier then begins with the first
//! remaining epoch.
//!
//! Vere keeps the metadata of a pier in the LMDB environment `.urb/log/data.mdb`, and the last
//! epoch's `meta.bin` is a copy. Without an environment, `meta.bin` is the metadata: see
//! [`Pier::meta`].
//!
//! ```
//! use deedbook::book::pier::Pier;
//!
//! # fn main() -> deedbook::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let path = dir.path().join("zod");
//! let pier = Pier::append_to(&path)?; // .urb/log/0i0
//! pier.append(0, b"first")?;
//! pier.roll()?; // .urb/log/0i1
//! assert_eq!(pier.append(0, b"second")?, 2);
//! pier.close()?;
//!
//! let pier = Pier::open(&path)?;
//! assert_eq!(pier.epochs()?.len(), 2);
//! assert_eq!(pier.read(1)?.jam, b"first");
//! assert_eq!(pier.iter(..)?.count(), 2);
//! # Ok(())
//! # }
//! ```

mod append;
mod follow;
mod mend;
mod metadata;
mod open;
mod part;
mod places;
mod publish;
mod read;
mod retain;
mod roll;
mod transact;

use std::fmt::{self, Debug, Formatter};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::names::{FORMAT, LOG_NAME};
use super::{Book, Layout, Options};
use crate::error::{Durable, Error, ErrorKind, Result};
use crate::ground::lines::{Held, hold};
use crate::ground::locks::atomic::{AtomicBool, Ordering};
use crate::ground::locks::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, lock};
use crate::log::Stats;
use crate::mode::Mode;
use crate::scan::Verdict;
use crate::sidecar::WriterLock;
use part::OpenEpoch;

pub use follow::Follow;
pub use mend::Report;

/// An open pier. Handles may be shared by threads; clones are the same handle.
#[derive(Clone)]
pub struct Pier {
    shared: Arc<Shared>,
}

struct Shared {
    path: PathBuf,
    /// `.urb/log`.
    dir: PathBuf,
    /// `.urb/log/.deedbook`.
    sidecar: PathBuf,
    mode: Mode,
    options: Options,
    /// At least one epoch, in the order of events. Changes with a roll, and when a reader meets a roll.
    parts: RwLock<Vec<OpenEpoch>>,
    /// Counts of the epochs finished by this handle.
    finished: Mutex<Stats>,
    closed: AtomicBool,
    /// Dropped after the epochs.
    lock: Mutex<Option<WriterLock>>,
}

impl Debug for Pier {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Shared { path, mode, closed, .. } = &*self.shared;
        f.debug_struct("Pier")
            .field("path", path)
            .field("mode", mode)
            .field("closed", &closed.load(Ordering::Acquire))
            .finish_non_exhaustive()
    }
}

/// An epoch of a pier at present.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Epoch {
    /// The N of `0iN`: the last event before the epoch.
    pub number: u64,
    /// Its directory.
    pub path: PathBuf,
    /// Layout on disk.
    pub layout: Layout,
    /// First and last event; `None` while empty.
    pub bounds: Option<(u64, u64)>,
    /// Number of deeds.
    pub deeds: u64,
    /// Bytes of the log up to the end of the last deed.
    pub bytes: u64,
    /// How the log ended when it was opened.
    pub verdict: Verdict,
}

impl Options {
    /// Open the pier in a directory with a `.urb/log`, or that `.urb/log` itself. A mode for appending creates a
    /// missing pier with one epoch. [`Options::epoch`] is the number of the first epoch, of a new or existing pier.
    ///
    /// # Errors
    ///
    /// Fails with [`Missing`](crate::ErrorKind::Missing) where there is nothing to read,
    /// [`NotALog`](crate::ErrorKind::NotALog) for other files, [`Locked`](crate::ErrorKind::Locked) while another
    /// handle appends, and [`Corrupt`](crate::ErrorKind::Corrupt) or [`LostRecords`](crate::ErrorKind::LostRecords)
    /// for damage that `recovery` does not allow; see [Errors](crate#errors).
    pub fn open_pier(&self, path: impl AsRef<Path>, mode: Mode) -> Result<Pier> {
        Pier::open_with(path.as_ref(), mode, self).map_err(|error| error.of(FORMAT))
    }
}

impl Pier {
    /// Open a pier for reading.
    ///
    /// # Errors
    ///
    /// Fails with [`Missing`](crate::ErrorKind::Missing) where there is nothing to read,
    /// [`NotALog`](crate::ErrorKind::NotALog) for other files, [`Locked`](crate::ErrorKind::Locked) while another
    /// handle appends, and [`Corrupt`](crate::ErrorKind::Corrupt) or [`LostRecords`](crate::ErrorKind::LostRecords)
    /// for damage that `recovery` does not allow; see [Errors](crate#errors).
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Options::default().open_pier(path, Mode::Read)
    }

    /// Open a pier for appending, creating it if it is missing.
    ///
    /// # Errors
    ///
    /// Fails with [`Missing`](crate::ErrorKind::Missing) where there is nothing to read,
    /// [`NotALog`](crate::ErrorKind::NotALog) for other files, [`Locked`](crate::ErrorKind::Locked) while another
    /// handle appends, and [`Corrupt`](crate::ErrorKind::Corrupt) or [`LostRecords`](crate::ErrorKind::LostRecords)
    /// for damage that `recovery` does not allow; see [Errors](crate#errors).
    pub fn append_to(path: impl AsRef<Path>) -> Result<Self> {
        Options::default().open_pier(path, Mode::Append)
    }

    /// The path given at the opening.
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// The directory of the epochs, `.urb/log`.
    pub fn log_dir(&self) -> &Path {
        &self.shared.dir
    }

    /// The handle's permissions.
    pub fn mode(&self) -> Mode {
        self.shared.mode
    }

    /// The options of the opening.
    pub fn options(&self) -> &Options {
        &self.shared.options
    }

    /// The epochs in the order of their events.
    ///
    /// # Errors
    ///
    /// Fails for a closed handle; see [Errors](crate#errors).
    pub fn epochs(&self) -> Result<Vec<Epoch>> {
        self.with(|parts| parts.iter().map(OpenEpoch::shown).collect())
    }

    /// First and last event, or `None` without events.
    ///
    /// # Errors
    ///
    /// Fails for a closed handle; see [Errors](crate#errors).
    pub fn bounds(&self) -> Result<Option<RangeInclusive<u64>>> {
        self.with(|parts| {
            let (epoch, last) = ends_of(parts)?;
            Ok((last > epoch).then(|| epoch + 1..=last))
        })
    }

    /// The last event before the pier.
    ///
    /// # Errors
    ///
    /// Fails for a closed handle; see [Errors](crate#errors).
    pub fn epoch(&self) -> Result<u64> {
        self.with(|parts| Ok(ends_of(parts)?.0))
    }

    /// Last event; in an empty pier, the last event before the pier.
    ///
    /// # Errors
    ///
    /// Fails for a closed handle; see [Errors](crate#errors).
    pub fn last(&self) -> Result<u64> {
        self.on_last(Book::last)
    }

    /// Number of deeds.
    ///
    /// # Errors
    ///
    /// Fails for a closed handle; see [Errors](crate#errors).
    pub fn len(&self) -> Result<u64> {
        self.with(|parts| parts.iter().map(|part| part.book.len()).sum())
    }

    /// Whether there are no deeds.
    ///
    /// # Errors
    ///
    /// Fails for a closed handle; see [Errors](crate#errors).
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Last event known to be on stable storage. All earlier epochs were synced when the last epoch began. `None` for a
    /// reader without a mark, or if another program appended since the mark.
    ///
    /// # Errors
    ///
    /// Fails for a closed handle; see [Errors](crate#errors).
    pub fn durable_last(&self) -> Result<Option<u64>> {
        self.on_last(Book::durable_last)
    }

    /// Counts of this handle since the opening, over all epochs.
    ///
    /// # Errors
    ///
    /// Fails for a closed handle; see [Errors](crate#errors).
    pub fn stats(&self) -> Result<Stats> {
        self.with(|parts| {
            let mut all = lock(&self.shared.finished).clone();
            for part in parts {
                all.add(&part.book.stats()?);
            }
            Ok(all)
        })
    }

    /// The report of opening the last epoch.
    ///
    /// # Errors
    ///
    /// Fails for a closed handle; see [Errors](crate#errors).
    pub fn recovery(&self) -> Result<crate::report::OpenReport> {
        self.on_last(|book| Ok(book.recovery().clone()))
    }

    /// Sync, close all epochs, and release the lock. A second call waits for the first, and fails if the first failed.
    ///
    /// # Errors
    ///
    /// Fails if the last sync fails. The handle is closed all the same.
    pub fn close(&self) -> Result<()> {
        let (_held, mut parts) = self.shared.changing();
        self.shared.finish(&mut parts)
    }

    /// Whether the handle is closed.
    pub fn is_closed(&self) -> bool {
        self.shared.closed.load(Ordering::Acquire)
    }

    /// Do something with the epochs, which cannot change meanwhile.
    fn with<T>(&self, work: impl FnOnce(&[OpenEpoch]) -> Result<T>) -> Result<T> {
        self.shared.usable()?;
        let (_held, parts) = self.shared.reading();
        work(&parts)
    }

    /// Do something with the last epoch's book. The epochs cannot change meanwhile.
    fn on_last<T>(&self, work: impl FnOnce(&Book) -> Result<T>) -> Result<T> {
        self.with(|parts| match parts.last() {
            Some(part) => work(&part.book),
            None => Err(self.shared.refused(ErrorKind::Closed, "the pier is closed")),
        })
    }
}

impl Shared {
    fn usable(&self) -> Result<()> {
        match self.closed.load(Ordering::Acquire) {
            true => Err(self.refused(ErrorKind::Closed, "the pier is closed")),
            false => Ok(()),
        }
    }

    /// Log lines wait while the lock is held: a handler of lines may append to this very pier.
    fn reading(&self) -> (Held, RwLockReadGuard<'_, Vec<OpenEpoch>>) {
        (hold(), self.parts.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn changing(&self) -> (Held, RwLockWriteGuard<'_, Vec<OpenEpoch>>) {
        (hold(), self.parts.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// Close every epoch and release the lock; the first error counts.
    fn finish(&self, parts: &mut [OpenEpoch]) -> Result<()> {
        let closed = parts.iter().map(|part| part.book.close()).fold(Ok(()), Result::and);
        self.closed.store(true, Ordering::Release);
        lock(&self.lock).take();
        closed
    }

    /// Refuse a handle for reading.
    fn writable(&self) -> Result<&Self> {
        self.usable()?;
        match self.mode {
            Mode::Read => {
                Err(self.refused(ErrorKind::ReadOnly, "the pier was opened for reading only"))
            }
            Mode::Append | Mode::Create => Ok(self),
        }
    }

    /// The error of a call that wrote nothing.
    fn refused(&self, kind: ErrorKind, message: impl Into<String>) -> Error {
        self.error(kind, message).with_durable(Durable::No)
    }

    fn error(&self, kind: ErrorKind, message: impl Into<String>) -> Error {
        Error::new(kind, message).of(FORMAT).at(&self.dir)
    }
}

/// The event before the pier, and the last event. A log in `0i0` may begin with another event than 1.
fn ends_of(parts: &[OpenEpoch]) -> Result<(u64, u64)> {
    let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return Ok((0, 0)) };
    let epoch = match first.book.recovery().verdict {
        Verdict::Corrupt => first.number,
        _ => first.book.epoch()?,
    };
    Ok((epoch, last.book.last()?))
}

impl OpenEpoch {
    fn shown(&self) -> Result<Epoch> {
        let Self { number, dir, book } = self;
        let bounds = book.bounds()?.map(|bounds| (*bounds.start(), *bounds.end()));
        Ok(Epoch {
            number: *number,
            path: dir.clone(),
            layout: book.layout(),
            bounds,
            deeds: book.len()?,
            bytes: book.end()?,
            verdict: book.recovery().verdict,
        })
    }
}
