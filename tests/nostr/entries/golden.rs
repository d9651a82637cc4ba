//! The file of the reference implementation: read entry by entry, and written byte for byte.

use deedbook::nostr::Location;
use deedbook::nostr::wal::{Entry, EventWal, Lsn, WalOptions};

use crate::support::prelude::*;

const GOLDEN: &[u8] = include_bytes!("../../data/nostr/wal.log");
const FILE: &str = "/store/wal/wal.log";

/// By the manifest: the start of an entry, the length of its data, and its time.
const RECORDS: [(usize, usize, u64); 3] =
    [(24, 303, 1_655_000_000), (356, 12_178, 1_655_000_001), (12_686, 150, 1_655_000_005)];
const FLAGS: Entry<'_> =
    Entry::UpdateFlags { at: Location { segment: 0, offset: 12_288 }, flags: 0x01 };

fn record((offset, len, _): (usize, usize, u64)) -> Entry<'static> {
    Entry::Insert { record: &GOLDEN[offset + 21..offset + 21 + len] }
}

fn on(storage: &Arc<dyn Storage>, mode: Mode) -> deedbook::Result<EventWal> {
    WalOptions::new().storage(storage.clone()).open("/store/wal", mode)
}

fn with(bytes: &[u8]) -> Arc<dyn Storage> {
    let storage: Arc<dyn Storage> = Arc::new(Memory::new());
    for dir in ["/store", "/store/wal"] {
        storage.create_dir(Path::new(dir)).unwrap();
    }
    let file = storage.create_new(Path::new(FILE), 0o600).unwrap();
    assert_eq!(file.write_at(bytes, 0).unwrap(), bytes.len());
    storage
}

#[test]
fn every_entry_is_read_as_the_manifest_says() {
    let wal = on(&with(GOLDEN), Mode::Read).unwrap();
    let mut entries = wal.entries(Lsn(1), OnCorrupt::Raise).unwrap();
    let index = Entry::IndexUpdate { key: b"author", value: b"" };
    for (lsn, timestamp, expected) in [
        (1, RECORDS[0].2, record(RECORDS[0])),
        (2, RECORDS[1].2, record(RECORDS[1])),
        (3, 1_655_000_002, FLAGS),
        (4, 1_655_000_003, index),
        (5, 1_655_000_004, Entry::Checkpoint),
        (6, RECORDS[2].2, record(RECORDS[2])),
    ] {
        let found = entries.next().unwrap().unwrap();
        assert_eq!((found.lsn, found.timestamp), (Lsn(lsn), timestamp));
        match (found.entry, lsn) {
            (Entry::IndexUpdate { key, value }, 4) => assert_eq!(key.len() + value.len(), 19),
            (found, _) => assert_eq!(found, expected, "lsn {lsn}"),
        }
    }
    assert_eq!(entries.next().unwrap(), None);
    assert_eq!((wal.last_checkpoint(), wal.next_lsn()), (Lsn(5), Lsn(7)));
    let mut replay = wal.replay(OnCorrupt::Raise).unwrap();
    assert_eq!(replay.next().unwrap().unwrap().lsn, Lsn(6));
    assert_eq!(replay.next().unwrap(), None);
}

#[test]
fn the_same_entries_are_written_byte_for_byte() {
    let index = &GOLDEN[12_601 + 21..12_601 + 21 + 27];
    let key_len = index[3] as usize;
    let (key, value) = (&index[4..4 + key_len], &index[8 + key_len..]);
    let storage: Arc<dyn Storage> = Arc::new(Memory::new());
    storage.create_dir(Path::new("/store")).unwrap();
    let wal = on(&storage, Mode::Create).unwrap();
    wal.append(&record(RECORDS[0]), RECORDS[0].2).unwrap();
    wal.append(&record(RECORDS[1]), RECORDS[1].2).unwrap();
    wal.append(&FLAGS, 1_655_000_002).unwrap();
    wal.append(&Entry::IndexUpdate { key, value }, 1_655_000_003).unwrap();
    assert_eq!(wal.checkpoint(1_655_000_004).unwrap(), Lsn(5));
    assert_eq!(wal.append(&record(RECORDS[2]), RECORDS[2].2).unwrap(), Lsn(6));
    wal.close().unwrap();
    assert!(read_file(&*storage, Path::new(FILE)) == GOLDEN);
}
