//! The event store of [`deedbook`] as a database of rust-nostr: [`Database`] implements
//! [`NostrDatabase`]. `nostr-relay-builder` then serves a store as a relay, and `nostr-sdk` can
//! keep events in a store.
//!
//! ```no_run
//! use deedbook_nostr::Database;
//! use nostr_relay_builder::{LocalRelay, RelayBuilder};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let database = Database::open("events")?;
//! let relay = LocalRelay::new(RelayBuilder::default().port(7777).database(database));
//! relay.run().await?;
//! # Ok(())
//! # }
//! ```
//!
//! Every call works on a thread for blocking calls, so a call needs a runtime of tokio. A saved
//! event is as durable as [`Options::durability`] promises before `save_event` returns. The default
//! syncs within 100 ms; [`Durability::Always`](deedbook::Durability::Always) syncs first, and
//! sessions share a sync.
//!
//! Three points of the trait are open, and the crate decides them:
//!
//! - The store checks ids again, and refuses an event with another id than the hash of the content,
//!   or beyond the store's limits: [`RejectedReason::Other`](nostr_database::RejectedReason::Other).
//! - `check_id` reports a deleted event until a compaction drops its record. Afterwards the id is
//!   unknown, and `save_event` still rejects an event that its author deleted. An event deleted by
//!   filter can be saved again only after the compaction.
//! - An event with a tag of no elements, which rust-nostr cannot represent, is left out of answers.

mod calls;
mod translate;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use deedbook::Mode;
use deedbook::nostr::{EventStore, History, Options};
use nostr::util::BoxedFuture;
use nostr::{Event, EventId, Filter, Timestamp};
use nostr_database::{
    Backend, DatabaseError, DatabaseEventStatus, Events, NostrDatabase, SaveEventStatus,
};

/// A store open for appending. Clones share the store, and dropping the last clone closes the store.
#[derive(Clone, Debug)]
pub struct Database {
    /// A wipe locks the store for writing, every other call for reading.
    store: Arc<RwLock<EventStore>>,
}

impl Database {
    /// Open the store in a directory for appending, or create it.
    ///
    /// # Errors
    ///
    /// Fails as [`Options::open`] does, and for a store that keeps replaced events.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, DatabaseError> {
        Self::open_with(path, &Options::new())
    }

    /// Open the store in a directory with options.
    ///
    /// # Errors
    ///
    /// Fails as [`Options::open`] does, and for a store that keeps replaced events.
    pub fn open_with(path: impl AsRef<Path>, options: &Options) -> Result<Self, DatabaseError> {
        finish_wipe(path.as_ref()).map_err(DatabaseError::backend)?;
        let store = options.open(path, Mode::Append).map_err(DatabaseError::backend)?;
        if store.history() != History::Drop {
            let path = store.path().display();
            let why = format!("{path} keeps replaced events, and a relay returns current ones");
            return Err(DatabaseError::backend(io::Error::other(why)));
        }
        Ok(Self { store: Arc::new(RwLock::new(store)) })
    }

    /// The store, for a backup, a compaction or counters. A wipe closes this handle.
    pub fn store(&self) -> EventStore {
        self.store.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Call on a thread for blocking calls.
    fn call<T: Send + 'static>(
        &self,
        call: impl FnOnce(&EventStore) -> deedbook::Result<T> + Send + 'static,
    ) -> BoxedFuture<'static, Result<T, DatabaseError>> {
        let store = self.store.clone();
        Box::pin(async move {
            let work = move || call(&store.read().unwrap_or_else(PoisonError::into_inner));
            let done = tokio::task::spawn_blocking(work).await;
            done.map_err(DatabaseError::backend)?.map_err(DatabaseError::backend)
        })
    }
}

impl NostrDatabase for Database {
    fn backend(&self) -> Backend {
        Backend::Custom("deedbook".into())
    }

    fn save_event<'a>(
        &'a self,
        event: &'a Event,
    ) -> BoxedFuture<'a, Result<SaveEventStatus, DatabaseError>> {
        match translate::stored(event) {
            Some(event) => self.call(move |store| calls::save(store, &event)),
            None => Box::pin(async { Ok(calls::UNSTORABLE) }),
        }
    }

    fn check_id<'a>(
        &'a self,
        event_id: &'a EventId,
    ) -> BoxedFuture<'a, Result<DatabaseEventStatus, DatabaseError>> {
        let id = translate::id(event_id);
        self.call(move |store| calls::check(store, &id))
    }

    fn event_by_id<'a>(
        &'a self,
        event_id: &'a EventId,
    ) -> BoxedFuture<'a, Result<Option<Event>, DatabaseError>> {
        let id = translate::id(event_id);
        self.call(move |store| Ok(store.find(&id)?.and_then(|found| translate::shown(found.event))))
    }

    fn count(&self, filter: Filter) -> BoxedFuture<'_, Result<usize, DatabaseError>> {
        self.call(move |store| Ok(calls::matching(store, &filter)?.len()))
    }

    fn query(&self, filter: Filter) -> BoxedFuture<'_, Result<Events, DatabaseError>> {
        self.call(move |store| calls::query(store, &filter))
    }

    fn negentropy_items(
        &self,
        filter: Filter,
    ) -> BoxedFuture<'_, Result<Vec<(EventId, Timestamp)>, DatabaseError>> {
        self.call(move |store| calls::items(store, &filter))
    }

    fn delete(&self, filter: Filter) -> BoxedFuture<'_, Result<(), DatabaseError>> {
        self.call(move |store| calls::delete(store, &filter))
    }

    fn wipe(&self) -> BoxedFuture<'_, Result<(), DatabaseError>> {
        let store = self.store.clone();
        Box::pin(async move {
            let done = tokio::task::spawn_blocking(move || wipe(&store)).await;
            done.map_err(DatabaseError::backend)?
        })
    }
}

/// Close the store, and open a new store with the same options in the same place. A crash leaves the old
/// store or none, and perhaps its files under another name, which the next opening removes.
fn wipe(store: &RwLock<EventStore>) -> Result<(), DatabaseError> {
    let mut store = store.write().unwrap_or_else(PoisonError::into_inner);
    let (path, options) = (store.path().to_owned(), store.options().clone());
    finish_wipe(&path).map_err(DatabaseError::backend)?;
    store.close().map_err(DatabaseError::backend)?;
    move_aside(&path).map_err(DatabaseError::backend)?;
    *store = options.open(&path, Mode::Append).map_err(DatabaseError::backend)?;
    finish_wipe(&path).map_err(DatabaseError::backend)
}

/// Rename a store's directory, durably.
fn move_aside(path: &Path) -> io::Result<()> {
    fs::rename(path, aside(path))?;
    match path.parent() {
        Some(parent) if cfg!(unix) => fs::File::open(parent)?.sync_all(),
        _ => Ok(()),
    }
}

/// Remove the files of a wiped store.
fn finish_wipe(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(aside(path)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn aside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.wiped"))
}
