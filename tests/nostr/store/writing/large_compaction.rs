//! Compactions large enough for threads that read and sync next to the writer.

use crate::store::prelude::*;

pub const EVENTS: u32 = 2600;

pub fn on(disk: &Sim) -> Options {
    on_storage(Arc::new(disk.clone()))
        .segment_bytes(16 << 20)
        .wal_segment_bytes(64 << 20)
        .checkpoint_bytes(64 << 20)
}

pub fn stored(disk: &Sim, count: u32, is_deleted: fn(usize) -> bool) -> (EventStore, Vec<Event>) {
    let store = open(&on(disk));
    let long = |number: u32| {
        let content = format!("{number} {}", "x".repeat(9000));
        event((number % 5) as u8, 1_700_000_000 + number, 1, &[&["t", "long"]], &content)
    };
    let events: Vec<Event> = (0..count).map(long).collect();
    store.append_many(&events).unwrap();
    for (_, event) in events.iter().enumerate().filter(|&(number, _)| is_deleted(number)) {
        delete(&store, event);
    }
    store.checkpoint().unwrap();
    let left = events.into_iter().enumerate().filter(|&(number, _)| !is_deleted(number));
    (store, left.map(|(_, event)| event).collect())
}

pub fn is_left(store: &EventStore, left: &[Event]) {
    assert!(all(store) == left, "another order, or other events");
    let filters = Filter::parse_any(r##"{"#t": ["long"]}"##).unwrap();
    let found = store.query(&filters).unwrap();
    assert!(found.iter().rev().map(|found| &found.event).eq(left));
    for found in &found {
        assert_eq!(store.read(found.location).unwrap(), *found);
    }
    assert!(store.verify(Check::Id).unwrap().ok());
}

#[test]
fn large_compaction_keeps_order_and_stops_on_request() {
    let disk = Sim::new();
    let (store, left) = stored(&disk, EVENTS, |number| number % 4 == 0);
    store.close().unwrap();
    // The moves report the same bytes again.
    let (mut reports, mut copied) = (0, 0);
    let mut count = |done, _| {
        reports += u32::from(done > copied);
        copied = done;
        Ok(())
    };
    let copy = disk.kill();
    let store = open(&on(&copy));
    let report = store.compact_with(0.0, false, &mut count).unwrap();
    assert_eq!((report.kept, report.deleted), (1950, 650));
    assert_eq!((report.segments.len(), report.written.len()), (2, 2));
    is_left(&store, &left);
    store.close().unwrap();
    is_left(&open(&on(&copy)), &left);

    for end in [reports / 2 + 2, reports * 3 / 4, reports - 2] {
        let copy = disk.kill();
        let store = open(&on(&copy));
        let mut until = 0;
        let ended = store.compact_with(0.0, false, &mut |_, _| {
            until += 1;
            match until == end {
                true => Err(Error::new(ErrorKind::InvalidArgument, "ended")),
                false => Ok(()),
            }
        });
        assert_eq!(ended.unwrap_err().message(), "ended");
        assert_eq!(all(&store).len(), EVENTS as usize);
        assert_eq!(store.compact(0.0, false).unwrap().kept, 1950);
        is_left(&store, &left);
    }
}

/// A sync began before there was any new segment.
#[test]
fn a_large_compaction_may_begin_with_what_goes() {
    for left_from in [2100, EVENTS as usize] {
        let is_deleted = match left_from {
            2100 => |number| number < 2100,
            _ => |_| true,
        };
        let (store, left) = stored(&Sim::new(), EVENTS, is_deleted);
        let report = store.compact(0.0, false).unwrap();
        assert_eq!((report.deleted, report.kept as usize), (left_from as u64, left.len()));
        is_left(&store, &left);
    }
}

/// A failed sync of another thread is also an error, because Linux reports the failure once.
#[test]
fn failures_in_large_compactions_lose_no_event() {
    let disk = Sim::new();
    let (store, left) = stored(&disk, EVENTS, |number| number % 4 == 0);
    store.close().unwrap();
    // The sync of the other thread has no fixed place among the others: one try may miss it.
    let syncs = [(Call::Sync, 1); 4];
    for (call, step) in [(Call::Read, 31), (Call::Write, 17)].into_iter().chain(syncs) {
        let mut failed = 0;
        for k in (1..).step_by(step) {
            let copy = disk.kill();
            let store = open(&on(&copy));
            let before = copy.fired();
            copy.inject(Fault::once(k, What::Error(Io::Other)).of(call));
            let done = store.compact(0.0, false);
            let fired = copy.fired() - before;
            copy.heal();
            assert_eq!(done.is_err(), fired > 0, "{call:?} {k}: {done:?}");
            if let Err(error) = done {
                assert!(matches!(error.kind(), ErrorKind::Io | ErrorKind::Poisoned), "{error:?}");
            }
            drop(store);
            let store = open(&on(&copy.kill()));
            let count = all(&store).len();
            assert!([EVENTS as usize, left.len()].contains(&count), "{call:?} {k}: {count}");
            if failed % 8 == 0 || fired == 0 {
                store.compact(0.0, false).unwrap();
                is_left(&store, &left);
            }
            if fired == 0 {
                break;
            }
            failed += 1;
        }
        assert!(failed > 5, "{call:?}: {failed}");
    }
}
