//! Disks that fail while a segment is begun.

use std::io::ErrorKind as Io;

use deedbook::storage::sim::{Call, Fault, What};
use deedbook::{Durability, ErrorKind};

use crate::judge::recover;
use crate::support::mix;
use crate::world::Run;

/// Have the next append of a store begin a segment.
fn full() -> Run {
    let mut run = Run::new(Durability::Manual, true);
    run.open().unwrap();
    "aaaaa".chars().for_each(|step| run.apply(step).unwrap());
    run
}

/// The segment was begun and the disk had no room for the manifest that names it. Appends went on in it; a
/// power cut left it empty, opening took it for what a compaction had begun, and the flags of the log, which
/// spoke of its events, were dropped: what was replaced counted again.
#[test]
fn what_is_replaced_stays_so_where_a_new_segment_could_not_be_named_at_first() {
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
                // As a user does then.
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
            let crashes = run.disk.crashes();
            let ends = [crashes.nth(0), crashes.nth(crashes.count() - 1)];
            for choice in ends.into_iter().chain((0..8).map(|seed| crashes.sample(mix(seed)))) {
                recover(&crashes.build(&choice), &run.options, &run.known, true)
                    .unwrap_or_else(|why| panic!("{what}, {choice:?}: {why}"));
            }
        }
    }
    println!("{failed} failed, {went_on} went on");
    assert!(failed > 5 && went_on > 2, "{failed} failed, {went_on} went on");
}
