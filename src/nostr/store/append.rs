//! Appending, and the order in which an event reaches the files.
//!
//! 1. The write-ahead log gets the records, and the flags of the events that they replace or delete.
//! 2. The last segment gets the same records. The flags wait in memory, where reads see them, until the
//!    log is synced; then they are written in place: a flag must not survive an event that is lost.
//! 3. The index gets what can be found, and loses what cannot.
//!
//! All but flags is in the page cache when `append` returns. A crash after 1 is made good by the next
//! opening (`open/redo.rs`); an error after 1 stops the handle, because only opening can tell what is
//! missing.

mod run;

use super::handle::{EventStore, Shared, State};
use super::records::Records;
use crate::durability::Durability;
use crate::error::{Durable, Result};
use crate::nostr::bytes::event::{Event, Flags, Id, Location};
use crate::nostr::bytes::format::FORMAT;
use crate::nostr::bytes::policy::{Address, targets_of};
use crate::nostr::index::pending::keys_of;
use crate::nostr::log::wal::EventWal;
use crate::nostr::pages::options::History;
use crate::nostr::store::opened::Tail;
use crate::slice::part;
pub use run::Outcome;
use run::{Group, Planned, own};

impl EventStore {
    /// Append an event whose id is the hash of its content; its signature is not checked. When this
    /// returns, the event survives the death of the process;
    /// [`Options::durability`](crate::nostr::Options::durability) says when it survives a power cut. The append
    /// that passes [`Options::checkpoint_bytes`](crate::nostr::Options::checkpoint_bytes) makes the checkpoint, and
    /// other calls on the store wait for it.
    ///
    /// # Errors
    ///
    /// Fails with [`TooLarge`](crate::ErrorKind::TooLarge) for a record beyond the limit, and with
    /// [`Poisoned`](crate::ErrorKind::Poisoned) after a write or sync that failed; see [Errors](crate#errors).
    pub fn append(&self, event: &Event) -> Result<Outcome> {
        let outcomes = self.append_many(std::slice::from_ref(event))?;
        Ok(outcomes.first().copied().unwrap_or(Outcome::Ephemeral))
    }

    /// Append events in their order, and say what became of each. After an error or a crash, the first
    /// ones may be stored: append all again, what is there is a duplicate.
    ///
    /// # Errors
    ///
    /// Fails with [`TooLarge`](crate::ErrorKind::TooLarge) for a record beyond the limit, and with
    /// [`Poisoned`](crate::ErrorKind::Poisoned) after a write or sync that failed; see [Errors](crate#errors).
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
        let (mut run, mut from, mut stored, mut hidden) = (Group::default(), 0, 0, 0);
        let mut has_written = false;
        let mut write = |state: &mut State, run: &mut Group| {
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
    ///
    /// # Errors
    ///
    /// Fails for a handle for reading ([`ReadOnly`](crate::ErrorKind::ReadOnly)), and for damage; see
    /// [Errors](crate#errors).
    pub fn set_flags(&self, location: Location, flags: Flags) -> Result<()> {
        let (shared, wal) = self.writable()?;
        let mut state = shared.state();
        state.check(shared)?;
        state.segments.read(location, &mut Vec::new()).map_err(|e| e.of(FORMAT))?;
        let mut run = Group { flagged: [(location, flags.of_event())].into(), ..Group::default() };
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
        let (mut run, mut buf) = (Group::default(), Vec::new());
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
    ///
    /// # Errors
    ///
    /// Fails if the sync fails, now or before ([`Poisoned`](crate::ErrorKind::Poisoned)); see [Errors](crate#errors).
    pub fn sync(&self) -> Result<()> {
        let (shared, wal) = self.writable()?;
        shared.make_durable(wal)
    }
}

impl Shared {
    /// Commit if the durability asks for it.
    fn keep_promise(&self, wal: &EventWal) -> Result<()> {
        match self.options.durability {
            Some(Durability::Always) => self.make_durable(wal),
            _ => Ok(()),
        }
    }

    fn make_durable(&self, wal: &EventWal) -> Result<()> {
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
}
