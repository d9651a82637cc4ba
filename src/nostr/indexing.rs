//! Keeping the index with the segments.
//!
//! The index says up to where it covers the segments: of which compaction, and the byte of the last
//! segment. What it lacks is read from there on; where that place is not in the store, the index is
//! made again. It may know more than the segments after a power cut: then the place lies beyond their
//! end.

use std::collections::HashMap;
use std::path::Path;

use super::FORMAT;
use super::compaction::is_kept;
use super::event::{EventRef, Flags, Id, Location};
use super::index::{Change, Index};
use super::options::Options;
use super::policy::Address;
use super::record;
use super::segment::Found;
use super::store::{EventStore, State};
use crate::error::{Error, ErrorKind, Result};
use crate::lines;
use crate::sidecar::sidecar_dir;

/// The index is made in parts of so many.
const PART_EVENTS: usize = 50_000;
/// So many events may wait for the index.
const PENDING_EVENTS: usize = 50_000;
/// The name of its directory in `.deedbook`.
const INDEX_NAME: &str = "events";

/// What an index covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Covered {
    /// The number of the compaction.
    compactions: u64,
    /// The last segment.
    segment: u32,
    /// Its end.
    end: u32,
}

impl Covered {
    fn encode(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        let (compactions, rest) = bytes.split_at_mut(8);
        let (segment, end) = rest.split_at_mut(4);
        compactions.copy_from_slice(&self.compactions.to_be_bytes());
        segment.copy_from_slice(&self.segment.to_be_bytes());
        end.copy_from_slice(&self.end.to_be_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (&compactions, rest) = bytes.split_first_chunk()?;
        let (&segment, rest) = rest.split_first_chunk()?;
        let (&end, []) = rest.split_first_chunk()? else { return None };
        Some(Self {
            compactions: u64::from_be_bytes(compactions),
            segment: u32::from_be_bytes(segment),
            end: u32::from_be_bytes(end),
        })
    }
}

impl EventStore {
    /// Delete the index and make it again from the segments; returns how many events it has. Appends
    /// and queries wait.
    pub fn reindex(&self) -> Result<u64> {
        let (shared, _) = self.writable()?;
        let mut state = shared.state();
        state.check(shared)?;
        state.catch_up_index()?;
        // Its files are deleted: it must be closed before.
        state.index = None;
        let sidecar = sidecar_dir(&shared.dir);
        let made = state.remake_index(&shared.options, &sidecar);
        made.map_err(|error| {
            state.broken = Some(error.message().to_owned());
            error.of(FORMAT)
        })
    }
}

impl State {
    fn remake_index(&mut self, options: &Options, sidecar: &Path) -> Result<u64> {
        if options.index_on_disk {
            drop(Index::recreate(&sidecar.join(INDEX_NAME))?);
        }
        let indexed = self.open_index(options, sidecar)?;
        self.index_durable()?;
        Ok(indexed)
    }

    /// Have the index cover the segments; returns how many events it lacked.
    pub(super) fn open_index(&mut self, options: &Options, sidecar: &Path) -> Result<u64> {
        let dir = sidecar.join(INDEX_NAME);
        let index = match options.index_on_disk {
            true => open_or_make(&dir)?,
            false => Index::in_memory(),
        };
        let covered = index.covered().ok().flatten();
        let from = covered.as_deref().and_then(Covered::decode).filter(|covered| {
            let open = self.segments.by_id.get(&covered.segment);
            covered.compactions == self.manifest.compactions
                && open.is_some_and(|open| covered.end <= open.segment.end())
        });
        let index = match covered.is_some() && from.is_none() {
            true => {
                drop(index);
                Index::recreate(&dir)?
            }
            false => index,
        };
        let indexed = self.index_from(&index, from)?;
        self.index = Some(index);
        Ok(indexed)
    }

