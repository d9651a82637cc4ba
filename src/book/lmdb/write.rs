//! An environment that is written: the metadata of a new pier, and the way back from books.

use std::io;
use std::path::Path;

use heed::{CommitOrAbort, EnvFlags, PutFlags};

use super::read::{Environment, MUG_BYTES, checked, fault, look, open_env};
use super::walk::Use;
use super::{DATA_NAME, EVENTS, LMDB, META};
use crate::error::{Error, ErrorKind, Result};
use crate::storage::{Access, Disk, Storage, sync_dir};

/// The least size of the map beyond the file and the events: LMDB lets the file grow up to the
/// map's size.
const MAP_BYTES_MORE: u64 = 16 << 20;

/// LMDB writes a value and the page's head of 16 bytes with one call, and Linux writes at most
/// 0x7fff_f000 bytes at once.
const VALUE_BYTES_MAX: usize = 0x7fff_f000 - 16;

const LOCK_NAME: &str = "lock.mdb";

/// An environment, created if missing; its content is readable.
#[derive(Debug)]
pub struct Writer {
    pub held: Environment,
    value: Vec<u8>,
}

impl Writer {
    /// Open, to add at most so many bytes of events; without a number, for metadata alone.
    pub fn open(dir: &Path, events: Option<u64>) -> Result<Self> {
        let path = dir.join(DATA_NAME);
        let fault = |e| fault("write the environment", &path, e);
        // LMDB opens both files through links also.
        for name in [DATA_NAME, LOCK_NAME] {
            if Disk.is_link(&dir.join(name)) {
                let message = "a link, which LMDB would follow and write over";
                return Err(Error::new(ErrorKind::NotALog, message).at(&dir.join(name)).of(LMDB));
            }
        }
        let held = match Disk.open(&path, Access::Read).and_then(|file| file.len()) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => 0,
            held => held.map_err(|e| Error::io("open the environment", &path, e))?,
        };
        if held > 0 {
            checked(&path, Use::Write)?;
        }
        let bytes_max = held.saturating_add(events.unwrap_or(0).max(MAP_BYTES_MORE));
        let env = open_env(dir, bytes_max, EnvFlags::empty()).map_err(fault)?;
        let made = {
            let txn = env.write_txn().map_err(fault)?;
            env.create_databases_and_commit(txn, |opener, txn| {
                let mut options = opener.database_options().types().key_comparator();
                options.name(EVENTS);
                let made = events.map(|_| options.create(txn)).transpose()?;
                let values = opener.create_database(txn, Some(META))?;
                Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit((made, Some(values))))
            })
            .map_err(fault)?
        };
        let (events, values) = made.commit().unwrap_or((None, None));
        // LMDB syncs new files, but not their names.
        sync_dir(&Disk, dir).map_err(|e| e.of(LMDB))?;
        let opened = look(&path)?;
        let held = Environment { env, events, values, path, opened };
        Ok(Self { held, value: Vec::new() })
    }

    /// Append events in one transaction. After the return, the transaction is on stable storage.
    pub fn append<'a>(
        &mut self,
        first: u64,
        events: impl Iterator<Item = (u32, &'a [u8])>,
    ) -> Result<()> {
        let Self { held, value } = self;
        let Some(database) = held.events else {
            let message = "the environment was opened for metadata alone";
            return Err(held.error(ErrorKind::ReadOnly, message));
        };
        let fault = |e| fault("write the events", &held.path, e);
        let mut txn = held.env.write_txn().map_err(fault)?;
        for (event, (mug, jam)) in (first..).zip(events) {
            let bytes = MUG_BYTES + jam.len();
            if bytes > VALUE_BYTES_MAX {
                let message =
                    format!("event {event} of {bytes} bytes, LMDB writes {VALUE_BYTES_MAX}");
                return Err(held.error(ErrorKind::TooLarge, message));
            }
            value.clear();
            value.reserve(bytes);
            value.extend_from_slice(&mug.to_le_bytes());
            value.extend_from_slice(jam);
            database
                .put_with_flags(&mut txn, PutFlags::APPEND, &event, &value[..])
                .map_err(fault)?;
        }
        txn.commit().map_err(fault)
    }

    /// Store metadata, durably and all at once.
    pub fn save(&self, values: &[(Vec<u8>, Vec<u8>)]) -> Result<()> {
        let Some(database) = self.held.values else {
            return Ok(());
        };
        let fault = |e| fault("write the metadata", &self.held.path, e);
        let mut txn = self.held.env.write_txn().map_err(fault)?;
        for (key, value) in values {
            database.put(&mut txn, key, value).map_err(fault)?;
        }
        txn.commit().map_err(fault)
    }
}
