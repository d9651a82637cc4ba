//! Opening: the epochs, their joints, the lock, and other processes' rolls.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::part::{OpenEpoch, extend};
use super::places::{Named, list, log_dir, name_of};
use super::{Pier, Shared, publish, roll};
use crate::book::Options;
use crate::error::{Error, ErrorKind, Result};
use crate::ground::locks::atomic::AtomicBool;
use crate::ground::locks::{Mutex, RwLock};
use crate::log::{READER_TRIES, Stats, with_patience};
use crate::mode::Mode;
use crate::saving::ensure_dir;
use crate::sidecar::{LockTimeout, WriterLock, make_sidecar, sidecar_dir};
use crate::storage::{above, located, sync_dir};

impl Pier {
    pub(super) fn open_with(path: &Path, mode: Mode, options: &Options) -> Result<Self> {
        options.check()?;
        let storage = &*options.storage;
        let path = located(storage, path)?;
        if mode != Mode::Read {
            // Check before creating anything.
            options.durability.check_of_log().map_err(|error| error.of("book").at(&path))?;
        }
        let dir = log_dir(storage, &path)?;
        let begun = Instant::now();
        let lock = match mode {
            Mode::Read => None,
            Mode::Append | Mode::Create => {
                // Refuse a path without a pier before anything is created there.
                check_found(options, mode, &list(storage, &dir)?)?;
                let lock = acquire(options, &path, &dir)?;
                publish::finish(options, &dir)?;
                Some(lock)
            }
        };
        // The last epoch may be open for writing as a book. Later rolls do not wait.
        let rest = options.lock_timeout.less(begun.elapsed());
        let waiting = Options { lock_timeout: rest, ..options.clone() };
        let options = &Options { lock_timeout: LockTimeout::default(), ..options.clone() };
        let parts = match mode {
            Mode::Read => while_dropping(|| open_parts(options, options, &dir, mode))?,
            Mode::Append | Mode::Create => open_parts(options, &waiting, &dir, mode)?,
        };
        let shared = Shared {
            path,
            sidecar: sidecar_dir(&dir),
            dir,
            mode,
            options: options.clone(),
            parts: RwLock::new(parts),
            finished: Mutex::new(Stats::default()),
            closed: AtomicBool::new(false),
            lock: Mutex::new(lock),
        };
        let pier = Self { shared: Arc::new(shared) };
        pier.settle()?;
        Ok(pier)
    }

    /// Read the deeds and epochs that other processes added, and close epochs that they dropped. Returns the last
    /// event.
    ///
    /// # Errors
    ///
    /// Fails with [`OutOfRange`](crate::ErrorKind::OutOfRange) if records known to this handle were cut off, and with
    /// [`Corrupt`](crate::ErrorKind::Corrupt) for damage; see [Errors](crate#errors).
    pub fn refresh(&self) -> Result<u64> {
        self.find_more()?;
        self.on_last(|book| book.refresh())
    }

    /// Open new epochs and close dropped epochs. A writer has nothing to find.
    pub(super) fn find_more(&self) -> Result<()> {
        self.shared.usable()?;
        if self.mode() != Mode::Read {
            return Ok(());
        }
        let (_held, mut parts) = self.shared.changing();
        while_dropping(|| self.shared.now(&parts)).map(|now| *parts = now)
    }

    /// The epoch after `number`, if it exists by now.
    pub(super) fn after(&self, number: u64) -> Result<Option<Named>> {
        let known = || {
            self.with(|parts| {
                let after = parts.iter().find(|part| part.number > number);
                Ok(after.map(|OpenEpoch { number, dir, .. }| Named {
                    number: *number,
                    dir: dir.clone(),
                }))
            })
        };
        match known()? {
            None if self.mode() == Mode::Read => {
                self.find_more()?;
                known()
            }
            found => Ok(found),
        }
    }
}

impl Shared {
    /// The present epochs, with the books of the known `parts`.
    fn now(&self, parts: &[OpenEpoch]) -> Result<Vec<OpenEpoch>> {
        // List first, then refresh the last known epoch: an epoch with a successor is complete.
        let named = list(&*self.options.storage, &self.dir)?;
        let first = named.first().map_or(0, |named| named.number);
        let left = parts.iter().filter(|part| part.number >= first);
        let mut now: Vec<OpenEpoch> = left.cloned().collect();
        let known = now.last().map(|part| part.number);
        let known = named.partition_point(|named| known.is_some_and(|last| named.number <= last));
        let more = named.get(known..).unwrap_or_default();
        if let Some(last) = now.last().filter(|_| !more.is_empty()) {
            last.book.refresh()?;
        }
        extend(&self.options, &mut now, more, Mode::Read)?;
        Ok(now)
    }
}

/// Repeat a look at a pier whose first epochs a writer may be dropping: an epoch may disappear
/// between two looks.
pub(super) fn while_dropping<T>(look: impl Fn() -> Result<T>) -> Result<T> {
    let kinds = [ErrorKind::Missing, ErrorKind::NotALog];
    with_patience(READER_TRIES, Duration::ZERO, &kinds, look)
}

/// Open every epoch, the last with the options `waiting`. Makes the first epoch of a new pier.
fn open_parts(
    options: &Options,
    waiting: &Options,
    dir: &Path,
    mode: Mode,
) -> Result<Vec<OpenEpoch>> {
    let mut named = list(&*options.storage, dir)?;
    check_found(options, mode, &named)?;
    if named.is_empty() {
        if mode == Mode::Read {
            let message = "no epoch 0iN of a pier there";
            return Err(Error::new(ErrorKind::Missing, message).at(dir));
        }
        named.push(roll::begin(options, dir, options.epoch.unwrap_or(0), None)?);
    }
    let mut parts: Vec<OpenEpoch> = Vec::new();
    if let Some((last, finished)) = named.split_last() {
        extend(options, &mut parts, finished, Mode::Read)?;
        let mode = if mode == Mode::Read { Mode::Read } else { Mode::Append };
        extend(waiting, &mut parts, std::slice::from_ref(last), mode)?;
    }
    Ok(parts)
}

/// Refuse a pier that must not exist, or that begins elsewhere than asked for.
pub(super) fn check_found(options: &Options, mode: Mode, named: &[Named]) -> Result<()> {
    let Some(first) = named.first() else { return Ok(()) };
    if mode == Mode::Create {
        let exists = io::ErrorKind::AlreadyExists.into();
        return Err(Error::io("create the pier", &first.dir, exists));
    }
    match options.epoch {
        Some(asked) if asked != first.number => {
            let has = name_of(first.number);
            let message = format!("epoch {asked} asked for, but the pier begins with {has}");
            Err(Error::new(ErrorKind::Contiguity, message).at(&first.dir))
        }
        _ => Ok(()),
    }
}

/// Make the directories, and take the lock of the pier: two processes could roll at once, each with
/// the lock of another epoch.
pub(super) fn acquire(options: &Options, path: &Path, dir: &Path) -> Result<WriterLock> {
    let storage = &*options.storage;
    let mut dirs: Vec<PathBuf> = vec![dir.to_path_buf()];
    if dir != path {
        dirs.extend([above(dir).to_path_buf(), path.to_path_buf()]);
    }
    for dir in dirs.iter().rev() {
        ensure_dir(storage, dir, options.file_mode)?;
    }
    let sidecar = sidecar_dir(dir);
    make_sidecar(storage, &sidecar)?;
    let lock = WriterLock::acquire(storage, &sidecar, dir, &options.lock_timeout)?;
    // A crashed writer may have begun an epoch and not synced its name.
    sync_dir(storage, dir)?;
    Ok(lock)
}
