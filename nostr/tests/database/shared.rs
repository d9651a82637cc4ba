//! The cases that rust-nostr tries on its own databases, on the event store and on nostr-lmdb.
//!
//! rust-nostr publishes no crate of these tests (`nostr-database-test-suite`), and 0.44 has the
//! tests in the sources of nostr-lmdb. The tests here sign new events, because two of rust-nostr's
//! events have other ids than the hashes of their content. The trait of 0.44 has no requests to
//! vanish (NIP-62), and the two cases about them are left out.
//!
//! | rust-nostr | here |
//! |---|---|
//! | `save_and_query`, `expected_query_result` | `a_history_leaves_its_current_events` |
//! | `save_duplicate` | `a_second_save_is_a_duplicate` |
//! | `query_by_filter` | `filters_choose_by_author_kind_and_time` |
//! | `delete_by_filter` | `delete_removes_the_events_of_a_filter` |
//! | `replaceable_events`, `replaceable_event` | `a_newer_profile_replaces_the_older` |
//! | `addressable_events`, `param_replaceable_event` | `a_newer_article_replaces_the_older` |
//! | `event_deletion_by_id` | `a_request_marks_its_events_deleted` |
//! | `event_deletion_by_coordinate` | `a_deleted_address_rejects_its_event` |
//! | `kind5_deletion_query_bug_fix` | `queries_miss_deleted_events_and_return_requests` |
//! | `wipe_database` | `a_wiped_database_is_empty` |
//! | `negentropy_items` | `negentropy_items_are_the_current_events` |
//! | `event_by_id` | `an_event_returns_by_its_id` |
//! | `full_text_search` | `search_ignores_case_and_finds_parts` |
//! | `nip01_replaceable_events_with_identical_timestamps` | `the_lower_id_of_a_second_stays` |
//! | `nip01_addressable_events_with_identical_timestamps` | `the_lower_id_of_an_address_stays` |

use crate::common::*;
use nostr_database::prelude::*;

