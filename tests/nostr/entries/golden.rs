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

/// The manifest's `wal.torn.log`: the last 40 bytes are missing.
#[test]
fn torn_tail_is_saved_and_the_numbers_continue() {
    let storage = with(&GOLDEN[..GOLDEN.len() - 40]);
    let wal = on(&storage, Mode::Append).unwrap();
    let report = wal.recovery();
    assert_eq!((report.verdict, report.valid_end, report.cut_bytes), (Verdict::Torn, 12_686, 139));
    let saved = storage.open(&report.saved_to.unwrap(), Access::Read).unwrap();
    assert_eq!(saved.len().unwrap(), 139);
    assert_eq!(wal.append(&record(RECORDS[2]), RECORDS[2].2).unwrap(), Lsn(6));
    wal.close().unwrap();
    assert!(read_file(&*storage, Path::new(FILE)) == GOLDEN);
}

/// The manifest's `wal.bitflip.log`: one bit of the data of entry 3.
#[test]
fn log_damage_refuses_writers_and_readers_skip_it() {
    let mut bytes = GOLDEN.to_vec();
    bytes[12_563 + 21] ^= 1;
    let storage = with(&bytes);
    let error = on(&storage, Mode::Append).unwrap_err();
    assert_eq!(error.kind(), deedbook::ErrorKind::Corrupt);
    assert_eq!((error.offset(), error.next_intact()), (Some(12_563), Some(12_601)));
    assert!(read_file(&*storage, Path::new(FILE)) == bytes);
    let wal = on(&storage, Mode::Read).unwrap();
    let mut raising = wal.entries(Lsn(1), OnCorrupt::Raise).unwrap();
    assert!(raising.next().unwrap().is_some() && raising.next().unwrap().is_some());
    assert_eq!(raising.next().unwrap_err().offset(), Some(12_563));
    let mut skipping = wal.entries(Lsn(1), OnCorrupt::Skip).unwrap();
    let mut seen = Vec::new();
    while let Some(logged) = skipping.next().unwrap() {
        seen.push(logged.lsn.0);
    }
    assert_eq!(seen, [1, 2, 4, 5, 6]);
    let damages: Vec<_> = skipping.damages().collect();
    assert_eq!(damages.len(), 1);
    assert_eq!(damages[0].0, Path::new(FILE));
    assert_eq!((damages[0].1.first_lost, damages[0].1.records_lost), (Some(3), Some(1)));
    let reports = wal.verify().unwrap();
    assert_eq!((reports[0].verdict, reports[0].records), (Verdict::Corrupt, 5));
}
