//! nostr-sdk as the client.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nostr_database::MemoryDatabaseOptions;
use nostr_sdk::prelude::*;
use tempfile::TempDir;

use crate::process::Relay;

const SOON: Duration = Duration::from_secs(20);

/// A connected client with a database of its own.
async fn client_of(relay: &Relay) -> Client {
    let options = MemoryDatabaseOptions { events: true, max_events: None };
    let client = Client::builder().database(MemoryDatabase::with_opts(options)).build();
    client.add_relay(&relay.url).await.unwrap();
    client.connect().await;
    client.wait_for_connection(SOON).await;
    client
}

/// Post an event; the relay's answer.
async fn post(client: &Client, event: &Event) -> Result<(), String> {
    match client.send_event(event).await {
        Ok(output) if !output.success.is_empty() => Ok(()),
        Ok(output) => Err(output.failed.into_values().collect()),
        Err(error) => Err(error.to_string()),
    }
}

async fn fetch(client: &Client, filter: Filter) -> BTreeSet<Event> {
    client.fetch_events(filter, SOON).await.unwrap().into_iter().collect()
}

fn note(keys: &Keys, content: &str) -> Event {
    EventBuilder::text_note(content).sign_with_keys(keys).unwrap()
}

/// The next event that a subscription of this client brings.
async fn next_event(notes: &mut tokio::sync::broadcast::Receiver<RelayPoolNotification>) -> Event {
    let next = async {
        loop {
            if let RelayPoolNotification::Event { event, .. } = notes.recv().await.unwrap() {
                return *event;
            }
        }
    };
    tokio::time::timeout(SOON, next).await.expect("an event of the subscription")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_post_query_subscribe_and_delete() {
    let place = TempDir::new().unwrap();
    let relay = Relay::on(place.path());
    let (writer, reader) = (client_of(&relay).await, client_of(&relay).await);
    let keys = Keys::generate();
    let mine = Filter::new().author(keys.public_key());

    let mut news = reader.notifications();
    reader.subscribe(mine.clone().kind(Kind::TextNote), None).await.unwrap();
    // The answer to a later query shows that the relay has the subscription.
    assert!(fetch(&reader, mine.clone()).await.is_empty());
    let posted = note(&keys, "live");
    post(&writer, &posted).await.unwrap();
    assert_eq!(next_event(&mut news).await, posted);

    let profile = |name, at| {
        let event = EventBuilder::metadata(&Metadata::new().name(name));
        event.custom_created_at(Timestamp::from_secs(at)).sign_with_keys(&keys).unwrap()
    };
    let (old, new) = (profile("old", 1_000), profile("new", 2_000));
    post(&writer, &old).await.unwrap();
    post(&writer, &new).await.unwrap();
    assert_eq!(fetch(&reader, mine.clone()).await, [posted.clone(), new.clone()].into());
    assert!(post(&writer, &old).await.is_err());

    let gone = EventDeletionRequest::new().id(posted.id);
    let gone = EventBuilder::delete(gone).sign_with_keys(&keys).unwrap();
    post(&writer, &gone).await.unwrap();
    assert_eq!(fetch(&reader, mine.clone()).await, [gone.clone(), new.clone()].into());
    let refused = post(&writer, &posted).await.unwrap_err();
    assert!(refused.contains("deleted"), "{refused}");

    relay.stop();
    let relay = Relay::on(place.path());
    let client = client_of(&relay).await;
    assert_eq!(fetch(&client, mine).await, [gone, new].into());
    assert!(post(&client, &posted).await.unwrap_err().contains("deleted"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_events_outlive_killed_relays() {
    let place = TempDir::new().unwrap();
    let acknowledged = Arc::new(Mutex::new(BTreeSet::new()));
    for round in 1..=4 {
        let relay = Relay::on(place.path());
        let mut sessions = Vec::new();
        for _ in 0..8 {
            let (client, acknowledged) = (client_of(&relay).await, acknowledged.clone());
            sessions.push(tokio::spawn(async move {
                let keys = Keys::generate();
                for number in 0.. {
                    let event = note(&keys, &format!("{number}"));
                    if post(&client, &event).await.is_err() {
                        break;
                    }
                    acknowledged.lock().unwrap().insert(event);
                }
            }));
        }
        while acknowledged.lock().unwrap().len() < round * 200 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        relay.kill();
        sessions.iter().for_each(|session| session.abort());
    }
    let relay = Relay::on(place.path());
    let client = client_of(&relay).await;
    let acknowledged = acknowledged.lock().unwrap().clone();
    let found = fetch(&client, Filter::new().limit(1_000_000)).await;
    let lost: Vec<_> = acknowledged.difference(&found).collect();
    assert!(lost.is_empty() && acknowledged.len() >= 800, "{} lost", lost.len());
}

/// NIP-77: the client gets the events that it lacks, and the relay gets the client's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn negentropy_brings_both_sides_the_missing_events() {
    let place = TempDir::new().unwrap();
    let relay = Relay::on(place.path());
    let (writer, other) = (client_of(&relay).await, client_of(&relay).await);
    let keys = Keys::generate();
    let events: Vec<Event> = (0..40).map(|n| note(&keys, &format!("{n}"))).collect();
    for event in &events[..30] {
        post(&writer, event).await.unwrap();
    }
    for event in &events[20..] {
        other.database().save_event(event).await.unwrap();
    }
    let both = SyncOptions::default().direction(SyncDirection::Both);
    let filter = Filter::new().author(keys.public_key());
    let done = other.sync(filter.clone(), &both).await.unwrap();
    assert_eq!((done.val.received.len(), done.val.sent.len()), (20, 10));
    assert_eq!(fetch(&writer, filter).await, events.into_iter().collect());
}
