//! Appending: what becomes of an event, and in which order it reaches the files.
//!
//! 1. The write-ahead log gets the records, and the flags of the events that they replace or delete.
//! 2. The last segment gets the same records. The flags wait in memory, where reads see them, until the
//!    log is synced; then they are written in place: a flag must not survive an event that is lost.
//! 3. The index gets what can be found, and loses what cannot.
//!
//! All but flags is in the page cache when `append` returns. A crash after 1 is made good by the next
//! opening (`open/redo.rs`); an error after 1 stops the handle, because only opening can tell what is
//! missing.

use std::collections::HashSet;

use super::handle::{EventStore, Shared, State};
use super::hide::Flagged;
use super::records::Records;
use super::tombstones::Tombstones;
use crate::durability::Durability;
use crate::error::{Durable, Error, ErrorKind, Result};
use crate::nostr::bytes::event::{Event, EventRef, Flags, Id, Location};
use crate::nostr::bytes::format::FORMAT;
use crate::nostr::bytes::policy::{
    Address, Class, DELETION, asked_by, class_of, expires_at, targets_of,
};
use crate::nostr::bytes::record;
use crate::nostr::index::pending::{Batch, keys_of};
use crate::nostr::log::entry::{Entry, Lsn};
use crate::nostr::log::wal::EventWal;
use crate::nostr::pages::options::History;
use crate::nostr::pages::options::now;
use crate::nostr::store::opened::Tail;
use crate::slice::{part, part_mut};

/// Records are written to the files in parts of about this size, or of what the segment has room for.
const RUN_BYTES: usize = 4 << 20;
/// So many flags may wait for a sync of the log.
const WAITING_FLAGS: usize = 65_536;

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// It is stored.
    Stored(Location),
    /// It was stored already.
    Duplicate(Location),
    /// It is stored, but a newer version counts; it goes with the next compaction.
    Superseded(Location),
    /// Its author deleted it: it is not stored.
    Deleted,
    /// Its time is over: it is not stored.
    Expired,
    /// Events of its kind are not stored.
    Ephemeral,
}

impl Outcome {
    /// Whether this call stored the event.
    pub fn is_stored(self) -> bool {
        matches!(self, Self::Stored(_) | Self::Superseded(_))
    }
}

/// Events that do not depend on each other.
#[derive(Default)]
struct Run {
    /// Records one after the other.
    bytes: Vec<u8>,
    records: Vec<Planned>,
    /// How many bytes of pages are left in the segment that gets these.
    room: u64,
    ids: HashSet<Id>,
    /// Of its replaceable and addressable events, and of those that its requests delete.
    addresses: HashSet<Address>,
    /// Stored events that lose their place.
    flagged: Flagged,
    /// What its deletion requests ask for.
    tombstones: Tombstones,
}

struct Planned {
    /// Its bytes end here.
    end: usize,
    /// Its place among the events of the call.
    event: usize,
    flags: Flags,
    id: Id,
    address: Option<Address>,
    keys: usize,
}

impl EventStore {
    /// Append an event whose id is the hash of its content; its signature is not checked. When this
    /// returns, the event survives the death of the process;
    /// [`Options::durability`](crate::nostr::Options::durability) says when it survives a power cut. The append
    /// that passes [`Options::checkpoint_bytes`](crate::nostr::Options::checkpoint_bytes) makes the checkpoint, and
    /// other calls on the store wait for it.
    pub fn append(&self, event: &Event) -> Result<Outcome> {
        let outcomes = self.append_many(std::slice::from_ref(event))?;
        Ok(outcomes.first().copied().unwrap_or(Outcome::Ephemeral))
    }

    /// Append events in their order, and say what became of each. After an error or a crash, the first
    /// ones may be stored: append all again, what is there is a duplicate.
    pub fn append_many(&self, events: &[Event]) -> Result<Vec<Outcome>> {
        let (shared, _) = self.writable()?;
        let (mut records, mut scratch) = (Records::default(), Vec::new());
        for event in events {
            records.push_checked(event, &mut scratch, shared)?;
        }
        self.append_records(&mut records)
    }

    /// Append what the log has, and no segment; the caller makes a checkpoint.
    pub(crate) fn append_again(&self, mut records: Records) -> Result<()> {
        self.append_unsynced(&mut records).map(drop)
    }

    /// The same for records.
    pub(crate) fn append_records(&self, records: &mut Records) -> Result<Vec<Outcome>> {
        let outcomes = self.append_unsynced(records)?;
        let (shared, wal) = self.writable()?;
        shared.keep_promise(wal)?;
        Ok(outcomes)
    }

