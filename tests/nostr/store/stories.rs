//! What went wrong once, each with its story.

use std::io::ErrorKind as Io;
use std::path::Path;

use deedbook::nostr::{
    Check, Event, EventStore, Filter, Flags, Include, Options, Outcome, salvage,
};
use deedbook::storage::sim::{Call, Choice, Fault, Sim, What};
use deedbook::storage::{Access, Storage};
use deedbook::{Durability, Durable, ErrorKind, Mode, OnCorrupt};

use crate::store::crash::crashed;
use crate::support::store::events::nostr_keys::number_of;
use crate::support::store::events::{
    changed, copy, event, in_memory, mix, note, open, read, write,
};
use crate::support::store::judge::recover;
use crate::support::store::known::Known;
use crate::support::store::world::{DIR, Run, options};

fn all(store: &EventStore) -> Vec<Event> {
    let walk = store.iter(Include::Live, OnCorrupt::Raise).unwrap();
    walk.map(|found| found.unwrap().event).collect()
}

/// The flag of a replaced event was in the page cache before the log was synced. A power cut kept the
/// flag and took the log's end, and with it the event that replaces it: the old one was hidden by one
/// that was never there.
// Promise: store-power-loss.
#[test]
fn no_event_is_hidden_by_one_that_a_power_cut_took() {
    for history in ["vcv", "acd", "aacd", "mcvv"] {
        crashed(history, Durability::Manual, true);
    }
}

/// Each replaced event waited for a sync of the log, so that an import of profiles took thirty times as
/// long as one of notes. Flags wait in memory since: the handle sees them at once, and the segment gets
/// them when the log is durable.
#[test]
fn flags_are_seen_at_once_and_written_when_the_log_is_synced() {
    let disk = Sim::new();
    let on = options(&disk, Durability::Manual);
    let store = on.open(DIR, Mode::Append).unwrap();
    let versions: Vec<Event> = (1..4).map(|at| event(9, at, 0, &[], "profile")).collect();
    let long = event(9, 4, 0, &[], &"long ".repeat(2000));
    // As the segment alone has it: a reader looks into the log, too.
    let in_file = || {
        let image = disk.kill();
        let wal = Path::new("/events/wal");
        let logs = image.list(wal).unwrap().into_iter().filter(|name| name != ".deedbook");
        logs.for_each(|name| image.remove(&wal.join(name)).unwrap());
        all(&on.clone().storage(std::sync::Arc::new(image)).open(DIR, Mode::Read).unwrap())
    };
    store.append_many(&versions).unwrap();
    assert_eq!((all(&store), in_file()), (versions[2..].to_vec(), versions.clone()));
    let mut back = store.iter_reverse(Include::Live, OnCorrupt::Raise).unwrap();
    let Some(Ok(newest)) = back.next() else { panic!() };
    assert!(back.next().is_none() && store.find(&versions[0].id).unwrap().is_none());
    store.commit().unwrap();
    assert_eq!((all(&store), in_file()), (versions[2..].to_vec(), versions[2..].to_vec()));
    store.append(&long).unwrap();
    store.append(&event(9, 5, 0, &[], "last")).unwrap();
    let flags = store.read(newest.location).unwrap().flags;
    assert_eq!((flags, in_file().len()), (Flags::REPLACED, 3));
    // By hand as well, and the last one counts.
    store.set_flags(newest.location, Flags::default()).unwrap();
    assert_eq!(all(&store).len(), 2);
    store.checkpoint().unwrap();
    assert_eq!(in_file(), all(&store));
    store.set_flags(newest.location, Flags::DELETED).unwrap();
    assert_eq!((all(&store).len(), in_file().len()), (1, 2));
    store.close().unwrap();
    assert_eq!(in_file().len(), 1);
}

