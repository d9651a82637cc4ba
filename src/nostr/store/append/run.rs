//! Runs: independent events, planned one by one and written to the files at once.

use std::collections::HashSet;
use std::time::Instant;

use crate::error::{Durable, Error, ErrorKind, Result};
use crate::ground::slice::{part, part_mut};
use crate::nostr::bytes::event::{EventRef, Flags, Id, Location};
use crate::nostr::bytes::format::FORMAT;
use crate::nostr::bytes::policy::{
    Address, Class, DELETION, asked_by, class_of, expires_at, targets_of,
};
use crate::nostr::bytes::record;
use crate::nostr::index::pending::{Batch, keys_of};
use crate::nostr::log::entry::{Entry, Lsn};
use crate::nostr::log::wal::EventWal;
use crate::nostr::pages::options::{History, now};
use crate::nostr::store::handle::{Shared, State};
use crate::nostr::store::hide::Flagged;
use crate::nostr::store::records::Records;
use crate::nostr::store::tombstones::Tombstones;

/// The size of one write of records to the files, limited by the room in the segment.
const RUN_BYTES: usize = 4 << 20;
/// The number of flags that may wait for a sync of the log.
const WAITING_FLAGS: usize = 65_536;

/// The result of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The event is stored.
    Stored(Location),
    /// The event was stored already.
    Duplicate(Location),
    /// The event is stored, but a newer version replaces it. The next compaction drops the event.
    Superseded(Location),
    /// The author deleted the event: it is not stored.
    Deleted,
    /// The event is expired: it is not stored.
    Expired,
    /// The event is ephemeral: its kind is not stored.
    Ephemeral,
}

impl Outcome {
    /// Whether this call stored the event.
    pub fn is_stored(self) -> bool {
        matches!(self, Self::Stored(_) | Self::Superseded(_))
    }
}

/// Independent events.
#[derive(Default)]
pub(super) struct Group {
    /// Records one after the other.
    pub(super) bytes: Vec<u8>,
    pub(super) records: Vec<Planned>,
    /// The free bytes of pages in the segment that gets the run.
    pub(super) room: u64,
    pub(super) ids: HashSet<Id>,
    /// The addresses of the run's events, and of the events that the run's requests delete.
    pub(super) addresses: HashSet<Address>,
    /// Stored events that the run replaces or deletes.
    pub(super) flagged: Flagged,
    /// The targets of the run's deletion requests.
    pub(super) tombstones: Tombstones,
}

pub(super) struct Planned {
    /// The end of the event's record.
    pub(super) end: usize,
    /// The event's index among the events of the call.
    pub(super) event: usize,
    pub(super) flags: Flags,
    pub(super) id: Id,
    pub(super) address: Option<Address>,
    pub(super) keys: usize,
}

impl Group {
    /// Whether the segment for the run has room for so many more bytes of pages. Otherwise the run
    /// ends, and the next run begins a segment.
    pub(super) fn has_room(&self, needed: u64) -> bool {
        self.records.is_empty() || needed <= self.room
    }

    /// Whether the outcome of an event, or of the events that it deletes, depends on this run.
    fn concerns(&self, event: &EventRef<'_>, address: Option<&Address>) -> bool {
        let asks_for_own = || {
            // The signature does not matter here: at worst the run ends early.
            let targets = asked_by(event);
            targets.ids.iter().any(|id| self.ids.contains(id))
                || targets.addresses.iter().any(|address| self.addresses.contains(address))
        };
        self.ids.contains(&event.id)
            || address.is_some_and(|address| self.addresses.contains(address))
            || self.tombstones.name(event, address)
            || event.kind == DELETION && asks_for_own()
    }
}

impl Shared {
    /// Append events in runs, and return the outcome of each.
    pub(super) fn append_all(
        &self,
        wal: &EventWal,
        state: &mut State,
        records: &mut Records,
        outcomes: &mut Vec<Outcome>,
    ) -> Result<()> {
        let (mut run, mut from) = (Group::default(), 0);
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

    /// Decide the outcome of an event with the record `record`. Only the run changes.
    fn plan(
        &self,
        state: &mut State,
        run: &mut Group,
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
        if state.is_deleted(&event, address.as_ref())? {
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
        // The caller replaces the outcome with the location.
        Ok(Outcome::Ephemeral)
    }

    /// Count the pages of another record in the run.
    pub(super) fn take_room(&self, state: &mut State, run: &mut Group, needed: u64) -> Result<()> {
        if run.records.is_empty() {
            run.room = self.room_from(state, needed)?;
        }
        // A record larger than a segment's limit gets a segment alone.
        run.room = run.room.saturating_sub(needed);
        Ok(())
    }

    /// Write a run to the files, and begin the next run.
    pub(super) fn store(
        &self,
        wal: &EventWal,
        state: &mut State,
        run: &mut Group,
        outcomes: &mut [Outcome],
    ) -> Result<()> {
        let Group { bytes, records, flagged, tombstones: asked, .. } = std::mem::take(run);
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
        state.logged_since.get_or_insert_with(Instant::now);
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

    /// Stop the handle: the next opening repairs the effects of an error.
    fn stopped(&self, state: &mut State, error: Error) -> Error {
        state.broken = Some(error.message().to_owned());
        error.of(FORMAT).with_durable(Durable::Unknown)
    }
}

/// The event of a record encoded by this process.
pub(super) fn own<'a>(record: &'a [u8], shared: &Shared) -> Result<EventRef<'a>> {
    record::event_of_own(record).map_err(|bad| {
        Error::new(ErrorKind::InvalidArgument, bad.reason()).of(FORMAT).at(&shared.dir)
    })
}
