//! Appends, changes of flags and closing during a compaction, and compactions that start by themselves.

use crate::store::prelude::*;

fn compacted_beside(store: &EventStore, act: impl FnMut()) -> Vec<u32> {
    compacted_when(store, || true, act)
}

fn compacted_amid_moves(store: &EventStore, act: impl FnMut()) {
    compacted_when(store, || first_segment(store) > 0, act);
}

fn compacted_when(
    store: &EventStore,
    is_time: impl Fn() -> bool,
    mut act: impl FnMut(),
) -> Vec<u32> {
    let mut is_done = false;
    let mut tell = |_, _| {
        if !is_done && is_time() {
            is_done = true;
            act();
        }
        Ok(())
    };
    let report = store.compact_with(0.0, false, &mut tell).unwrap();
    assert!(is_done && !report.written.is_empty(), "{report:?}");
    report.written
}

/// The store as it is, and as the next opening finds it: these events by walk, by index and by id, and no damage.
fn has(store: EventStore, on: &Options, mut expected: Vec<Event>) {
    expected.sort_by_key(|event| event.created_at);
    let look = |store: &EventStore| {
        assert_eq!(sorted(store), expected);
        let mut by_index = found(store, "{}");
        by_index.sort_by_key(|event| event.created_at);
        assert_eq!(by_index, expected);
        for event in &expected {
            assert_eq!(store.find(&event.id).unwrap().unwrap().event, *event);
        }
        assert!(store.verify(Check::Id).unwrap().ok());
    };
    look(&store);
    store.close().unwrap();
    look(&open(on));
}

fn without(events: Vec<Event>, gone: &[u32]) -> Vec<Event> {
    let gone: Vec<Id> = gone.iter().map(|&number| note(number).id).collect();
    events.into_iter().filter(|event| !gone.contains(&event.id)).collect()
}

fn first_segment(store: &EventStore) -> u32 {
    walked(store, Include::All)[0].location.segment
}

fn roomy(segment_pages: u64) -> (Options, EventStore) {
    let (_, options) = in_memory();
    let options = options.segment_bytes(segment_pages * 4096);
    (options.clone(), open(&options))
}

// Promise: store-compaction.
#[test]
fn events_appended_beside_a_compaction_are_kept() {
    // The only segment takes the appends, or a later one does.
    for first in [10, 25] {
        let (on, store) = roomy(40);
        one_by_one(&store, &notes(0..first));
        delete(&store, &note(4));
        compacted_beside(&store, || one_by_one(&store, &notes(30..35)));
        let expected = without(notes(0..first), &[4]);
        has(store, &on, [expected, notes(30..35)].concat());
    }
}

