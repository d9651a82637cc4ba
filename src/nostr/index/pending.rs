//! What the index does not know yet. Large changes are many times quicker than small ones, so events
//! wait until there are many; a thread makes their keys and writes them while further ones wait.

use crate::nostr::bytes::format::FORMAT;
use std::collections::HashMap;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use super::covered::COVERED_BYTES;
use super::lookup::{Change, Changes, Index};
use crate::error::{Error, ErrorKind, Result};
use crate::nostr::bytes::event::{EventRef, Id, Location};
use crate::nostr::bytes::policy::Address;
use crate::nostr::bytes::record;
use crate::nostr::pages::on_all_cores::gone;
use crate::slice::part;

/// So many keys are written to the index at once: those of about 120,000 events. They take some 100 MB of
/// memory, and as much what waits meanwhile.
pub const KEYS_AT_ONCE: usize = 1_000_000;
/// By id, author, kind, both, and time.
const KEYS_BESIDES_TAGS: usize = 5;
/// Fewer, if the records have so many bytes.
const BYTES_AT_ONCE: usize = 96 << 20;

/// About how many keys an event has.
pub fn keys_of(event: &EventRef<'_>) -> usize {
    KEYS_BESIDES_TAGS + event.tags.iter().count()
}

/// Events that wait for the index, and what is known of them meanwhile.
#[derive(Debug)]
pub struct Pending {
    now: Waiting,
    /// Those that a thread is writing, or could not write.
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

/// Records one after the other, with their places.
#[derive(Debug, Default)]
pub struct Batch {
    pub bytes: Vec<u8>,
    /// Where each ends, and where it lies.
    pub records: Vec<(usize, Location)>,
    /// About how many keys they have.
    pub keys: usize,
}

/// What is asked of events before the index knows them.
#[derive(Debug, Default)]
pub struct Known {
    pub ids: HashMap<Id, Location>,
    /// Of the replaceable and addressable ones, those that count.
    pub heads: HashMap<Address, Location>,
    /// All of them, by author and kind.
    pub versions: HashMap<([u8; 32], u16), Vec<Location>>,
    /// Whether several heads of one address may be among them.
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
    /// The same, with another limit.
    pub fn with_keys_max(self, keys_max: usize) -> Self {
        Self { keys_max, ..self }
    }

    /// So many keys are written at once.
    pub fn keys_max(&self) -> usize {
        self.keys_max
    }

    /// Add events, of which what is asked is noted in [`Pending::known`].
    pub fn add(&mut self, batch: Batch) {
        if !batch.records.is_empty() {
            self.now.keys += batch.keys;
            self.now.bytes += batch.bytes.len();
            self.now.batches.push(batch);
        }
    }

    /// What is known of the events that were added last.
    pub fn known(&mut self) -> &mut Known {
        &mut self.now.known
    }

    /// The same of all that wait, the last ones first.
    pub fn all_known(&self) -> impl Iterator<Item = &Known> {
        [Some(&self.now.known), self.flush.as_ref().map(|flush| &flush.known)].into_iter().flatten()
    }

    /// Forget a version that counted, or any of the address.
    pub fn forget_head(&mut self, address: &Address, at: Option<Location>) {
        let flush = self.flush.as_mut().map(|flush| &mut flush.known);
        for known in [Some(&mut self.now.known), flush].into_iter().flatten() {
            if at.is_none() || known.heads.get(address).copied() == at {
                known.heads.remove(address);
            }
        }
    }

    /// Whether it is time to write.
    pub fn is_due(&self) -> bool {
        self.now.keys >= self.keys_max || self.now.bytes >= BYTES_AT_ONCE
    }

    /// Have a thread write what waits, after what the one before writes. Gives what was known of that.
    pub fn begin(
        &mut self,
        index: &Arc<Index>,
        covered: Option<[u8; COVERED_BYTES]>,
    ) -> Result<Option<Known>> {
        let done = self.take(index, covered)?;
        if let Some(flush) = &mut self.flush {
            let (index, batches) = (index.clone(), flush.batches.clone());
            let write = move || write(&index, &batches, covered);
            // Where there is no thread, the next wait writes.
            flush.thread = thread::Builder::new().name("deedbook-index".into()).spawn(write).ok();
        }
        Ok(done)
    }

    /// Have the next [`Pending::wait`] write what waits.
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

    /// Return when no thread writes. What could not be written is tried again. Gives what was known of it.
    pub fn wait(&mut self, index: &Index) -> Result<Option<Known>> {
        let Some(flush) = &mut self.flush else { return Ok(None) };
        match flush.thread.take().map(JoinHandle::join) {
            Some(Ok(written)) => written?,
            Some(Err(_)) => return Err(gone()),
            None => write(index, &flush.batches, flush.covered)?,
        }
        Ok(self.flush.take().map(|flush| flush.known))
    }

    /// Return when no thread uses the index: it is about to be closed.
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
    // In one write: the index must not hold events beyond the place that it says it covers.
    index.apply_all(&mut changes, covered.as_ref().map(|bytes| &bytes[..]))
}
