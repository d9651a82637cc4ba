//! The files of the reference implementation, in its directories, opened as a store.

use deedbook::nostr::wal::{Entry, Lsn, WalOptions};
use serde_json::{Value, json};

use crate::store::prelude::*;

const SEGMENT: &[u8] = include_bytes!("../../../data/nostr/data.0.seg");
const LOG: &[u8] = include_bytes!("../../../data/nostr/wal.log");
const EXPECTED: &str = include_str!("../../../data/nostr/data.0.expected.jsonl");
/// The places of the records whose flags are not 0, in their order.
const FLAGGED: [(usize, Flags); 2] = [(2, Flags::DELETED), (3, Flags::REPLACED)];
/// In the first segment: the next segment has only events that opening writes again.
const REPLACED: [Location; 2] = [
    Location { segment: 0, offset: 3 * PAGE as u32 },
    Location { segment: 0, offset: 4 * PAGE as u32 },
];
const TORN: usize = 40;

fn store_of(log: &[u8]) -> (Memory, Options) {
    memory_of(&[("/events/data/segments/data.0", SEGMENT), (WAL, log)])
}

fn expected() -> Vec<(Event, Flags)> {
    let events = EXPECTED.lines().map(|line| Event::from_json(line.as_bytes()).unwrap());
    let flags = |at| FLAGGED.iter().find(|(flagged, _)| *flagged == at).map_or(Flags(0), |f| f.1);
    events.enumerate().map(|(at, event)| (event, flags(at))).collect()
}

fn found(options: &Options, mode: Mode) -> Vec<(Event, Flags)> {
    let all = walked(&options.open(DIR, mode).unwrap(), Include::All).into_iter();
    all.map(|found| (found.event, found.flags)).collect()
}

/// The last entry of the log is an event of the segment, and is not stored twice.
#[test]
fn reference_store_has_each_event_once() {
    for log in [LOG, &LOG[..LOG.len() - TORN]] {
        let (memory, options) = store_of(log);
        assert_eq!(found(&options, Mode::Read), expected());
        let opening = open(&options).opening().clone();
        // The segments have the flags and index entries before the checkpoint: opening does not apply them again.
        let entries = u64::from(log.len() == LOG.len());
        assert_eq!(
            (opening.replayed, opening.appended_again, opening.flags_set_again),
            (entries, 0, 0)
        );
        assert!(entries == 0 || opening.saved.is_empty(), "{opening:?}");
        assert_eq!(found(&options, Mode::Append), expected());
        let store = open(&options);
        let report = store.verify(Check::Id).unwrap();
        assert!(report.ok(), "{report:?}");
        assert_eq!((report.live, report.deleted, report.replaced), (6, 1, 1));
        for (event, flags) in expected() {
            assert_eq!(store.find(&event.id).unwrap().is_some(), flags.is_live());
        }
        let more = note(1);
        assert!(store.append(&more).unwrap().is_stored());
        store.close().unwrap();
        assert_eq!(found(&options, Mode::Read), [expected(), vec![(more, Flags(0))]].concat());
        // The pages of the reference are unchanged: only the header has new counts.
        let pages = read_file(&memory, Path::new("/events/data/segments/data.0"));
        assert_eq!(pages[PAGE..SEGMENT.len()], SEGMENT[PAGE..]);
    }
}

fn segment(id: u32) -> String {
    format!("/events/data/segments/data.{id}")
}

fn manifest(sizes: &[usize], checkpoint: Lsn) -> Vec<u8> {
    let listed = |(id, size): (usize, &usize)| {
        json!({
            "id": id,
            "created_at": 1,
            "size_bytes": size,
            "record_count": 0,
            "is_compacted": false,
        })
    };
    let listed: Vec<Value> = sizes.iter().enumerate().map(listed).collect();
    let manifest = json!({
        "version": 1,
        "created_at": 1,
        "last_checkpoint_lsn": checkpoint.0,
        "next_segment_id": sizes.len(),
        "active_segments": listed,
        "page_size": PAGE,
    });
    manifest.to_string().into_bytes()
}

