//! The state of a store's appends: the file being written, and the files waiting for a sync.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use crate::storage::{File, FileId, LockGuard};

/// The state that appends change.
#[derive(Debug, Default)]
pub struct State {
    pub active: Option<Active>,
    /// The lowest index allowed for the next file, as far as this store knows.
    pub next_index: u64,
    /// Bytes appended by this store, over all files: the position for syncs.
    pub written: u64,
    /// Finished files that were not synced yet. None is kept where nothing ever is.
    pub unsynced: Vec<Arc<dyn File>>,
    /// The files begun by this store, except for files in `unsynced`.
    pub begun: Begun,
    /// Whether files were created since the directory was synced.
    pub names_unsynced: bool,
    /// Bytes of all files, where they are limited.
    pub held: Option<Held>,
    pub(super) scratch: Vec<u8>,
}

/// Indexes of files, as runs. A store without neighbours has a single run.
#[derive(Clone, Debug, Default)]
pub struct Begun(Vec<RangeInclusive<u32>>);

impl Begun {
    pub(super) fn note(&mut self, index: u32) {
        match self.0.last_mut().filter(|run| run.end().checked_add(1) == Some(index)) {
            Some(run) => *run = *run.start()..=index,
            None => self.0.push(index..=index),
        }
    }

    pub fn contains(&self, index: u32) -> bool {
        self.0.iter().any(|run| run.contains(&index))
    }
}

/// The file being written.
#[derive(Debug)]
pub struct Active {
    pub index: u32,
    pub path: PathBuf,
    pub file: Arc<dyn File>,
    pub id: FileId,
    /// Bytes, all of them whole records.
    pub len: u64,
    pub records: u64,
    /// Held until the file is finished.
    pub(super) _lock: Box<dyn LockGuard>,
}

/// The bytes of all files.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    pub bytes: u64,
    /// The time of the count.
    pub at: Instant,
    /// Whether files were removed since. Then there may be fewer bytes.
    pub lowered: bool,
}

impl State {
    /// Files were removed. The next append that needs room counts the free bytes, because counting
    /// takes long with many files.
    pub fn lower_held(&mut self) {
        if let Some(held) = &mut self.held {
            held.lowered = true;
        }
    }
}
