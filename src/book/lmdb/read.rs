//! A read-only environment, without a lock file or any write, also in a read-only directory.

use std::ops::{ControlFlow, RangeInclusive};
use std::path::{Path, PathBuf};

use heed::byteorder::NativeEndian;
use heed::types::{Bytes, U64};
use heed::{CommitOrAbort, EnvFlags, EnvOpenOptions, IntegerComparator, MdbError, WithoutTls};

use super::pages::Pages;
use super::walk::{self, Use};
use super::{DATA_NAME, EVENTS, LMDB, META};
use crate::book::Meta;
use crate::error::{Error, ErrorKind, Result};
use crate::ground::slice::u32_at;
use crate::storage::{Access, Disk, File, Storage};

/// Bytes of the mug before the jam.
pub(super) const MUG_BYTES: usize = 4;
/// LMDB maps multiples of the system's page size, which is at most this.
const MAP_STEP_BYTES: u64 = 64 << 10;

pub(super) type Events = heed::Database<'static, U64<NativeEndian>, Bytes, IntegerComparator>;
pub(super) type Values = heed::Database<'static, Bytes, Bytes>;

/// Takes an event: number, mug, jam.
pub(super) type Take<'a> = dyn FnMut(u64, u32, &[u8]) -> Result<ControlFlow<()>> + 'a;

/// An LMDB environment with an event log, opened for reading only. Nobody locks the environment:
/// the writing program must have ended, and [`Environment::check_unchanged`] checks.
pub struct Environment {
    pub(super) env: heed::Env<WithoutTls>,
    pub(super) events: Option<Events>,
    pub(super) values: Option<Values>,
    pub(super) path: PathBuf,
    pub(super) opened: Pages,
}

impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Environment").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Environment {
    /// Open the environment in a directory.
    ///
    /// # Errors
    ///
    /// Fails where there is no such environment, or it cannot be read; see [Errors](crate#errors).
    pub fn open(dir: impl AsRef<Path>) -> Result<Self> {
        Self::open_in(dir.as_ref()).map_err(|e| e.of(LMDB))
    }

    fn open_in(dir: &Path) -> Result<Self> {
        let path = dir.join(DATA_NAME);
        let fault = |e| fault("open the environment", &path, e);
        let flags = EnvFlags::READ_ONLY | EnvFlags::NO_LOCK;
        let opened = checked(&path, Use::Read)?;
        let env = open_env(dir, opened.file_bytes, flags).map_err(fault)?;
        let found = {
            let txn = env.read_txn().map_err(fault)?;
            env.open_databases_and_commit(txn, |opener, txn| {
                let mut options = opener.database_options().types().key_comparator();
                let events = options.name(EVENTS).open(txn)?;
                let values = opener.open_database(txn, Some(META))?;
                Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit((events, values)))
            })
            .map_err(fault)?
        };
        let (events, values) = found.commit().unwrap_or((None, None));
        Ok(Self { env, events, values, path, opened })
    }

    /// The `data.mdb`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// First and last event, or `None` without events. If their number does not fit, the call fails with the first gap.
    ///
    /// # Errors
    ///
    /// Fails with [`Corrupt`](crate::ErrorKind::Corrupt) for damage; see [Errors](crate#errors).
    pub fn bounds(&self) -> Result<Option<RangeInclusive<u64>>> {
        let Some(events) = self.events else {
            return Ok(None);
        };
        let fault = |e| self.fault("read the events", e);
        let txn = self.env.read_txn().map_err(fault)?;
        let first = events.first(&txn).map_err(fault)?;
        let last = events.last(&txn).map_err(fault)?;
        let (Some((first, _)), Some((last, _))) = (first, last) else {
            return Ok(None);
        };
        let held = events.len(&txn).map_err(fault)?;
        drop(txn);
        if last.checked_sub(first).and_then(|more| more.checked_add(1)) != Some(held) {
            self.each(first, &mut |_, _, _| Ok(ControlFlow::Continue(())))?;
            let message = format!("{held} events are counted, but {first} to {last} are there");
            return Err(self.error(ErrorKind::Corrupt, message));
        }
        if first == 0 {
            let message = "event 0, the first event of a log is 1";
            return Err(self.error(ErrorKind::Contiguity, message));
        }
        Ok(Some(first..=last))
    }

    /// The events from `start` on, in order: `take` gets number, mug and jam of each, and ends the walk with
    /// [`ControlFlow::Break`]. A gap is an error with both numbers. An event shorter than a mug is an error, too.
    ///
    /// # Errors
    ///
    /// Fails with [`Contiguity`](crate::ErrorKind::Contiguity) for a gap, with [`Corrupt`](crate::ErrorKind::Corrupt)
    /// for damage, and with any error of `take`.
    pub fn each(&self, start: u64, take: &mut Take<'_>) -> Result<()> {
        let Some(events) = self.events else {
            return Ok(());
        };
        let fault = |e| self.fault("read the events", e);
        let txn = self.env.read_txn().map_err(fault)?;
        let mut before: Option<u64> = None;
        for entry in events.range(&txn, &(start..)).map_err(fault)? {
            let (event, value) = entry.map_err(fault)?;
            if let Some(before) = before.filter(|before| before.checked_add(1) != Some(event)) {
                let message = format!("event {before} is followed by event {event}");
                return Err(self.error(ErrorKind::Contiguity, message));
            }
            before = Some(event);
            let (mug, jam) = self.parts(event, value)?;
            if take(event, mug, jam)? == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }

    /// The mug and jam of an event, if present.
    pub(super) fn get<T>(
        &self,
        event: u64,
        take: impl FnOnce(u32, &[u8]) -> T,
    ) -> Result<Option<T>> {
        let Some(events) = self.events else {
            return Ok(None);
        };
        let fault = |e| self.fault("read the events", e);
        let txn = self.env.read_txn().map_err(fault)?;
        let Some(value) = events.get(&txn, &event).map_err(fault)? else {
            return Ok(None);
        };
        let (mug, jam) = self.parts(event, value)?;
        Ok(Some(take(mug, jam)))
    }

    fn parts<'a>(&self, event: u64, value: &'a [u8]) -> Result<(u32, &'a [u8])> {
        match (u32_at(value, 0), value.get(MUG_BYTES..)) {
            (Some(mug), Some(jam)) => Ok((mug, jam)),
            _ => {
                let message = format!(
                    "event {event} has {} bytes, its mug alone takes {MUG_BYTES}",
                    value.len()
                );
                Err(self.error(ErrorKind::Corrupt, message))
            }
        }
    }

    /// The metadata. Stripped trailing zeros are restored: an empty `fake` is 0, the value of a fake ship.
    ///
    /// # Errors
    ///
    /// Fails with [`Corrupt`](crate::ErrorKind::Corrupt) for damage; see [Errors](crate#errors).
    pub fn meta(&self) -> Result<Meta> {
        let mut meta = Meta::default();
        for (key, value) in self.values()? {
            match &*key {
                b"who" => meta.who = Some(u128::from_le_bytes(self.extended(&key, &value)?)),
                b"version" => meta.version = Some(u32::from_le_bytes(self.extended(&key, &value)?)),
                b"life" => meta.life = Some(u32::from_le_bytes(self.extended(&key, &value)?)),
                b"fake" => {
                    let [loobean] = self.extended(&key, &value)?;
                    if loobean > 1 {
                        let message = format!("metadata fake is {loobean}, must be 0 or 1");
                        return Err(self.error(ErrorKind::Unsupported, message));
                    }
                    meta.fake = Some(loobean == 0);
                }
                _ => {}
            }
        }
        Ok(meta)
    }

    fn extended<const N: usize>(&self, key: &[u8], value: &[u8]) -> Result<[u8; N]> {
        let end = value.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let mut whole = [0; N];
        match (whole.get_mut(..end), value.get(..end)) {
            (Some(whole), Some(value)) => whole.copy_from_slice(value),
            _ => {
                let key = String::from_utf8_lossy(key);
                let message = format!("metadata {key} of {end} bytes, at most {N}");
                return Err(self.error(ErrorKind::Unsupported, message));
            }
        }
        Ok(whole)
    }

    /// All keys and values of the metadata, as they are.
    pub(super) fn values(&self) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let Some(values) = self.values else {
            return Ok(Vec::new());
        };
        let fault = |e| self.fault("read the metadata", e);
        let txn = self.env.read_txn().map_err(fault)?;
        let entries = values.iter(&txn).map_err(fault)?;
        entries
            .map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())).map_err(fault))
            .collect()
    }

    /// Fail if a program changed the environment in the meantime: without locks, the reader may have read a mixture of
    /// old and new pages.
    ///
    /// # Errors
    ///
    /// Fails if another program wrote to the environment meanwhile.
    pub fn check_unchanged(&self) -> Result<()> {
        let now = look(&self.path).map_err(|e| e.of(LMDB))?;
        unchanged(&self.path, &self.opened, &now)
    }

    pub(super) fn error(&self, kind: ErrorKind, message: impl Into<String>) -> Error {
        Error::new(kind, message).at(&self.path).of(LMDB)
    }

    fn fault(&self, doing: &str, error: heed::Error) -> Error {
        fault(doing, &self.path, error)
    }
}

