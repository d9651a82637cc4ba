//! When a segment begins, and disks that fail meanwhile.

use crate::store::prelude::*;

const PAGE: u64 = 4096;
const SEGMENT_PAGES: u64 = 40;

/// A store whose next append begins a segment.
fn full() -> Run {
    let mut run = Run::new(Durability::Manual, true);
    run.open().unwrap();
    "aaaaa".chars().for_each(|step| run.apply(step).unwrap());
    run
}

/// The store began a segment, and the disk had no space for the manifest with the new segment. Appends went on in the
/// segment, and a power cut left it empty. Opening took the segment for a compaction's output, and dropped the log's
/// flags for the lost events: replaced events counted again.
#[test]
fn replaced_events_stay_replaced_after_a_failed_rotation() {
    let (mut failed, mut went_on) = (0, 0);
    for call in [Call::Create, Call::Write, Call::Sync, Call::Rename, Call::SyncDir] {
        for k in 1.. {
            let mut run = full();
            run.disk.inject(Fault::once(k, What::Error(Io::StorageFull)).of(call));
            let begun = run.apply('a');
            let fired = run.disk.fired() > 0;
            run.disk.heal();
            if !fired {
                begun.unwrap();
                break;
            }
            let what = format!("{call:?} {k}");
            let is_refused = begun.is_err();
            failed += u32::from(is_refused);
            let mut is_reopened = false;
            for step in "vvac".chars() {
                let Err(error) = run.apply(step) else { continue };
                assert_eq!(error.kind(), ErrorKind::Poisoned, "{what}, {step}: {error:?}");
                // Close and open again, as a user would.
                run.store = None;
                run.open().unwrap();
                is_reopened = true;
                run.apply(step).unwrap_or_else(|e| panic!("{what}, {step} again: {e:?}"));
            }
            assert_eq!(run.wrong, None, "{what}");
            went_on += u32::from(is_refused && !is_reopened);
            let killed = run.disk.kill();
            recover(&killed, &run.options, &run.known, false)
                .unwrap_or_else(|why| panic!("{what}, killed: {why}"));
            for choice in choices(&run.disk, 10, 0) {
                let cut = run.disk.crashes().build(&choice);
                recover(&cut, &run.options, &run.known, true)
                    .unwrap_or_else(|why| panic!("{what}, {choice:?}: {why}"));
            }
        }
    }
    assert!(failed > 5 && went_on > 2, "{failed} failed, {went_on} went on");
}

/// One call, or a part of a salvage, wrote all its events to one segment. Small events, each in a page, took ten times
/// the size of a segment.
#[test]
fn many_small_events_fill_segments_to_their_size() {
    let (_, options) = in_memory();
    let options = options.segment_bytes(SEGMENT_PAGES * PAGE);
    let small = |number: u32| event(1, number, 1, &[], &number.to_string());
    // More pages than the size of a segment: the event is alone in one.
    let large = event(1, 200, 1, &[], &"x".repeat(50 * PAGE as usize));
    let events: Vec<Event> =
        (0..100).map(small).chain([large]).chain((300..310).map(small)).collect();
    let store = open(&options);
    one_by_one(&store, &events[..10]);
    let outcomes = store.append_many(&events[10..]).unwrap();
    assert!(outcomes.iter().all(|outcome| outcome.is_stored()), "{outcomes:?}");
    // Without the header's page: 39 events and 39, 22, the large one in 51 pages, and 10.
    let pages = [40, 40, 23, 52, 11].map(|pages| pages * PAGE);
    let sizes =
        || -> Vec<u64> { store.segments().unwrap().iter().map(|(_, bytes)| *bytes).collect() };
    assert_eq!((sizes(), all(&store)), (pages.to_vec(), events.clone()));
    store.close().unwrap();
    assert_eq!(all(&open(&options)), events);

    salvaged_by(&options);
    let rescued = options.open(COPY_DIR, deedbook::Mode::Read).unwrap();
    let sizes: Vec<u64> = rescued.segments().unwrap().iter().map(|(_, bytes)| *bytes).collect();
    assert_eq!((sizes, all(&rescued)), (pages.to_vec(), events));
}
