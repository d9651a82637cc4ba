//! Find the events that match filters, through the index or a scan of all events.

use std::cmp::Reverse;

use super::{Include, StoredEvent, log_skipped, stored};
use crate::error::{Error, ErrorKind, Result};
use crate::nostr::bytes::event::{EventRef, Id, Location};
use crate::nostr::bytes::format::FORMAT;
use crate::nostr::bytes::policy::counts;
use crate::nostr::index::filter::{Filter, Wanted};
use crate::nostr::pages::segment::{PageDamage, Record};
use crate::nostr::store::handle::{EventStore, State};
use crate::scan::{Damage, OnCorrupt};

/// The number of events between two progress reports.
const PROGRESS_EVENTS: u64 = 1024;

impl EventStore {
    /// The events that match any of these filters, the newest first, and by id within one second. The
    /// first query of a reader copies the writer's index. Without rights for the copy, or with
    /// damage, a reader scans all events.
    ///
    /// The whole answer is in memory on return. On a store that is open for appending, other calls
    /// wait meanwhile. Give the filters a limit, or walk all events with [`EventStore::iter`].
    ///
    /// # Errors
    ///
    /// Fails for a closed handle; see [Errors](crate#errors).
    pub fn query(&self, filters: &[Filter]) -> Result<Vec<StoredEvent>> {
        Ok(self.query_with(filters, OnCorrupt::Raise, &mut || Ok(()))?.0)
    }

    /// The same query with options, and the skipped damage. `on_corrupt` chooses the effect of damage on
    /// the answer. A reader reports damage of the whole store. A store open for appending reports the
    /// first pages of damaged events that the index has for the filters. A scan calls `progress` now and
    /// then, and an error of `progress` ends the scan.
    ///
    /// # Errors
    ///
    /// Fails for a closed handle; see [Errors](crate#errors).
    pub fn query_with(
        &self,
        filters: &[Filter],
        on_corrupt: OnCorrupt,
        progress: &mut dyn FnMut() -> Result<()>,
    ) -> Result<(Vec<StoredEvent>, Vec<Damage>)> {
        let shared = self.usable()?;
        let mut state = shared.state();
        // A reader that skips damage reports the damage of the whole store.
        let scans = shared.wal.is_none() && on_corrupt == OnCorrupt::Skip;
        if shared.wal.is_none() && !scans {
            state.ask_for_index(&shared.options, &shared.dir);
        }
        if scans || state.index.is_none() {
            drop(state);
            return self.query_by_scan(filters, on_corrupt, progress);
        }
        let asked = shared.asking_index(&mut state, |state| {
            state.catch_up_index()?;
            let (mut wanted, now) = (Wanted::of(filters), shared.options.now());
            let mut query = Answer { events: Vec::new(), on_corrupt, damage: Vec::new() };
            let mut places = state.index()?.query_any(filters)?.named();
            let mut buf = Vec::new();
            while !wanted.is_satisfied() {
                let Some((id, location)) = places.next().transpose()? else { break };
                let found = state.read_at(&id, location, &mut buf);
                if state.index_is_foreign.get() {
                    found?;
                    continue;
                }
                let Some(found) = query.unless_damaged(state, location, found)? else { continue };
                if counts(&found, now) && wanted.takes(&found) {
                    query.events.push(stored(location, &found));
                }
            }
            Ok((query.events, query.damage))
        });
        if asked.is_err() && state.index.is_none() {
            drop(state);
            return self.query_by_scan(filters, on_corrupt, progress);
        }
        asked
    }

    fn query_by_scan(
        &self,
        filters: &[Filter],
        on_corrupt: OnCorrupt,
        progress: &mut dyn FnMut() -> Result<()>,
    ) -> Result<(Vec<StoredEvent>, Vec<Damage>)> {
        let (mut places, mut looked_at) = (Vec::new(), 0u64);
        let mut walk = self.iter(Include::Live, on_corrupt)?;
        let matches = |event: &EventRef<'_>| filters.iter().any(|filter| filter.matches(event));
        let look = |at, event: &EventRef<'_>| {
            matches(event).then_some((Reverse(event.created_at), event.id, at))
        };
        while let Some(found) = walk.next_with(look)? {
            places.extend(found);
            looked_at += 1;
            if looked_at.is_multiple_of(PROGRESS_EVENTS) {
                progress()?;
            }
        }
        places.sort();
        let shared = self.usable()?;
        let state = shared.state();
        let mut wanted = Wanted::of(filters);
        let mut query = Answer { events: Vec::new(), on_corrupt, damage: walk.damage };
        let mut buf = Vec::new();
        for (_, _, location) in places {
            let found = state.segments.read(location, &mut buf);
            let Some(found) = query.unless_damaged(&state, location, found)? else { continue };
            if wanted.takes(&found) {
                query.events.push(stored(location, &found));
            }
        }
        Ok((query.events, query.damage))
    }

    /// Scan all events for an id. If the scan meets damage and not the event, the damage is the
    /// error: it may hide the event.
    pub(super) fn find_by_scan(&self, id: &Id) -> Result<Option<StoredEvent>> {
        let mut walk = self.iter(Include::Live, OnCorrupt::Skip)?;
        let look = |at, event: &EventRef<'_>| (event.id == *id).then(|| stored(at, event));
        while let Some(found) = walk.next_with(look)? {
            if found.is_some() {
                return Ok(found);
            }
        }
        match walk.damage().first() {
            Some(damage) => {
                seeded!(Err(self.damaged(damage)?), "hidden-event-is-absent" => Ok(None))
            }
            None => Ok(None),
        }
    }

    fn damaged(&self, damage: &Damage) -> Result<Error> {
        let state = self.usable()?.state();
        let open = damage.segment.and_then(|segment| state.segments.by_id.get(&segment));
        Ok(match open {
            Some(open) => open.segment.error_at(damage.offset, &damage.reason),
            None => Error::new(ErrorKind::Corrupt, &damage.reason).of(FORMAT),
        })
    }
}

/// The answer to a query.
struct Answer {
    events: Vec<StoredEvent>,
    on_corrupt: OnCorrupt,
    damage: Vec<Damage>,
}

impl Answer {
    /// The event at a location; `None` for damage, if the query skips damage.
    fn unless_damaged<'b>(
        &mut self,
        state: &State,
        at: Location,
        found: Result<Record<'b>>,
    ) -> Result<Option<EventRef<'b>>> {
        match found {
            Ok(found) => Ok(Some(found.event)),
            Err(error)
                if self.on_corrupt == OnCorrupt::Skip && error.kind() == ErrorKind::Corrupt =>
            {
                let end = at.offset.saturating_add(state.segments.page_bytes(at.segment));
                let reason = error.message().to_owned();
                if self.damage.is_empty() {
                    log_skipped(&error.of(FORMAT));
                }
                self.damage.push(PageDamage { offset: at.offset, end, reason }.of(at.segment));
                Ok(None)
            }
            Err(error) => Err(error.of(FORMAT)),
        }
    }
}
