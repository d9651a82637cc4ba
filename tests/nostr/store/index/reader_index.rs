//! A reader's copy of the writer's index gives the answers of a scan: next to a writer, after kills and with damage.
#![cfg(unix)]

use crate::store::power::processes::start;
use crate::store::prelude::*;

fn writer(dir: &Path) -> EventStore {
    on_storage(Arc::new(Disk)).index_on_disk(true).open(dir, Mode::Append).unwrap()
}

fn reader(dir: &Path, has_index: bool) -> EventStore {
    on_storage(Arc::new(Disk)).index_on_disk(has_index).open(dir, Mode::Read).unwrap()
}

fn copies(dir: &Path) -> usize {
    let names =
        fs::read_dir(dir.join(".deedbook")).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_str().unwrap().starts_with("events.reader-")).count()
}

const FILTERS: [&str; 6] = [
    "{}",
    r#"{"kinds": [1], "limit": 20}"#,
    r#"{"kinds": [0, 5]}"#,
    r##"{"#t": ["note"], "since": 1700000010, "until": 1700000040}"##,
    r#"[{"kinds": [1], "limit": 3}, {"kinds": [5]}]"#,
    r#"{"kinds": [9]}"#,
];

fn answers_like_a_scan(reader: &EventStore, scanning: &EventStore) {
    for filter in FILTERS {
        assert_eq!(found(reader, filter), found(scanning, filter), "{filter}");
    }
    for event in notes(0..80) {
        let by_id = |store: &EventStore| store.find(&event.id).unwrap().map(|found| found.event);
        assert_eq!(by_id(reader), by_id(scanning));
    }
}

// Promise: store-index.
#[test]
fn readers_index_answers_like_a_scan_beside_writer() {
    let (_place, dir) = on_real_disk();
    let store = writer(&dir);
    one_by_one(&store, &notes(0..60));
    store.append(&event(9, 1, 0, &[], "profile")).unwrap();
    (0..60).step_by(7).for_each(|number| delete(&store, &note(number)));
    // A query gives these events to the index, and the next events wait.
    assert_eq!(queried(&store), 52);
    one_by_one(&store, &notes(60..65));
    store.sync().unwrap();
    let (with, without) = (reader(&dir, true), reader(&dir, false));
    answers_like_a_scan(&with, &without);
    assert_eq!((copies(&dir), found(&with, "{}").len()), (1, 57));
    // Later events do not count, and neither do events that the writer deletes.
    one_by_one(&store, &notes(65..70));
    delete(&store, &note(1));
    store.sync().unwrap();
    answers_like_a_scan(&with, &without);
    let (later, scanning) = (reader(&dir, true), reader(&dir, false));
    assert_eq!(found(&later, "{}").len(), 61);
    answers_like_a_scan(&later, &scanning);
    assert_eq!(copies(&dir), 2);
    later.close().unwrap();
    drop(with);
    assert_eq!(copies(&dir), 0);
    store.close().unwrap();
    let closed = reader(&dir, true);
    answers_like_a_scan(&closed, &reader(&dir, false));
    assert_eq!(copies(&dir), 1);
}

#[test]
fn reader_of_an_earlier_state_scans_after_compaction() {
    let (_place, dir) = on_real_disk();
    let store = writer(&dir);
    one_by_one(&store, &notes(0..60));
    delete(&store, &note(3));
    store.checkpoint().unwrap();
    let (with, without) = (reader(&dir, true), reader(&dir, false));
    store.compact(0.0, false).unwrap();
    answers_like_a_scan(&with, &without);
    assert_eq!((copies(&dir), found(&with, "{}").len()), (0, 59));
    let (with, without) = (reader(&dir, true), reader(&dir, false));
    answers_like_a_scan(&with, &without);
    assert_eq!((copies(&dir), found(&with, "{}").len()), (1, 59));
}

/// An event with many keys for the index, which soon flushes tables.
fn many_keys(number: u32) -> Event {
    let values: Vec<String> =
        (0..100).map(|tag| format!("{number} {tag} {}", "x".repeat(150))).collect();
    let tags: Vec<[&str; 2]> = values.iter().map(|value| ["t", value.as_str()]).collect();
    let tags: Vec<&[&str]> = tags.iter().map(|tag| &tag[..]).collect();
    event(1, number, 1, &tags, "")
}

