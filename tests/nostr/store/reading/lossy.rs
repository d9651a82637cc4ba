//! Segments of the reference implementation, which keeps only the first byte of a tag's name. Every way to read
//! restores the names, or reports lost names.

use deedbook::nostr::ExportReport;
use deedbook::nostr::wal::{Entry, WalOptions};

use crate::store::prelude::*;

const SEGMENT: &[u8] = include_bytes!("../../../data/nostr/lossy.2.seg");
const EXPECTED: &str = include_str!("../../../data/nostr/lossy.2.expected.jsonl");
const ID_AT: usize = 4096 + 5;

fn store_of(bytes: &[u8]) -> (Memory, Options) {
    memory_of(&[("/events/data/segments/data.2", bytes)])
}

fn expected() -> Vec<Event> {
    EXPECTED.lines().map(|line| Event::from_json(line.as_bytes()).unwrap()).collect()
}

/// The first event with another id, which fits no names.
fn unknown() -> (Vec<u8>, Event) {
    let mut bytes = SEGMENT.to_vec();
    bytes[ID_AT] ^= 1;
    let mut event = expected()[0].clone();
    event.id.0[0] ^= 1;
    for (tag, name) in event.tags.iter_mut().zip(["d", "t", "p", "a", "e", "?", "\u{C3}"]) {
        tag[0] = name.to_owned();
    }
    (bytes, event)
}

fn read_in_every_way(store: &EventStore) -> Vec<(Event, Flags)> {
    let stored = everything(store);
    let mut text = Vec::new();
    let report = store.export(&mut text, Include::All, OnCorrupt::Raise, &mut |_| Ok(())).unwrap();
    let lines: String = stored.iter().map(|found| found.event.to_json() + "\n").collect();
    assert_eq!(String::from_utf8(text).unwrap(), lines);
    let lossy = stored.iter().filter(|found| found.flags.contains(Flags::LOSSY)).count() as u64;
    assert_eq!(report, ExportReport { events: stored.len() as u64, lossy });
    stored.into_iter().map(|found| (found.event, found.flags)).collect()
}

fn plain(events: Vec<Event>) -> Vec<(Event, Flags)> {
    events.into_iter().map(|event| (event, Flags::default())).collect()
}

