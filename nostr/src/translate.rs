//! Events and filters of rust-nostr as those of the store, and back.

use std::collections::BTreeSet;

use deedbook::nostr::{Event as Stored, Filter as Wanted, Id};
use nostr::secp256k1::schnorr::Signature;
use nostr::{Event, EventId, Filter, Kind, PublicKey, Tag, Timestamp};

/// The event for the store. The store has no seconds after the year 2106: `None`.
pub fn stored(event: &Event) -> Option<Stored> {
    Some(Stored {
        id: id(&event.id),
        pubkey: event.pubkey.to_bytes(),
        created_at: event.created_at.as_secs().try_into().ok()?,
        kind: event.kind.as_u16(),
        tags: event.tags.iter().map(|tag| tag.as_slice().to_vec()).collect(),
        content: event.content.clone(),
        sig: event.sig.serialize(),
    })
}

/// The stored event as rust-nostr shows it; `None` for an event with a tag of no elements.
pub fn shown(event: Stored) -> Option<Event> {
    let tags: Option<Vec<Tag>> = event.tags.into_iter().map(|tag| Tag::parse(tag).ok()).collect();
    Some(Event::new(
        EventId::from_byte_array(event.id.0),
        PublicKey::from_byte_array(event.pubkey),
        Timestamp::from_secs(event.created_at.into()),
        Kind::from_u16(event.kind),
        tags?,
        event.content,
        Signature::from_slice(&event.sig).ok()?,
    ))
}

/// The id for the store.
pub fn id(id: &EventId) -> Id {
    Id(id.to_bytes())
}

/// The filter for the store, without the text to search for. rust-nostr takes an empty list for no
/// condition; the store would find nothing.
pub fn wanted(filter: &Filter) -> Wanted {
    Wanted {
        ids: chosen(&filter.ids, id),
        authors: chosen(&filter.authors, |author| author.to_bytes()),
        kinds: chosen(&filter.kinds, Kind::as_u16),
        tags: filter
            .generic_tags
            .iter()
            .filter_map(|(name, values)| Some((name.as_char().try_into().ok()?, values.clone())))
            .collect(),
        since: filter.since.map(|at| at.as_secs()),
        until: filter.until.map(|at| at.as_secs()),
        limit: filter.limit.map(|limit| limit as u64),
    }
}

fn chosen<T, U: Ord>(all: &Option<BTreeSet<T>>, one: impl FnMut(&T) -> U) -> Option<BTreeSet<U>> {
    all.as_ref().filter(|all| !all.is_empty()).map(|all| all.iter().map(one).collect())
}

/// Whether an event's content contains the text of a filter, as rust-nostr compares them.
pub fn contains(content: &str, filter: &Filter) -> bool {
    let Some(text) = filter.search.as_deref().filter(|text| !text.is_empty()) else { return true };
    let mut windows = content.as_bytes().windows(text.len());
    windows.any(|window| window.eq_ignore_ascii_case(text.as_bytes()))
}
