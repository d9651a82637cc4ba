//! Appending, and the order in which an event reaches the files.
//!
//! 1. The write-ahead log gets the records, and the flags of the events that they replace or
//!    delete.
//! 2. The last segment gets the same records. The flags wait in memory, visible to reads, until the
//!    log is synced. Then they are written in place, because a flag must not survive the loss of
//!    the event that set it.
//! 3. The index adds the events that queries can find, and removes hidden events.
//!
//! When `append` returns, everything but flags is in the page cache. After a crash past step 1, the
//! next opening completes the append (`open/redo.rs`). An error past step 1 stops the handle,
//! because only opening can find the missing parts.

mod run;

use super::handle::{EventStore, Shared, State};
use super::hide::Flagged;
use super::records::Records;
use crate::durability::Durability;
use crate::error::{Durable, Result};
use crate::ground::slice::part;
use crate::nostr::bytes::event::{Event, Flags, Id, Location};
use crate::nostr::bytes::format::FORMAT;
use crate::nostr::bytes::policy::{Address, targets_of};
use crate::nostr::index::pending::keys_of;
use crate::nostr::log::wal::EventWal;
use crate::nostr::pages::options::History;
use crate::nostr::store::opened::Tail;
pub use run::Outcome;
use run::{Group, Planned, own};

impl EventStore {
    /// Append an event whose id is the hash of its content; the signature is not checked. On
    /// return, the event survives a crash of the process;
    /// [`Options::durability`](crate::nostr::Options::durability) decides when it survives a power
    /// cut. The append that passes
    /// [`Options::checkpoint_bytes`](crate::nostr::Options::checkpoint_bytes) makes the checkpoint,
    /// and other calls on the store wait meanwhile.
    ///
    /// # Errors
    ///
    /// Fails with [`TooLarge`](crate::ErrorKind::TooLarge) for a record beyond the limit, and with
    /// [`Poisoned`](crate::ErrorKind::Poisoned) after a write or sync that failed; see [Errors](crate#errors).
    pub fn append(&self, event: &Event) -> Result<Outcome> {
        let outcomes = self.append_many(std::slice::from_ref(event))?;
        Ok(outcomes.first().copied().unwrap_or(Outcome::Ephemeral))
    }

    /// Append events in their order, and return the outcome of each. After an error or a crash, the
    /// first events may be stored. You can append all events again: stored events count as
    /// duplicates.
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

    /// Append the events that are in the log and in no segment. The caller then makes a checkpoint.
    pub(crate) fn append_again(&self, mut records: Records) -> Result<()> {
        self.append_unsynced(&mut records).map(drop)
    }

    /// Append events from records.
    pub(crate) fn append_records(&self, records: &mut Records) -> Result<Vec<Outcome>> {
        let outcomes = self.append_unsynced(records)?;
        let (shared, wal) = self.writable()?;
        shared.keep_promise(wal)?;
        Ok(outcomes)
    }

    /// Append events from records without a sync, whatever the durability: the caller commits.
    pub(super) fn append_unsynced(&self, records: &mut Records) -> Result<Vec<Outcome>> {
        let (shared, wal) = self.writable()?;
        let mut state = shared.state();
        state.check(shared)?;
        let mut outcomes = Vec::with_capacity(records.ends.len());
        let done = shared.append_all(wal, &mut state, records, &mut outcomes);
        drop(state);
        done.map_err(|error| match outcomes.iter().any(|outcome| outcome.is_stored()) {
            // Earlier runs may be durable.
            true => error.with_durable(Durable::Unknown),
            false => error,
        })?;
        Ok(outcomes)
    }

    /// Store records as they are, even if other events hide them. The records lie one after the
    /// other in `bytes`, each up to its end. Events already stored are skipped. Returns the number
    /// of stored events, and how many of them are hidden.
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

    /// The locations of the stored events among these ids, whatever their flags: for `nostr/`.
    ///
    /// # Errors
    ///
    /// Fails for a handle for reading ([`ReadOnly`](crate::ErrorKind::ReadOnly)).
    #[doc(hidden)]
    pub fn locations(&self, ids: &[Id]) -> Result<Vec<Location>> {
        let (shared, _) = self.writable()?;
        let mut state = shared.state();
        let mut found = Vec::new();
        for id in ids {
            found.extend(shared.asking_index(&mut state, |state| state.location(id))?);
        }
        Ok(found)
    }

    /// Set the flags of an event. Queries skip a deleted or replaced event, and the next compaction
    /// drops it.
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
        shared.flag_all(wal, &mut state, [(location, flags.of_event())].into())?;
        drop(state);
        shared.keep_promise(wal)
    }

    /// Delete the stored events among these ids by one write, and sync once: for `nostr/`. A
    /// compaction in between cannot move another event to a location that the caller knows.
    ///
    /// # Errors
    ///
    /// Fails for a handle for reading ([`ReadOnly`](crate::ErrorKind::ReadOnly)), and for damage.
    #[doc(hidden)]
    pub fn delete_all(&self, ids: &[Id]) -> Result<()> {
        let (shared, wal) = self.writable()?;
        let mut state = shared.state();
        state.check(shared)?;
        let (mut run, mut buf) = (Group::default(), Vec::new());
        for id in ids {
            let Some(at) = shared.asking_index(&mut state, |state| state.location(id))? else {
                continue;
            };
            let flags = state.segments.read(at, &mut buf).map_err(|e| e.of(FORMAT))?.event.flags;
            run.flagged.insert(at, (flags | Flags::DELETED).of_event());
        }
        shared.store(wal, &mut state, &mut run, &mut [])?;
        drop(state);
        shared.keep_promise(wal)
    }

    /// Make the last events of the write-ahead log hide the events that they replace or delete. A
    /// power cut may have lost the end of the log with the flags. The events were appended under
    /// the stored history setting.
    pub(crate) fn complete(&self, tail: &Tail) -> Result<()> {
        let (shared, wal) = self.writable()?;
        let mut state = shared.state();
        let (mut run, mut buf) = (Group::default(), Vec::new());
        // One after the other, in the order of the appends: a deleted event replaces no later
        // event.
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

    /// Wait until every append is on stable storage. Other processes then see which events are
    /// replaced or deleted.
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
    /// Set the flags of events.
    pub(crate) fn flag_all(
        &self,
        wal: &EventWal,
        state: &mut State,
        flagged: Flagged,
    ) -> Result<()> {
        self.store(wal, state, &mut Group { flagged, ..Group::default() }, &mut [])
    }

    /// Commit if the durability requires a commit.
    pub(crate) fn keep_promise(&self, wal: &EventWal) -> Result<()> {
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
            // The log has all appends.
            Some(_) => Ok(()),
        }
    }

    /// Write the waiting flags if the log is durable up to the last entry that sets a flag.
    /// Otherwise a power cut could keep a flag and lose the log's end, and a lost event would hide
    /// a stored event.
    fn write_flags(&self, wal: &EventWal, state: &mut State) -> Result<()> {
        let durable = wal.durable()?.is_some_and(|end| state.flags_asked < end);
        if !durable || state.segments.waiting_flags() == 0 {
            return Ok(());
        }
        let written = state.segments.write_flags();
        written.inspect_err(|error| state.broken = Some(error.message().to_owned()))
    }
}
