//! rust-nostr's databases, through their shared asynchronous interface.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use deedbook::nostr::{Filter, Id};
use futures_util::future::join_all;
use heed::{EnvFlags, EnvOpenOptions};
use nostr::event::{Event, EventId, Kind};
use nostr::filter::{Filter as Wanted, SingleLetterTag};
use nostr::key::PublicKey;
use nostr::types::Timestamp;
use nostr_database::NostrDatabase;
use nostr_lmdb::NostrLmdb;
use nostr_sqlite::store::NostrSqlite;
use rusqlite::Connection;
use tokio::runtime::{Builder, Runtime};

use crate::lines::parsed;
use crate::stores::{Done, Found, Lines, Store, timed};

const SQLITE_NAME: &str = "events.db";
/// Events that nostr-sqlite stores itself, with a sync each.
const EACH: usize = 2000;

/// Copies the events that nostr-sqlite would have stored from the tables of plain SQLite.
const FILL: &str = "
    DELETE FROM event_tags WHERE event_id NOT IN (SELECT id FROM plain.events);
    DELETE FROM events WHERE id NOT IN (SELECT id FROM plain.events);
    INSERT OR IGNORE INTO events(id, pubkey, created_at, kind, content, tags, sig)
        SELECT id, pubkey, created_at, kind, content, tags, sig FROM plain.events
        WHERE id NOT IN (SELECT id FROM later);
    INSERT OR IGNORE INTO event_tags(event_id, tag_name, tag_value)
        SELECT e.id, t.name, t.value FROM plain.tags t JOIN plain.events e ON e.number = t.event
        WHERE e.id NOT IN (SELECT id FROM later);";

pub struct RustNostr {
    dir: PathBuf,
    /// None during the copy into the files.
    database: Option<Box<dyn NostrDatabase>>,
    import: fn(&mut Self, &Lines<'_>) -> Done,
}

impl RustNostr {
    pub fn lmdb(dir: &Path) -> Self {
        std::fs::create_dir_all(dir).unwrap();
        let dir = dir.canonicalize().unwrap();
        let database: Box<dyn NostrDatabase> = Box::new(wait(NostrLmdb::open(&dir)).unwrap());
        Self { dir, database: Some(database), import: import_at_once }
    }

    pub fn sqlite(dir: &Path) -> Self {
        std::fs::create_dir_all(dir).unwrap();
        Self { dir: dir.into(), database: Some(open_sqlite(dir)), import: import_one_by_one }
    }

    fn database(&self) -> &dyn NostrDatabase {
        self.database.as_deref().unwrap()
    }
}

impl Drop for RustNostr {
    fn drop(&mut self) {
        self.database = None;
        if heed::env_closing_event(&self.dir).is_some() {
            close_lmdb(&self.dir);
        }
    }
}

impl Store for RustNostr {
    fn import(&mut self, lines: &Lines<'_>) -> Done {
        (self.import)(self, lines)
    }

    fn scan(&self) -> usize {
        wait(self.database().query(Wanted::new().limit(usize::MAX >> 1))).unwrap().len()
    }

    fn find(&self, id: &Id) -> bool {
        let id = EventId::from_byte_array(id.0);
        let found = wait(self.database().event_by_id(&id)).unwrap();
        found.is_some_and(|event| event.id == id)
    }

    fn count(&self, filter: &Filter) -> usize {
        wait(self.database().count(translated(filter))).unwrap()
    }

    fn ask(&self, filter: &Filter) -> (Duration, Vec<Found>) {
        let wanted = translated(filter);
        let begun = Instant::now();
        let events = wait(self.database().query(wanted)).unwrap();
        let took = begun.elapsed();
        let found =
            |event: &Event| Found { at: event.created_at.as_secs(), id: Id(event.id.to_bytes()) };
        (took, events.iter().map(found).collect())
    }
}

/// Saves many events at a time: the thread of nostr-lmdb stores all waiting events in one transaction.
fn import_at_once(store: &mut RustNostr, lines: &Lines<'_>) -> Done {
    let save = |events: Vec<Event>| {
        let saved = join_all(events.iter().map(|event| store.database().save_event(event)));
        wait(saved).into_iter().for_each(|status| _ = status.unwrap());
    };
    timed(lines.ids.len(), || parsed(lines.path, checked, save)).0
}

/// nostr-sqlite needs a transaction per event, minutes for all. Only the last events are measured; a copy from plain
/// SQLite's tables brings the others first.
fn import_one_by_one(store: &mut RustNostr, lines: &Lines<'_>) -> Done {
    let each = EACH.min(lines.ids.len() / 4);
    let (_, later) = lines.ids.split_at(lines.ids.len() - each);
    store.database = None;
    fill(&store.dir.join(SQLITE_NAME), lines.sqlite, later);
    store.database = Some(open_sqlite(&store.dir));
    let text = BufReader::new(File::open(lines.path).unwrap());
    let texts: Vec<Vec<u8>> =
        text.split(b'\n').skip(lines.ids.len() - each).map(Result::unwrap).collect();
    let save = || {
        for text in &texts {
            wait(store.database().save_event(&checked(text))).unwrap();
        }
    };
    timed(each, save).0
}

fn fill(path: &Path, plain: &Path, later: &[Id]) {
    let connection = Connection::open(path).unwrap();
    let begin = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
        PRAGMA cache_size = -1048576; PRAGMA foreign_keys = OFF;
        CREATE TEMP TABLE later(id BLOB PRIMARY KEY) WITHOUT ROWID;";
    connection.execute_batch(begin).unwrap();
    connection.execute("ATTACH ? AS plain", [plain.to_str()]).unwrap();
    for id in later {
        connection.execute("INSERT INTO later VALUES (?)", [&id.0]).unwrap();
    }
    connection.execute_batch(FILL).unwrap();
}

fn open_sqlite(dir: &Path) -> Box<dyn NostrDatabase> {
    let built = NostrSqlite::builder().in_file(dir.join(SQLITE_NAME)).build();
    Box::new(wait(built).unwrap())
}

/// nostr-lmdb keeps its files open until the process ends, and opening open files measures nothing. The library returns
/// the same handle for the same options, and closing this handle works.
fn close_lmdb(dir: &Path) {
    let mut options = EnvOpenOptions::new();
    options.max_dbs(12).max_readers(126).map_size(32 << 30);
    // SAFETY: the files are open already, and only LMDB changes them.
    let env = unsafe { options.flags(EnvFlags::NO_TLS).open(dir) }.unwrap();
    env.prepare_for_closing().wait();
}

fn checked(line: &[u8]) -> Event {
    let event: Event = serde_json::from_slice(line).unwrap();
    assert!(event.verify_id(), "id of {}", event.id);
    event
}

fn translated(filter: &Filter) -> Wanted {
    let mut wanted = Wanted::new();
    if let Some(authors) = &filter.authors {
        let keys = authors.iter().map(|author| PublicKey::from_byte_array(*author));
        wanted = wanted.authors(keys);
    }
    if let Some(kinds) = &filter.kinds {
        wanted = wanted.kinds(kinds.iter().map(|&kind| Kind::from_u16(kind)));
    }
    for (&letter, values) in &filter.tags {
        let letter = SingleLetterTag::from_char(letter.into()).unwrap();
        wanted = wanted.custom_tags(letter, values);
    }
    wanted.since = filter.since.map(Timestamp::from_secs);
    wanted.until = filter.until.map(Timestamp::from_secs);
    wanted.limit = filter.limit.map(|limit| limit as usize);
    wanted
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| Builder::new_current_thread().build().unwrap()).block_on(future)
}