/// Have LMDB open an environment, [`checked`] or new, for a file of at most `bytes_max` bytes.
#[allow(unsafe_code)]
pub(super) fn open_env(
    dir: &Path,
    bytes_max: u64,
    flags: EnvFlags,
) -> heed::Result<heed::Env<WithoutTls>> {
    let map = bytes_max.next_multiple_of(MAP_STEP_BYTES);
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.max_dbs(2).map_size(usize::try_from(map).unwrap_or(usize::MAX));
    // SAFETY: a writer gives no flags. A reader's map is read only and needs no lock as long as no
    // program writes, which the caller promises; `check_unchanged` finds a program that breaks the
    // promise.
    unsafe { options.flags(flags) };
    // SAFETY: LMDB follows the numbers in the file without a check, so every followed number must
    // stay within its page, its run and the file: `walk` has checked the numbers, and the size of
    // the file. The file must not change until the environment is closed: LMDB never cuts a file,
    // and the promise excludes programs that write over pages in use while this process has the
    // map.
    unsafe { options.open(dir) }
}

/// Check every page that LMDB will follow; returns the content of the meta pages.
pub(super) fn checked(path: &Path, wanted: Use) -> Result<Pages> {
    let file = open_data(path)?;
    let pages = Pages::read(&*file, path)?;
    walk::check(&*file, path, &pages, wanted).map_err(|error| {
        // Pages of two transactions may contradict one another.
        let now = Pages::read(&*file, path).ok();
        now.and_then(|now| unchanged(path, &pages, &now).err()).unwrap_or(error)
    })?;
    Ok(pages)
}

fn unchanged(path: &Path, before: &Pages, now: &Pages) -> Result<()> {
    if now == before {
        return Ok(());
    }
    let message = format!(
        "the environment was written while it was read: transaction {} after {}",
        now.transaction, before.transaction
    );
    let error = Error::new(ErrorKind::Locked, message).at(path).of(LMDB);
    Err(error.with_advice("end the program that writes it first"))
}

fn open_data(path: &Path) -> Result<Box<dyn File>> {
    Disk.open(path, Access::Read).map_err(|e| Error::io("open the environment", path, e))
}

/// The content of the meta pages of a `data.mdb`.
pub(super) fn look(path: &Path) -> Result<Pages> {
    Pages::read(&*open_data(path)?, path)
}

/// An error of LMDB as ours.
pub(super) fn fault(doing: &str, path: &Path, error: heed::Error) -> Error {
    let kind = match error {
        heed::Error::Io(error) => return Error::io(doing, path, error).of(LMDB),
        heed::Error::EnvAlreadyOpened => ErrorKind::Locked,
        heed::Error::Mdb(MdbError::Invalid) => ErrorKind::NotALog,
        heed::Error::Mdb(MdbError::VersionMismatch) => ErrorKind::Unsupported,
        heed::Error::Mdb(MdbError::Corrupted | MdbError::PageNotFound | MdbError::Incompatible)
        | heed::Error::Decoding(_) => ErrorKind::Corrupt,
        _ => ErrorKind::Io,
    };
    Error::new(kind, format!("cannot {doing}: {error}")).at(path).of(LMDB)
}
