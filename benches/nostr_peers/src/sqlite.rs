//! Plain SQLite with the needs of a relay: the indexes of NIP-01's filters, replaceable and addressable events,
//! deletion requests.

use std::path::Path;
use std::time::{Duration, Instant};

use deedbook::nostr::{Event, Filter, Id};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params, params_from_iter};

use crate::lines::parsed;
use crate::stores::{Done, Found, Lines, Store, timed};

/// The file in the store's directory.
pub const NAME: &str = "events.db";

/// As much cache as our index has, and checkpoints as rare as ours.
const SCHEMA: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA cache_size = -131072;
    PRAGMA mmap_size = 8589934592;
    PRAGMA wal_autocheckpoint = 65536;
    CREATE TABLE IF NOT EXISTS events(
        number INTEGER PRIMARY KEY,
        id BLOB NOT NULL,
        pubkey BLOB NOT NULL,
        created_at INTEGER NOT NULL,
        kind INTEGER NOT NULL,
        tags TEXT NOT NULL,
        content TEXT NOT NULL,
        sig BLOB NOT NULL,
        name TEXT -- of a replaceable or addressable event
    );
    CREATE UNIQUE INDEX IF NOT EXISTS by_id ON events(id);
    CREATE INDEX IF NOT EXISTS by_author_kind ON events(pubkey, kind, created_at DESC, id);
    CREATE INDEX IF NOT EXISTS by_kind ON events(kind, created_at DESC, id);
    CREATE INDEX IF NOT EXISTS by_time ON events(created_at DESC, id);
    CREATE TABLE IF NOT EXISTS tags(
        name TEXT NOT NULL,
        value TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        event INTEGER NOT NULL,
        PRIMARY KEY (name, value, created_at DESC, event)
    ) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS deleted(
        pubkey BLOB NOT NULL,
        what TEXT NOT NULL, -- an id, or kind:name
        at INTEGER NOT NULL,
        PRIMARY KEY (pubkey, what)
    ) WITHOUT ROWID;";

const COLUMNS: &str = "e.id, e.pubkey, e.created_at, e.kind, e.tags, e.content, e.sig";
const DELETION: u16 = 5;

pub struct Sqlite(Connection);

impl Sqlite {
    pub fn open(dir: &Path) -> Self {
        std::fs::create_dir_all(dir).unwrap();
        let connection = Connection::open(dir.join(NAME)).unwrap();
        connection.execute_batch(SCHEMA).unwrap();
        connection.set_prepared_statement_cache_capacity(64);
        Self(connection)
    }
}

impl Store for Sqlite {
    fn import(&mut self, lines: &Lines<'_>) -> Done {
        let parse = |line: &[u8]| {
            let event = Event::from_json(line).unwrap();
            event.check_id(&mut Vec::new()).unwrap();
            event
        };
        let connection = &mut self.0;
        let take = |events: Vec<Event>| {
            let transaction = connection.transaction().unwrap();
            events.iter().for_each(|event| insert(&transaction, event).unwrap());
            transaction.commit().unwrap();
        };
        timed(lines.ids.len(), || parsed(lines.path, parse, take)).0
    }

    fn scan(&self) -> usize {
        let mut all = self.0.prepare(&format!("SELECT {COLUMNS} FROM events e")).unwrap();
        all.query_map([], event).unwrap().map(Result::unwrap).count()
    }

    fn find(&self, id: &Id) -> bool {
        let select = format!("SELECT {COLUMNS} FROM events e WHERE e.id = ?");
        let mut one = self.0.prepare_cached(&select).unwrap();
        let found = one.query_row([&id.0], event).optional().unwrap();
        found.is_some_and(|event| event.id == *id)
    }

    fn count(&self, filter: &Filter) -> usize {
        let (select, values) = select(filter);
        let count = format!("SELECT count(*) FROM ({select})");
        let mut one = self.0.prepare_cached(&count).unwrap();
        one.query_row(params_from_iter(values), |row| row.get::<_, i64>(0)).unwrap() as usize
    }

    fn scan_back(&self) -> Option<usize> {
        let select = format!("SELECT {COLUMNS} FROM events e ORDER BY e.number DESC");
        let mut all = self.0.prepare(&select).unwrap();
        Some(all.query_map([], event).unwrap().map(Result::unwrap).count())
    }

