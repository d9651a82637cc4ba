//! Find the stored events that others hide: older versions, and deleted events.

use std::collections::{BTreeMap, HashSet};

use super::handle::{Shared, State};
use crate::error::Result;
use crate::nostr::bytes::event::{EventRef, Flags, Location};
use crate::nostr::bytes::policy::{Address, DELETION, Targets, is_newer};

/// Stored events, and their new flags.
pub type Flagged = BTreeMap<Location, Flags>;

impl Shared {
    /// Flag the older of two versions as replaced; returns the flags of the new version.
    pub(crate) fn replace(
        &self,
        state: &mut State,
        event: &EventRef<'_>,
        address: &Address,
        flagged: &mut Flagged,
    ) -> Result<Flags> {
        let Some(at) = state.latest(address)? else { return Ok(Flags::default()) };
        let mut buf = Vec::new();
        let found = state.segments.read_intact(at, &mut buf)?;
        let Some(other) = found.map(|found| found.event) else { return Ok(Flags::default()) };
        if !is_newer(event.created_at, event.id, other.created_at, other.id) {
            return Ok(Flags::REPLACED);
        }
        flag(flagged, at, other.flags | Flags::REPLACED);
        Ok(Flags::default())
    }

    /// Flag the versions that the version at `last` replaced when it was stored: all earlier live
    /// versions but the newest. A later version may count, because a deleted event replaces
    /// nothing.
    pub(super) fn replace_stored(
        &self,
        state: &mut State,
        address: &Address,
        last: Location,
        flagged: &mut Flagged,
    ) -> Result<()> {
        state.catch_up_index()?;
        let (mut is_newest, mut buf) = (true, Vec::new());
        // The newest first.
        for version in state.index()?.versions(&address.pubkey, address.kind, &address.d)?.named() {
            let (id, at) = version?;
            if at > last || flagged.contains_key(&at) {
                continue;
            }
            let Some(found) = state.read_intact_at(&id, at, &mut buf)? else { continue };
            let event = found.event;
            if !event.flags.is_live() || Address::of(&event).as_ref() != Some(address) {
                continue;
            }
            if !is_newest {
                flag(flagged, at, event.flags | Flags::REPLACED);
            }
            is_newest = false;
        }
        Ok(())
    }

    /// Delete the stored targets of a request. `addresses` gets the addresses at which another
    /// version may now count.
    pub(crate) fn delete(
        &self,
        state: &State,
        request: &EventRef<'_>,
        targets: &Targets,
        flagged: &mut Flagged,
        addresses: &mut HashSet<Address>,
    ) -> Result<()> {
        let mut buf = Vec::new();
        for id in &targets.ids {
            let Some(at) = state.location(id)? else { continue };
            let Some(found) = state.read_intact_at(id, at, &mut buf)? else { continue };
            let event = found.event;
            if event.pubkey == request.pubkey
                && event.kind != DELETION
                && !event.flags.contains(Flags::DELETED)
            {
                flag(flagged, at, event.flags | Flags::DELETED);
                addresses.extend(Address::of(&event));
            }
        }
        for address in &targets.addresses {
            let stored = state.index()?.versions_until(
                &address.pubkey,
                address.kind,
                &address.d,
                request.created_at,
            )?;
            let stored = stored.named().map(|version| version.map(|(id, at)| (Some(id), at)));
            let waiting = state.versions_waiting(address).map(|at| Ok((None, at)));
            for version in stored.chain(waiting) {
                let found = match version? {
                    (Some(id), at) => {
                        state.read_intact_at(&id, at, &mut buf)?.map(|found| (at, found))
                    }
                    (None, at) => {
                        state.segments.read_intact(at, &mut buf)?.map(|found| (at, found))
                    }
                };
                let Some((at, found)) = found else { continue };
                let event = found.event;
                if event.flags.is_live()
                    && event.created_at <= request.created_at
                    && Address::of(&event).as_ref() == Some(address)
                {
                    flag(flagged, at, event.flags | Flags::DELETED);
                }
            }
            addresses.insert(address.clone());
        }
        Ok(())
    }
}

/// Add flags to a stored event's new flags.
fn flag(flagged: &mut Flagged, at: Location, flags: Flags) {
    let all = flagged.entry(at).or_default();
    *all = *all | flags;
}