/// A reader that opened a store while a long event was being written raised an error about damage.
#[test]
fn an_event_that_is_being_written_is_no_damage_for_a_reader() {
    let disk = Sim::new();
    let on = options(&disk, Durability::Manual);
    let store = on.open(DIR, Mode::Append).unwrap();
    let events = [note(0), note(1), event(9, 4, 0, &[], &"long ".repeat(2000))];
    store.append_many(&events).unwrap();
    let segment = Path::new(DIR).join("data/segments/data.0.seg");
    let file = disk.open(&segment, Access::Write).unwrap();
    let whole = file.len().unwrap();
    let reader = || on.open(DIR, Mode::Read).unwrap();
    for missing in [3000, 4096, 8192] {
        file.set_len(whole - missing).unwrap();
        assert_eq!(all(&reader()), events, "{missing}");
        assert!(reader().verify(Check::Id).unwrap().is_ok(), "{missing}");
    }
    // Once it was acknowledged by a checkpoint, it is.
    store.checkpoint().unwrap();
    assert!(!reader().verify(Check::Id).unwrap().is_ok());
}

/// The log's end was torn between the new version and the flag of the old one: both counted, for ever.
#[test]
fn one_version_counts_where_the_flag_of_the_other_was_lost() {
    for history in ["vv", "vcvv", "cmrmv", "ad"] {
        crashed(history, Durability::Manual, true);
    }
}

/// A power cut took the log's end, and left in the segment a version, the request that deletes it, and an
/// older version that was stored after it. Opening had the deleted one replace the older one: none counted.
#[test]
fn a_version_that_a_lost_flag_deleted_replaces_none_that_came_later() {
    let disk = Sim::new();
    let on = options(&disk, Durability::Manual);
    let store = on.open(DIR, Mode::Append).unwrap();
    let version = |at: u32| event(9, at, 0, &[], "profile");
    store.append(&version(10)).unwrap();
    store.commit().unwrap();
    let wal = &format!("{DIR}/wal/wal.log");
    let log = read(&disk, wal);
    let newest = version(20);
    let request = event(9, 30, 5, &[&["e", &newest.id.to_string()]], "");
    let appended = [newest, request, version(15)];
    for event in &appended {
        assert!(matches!(store.append(event).unwrap(), Outcome::Stored(_)));
    }
    let flags = |store: &EventStore| -> Vec<(u32, Flags)> {
        let walk = store.iter(Include::All, OnCorrupt::Raise).unwrap();
        walk.map(|found| found.unwrap())
            .map(|found| (found.event.created_at, found.flags))
            .collect()
    };
    let before = flags(&store);
    let live = Flags::default();
    assert_eq!(before, [(10, Flags::REPLACED), (20, Flags::DELETED), (30, live), (15, live)]);
    // As the power cut leaves it, with so many of the events.
    for (lost, after) in [(0, &before[..]), (1, &before[..3])] {
        let image = disk.kill();
        write(&image, wal, &log);
        let segment = format!("{DIR}/data/segments/data.0.seg");
        changed(&image, &segment, |bytes| bytes.truncate(bytes.len() - lost * 4096));
        let on = on.clone().storage(std::sync::Arc::new(image));
        let store = on.open(DIR, Mode::Append).unwrap();
        assert_eq!(flags(&store), after);
        drop(store);
        assert_eq!(flags(&on.open(DIR, Mode::Append).unwrap()), after);
    }
    for history in ["vcavp", "vcavpw", "cvavpw"] {
        crashed(history, Durability::Manual, true);
    }
}

/// A process died, and its successor found its events and flags in the cache, took them for durable,
/// and emptied the log. A power cut took them.
#[test]
fn what_a_dead_process_left_in_the_cache_is_synced_by_the_next() {
    for history in ["aaafxmcmfa", "cxvmmv", "mvmvmvvrf"] {
        crashed(history, Durability::Manual, true);
        crashed(history, Durability::Always, true);
    }
}

/// A store died after it had made the directory, and before it had synced its name. The next one found
/// it there, synced its files, and a power cut took all of it.
#[test]
fn names_that_a_store_left_unsynced_are_synced_by_the_next() {
    crashed("", Durability::Always, true);
}

