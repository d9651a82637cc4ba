//! A reader hides events by the write-ahead log's flags before the segments have the flags.

use crate::store::prelude::*;
use crate::support::store::events;

fn on(disk: &Sim) -> Options {
    options(disk, Durability::Manual)
        .segment_bytes(40 * PAGE as u64)
        .wal_segment_bytes(64 << 10)
        .checkpoint_bytes(256 << 10)
}

fn made() -> (Sim, EventStore) {
    let disk = Sim::new();
    let store = open(&on(&disk));
    (disk, store)
}

fn read(disk: &Sim) -> Vec<Event> {
    let reader = on(disk).open(DIR, Mode::Read).unwrap();
    let found = everything(&reader).into_iter().filter(|found| found.flags.is_live());
    found.map(|found| found.event).collect()
}

fn profile(at: u32) -> Event {
    event(9, at, 0, &[], &format!("profile {at} {}", "long ".repeat(at as usize * 900)))
}

fn gone(number: u32) -> Event {
    request(number_of(&note(number).pubkey), 1_800_000_000, &note(number))
}

/// The log had a new version and a deletion request, both long durable, but a new reader still returned the old version
/// and the deleted note: the segments got the flags with the writer's next call. If the writer crashed, the state
/// stayed until the next opening for writing.
#[test]
fn logged_flags_hide_events_from_a_new_reader() {
    let (disk, store) = made();
    store.append_many(&[profile(1), note(1), note(2), note(4), note(5)]).unwrap();
    store.sync().unwrap();
    for event in [profile(2), gone(1), profile(3), gone(2), gone(4)] {
        stored(&store, &event);
    }
    let left = [note(5), gone(1), profile(3), gone(2), gone(4)];
    assert_eq!(live(&store), left);
    assert_eq!(read(&disk), left);
    let killed = disk.kill();
    assert_eq!(read(&killed), left);
    let next = on(&killed).open(DIR, Mode::Append).unwrap();
    assert_eq!((live(&next), read(&killed)), (left.to_vec(), left.to_vec()));
    // An open reader hides later deleted events after the writer's commit.
    let reader = on(&disk).open(DIR, Mode::Read).unwrap();
    store.append(&gone(5)).unwrap();
    assert_eq!(live(&reader), left);
    store.sync().unwrap();
    assert_eq!(live(&reader), left[1..]);
    store.close().unwrap();
    assert_eq!(read(&disk), [&left[1..], &[gone(5)]].concat());
}

/// The log had the flags, but the segment did not have the new version, or lost it in a power cut. A reader returns the
/// new version from the log. Without a manifest to match the log with the segment, a reader returns the old version.
#[test]
fn reader_returns_one_version_before_segment_has_both() {
    let (disk, store) = made();
    store.append_many(&[profile(1), note(1), note(2)]).unwrap();
    store.checkpoint().unwrap();
    store.append(&gone(1)).unwrap();
    let before = events::read(&disk, FIRST).len();
    store.append(&profile(2)).unwrap();
    store.append(&gone(2)).unwrap();
    assert_eq!(read(&disk), [gone(1), profile(2), gone(2)]);
    let without_profile = [profile(1), note(2), gone(1)];
    let without_request = [profile(1), note(1), note(2)];
    for (end, left) in [(before, without_profile), (before - PAGE, without_request)] {
        let image = disk.kill();
        changed(&image, FIRST, |bytes| bytes.truncate(end));
        let new = [gone(1), profile(2), gone(2)];
        assert_eq!(read(&image), new, "the segment ends at {end}");
        remove_manifests(&image);
        assert_eq!(read(&image), left, "the segment ends at {end}, without manifest");
    }
}

/// The log's last flags count, and flags that no longer hide an event are the segment's.
#[test]
fn removed_flags_hide_nothing_from_a_reader() {
    let (disk, store) = made();
    let notes: Vec<Event> = [1, 2, 4, 5, 6].map(note).to_vec();
    store.append_many(&notes).unwrap();
    store.sync().unwrap();
    let set = |note: &Event, flags| {
        let all = walked(&store, Include::All);
        let found = all.iter().find(|found| found.event == *note).unwrap();
        store.set_flags(found.location, flags).unwrap();
    };
    notes.iter().for_each(|note| set(note, Flags::DELETED));
    assert_eq!(read(&disk), []);
    set(&notes[1], Flags::default());
    assert_eq!(read(&disk), notes[1..2]);
    store.append(&note(8)).unwrap();
    set(&notes[1], Flags::REPLACED);
    assert_eq!(read(&disk), [note(8)]);
    set(&notes[3], Flags::default());
    store.sync().unwrap();
    assert_eq!(read(&disk), [notes[3].clone(), note(8)]);
}

