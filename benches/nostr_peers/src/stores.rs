//! The stores, and what each is made to do: as its documentation shows.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::time::{Duration, Instant};

use deedbook::nostr::{EventStore, Filter, Id, ImportOptions, Include, Options};
use deedbook::{Mode, OnCorrupt};

use crate::facts::cpu_time;
use crate::rust_nostr::RustNostr;
use crate::sqlite::Sqlite;

/// Events that a peer stores in one transaction.
pub const BATCH: usize = 10_000;

/// How much was done, and in what time.
#[derive(Clone, Copy)]
pub struct Done {
    pub count: usize,
    pub wall: Duration,
    pub cpu: Duration,
}

/// Time `work`, which does `count` things.
pub fn timed<T>(count: usize, work: impl FnOnce() -> T) -> (Done, T) {
    let (begun, used) = (Instant::now(), cpu_time());
    let made = work();
    (Done { count, wall: begun.elapsed(), cpu: cpu_time() - used }, made)
}

/// Events to be imported.
pub struct Lines<'a> {
    /// The file of JSON lines.
    pub path: &'a Path,
    /// The ids, in the order of the lines.
    pub ids: &'a [Id],
    /// Where plain SQLite has stored them by now: rust-nostr's takes most of them from there.
    pub sqlite: &'a Path,
}

/// An event of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    pub at: u64,
    pub id: Id,
}

pub trait Store {
    /// Store the events, each id checked; they are on stable storage when this returns.
    fn import(&mut self, lines: &Lines<'_>) -> Done;

    /// Make every event a value of the store's library; how many these are.
    fn scan(&self) -> usize;

    /// Whether the event with this id is there; it is made such a value.
    fn find(&self, id: &Id) -> bool;

    /// What a filter wants, and the time from the filter to the events.
    fn ask(&self, filter: &Filter) -> (Duration, Vec<Found>);
}

/// A store that is measured.
pub struct Kind {
    pub name: &'static str,
    pub version: fn() -> String,
    /// What its import does for durability.
    pub import: &'static str,
    /// Whether events of one second are given by their ids, as NIP-01 wants it: else a limit may take
    /// any of the last second.
    pub by_id: bool,
    pub open: fn(&Path) -> Box<dyn Store>,
}

/// The first is ours; plain SQLite comes before rust-nostr's, which takes events from there.
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

struct Ours(EventStore);

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

    fn find(&self, id: &Id) -> bool {
        self.0.find(id).unwrap().is_some_and(|found| found.event.id == *id)
    }

    fn ask(&self, filter: &Filter) -> (Duration, Vec<Found>) {
        let filters = [filter.clone()];
        let begun = Instant::now();
        let events: Vec<_> = self.0.query(&filters).unwrap().map(Result::unwrap).collect();
        let took = begun.elapsed();
        let found = |at: u32, id| Found { at: at.into(), id };
        (took, events.iter().map(|one| found(one.event.created_at, one.event.id)).collect())
    }
}
