//! One sorted table of keys and values, in files of fjall or in memory.
//!
//! fjall opens and writes its own files, which bypass [`crate::storage`]. The deletion and the
//! checks of the files bypass [`crate::storage`], too: a simulated disk has no index in files.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::io;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use fjall::config::{BloomConstructionPolicy, FilterPolicy, FilterPolicyEntry};
use fjall::{KeyspaceCreateOptions, PersistMode, Readable, Slice};

use super::files::{self, damaged, made_here};
use super::writes::Writes;
use crate::error::{Error, ErrorKind, Result};
use crate::ground::locks::{Mutex, lock};
use crate::nostr::bytes::format::FORMAT;
use crate::saving::make_own_dir;
use crate::sidecar::PRIVATE_MODE;
use crate::storage::{Aside, Disk};

/// The number of entries from which a write creates sorted files without a journal: many times
/// quicker.
const BULK: usize = 8_192;
/// The name of the table, with the version of its keys and values.
const NAME: &str = "index-2";
const FORMER_NAME: &str = "index";
const CACHE_BYTES: u64 = 128 << 20;
/// The limit of the journal, which every opening reads again.
const MEMTABLE_BYTES: u64 = 16 << 20;

pub enum Table {
    Files { dir: Arc<Path>, db: fjall::Database, table: fjall::Keyspace },
    Memory(Mutex<Arc<Sorted>>),
}

type Sorted = BTreeMap<Vec<u8>, Vec<u8>>;

impl Table {
    /// Open or create the table in a directory.
    pub fn open(dir: &Path) -> Result<Self> {
        make_own_dir(&Disk, dir, PRIVATE_MODE).map_err(|e| e.of(FORMAT))?;
        made_here::check_or_note(dir)?;
        files::check(dir)?;
        let opened = guarded(dir, || {
            let db = fjall::Database::builder(dir)
                .cache_size(CACHE_BYTES)
                // With several threads, one thread of fjall 3.1 spins while another compacts.
                .worker_threads(1)
                .open()?;
            if db.keyspace_exists(FORMER_NAME) {
                return Ok(None);
            }
            let filter = FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(10.0));
            let options = || {
                KeyspaceCreateOptions::default()
                    .max_memtable_size(MEMTABLE_BYTES)
                    .filter_policy(FilterPolicy::all(filter))
            };
            let table = db.keyspace(NAME, options)?;
            Ok(Some((db, table)))
        });
        let (db, table) =
            opened?.ok_or_else(|| damaged("an earlier version of this program made it").at(dir))?;
        Ok(Self::Files { dir: dir.into(), db, table })
    }

    /// Delete the table's files, if any.
    pub fn delete(dir: &Path) -> Result<()> {
        Aside::at(&Disk, dir.into()).remove("delete the index").map_err(|e| e.of(FORMAT))
    }

    pub fn in_memory() -> Self {
        Self::Memory(Mutex::new(Arc::default()))
    }

    /// Write all changes or none.
    pub fn write(&self, writes: &mut Writes) -> Result<()> {
        match self {
            Self::Files { dir, db, table } => guarded(dir, || match writes.len() >= BULK {
                true => ingest(table, writes),
                false => journal(db, table, writes),
            }),
            Self::Memory(entries) => {
                let mut entries = lock(entries);
                let entries = Arc::make_mut(&mut entries);
                for (key, value) in writes.sorted() {
                    match value {
                        Some(value) => drop(entries.insert(key.to_vec(), value.to_vec())),
                        None => drop(entries.remove(key)),
                    }
                }
                Ok(())
            }
        }
    }

    /// Sync all writes so far to stable storage.
    pub fn sync(&self) -> Result<()> {
        match self {
            Self::Files { dir, db, .. } => guarded(dir, || db.persist(PersistMode::SyncAll)),
            Self::Memory(_) => Ok(()),
        }
    }

    /// Make the drop of this table close nothing. In a forked process, closing waits forever for
    /// threads of the parent, and releases the parent's lock.
    pub fn leak(&self) {
        if let Self::Files { db, table, .. } = self {
            std::mem::forget((db.clone(), table.clone()));
        }
    }

    /// The current value of a key.
    pub fn get(&self, key: &[u8]) -> Result<Option<Slice>> {
        match self {
            Self::Files { dir, table, .. } => guarded(dir, || table.get(key)),
            Self::Memory(entries) => Ok(lock(entries).get(key).map(Slice::from)),
        }
    }

    /// A snapshot of the table.
    pub fn view(&self) -> View {
        match self {
            Self::Files { dir, db, table } => View::Files {
                dir: dir.clone(),
                snapshot: Box::new(db.snapshot()),
                table: table.clone(),
            },
            Self::Memory(entries) => View::Memory(lock(entries).clone()),
        }
    }
}

