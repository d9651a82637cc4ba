//! The stores. Each is used as its documentation shows.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::time::{Duration, Instant};

use deedbook::nostr::{EventStore, Filter, Id, ImportOptions, Include, Options};
use deedbook::{Mode, OnCorrupt};

use crate::facts::cpu_time;
use crate::rust_nostr::RustNostr;
use crate::sqlite::Sqlite;

/// Events per transaction of a peer.
pub const BATCH: usize = 10_000;

/// The amount of work, and its time.
#[derive(Clone, Copy)]
pub struct Done {
    pub count: usize,
    pub wall: Duration,
    pub cpu: Duration,
}

/// Time `work` of `count` units.
pub fn timed<T>(count: usize, work: impl FnOnce() -> T) -> (Done, T) {
    let (begun, used) = (Instant::now(), cpu_time());
    let made = work();
    (Done { count, wall: begun.elapsed(), cpu: cpu_time() - used }, made)
}

/// Events to import.
pub struct Lines<'a> {
    /// The file of JSON lines.
    pub path: &'a Path,
    /// The ids, in the order of the lines.
    pub ids: &'a [Id],
    /// The database of plain SQLite with the same events: nostr-sqlite copies most events from this file.
    pub sqlite: &'a Path,
}

/// An event of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    pub at: u64,
    pub id: Id,
}

pub trait Store {
    /// Check each id and store the events; they are on stable storage on return.
    fn import(&mut self, lines: &Lines<'_>) -> Done;

    /// Convert every event to a value of the store's library; returns the number of events.
    fn scan(&self) -> usize;

    /// Whether the store has the event with this id; an event found is converted as in `scan`.
    fn find(&self, id: &Id) -> bool;

    /// The same from the last event to the first. `None` if the store cannot.
    fn scan_back(&self) -> Option<usize> {
        None
    }

    /// The number of events that match a filter.
    fn count(&self, filter: &Filter) -> usize;

    /// Drop the events that do not count. False if the store has nothing like that.
    fn compact(&self) -> bool {
        false
    }

    /// The events that match a filter, and the time from the filter to the events.
    fn ask(&self, filter: &Filter) -> (Duration, Vec<Found>);
}

/// A measured store.
pub struct Kind {
    pub name: &'static str,
    pub version: fn() -> String,
    /// The durability of an import.
    pub import: &'static str,
    /// Whether the order within a second is by id, according to NIP-01. Without it a limit may return any events of the
    /// last second.
    pub by_id: bool,
    pub open: fn(&Path) -> Box<dyn Store>,
}

/// Our store first, and plain SQLite before nostr-sqlite, which copies events from SQLite.
pub const KINDS: [Kind; 4] = [
    Kind {
        name: OURS,
        version: || "0.1.0".into(),
        import: "synced within 100 ms or 10 MB, the default, and at the end",
        by_id: true,
        open: |dir| Box::new(Ours(Options::default().open(dir, Mode::Append).unwrap())),
    },
    Kind {
        name: "SQLite",
        version: || format!("SQLite {} by rusqlite 0.38.0", rusqlite::version()),
        import: "a synced transaction per 10,000 events (WAL, synchronous=FULL)",
        by_id: true,
        open: |dir| Box::new(Sqlite::open(dir)),
    },
    Kind {
        name: "nostr-lmdb",
        version: || "nostr-lmdb 0.45.3".into(),
        import: "10,000 events at a time, which it stores in one or two synced transactions",
        by_id: true,
        open: |dir| Box::new(RustNostr::lmdb(dir)),
    },
    Kind {
        name: "nostr-sqlite",
        version: || format!("nostr-sqlite 0.45.2, SQLite {}", rusqlite::version()),
        import: "a synced transaction per event (WAL, synchronous=FULL): it has no other way",
        by_id: false,
        open: |dir| Box::new(RustNostr::sqlite(dir)),
    },
];

pub const OURS: &str = "deedbook";

pub struct Ours(pub EventStore);

impl Store for Ours {
    fn import(&mut self, lines: &Lines<'_>) -> Done {
        let (done, report) = timed(lines.ids.len(), || {
            let mut text = BufReader::with_capacity(1 << 20, File::open(lines.path).unwrap());
            let options = ImportOptions::default();
            let report = self.0.import(&mut text, &options, None, &mut |_| Ok(())).unwrap();
            self.0.sync().unwrap();
            report
        });
        assert_eq!((report.lines, report.bad), (lines.ids.len() as u64, 0), "{report:?}");
        done
    }

    fn scan(&self) -> usize {
        let events = self.0.iter(Include::Live, OnCorrupt::Raise).unwrap();
        events.map(Result::unwrap).count()
    }

    fn scan_back(&self) -> Option<usize> {
        let events = self.0.iter_reverse(Include::Live, OnCorrupt::Raise).unwrap();
        Some(events.map(Result::unwrap).count())
    }

    /// The store has no call that only counts.
    fn count(&self, filter: &Filter) -> usize {
        self.0.query(std::slice::from_ref(filter)).unwrap().len()
    }

    fn compact(&self) -> bool {
        self.0.compact(0.0, false).unwrap();
        true
    }

    fn find(&self, id: &Id) -> bool {
        self.0.find(id).unwrap().is_some_and(|found| found.event.id == *id)
    }

    fn ask(&self, filter: &Filter) -> (Duration, Vec<Found>) {
        let filters = [filter.clone()];
        let begun = Instant::now();
        let events = self.0.query(&filters).unwrap();
        let took = begun.elapsed();
        let found = |at: u32, id| Found { at: at.into(), id };
        (took, events.iter().map(|one| found(one.event.created_at, one.event.id)).collect())
    }
}
