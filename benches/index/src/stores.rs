//! The two stores under one trait: six tables, keys of fixed widths, values of at most 12 bytes.

use std::path::Path;

use crate::events::Event;

/// The tables, in the order of [`WIDTHS`].
pub const ID: usize = 0;
pub const AUTHOR: usize = 1;
pub const KIND: usize = 2;
pub const AUTHOR_KIND: usize = 3;
pub const TAG: usize = 4;
pub const TIME: usize = 5;
const NAMES: [&str; 6] = ["id", "author", "kind", "author_kind", "tag", "time"];

pub type Entry = (Vec<u8>, Vec<u8>);

/// Entries of a batch of events, by table, each table sorted.
pub fn entries(events: &[Event], first: usize) -> [Vec<Entry>; 6] {
    let mut all: [Vec<Entry>; 6] = Default::default();
    for (i, event) in events.iter().enumerate() {
        let place = ((first + i) as u64 * 4096).to_be_bytes();
        let kind = event.kind.to_be_bytes();
        let newest = [&(!event.at).to_be_bytes()[..], &event.id[..]].concat();
        let key = |parts: &[&[u8]]| [&parts.concat()[..], &newest[..]].concat();
        all[ID].push((event.id.to_vec(), [&place[..], &event.at.to_be_bytes()[..]].concat()));
        all[AUTHOR].push((key(&[&event.author]), vec![]));
        all[KIND].push((key(&[&kind]), vec![]));
        all[AUTHOR_KIND].push((key(&[&event.author, &kind]), vec![]));
        all[TIME].push((key(&[]), vec![]));
        for (letter, value) in &event.tags {
            let hint = [&kind[..], &event.author[..]].concat();
            all[TAG].push((key(&[&[*letter], value]), hint));
        }
    }
    all.iter_mut().for_each(|entries| entries.sort_unstable());
    all
}

pub trait Store: Sized {
    const NAME: &'static str;
    fn open(dir: &Path) -> Self;
    fn insert(&self, batch: [Vec<Entry>; 6]);
    /// A view for many lookups.
    fn view(&self) -> impl View;
    fn close(self);
}

pub trait View {
    fn get(&self, id: &[u8; 32]) -> Option<[u8; 12]>;
    /// The keys from `from` to before `end`.
    fn keys(&self, table: usize, from: Vec<u8>, end: Vec<u8>) -> Box<dyn Iterator<Item = Vec<u8>>>;
}

pub struct Fjall {
    db: fjall::Database,
    table: fjall::Keyspace,
}

fn prefixed(table: usize, key: &[u8]) -> Vec<u8> {
    [&[table as u8][..], key].concat()
}

impl Store for Fjall {
    const NAME: &'static str = "fjall 3.1.13";

    fn open(dir: &Path) -> Self {
        let db = fjall::Database::builder(dir.join("fjall")).cache_size(256 << 20).open().unwrap();
        let table = db.keyspace("all", fjall::KeyspaceCreateOptions::default).unwrap();
        Self { db, table }
    }

    fn insert(&self, batch: [Vec<Entry>; 6]) {
        let mut all = self.table.start_ingestion().unwrap();
        for (table, entries) in batch.into_iter().enumerate() {
            for (key, value) in entries {
                all.write(prefixed(table, &key), value).unwrap();
            }
        }
        all.finish().unwrap();
    }

    fn view(&self) -> impl View {
        FjallView { snapshot: self.db.snapshot(), table: self.table.clone() }
    }

    fn close(self) {}
}

struct FjallView {
    snapshot: fjall::Snapshot,
    table: fjall::Keyspace,
}

impl View for FjallView {
    fn get(&self, id: &[u8; 32]) -> Option<[u8; 12]> {
        use fjall::Readable;
        let found = self.snapshot.get(&self.table, prefixed(ID, id)).unwrap()?;
        Some((*found).try_into().unwrap())
    }

    fn keys(&self, table: usize, from: Vec<u8>, end: Vec<u8>) -> Box<dyn Iterator<Item = Vec<u8>>> {
        use fjall::Readable;
        let range = self.snapshot.range(&self.table, prefixed(table, &from)..prefixed(table, &end));
        Box::new(range.map(|item| item.key().unwrap()[1..].to_vec()))
    }
}

type Table = redb::TableDefinition<'static, &'static [u8], &'static [u8]>;

pub struct Redb {
    db: redb::Database,
}

impl Store for Redb {
    const NAME: &'static str = "redb 4.5.0";

    fn open(dir: &Path) -> Self {
        std::fs::create_dir_all(dir.join("redb")).unwrap();
        let mut builder = redb::Builder::new();
        builder.set_cache_size(256 << 20);
        Self { db: builder.create(dir.join("redb/index")).unwrap() }
    }

    fn insert(&self, batch: [Vec<Entry>; 6]) {
        let mut transaction = self.db.begin_write().unwrap();
        if std::env::var_os("QUICK_REPAIR").is_some() {
            transaction.set_quick_repair(true);
        }
        for (name, entries) in NAMES.iter().zip(batch) {
            let mut table = transaction.open_table(Table::new(name)).unwrap();
            for (key, value) in entries {
                table.insert(&key[..], &value[..]).unwrap();
            }
        }
        transaction.commit().unwrap();
    }

    fn view(&self) -> impl View {
        use redb::ReadableDatabase;
        let transaction = self.db.begin_read().unwrap();
        let open = |name| transaction.open_table(Table::new(name)).unwrap();
        RedbView { tables: NAMES.map(open).into() }
    }

    fn close(self) {}
}

struct RedbView {
    tables: Vec<redb::ReadOnlyTable<&'static [u8], &'static [u8]>>,
}

impl View for RedbView {
    fn get(&self, id: &[u8; 32]) -> Option<[u8; 12]> {
        let found = self.tables[ID].get(&id[..]).unwrap()?;
        Some(found.value().try_into().unwrap())
    }

    fn keys(&self, table: usize, from: Vec<u8>, end: Vec<u8>) -> Box<dyn Iterator<Item = Vec<u8>>> {
        let range = self.tables[table].range(&from[..]..&end[..]).unwrap();
        Box::new(range.map(|item| item.unwrap().0.value().to_vec()))
    }
}