#[test]
fn lost_names_are_read_as_they_were() {
    let (_, options) = store_of(SEGMENT);
    let reader = options.open("/events", Mode::Read).unwrap();
    assert_eq!(read_in_every_way(&reader), plain(expected()));
    let report = reader.verify(Check::Id).unwrap();
    assert_eq!((report.live, report.recovered, report.lossy, report.faults), (2, 1, 0, 0));
    let writer = open(&options);
    assert_eq!(read_in_every_way(&writer), plain(expected()));
    // The index also has the full names, not the letters of the file.
    for store in [&reader, &writer] {
        assert_eq!(found(store, r##"{"#t": ["The History of Nostr"]}"##), []);
        assert_eq!(found(store, r##"{"#d": ["slug"]}"##).len(), 1);
    }
}

#[test]
fn compaction_and_salvage_write_recovered_names() {
    let (memory, options) = store_of(SEGMENT);
    salvaged_by(&options);
    let rescued = options.open(COPY_DIR, Mode::Append).unwrap();
    assert_eq!(read_in_every_way(&rescued), plain(expected()));
    assert_eq!(rescued.verify(Check::Id).unwrap().recovered, 0);

    let store = open(&options);
    delete(&store, &expected()[1]);
    assert_eq!(store.compact(0.0, false).unwrap().deleted, 1);
    assert_eq!(read_in_every_way(&store), plain(expected()[..1].to_vec()));
    let report = store.verify(Check::Id).unwrap();
    assert_eq!((report.recovered, report.lossy, report.faults), (0, 0, 0));
    drop(store);
    let bytes = read_file(&memory, Path::new(&segment(3)));
    let title = b"title";
    assert!(bytes.windows(title.len()).any(|found| found == title), "the name is in the file");
}

#[test]
fn event_with_unknown_names_stays_lossy() {
    let (bytes, event) = unknown();
    let (_, options) = store_of(&bytes);
    let lossy = (event, Flags::LOSSY);
    let second = (expected()[1].clone(), Flags::default());
    let report = options.open("/events", Mode::Read).unwrap().verify(Check::Id).unwrap();
    assert_eq!((report.live, report.recovered, report.lossy, report.faults), (2, 0, 1, 1));
    // With another page size, the salvage makes new records.
    let pages = options.clone().page_bytes(8192);
    salvaged_by(&pages);
    let rescued = pages.open(COPY_DIR, Mode::Append).unwrap();
    assert_eq!(read_in_every_way(&rescued), [lossy.clone(), second.clone()]);

    for page_bytes in [4096, 8192] {
        let (_, options) = store_of(&bytes);
        let options = options.page_bytes(page_bytes);
        let store = open(&options);
        assert_eq!(read_in_every_way(&store), [lossy.clone(), second.clone()]);
        let at = store.find(&lossy.0.id).unwrap().unwrap().location;
        // The file never stores the flag `LOSSY`, whatever a caller sets.
        store.set_flags(at, Flags::LOSSY | Flags::REPLACED).unwrap();
        assert_eq!(store.read(at).unwrap().flags, Flags::LOSSY | Flags::REPLACED);
        drop(store);
        let store = open(&options);
        store.set_flags(at, Flags::default()).unwrap();
        store.append(&note(1)).unwrap();
        delete(&store, &second.0);
        assert_eq!(store.compact(0.0, false).unwrap().deleted, 1);
        let mut found = read_in_every_way(&store);
        // With another page size, the note has a separate segment before the new one.
        found.sort_by_key(|(event, _)| event.created_at);
        assert_eq!(found, [lossy.clone(), (note(1), Flags::default())]);
    }
}

/// Only the write-ahead log has the records, written by another program without a checksum.
#[test]
fn salvage_recovers_names_of_log_records() {
    let (bytes, event) = unknown();
    for (bytes, first) in [
        (SEGMENT.to_vec(), (expected()[0].clone(), Flags::default())),
        (bytes, (event, Flags::LOSSY)),
    ] {
        let (memory, options) = in_memory();
        drop(options.open("/events", Mode::Create).unwrap());
        // Records of one page are the same in the log.
        let len = u32::from_be_bytes(bytes[4096..4100].try_into().unwrap()) as usize;
        let wal = WalOptions::new().storage(options.storage.clone()).small(true);
        let wal = wal.open("/events/wal", Mode::Append).unwrap();
        let record = &bytes[4096..4096 + len];
        wal.append_many(&[(Entry::Insert { record }, 1)]).unwrap();
        wal.sync().unwrap();
        drop(wal);
        salvaged_by(&options);
        let rescued = options.open(COPY_DIR, Mode::Append).unwrap();
        assert_eq!(read_in_every_way(&rescued), std::slice::from_ref(&first));
        drop(memory);
        // An opening appends the record again without a change.
        let store = open(&options);
        assert_eq!(read_in_every_way(&store), [first]);
    }
}

/// Opened without checksums, a store took the last events of a segment for torn, because no names fit their ids, and
/// cut the events.
#[test]
fn lossy_events_at_a_segments_end_stay() {
    let (bytes, event) = unknown();
    for checksums in [false, true] {
        let (_, options) = store_of(&bytes[..2 * 4096]);
        let store = options.checksums(checksums).open(DIR, Mode::Append).unwrap();
        assert_eq!(store.opening().saved, [""; 0].map(PathBuf::from), "{checksums}");
        assert_eq!(read_in_every_way(&store), [(event.clone(), Flags::LOSSY)], "{checksums}");
    }
}