/// Setting flags returned before they were durable, with a durability that promises it.
#[test]
fn flags_are_as_durable_as_appends() {
    crashed("af", Durability::Always, true);
}

/// Without checksums, a page of which a power cut kept some sectors was taken for an event.
#[test]
fn a_torn_event_without_a_checksum_is_not_taken_for_one() {
    for history in ["xrm", "m", "mm", "mcm", "mk", "mkm"] {
        crashed(history, Durability::Manual, false);
    }
}

/// Without checksums, a power cut took an event from the log and half of its signature from the segment.
/// It was taken for an event, because an id tells of all fields but that one.
#[test]
fn what_only_a_segment_has_needs_a_true_signature_where_no_checksum_vouches_for_it() {
    let lines = include_str!("../../data/nostr/events.jsonl");
    let signed = Event::from_json(lines.lines().next().unwrap().as_bytes()).unwrap();
    for (last, is_torn, stays) in
        [(signed.clone(), false, true), (signed, true, false), (note(9), false, false)]
    {
        // The log has events after the checkpoint, or none; the manifest knows of that, or is lost.
        for (logged, is_known) in [(0, true), (1, true), (1, false)] {
            let disk = Sim::new();
            let on = options(&disk, Durability::Manual).checksums(false);
            let store = on.open(DIR, Mode::Append).unwrap();
            store.append(&note(1)).unwrap();
            store.checkpoint().unwrap();
            store.append_many(&[note(2)][..logged]).unwrap();
            let wal = &format!("{DIR}/wal/wal.log");
            let log = read(&disk, wal);
            let Outcome::Stored(at) = store.append(&last).unwrap() else { panic!() };
            let image = disk.kill();
            drop(store);
            write(&image, wal, &log);
            for name in ["manifest.json", ".deedbook/manifest"].iter().filter(|_| !is_known) {
                image.remove(&Path::new(DIR).join(name)).unwrap();
            }
            if is_torn {
                changed(&image, &format!("{DIR}/data/segments/data.{}.seg", at.segment), |bytes| {
                    let page = &mut bytes[at.offset as usize..];
                    let sig = page.windows(64).position(|bytes| bytes == last.sig).unwrap();
                    page[sig + 30..sig + 64].fill(0);
                });
            }
            let on = on.clone().storage(std::sync::Arc::new(image));
            let store = on.open(DIR, Mode::Append).unwrap();
            let opening = store.opening();
            assert_eq!(opening.saved.len(), usize::from(!stays), "{opening:?}");
            let mut events = vec![note(1), note(2)];
            events.truncate(1 + logged);
            events.extend(stays.then_some(last.clone()));
            assert_eq!(all(&store), events);
            store.close().unwrap();
            assert_eq!(all(&on.open(DIR, Mode::Read).unwrap()), events);
        }
    }
}

/// A sync of the segment failed, and the handle with it. The next process found the events in the
/// cache, synced them, which wrote nothing, and emptied the log. A power cut took what was committed.
// Promise: store-call-fails.
#[test]
fn what_a_failed_sync_left_in_the_cache_is_written_again() {
    let mut failed = 0;
    // What reaches the disk of a sync that fails is chance.
    for (k, seed) in (1..4).flat_map(|k| (0..8).map(move |seed| (k, seed))) {
        let disk = Sim::new();
        disk.set_seed(seed);
        let store = options(&disk, Durability::Manual).open(DIR, Mode::Append).unwrap();
        let notes: Vec<Event> = (0..2).map(note).collect();
        store.append_many(&notes).unwrap();
        store.commit().unwrap();
        disk.inject(Fault::once(k, What::Error(Io::Other)).of(Call::Sync));
        let Err(error) = store.checkpoint() else { continue };
        assert_eq!(error.kind(), ErrorKind::Io, "sync {k}");
        assert_eq!(store.append(&note(2)).unwrap_err().kind(), ErrorKind::Poisoned, "sync {k}");
        assert_eq!(all(&store), notes);
        drop(store);
        let next = disk.kill();
        drop(options(&next, Durability::Manual).open(DIR, Mode::Append).unwrap());
        let crashes = next.crashes();
        let cut = crashes.build(&crashes.nth(0));
        let store = options(&cut, Durability::Manual).open(DIR, Mode::Append).unwrap();
        assert_eq!(all(&store), notes, "sync {k}");
        failed += 1;
    }
    assert!(failed > 8, "{failed} syncs");
}