    fn ask(&self, filter: &Filter) -> (Duration, Vec<Found>) {
        let begun = Instant::now();
        let (select, values) = select(filter);
        let mut all = self.0.prepare_cached(&select).unwrap();
        let rows = all.query_map(params_from_iter(values), event).unwrap();
        let events: Vec<Event> = rows.map(Result::unwrap).collect();
        let took = begun.elapsed();
        let found = |event: &Event| Found { at: event.created_at.into(), id: event.id };
        (took, events.iter().map(found).collect())
    }
}

fn event(row: &Row<'_>) -> rusqlite::Result<Event> {
    Ok(Event {
        id: Id(row.get(0)?),
        pubkey: row.get(1)?,
        created_at: row.get(2)?,
        kind: row.get(3)?,
        tags: serde_json::from_str(row.get_ref(4)?.as_str()?).unwrap(),
        content: row.get(5)?,
        sig: row.get(6)?,
    })
}

/// One statement for a filter. The first letter of its tags leads to the events.
fn select(filter: &Filter) -> (String, Vec<Value>) {
    let (mut conditions, mut values) = (Vec::new(), Vec::new());
    let mut one_of = |column: &str, wanted: &mut dyn Iterator<Item = Value>| {
        let before = values.len();
        values.extend(wanted);
        let places = vec!["?"; values.len() - before].join(", ");
        conditions.push(format!("{column} IN ({places})"));
    };
    let (mut from, mut time) = ("events e", "e.created_at");
    if let Some((&letter, wanted)) = filter.tags.first_key_value() {
        (from, time) = ("tags t CROSS JOIN events e ON e.number = t.event", "t.created_at");
        one_of("t.name", &mut [Value::from(char::from(letter).to_string())].into_iter());
        one_of("t.value", &mut wanted.iter().map(|value| value.clone().into()));
    }
    if let Some(authors) = &filter.authors {
        one_of("e.pubkey", &mut authors.iter().map(|author| author.to_vec().into()));
    }
    if let Some(kinds) = &filter.kinds {
        one_of("e.kind", &mut kinds.iter().map(|&kind| i64::from(kind).into()));
    }
    for (&letter, wanted) in filter.tags.iter().skip(1) {
        let places = vec!["?"; wanted.len()].join(", ");
        conditions.push(format!(
            "EXISTS (SELECT 1 FROM tags o WHERE o.name = ? AND o.value IN ({places})
             AND o.created_at = t.created_at AND o.event = t.event)"
        ));
        values.push(char::from(letter).to_string().into());
        values.extend(wanted.iter().map(|value| Value::from(value.clone())));
    }
    for (bound, sign) in [(filter.since, ">="), (filter.until, "<=")] {
        if let Some(bound) = bound {
            conditions.push(format!("{time} {sign} ?"));
            values.push((bound as i64).into());
        }
    }
    // Without a limit: all.
    values.push(filter.limit.map_or(-1, |limit| limit as i64).into());
    let conditions = match conditions.is_empty() {
        true => "TRUE".into(),
        false => conditions.join(" AND "),
    };
    // The indexes decide everything, so SQLite reads only the rows of the answer.
    let numbers = format!(
        "SELECT e.number FROM {from} WHERE {conditions} ORDER BY {time} DESC, e.id LIMIT ?"
    );
    let select = format!(
        "SELECT {COLUMNS} FROM ({numbers}) found CROSS JOIN events e ON e.number = found.number
         ORDER BY e.created_at DESC, e.id"
    );
    (select, values)
}

