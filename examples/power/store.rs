//! An event store as a log: the n-th event is the record at place n.
//!
//! A reader does not see events in the write-ahead log alone. So the test opens a writable store for writing before
//! reading.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use deedbook::nostr::{Check, Event, EventStore, Filter, Id, Include, Options};
use deedbook::{Durability, Durable, Error, ErrorKind, Mode, OnCorrupt, Result};

use crate::kind::Record;

/// Small sizes, to create and remove many segments and files of the log.
const SEGMENT_BYTES: u64 = 1 << 20;
const WAL_BYTES: u64 = 256 << 10;
const CHECKPOINT_BYTES: u64 = 512 << 10;
/// Place of the first event.
pub const FIRST: u64 = 1;
const SEGMENTS: &str = "data/segments";
const LOG: &str = "wal";

/// An open store.
pub struct Store {
    events: EventStore,
    /// Place of the next event.
    end: AtomicU64,
}

impl Store {
    pub fn open(dir: &Path, mode: Mode, durability: Durability) -> Result<Self> {
        let options = Options::new()
            .durability(durability)
            .segment_bytes(SEGMENT_BYTES)
            .wal_segment_bytes(WAL_BYTES)
            .checkpoint_bytes(CHECKPOINT_BYTES)
            .small(true);
        if mode == Mode::Read && exists(dir) {
            match options.open(dir, Mode::Append) {
                Ok(writer) => writer.close()?,
                Err(error) if is_read_only(&error) => {}
                Err(error) => return Err(error),
            }
        }
        let store = Self { events: options.open(dir, mode)?, end: AtomicU64::new(FIRST) };
        store.end.store(store.records()?.len() as u64 + FIRST, Ordering::Relaxed);
        Ok(store)
    }

    /// Place of the next event.
    pub fn end(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }

    pub fn append(&self, records: &[Record]) -> Result<()> {
        let events: Vec<Event> = records.iter().zip(self.end()..).map(event_of).collect();
        let appended = self.events.append_many(&events);
        // A possibly stored event keeps the place.
        if appended.as_ref().map_or_else(|error| error.durable() != Some(Durable::No), |_| true) {
            self.end.fetch_add(events.len() as u64, Ordering::Relaxed);
        }
        appended.map(drop)
    }

    pub fn sync(&self) -> Result<()> {
        self.events.sync()
    }

    pub fn close(&self) -> Result<()> {
        self.events.close()
    }

    /// All events. The index must have the same events.
    pub fn records(&self) -> Result<Vec<(u64, Record)>> {
        let (mut records, mut ids) = (Vec::new(), Vec::new());
        for found in self.events.iter(Include::All, OnCorrupt::Raise)? {
            let event = found?.event;
            ids.push(event.id);
            records.push((u64::from(event.created_at), record_of(&event)?));
        }
        let queried = self.events.query(&[Filter::default()])?;
        let mut queried: Vec<Id> = queried.into_iter().map(|found| found.event.id).collect();
        ids.sort();
        queried.sort();
        match ids == queried {
            true => Ok(records),
            false => Err(wrong(format!("{} queried, of {}", queried.len(), ids.len()))),
        }
    }

    pub fn read(&self, place: u64) -> Result<Record> {
        let at = Some(place);
        let filter = Filter { since: at, until: at, ..Filter::default() };
        let found = self.events.query(&[filter])?.into_iter().next();
        let found = found.ok_or_else(|| wrong(format!("no event at {place}")))?;
        record_of(&found.event)
    }

    /// Number of events of an intact store.
    pub fn verify(&self) -> Result<u64> {
        let report = self.events.verify(Check::Id)?;
        match report.ok() {
            true => Ok(report.live),
            false => Err(wrong(format!("{report:?}"))),
        }
    }

    /// The newest file of the write-ahead log. The first file has no number.
    pub fn last_file(&self) -> Result<PathBuf> {
        let log = self.events.path().join(LOG);
        let files = std::fs::read_dir(&log).map_err(|e| Error::io("list the log", &log, e))?;
        let files = files.flatten().map(|file| file.path());
        let is_log = |path: &PathBuf| path.extension().is_some_and(|suffix| suffix == "log");
        let newest = files.filter(is_log).max_by_key(|path| (path.as_os_str().len(), path.clone()));
        newest.ok_or_else(|| wrong("a store without a log".into()))
    }
}

/// Whether there is a store, intact or not.
pub fn exists(dir: &Path) -> bool {
    let has_files = |dir: &Path, begin: &str| {
        let files = std::fs::read_dir(dir).into_iter().flatten().flatten();
        files.into_iter().any(|file| file.file_name().to_string_lossy().starts_with(begin))
    };
    has_files(&dir.join(SEGMENTS), "data.") || has_files(&dir.join(LOG), "wal.")
}

fn is_read_only(error: &Error) -> bool {
    error.io_source().is_some_and(|e| e.kind() == std::io::ErrorKind::ReadOnlyFilesystem)
}

fn wrong(message: String) -> Error {
    Error::new(ErrorKind::Corrupt, message)
}

fn event_of((record, place): (&Record, u64)) -> Event {
    let content: String = record.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut event = Event {
        id: Id([0; 32]),
        pubkey: [1; 32],
        created_at: place as u32,
        kind: 1,
        tags: Vec::new(),
        content,
        sig: [2; 64],
    };
    event.id = event.canonical_id();
    event
}

fn record_of(event: &Event) -> Result<Record> {
    let digits = event.content.as_bytes().chunks(2);
    let byte =
        |two: &[u8]| std::str::from_utf8(two).ok().and_then(|two| u8::from_str_radix(two, 16).ok());
    let bytes: Option<Vec<u8>> = digits.map(byte).collect();
    let bytes = bytes.ok_or_else(|| wrong(format!("another content in {}", event.id)))?;
    Ok(Record { mug: 0, bytes })
}
