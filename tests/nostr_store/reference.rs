//! The files that the reference implementation left, in its directories, opened as a store.

use std::path::Path;

use deedbook::nostr::{Check, Event, Flags, Include, Options};
use deedbook::storage::{Access, Memory, Storage};
use deedbook::{Mode, OnCorrupt};

use super::support::{in_memory, note};

const SEGMENT: &[u8] = include_bytes!("../data/nostr/data.0.seg");
const LOG: &[u8] = include_bytes!("../data/nostr/wal.log");
const EXPECTED: &str = include_str!("../data/nostr/data.0.expected.jsonl");
/// The places of the records whose flags are not 0, in their order.
const FLAGGED: [(usize, Flags); 2] = [(2, Flags::DELETED), (3, Flags::REPLACED)];
/// An entry that is cut in the middle by so many bytes less.
const TORN: usize = 40;

fn put(memory: &Memory, path: &str, bytes: &[u8]) {
    for dir in Path::new(path).ancestors().skip(1).collect::<Vec<_>>().into_iter().rev() {
        let _ = memory.create_dir(dir);
    }
    let file = memory.create_new(Path::new(path), 0o600).unwrap();
    assert_eq!(file.write_at(bytes, 0).unwrap(), bytes.len());
}

fn store_of(log: &[u8]) -> (Memory, Options) {
    let (memory, options) = in_memory();
    put(&memory, "/events/data/segments/data.0", SEGMENT);
    put(&memory, "/events/wal/wal.log", log);
    (memory, options)
}

fn expected() -> Vec<(Event, Flags)> {
    let events = EXPECTED.lines().map(|line| Event::from_json(line.as_bytes()).unwrap());
    let flags = |at| FLAGGED.iter().find(|(flagged, _)| *flagged == at).map_or(Flags(0), |f| f.1);
    events.enumerate().map(|(at, event)| (event, flags(at))).collect()
}

fn found(options: &Options, mode: Mode) -> Vec<(Event, Flags)> {
    let store = options.open("/events", mode).unwrap();
    let walk = store.iter(Include::All, OnCorrupt::Raise).unwrap();
    walk.map(|found| found.unwrap()).map(|found| (found.event, found.flags)).collect()
}

/// The last entry of the log is an event that the segment has: it is not stored twice.
#[test]
fn a_store_of_the_reference_has_each_event_once() {
    for log in [LOG, &LOG[..LOG.len() - TORN]] {
        let (memory, options) = store_of(log);
        assert_eq!(found(&options, Mode::Read), expected());
        assert_eq!(found(&options, Mode::Append), expected());
        let store = options.open("/events", Mode::Append).unwrap();
        let report = store.verify(Check::Id).unwrap();
        assert!(report.is_ok(), "{report:?}");
        assert_eq!((report.live, report.deleted, report.replaced), (6, 1, 1));
        for (event, flags) in expected() {
            assert_eq!(store.find(&event.id).unwrap().is_some(), flags.is_live());
        }
        let more = note(1);
        assert!(store.append(&more).unwrap().is_stored());
        store.close().unwrap();
        assert_eq!(found(&options, Mode::Read), [expected(), vec![(more, Flags(0))]].concat());
        // The pages of the reference stand as they were: the header counts, and nothing else changed.
        let path = Path::new("/events/data/segments/data.0");
        let file = memory.open(path, Access::Read).unwrap();
        let mut pages = vec![0; SEGMENT.len()];
        assert_eq!(file.read_at(&mut pages, 0).unwrap(), pages.len());
        assert_eq!(pages[4096..], SEGMENT[4096..]);
    }
}

/// Flags and index entries before the checkpoint are in the segments: they are not applied again.
#[test]
fn what_the_reference_noted_before_its_checkpoint_is_not_done_again() {
    let (_, options) = store_of(LOG);
    let store = options.open("/events", Mode::Append).unwrap();
    let opening = store.opening();
    assert_eq!((opening.replayed, opening.appended_again, opening.flags_set_again), (1, 0, 0));
    assert!(opening.saved.is_empty());
}
