//! The calls of the trait on the store. Each blocks.

use std::cmp::Reverse;

use deedbook::nostr::{Event, EventStore, Flags, Id, Include, Outcome, StoredEvent};
use deedbook::{Durability, ErrorKind, OnCorrupt, Result};
use nostr::{EventId, Filter, Timestamp};
use nostr_database::RejectedReason as Why;
use nostr_database::{DatabaseEventStatus, Events, SaveEventStatus};

use crate::translate::{contains, shown, wanted};

/// The status of an event that the store cannot hold.
pub const UNSTORABLE: SaveEventStatus = SaveEventStatus::Rejected(Why::Other);
/// Requests to delete events.
const DELETION: u16 = 5;
/// How often a look follows an event that a compaction moves.
const LOOKS: usize = 8;

/// Save an event.
pub fn save(store: &EventStore, event: &Event) -> Result<SaveEventStatus> {
    if event.kind == DELETION && names_others(store, event)? {
        return Ok(SaveEventStatus::Rejected(Why::InvalidDelete));
    }
    let outcome = match store.append(event) {
        Err(e) if matches!(e.kind(), ErrorKind::TooLarge | ErrorKind::InvalidArgument) => {
            return Ok(UNSTORABLE);
        }
        outcome => outcome?,
    };
    Ok(SaveEventStatus::Rejected(match outcome {
        Outcome::Stored(_) => return Ok(SaveEventStatus::Success),
        Outcome::Superseded(_) => Why::Replaced,
        Outcome::Duplicate(_) => match state(store, &event.id)? {
            State::Deleted => Why::Deleted,
            State::Replaced => Why::Replaced,
            State::Expired => Why::Expired,
            State::Current | State::Absent => Why::Duplicate,
        },
        Outcome::Deleted => Why::Deleted,
        Outcome::Expired => Why::Expired,
        Outcome::Ephemeral => Why::Ephemeral,
        _ => Why::Other,
    }))
}

/// Whether a request names an event or an address of another author.
fn names_others(store: &EventStore, request: &Event) -> Result<bool> {
    for tag in &request.tags {
        let [name, value, ..] = tag.as_slice() else { continue };
        let author = match name.as_str() {
            "e" => match value.parse() {
                Ok(id) => store.find(&id)?.map(|found| found.event.pubkey),
                Err(_) => None,
            },
            "a" => value.split(':').nth(1).and_then(|key| Some(key.parse::<Id>().ok()?.0)),
            _ => None,
        };
        if author.is_some_and(|author| author != request.pubkey) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the store has an event. "Saved" acknowledges the event, so the event must be as durable
/// as after [`save`], even while another session still syncs it.
pub fn check(store: &EventStore, id: &Id) -> Result<DatabaseEventStatus> {
    Ok(match state(store, id)? {
        State::Current => {
            let is_always = store.options().durability == Some(Durability::Always);
            if is_always && store.unsynced_bytes()? > 0 {
                store.sync()?;
            }
            DatabaseEventStatus::Saved
        }
        State::Deleted => DatabaseEventStatus::Deleted,
        State::Replaced | State::Expired | State::Absent => DatabaseEventStatus::NotExistent,
    })
}

enum State {
    Current,
    Deleted,
    Replaced,
    Expired,
    Absent,
}

fn state(store: &EventStore, id: &Id) -> Result<State> {
    Ok(match stored(store, id)? {
        None => State::Absent,
        Some(found) if found.flags.contains(Flags::DELETED) => State::Deleted,
        Some(found) if found.flags.contains(Flags::REPLACED) => State::Replaced,
        Some(_) if store.find(id)?.is_some() => State::Current,
        Some(_) => State::Expired,
    })
}

/// The event with an id, whatever its flags. A compaction may move the event between two looks.
fn stored(store: &EventStore, id: &Id) -> Result<Option<StoredEvent>> {
    let mut looks = 0;
    loop {
        let Some(&at) = store.locations(&[*id])?.first() else { return Ok(None) };
        looks += 1;
        match store.read(at) {
            Ok(found) if found.event.id == *id => return Ok(Some(found)),
            Err(error) if looks == LOOKS => return Err(error),
            _ if looks == LOOKS => return Ok(None),
            _ => {}
        }
    }
}

/// The events that match a filter, the newest first.
pub fn query(store: &EventStore, filter: &Filter) -> Result<Events> {
    let mut events = Events::new(filter);
    if filter.search.is_none() {
        let found = store.query(&[wanted(filter)])?;
        events.extend(found.into_iter().filter_map(|found| shown(found.event)));
        return Ok(events);
    }
    for (_, id) in matching(store, filter)? {
        events.extend(store.find(&id)?.and_then(|found| shown(found.event)));
    }
    Ok(events)
}

/// The times and ids of the events that match a filter, the newest first.
pub fn matching(store: &EventStore, filter: &Filter) -> Result<Vec<(Reverse<u32>, Id)>> {
    let store_filter = wanted(filter);
    let is_narrow = store_filter.ids.is_some()
        || store_filter.authors.is_some()
        || store_filter.kinds.is_some()
        || !store_filter.tags.is_empty()
        || store_filter.limit.is_some();
    if is_narrow && filter.search.is_none() {
        let found = store.query(&[store_filter])?;
        return Ok(found.iter().map(|f| (Reverse(f.event.created_at), f.event.id)).collect());
    }
    // Every event is looked at, and none but the answer stays in memory.
    let mut walk = store.iter(Include::Live, OnCorrupt::Raise)?;
    let mut found = Vec::new();
    while let Some(one) = walk.next_with(|_, event| {
        let is_match = store_filter.matches(event) && contains(event.content, filter);
        is_match.then_some((Reverse(event.created_at), event.id))
    })? {
        found.extend(one);
    }
    found.sort_unstable();
    found.truncate(filter.limit.unwrap_or(usize::MAX));
    Ok(found)
}

/// The ids and times for negentropy.
pub fn items(store: &EventStore, filter: &Filter) -> Result<Vec<(EventId, Timestamp)>> {
    let item = |(at, id): (Reverse<u32>, Id)| {
        (EventId::from_byte_array(id.0), Timestamp::from_secs(at.0.into()))
    };
    Ok(matching(store, filter)?.into_iter().map(item).collect())
}

/// Delete the events that match a filter.
pub fn delete(store: &EventStore, filter: &Filter) -> Result<()> {
    let ids: Vec<Id> = matching(store, filter)?.into_iter().map(|(_, id)| id).collect();
    store.delete_all(&ids)
}