/// Ten notes in three segments. The log has every note after the checkpoint, and the flags of two. Only the log is on
/// stable storage.
fn rotated(checkpoint_after: usize, named: Option<&[usize]>) -> (Sim, Options, Vec<Event>) {
    let note = |number: u8| {
        let content = format!("note {number}");
        event(number, 1_700_000_000 + u32::from(number), 1, &[], &content)
    };
    let notes: Vec<Event> = (0..10).map(note).collect();
    let made = Sim::new();
    let options = on_storage(Arc::new(made.clone())).checksums(false);
    let store = open(&options.clone().segment_bytes(5 * PAGE as u64));
    one_by_one(&store, &notes);
    store.close().unwrap();

    let disk = Sim::new();
    let options = on_storage(Arc::new(disk.clone()));
    for dir in ["/events", "/events/data", "/events/data/segments"] {
        disk.create_dir(Path::new(dir)).unwrap();
    }
    let mut records = Vec::new();
    for id in 0..3 {
        let mut bytes = read(&made, &format!("{}.seg", segment(id)));
        // The header counts no record, and names the first page as free.
        bytes[20..24].fill(0);
        bytes[24..28].copy_from_slice(&(PAGE as u32).to_be_bytes());
        for page in bytes.chunks(PAGE).skip(1) {
            let len = u32::from_be_bytes(page[..4].try_into().unwrap()) as usize;
            records.push(page[..len].to_vec());
        }
        write(&disk, &segment(id), &bytes);
    }
    assert_eq!(records.len(), notes.len());
    let wal = WalOptions::new().storage(options.storage.clone()).small(true);
    let wal = wal.open("/events/wal", Mode::Append).unwrap();
    let (before, after) = records.split_at(checkpoint_after);
    let inserts = |records: &[Vec<u8>]| {
        for record in records {
            wal.append(&Entry::Insert { record }, 1).unwrap();
        }
    };
    inserts(before);
    let checkpoint = if before.is_empty() { Lsn(0) } else { wal.checkpoint(1).unwrap() };
    inserts(after);
    for at in REPLACED {
        wal.append(&Entry::UpdateFlags { at, flags: Flags::REPLACED.0 }, 1).unwrap();
    }
    wal.sync().unwrap();
    drop(wal);
    if let Some(sizes) = named {
        write(&disk, "/events/manifest.json", &manifest(sizes, checkpoint));
    }
    (disk, options, notes)
}

/// Another program begins segments without a checkpoint. The walk over the last segment met its first event instead of
/// the log's first, cut the event, and appended the whole log. The events of the earlier segments were there twice, and
/// the log's flags hid other events.
#[test]
fn log_events_in_earlier_segments_are_not_doubled() {
    let named: [Option<&[usize]>; 4] =
        [None, Some(&[PAGE]), Some(&[5 * PAGE]), Some(&[5 * PAGE, 5 * PAGE, PAGE])];
    for (checkpoint_after, named) in [0, 2].into_iter().flat_map(|after| named.map(|n| (after, n)))
    {
        let what = format!("{checkpoint_after} before the checkpoint, a manifest of {named:?}");
        let judge = |store: &EventStore, notes: &[Event]| {
            let found = walked(store, Include::All);
            assert!(found.iter().map(|found| &found.event).eq(notes), "{what}: {found:?}");
            let replaced = found.iter().filter(|found| !found.flags.is_live());
            let places: Vec<Location> = replaced.map(|found| found.location).collect();
            assert_eq!(places, REPLACED, "{what}");
        };
        let (disk, options, notes) = rotated(checkpoint_after, named);
        let store = open(&options);
        let opening = store.opening();
        assert_eq!(opening.replayed, 12 - checkpoint_after as u64, "{what}: {opening:?}");
        assert_eq!((opening.appended_again, opening.flags_set_again), (0, 2), "{what}");
        assert!(opening.saved.is_empty(), "{what}: {opening:?}");
        judge(&store, &notes);
        assert_eq!(queried(&store), 8, "{what}");
        // The log is empty now: the segments have its events on stable storage.
        judge(&open(&on_disk(&options, &worst(&disk))), &notes);
        store.close().unwrap();
        judge(&open(&options), &notes);

        // Only the missing event comes back.
        let (disk, options, notes) = rotated(checkpoint_after, named);
        changed(&disk, &segment(2), |bytes| bytes.truncate(bytes.len() - PAGE));
        let store = open(&options);
        assert_eq!(store.opening().appended_again, 1, "{what}: {:?}", store.opening());
        judge(&store, &notes);
    }
}

/// A sync of the other program failed: the cache takes its pages for written, and no further sync writes them. Opening
/// also empties the log with the same events.
#[test]
fn pages_whose_earlier_sync_failed_are_written_again() {
    for seed in 0..8 {
        let (disk, options, notes) = rotated(0, None);
        disk.set_seed(seed);
        for path in [0, 1, 2].map(segment) {
            let whole = read(&disk, &path);
            changed(&disk, &path, |bytes| bytes[PAGE..].fill(0));
            let file = disk.open(Path::new(&path), Access::Write).unwrap();
            file.sync_data().unwrap();
            file.write_at(&whole[PAGE..], PAGE as u64).unwrap();
            disk.inject(Fault::once(1, What::Error(Io::Other)).of(Call::Sync));
            file.sync_data().unwrap_err();
        }
        drop(open(&options));
        let found = all(&open(&on_disk(&options, &worst(&disk))));
        assert_eq!(found, notes, "seed {seed}");
    }
}
