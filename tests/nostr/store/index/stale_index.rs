//! Stores after a killed process, with an index in files that is older than the segments, damaged or missing. Queries
//! find the same events as scans.
#![cfg(unix)]

use std::time::Duration;

use crate::store::power::processes::{judge, kill, open, start};
use crate::store::prelude::*;
use crate::support::common::index_files::vouch_for;

fn index(store: &Path) -> PathBuf {
    store.join(".deedbook/events")
}

/// Copy a store elsewhere, with another index.
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
        next = kill(child, next);
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

/// Opening remakes an index that reports damage, or a query fails and the caller remakes the index. No query gives
/// other events than a scan.
// Promise: store-index.
#[test]
fn damaged_index_finds_scans_events_or_is_rebuilt() {
    let (place, dir) = on_real_disk();
    let mut next = 0;
    for cycle in 0..40 {
        let child = start("append", &dir, next);
        std::thread::sleep(Duration::from_millis(150 + 20 * cycle));
        next = kill(child, next);
        if next > 40 {
            break;
        }
    }
    assert!(next > 8, "{next} events");
    let (trial, mut sound, mut errors) = (place.path().join("trial"), 0, 0);
    for (number, file) in files_below(&index(&dir)).iter().enumerate() {
        let whole = fs::read(file).unwrap();
        let name = file.strip_prefix(&dir).unwrap();
        for which in 0..4 {
            with_index(&dir, &trial, Some(&index(&dir)));
            let mut bytes = whole.clone();
            let at = mix(number as u64 ^ which) as usize % bytes.len().max(1);
            match which {
                0 => bytes.truncate(at),
                _ => bytes.get_mut(at).into_iter().for_each(|byte| *byte ^= 0x20),
            }
            fs::write(trial.join(name), bytes).unwrap();
            let what = format!("{}, {which} at byte {at}", name.display());
            if is_sound(&trial) {
                sound += 1;
            } else {
                errors += 1;
                fs::remove_dir_all(index(&trial)).unwrap();
            }
            judge(&trial, next, &what);
        }
    }
    assert!(sound > 8, "{sound} sound, {errors} errors");
}

/// Whether a store with a possibly damaged index opens and finds events. If not, the error reports the damage and how
/// to make the index again.
fn is_sound(store: &Path) -> bool {
    let opened = std::panic::catch_unwind(|| open(store));
    let Ok(store) = opened else { return false };
    let found = store.query(&[Filter::default()]);
    if let Err(error) = &found {
        assert!([ErrorKind::Corrupt, ErrorKind::Io].contains(&error.kind()), "{error:?}");
    }
    found.is_ok()
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
