//! The changes that wait for the index. Large writes are many times quicker than small writes, so
//! events wait for a large write. A thread makes the keys and writes them while further events
//! wait.

use crate::nostr::bytes::format::FORMAT;
use std::collections::HashMap;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use super::covered::COVERED_BYTES;
use super::lookup::{Change, Changes, Index};
use crate::error::{Error, ErrorKind, Result};
use crate::ground::slice::part;
use crate::nostr::bytes::event::{EventRef, Id, Location};
use crate::nostr::bytes::policy::Address;
use crate::nostr::bytes::record;
use crate::nostr::pages::on_all_cores::gone;

/// The number of keys in one write to the index: the keys of about 120,000 events. The keys take
/// some 100 MB of memory, and the waiting events as much again.
const KEYS_AT_ONCE: usize = 1_000_000;
/// The keys by id, author, kind, author and kind, and time.
const KEYS_BESIDES_TAGS: usize = 5;
/// The number of record bytes that triggers a write earlier.
const BYTES_AT_ONCE: usize = 96 << 20;

/// The approximate number of an event's keys.
pub fn keys_of(event: &EventRef<'_>) -> usize {
    KEYS_BESIDES_TAGS + event.tags.iter().count()
}

/// Events that wait for the index, and the known facts about them.
#[derive(Debug)]
pub struct Pending {
    now: Waiting,
    /// Events that a thread is writing, or failed to write.
    flush: Option<Flush>,
    keys_max: usize,
}

#[derive(Debug, Default)]
struct Waiting {
    batches: Vec<Batch>,
    keys: usize,
    bytes: usize,
    known: Known,
}

/// Records one after the other, with their locations.
#[derive(Debug, Default)]
pub struct Batch {
    pub bytes: Vec<u8>,
    /// The end and the location of each record.
    pub records: Vec<(usize, Location)>,
    /// The approximate number of keys.
    pub keys: usize,
}

/// Facts about events that the index does not have yet.
#[derive(Debug, Default)]
pub struct Known {
    pub ids: HashMap<Id, Location>,
    /// The current versions of replaceable and addressable events.
    pub heads: HashMap<Address, Location>,
    /// All versions, by author and kind.
    pub versions: HashMap<([u8; 32], u16), Vec<Location>>,
    /// Whether several heads of one address may be among the events.
    pub is_unsure: bool,
}

#[derive(Debug)]
struct Flush {
    batches: Arc<Vec<Batch>>,
    covered: Option<[u8; COVERED_BYTES]>,
    known: Known,
    /// `None` after an error, and before the thread begins.
    thread: Option<JoinHandle<Result<()>>>,
}

impl Default for Pending {
    fn default() -> Self {
        Self { now: Waiting::default(), flush: None, keys_max: KEYS_AT_ONCE }
    }
}

impl Pending {
    /// Set another limit of keys.
    pub fn with_keys_max(self, keys_max: usize) -> Self {
        Self { keys_max, ..self }
    }

    /// The number of keys in one write.
    pub fn keys_max(&self) -> usize {
        self.keys_max
    }

    /// Add events. The caller notes the facts about them in [`Pending::known`].
    pub fn add(&mut self, batch: Batch) {
        if !batch.records.is_empty() {
            self.now.keys += batch.keys;
            self.now.bytes += batch.bytes.len();
            self.now.batches.push(batch);
        }
    }

    /// The facts about the newest waiting events.
    pub fn known(&mut self) -> &mut Known {
        &mut self.now.known
    }

    /// The facts about all waiting events, the newest first.
    pub fn all_known(&self) -> impl Iterator<Item = &Known> {
        [Some(&self.now.known), self.flush.as_ref().map(|flush| &flush.known)].into_iter().flatten()
    }

    /// Forget a current version, or any version of the address.
    pub fn forget_head(&mut self, address: &Address, at: Option<Location>) {
        let flush = self.flush.as_mut().map(|flush| &mut flush.known);
        for known in [Some(&mut self.now.known), flush].into_iter().flatten() {
            if at.is_none() || known.heads.get(address).copied() == at {
                known.heads.remove(address);
            }
        }
    }

    /// Whether a thread is writing.
    pub fn is_writing(&self) -> bool {
        let thread = self.flush.as_ref().and_then(|flush| flush.thread.as_ref());
        thread.is_some_and(|thread| !thread.is_finished())
    }

    /// Whether a write is due.
    pub fn is_due(&self) -> bool {
        self.now.keys >= self.keys_max || self.now.bytes >= BYTES_AT_ONCE
    }

    /// Start a thread that writes the waiting events, after the previous thread ends. Returns the
    /// facts of the previous write.
    pub fn begin(
        &mut self,
        index: &Arc<Index>,
        covered: Option<[u8; COVERED_BYTES]>,
    ) -> Result<Option<Known>> {
        let done = self.take(index, covered)?;
        if let Some(flush) = &mut self.flush {
            let (index, batches) = (index.clone(), flush.batches.clone());
            let write = move || write(&index, &batches, covered);
            // Without a thread, the next wait writes.
            flush.thread = thread::Builder::new().name("deedbook-index".into()).spawn(write).ok();
        }
        Ok(done)
    }

    /// Leave the waiting events for the next [`Pending::wait`].
    pub fn take(
        &mut self,
        index: &Index,
        covered: Option<[u8; COVERED_BYTES]>,
    ) -> Result<Option<Known>> {
        let done = self.wait(index)?;
        if !self.now.batches.is_empty() {
            let Waiting { batches, known, .. } = std::mem::take(&mut self.now);
            let batches = Arc::new(batches);
            self.flush = Some(Flush { batches, covered, known, thread: None });
        }
        Ok(done)
    }

    /// Wait for the thread, and retry a failed write. Returns the facts about the written events.
    pub fn wait(&mut self, index: &Index) -> Result<Option<Known>> {
        let Some(flush) = &mut self.flush else { return Ok(None) };
        match flush.thread.take().map(JoinHandle::join) {
            Some(Ok(written)) => written?,
            Some(Err(_)) => return Err(gone()),
            None => write(index, &flush.batches, flush.covered)?,
        }
        Ok(self.flush.take().map(|flush| flush.known))
    }

    /// Wait until no thread uses the index, before the index is closed.
    pub fn leave(&mut self) {
        if let Some(thread) = self.flush.as_mut().and_then(|flush| flush.thread.take()) {
            drop(thread.join());
        }
    }
}

fn write(index: &Index, batches: &[Batch], covered: Option<[u8; COVERED_BYTES]>) -> Result<()> {
    let mut changes = Changes::default();
    for batch in batches {
        let mut from = 0;
        for &(end, at) in &batch.records {
            let event = record::event_of_own(part(&batch.bytes, from..end))
                .map_err(|bad| Error::new(ErrorKind::InvalidArgument, bad.reason()).of(FORMAT))?;
            changes.push(Change::Insert(&event, at));
            from = end;
        }
    }
    // One write: the index must not hold events beyond its stored position.
    index.apply_all(&mut changes, covered.as_ref().map(|bytes| &bytes[..]))
}