/// The index kept its coverage until the last move: an earlier reader missed the moved events.
#[test]
fn readers_scan_while_the_index_gets_moves() {
    let (_place, dir) = on_real_disk();
    let on = on_storage(Arc::new(Disk)).index_on_disk(true).segment_bytes(400 * 4096);
    let store = on.open(&dir, Mode::Append).unwrap();
    one_by_one(&store, &notes(0..400));
    (0..400).step_by(4).for_each(|number| delete(&store, &note(number)));
    store.checkpoint().unwrap();
    let first = walked(&store, Include::All)[0].location.segment;
    let earlier = [true, false].map(|has_index| reader(&dir, has_index));
    let mut looks = 0;
    let mut look = |_, _| {
        if walked(&store, Include::Live)[0].location.segment > first && looks < 2 {
            looks += 1;
            // One portion of the moves is in the index, and then two.
            if looks == 2 {
                answers_like_a_scan(&earlier[0], &earlier[1]);
                answers_like_a_scan(&reader(&dir, true), &reader(&dir, false));
                assert_eq!((found(&earlier[0], "{}").len(), copies(&dir)), (300, 0));
            }
        }
        Ok(())
    };
    store.compact_with(0.0, false, &mut look).unwrap();
    assert_eq!(looks, 2);
}

#[test]
fn readers_get_whole_indexes_while_a_writer_writes() {
    let (_place, dir) = on_real_disk();
    // The log is ahead of the segments, and many segments begin.
    let on = on_storage(Arc::new(Disk)).index_on_disk(true).segment_bytes(40 * 4096);
    let store = on.open(&dir, Mode::Append).unwrap();
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            for number in 0..1_200 {
                store.append(&many_keys(number)).unwrap();
                if number % 5 == 0 {
                    found(&store, r#"{"limit": 1}"#);
                }
            }
        });
        let (mut readers, mut with_index) = (0, 0);
        while !writing.is_finished() {
            let reader = reader(&dir, true);
            let times = |events: Vec<Event>| {
                events.iter().map(|event| event.created_at).collect::<Vec<_>>()
            };
            let mut by_index = times(found(&reader, "{}"));
            by_index.reverse();
            let scanned = times(sorted(&reader));
            let lacks: Vec<_> = scanned.iter().filter(|at| !by_index.contains(at)).collect();
            assert!(
                by_index == scanned,
                "{lacks:?} of {}; {} by index",
                scanned.len(),
                by_index.len()
            );
            with_index += copies(&dir);
            readers += 1;
        }
        assert!(with_index > 5, "{with_index} of {readers} readers had an index");
    });
}

#[test]
fn copies_of_killed_readers_are_removed() {
    let (_place, dir) = on_real_disk();
    let store = writer(&dir);
    one_by_one(&store, &notes(0..10));
    store.close().unwrap();
    let left = dir.join(".deedbook/events.reader-1-0");
    fs::create_dir_all(left.join("keyspaces")).unwrap();
    fs::write(left.join("keyspaces/table"), "left").unwrap();
    let outside = dir.with_extension("outside");
    fs::create_dir_all(outside.join("keyspaces")).unwrap();
    std::os::unix::fs::symlink(&outside, dir.join(".deedbook/events.reader-1-1")).unwrap();
    let reader = reader(&dir, true);
    assert_eq!((found(&reader, "{}").len(), copies(&dir)), (10, 2));
    assert!(!left.exists() && outside.join("keyspaces").exists());
}

/// The index of a killed writer fits the log, which the reader reads, too.
#[test]
fn readers_after_killed_writers_answer_like_a_scan() {
    let (_place, dir) = on_real_disk();
    let (mut next, mut lived) = (0, 0);
    // On a busy machine some never reach their first append.
    for cycle in 0..40 {
        if lived == 4 {
            break;
        }
        let child = start("append", &dir, next);
        std::thread::sleep(std::time::Duration::from_millis(100 + 20 * cycle));
        let Some(end) = killed(child) else { continue };
        (next, lived) = (end as u32, lived + 1);
        let (with, without) = (reader(&dir, true), reader(&dir, false));
        answers_like_a_scan(&with, &without);
    }
    assert!(lived == 4, "{lived} of 40 processes wrote");
}

/// A power cut took the end of the log, by which the index had hidden an event.
#[test]
fn index_ahead_of_the_log_is_not_used() {
    let place = tempfile::tempdir().unwrap();
    let [dir, log] = ["events", "log"].map(|name| place.path().join(name));
    let store = writer(&dir);
    one_by_one(&store, &notes(0..5));
    store.checkpoint().unwrap();
    copy(&dir.join("wal"), &log);
    delete(&store, &note(2));
    assert_eq!(queried(&store), 4);
    fs::remove_dir_all(dir.join("wal")).unwrap();
    copy(&log, &dir.join("wal"));
    assert_eq!((found(&reader(&dir, true), "{}").len(), copies(&dir)), (5, 0));
}

#[test]
fn damaged_or_missing_index_makes_readers_scan() {
    let (_place, dir) = on_real_disk();
    let store = writer(&dir);
    one_by_one(&store, &notes(0..10));
    store.close().unwrap();
    let index = dir.join(".deedbook/events");
    fs::write(index.join("keyspaces/1/current"), "no version").unwrap();
    assert_eq!((found(&reader(&dir, true), "{}").len(), copies(&dir)), (10, 0));
    fs::remove_dir_all(&index).unwrap();
    assert_eq!((found(&reader(&dir, true), "{}").len(), copies(&dir)), (10, 0));
}
