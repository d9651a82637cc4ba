//! Each file of a store as it is now, of an older moment, missing, or of another store, in all combinations with at
//! most one foreign file. (The index has its own tests: `foreign_index.rs`.)
//!
//! Such states showed in seconds that a salvage left out events that only the log had. The states of a store after a
//! process crash, without a manifest, showed a reader without the log's events, next to a `verify` without a fault.

use crate::store::prelude::*;

const FILES: [&str; 4] = [FIRST, MANIFEST, COPY, WAL];
const STATES: [&str; 4] = ["now", "older", "gone", "foreign"];

fn notes(name: &str, numbers: Range<u32>) -> Vec<Event> {
    numbers.map(|n| event(1, 1000 + n, 1, &[], &format!("{name} {n}"))).collect()
}

fn ids_of(store: &EventStore) -> BTreeSet<Id> {
    events(store).into_keys().collect()
}

#[test]
fn no_witness_is_believed_alone() {
    // The store was closed, or its process crashed after a commit: the log goes on after the manifest's checkpoint.
    for is_closed in [true, false] {
        each_state(is_closed);
    }
}

fn each_state(is_closed: bool) {
    let now = closed(&notes("own", 0..4));
    let older = FILES.map(|file| read(&now, file));
    let store = writer(&now);
    store.append_many(&notes("own", 4..8)).unwrap();
    store.sync().unwrap();
    let now = match is_closed {
        true => store.close().map(|()| now.kill()).unwrap(),
        false => now.kill(),
    };
    let foreign = closed(&notes("other", 0..4));
    append_and_close(&on(&foreign), &notes("other", 4..8));
    // The foreign store has another creation time.
    let mut foreign = FILES.map(|file| read(&foreign, file));
    foreign[0][15] ^= 1;
    let mut wrong = Vec::new();
    for number in 0..STATES.len().pow(4) {
        let state = [0, 1, 2, 3].map(|file| number / STATES.len().pow(file) % STATES.len());
        if state.iter().filter(|state| **state == 3).count() > 1 {
            continue;
        }
        let disk = now.kill();
        for (at, file) in FILES.iter().enumerate() {
            match state[at] {
                1 => write(&disk, file, &older[at]),
                2 => remove(&disk, file),
                3 => write(&disk, file, &foreign[at]),
                _ => {}
            }
        }
        // The intact events of the segment and the log.
        let has = |state: usize| [8, 4, 0, 0][state];
        let intact = has(state[0]).max(has(state[3]));
        let intact: BTreeSet<Id> =
            notes("own", 0..intact).into_iter().map(|event| event.id).collect();
        for why in judge(&disk, &intact) {
            let state = state.map(|state| STATES[state]);
            wrong.push(format!("{state:?}, closed {is_closed}: {why}"));
        }
    }
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
}

/// The wrong answers about a store with the given intact events.
fn judge(disk: &Sim, intact: &BTreeSet<Id>) -> Vec<String> {
    let mut wrong = Vec::new();
    let lacks = |ids: &BTreeSet<Id>| intact.difference(ids).count();
    let copy = disk.kill();
    let salvaged = on(&copy).salvage(Path::new(DIR), Path::new(COPY_DIR));
    let is_complete = match salvaged {
        Ok(report) => {
            let lost = lacks(&ids_of(&on(&copy).open(COPY_DIR, Mode::Read).unwrap()));
            if lost > 0 {
                wrong.push(format!("a salvage lacks {lost}: {report:?}"));
            }
            report.is_complete()
        }
        Err(error) if error.kind() == ErrorKind::Missing && intact.is_empty() => false,
        Err(error) => {
            wrong.push(format!("salvage: {error}"));
            false
        }
    };
    let (mut is_fine, mut is_read) = (false, false);
    if let Ok(reader) = on(disk).open(DIR, Mode::Read) {
        let report = reader.verify(Check::Id).unwrap();
        is_fine = report.ok() && !report.is_loss;
        is_read = true;
        let lost = lacks(&ids_of(&reader));
        if lost > 0 && is_fine {
            wrong.push(format!("a reader lacks {lost}, and verify finds nothing"));
        }
        for id in intact {
            if let Ok(Some(found)) = reader.find(id)
                && found.event.id != *id
            {
                wrong.push(format!("another event than {id}"));
            }
        }
    }
    if is_complete && is_read && !is_fine {
        wrong.push("a salvage is complete, and verify finds damage".into());
    }
    let repaired = disk.kill();
    if let Ok(store) = on(disk).open(DIR, Mode::Append) {
        let lost = lacks(&ids_of(&store));
        if lost > 0 && !store.opening().is_loss && store.opening().saved.is_empty() {
            wrong.push(format!("opening lacks {lost} and tells no loss"));
        }
    }
    if let Ok(report) = mended(&repaired, ALL) {
        match on(&repaired).open(DIR, Mode::Append) {
            Ok(store) => {
                let lost = lacks(&ids_of(&store));
                if lost > 0 && !store.opening().is_loss && report.saved.is_empty() {
                    wrong.push(format!("a repair lacks {lost} and tells no loss: {report:?}"));
                }
            }
            Err(error) => wrong.push(format!("opening after the repair: {error}")),
        }
    }
    wrong
}