/// A reader opens with a damaged or missing log, and reads the intact part. The end of a torn log gives the end of the
/// segments: later events were never acknowledged.
#[test]
fn reader_opens_with_any_damage_in_the_log() {
    let (disk, store) = made();
    store.append_many(&[note(1), note(2)]).unwrap();
    store.sync().unwrap();
    store.append(&gone(1)).unwrap();
    store.append(&gone(2)).unwrap();
    let used = last_byte(&events::read(&disk, WAL)) + 1;
    let mut hidden = [0; 3];
    for at in (0..used).rev().step_by(7) {
        let (torn, flipped) = (disk.kill(), disk.kill());
        changed(&torn, WAL, |bytes| bytes.truncate(at));
        changed(&flipped, WAL, |bytes| bytes[at] ^= 0x10);
        for image in [torn, flipped] {
            let found = read(&image);
            let has = |event: &Event| found.contains(event);
            assert!(has(&gone(1)) || !has(&gone(2)), "byte {at}");
            for number in [1, 2] {
                assert!(has(&note(number)) || has(&gone(number)), "byte {at}, note {number}");
            }
            hidden[4 - found.len()] += 1;
        }
    }
    assert!(hidden.iter().all(|&count| count > 0), "{hidden:?}");
    let missing = disk.kill();
    remove(&missing, WAL);
    assert_eq!(live(&on(&missing).open(DIR, Mode::Read).unwrap()).len(), 4);
}

/// Each part reads the log at most twice, with the pages of the log's events.
#[test]
fn each_part_reads_the_current_log() {
    let disk = Sim::new();
    let on = on(&disk).segment_bytes(8 << 20).wal_segment_bytes(8 << 20).checkpoint_bytes(16 << 20);
    let store = open(&on);
    let long = |number| event(1, number, 1, &[], &"long ".repeat(1_800));
    let notes: Vec<Event> = (0..200).map(long).collect();
    store.append_many(&notes).unwrap();
    let delete = |number: u32| {
        store.append(&request(1, 500 + number, &notes[number as usize])).unwrap();
        store.sync().unwrap();
    };
    delete(1);
    let (storage, counts) = counting(&disk);
    let on = on.storage(storage);
    let parts = store.splits(10 * 3 * PAGE as u64).unwrap();
    let look = |number: usize| {
        let before = counts[1].load(Ordering::Relaxed);
        let found = part(&parts[number], &on, Include::Live);
        (found, counts[1].load(Ordering::Relaxed) - before)
    };
    let log = 200 * 12_288;
    let (found, bytes) = look(0);
    assert_eq!((found.len(), found.contains(&notes[1])), (9, false));
    assert!(bytes < log * 7 / 2, "{bytes}");
    for number in [1, 2] {
        assert_eq!(look(number).0, notes[number * 10..(number + 1) * 10]);
    }
    // A part sees every entry logged before its read.
    delete(31);
    let (found, _) = look(3);
    assert_eq!((found.len(), found.contains(&notes[31])), (9, false));
    assert!(!look(0).0.contains(&notes[1]));
}

/// The log has the flags after the last event of the same append. If the process crashed with only some of these events
/// in the segment, a reader returns the others from the log. Without a manifest to match the log with the segment, a
/// reader returns both versions, and the next opening for writing keeps one.
#[test]
fn reader_returns_one_version_during_a_partial_append() {
    let (disk, store) = made();
    store.append_many(&[profile(1), note(1)]).unwrap();
    store.checkpoint().unwrap();
    store.append_many(&[profile(2), note(2), note(4)]).unwrap();
    let image = disk.kill();
    changed(&image, FIRST, |bytes| bytes.truncate(last_byte(bytes) / PAGE * PAGE));
    let left = [note(1), profile(2), note(2), note(4)];
    assert_eq!(read(&image), left);
    let unknown = image.kill();
    remove_manifests(&unknown);
    assert_eq!(read(&unknown), [profile(1), note(1), profile(2), note(2)]);
    let next = on(&image).open(DIR, Mode::Append).unwrap();
    assert_eq!((live(&next), read(&image)), (left.to_vec(), left.to_vec()));
}
