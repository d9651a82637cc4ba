//! Real processes on the real disk, killed at random moments, with the index in files.
#![cfg(unix)]

use std::process::Child;

use crate::store::prelude::*;
use crate::support::report::number;

const FIRST: &str = "DEEDBOOK_FIRST";

fn open(dir: &Path) -> EventStore {
    let options = on_storage(Arc::new(Disk));
    // In nearly every run, a process begins new segments and log files.
    options.index_on_disk(true).checkpoint_bytes(64 << 10).open(dir, Mode::Append).unwrap()
}

pub fn start(role: &str, place: &Path, first: u32) -> Child {
    in_role("store::power::processes::child", role, place)
        .env(FIRST, first.to_string())
        .spawn()
        .unwrap()
}

/// Not a real test: the code that the child processes run.
#[test]
fn child() {
    let Some((role, place)) = role() else { return };
    let first: u32 = std::env::var(FIRST).unwrap().parse().unwrap();
    let (store, mut acknowledge) = (open(&place), std::io::stderr());
    let compacting = (role == "compact").then(|| {
        let store = store.clone();
        std::thread::spawn(move || {
            while store.compact(0.0, false).is_ok() {
                std::thread::sleep(Duration::from_millis(1));
            }
        })
    });
    for number in (first..).step_by(4) {
        let events: Vec<Event> = (number..number + 4).map(event_of).collect();
        // An event that the previous process had begun is a duplicate.
        let outcomes: Vec<Outcome> = match number % 8 {
            0 => events.iter().map(|event| store.append(event).unwrap()).collect(),
            _ => store.append_many(&events).unwrap(),
        };
        let there = |o: &Outcome| o.is_stored() || (number == first && is_duplicate(o));
        assert!(outcomes.iter().all(there), "{outcomes:?}");
        store.sync().unwrap();
        acknowledge.write_all(&u64::from(number + 4).to_le_bytes()).unwrap();
        assert!(!compacting.as_ref().is_some_and(|thread| thread.is_finished()));
    }
}

fn is_duplicate(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Duplicate(_))
}

/// Every fourth event is a version of a profile, which replaces the previous version.
fn event_of(number: u32) -> Event {
    match number % 4 {
        3 => event(9, number, 0, &[], &format!("profile {number}")),
        _ => note(number),
    }
}

/// Every committed event is there once, by its id and by a query, and only the newest of the profiles.
pub fn judge(place: &Path, end: u32, what: &str) {
    let store = open(place);
    let mut there = BTreeSet::new();
    for event in live(&store) {
        let number = match event.kind {
            0 => event.created_at,
            _ => event.content.split(' ').next().unwrap().parse().unwrap(),
        };
        assert!(event == event_of(number), "{what}: event {number} was changed");
        assert!(there.insert(number), "{what}: event {number} is there twice");
    }
    let next = there.last().map_or(0, |last| last + 1).max(end);
    assert!(next <= end + 4, "{what}: {next} after {end} were committed");
    let (versions, rest): (Vec<u32>, Vec<u32>) = there.iter().partition(|&number| number % 4 == 3);
    let lost = (0..end).filter(|number| number % 4 != 3).find(|number| !rest.contains(number));
    assert_eq!(lost, None, "{what}: an event is lost");
    assert!(versions.len() < 2, "{what}: versions {versions:?}");
    assert!(end < 4 || versions[0] >= end - 1, "{what}: the newest version is lost");
    for number in 0..next {
        let id = event_of(number).id;
        let found = store.find(&id).unwrap().map(|found| found.event.id);
        assert_eq!(found, there.contains(&number).then_some(id), "{what}: event {number} by id");
    }
    assert_eq!(queried(&store), there.len(), "{what}: a query");
    let report = store.verify(Check::Id).unwrap();
    assert!(report.ok(), "{what}: {report:?}");
}

/// Kill children in turn. Each continues after the last committed event.
fn cycles(role: &str) {
    let (_place, dir) = on_real_disk();
    let seed = number("DEEDBOOK_SEED", 1);
    let (mut next, mut lived) = (0, 0);
    let kills = of_tier("DEEDBOOK_NOSTR_KILLS");
    // On a busy machine some never reach their first append.
    let mut cycle = 0;
    while cycle < kills || ((lived < 3 || next <= 40) && cycle < 10 * kills) {
        let child = start(role, &dir, next);
        // Some are killed during their opening.
        let wait = 8_000 + mix(seed ^ cycle) % 150_000;
        std::thread::sleep(Duration::from_micros(wait));
        let end = killed(child).map_or(next, |end| end as u32);
        lived += u32::from(end > next);
        judge(&dir, end, &format!("{role}, seed {seed}, cycle {cycle}"));
        next = end;
        cycle += 1;
    }
    // Failures have panicked already.
    let json = format!("{{\"cycles\": {cycle}, \"events\": {next}, \"failures\": 0}}\n");
    report::write(&format!("store-kill-{role}"), &json);
    assert!(lived > 2 && next > 40, "no process lived long enough: {lived}, {next} events");
}

// Promise: store-kill.
#[test]
fn killed_appends_lose_nothing_committed() {
    cycles("append");
}

// Promise: store-kill.
#[test]
fn killed_compactions_neither_lose_nor_double_events() {
    cycles("compact");
}