/// Another size of pages was asked for: records were made for the pages of the old segment, written to
/// the log, and refused by the new one; and at every opening again.
#[test]
fn another_size_of_pages_begins_with_a_segment() {
    for (before, after) in [(4096, 16_384), (16_384, 4096)] {
        let disk = Sim::new();
        let with = |page_bytes| {
            options(&disk, Durability::Manual).page_bytes(page_bytes).segment_bytes(10 * 16_384)
        };
        let notes: Vec<Event> = (0..60).map(note).collect();
        let store = with(before).open(DIR, Mode::Append).unwrap();
        notes[..10].iter().for_each(|note| assert!(store.append(note).unwrap().is_stored()));
        drop(store);
        let store = with(after).open(DIR, Mode::Append).unwrap();
        notes[10..].iter().for_each(|note| assert!(store.append(note).unwrap().is_stored()));
        assert_eq!(all(&store), notes);
        drop(store);
        let killed = with(after).storage(std::sync::Arc::new(disk.kill()));
        assert_eq!(all(&killed.open(DIR, Mode::Append).unwrap()), notes);
    }
}

/// An append that failed after a part of its events was stored said that nothing is there.
#[test]
fn an_append_that_is_there_in_part_says_so() {
    let versions: Vec<Event> = (1..5).map(|at| event(9, at, 0, &[], "profile")).collect();
    let (mut met, mut writes) = ([0, 0], 0);
    for k in 1..60 {
        let disk = Sim::new();
        let store = options(&disk, Durability::Manual).open(DIR, Mode::Append).unwrap();
        disk.inject(Fault::once(k, What::Error(Io::StorageFull)).of(Call::Write));
        let Err(error) = store.append_many(&versions) else { break };
        disk.heal();
        writes += 1;
        let store = options(&disk.kill(), Durability::Manual).open(DIR, Mode::Append).unwrap();
        let there = store.iter(Include::All, OnCorrupt::Raise).unwrap().count();
        if error.durable() == Some(Durable::No) {
            assert_eq!(there, 0, "write {k}: {error:?}");
            met[0] += 1;
        } else {
            assert_eq!(error.durable(), Some(Durable::Unknown), "write {k}: {error:?}");
            met[1] += usize::from(there > 0);
        }
    }
    assert!(writes > 4 && met[0] > 0 && met[1] > 3, "{writes} writes, {met:?}");
}

/// A compaction failed and left its copies. An event was deleted; at the next opening its copy was an
/// event of its own, and came back. And no segment could be begun: the number was taken.
#[test]
fn a_compaction_that_failed_leaves_nothing_that_comes_back() {
    let mut failed = 0;
    for k in 1..40 {
        for call in [Call::Write, Call::Sync, Call::SyncDir, Call::Rename, Call::Create] {
            let disk = Sim::new();
            let on = options(&disk, Durability::Manual);
            let store = on.open(DIR, Mode::Append).unwrap();
            let notes: Vec<Event> = (0..9).map(note).collect();
            let mut places = Vec::new();
            for note in &notes {
                let Outcome::Stored(at) = store.append(note).unwrap() else { panic!() };
                places.push(at);
            }
            store.set_flags(places[0], Flags::DELETED).unwrap();
            store.commit().unwrap();
            disk.inject(Fault::once(k, What::Error(Io::StorageFull)).of(call));
            if store.compact(0.0, false).is_ok() {
                disk.heal();
                continue;
            }
            failed += 1;
            disk.heal();
            let mut left = notes[1..].to_vec();
            // A handle that goes on does all that it did.
            match store.set_flags(places[1], Flags::DELETED) {
                Ok(()) => {
                    left.remove(0);
                    store.commit().unwrap();
                    for number in 9..15 {
                        store.append(&note(number)).unwrap();
                        left.push(note(number));
                    }
                    let again = store.compact(0.0, false).unwrap();
                    assert_eq!(again.deleted, 2, "{call:?} {k}");
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Poisoned, "{call:?} {k}: {error}")
                }
            }
            drop(store);
            let store = on.open(DIR, Mode::Append).unwrap();
            let mut found = all(&store);
            found.sort_by_key(|event| event.created_at);
            assert_eq!(found, left, "{call:?} {k}");
        }
    }
    assert!(failed > 15, "{failed}");
}

