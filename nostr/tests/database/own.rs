//! The promises of this crate beyond the shared cases: reasons, order, limits, durability, wipes.

use std::fs;
use std::time::Duration;

use crate::common::*;
use deedbook::nostr::{History, Options};
use deedbook::{Durability, Mode};
use deedbook_nostr::Database;
use nostr_database::prelude::*;
use nostr_lmdb::NostrLMDB;
use tempfile::TempDir;

/// A database in a directory that goes with the test.
fn made(options: &Options) -> (TempDir, Database) {
    let place = TempDir::new().unwrap();
    let database = Database::open_with(place.path().join("events"), options).unwrap();
    (place, database)
}

/// Close a database, and open it again.
fn again(place: &TempDir, database: Database) -> Database {
    drop(database);
    Database::open(place.path().join("events")).unwrap()
}

#[tokio::test]
async fn ephemeral_and_expired_events_are_rejected() {
    let (place, database) = made(&Options::new());
    let keys = Keys::generate();
    let ephemeral = signed(&keys, 1_000, EventBuilder::new(Kind::from_u16(20_001), ""));
    assert_eq!(save(&database, &ephemeral).await, rejected(RejectedReason::Ephemeral));
    let until = |at| EventBuilder::text_note("soon").tag(Tag::expiration(at));
    let over = signed(&keys, 1_000, until(Timestamp::from_secs(1_001)));
    assert_eq!(save(&database, &over).await, rejected(RejectedReason::Expired));
    let soon = signed(&keys, 1_002, until(Timestamp::now() + Duration::from_secs(2)));
    saved(&database, &soon).await;
    assert_eq!(query(&database, Filter::new()).await, std::slice::from_ref(&soon));
    while !soon.is_expired() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for filter in [Filter::new(), Filter::new().kind(Kind::TextNote)] {
        assert!(query(&database, filter.clone()).await.is_empty());
        assert!(database.negentropy_items(filter.clone()).await.unwrap().is_empty());
        assert_eq!(database.count(filter).await.unwrap(), 0);
    }
    let database = again(&place, database);
    assert_eq!(status(&database, &soon).await, DatabaseEventStatus::NotExistent);
    assert_eq!(save(&database, &soon).await, rejected(RejectedReason::Expired));
    assert_eq!(count(&database).await, 0);
}

/// Anybody can name an id before its event arrives. Only the author's request counts.
#[tokio::test]
async fn requests_before_their_events_count_for_authors() {
    let (place, database) = made(&Options::new());
    let (author, other) = (Keys::generate(), Keys::generate());
    let (gone, stays) = (note(&author, 1_000, "gone"), note(&author, 1_000, "stays"));
    let of = |event: &Event| EventDeletionRequest::new().id(event.id);
    saved(&database, &request(&author, 1_001, of(&gone))).await;
    saved(&database, &request(&other, 1_001, of(&stays))).await;
    assert_eq!(status(&database, &stays).await, DatabaseEventStatus::NotExistent);
    let database = again(&place, database);
    assert_eq!(save(&database, &gone).await, rejected(RejectedReason::Deleted));
    saved(&database, &stays).await;
    assert_eq!(status(&database, &stays).await, DatabaseEventStatus::Saved);
}

#[tokio::test]
async fn an_invalid_request_deletes_nothing() {
    let (_place, database) = made(&Options::new());
    let (author, other) = (Keys::generate(), Keys::generate());
    let (own, foreign) = (note(&author, 1_000, "own"), article(&other, 1_000, 30_023, "d", ""));
    saved(&database, &own).await;
    saved(&database, &foreign).await;
    let of_own = EventDeletionRequest::new().id(own.id);
    let address = foreign.coordinate().unwrap().into_owned();
    for wrong in [of_own.clone().id(foreign.id), of_own.coordinate(address)] {
        let wrong = request(&author, 1_001, wrong);
        assert_eq!(save(&database, &wrong).await, rejected(RejectedReason::InvalidDelete));
    }
    assert_eq!(query(&database, Filter::new()).await.len(), 2);
}

