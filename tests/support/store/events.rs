//! Events, and stores on a file system in memory.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use deedbook::jobs::Split;
use deedbook::nostr::{
    Event, EventStore, Filter, Flags, Id, ImportOptions, ImportReport, Include, Location, Options,
    Outcome, StoredEvent,
};
use deedbook::storage::sim::Sim;
use deedbook::storage::{Memory, Storage};
use deedbook::{Mode, OnCorrupt};

pub use super::nostr_keys;
use super::nostr_keys::sealed;

pub use super::super::mix::mix;
use super::super::plain::read_file;

/// Options for small files on some file system, with an index in memory.
pub fn on_storage(storage: Arc<dyn Storage>) -> Options {
    Options::new()
        .storage(storage)
        .segment_bytes(40 * 4096)
        .wal_segment_bytes(64 << 10)
        .checkpoint_bytes(256 << 10)
        .index_on_disk(false)
        .auto_compact(false)
        .small(true)
}

pub fn in_memory() -> (Memory, Options) {
    let memory = Memory::new();
    let options = on_storage(Arc::new(memory.clone()));
    (memory, options)
}

pub fn open(options: &Options) -> EventStore {
    options.open("/events", Mode::Append).unwrap()
}

pub fn memory_of(files: &[(&str, &[u8])]) -> (Memory, Options) {
    let (memory, options) = in_memory();
    for (path, bytes) in files {
        let above: Vec<_> = Path::new(path).ancestors().skip(1).collect();
        above.iter().rev().for_each(|dir| drop(memory.create_dir(dir)));
        let file = memory.create_new(Path::new(path), 0o600).unwrap();
        assert_eq!(file.write_at(bytes, 0).unwrap(), bytes.len());
    }
    (memory, options)
}

pub fn memory_store() -> (Options, EventStore) {
    let (_, options) = in_memory();
    let store = open(&options);
    (options, store)
}

/// An event with its true id; a deletion request also has a true signature.
pub fn event(author: u8, created_at: u32, kind: u16, tags: &[&[&str]], content: &str) -> Event {
    let tags = tags.iter().map(|tag| tag.iter().map(|&part| part.to_owned()).collect());
    sealed(Event {
        id: Id([0; 32]),
        pubkey: nostr_keys::author(author),
        created_at,
        kind,
        tags: tags.collect(),
        content: content.to_owned(),
        sig: [7; 64],
    })
}

pub fn request(by: u8, created_at: u32, of: &Event) -> Event {
    event(by, created_at, 5, &[&["e", &of.id.to_string()]], "")
}

/// A note whose content is sometimes a few pages long.
pub fn note(number: u32) -> Event {
    let len = if number % 7 == 3 { 9_000 } else { 20 };
    let content = format!("{number} {}", "x".repeat(len));
    event((number % 5) as u8, 1_700_000_000 + number, 1, &[&["t", "note"]], &content)
}

pub struct Torn<'a>(pub &'a [u8]);

impl Read for Torn<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self.0.is_empty() {
            true => Err(io::Error::other("torn")),
            false => self.0.read(buf),
        }
    }
}

pub fn notes(numbers: std::ops::Range<u32>) -> Vec<Event> {
    numbers.map(note).collect()
}

pub fn walked(store: &EventStore, include: Include) -> Vec<StoredEvent> {
    store.iter(include, OnCorrupt::Raise).unwrap().map(Result::unwrap).collect()
}

pub fn all(store: &EventStore) -> Vec<Event> {
    walked(store, Include::All).into_iter().map(|found| found.event).collect()
}

pub fn live(store: &EventStore) -> Vec<Event> {
    walked(store, Include::Live).into_iter().map(|found| found.event).collect()
}

pub fn sorted(store: &EventStore) -> Vec<Event> {
    let mut found = live(store);
    found.sort_by_key(|event| event.created_at);
    found
}

pub fn found(store: &EventStore, filters: &str) -> Vec<Event> {
    let filters = Filter::parse_any(filters).unwrap();
    store.query(&filters).unwrap().into_iter().map(|found| found.event).collect()
}

pub fn part(part: &Split, options: &Options, include: Include) -> Vec<Event> {
    let walk = EventStore::read_split(part, options, include, OnCorrupt::Raise).unwrap();
    walk.map(|found| found.unwrap().event).collect()
}

pub fn queried(store: &EventStore) -> usize {
    store.query(&[Filter::default()]).unwrap().len()
}

pub fn import(store: &EventStore, lines: &str, options: &ImportOptions) -> ImportReport {
    store.import(&mut lines.as_bytes(), options, None, &mut |_| Ok(())).unwrap()
}

pub fn stored(store: &EventStore, event: &Event) -> Location {
    match store.append(event).unwrap() {
        Outcome::Stored(at) => at,
        other => panic!("{other:?}"),
    }
}

pub fn one_by_one(store: &EventStore, events: &[Event]) {
    events.iter().for_each(|event| assert!(store.append(event).unwrap().is_stored()));
}

pub fn place(store: &EventStore, event: &Event) -> Location {
    store.find(&event.id).unwrap().unwrap().location
}

pub fn delete(store: &EventStore, event: &Event) {
    store.set_flags(place(store, event), Flags::DELETED).unwrap();
}

/// Copy a directory of the real disk. The copy of an open store is as a crash of its process leaves the store.
pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
}

pub fn files_below(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let below = |path: PathBuf| if path.is_dir() { files_below(&path) } else { vec![path] };
    let mut all: Vec<PathBuf> = entries.flat_map(below).collect();
    all.sort();
    all
}

pub fn read(disk: &Sim, path: &str) -> Vec<u8> {
    read_file(disk, Path::new(path))
}

pub fn write(disk: &Sim, path: &str, bytes: &[u8]) {
    let _ = disk.remove(Path::new(path));
    let file = disk.create_new(Path::new(path), 0o600).unwrap();
    if !bytes.is_empty() {
        assert_eq!(file.write_at(bytes, 0).unwrap(), bytes.len());
    }
}

pub fn changed(disk: &Sim, path: &str, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = read(disk, path);
    change(&mut bytes);
    write(disk, path, &bytes);
}
