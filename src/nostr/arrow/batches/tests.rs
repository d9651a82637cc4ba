//! Several threads make the same batches as one thread, however small the parts are.

use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;

use super::*;
use crate::nostr::{Event, EventStore, Filter, Flags, Id, Include, Options};
use crate::storage::{Access, Memory, Storage};
use crate::{Mode, OnCorrupt};

const PAGE: u64 = 4096;
const PART: u64 = 64 << 10;
const SEGMENT: &str = "/events/data/segments/data.0.seg";
const COLUMNS: [&str; 5] = ["segment", "offset", "length", "id", "flags"];

/// One event in each page, except some events of 4 pages and some of 20, more than a part has.
fn store(storage: Arc<dyn Storage>, events: u32) -> EventStore {
    let options = Options {
        storage,
        index_on_disk: false,
        segment_bytes: Some(10 << 20),
        ..Options::default()
    };
    let store = options.open("/events", Mode::Create).unwrap();
    let events = (0..events).map(|number| {
        let content = match number % 40 {
            13 => "x".repeat(15_000),
            39 => "y".repeat(80_000),
            _ => number.to_string(),
        };
        let mut event = Event {
            id: Id([0; 32]),
            pubkey: [1; 32],
            created_at: number,
            kind: 1001 + (number % 7) as u16,
            tags: Vec::new(),
            content,
            sig: [0; 64],
        };
        event.id = event.canonical_id();
        event
    });
    store.append_many(&events.collect::<Vec<_>>()).unwrap();
    store.sync().unwrap();
    store
}

fn batches(store: &EventStore, how: (Include, OnCorrupt), threads: usize) -> Batches {
    let walk = store.iter(how.0, how.1).unwrap();
    let batches = Batches::new(walk, &COLUMNS, 10, 1 << 20).unwrap();
    Batches { threads, part_bytes_min: PART, ..batches }
}

type Row = (i64, i64, i64, Vec<u8>, i32);

fn rows(batch: &RecordBatch) -> Vec<Row> {
    let long = |at: usize| batch.column(at).as_primitive::<Int64Type>().values();
    let flags = batch.column(4).as_primitive::<arrow_array::types::Int32Type>().values();
    let ids = batch.column(3).as_fixed_size_binary();
    let row = |row: usize| {
        (long(0)[row], long(1)[row], long(2)[row], ids.value(row).to_vec(), flags[row])
    };
    (0..batch.num_rows()).map(row).collect()
}

/// All rows up to an error, the error, and the damage.
fn read(batches: &mut Batches) -> (Vec<Row>, Option<String>, Vec<Damage>) {
    let mut found = Vec::new();
    let mut error = None;
    for batch in &mut *batches {
        assert!(error.is_none(), "a batch after {error:?}");
        match batch {
            Ok(batch) => {
                assert!(batch.num_rows() <= 10);
                found.extend(rows(&batch));
            }
            Err(e) => error = Some(e.to_string()),
        }
    }
    (found, error, batches.damages().to_vec())
}

#[test]
fn parallel_parts_equal_one_walk() {
    let store = store(Arc::new(Memory::new()), 3000);
    let walk = store.iter(Include::All, OnCorrupt::Raise).unwrap();
    let places: Vec<_> = walk.map(|found| found.unwrap().location).collect();
    assert!(places.last().unwrap().segment > 0);
    for (number, &place) in places.iter().enumerate() {
        if number % 3 == 0 || (800..1000).contains(&number) {
            store.set_flags(place, Flags::DELETED).unwrap();
        }
    }
    for include in [Include::Live, Include::All] {
        let how = (include, OnCorrupt::Raise);
        let expected = read(&mut batches(&store, how, 1));
        assert_eq!(expected.0.len(), if include == Include::All { 3000 } else { 1867 });
        for threads in [2, 3, 8] {
            let mut made = batches(&store, how, threads);
            let first = made.next().unwrap().unwrap();
            assert_eq!((first.num_rows(), made.made.len()), (10, 0), "one without others");
            made.next().unwrap().unwrap();
            assert!(!made.made.is_empty(), "no other part was made");
            assert_eq!(read(&mut batches(&store, how, threads)), expected);
        }
    }
    for filter in [r#"{"kinds": [1003, 1004]}"#, r#"{"since": 2990}"#, r#"{"kinds": [9]}"#] {
        let filters = || Filter::parse_any(filter).unwrap();
        let all = |threads| {
            let made = batches(&store, (Include::All, OnCorrupt::Raise), threads);
            read(&mut made.matching(filters()).unwrap())
        };
        assert_eq!(all(3), all(1), "{filter}");
    }
}