fn ingest(table: &fjall::Keyspace, writes: &mut Writes) -> fjall::Result<()> {
    let mut ingestion = table.start_ingestion()?;
    for (key, value) in writes.sorted() {
        match value {
            Some(value) => ingestion.write(key, value)?,
            None => ingestion.write_tombstone(key)?,
        }
    }
    ingestion.finish()
}

fn journal(
    db: &fjall::Database,
    table: &fjall::Keyspace,
    writes: &mut Writes,
) -> fjall::Result<()> {
    // The write is in the page cache on return, and survives a crash of the process.
    let mut batch = db.batch().durability(Some(PersistMode::Buffer));
    for (key, value) in writes.sorted() {
        match value {
            Some(value) => batch.insert(table, key, value),
            None => batch.remove(table, key),
        }
    }
    batch.commit()
}

pub enum View {
    Files { dir: Arc<Path>, snapshot: Box<fjall::Snapshot>, table: fjall::Keyspace },
    Memory(Arc<Sorted>),
}

impl View {
    pub fn get(&self, key: &[u8]) -> Result<Option<Slice>> {
        match self {
            Self::Files { dir, snapshot, table } => guarded(dir, || snapshot.get(table, key)),
            Self::Memory(entries) => Ok(entries.get(key).map(Slice::from)),
        }
    }

    /// The entries from one key up to another, exclusive.
    pub fn range(&self, from: Vec<u8>, end: Vec<u8>) -> Entries {
        match self {
            Self::Files { dir, snapshot, table } => {
                let range = snapshot.range(table, from..end);
                Entries::Files { dir: dir.clone(), range }
            }
            Self::Memory(entries) => {
                Entries::Memory { entries: entries.clone(), next: Bound::Included(from), end }
            }
        }
    }
}

/// Entries of a range. More entries may follow an error.
pub enum Entries {
    Files { dir: Arc<Path>, range: fjall::Iter },
    Memory { entries: Arc<Sorted>, next: Bound<Vec<u8>>, end: Vec<u8> },
}

impl Iterator for Entries {
    type Item = Result<(Slice, Slice)>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Files { dir, range } => {
                guarded(dir, || range.next().map(fjall::Guard::into_inner).transpose()).transpose()
            }
            Self::Memory { entries, next, end } => {
                let from = match &*next {
                    Bound::Included(from) if from >= end => return None,
                    from => from.as_ref().map(Vec::as_slice),
                };
                let (key, value) =
                    entries.range::<[u8], _>((from, Bound::Excluded(end.as_slice()))).next()?;
                *next = match key.as_slice() < end.as_slice() {
                    true => Bound::Excluded(key.clone()),
                    false => Bound::Included(end.clone()),
                };
                Some(Ok((Slice::from(key), Slice::from(value))))
            }
        }
    }
}

/// Turn a panic of fjall on damaged files into an error.
fn guarded<T>(dir: &Path, call: impl FnOnce() -> fjall::Result<T>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(done) => done.map_err(|error| named(dir, error)),
        Err(_) => Err(damaged("a check of its files failed").at(dir)),
    }
}

fn named(dir: &Path, error: fjall::Error) -> Error {
    use fjall::Error::{Locked, Poisoned};
    match error {
        Locked => Error::new(ErrorKind::Locked, "the index is open in another place"),
        Poisoned => Error::new(ErrorKind::Poisoned, "an earlier write of the index failed"),
        error => match system(error) {
            Ok(error) => return Error::io("use the index", dir, error).of(FORMAT),
            Err(error) => damaged(&error.to_string()),
        },
    }
    .of(FORMAT)
    .at(dir)
}

/// The error of the operating system, unless it reports only that files are too short.
fn system(error: fjall::Error) -> Result<io::Error, fjall::Error> {
    let found = match &error {
        fjall::Error::Io(error) => Some(error),
        other => other.source().and_then(|error| error.source()?.downcast_ref()),
    };
    use io::ErrorKind::{AlreadyExists, InvalidData, InvalidInput, NotFound, Other, UnexpectedEof};
    match found.map(|found| (found.kind(), found.raw_os_error())) {
        None
        | Some((
            AlreadyExists | InvalidData | InvalidInput | NotFound | Other | UnexpectedEof,
            _,
        )) => Err(error),
        Some((_, Some(code))) => Ok(io::Error::from_raw_os_error(code)),
        Some((kind, None)) => Ok(kind.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_earlier_tables_version_is_made_again() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("events");
        make_own_dir(&Disk, &dir, PRIVATE_MODE).unwrap();
        made_here::check_or_note(&dir).unwrap();
        let former = fjall::Database::builder(&dir).open().unwrap();
        former.keyspace(FORMER_NAME, KeyspaceCreateOptions::default).unwrap();
        drop(former);
        let error = Table::open(&dir).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.message().contains("an earlier version"), "{error}");
        Table::delete(&dir).unwrap();
        assert!(Table::open(&dir).unwrap().get(b"key").unwrap().is_none());
    }
}
