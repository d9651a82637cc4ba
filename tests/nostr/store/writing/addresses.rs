//! Addressable events: appends and openings after a kill find the current event of an address.

use crate::store::prelude::*;

const KIND: u16 = 30_078;

/// Options of a store with one segment, and a counter of the reads of its files.
fn counted(disk: &Sim) -> (Options, impl Fn() -> usize) {
    let (storage, counts) = counting(disk);
    let options = on_storage(storage).segment_bytes(64 << 20).checkpoint_bytes(64 << 20);
    (options.wal_segment_bytes(64 << 20), move || counts[0].load(Ordering::Relaxed))
}

/// For each event after the last checkpoint, opening read every event of the same author and kind: after a kill, an
/// application with many addresses took minutes to open. Deletion requests were as slow.
#[test]
fn many_addresses_take_few_reads_each() {
    const COUNT: u32 = 2_000;
    let count = COUNT as usize;
    let data = |number: u32| event(9, number, KIND, &[&["d", &number.to_string()]], "data");
    let pubkey = Id(author(9));
    let asks = |number: u32| {
        let address = format!("{KIND}:{pubkey}:{number}");
        event(9, COUNT + number, 5, &[&["a", &address]], "")
    };
    let opened = |disk: Sim| {
        let (options, reads) = counted(&disk);
        let store = open(&options);
        assert_eq!(live(&store).len(), count);
        (reads(), store.opening().replayed as usize)
    };
    let disk = Sim::new();
    let (options, reads) = counted(&disk);
    let store = open(&options);
    store.append_many(&(0..COUNT).map(data).collect::<Vec<_>>()).unwrap();
    store.sync().unwrap();
    let (read, replayed) = opened(disk.kill());
    assert_eq!(replayed, count);
    assert!(read < 10 * count, "{read} reads of {COUNT} events");
    store.checkpoint().unwrap();
    let before = reads();
    store.append_many(&(0..COUNT).map(asks).collect::<Vec<_>>()).unwrap();
    let read = reads() - before;
    assert!(read < 10 * count, "{read} reads for {COUNT} requests");
    store.sync().unwrap();
    let (read, replayed) = opened(disk.kill());
    assert_eq!(replayed, 2 * count);
    assert!(read < 20 * count, "{read} reads of {COUNT} requests");
}

type Tags = &'static [&'static [&'static str]];

const FORMS: [(Tags, &str); 9] = [
    (&[], ""),
    (&[&["d"]], ""),
    (&[&["d", ""]], ""),
    (&[&["d"], &["d", "x"]], ""),
    (&[&["d", "x"]], "x"),
    (&[&["t", "y"], &["d", "x", "more"], &["d", "y"]], "x"),
    (&[&["D", "x"], &["d", "X"]], "X"),
    (&[&["description", "x"], &["", "x"]], ""),
    (&[&["d", "a:b"]], "a:b"),
];

/// The flags of the first event after a second event: at the append, and at an opening after a power cut that lost the
/// log's end. The segment then has both events and no flag.
fn becomes(first: &Event, then: &Event) -> [Flags; 2] {
    let (disk, on, store) = small();
    store.append(first).unwrap();
    store.sync().unwrap();
    let log = read(&disk, WAL);
    store.append(then).unwrap();
    let cut = disk.kill();
    write(&cut, WAL, &log);
    // With a manifest, opening saves the events that the log lacks.
    remove_manifests(&cut);
    [store, open(&on_disk(&on, &cut))].map(|store| {
        let both = walked(&store, Include::All);
        assert_eq!(both.len(), 2);
        both[0].flags
    })
}

#[test]
fn versions_and_requests_match_addresses_in_any_form() {
    let pubkey = Id(author(9));
    for (tags, d) in FORMS {
        let first = event(9, 10, KIND, tags, "first");
        for (other_tags, other_d) in FORMS {
            let replaced = if d == other_d { Flags::REPLACED } else { Flags::default() };
            let newer = event(9, 20, KIND, other_tags, "newer");
            assert_eq!(becomes(&first, &newer), [replaced; 2], "{tags:?}, {other_tags:?}");
            for stranger in [event(8, 20, KIND, other_tags, ""), event(9, 20, 30_023, tags, "")] {
                assert_eq!(becomes(&first, &stranger), [Flags::default(); 2], "{tags:?}");
            }
            let deleted = if d == other_d { Flags::DELETED } else { Flags::default() };
            let address = format!("{KIND}:{pubkey}:{other_d}");
            for (at, expected) in [(9, Flags::default()), (10, deleted), (20, deleted)] {
                let request = event(9, at, 5, &[&["a", &address]], "");
                assert_eq!(becomes(&first, &request), [expected; 2], "{tags:?}, {address} at {at}");
            }
        }
    }
}