#[tokio::test]
async fn deletions_outlive_a_compaction_and_a_restart() {
    let (place, database) = made(&Options::new());
    let keys = Keys::generate();
    let notes: Vec<Event> = (0..50).map(|at| note(&keys, 1_000 + at, "note")).collect();
    for note in &notes {
        saved(&database, note).await;
    }
    let ids = EventDeletionRequest::new().ids(notes.iter().take(25).map(|note| note.id));
    saved(&database, &request(&keys, 2_000, ids)).await;
    database.delete(Filter::new().ids(notes[25..30].iter().map(|note| note.id))).await.unwrap();
    let database = again(&place, database);
    for gone in &notes[..30] {
        assert_eq!(status(&database, gone).await, DatabaseEventStatus::Deleted);
        assert_eq!(save(&database, gone).await, rejected(RejectedReason::Deleted));
    }
    assert_eq!(count(&database).await, 21);
    database.store().compact(0.1, false).unwrap();
    for gone in &notes[..25] {
        assert_eq!(save(&database, gone).await, rejected(RejectedReason::Deleted));
        assert_ne!(status(&database, gone).await, DatabaseEventStatus::Saved);
    }
    assert_eq!(count(&database).await, 21);
}

#[tokio::test]
async fn answers_are_those_of_the_filters_themselves() {
    let (_place, database) = made(&Options::new());
    let all: Vec<Keys> = (0..4).map(|_| Keys::generate()).collect();
    let mut events: Vec<Event> = (0..200u64)
        .map(|n| {
            let tags =
                [Tag::hashtag(["x", "y", "z"][n as usize % 3]), Tag::parse(["T", "U"]).unwrap()];
            let kind = Kind::from_u16([1, 7, 1_111][n as usize % 7 % 3]);
            let event = EventBuilder::new(kind, format!("Text {n}"));
            let event = if n % 5 == 0 { event } else { event.tags(tags) };
            signed(&all[n as usize % 4], 1_000 + n / 10, event)
        })
        .collect();
    for event in &events {
        saved(&database, event).await;
    }
    events.sort();
    let letter = |name| SingleLetterTag::from_char(name).unwrap();
    let (one, two) = (all[0].public_key(), all[1].public_key());
    let filters = [
        Filter::new(),
        Filter { ids: Some([].into()), authors: Some([].into()), ..Filter::new() },
        Filter { kinds: Some([].into()), ..Filter::new() }.author(one),
        Filter::new().authors([one, two]).kinds([Kind::TextNote, Kind::Reaction]),
        Filter::new().hashtags(["x", "z"]).author(two),
        Filter::new().custom_tag(letter('T'), "U").hashtag("y"),
        Filter::new().since(Timestamp::from_secs(1_004)).until(Timestamp::from_secs(1_009)),
        Filter::new().ids([events[3].id, events[150].id]),
        Filter::new().search("tEXT 1"),
        Filter::new().search("").kind(Kind::TextNote),
        Filter::new().kind(Kind::TextNote).search("9"),
        Filter::new().until(Timestamp::from_secs(u64::MAX)),
        Filter::new().since(Timestamp::from_secs(1 << 33)),
    ];
    for filter in filters {
        for limit in [None, Some(0), Some(1), Some(7), Some(1_000)] {
            let filter = Filter { limit, ..filter.clone() };
            let matches = |event: &&Event| filter.match_event(event, MatchEventOptions::new());
            let limit = limit.unwrap_or(usize::MAX);
            let expected: Vec<Event> = events.iter().filter(matches).take(limit).cloned().collect();
            assert_eq!(query(&database, filter.clone()).await, expected, "{filter:?}");
            assert_eq!(database.count(filter.clone()).await.unwrap(), expected.len());
            let items = database.negentropy_items(filter).await.unwrap();
            assert!(items.iter().map(|(id, _)| id).eq(expected.iter().map(|event| &event.id)));
        }
    }
}

#[tokio::test]
async fn an_event_the_store_cannot_hold_is_rejected() {
    let (_place, database) = made(&Options::new().event_bytes_max(4_096));
    let keys = Keys::generate();
    let mut forged = note(&keys, 1_000, "text");
    forged.content.push('!');
    let late = note(&keys, 1 << 33, "in 2242");
    let large = note(&keys, 1_000, &"x".repeat(5_000));
    for event in [forged, late, large] {
        assert_eq!(save(&database, &event).await, rejected(RejectedReason::Other));
    }
    assert_eq!(count(&database).await, 0);
}

