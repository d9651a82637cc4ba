//! Logs in the layout `slots` to be written, cut and damaged.

pub use crate::prelude::*;

pub const DEEDS_AT: usize = 8192;

pub fn options() -> Options {
    Options::new().layout(Layout::Slots)
}

pub fn deed(mug: u32, jam: &[u8]) -> Vec<u8> {
    Framing::Slots.encode(mug, jam)
}

pub fn deeds(events: &[Event]) -> Vec<u8> {
    events.iter().flat_map(|(mug, jam)| deed(*mug, jam)).collect()
}

/// A golden log: the slots, then the events.
pub fn golden_log(name: &str, events: &[Event]) -> Vec<u8> {
    let slots = fs::read(data(name).join("slots.bin")).unwrap();
    let mut log = vec![0; DEEDS_AT];
    log[..48].copy_from_slice(&slots[..48]);
    log[4096..4144].copy_from_slice(&slots[48..]);
    log.extend(deeds(events));
    log
}

/// A new directory `name` with the log.
pub fn place(name: &str, log: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    fs::create_dir(&path).unwrap();
    fs::write(path.join("book.log"), log).unwrap();
    (dir, path)
}

pub fn bytes(path: &Path) -> Vec<u8> {
    fs::read(path.join("book.log")).unwrap()
}

/// Append in batches of these sizes, each one synced.
pub fn append(book: &Book, events: &[Event], batches: &[usize]) {
    let mut rest = events;
    for &count in batches {
        let mut batch = book.batch();
        for (mug, jam) in &rest[..count] {
            batch.push(*mug, jam).unwrap();
        }
        book.append_batch(&batch, None, None).unwrap();
        rest = &rest[count..];
    }
}

pub fn events_of(path: &Path) -> Vec<Event> {
    let book = Book::open(path).unwrap();
    let (found, failed) = read_all(&book);
    assert!(failed.is_none(), "{failed:?}");
    contents(&found)
}