/// What the index covers says nothing of flags: where a power cut took the last change of the index, an
/// event whose flag was taken off was never found again.
// Promise: store-index.
#[test]
fn the_index_learns_flags_that_it_lacks_from_the_log() {
    let place = tempfile::tempdir().unwrap();
    let (dir, kept) = (place.path().join("events"), place.path().join("kept"));
    let on = crate::support::store::events::options(std::sync::Arc::new(deedbook::storage::Disk))
        .index_on_disk(true);
    let store = on.open(&dir, Mode::Append).unwrap();
    let Outcome::Stored(at) = store.append(&note(0)).unwrap() else { panic!() };
    store.append(&note(1)).unwrap();
    store.set_flags(at, Flags::DELETED).unwrap();
    store.close().unwrap();
    copy(&dir.join(".deedbook/events"), &kept);
    let store = on.open(&dir, Mode::Append).unwrap();
    store.set_flags(at, Flags::default()).unwrap();
    store.append(&note(2)).unwrap();
    store.commit().unwrap();
    // As a power cut leaves it: the log and the segments are durable, the index is as it was.
    let cut = place.path().join("cut");
    copy(&dir, &cut);
    std::fs::remove_dir_all(cut.join(".deedbook/events")).unwrap();
    copy(&kept, &cut.join(".deedbook/events"));
    crate::support::common::index_files::vouch_for(&cut.join(".deedbook/events"));
    drop(store);
    let store = on.open(&cut, Mode::Append).unwrap();
    let found = store.query(&[Default::default()]).unwrap();
    let found: Vec<Event> = found.map(|found| found.unwrap().event).collect();
    assert_eq!(found, [note(2), note(1), note(0)]);
    assert_eq!(store.opening().indexed, 1);
}

/// A compaction that failed, or was killed, began again from its start: one that does not fit into the
/// time or the space that there is never ended. What it has done stays, and the next one does the rest.
#[test]
fn a_compaction_that_fails_keeps_what_it_has_done() {
    let disk = Sim::new();
    let on = options(&disk, Durability::Manual);
    let store = on.open(DIR, Mode::Append).unwrap();
    let notes: Vec<Event> = (0..90).map(note).collect();
    for note in &notes {
        store.append(note).unwrap();
    }
    for note in notes.iter().step_by(3) {
        let at = store.find(&note.id).unwrap().unwrap().location;
        store.set_flags(at, Flags::DELETED).unwrap();
    }
    store.close().unwrap();
    let left: Vec<Event> =
        notes.iter().enumerate().filter(|(n, _)| n % 3 != 0).map(|(_, e)| e.clone()).collect();
    let stored = |store: &EventStore| {
        store.iter(Include::All, OnCorrupt::Raise).unwrap().map(Result::unwrap).count()
    };
    let (mut failed, mut kept) = (0, 0);
    for k in (1..).step_by(5) {
        let disk = disk.kill();
        let on = options(&disk, Durability::Manual);
        let store = on.open(DIR, Mode::Append).unwrap();
        disk.inject(Fault::once(k, What::Error(Io::StorageFull)).of(Call::Write));
        if store.compact(0.0, false).is_ok() {
            break;
        }
        drop(store);
        let store = on.open(DIR, Mode::Append).unwrap();
        let count = stored(&store);
        assert!((left.len()..=notes.len()).contains(&count), "write {k}: {count} events");
        failed += 1;
        kept += u32::from(count < notes.len() && count > left.len());
        let report = store.compact(0.0, false).unwrap();
        assert!(!report.segments.is_empty() || count == left.len(), "write {k}");
        let mut found = all(&store);
        found.sort_by_key(|event| event.created_at);
        assert_eq!(found, left, "write {k}");
        assert_eq!(stored(&store), left.len(), "write {k}");
    }
    assert!(failed > 5 && kept > 2, "{failed} failed, {kept} kept some");
}