    /// Add the events of the segments from a place on.
    fn index_from(&self, index: &Index, from: Option<Covered>) -> Result<u64> {
        let first = from.map_or(0, |from| from.segment);
        let mut indexed = 0;
        for (&id, open) in self.segments.by_id.range(first..) {
            let begin = from.filter(|from| from.segment == id).map_or(0, |from| from.end);
            indexed += self.index_segment(index, id, begin)?;
            let end = open.segment.end();
            let covered = Covered { compactions: self.manifest.compactions, segment: id, end };
            index.apply(&[], Some(&covered.encode()))?;
        }
        Ok(indexed)
    }

    fn index_segment(&self, index: &Index, id: u32, begin: u32) -> Result<u64> {
        let Some(open) = self.segments.by_id.get(&id) else { return Ok(0) };
        let mut scan = open.segment.scan(begin);
        let mut part = Part::default();
        let mut count = 0;
        while let Some(found) = scan.next()? {
            match found {
                Found::Record(found) => {
                    part.push(found.bytes, Location { segment: id, offset: found.offset });
                    count += 1;
                }
                Found::Damage(damage) => lines::warn(format_args!(
                    "what a damaged part of segment {id} held is not found: {}",
                    damage.reason
                )),
            }
            if part.places.len() >= PART_EVENTS {
                part.apply(index, None)?;
            }
        }
        part.apply(index, None)?;
        Ok(count)
    }

    /// Forget the events of an old segment that no new one has.
    fn forget_dropped(&self, index: &Index, id: u32) -> Result<()> {
        let Some(open) = self.segments.by_id.get(&id) else { return Ok(()) };
        let mut scan = open.segment.scan(0);
        let mut part = Part::default();
        while let Some(found) = scan.next()? {
            if let Found::Record(found) = found
                && !is_kept(&found.event)
            {
                part.push(found.bytes, Location { segment: id, offset: found.offset });
            }
            if part.places.len() >= PART_EVENTS {
                part.forget(index)?;
            }
        }
        part.forget(index)
    }

    /// Note where the events of a new segment lie now.
    fn move_segment(&self, index: &Index, id: u32) -> Result<()> {
        let Some(open) = self.segments.by_id.get(&id) else { return Ok(()) };
        let mut scan = open.segment.scan(0);
        let mut moves = Vec::new();
        while let Some(found) = scan.next()? {
            let Found::Record(found) = found else { continue };
            let (at, event) = (Location { segment: id, offset: found.offset }, found.event);
            moves.push(Change::Move(event.id, event.created_at, at));
            if moves.len() >= PART_EVENTS {
                index.apply(&moves, None)?;
                moves.clear();
            }
        }
        index.apply(&moves, None)
    }