    /// The same, whatever the durability: the caller commits.
    pub(super) fn append_unsynced(&self, records: &mut Records) -> Result<Vec<Outcome>> {
        let (shared, wal) = self.writable()?;
        let mut state = shared.state();
        state.check(shared)?;
        let mut outcomes = Vec::with_capacity(records.ends.len());
        let done = shared.append_all(wal, &mut state, records, &mut outcomes);
        drop(state);
        done.map_err(|error| match outcomes.iter().any(|outcome| outcome.is_stored()) {
            // Those of the runs before.
            true => error.with_durable(Durable::Unknown),
            false => error,
        })?;
        Ok(outcomes)
    }

    /// Store records as they are, whatever counts besides them: one after the other in `bytes`, each up
    /// to its end. Those of events that are there are passed over; returns how many were stored, and how
    /// many of them do not count.
    pub(crate) fn adopt(&self, bytes: &[u8], ends: &[usize]) -> Result<(u64, u64)> {
        let (shared, wal) = self.writable()?;
        let mut state = shared.state();
        state.check(shared)?;
        let (mut run, mut from, mut stored, mut hidden) = (Run::default(), 0, 0, 0);
        let mut has_written = false;
        let mut write = |state: &mut State, run: &mut Run| {
            state.forget_heads();
            let written = shared.store(wal, state, run, &mut []);
            let written = written.map_err(|error| match has_written {
                true => error.with_durable(Durable::Unknown),
                false => error,
            });
            has_written = true;
            written
        };
        for &end in ends {
            let record = part(bytes, from..end);
            from = end;
            let event = own(record, shared)?;
            let is_there = shared.asking_index(&mut state, |state| state.location(&event.id))?;
            if is_there.is_some() || run.ids.contains(&event.id) {
                continue;
            }
            let needed = state.segments.bytes_for(record)?;
            if !run.has_room(needed) {
                write(&mut state, &mut run)?;
            }
            run.ids.insert(event.id);
            shared.take_room(&mut state, &mut run, needed)?;
            stored += 1;
            hidden += u64::from(!event.flags.is_live());
            run.bytes.extend_from_slice(record);
            run.tombstones.add(&event, targets_of(&event));
            let (end, flags, id) = (run.bytes.len(), event.flags, event.id);
            let address = Address::of(&event);
            let keys = keys_of(&event);
            run.records.push(Planned { end, event: usize::MAX, flags, id, address, keys });
        }
        write(&mut state, &mut run)?;
        Ok((stored, hidden))
    }

    /// Where these events are, of those that are there.
    pub(crate) fn locations(&self, ids: &[Id]) -> Result<Vec<Location>> {
        let (shared, _) = self.writable()?;
        let mut state = shared.state();
        let mut found = Vec::new();
        for id in ids {
            found.extend(shared.asking_index(&mut state, |state| state.location(id))?);
        }
        Ok(found)
    }

    /// Set the flags of an event: what is deleted or replaced is not found, and goes with the next
    /// compaction.
    pub fn set_flags(&self, location: Location, flags: Flags) -> Result<()> {
        let (shared, wal) = self.writable()?;
        let mut state = shared.state();
        state.check(shared)?;
        state.segments.read(location, &mut Vec::new()).map_err(|e| e.of(FORMAT))?;
        let mut run = Run { flagged: [(location, flags.of_event())].into(), ..Run::default() };
        shared.store(wal, &mut state, &mut run, &mut [])?;
        drop(state);
        shared.keep_promise(wal)
    }

    /// Have the last events of the write-ahead log hide what they replace or delete: a power cut may
    /// have taken the end of the log, in which the flags stood. They were appended under the history that is
    /// stored.
    pub(crate) fn complete(&self, tail: &Tail) -> Result<()> {
        let (shared, wal) = self.writable()?;
        let mut state = shared.state();
        let (mut run, mut buf) = (Run::default(), Vec::new());
        // One after the other, as they were appended: what was deleted replaces nothing that came later.
        for &at in &tail.last {
            let event = state.segments.read(at, &mut buf)?.event;
            if !event.flags.is_live() {
                continue;
            }
            shared.asking_index(&mut state, |state| {
                if let Some(address) = Address::of(&event)
                    && state.manifest.history == History::Drop
                {
                    shared.replace_stored(state, &address, at, &mut run.flagged)?;
                }
                let targets = targets_of(&event);
                shared.delete(state, &event, &targets, &mut run.flagged, &mut run.addresses)
            })?;
        }
        for (at, _) in &tail.flagged {
            run.flagged.remove(at);
        }
        shared.store(wal, &mut state, &mut run, &mut [])
    }