/// Damage of any length, at any place in the parts: each damage is reported once, by its beginning.
#[test]
fn damage_across_parts_is_what_one_walk_says() {
    let memory = Memory::new();
    let store = store(Arc::new(memory.clone()), 100);
    let file = memory.open(Path::new(SEGMENT), Access::Write).unwrap();
    let pages = file.len().unwrap() / PAGE;
    assert!(pages > 5 * PART / PAGE);
    let mut whole = vec![0; (pages * PAGE) as usize];
    crate::storage::read_full(&*file, &mut whole, 0).unwrap();
    let mut met = 0;
    for length in [1, 2, PART / PAGE, 2 * PART / PAGE + 3, pages] {
        for first in (1..pages).step_by(if length > 2 { 3 } else { 1 }) {
            let (at, end) = (first * PAGE, (first + length).min(pages) * PAGE);
            // Pages that were never written, and others that are no record.
            let bytes = if first % 2 == 0 { 0 } else { 0xFF };
            file.write_at(&vec![bytes; (end - at) as usize], at).unwrap();
            let all = |on_corrupt, threads| {
                read(&mut batches(&store, (Include::All, on_corrupt), threads))
            };
            let (one, several) = (all(OnCorrupt::Skip, 1), all(OnCorrupt::Skip, 3));
            assert_eq!(several, one, "pages {first} to {}", first + length);
            met += one.2.len();
            let (one, several) = (all(OnCorrupt::Raise, 1), all(OnCorrupt::Raise, 3));
            assert_eq!(
                (&several.0, &several.1),
                (&one.0, &one.1),
                "pages {first} to {}",
                first + length
            );
            let walk = store.iter(Include::All, OnCorrupt::Raise).unwrap();
            assert_eq!(one.0.len(), walk.take_while(Result::is_ok).count());
            file.write_at(&whole[at as usize..end as usize], at).unwrap();
        }
    }
    assert!(met as u64 > 2 * pages, "{met}");
}

/// A caller learns of a batch's damage together with the batch.
#[test]
fn damage_is_known_with_the_batch_after_it() {
    let memory = Memory::new();
    let store = store(Arc::new(memory.clone()), 200);
    let file = memory.open(Path::new(SEGMENT), Access::Write).unwrap();
    let damaged: Vec<u64> = (1..file.len().unwrap() / PAGE).step_by(50).collect();
    damaged.iter().for_each(|page| _ = file.write_at(&[0xFF; 4], page * PAGE).unwrap());
    let mut made = batches(&store, (Include::All, OnCorrupt::Skip), 3);
    while let Some(batch) = made.next() {
        let last = rows(&batch.unwrap()).last().unwrap().1 as u64;
        assert!(made.damages().iter().all(|damage| damage.offset < last + PART));
        let known = damaged.iter().filter(|&page| page * PAGE < last).count();
        assert!(made.damages().len() >= known);
    }
    assert_eq!(made.damages().len(), damaged.len());
}

#[test]
fn a_stream_that_is_dropped_read_few_parts() {
    let store = store(Arc::new(Memory::new()), 1000);
    let mut made = batches(&store, (Include::All, OnCorrupt::Raise), 3);
    (0..2).for_each(|_| drop(made.next().unwrap().unwrap()));
    let last = |made: &Made| Some(rows(made.batch.as_ref()?.as_ref().ok()?).last()?.1 as u64);
    let read = made.made.iter().filter_map(last).max().unwrap();
    // The first batch, three parts, and the longest record.
    assert!(read < 10 * 4 * PAGE + 3 * PART + 20 * PAGE, "{read}");
}

/// Whichever read fails: the rows before are right, the error comes from the disk, and nothing
/// follows.
#[cfg(feature = "sim")]
#[test]
fn a_disk_that_fails_ends_the_stream() {
    use crate::ErrorKind;
    use crate::storage::sim::{Call, Fault, Sim, What};
    let sim = Sim::new();
    let store = store(Arc::new(sim.clone()), 600);
    let expected = read(&mut batches(&store, (Include::All, OnCorrupt::Raise), 1)).0;
    let (mut failed, mut rows_before) = (0, 0);
    for at in 1.. {
        let before = sim.fired();
        let mut made = batches(&store, (Include::All, OnCorrupt::Raise), 3);
        sim.inject(Fault::once(at, What::Error(std::io::ErrorKind::Other)).of(Call::Read));
        let (mut found, mut error) = (Vec::new(), None);
        for batch in &mut made {
            match batch {
                Ok(batch) => found.extend(rows(&batch)),
                Err(e) => error = Some(e.kind()),
            }
        }
        let fired = sim.fired() - before;
        sim.heal();
        assert_eq!(found[..], expected[..found.len()]);
        if fired == 0 {
            assert_eq!((found.len(), error), (expected.len(), None));
            break;
        }
        assert_eq!(error, Some(ErrorKind::Io));
        (failed, rows_before) = (failed + 1, rows_before + found.len());
    }
    assert!(failed > 10 && rows_before > expected.len(), "{failed} {rows_before}");
}
