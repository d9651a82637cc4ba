//! Events as Arrow columns: equal to the events of a walk.

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use deedbook::nostr::Batches;

use crate::store::prelude::*;
use crate::support::store::columns::*;

#[test]
fn columns_match_the_walk_for_all_tags() {
    let (options, store) = memory_store();
    let odd = odd();
    store.append_many(&odd).unwrap();
    store.append_many(&notes(0..100)).unwrap();
    let deleted = place(&store, &note(4));
    store.set_flags(deleted, Flags::DELETED).unwrap();
    for again in 0..2 {
        let store = if again == 0 { store.clone() } else { open(&options) };
        for include in [Include::Live, Include::All] {
            let expected = walked(&store, include);
            assert_eq!(expected.len(), 109 - usize::from(include == Include::Live));
            for (rows, bytes) in [(1, 1 << 20), (7, 1 << 20), (65_536, 1), (65_536, 2 << 20)] {
                assert_eq!(gathered(batches(&store, include, rows, bytes)), expected);
                let walk = store.iter(include, OnCorrupt::Raise).unwrap().without_checksums();
                let unchecked = Batches::new(walk, &COLUMNS, rows, bytes).unwrap();
                assert_eq!(gathered(unchecked), expected);
            }
        }
        store.close().unwrap();
    }
}

#[test]
fn batches_are_as_large_as_was_asked_for() {
    let (_, options) = in_memory();
    // Some end with a segment.
    let store = options.segment_bytes(64 << 20).open("/events", Mode::Create).unwrap();
    store.append_many(&notes(0..100)).unwrap();
    let sizes = |rows, bytes| -> Vec<usize> {
        batches(&store, Include::Live, rows, bytes).map(|batch| batch.unwrap().num_rows()).collect()
    };
    assert_eq!(sizes(30, 1 << 30), [30, 30, 30, 10]);
    assert_eq!(sizes(0, 1 << 30), [1; 100]);
    // Every seventh event is longer, starting with the fourth.
    assert_eq!(sizes(1000, 9_000)[..3], [4, 7, 7]);
    assert_eq!(sizes(1000, 1 << 30), [100]);
    let few = Batches::new(
        store.iter(Include::Live, OnCorrupt::Raise).unwrap(),
        &["length", "kind"],
        1000,
        1 << 30,
    )
    .unwrap();
    let lengths: Vec<i64> = few
        .flat_map(|batch| batch.unwrap().column(0).as_primitive::<Int64Type>().values().to_vec())
        .collect();
    assert_eq!(lengths[..5], [4096, 4096, 4096, 3 * 4096, 4096]);
}

/// Appends and compactions during a read do not change its result.
#[test]
fn batches_are_a_snapshot() {
    let (options, store) = memory_store();
    store.append_many(&notes(0..60)).unwrap();
    let reader = options.open("/events", Mode::Read).unwrap();
    let expected = walked(&store, Include::Live);
    let mut begun = batches(&store, Include::Live, 5, 1 << 20);
    let mut found = rows(&begun.next().unwrap().unwrap());
    let beside = batches(&reader, Include::Live, 5, 1 << 20);
    store.append_many(&notes(60..200)).unwrap();
    store.set_flags(expected[1].location, Flags::DELETED).unwrap();
    let compacted = store.compact(0.0, false).unwrap();
    assert!(compacted.deleted == 1 && !compacted.segments.is_empty());
    found.extend(gathered(begun));
    assert_eq!(found, expected);
    let without: Vec<StoredEvent> =
        expected.iter().filter(|found| found.event != note(1)).cloned().collect();
    assert_eq!(gathered(beside), without, "flags are those of the moment");
    assert_eq!(gathered(batches(&store, Include::Live, 5, 1 << 20)).len(), 199);
}

#[test]
fn filters_leave_out_what_they_do_not_match() {
    let (_, store) = memory_store();
    store.append_many(&notes(0..50)).unwrap();
    let of = |json: &str| {
        let made = batches(&store, Include::Live, 8, 1 << 20);
        made.matching(Filter::parse_any(json).unwrap()).map(gathered)
    };
    let since =
        r##"[{"since": 1700000047}, {"authors": ["@"], "until": 1700000009}, {"#t": ["x"]}]"##;
    let found = of(&since.replace('@', &Id(author(2)).to_string())).unwrap();
    let numbers: Vec<u32> =
        found.iter().map(|found| found.event.created_at - 1_700_000_000).collect();
    assert_eq!(numbers, [2, 7, 47, 48, 49]);
    assert_eq!(of("[]").unwrap(), []);
    refused(of(r#"{"limit": 3}"#), ErrorKind::InvalidArgument, "");
}

/// Without empty batches, a filter without a match would hold its caller until the end of the store.
#[test]
fn long_walk_without_matches_gives_empty_batches() {
    let (_, options) = in_memory();
    // Four in a segment.
    let store = options.segment_bytes(1100 * 4096).open("/events", Mode::Create).unwrap();
    let long = |number: u32| event(1, 1_700_000_000 + number, 1, &[], &"x".repeat(1 << 20));
    store.append_many(&(0..70).map(long).collect::<Vec<_>>()).unwrap();
    let of = |json: &str| -> Vec<usize> {
        let made = batches(&store, Include::Live, 1000, 1 << 30);
        let made = made.matching(Filter::parse_any(json).unwrap()).unwrap();
        made.map(|batch| batch.unwrap().num_rows()).collect()
    };
    assert_eq!(of(r#"{"kinds": [7]}"#), [0, 0]);
    assert_eq!(of(r#"{"since": 1700000068}"#), [0, 0, 2]);
    assert_eq!(of(r#"{"until": 1700000001}"#), [2, 0]);
}