/// Each deletion request ended the write before it, so that an import of which a third are requests took
/// as many writes as requests. What they ask for counts within one write since, also for the events that
/// follow them in it.
#[test]
fn requests_in_one_call_delete_what_was_stored_and_what_comes_after_them() {
    let (_, on) = in_memory();
    let store = open(&on);
    let page = |at: u32| event(9, at, 30_023, &[&["d", "page"]], "page");
    let author: String = page(2).pubkey.iter().map(|byte| format!("{byte:02x}")).collect();
    let address = format!("30023:{author}:page");
    let profile = |at: u32| event(9, at, 0, &[], "profile");
    let stored = [event(9, 1, 1, &[], "note"), page(2), profile(3), event(8, 4, 1, &[], "other's")];
    store.append_many(&stored).unwrap();
    let ids: Vec<String> = stored.iter().map(|event| event.id.to_string()).collect();
    let late = event(9, 5, 1, &[], "late");
    let late_id = late.id.to_string();
    let asks = |at: u32, tags: &[&[&str]]| event(9, at, 5, tags, "");
    let given = [
        asks(10, &[&["e", &ids[0]], &["e", &ids[3]]]),
        asks(11, &[&["e", &ids[0]], &["e", &late_id]]),
        late.clone(),
        asks(12, &[&["a", &address]]),
        page(9),
        page(13),
        asks(14, &[&["e", &ids[2]]]),
        profile(2),
        // Of its own call.
        event(9, 15, 1, &[], "own"),
        asks(16, &[&["e", &event(9, 15, 1, &[], "own").id.to_string()]]),
    ];
    let became = store.append_many(&given).unwrap();
    let is_deleted = |at: usize| became[at] == Outcome::Deleted;
    assert!(is_deleted(2) && is_deleted(4), "{became:?}");
    assert_eq!(became.iter().filter(|outcome| outcome.is_stored()).count(), 8, "{became:?}");
    let lives = |store: &EventStore| {
        let mut live = all(store);
        live.retain(|event| event.kind != 5);
        live
    };
    let expected = [stored[3].clone(), page(13), profile(2)];
    assert_eq!(lives(&store), expected);
    assert_eq!(store.query(&[Filter::default()]).unwrap().count(), 8);
    store.close().unwrap();
    assert_eq!(lives(&open(&on)), expected);
}