/// Each case as a test for each database.
macro_rules! cases {
    ($($case:ident),* $(,)?) => {
        mod deedbook {
            $(#[tokio::test] async fn $case() { crate::common::on_ours(crate::shared::$case).await })*
        }
        mod lmdb {
            $(#[tokio::test] async fn $case() { crate::common::on_lmdb(crate::shared::$case).await })*
        }
    };
}

cases! {
    a_history_leaves_its_current_events,
    a_second_save_is_a_duplicate,
    filters_choose_by_author_kind_and_time,
    delete_removes_the_events_of_a_filter,
    a_newer_profile_replaces_the_older,
    a_newer_article_replaces_the_older,
    a_request_marks_its_events_deleted,
    a_deleted_address_rejects_its_event,
    queries_miss_deleted_events_and_return_requests,
    a_wiped_database_is_empty,
    negentropy_items_are_the_current_events,
    an_event_returns_by_its_id,
    search_ignores_case_and_finds_parts,
    the_lower_id_of_a_second_stays,
    the_lower_id_of_an_address_stays,
}

type Any = Box<dyn NostrDatabase>;

/// Fourteen events of two authors: notes, articles, profiles, and requests to delete. The requests
/// with the indexes 7 and 11 name events of another author.
fn history(a: &Keys, b: &Keys) -> Vec<Event> {
    let of = EventDeletionRequest::new;
    let address = |keys: &Keys, d: &str| {
        Coordinate::new(Kind::from_u16(32_122), keys.public_key()).identifier(d)
    };
    let newest = profile(a, 1_704_645_606, "key-a");
    vec![
        note(a, 1_704_644_581, "Text note"),
        article(a, 1_704_644_586, 32_121, "id-1", "Empty 1"),
        article(a, 1_704_644_591, 32_122, "id-1", "Empty 2"),
        article(a, 1_704_644_596, 32_122, "id-2", ""),
        article(b, 1_704_644_601, 32_122, "id-3", ""),
        article(b, 1_704_644_606, 32_122, "id-1", ""),
        article(a, 1_704_644_611, 32_122, "id-1", "Test"),
        request(b, 1_704_644_616, of().coordinate(address(a, ""))),
        request(a, 1_704_644_621, of().coordinate(address(a, "id-2"))),
        profile(a, 1_704_645_586, "Key A"),
        newest.clone(),
        request(b, 1_704_646_569, of().id(newest.id)),
        request(a, 1_704_646_606, of().id(newest.id)),
        article(b, 1_705_241_093, 30_333, "multi-id", "Multi-tags"),
    ]
}

/// Save the history; returns the events and the first author.
async fn with_history(database: &Any) -> (Vec<Event>, Keys) {
    let (a, b) = (Keys::generate(), Keys::generate());
    let events = history(&a, &b);
    for (number, event) in events.iter().enumerate() {
        let expected = match number {
            7 | 11 => rejected(RejectedReason::InvalidDelete),
            _ => SaveEventStatus::Success,
        };
        assert_eq!(save(&**database, event).await, expected, "event {number}");
    }
    (events, a)
}

async fn a_history_leaves_its_current_events(database: Any) {
    let (events, _) = with_history(&database).await;
    let left = [13, 12, 8, 6, 5, 4, 1, 0].map(|number: usize| events[number].clone());
    assert_eq!(query(&*database, Filter::new()).await, left);
    assert_eq!(count(&*database).await, left.len());
}

async fn a_second_save_is_a_duplicate(database: Any) {
    let event = note(&Keys::generate(), 1_704_644_581, "once");
    saved(&*database, &event).await;
    assert_eq!(save(&*database, &event).await, rejected(RejectedReason::Duplicate));
    assert_eq!(status(&*database, &event).await, DatabaseEventStatus::Saved);
}

async fn filters_choose_by_author_kind_and_time(database: Any) {
    let (_, a) = with_history(&database).await;
    let by_author = query(&*database, Filter::new().author(a.public_key())).await;
    assert!(by_author.len() == 5 && by_author.iter().all(|e| e.pubkey == a.public_key()));
    let notes = query(&*database, Filter::new().kind(Kind::TextNote)).await;
    assert!(notes.len() == 1 && notes.iter().all(|e| e.kind == Kind::TextNote));
    let (since, until) = (Timestamp::from_secs(1_704_644_590), Timestamp::from_secs(1_704_644_611));
    let then = query(&*database, Filter::new().since(since).until(until)).await;
    assert!(then.len() == 3 && then.iter().all(|e| (since..=until).contains(&e.created_at)));
}

async fn delete_removes_the_events_of_a_filter(database: Any) {
    let (events, _) = with_history(&database).await;
    database.delete(Filter::new().kind(Kind::TextNote)).await.unwrap();
    assert_eq!(count(&*database).await, 7);
    assert!(query(&*database, Filter::new().kind(Kind::TextNote)).await.is_empty());
    assert_eq!(by_id(&*database, &events[0]).await, None);
}

/// Save versions in their order, and find the second alone.
async fn replaces(database: Any, old: Event, new: Event, older: Event, filter: Filter) {
    let others = [Keys::generate(), Keys::generate()];
    for keys in &others {
        saved(&*database, &note(keys, 1_000, "another")).await;
        saved(&*database, &profile(keys, 1_000, "another")).await;
        saved(&*database, &article(keys, 1_000, 33_333, "my-id", "another")).await;
    }
    saved(&*database, &old).await;
    assert_eq!(by_id(&*database, &old).await.as_ref(), Some(&old));
    assert_eq!(query(&*database, filter.clone()).await, std::slice::from_ref(&old));
    assert_eq!(count(&*database).await, 7);
    saved(&*database, &new).await;
    assert_eq!(by_id(&*database, &old).await, None);
    assert_eq!(by_id(&*database, &new).await.as_ref(), Some(&new));
    assert_eq!(save(&*database, &older).await, rejected(RejectedReason::Replaced));
    assert_eq!(query(&*database, filter).await, [new]);
    assert_eq!(count(&*database).await, 7);
    assert_eq!(status(&*database, &old).await, DatabaseEventStatus::NotExistent);
    assert_eq!(save(&*database, &old).await, rejected(RejectedReason::Replaced));
}

async fn a_newer_profile_replaces_the_older(database: Any) {
    let keys = Keys::generate();
    let [old, new, older] = [2_000, 3_000, 1_000].map(|at| profile(&keys, at, "my-account"));
    let filter = Filter::new().author(keys.public_key()).kind(Kind::Metadata);
    replaces(database, old, new, older, filter).await;
}

async fn a_newer_article_replaces_the_older(database: Any) {
    let keys = Keys::generate();
    let [old, new, older] =
        [2_000, 3_000, 1_000].map(|at| article(&keys, at, 33_333, "my-id", "text"));
    let address = Coordinate::new(Kind::from_u16(33_333), keys.public_key()).identifier("my-id");
    replaces(database, old, new, older, address.into()).await;
}

async fn a_request_marks_its_events_deleted(database: Any) {
    let keys = Keys::generate();
    let notes = [note(&keys, 1_000, "one"), note(&keys, 1_000, "two")];
    for note in &notes {
        saved(&*database, note).await;
    }
    let ids = EventDeletionRequest::new().ids(notes.iter().map(|note| note.id));
    saved(&*database, &request(&keys, 1_001, ids)).await;
    for note in &notes {
        assert_eq!(status(&*database, note).await, DatabaseEventStatus::Deleted);
        assert_eq!(save(&*database, note).await, rejected(RejectedReason::Deleted));
    }
}

async fn a_deleted_address_rejects_its_event(database: Any) {
    let keys = Keys::generate();
    let event = signed(&keys, 1_000, EventBuilder::new(Kind::from_u16(11_111), "gone"));
    saved(&*database, &event).await;
    let address = event.coordinate().unwrap().into_owned();
    saved(&*database, &request(&keys, 1_001, EventDeletionRequest::new().coordinate(address)))
        .await;
    assert_eq!(save(&*database, &event).await, rejected(RejectedReason::Deleted));
}

async fn queries_miss_deleted_events_and_return_requests(database: Any) {
    let keys = Keys::generate();
    let event = note(&keys, 1_000, "Test event");
    saved(&*database, &event).await;
    let filters =
        [Filter::new().id(event.id), Filter::new().author(keys.public_key()).kind(Kind::TextNote)];
    for filter in &filters {
        assert_eq!(query(&*database, filter.clone()).await, std::slice::from_ref(&event));
    }
    let gone = request(&keys, 1_001, EventDeletionRequest::new().id(event.id));
    saved(&*database, &gone).await;
    for filter in &filters {
        assert!(query(&*database, filter.clone()).await.is_empty());
    }
    assert_eq!(query(&*database, Filter::new().kind(Kind::EventDeletion)).await, [gone]);
}

async fn a_wiped_database_is_empty(database: Any) {
    let (events, _) = with_history(&database).await;
    assert_eq!(count(&*database).await, 8);
    database.wipe().await.unwrap();
    assert_eq!(count(&*database).await, 0);
    assert_eq!(status(&*database, &events[0]).await, DatabaseEventStatus::NotExistent);
    saved(&*database, &events[0]).await;
}

async fn negentropy_items_are_the_current_events(database: Any) {
    let (events, a) = with_history(&database).await;
    let mut left = [13, 12, 8, 6, 5, 4, 1, 0].map(|n: usize| (events[n].id, events[n].created_at));
    let mut items = database.negentropy_items(Filter::new()).await.unwrap();
    left.sort_unstable();
    items.sort_unstable();
    assert_eq!(items, left);
    let of_one = Filter::new().author(a.public_key()).kind(Kind::TextNote);
    let items = database.negentropy_items(of_one).await.unwrap();
    assert_eq!(items, [(events[0].id, events[0].created_at)]);
}

async fn an_event_returns_by_its_id(database: Any) {
    with_history(&database).await;
    let keys = Keys::generate();
    let many = ["a", "b", "", "\u{1F30D}\n\"\\"];
    let tags = [Tag::parse(many).unwrap(), Tag::parse(["x"]).unwrap(), Tag::hashtag("deeds")];
    let event = signed(&keys, 1_000, EventBuilder::text_note("\u{7f} text \u{1F30D}").tags(tags));
    saved(&*database, &event).await;
    assert_eq!(by_id(&*database, &event).await, Some(event));
}

async fn search_ignores_case_and_finds_parts(database: Any) {
    let (a, b) = (Keys::generate(), Keys::generate());
    for event in [note(&a, 1_000, "Text Note A"), note(&b, 1_001, "Text Note B")] {
        saved(&*database, &event).await;
    }
    saved(&*database, &profile(&a, 1_002, "Account A")).await;
    saved(&*database, &profile(&b, 1_003, "Account B")).await;
    for (text, found) in [("Account A", 1), ("account a", 1), ("text note", 2), ("notes", 0)] {
        assert_eq!(query(&*database, Filter::new().search(text)).await.len(), found, "{text}");
    }
}

async fn the_lower_id_stays(database: Any, one: Event, other: Event, filter: Filter) {
    let (low, high) = if one.id < other.id { (one, other) } else { (other, one) };
    saved(&*database, &low).await;
    assert_eq!(save(&*database, &high).await, rejected(RejectedReason::Replaced));
    assert_eq!(query(&*database, filter.clone()).await, std::slice::from_ref(&low));
    database.wipe().await.unwrap();
    saved(&*database, &high).await;
    saved(&*database, &low).await;
    assert_eq!(query(&*database, filter).await, [low]);
}

async fn the_lower_id_of_a_second_stays(database: Any) {
    let keys = Keys::generate();
    let [one, other] = ["one", "other"].map(|name| profile(&keys, 1_754_066_538, name));
    let filter = Filter::new().author(keys.public_key()).kind(Kind::Metadata);
    the_lower_id_stays(database, one, other, filter).await;
}

async fn the_lower_id_of_an_address_stays(database: Any) {
    let keys = Keys::generate();
    let [one, other] =
        ["one", "other"].map(|text| article(&keys, 1_754_066_538, 30_023, "article-123", text));
    let filter = Filter::new().author(keys.public_key()).kind(Kind::LongFormTextNote);
    the_lower_id_stays(database, one, other, filter).await;
}
