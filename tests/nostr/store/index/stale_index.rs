//! Stores after a killed process, with an index in files that is older than the segments, damaged or missing. Queries
//! find the same events as scans.
#![cfg(unix)]

use crate::store::power::processes::{judge, start};
use crate::store::prelude::*;

fn index(store: &Path) -> PathBuf {
    store.join(".deedbook/events")
}

fn with_index(store: &Path, to: &Path, older: Option<&Path>) {
    if to.exists() {
        fs::remove_dir_all(to).unwrap();
    }
    copy(store, to);
    fs::remove_dir_all(index(to)).unwrap();
    if let Some(older) = older {
        copy(older, &index(to));
        vouch_for(&index(to));
    }
}

/// Each killed process leaves its index. A later process gets the index of an earlier process.
// Promise: store-index.
#[test]
fn old_or_missing_index_finds_the_scans_events() {
    let (place, dir) = on_real_disk();
    let (mut next, mut before, mut older) = (0, Vec::<PathBuf>::new(), 0);
    for cycle in 0..40 {
        if before.len() == 7 && next > 40 {
            break;
        }
        let role = ["append", "compact"][cycle % 2];
        let child = start(role, &dir, next);
        std::thread::sleep(Duration::from_micros(60_000 + mix(cycle as u64) % 120_000));
        next = killed(child).map_or(next, |end| end as u32);
        if !index(&dir).exists() {
            continue;
        }
        let trial = place.path().join("trial");
        with_index(&dir, &trial, None);
        judge(&trial, next, &format!("cycle {cycle}, no index"));
        for (number, kept) in before.iter().enumerate().rev().take(3) {
            with_index(&dir, &trial, Some(kept));
            judge(&trial, next, &format!("cycle {cycle}, the index of {number}"));
            older += 1;
        }
        let kept = place.path().join(format!("index-{cycle}"));
        copy(&index(&dir), &kept);
        before.push(kept);
        judge(&dir, next, &format!("cycle {cycle}"));
    }
    assert!(older > 8 && next > 40, "{older} older ones, {next} events");
}

/// A power cut lost a deletion from the log. The index, which syncs itself, still had the deletion, and queries gave
/// other events than scans.
#[test]
fn index_with_flags_lost_from_log_is_rebuilt() {
    let place = tempfile::tempdir().unwrap();
    let [dir, trial, log] = ["events", "trial", "log"].map(|name| place.path().join(name));
    let options = Options::default().durability(Durability::Manual);
    let store = options.open(&dir, Mode::Append).unwrap();
    store.append_many(&notes(0..5)).unwrap();
    store.checkpoint().unwrap();
    copy(&dir.join("wal"), &log);
    delete(&store, &note(2));
    assert_eq!(queried(&store), 4);
    with_index(&dir, &trial, Some(&index(&dir)));
    let store = options.open(&trial, Mode::Append).unwrap();
    assert_eq!((all(&store).len(), store.opening().indexed), (5, 0));
    assert_eq!(queried(&store), 4);
    drop(store);

    with_index(&dir, &trial, Some(&index(&dir)));
    fs::remove_dir_all(trial.join("wal")).unwrap();
    copy(&log, &trial.join("wal"));
    let store = options.open(&trial, Mode::Append).unwrap();
    assert_eq!((all(&store).len(), store.opening().indexed), (5, 5));
    assert_eq!(queried(&store), 5);
}
