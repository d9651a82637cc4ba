//! Find stored events and deletions by id and by address, in the index and in the changes that wait for the
//! index.

use super::handle::State;
use super::tombstones::Tombstones;
use crate::error::{Error, ErrorKind, Result};
use crate::nostr::bytes::event::{EventRef, Id, Location};
use crate::nostr::bytes::format::FORMAT;
use crate::nostr::bytes::policy::{Address, DELETION, Targets, asked_by, targets_of};
use crate::nostr::index::filter::Filter;
use crate::nostr::pages::segment::Record;
use crate::nostr::pages::segments::Segments;

const DAMAGED_REQUEST: &str =
    "this is a deletion request, without which nothing is appended: repair takes it out";
/// The number of current versions to remember; the index knows the others.
const HEADS_KNOWN: usize = 65_536;

impl State {
    /// The location of an event, whatever its flags.
    pub(crate) fn location(&self, id: &Id) -> Result<Option<Location>> {
        if let Some(at) = self.waiting_location(id) {
            return Ok(Some(at));
        }
        let Some(at) = self.index()?.location(id)? else { return Ok(None) };
        match self.read_at(id, at, &mut Vec::new()) {
            // The event was stored there: the page is damaged.
            Err(e) if e.kind() == ErrorKind::Corrupt && !self.index_is_foreign.get() => {}
            found => drop(found?),
        }
        Ok(Some(at))
    }

    fn waiting_location(&self, id: &Id) -> Option<Location> {
        self.pending.all_known().find_map(|known| known.ids.get(id)).copied()
    }

    /// The stored event with this id.
    pub(super) fn read_by_id<'b>(
        &self,
        id: &Id,
        buf: &'b mut Vec<u8>,
    ) -> Result<Option<(Location, Record<'b>)>> {
        let waiting = self.waiting_location(id);
        let Some(at) = waiting.map_or_else(|| self.index()?.location(id), |at| Ok(Some(at)))?
        else {
            return Ok(None);
        };
        Ok(Some((at, self.read_at(id, at, buf)?)))
    }

    /// The event at its location in the index. Any other content shows that the index belongs to
    /// another store.
    pub(crate) fn read_at<'b>(
        &self,
        id: &Id,
        at: Location,
        buf: &'b mut Vec<u8>,
    ) -> Result<Record<'b>> {
        let what = match self.segments.read(at, buf) {
            Ok(found) if found.event.id == *id => return Ok(found),
            Ok(found) => format!("event {}", found.event.id),
            Err(error) if error.kind() == ErrorKind::OutOfRange => error.message().to_owned(),
            Err(error) => return Err(error),
        };
        self.index_is_foreign.set(true);
        let message = format!("at {at}: {what}; the index has event {id} there");
        let error = Error::new(ErrorKind::Corrupt, message).of(FORMAT).at(&self.segments.dir);
        Err(error.with_advice("reindex makes the index again"))
    }

    /// The event at the location in the index; `None` for damage.
    pub(crate) fn read_intact_at<'b>(
        &self,
        id: &Id,
        at: Location,
        buf: &'b mut Vec<u8>,
    ) -> Result<Option<Record<'b>>> {
        let found = self.read_at(id, at, buf);
        if self.index_is_foreign.get() {
            return found.map(Some);
        }
        Segments::unless_damaged(found)
    }

    /// The location of the current version among the readable versions.
    pub(super) fn latest(&mut self, address: &Address) -> Result<Option<Location>> {
        let waiting = self.pending.all_known().find_map(|known| known.heads.get(address));
        if let Some(&at) = waiting.or_else(|| self.heads.get(address)) {
            return Ok(Some(at));
        }
        let mut buf = Vec::new();
        for version in self.index()?.versions(&address.pubkey, address.kind, &address.d)?.named() {
            let (id, at) = version?;
            // The index may not know yet that the version was replaced.
            let found = self.read_intact_at(&id, at, &mut buf)?;
            if found.is_some_and(|found| found.event.flags.is_live()) {
                self.know_head(address.clone(), at);
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    pub(super) fn know_head(&mut self, address: Address, at: Location) {
        if self.heads.len() >= HEADS_KNOWN {
            self.heads.clear();
        }
        self.heads.insert(address, at);
    }

    /// Forget the remembered versions and use the index: several stored versions may be current,
    /// the last or another.
    pub(super) fn forget_heads(&mut self) {
        self.heads.clear();
        self.pending.known().is_unsure = true;
    }

    /// The locations of an author's events of a kind that still wait for the index.
    pub(super) fn versions_waiting(&self, address: &Address) -> impl Iterator<Item = Location> {
        let of = (address.pubkey, address.kind);
        let waiting = self.pending.all_known().filter_map(move |known| known.versions.get(&of));
        waiting.flatten().copied()
    }
}

impl State {
    /// Whether a stored request of its author deletes an event.
    pub(super) fn is_deleted(
        &mut self,
        event: &EventRef<'_>,
        address: Option<&Address>,
    ) -> Result<bool> {
        let mut tombstones = match self.tombstones.take() {
            Some(tombstones) => tombstones,
            None => self.read_requests()?,
        };
        let found = tombstones.cover(event, address, &mut |id| self.is_true_request(id));
        self.tombstones = Some(tombstones);
        found
    }

    /// The targets that the stored deletion requests name.
    fn read_requests(&mut self) -> Result<Tombstones> {
        self.catch_up_index()?;
        let mut tombstones = Tombstones::default();
        let requests = Filter { kinds: Some([DELETION].into()), ..Filter::default() };
        let mut buf = Vec::new();
        for request in self.index()?.query(&requests)?.named() {
            let (id, at) = request?;
            let request = self.read_at(&id, at, &mut buf).map_err(|e| self.unreadable(e))?;
            tombstones.add_unchecked(&request.event, asked_by(&request.event));
        }
        Ok(tombstones)
    }

    /// Whether a stored request has its author's signature. A request that a compaction dropped
    /// counts no more.
    fn is_true_request(&self, id: &Id) -> Result<bool> {
        let mut buf = Vec::new();
        let found = self.read_by_id(id, &mut buf).map_err(|e| self.unreadable(e))?;
        Ok(found.is_some_and(|(_, found)| targets_of(&found.event) != Targets::default()))
    }

    /// The targets of an unreadable request are unknown: any event might be a target.
    fn unreadable(&self, error: Error) -> Error {
        match error.kind() {
            ErrorKind::Corrupt if !self.index_is_foreign.get() => {
                error.with_advice(DAMAGED_REQUEST)
            }
            _ => error,
        }
    }
}
