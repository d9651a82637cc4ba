//! The deletions by stored requests: a deleted event that arrives later must not come back.
//!
//! A request counts only with its author's signature. The check takes much longer than the reading
//! of a request, so the requests of an opened store are checked once an event arrives that they ask
//! to delete.

use std::collections::{BTreeSet, HashMap};

use crate::error::Result;
use crate::nostr::bytes::event::{EventRef, Id};
use crate::nostr::bytes::policy::{Address, DELETION, Targets};

/// The targets of all deletion requests.
#[derive(Debug, Default)]
pub struct Tombstones {
    /// Event and author of the request.
    ids: HashMap<(Id, [u8; 32]), Asked>,
    addresses: HashMap<Address, Asked>,
}

/// The requests for one target.
#[derive(Debug, Default)]
struct Asked {
    /// The time of the latest request with a true signature.
    latest: Option<u32>,
    /// The time and the id of the later requests whose signatures are not checked.
    unchecked: BTreeSet<(u32, Id)>,
}

impl Tombstones {
    /// Add the targets of a deletion request with a true signature.
    pub fn add(&mut self, request: &EventRef<'_>, targets: Targets) {
        self.each(request, targets, |asked| asked.prove(request.created_at));
    }

    /// Add the targets that a stored request names.
    pub fn add_unchecked(&mut self, request: &EventRef<'_>, named: Targets) {
        self.each(request, named, |asked| {
            asked.unchecked.insert((request.created_at, request.id));
        });
    }

    fn each(&mut self, request: &EventRef<'_>, targets: Targets, mut add: impl FnMut(&mut Asked)) {
        for id in targets.ids {
            add(self.ids.entry((id, request.pubkey)).or_default());
        }
        for address in targets.addresses {
            add(self.addresses.entry(address).or_default());
        }
    }

    /// Add the targets of other requests.
    pub fn join(&mut self, others: Self) {
        others.ids.into_iter().for_each(|(id, by)| self.ids.entry(id).or_default().join(by));
        let addresses = others.addresses.into_iter();
        addresses.for_each(|(address, by)| self.addresses.entry(address).or_default().join(by));
    }

    /// Whether a request names an event, with a true signature or not.
    pub fn name(&self, event: &EventRef<'_>, address: Option<&Address>) -> bool {
        self.ids.contains_key(&(event.id, event.pubkey))
            || address.is_some_and(|address| self.addresses.contains_key(address))
    }

    /// Whether the author deleted an event. A request against a request has no effect. `is_true`
    /// checks the request with this id.
    pub fn cover(
        &mut self,
        event: &EventRef<'_>,
        address: Option<&Address>,
        is_true: &mut dyn FnMut(&Id) -> Result<bool>,
    ) -> Result<bool> {
        if event.kind == DELETION || self.ids.is_empty() && self.addresses.is_empty() {
            return Ok(false);
        }
        if let Some(asked) = self.ids.get_mut(&(event.id, event.pubkey))
            && asked.covers(0, is_true)?
        {
            return Ok(true);
        }
        let asked = address.and_then(|address| self.addresses.get_mut(address));
        asked.map_or(Ok(false), |asked| asked.covers(event.created_at, is_true))
    }
}

impl Asked {
    fn prove(&mut self, time: u32) {
        self.latest = self.latest.max(Some(time));
    }

    fn join(&mut self, other: Self) {
        self.latest = self.latest.max(other.latest);
        self.unchecked.extend(other.unchecked);
    }

    /// Whether a true request is at least as late.
    fn covers(&mut self, time: u32, is_true: &mut dyn FnMut(&Id) -> Result<bool>) -> Result<bool> {
        while self.latest.is_none_or(|latest| latest < time) {
            let Some(&(at, id)) = self.unchecked.last().filter(|(at, _)| *at >= time) else {
                return Ok(false);
            };
            if is_true(&id)? {
                self.prove(at);
            }
            self.unchecked.pop_last();
        }
        Ok(true)
    }
}
