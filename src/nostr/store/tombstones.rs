//! The deletions by stored requests: a deleted event that arrives later must not come back.

use std::collections::{HashMap, HashSet};

use crate::nostr::bytes::event::{EventRef, Id};
use crate::nostr::bytes::policy::{Address, DELETION, Targets};

/// The targets of all deletion requests.
#[derive(Debug, Default)]
pub struct Tombstones {
    /// Event and author of the request.
    ids: HashSet<(Id, [u8; 32])>,
    /// The time of the latest request.
    addresses: HashMap<Address, u32>,
}

impl Tombstones {
    /// Add the targets of a deletion request.
    pub fn add(&mut self, request: &EventRef<'_>, targets: Targets) {
        self.ids.extend(targets.ids.into_iter().map(|id| (id, request.pubkey)));
        for address in targets.addresses {
            let latest = self.addresses.entry(address).or_default();
            *latest = (*latest).max(request.created_at);
        }
    }

    /// Add the targets of other requests.
    pub fn join(&mut self, others: Self) {
        self.ids.extend(others.ids);
        for (address, time) in others.addresses {
            let latest = self.addresses.entry(address).or_default();
            *latest = (*latest).max(time);
        }
    }

    /// Whether the author deleted an event. A request against a request has no effect.
    pub fn cover(&self, event: &EventRef<'_>, address: Option<&Address>) -> bool {
        if event.kind == DELETION {
            return false;
        }
        let by_id = !self.ids.is_empty() && self.ids.contains(&(event.id, event.pubkey));
        let until = address.and_then(|address| self.addresses.get(address));
        by_id || until.is_some_and(|&until| event.created_at <= until)
    }
}