/// Sixteen sessions save at once, and wait for their own syncs alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_share_syncs_and_wait_for_one() {
    let (_place, database) = made(&Options::new().durability(Durability::Always));
    let sessions = (0..16).map(|_| {
        let database = database.clone();
        tokio::spawn(async move {
            let keys = Keys::generate();
            for at in 0..20 {
                saved(&database, &note(&keys, at, "note")).await;
            }
        })
    });
    for session in sessions.collect::<Vec<_>>() {
        session.await.unwrap();
    }
    let store = database.store();
    assert_eq!((store.unsynced_bytes().unwrap(), count(&database).await), (0, 320));
    let syncs = store.stats().unwrap().syncs;
    assert!((2..320).contains(&syncs), "{syncs}");
}

#[tokio::test]
async fn a_wipe_leaves_no_files_and_keeps_options() {
    let (place, database) = made(&Options::new().durability(Durability::Always));
    let keys = Keys::generate();
    saved(&database, &note(&keys, 1_000, "old")).await;
    database.wipe().await.unwrap();
    assert_eq!(database.store().options().durability, Some(Durability::Always));
    let new = note(&keys, 1_001, "new");
    saved(&database, &new).await;
    let names = |_| fs::read_dir(place.path()).unwrap().map(|file| file.unwrap().file_name());
    assert!(names(()).eq(["events"]));
    // A crash left the files of an earlier wipe.
    fs::create_dir_all(place.path().join(".events.wiped/data")).unwrap();
    let database = again(&place, database);
    assert!(names(()).eq(["events"]));
    assert_eq!(query(&database, Filter::new()).await, [new]);
}

#[test]
fn a_store_that_keeps_versions_is_refused() {
    let place = TempDir::new().unwrap();
    let path = place.path().join("events");
    let keeps = Options::new().history(History::Keep);
    keeps.open(&path, Mode::Append).unwrap().close().unwrap();
    let error = Database::open(&path).unwrap_err().to_string();
    assert!(error.contains("keeps replaced events"), "{error}");
}

/// "Saved" acknowledges an event to a second session, while the first still waits for the sync.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_saved_status_waits_for_the_sync() {
    let (_place, database) = made(&Options::new().durability(Durability::Always));
    let (keys, store) = (Keys::generate(), database.store());
    for at in 0..100 {
        let (event, first) = (note(&keys, at, "note"), database.clone());
        let id = event.id;
        let saves = tokio::spawn(async move { saved(&first, &event).await });
        while database.check_id(&id).await.unwrap() != DatabaseEventStatus::Saved {}
        assert_eq!(store.unsynced_bytes().unwrap(), 0, "event {at}");
        saves.await.unwrap();
    }
}

/// The table of docs/events.md: the answers of the store, and of nostr-lmdb.
#[tokio::test]
async fn answers_differ_from_nostr_lmdb_as_documented() {
    use RejectedReason::{Deleted, Expired, Other};
    let place = TempDir::new().unwrap();
    let ours = Database::open(place.path().join("events")).unwrap();
    let lmdb = NostrLMDB::open(place.path().join("lmdb")).unwrap();
    let (keys, other) = (Keys::generate(), Keys::generate());
    let mut forged = note(&keys, 1_000, "text");
    forged.content.push('!');
    let over = EventBuilder::text_note("").tag(Tag::expiration(Timestamp::from_secs(1_001)));
    let over = signed(&keys, 1_000, over);
    let (late, removed) = (note(&keys, 1_001, "late"), note(&keys, 1_002, "removed"));
    let (own, foreign) = (note(&keys, 1_003, "own"), article(&other, 1_000, 30_023, "d", ""));
    let both = EventDeletionRequest::new().id(own.id);
    let both = both.coordinate(foreign.coordinate().unwrap().into_owned());
    let wrong = request(&keys, 1_004, both);
    for (database, is_ours) in [(&ours as &dyn NostrDatabase, true), (&lmdb, false)] {
        let expect = |why| if is_ours { rejected(why) } else { SaveEventStatus::Success };
        assert_eq!(save(database, &forged).await, expect(Other));
        assert_eq!(save(database, &note(&keys, 1 << 33, "in 2242")).await, expect(Other));
        assert_eq!(save(database, &over).await, expect(Expired));
        saved(database, &request(&keys, 1_005, EventDeletionRequest::new().id(late.id))).await;
        assert_eq!(save(database, &late).await, expect(Deleted));
        saved(database, &own).await;
        assert_eq!(save(database, &wrong).await, rejected(RejectedReason::InvalidDelete));
        assert_eq!(by_id(database, &own).await.is_some(), is_ours);
        saved(database, &removed).await;
        database.delete(Filter::new().id(removed.id)).await.unwrap();
        assert_eq!(save(database, &removed).await, expect(Deleted));
    }
}
