//! A reader's copy of the writer's index.
//!
//! One process can open an index. A reader makes a copy next to the index: hard links for the
//! tables, which never change, and copies of the small files. The writer may go on meanwhile, so
//! the order matters: first the journals, then the list of tables. The list then covers at least
//! the entries that a later journal begins after. If the writer deletes a listed table meanwhile,
//! the reader begins again.
//!
//! The reader locks its copy, and deletes the copy at the end. The next reader deletes the copies of
//! killed readers.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::{JOURNAL_EXTENSION, TABLES_NAME, made_here};
use crate::error::{ErrorKind, Result};
use crate::nostr::index::lookup::Index;
use crate::sidecar::PRIVATE_MODE;
use crate::storage::{Access, Aside, Disk, LockAttempt, LockGuard, Storage, fork_generation};
use crate::storage::{above, read_full, write_full};

const DIR_MODE: u32 = 0o700;
/// The number of tries while a writer writes.
const TRIES: u32 = 5;
const PART_BYTES: usize = 1 << 20;

/// The number of the next copy of this process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The directory of a copy. The drop deletes it, after the index is closed.
#[derive(Debug)]
pub struct Lent {
    dir: PathBuf,
    _lock: Box<dyn LockGuard>,
    fork_generation: u64,
}

impl Drop for Lent {
    fn drop(&mut self) {
        if self.fork_generation == fork_generation() {
            remove(&self.dir);
        }
    }
}

impl Lent {
    /// Copy and open an index. `None` without an index of this machine and user, or without the
    /// rights for a copy.
    pub fn of(index: &Path) -> Result<Option<(Index, Self)>> {
        let is_linked = [index, above(index)].iter().any(|dir| Disk.is_link(dir));
        // Windows locks no directory, so nobody could tell a copy in use from a copy left.
        if cfg!(not(unix))
            || is_linked
            || !Disk.is_dir(index)
            || !made_here::is_made_here(&index.join(made_here::MADE_NAME))?
        {
            return Ok(None);
        }
        remove_left(index);
        for _ in 0..TRIES {
            let dir = with_ending(index, &format!("{}-{}", std::process::id(), next()));
            let Some(lent) = Self::begin(&dir) else { return Ok(None) };
            match copy(index, &dir).and_then(|()| made_here::note(&dir)) {
                Ok(()) => match Index::open(&dir) {
                    Ok(index) => return Ok(Some((index, lent))),
                    // The writer changed the tables meanwhile.
                    Err(error) if error.kind() == ErrorKind::Corrupt => {}
                    Err(_) => return Ok(None),
                },
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                // Without links, or without room.
                Err(_) => return Ok(None),
            }
        }
        Ok(None)
    }

    fn begin(dir: &Path) -> Option<Self> {
        Disk.create_dir_as(dir, DIR_MODE).ok()?;
        match Disk.lock(dir, false) {
            Ok(LockAttempt::Held(lock)) => {
                Some(Self { dir: dir.into(), _lock: lock, fork_generation: fork_generation() })
            }
            _ => None,
        }
    }
}

fn next() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The name of a copy: `events.reader-ENDING`.
fn with_ending(index: &Path, ending: &str) -> PathBuf {
    index.with_extension(format!("reader-{ending}"))
}

/// Delete the copies of killed readers.
fn remove_left(index: &Path) {
    let (above, prefix) = (above(index), with_ending(index, ""));
    let prefix = prefix.file_name().and_then(OsStr::to_str).unwrap_or_default();
    for name in Disk.list(above).unwrap_or_default() {
        let is_copy = name.to_str().is_some_and(|name| name.starts_with(prefix));
        let dir = above.join(name);
        if is_copy
            && !Disk.is_link(&dir)
            && let Ok(LockAttempt::Held(_lock)) = Disk.lock(&dir, false)
        {
            remove(&dir);
        }
    }
}

fn remove(dir: &Path) {
    // A later reader removes the rest.
    drop(Aside::at(&Disk, dir.into()).remove("remove a reader's index"));
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut names = Disk.list(from)?;
    // The journals, the oldest first.
    names.sort_by_key(|name| (Disk.is_dir(&from.join(name)), name.len(), name.clone()));
    for name in names.iter().filter(|name| *name != made_here::MADE_NAME) {
        let (from, to) = (from.join(name), to.join(name));
        match Disk.is_dir(&from) {
            true => copy_dir(&from, &to)?,
            false => copy_file(&from, &to)?,
        }
    }
    Ok(())
}

/// Copy a directory, its files first: the list of tables comes before the tables.
fn copy_dir(from: &Path, to: &Path) -> io::Result<()> {
    Disk.create_dir_as(to, DIR_MODE)?;
    let is_of_tables = from.ends_with(TABLES_NAME);
    let mut names = Disk.list(from)?;
    names.sort_by_key(|name| Disk.is_dir(&from.join(name)));
    for name in names {
        let (from, to) = (from.join(&name), to.join(&name));
        match Disk.is_dir(&from) {
            true => copy_dir(&from, &to)?,
            false if is_of_tables => Disk.link(&from, &to)?,
            false => copy_file(&from, &to)?,
        }
    }
    Ok(())
}

/// Copy a file, and a journal without the zeros that fill it up.
fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let is_journal = from.extension().is_some_and(|name| name == JOURNAL_EXTENSION);
    let (source, target) = (Disk.open(from, Access::Read)?, Disk.create_new(to, PRIVATE_MODE)?);
    let (mut at, len, mut part) = (0, source.len()?, vec![0; PART_BYTES]);
    while at < len {
        part.truncate((len - at).min(PART_BYTES as u64) as usize);
        read_full(&*source, &mut part, at)?;
        if is_journal && part.iter().all(|&byte| byte == 0) {
            break;
        }
        write_full(&*target, &part, at)?;
        at += part.len() as u64;
    }
    Ok(())
}