/// A thread tells the index what was appended. An event that is on its way there is found by its id, is a
/// duplicate, is replaced and deleted like any other.
#[test]
fn events_on_their_way_to_the_index_are_known() {
    let place = tempfile::tempdir().unwrap();
    let on = Options::new().small(true);
    let store = on.open(place.path().join("store"), Mode::Append).unwrap();
    let mut live = Vec::new();
    for number in 0..400u32 {
        let author = (number % 7) as u8;
        let next = match number % 3 {
            0 => event(author, number, 0, &[], "profile"),
            _ => event(author, number, 1, &[], "note"),
        };
        assert!(store.append(&next).unwrap().is_stored(), "{number}");
        assert!(matches!(store.append(&next).unwrap(), Outcome::Duplicate(_)), "{number}");
        live.retain(|event: &Event| (next.kind, event.kind, event.pubkey) != (0, 0, next.pubkey));
        live.push(next);
        if number % 50 == 49 {
            let gone = live.remove(live.len() - 20);
            let tags: &[&[&str]] = &[&["e", &gone.id.to_string()]];
            let request = event(number_of(&gone.pubkey), number, 5, tags, "");
            store.append(&request).unwrap();
            live.push(request);
        }
        let found = |event: &Event| store.find(&event.id).unwrap().is_some();
        assert!(live.iter().rev().take(30).all(found), "{number}");
    }
    let order = |event: &Event| (std::cmp::Reverse(event.created_at), event.id);
    live.sort_by_key(order);
    let asked = |store: &EventStore| -> Vec<Event> {
        let found = store.query(&[Filter::default()]).unwrap();
        found.map(|found| found.unwrap().event).collect()
    };
    assert_eq!(asked(&store), live);
    store.compact(0.0, false).unwrap();
    assert_eq!(asked(&store), live);
    let next = event(3, 1_000, 0, &[], "profile");
    store.append(&next).unwrap();
    live.retain(|event| (event.kind, event.pubkey) != (0, next.pubkey));
    live.insert(0, next);
    assert_eq!(asked(&store), live);
    store.close().unwrap();
    assert_eq!(asked(&on.open(place.path().join("store"), Mode::Append).unwrap()), live);
}