/// Store an event as a relay does.
fn insert(transaction: &Transaction<'_>, event: &Event) -> rusqlite::Result<()> {
    let Event { id, pubkey, created_at, kind, .. } = event;
    let name = name_of(event);
    let address = name.map(|name| format!("{kind}:{name}"));
    let mut deleted = transaction
        .prepare_cached("SELECT 1 FROM deleted WHERE pubkey = ? AND what = ? AND at >= ?")?;
    let address = address.iter().map(|address| (address.clone(), *created_at));
    for (what, at) in [(id.to_string(), 0)].into_iter().chain(address) {
        if deleted.exists(params![pubkey, what, at])? {
            return Ok(());
        }
    }
    if let Some(name) = name {
        let mut stored = transaction.prepare_cached(
            "SELECT number, created_at, id FROM events WHERE pubkey = ? AND kind = ? AND name = ?",
        )?;
        let stored = stored.query_row(params![pubkey, kind, name], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, u32>(1)?, row.get::<_, [u8; 32]>(2)?))
        });
        if let Some((number, at, other)) = stored.optional()? {
            if at > *created_at || at == *created_at && other <= id.0 {
                return Ok(());
            }
            remove(transaction, number)?;
        }
    }
    let mut row = transaction.prepare_cached(
        "INSERT OR IGNORE INTO events(id, pubkey, created_at, kind, tags, content, sig, name)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    )?;
    let tags = serde_json::to_string(&event.tags).unwrap();
    let values = params![id.0, pubkey, created_at, kind, tags, event.content, event.sig, name];
    if row.execute(values)? == 0 {
        return Ok(());
    }
    let number = transaction.last_insert_rowid();
    let mut entry = transaction.prepare_cached("INSERT OR IGNORE INTO tags VALUES (?, ?, ?, ?)")?;
    for (letter, value) in letters(&event.tags) {
        entry.execute(params![letter, value, created_at, number])?;
    }
    match *kind {
        DELETION if is_signed(event) => delete(transaction, event),
        _ => Ok(()),
    }
}

/// As in our store, a deletion request counts only with a true signature. Synthetic events have none.
fn is_signed(event: &Event) -> bool {
    nostr::event::Event::from_json(event.to_json()).is_ok_and(|event| event.verify_signature())
}

/// Carry out a deletion request, and record it for later events.
fn delete(transaction: &Transaction<'_>, request: &Event) -> rusqlite::Result<()> {
    let Event { pubkey, created_at, .. } = request;
    let mut note = transaction.prepare_cached(
        "INSERT INTO deleted VALUES (?, ?, ?)
         ON CONFLICT DO UPDATE SET at = max(at, excluded.at)",
    )?;
    for (letter, value) in letters(&request.tags) {
        let hex = Id(*pubkey).to_string();
        let mut parts = value.splitn(3, ':');
        let found: Option<i64> = match (letter, parts.next(), parts.next(), parts.next()) {
            ("e", ..) => {
                let Ok(id) = value.parse::<Id>() else { continue };
                note.execute(params![pubkey, value, created_at])?;
                let mut stored = transaction
                    .prepare_cached("SELECT number FROM events WHERE id = ? AND pubkey = ?")?;
                stored.query_row(params![id.0, pubkey], |row| row.get(0)).optional()?
            }
            ("a", Some(kind), Some(author), Some(name)) if author == hex => {
                note.execute(params![pubkey, format!("{kind}:{name}"), created_at])?;
                let mut stored = transaction.prepare_cached(
                    "SELECT number FROM events
                     WHERE pubkey = ? AND kind = ? AND name = ? AND created_at <= ?",
                )?;
                let values = params![pubkey, kind.parse::<u16>().ok(), name, created_at];
                stored.query_row(values, |row| row.get(0)).optional()?
            }
            _ => continue,
        };
        if let Some(number) = found {
            remove(transaction, number)?;
        }
    }
    Ok(())
}

fn remove(transaction: &Transaction<'_>, number: i64) -> rusqlite::Result<()> {
    let select = format!("SELECT {COLUMNS} FROM events e WHERE e.number = ?");
    let old = transaction.prepare_cached(&select)?.query_row([number], event)?;
    let mut entry = transaction.prepare_cached(
        "DELETE FROM tags WHERE name = ? AND value = ? AND created_at = ? AND event = ?",
    )?;
    for (letter, value) in letters(&old.tags) {
        entry.execute(params![letter, value, old.created_at, number])?;
    }
    transaction.prepare_cached("DELETE FROM events WHERE number = ?")?.execute([number])?;
    Ok(())
}

/// Tags that a filter can name.
fn letters(tags: &[Vec<String>]) -> impl Iterator<Item = (&str, &str)> {
    tags.iter().filter_map(|tag| match tag.as_slice() {
        [name, value, ..] if matches!(name.as_bytes(), [b'a'..=b'z' | b'A'..=b'Z']) => {
            Some((name.as_str(), value.as_str()))
        }
        _ => None,
    })
}

/// The name of an event among the replaceable events of its author and kind.
fn name_of(event: &Event) -> Option<&str> {
    match event.kind {
        0 | 3 | 10_000..20_000 => Some(""),
        30_000..40_000 => {
            let name = letters(&event.tags).find(|(letter, _)| *letter == "d");
            Some(name.map_or("", |(_, name)| name))
        }
        _ => None,
    }
}