// Promise: store-compaction.
#[test]
fn events_hidden_beside_a_compaction_stay_hidden() {
    let (on, store) = roomy(100);
    one_by_one(&store, &notes(0..20));
    store.append(&event(9, 1, 0, &[], "first profile")).unwrap();
    delete(&store, &note(4));
    let profile = event(9, 2, 0, &[], "second profile");
    compacted_beside(&store, || {
        delete(&store, &note(6));
        one_by_one(&store, &notes(30..33));
        delete(&store, &note(31));
        let target = note(12).id.to_string();
        let request = event((12 % 5) as u8, 1_800_000_000, 5, &[&["e", &target]], "");
        store.append(&request).unwrap();
        store.append(&profile).unwrap();
    });
    let kinds = [found(&store, r#"{"kinds": [0]}"#), found(&store, r#"{"kinds": [5]}"#)];
    assert_eq!((&kinds[0][..], kinds[1].len()), (&[profile.clone()][..], 1));
    let expected = [notes(0..20), notes(30..33), vec![profile], kinds[1].clone()].concat();
    let left = store.dead_bytes().unwrap();
    has(store, &on, without(expected, &[4, 6, 12, 31]));
    // The copies count the hidden events as dead.
    assert!(left.iter().any(|dead| dead.is_some_and(|bytes| bytes > 0)), "{left:?}");
}

// Promise: store-compaction.
#[test]
fn event_shown_again_beside_a_compaction_is_kept() {
    let (on, store) = roomy(100);
    one_by_one(&store, &notes(0..20));
    let at = place(&store, &note(4));
    [4, 5].iter().for_each(|number| delete(&store, &note(*number)));
    compacted_beside(&store, || store.set_flags(at, Flags::default()).unwrap());
    has(store, &on, without(notes(0..20), &[5]));
}

// Promise: store-compaction.
#[test]
fn segments_begun_beside_a_compaction_keep_their_events() {
    let (on, store) = roomy(12);
    one_by_one(&store, &notes(0..10));
    delete(&store, &note(4));
    let written = compacted_beside(&store, || one_by_one(&store, &notes(30..60)));
    assert!(written[0] > 2, "{written:?}");
    has(store, &on, [without(notes(0..10), &[4]), notes(30..60)].concat());
}

/// A store whose dropped events and other events are each several portions of moves.
fn with_many_moves() -> (Options, EventStore) {
    let (on, store) = roomy(200);
    one_by_one(&store, &notes(0..400));
    (0..400).step_by(4).for_each(|number| delete(&store, &note(number)));
    (on, store)
}

/// The index got all moves at once: an append waited 4.8 seconds.
// Promise: store-compaction.
#[test]
fn calls_between_moves_find_each_event_once() {
    let (on, store) = with_many_moves();
    let dropped: Vec<u32> = (0..400).step_by(4).collect();
    let expected = without(notes(0..400), &dropped);
    compacted_amid_moves(&store, || {
        let mut by_index = found(&store, r##"{"kinds": [1], "#t": ["note"]}"##);
        by_index.reverse();
        assert_eq!(by_index, expected);
        for event in notes(0..400) {
            let is_kept = expected.contains(&event);
            let by_id = found(&store, &format!(r#"{{"ids": ["{}"]}}"#, event.id));
            assert_eq!(
                (by_id.len(), store.find(&event.id).unwrap().is_some()),
                (is_kept.into(), is_kept)
            );
        }
        // A dropped event may come back, to a place that the moves must not take.
        one_by_one(&store, &[notes(396..397), notes(400..410)].concat());
        assert!(!store.append(&note(399)).unwrap().is_stored());
        delete(&store, &note(398));
    });
    let expected = [expected, notes(396..397), notes(400..410)].concat();
    has(store, &on, without(expected, &[398]));
}

#[test]
fn reindexing_between_moves_keeps_each_event() {
    let (on, store) = with_many_moves();
    let expected = sorted(&store);
    compacted_amid_moves(&store, || assert_eq!(store.reindex().unwrap(), 300));
    has(store, &on, expected);
}

#[test]
fn crash_between_moves_makes_the_index_again() {
    let (_place, path) = on_real_disk();
    let after = path.with_extension("after");
    let on = Options::new().small(true).segment_bytes(200 * 4096);
    let store = on.open(&path, Mode::Append).unwrap();
    one_by_one(&store, &notes(0..400));
    (0..400).step_by(4).for_each(|number| delete(&store, &note(number)));
    compacted_amid_moves(&store, || {
        one_by_one(&store, &notes(400..410));
        assert_eq!(found(&store, "{}").len(), 310);
        copy(&path, &after);
        vouch_for(&after.join(".deedbook/events"));
    });
    let store = on.open(&after, Mode::Append).unwrap();
    assert_eq!(store.opening().indexed, 310);
    assert_eq!((found(&store, "{}").len(), sorted(&store).len()), (310, 310));
    notes(401..410).iter().for_each(|event| assert!(store.find(&event.id).unwrap().is_some()));
    assert!(store.verify(Check::Id).unwrap().ok());
}

#[test]
fn closing_ends_a_compaction_and_loses_nothing() {
    let (on, store) = roomy(12);
    one_by_one(&store, &notes(0..60));
    (0..60).step_by(7).for_each(|number| delete(&store, &note(number)));
    let expected = sorted(&store);
    let done = std::thread::scope(|scope| {
        let mut closing = None;
        let mut tell = |_, _| {
            closing.get_or_insert_with(|| scope.spawn(|| store.close()));
            // The next step meets the closing.
            while !store.is_closing() {
                std::thread::yield_now();
            }
            Ok(())
        };
        let done = store.compact_with(0.0, false, &mut tell);
        closing.unwrap().join().unwrap().unwrap();
        done
    });
    refused(done, ErrorKind::Closed, "closes");
    refused(store.compact(0.0, false), ErrorKind::Closed, "");
    has(open(&on), &on, expected);
}

#[test]
fn compaction_by_itself_is_hourly_if_due() {
    let (_, on) = in_memory();
    let store = open(&on);
    one_by_one(&store, &notes(0..20));
    store.compact_in_time().unwrap();
    assert_eq!(first_segment(&store), 0, "nothing is due");
    (0..9).for_each(|number| delete(&store, &note(number)));
    store.compact_in_time().unwrap();
    let after = first_segment(&store);
    assert!(after > 0, "a compaction was due");
    (9..15).for_each(|number| delete(&store, &note(number)));
    assert!(store.compaction_due().unwrap());
    store.compact_in_time().unwrap();
    assert_eq!(first_segment(&store), after, "an hour has not passed");
    store.close().unwrap();
    let mut again = on.clone();
    assert!(compacts(&again, after).is_none(), "another handle waits for the hour, too");
    again.compaction_wait = Duration::ZERO;
    has(compacts(&again, after).unwrap(), &on, notes(15..20));
}

fn compacts(on: &Options, segment: u32) -> Option<EventStore> {
    let store = open(on);
    store.compact_in_time().unwrap();
    let is_gone = first_segment(&store) != segment;
    is_gone.then_some(store)
}

/// The thread of compactions looked again every minute, read the damaged segment, and logged the damage.
#[test]
fn damage_is_met_by_one_compaction_an_hour() {
    for is_counted in [true, false] {
        let (disk, on, mut store) = small();
        one_by_one(&store, &notes(0..3));
        [0, 1].iter().for_each(|number| delete(&store, &note(*number)));
        let at = place(&store, &note(2));
        if !is_counted {
            store.close().unwrap();
            remove_manifests(&disk);
            store = open(&on);
        }
        assert_eq!(store.dead_bytes().unwrap()[0].is_some(), is_counted);
        let file = disk.open(Path::new(FIRST), Access::Write).unwrap();
        file.write_at(&[0xee; 8], u64::from(at.offset) + 80).unwrap();
        refused(store.compact_in_time(), ErrorKind::Corrupt, "");
        store.compact_in_time().unwrap();
    }
}

/// Nothing but a caller's `compact` ever gave the space of deleted events back.
#[test]
fn a_thread_compacts_beside_appends_unless_switched_off() {
    for is_auto in [true, false] {
        let (_place, path) = on_real_disk();
        let mut on = Options::new().small(true).auto_compact(is_auto);
        on.compaction_wait = Duration::from_millis(20);
        let store = on.open(&path, Mode::Append).unwrap();
        one_by_one(&store, &notes(0..20));
        (0..9).for_each(|number| delete(&store, &note(number)));
        let (begun, mut number) = (Instant::now(), 100);
        let limit = Duration::from_secs(if is_auto { 60 } else { 1 });
        while first_segment(&store) == 0 && begun.elapsed() < limit {
            store.append(&note(number)).unwrap();
            number += 1;
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(first_segment(&store) > 0, is_auto);
        let expected = [notes(9..20), notes(100..number)].concat();
        assert_eq!(sorted(&store), expected);
        store.close().unwrap();
        assert_eq!(sorted(&on.open(&path, Mode::Read).unwrap()), expected);
    }
}

/// A compaction may move another event to a location that a caller looked up before. `nostr/` deletes by id.
#[test]
fn delete_all_deletes_by_id_with_one_sync() {
    let options = in_memory().1.durability(Durability::Always);
    let store = open(&options);
    store.append_many(&notes(0..20)).unwrap();
    let gone = [3, 4, 11, 99];
    let ids: Vec<Id> = gone.iter().map(|&number| note(number).id).collect();
    let left = without(notes(0..20), &gone);
    let syncs = store.stats().unwrap().syncs;
    store.delete_all(&ids).unwrap();
    assert_eq!((store.stats().unwrap().syncs - syncs, live(&store)), (1, left.clone()));
    assert_eq!(store.locations(&ids).unwrap().len(), 3);
    assert!(matches!(store.append(&note(3)).unwrap(), Outcome::Duplicate(_)));
    store.compact(0.0, false).unwrap();
    assert!(store.locations(&ids).unwrap().is_empty());
    store.delete_all(&ids).unwrap();
    has(store, &options, left);
}