/// A call failed while opening flagged the version whose successor had lost the flag for it. The dropped
/// handle emptied the log, and no later opening looked again: both versions counted for ever.
#[test]
fn an_opening_that_fails_leaves_it_to_the_next_to_flag_what_is_replaced() {
    let (mut states, mut failed) = (0, 0);
    for history in ["vcv", "acd"] {
        let mut run = Run::new(Durability::Manual, true);
        run.open().unwrap();
        let (first, last) = history.split_at(2);
        first.chars().for_each(|step| run.apply(step).unwrap());
        let before = run.known.clone();
        last.chars().for_each(|step| run.apply(step).unwrap());
        let known = Known::during(&before, &run.known);
        let on = |disk: &Sim| run.options.clone().storage(std::sync::Arc::new(disk.clone()));
        let crashes = run.disk.crashes();
        let choices = (0..1_000).map(|index| crashes.sample(mix(index)));
        let count =
            |store: &EventStore| store.iter(Include::Live, OnCorrupt::Skip).unwrap().count();
        // The new one is there, and nothing flags the old one.
        let lacks_flag = |choice: &Choice| {
            let disk = crashes.build(choice);
            let has_both = on(&disk).open(DIR, Mode::Read).is_ok_and(|store| count(&store) == 2);
            has_both && on(&disk).open(DIR, Mode::Append).unwrap().opening().flags_set_again == 0
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
    println!("{states} states, {failed} openings failed");
    assert!(states > 1 && failed > 100, "{states} states, {failed} openings failed");
}

/// With a smaller limit, events above it were damage: the store was called damaged, an index made
/// meanwhile did not have them, and they were stored twice.
#[test]
fn a_smaller_limit_is_for_new_events_alone() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("events");
    let on = Options::new().small(true).segment_bytes(10 * 4096);
    let small = on.clone().event_bytes_max(4096);
    let long = note(3);
    let store = on.open(&dir, Mode::Append).unwrap();
    store.append_many(&[note(1), note(2), long.clone()]).unwrap();
    store.close().unwrap();
    let stored = vec![note(1), note(2), long.clone()];
    let store = small.open(&dir, Mode::Append).unwrap();
    assert_eq!(store.reindex().unwrap(), 3);
    assert_eq!(all(&store), stored);
    assert!(store.verify(Check::Id).unwrap().is_ok());
    assert!(store.find(&long.id).unwrap().is_some());
    let error = store.append(&note(10)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    let first = store.find(&note(1).id).unwrap().unwrap().location;
    store.set_flags(first, Flags::DELETED).unwrap();
    assert_eq!(store.compact(0.0, false).unwrap().kept, 2);
    store.close().unwrap();
    let store = on.open(&dir, Mode::Append).unwrap();
    assert!(store.find(&long.id).unwrap().is_some());
    assert!(matches!(store.append(&long).unwrap(), Outcome::Duplicate(_)));
    assert_eq!(all(&store), stored[1..]);
}

/// The same of an event that the write-ahead log still has, and of a rescue.
#[test]
fn a_smaller_limit_leaves_what_the_log_has() {
    let disk = Sim::new();
    let on = |disk: &Sim| options(disk, Durability::Manual);
    let store = on(&disk).open(DIR, Mode::Append).unwrap();
    let stored = [note(1), note(2), note(3)];
    store.append_many(&stored).unwrap();
    store.commit().unwrap();
    let segment = &format!("{DIR}/data/segments/data.0.seg");
    for is_torn in [false, true] {
        let disk = disk.kill();
        if is_torn {
            changed(&disk, segment, |bytes| bytes.truncate(4 * 4096));
        }
        let small = on(&disk).event_bytes_max(4096);
        let report =
            salvage(Path::new(DIR), Path::new("/rescued"), &small, &mut |_, _| Ok(())).unwrap();
        assert_eq!((report.events, report.damages.len()), (3, usize::from(is_torn)), "{report:?}");
        assert_eq!(all(&small.open("/rescued", Mode::Append).unwrap()).len(), 3);
        let store = small.open(DIR, Mode::Append).unwrap();
        assert_eq!(store.opening().appended_again, u64::from(is_torn));
        assert_eq!(all(&store), stored);
    }
}

/// The header of a segment counted no event that came after the last checkpoint, and a process that was
/// killed counted none either: the segment passed for empty, grew beyond its size, and the counters
/// stayed wrong.
#[test]
fn events_that_no_checkpoint_counted_are_counted_by_the_next_opening() {
    let disk = Sim::new();
    let on = |disk: &Sim| options(disk, Durability::Manual);
    let store = on(&disk).open(DIR, Mode::Append).unwrap();
    (4..9).for_each(|number| assert!(store.append(&note(number)).unwrap().is_stored()));
    let disk = disk.kill();
    drop(store);
    let store = on(&disk).open(DIR, Mode::Append).unwrap();
    let Outcome::Stored(at) = store.append(&note(9)).unwrap() else { panic!() };
    assert_eq!(at.segment, 1);
    store.close().unwrap();
    let manifest = String::from_utf8(read(&disk, &format!("{DIR}/manifest.json"))).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest["total_records"], 6, "{manifest}");
    let segment = &format!("{DIR}/data/segments/data.0.seg");
    assert_eq!(read(&disk, segment)[20..24], 5u32.to_be_bytes());
    // As a process before left it.
    let disk = Sim::new();
    let store = on(&disk).open(DIR, Mode::Append).unwrap();
    (4..9).for_each(|number| assert!(store.append(&note(number)).unwrap().is_stored()));
    store.close().unwrap();
    changed(&disk, segment, |bytes| bytes[20..24].fill(0));
    let store = on(&disk).open(DIR, Mode::Append).unwrap();
    let Outcome::Stored(at) = store.append(&note(9)).unwrap() else { panic!() };
    assert_eq!(at.segment, 1);
}

/// Closing once more after a failure said that all was well.
#[test]
fn closing_that_failed_fails_again() {
    let disk = Sim::new();
    let on = options(&disk, Durability::Manual);
    let store = on.open(DIR, Mode::Append).unwrap();
    store.append(&note(1)).unwrap();
    disk.inject(Fault::once(1, What::Error(Io::Other)).of(Call::Sync));
    assert_eq!(store.close().unwrap_err().kind(), ErrorKind::Io);
    let again = store.close().unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Poisoned);
    assert!(again.message().contains("closing failed: "), "{again}");
    // The lock is free.
    disk.heal();
    let store = on.open(DIR, Mode::Append).unwrap();
    assert_eq!(all(&store), [note(1)]);
    store.close().unwrap();
    store.close().unwrap();
}