    /// Return when everything that was appended is on stable storage. Other processes see from then on
    /// what was replaced or deleted.
    pub fn commit(&self) -> Result<()> {
        let (shared, wal) = self.writable()?;
        shared.commit(wal)
    }
}

impl Run {
    /// Whether the segment that gets the run has room for so many bytes of pages more: else the run ends, and
    /// the next one begins a segment.
    fn has_room(&self, needed: u64) -> bool {
        self.records.is_empty() || needed <= self.room
    }

    /// Whether what becomes of an event, or of what it deletes, depends on what this run does.
    fn concerns(&self, event: &EventRef<'_>, address: Option<&Address>) -> bool {
        let asks_for_own = || {
            // Signed or not: at worst the run ends here.
            let targets = asked_by(event);
            targets.ids.iter().any(|id| self.ids.contains(id))
                || targets.addresses.iter().any(|address| self.addresses.contains(address))
        };
        self.ids.contains(&event.id)
            || address.is_some_and(|address| self.addresses.contains(address))
            || self.tombstones.cover(event, address)
            || event.kind == DELETION && asks_for_own()
    }
}

impl Shared {
    /// Commit if the durability asks for it.
    fn keep_promise(&self, wal: &EventWal) -> Result<()> {
        match self.options.durability {
            Some(Durability::Always) => self.commit(wal),
            _ => Ok(()),
        }
    }

    fn commit(&self, wal: &EventWal) -> Result<()> {
        wal.sync()?;
        let mut state = self.state();
        match state.broken {
            None => self.write_flags(wal, &mut state),
            // What was appended is in the log.
            Some(_) => Ok(()),
        }
    }

    /// Write the flags that wait, if the log is durable up to the last entry that asks for one: a power
    /// cut may keep a flag and take the log's end, and an event would be hidden by one that is not
    /// there.
    fn write_flags(&self, wal: &EventWal, state: &mut State) -> Result<()> {
        let durable = wal.durable()?.is_some_and(|end| state.flags_asked < end);
        if !durable || state.segments.waiting_flags() == 0 {
            return Ok(());
        }
        let written = state.segments.write_flags();
        written.inspect_err(|error| state.broken = Some(error.message().to_owned()))
    }

    fn append_all(
        &self,
        wal: &EventWal,
        state: &mut State,
        records: &mut Records,
        outcomes: &mut Vec<Outcome>,
    ) -> Result<()> {
        let (mut run, mut from) = (Run::default(), 0);
        for (number, &end) in records.ends.iter().enumerate() {
            let record = part_mut(&mut records.bytes, from..end);
            from = end;
            let event = own(record, self)?;
            let address = Address::of(&event);
            let is_full =
                run.bytes.len() >= RUN_BYTES || !run.has_room(state.segments.bytes_for(record)?);
            if is_full || run.concerns(&event, address.as_ref()) {
                self.store(wal, state, &mut run, outcomes)?;
            }
            let planned = self.asking_index(state, |state| {
                self.plan(state, &mut run, number, record, address.clone())
            });
            let refused = |e: Error| e.of(FORMAT).at(&self.dir).with_durable(Durable::No);
            outcomes.push(planned.map_err(refused)?);
        }
        self.store(wal, state, &mut run, outcomes)
    }

    /// Decide what becomes of an event, of which `record` is the record; nothing is changed but the
    /// run.
    fn plan(
        &self,
        state: &mut State,
        run: &mut Run,
        number: usize,
        record: &mut [u8],
        address: Option<Address>,
    ) -> Result<Outcome> {
        let event = own(record, self)?;
        if class_of(event.kind) == Class::Ephemeral {
            return Ok(Outcome::Ephemeral);
        }
        if let Some(at) = state.location(&event.id)? {
            return Ok(Outcome::Duplicate(at));
        }
        if expires_at(event.kind, event.tags).is_some_and(|at| at <= self.options.now()) {
            return Ok(Outcome::Expired);
        }
        if state.tombstones()?.cover(&event, address.as_ref()) {
            return Ok(Outcome::Deleted);
        }
        let mut flags = Flags::default();
        if let Some(address) = &address {
            if self.history == History::Drop {
                flags = self.replace(state, &event, address, &mut run.flagged)?;
            }
            run.addresses.insert(address.clone());
        }
        if event.kind == DELETION {
            let targets = targets_of(&event);
            self.delete(state, &event, &targets, &mut run.flagged, &mut run.addresses)?;
            run.tombstones.add(&event, targets);
        }
        let (id, keys) = (event.id, keys_of(&event));
        let needed = state.segments.bytes_for(record)?;
        self.take_room(state, run, needed)?;
        run.ids.insert(id);
        record::set_flags(record, flags);
        run.bytes.extend_from_slice(record);
        let end = run.bytes.len();
        run.records.push(Planned { end, event: number, flags, id, address, keys });
        // Its place follows.
        Ok(Outcome::Ephemeral)
    }

