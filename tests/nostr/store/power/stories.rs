//! Regressions after power cuts and crashes, each with its story.

use deedbook::storage::sim::Choice;

use crate::store::power::crash::{crashed, crashed_in, crashed_twice};
use crate::store::prelude::*;

/// The flag of a replaced event was in the page cache before the sync of the log. A power cut kept the flag and lost
/// the end of the log with the new event: an event that never existed hid the old one.
// Promise: store-power-loss.
#[test]
fn event_lost_in_a_power_cut_hides_nothing() {
    // Fewer states do not notice a flag written before the log's sync.
    let states = of_tier("DEEDBOOK_NOSTR_STATES").max(24);
    crashed_in(states, &["vcv", "acd", "aacd", "mcvv"], Durability::Manual, true);
}

/// The end of the log was torn between the new version and the old one's flag: both counted forever.
#[test]
fn one_version_counts_after_losing_a_flag() {
    crashed(&["vv", "vcvv", "cmrmv", "ad"], Durability::Manual, true);
}

/// A power cut lost the end of the log, but the segment kept a version, the request that deletes it, and an older
/// version stored after the request. Opening let the deleted version replace the older one: no version counted.
#[test]
fn deleted_version_without_flag_replaces_no_later_version() {
    let (disk, on, store) = small();
    let version = |at: u32| event(9, at, 0, &[], "profile");
    store.append(&version(10)).unwrap();
    store.sync().unwrap();
    let log = read(&disk, WAL);
    for event in [version(20), request(9, 30, &version(20)), version(15)] {
        stored(&store, &event);
    }
    let flags = |store: &EventStore| -> Vec<(u32, Flags)> {
        let all = walked(store, Include::All).into_iter();
        all.map(|found| (found.event.created_at, found.flags)).collect()
    };
    let before = flags(&store);
    let live = Flags::default();
    assert_eq!(before, [(10, Flags::REPLACED), (20, Flags::DELETED), (30, live), (15, live)]);
    // After the power cut, with all or fewer of the events.
    for (lost, after) in [(0, &before[..]), (1, &before[..3])] {
        let image = disk.kill();
        write(&image, WAL, &log);
        changed(&image, FIRST, |bytes| bytes.truncate(bytes.len() - lost * PAGE));
        // With a manifest, opening saves the events that the log lacks.
        remove_manifests(&image);
        let on = on_disk(&on, &image);
        for _ in 0..2 {
            assert_eq!(flags(&open(&on)), after);
        }
    }
    crashed(&["vcavp", "vcavpw", "cvavpw"], Durability::Manual, true);
}

/// Without a commit: a process crashed during an append, and a power cut ended the next opening. The segment kept a
/// version that the log lost, and the version hid another one. The same after a commit of the first version.
#[test]
fn power_cut_while_reopening_hides_no_version() {
    ["cvavpw", "vcavpw"].iter().for_each(|history| crashed_twice(history, 60, 60));
}

/// A process crashed. The next process found its events and flags in the cache, took them for durable, and emptied the
/// log. A power cut lost the events.
#[test]
fn opening_syncs_pages_of_a_crashed_process() {
    for durability in [Durability::Manual, Durability::Always] {
        crashed(&["aaafxmcmfa", "cxvmmv", "mvmvmvvrf"], durability, true);
    }
}

/// With a durability that promises more, setting flags returned before the flags were durable.
#[test]
fn flags_are_as_durable_as_appends() {
    crashed(&["af"], Durability::Always, true);
}

/// Without checksums, opening took a torn page for an event.
#[test]
fn torn_event_without_a_checksum_is_refused() {
    crashed(&["xrm", "m", "mm", "mcm", "mk", "mkm"], Durability::Manual, false);
}

/// A call failed during an opening that set the lost flag of a replaced version. The dropped handle emptied the log,
/// and no later opening looked again: both versions counted forever.
#[test]
fn failed_opening_leaves_flags_to_the_next() {
    let (mut states, mut failed) = (0, 0);
    for history in ["vcv", "acd"] {
        let mut run = Run::new(Durability::Manual, true);
        run.open().unwrap();
        let (first, last) = history.split_at(2);
        first.chars().for_each(|step| run.apply(step).unwrap());
        let before = run.known.clone();
        last.chars().for_each(|step| run.apply(step).unwrap());
        let known = Known::during(&before, &run.known);
        let on = |disk: &Sim| on_disk(&run.options, disk);
        let crashes = run.disk.crashes();
        let choices = (0..1_000).map(|index| crashes.sample(mix(index)));
        let count =
            |store: &EventStore| store.iter(Include::Live, OnCorrupt::Skip).unwrap().count();
        // The new version is there, and nothing flags the old version.
        let lacks_flag = |choice: &Choice| {
            let disk = crashes.build(choice);
            let has_both = on(&disk).open(DIR, Mode::Read).is_ok_and(|store| count(&store) == 2);
            has_both && open(&on(&disk)).opening().flags_set_again == 0
        };
        for choice in choices.filter(lacks_flag).take(3) {
            states += 1;
            for k in 1.. {
                let disk = crashes.build(&choice);
                disk.inject(Fault::once(k, What::Error(Io::Other)));
                let opened = on(&disk).open(DIR, Mode::Append);
                let (is_over, is_refused) = (disk.fired() == 0, opened.is_err());
                drop(opened);
                if is_over {
                    break;
                }
                failed += u32::from(is_refused);
                disk.heal();
                recover(&disk, &run.options, &known, true)
                    .unwrap_or_else(|why| panic!("{history}, {choice:?}, call {k}: {why}"));
            }
        }
    }
    assert!(states > 1 && failed > 100, "{states} states, {failed} openings failed");
}
