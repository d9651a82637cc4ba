//! Events for the tests, and databases in directories of their own.

use std::future::Future;

use deedbook_nostr::Database;
use nostr_database::prelude::*;
use nostr_lmdb::NostrLMDB;
use tempfile::TempDir;

/// A request of NIP-09, and its second.
pub fn request(keys: &Keys, at: u64, of: EventDeletionRequest) -> Event {
    signed(keys, at, EventBuilder::delete(of))
}

/// An event at a second.
pub fn signed(keys: &Keys, at: u64, event: EventBuilder) -> Event {
    event.custom_created_at(Timestamp::from_secs(at)).sign_with_keys(keys).unwrap()
}

/// A text note at a second.
pub fn note(keys: &Keys, at: u64, content: &str) -> Event {
    signed(keys, at, EventBuilder::text_note(content))
}

/// A profile at a second.
pub fn profile(keys: &Keys, at: u64, name: &str) -> Event {
    signed(keys, at, EventBuilder::metadata(&Metadata::new().name(name)))
}

/// An addressable event at a second.
pub fn article(keys: &Keys, at: u64, kind: u16, d: &str, content: &str) -> Event {
    let event = EventBuilder::new(Kind::from_u16(kind), content);
    signed(keys, at, event.tag(Tag::identifier(d)))
}

/// The status of a rejected event.
pub fn rejected(why: RejectedReason) -> SaveEventStatus {
    SaveEventStatus::Rejected(why)
}

pub async fn save(database: &dyn NostrDatabase, event: &Event) -> SaveEventStatus {
    database.save_event(event).await.unwrap()
}

pub async fn saved(database: &dyn NostrDatabase, event: &Event) {
    assert_eq!(save(database, event).await, SaveEventStatus::Success, "{}", event.as_json());
}

pub async fn query(database: &dyn NostrDatabase, filter: Filter) -> Vec<Event> {
    database.query(filter).await.unwrap().to_vec()
}

pub async fn count(database: &dyn NostrDatabase) -> usize {
    database.count(Filter::new()).await.unwrap()
}

pub async fn by_id(database: &dyn NostrDatabase, event: &Event) -> Option<Event> {
    database.event_by_id(&event.id).await.unwrap()
}

pub async fn status(database: &dyn NostrDatabase, event: &Event) -> DatabaseEventStatus {
    database.check_id(&event.id).await.unwrap()
}

/// Run a case on a new event store.
pub async fn on_ours<F: Future<Output = ()>>(case: impl FnOnce(Box<dyn NostrDatabase>) -> F) {
    let place = TempDir::new().unwrap();
    case(Box::new(Database::open(place.path().join("events")).unwrap())).await;
}

/// Run a case on a new database of nostr-lmdb, which shows that the case is one of the trait.
pub async fn on_lmdb<F: Future<Output = ()>>(case: impl FnOnce(Box<dyn NostrDatabase>) -> F) {
    let place = TempDir::new().unwrap();
    case(Box::new(NostrLMDB::open(place.path()).unwrap())).await;
}