    /// Have the index know what was appended, and what lost its place: at the latest when it is asked.
    pub(super) fn index_changes(
        &mut self,
        stored: &[(EventRef<'_>, &[u8], Location)],
        flagged: &[(Location, Flags)],
    ) -> Result<()> {
        for &(event, record, at) in stored {
            self.pending.ids.insert(event.id, at);
            self.pending.part.push(record, at);
            if let Some(address) = Address::of(&event).filter(|_| event.flags.is_live()) {
                self.pending.heads.insert(address, at);
            }
        }
        let mut buf = Vec::new();
        let mut counts_otherwise = false;
        for &(at, flags) in flagged {
            let record = self.segments.read(at, &mut buf)?;
            self.pending.part.push(record.bytes, at);
            // Another version may count now than the one that waits for the index.
            counts_otherwise |= flags != Flags::REPLACED && Address::of(&record.event).is_some();
        }
        match counts_otherwise || self.pending.part.places.len() >= PENDING_EVENTS {
            true => self.catch_up_index(),
            false => Ok(()),
        }
    }

    /// Have the index know all there is.
    pub(super) fn catch_up_index(&mut self) -> Result<()> {
        if self.pending.part.places.is_empty() {
            return Ok(());
        }
        let covered = self.covered().map(Covered::encode);
        let mut pending = std::mem::take(&mut self.pending);
        pending.part.apply(self.index()?, covered.as_ref().map(|bytes| &bytes[..]))
    }

    /// Where an event lies, whatever its flags.
    pub(super) fn location(&self, id: &Id) -> Result<Option<Location>> {
        match self.pending.ids.get(id) {
            Some(&at) => Ok(Some(at)),
            None => self.index()?.location(id),
        }
    }

    /// Where the version lies that counts.
    pub(super) fn latest(&self, address: &Address) -> Result<Option<Location>> {
        match self.pending.heads.get(address) {
            Some(&at) => Ok(Some(at)),
            None => self.index()?.latest(&address.pubkey, address.kind, &address.d),
        }
    }

    /// After a compaction: forget what the old segments had, and find the rest in the new ones.
    pub(super) fn index_moved(&mut self, old: &[u32], new: &[u32]) -> Result<()> {
        self.catch_up_index()?;
        for &id in old {
            self.forget_dropped(self.index()?, id)?;
        }
        for &id in new {
            self.move_segment(self.index()?, id)?;
        }
        let covered = self.covered().map(Covered::encode);
        self.index()?.apply(&[], covered.as_ref().map(|bytes| &bytes[..]))
    }

    /// Return when the index knows all there is, on stable storage as far as it is kept in files.
    pub(super) fn index_durable(&mut self) -> Result<()> {
        self.catch_up_index()?;
        self.index.as_ref().map_or(Ok(()), Index::sync)
    }

    fn covered(&self) -> Option<Covered> {
        let (&segment, open) = self.segments.by_id.iter().next_back()?;
        let (compactions, end) = (self.manifest.compactions, open.segment.end());
        Some(Covered { compactions, segment, end })
    }
}

/// What the index does not know yet: large changes are many times quicker than small ones.
#[derive(Debug, Default)]
pub(super) struct Pending {
    part: Part,
    ids: HashMap<Id, Location>,
    heads: HashMap<Address, Location>,
}

/// Records to be indexed.
#[derive(Debug, Default)]
struct Part {
    bytes: Vec<u8>,
    /// Where each ends, and where it lies.
    places: Vec<(usize, Location)>,
}

impl Part {
    fn push(&mut self, record: &[u8], at: Location) {
        self.bytes.extend_from_slice(record);
        self.places.push((self.bytes.len(), at));
    }

    /// Of two records of one event the later counts.
    fn apply(&mut self, index: &Index, covered: Option<&[u8]>) -> Result<()> {
        let events = self.events()?;
        let mut changes = Vec::with_capacity(events.len());
        for (event, at) in &events {
            changes.push(Change::Insert(event, *at));
            if !event.flags.is_live() {
                changes.push(Change::Hide(event));
            }
        }
        index.apply(&changes, covered)?;
        self.clear();
        Ok(())
    }

    fn forget(&mut self, index: &Index) -> Result<()> {
        let events = self.events()?;
        let changes: Vec<Change<'_>> =
            events.iter().map(|(event, _)| Change::Remove(event)).collect();
        index.apply(&changes, None)?;
        self.clear();
        Ok(())
    }

    fn events(&self) -> Result<Vec<(EventRef<'_>, Location)>> {
        let mut events = Vec::with_capacity(self.places.len());
        let mut from = 0;
        for &(end, at) in &self.places {
            events.push((event_of(self.bytes.get(from..end).unwrap_or_default())?, at));
            from = end;
        }
        Ok(events)
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.places.clear();
    }
}

/// The event of a record that was checked before.
fn event_of(record: &[u8]) -> Result<EventRef<'_>> {
    record::parse(record).map_err(|bad| Error::new(ErrorKind::Corrupt, bad.reason()).of(FORMAT))
}

/// An index that cannot be opened is made again: all that it holds stands in the segments.
fn open_or_make(dir: &Path) -> Result<Index> {
    match Index::open(dir) {
        Err(error) if error.kind() == ErrorKind::Corrupt => {
            lines::warn(format_args!("the index is made again: {error}"));
            Index::recreate(dir)
        }
        opened => opened,
    }
}