    /// Have a run count the pages of a record that is added.
    fn take_room(&self, state: &mut State, run: &mut Run, needed: u64) -> Result<()> {
        if run.records.is_empty() {
            run.room = self.room_from(state, needed)?;
        }
        // One that is larger than a segment is meant to be has it for itself.
        run.room = run.room.saturating_sub(needed);
        Ok(())
    }

    /// Write a run to the files, and begin another.
    fn store(
        &self,
        wal: &EventWal,
        state: &mut State,
        run: &mut Run,
        outcomes: &mut [Outcome],
    ) -> Result<()> {
        let Run { bytes, records, flagged, tombstones: asked, .. } = std::mem::take(run);
        if records.is_empty() && flagged.is_empty() {
            return Ok(());
        }
        let mut slices = Vec::with_capacity(records.len());
        let mut from = 0;
        for planned in &records {
            slices.push(part(&bytes, from..planned.end));
            from = planned.end;
        }
        let room = self.make_room(wal, state, &slices);
        room.map_err(|error| error.of(FORMAT).with_durable(Durable::No))?;
        let inserts = slices.iter().map(|&record| Entry::Insert { record });
        let updates =
            flagged.iter().map(|(&at, flags)| Entry::UpdateFlags { at, flags: flags.of_event().0 });
        let second = now();
        let entries: Vec<_> = inserts.chain(updates).map(|entry| (entry, second)).collect();
        let first = wal.append_many(&entries)?;
        state.wal_bytes += bytes.len() as u64 + 64 * entries.len() as u64;
        if !flagged.is_empty() {
            state.flags_asked = Lsn(first.0 + entries.len() as u64 - 1);
        }
        let stored = self.write(wal, state, &slices, &flagged);
        let places = stored.map_err(|error| self.stopped(state, error))?;
        if let Some(tombstones) = &mut state.tombstones {
            tombstones.join(asked);
        }
        let (known, mut last) = (state.pending.known(), None);
        let mut batch = Batch { bytes, records: Vec::with_capacity(records.len()), keys: 0 };
        for (planned, at) in records.into_iter().zip(places) {
            batch.records.push((planned.end, at));
            batch.keys += planned.keys;
            if let Some(outcome) = outcomes.get_mut(planned.event) {
                let superseded = planned.flags.contains(Flags::REPLACED);
                *outcome = if superseded { Outcome::Superseded(at) } else { Outcome::Stored(at) };
            }
            known.ids.insert(planned.id, at);
            last = Some((at, planned.id));
            if let Some(address) = planned.address {
                let versions = known.versions.entry((address.pubkey, address.kind));
                versions.or_default().push(at);
                if planned.flags.is_live() {
                    known.heads.insert(address, at);
                }
            }
        }
        last.into_iter().for_each(|(at, id)| state.has_last(at, id));
        state.index_changes(batch, &flagged).map_err(|error| self.stopped(state, error))
    }

    fn write(
        &self,
        wal: &EventWal,
        state: &mut State,
        slices: &[&[u8]],
        flagged: &Flagged,
    ) -> Result<Vec<Location>> {
        let places = state.segments.append(slices)?;
        for (&at, &flags) in flagged {
            state.segments.set_flags_later(at, flags)?;
        }
        if state.segments.waiting_flags() >= WAITING_FLAGS {
            wal.sync()?;
        }
        self.write_flags(wal, state)?;
        Ok(places)
    }

    /// Have the handle take no more: opening again repairs what an error left.
    fn stopped(&self, state: &mut State, error: Error) -> Error {
        state.broken = Some(error.message().to_owned());
        error.of(FORMAT).with_durable(Durable::Unknown)
    }
}

/// The event of a record that was encoded here.
fn own<'a>(record: &'a [u8], shared: &Shared) -> Result<EventRef<'a>> {
    record::event_of_own(record).map_err(|bad| {
        Error::new(ErrorKind::InvalidArgument, bad.reason()).of(FORMAT).at(&shared.dir)
    })
}
