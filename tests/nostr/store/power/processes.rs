//! Real processes on the real disk, killed at random moments, with the index in files.
#![cfg(unix)]

use std::io::{Read, Write};
use std::process::Child;
use std::time::{Duration, Instant};

use crate::store::prelude::*;
use crate::support::common::{in_role, role};
use crate::support::report::number;

const FIRST: &str = "DEEDBOOK_FIRST";

pub fn open(dir: &Path) -> EventStore {
    let options = on_storage(Arc::new(Disk));
    // Nearly every life of a process begins segments and files of the log.
    options.index_on_disk(true).checkpoint_bytes(64 << 10).open(dir, Mode::Append).unwrap()
}

/// This test binary once more, in a role.
pub fn start(role: &str, place: &Path, first: u32) -> Child {
    in_role("store::power::processes::child", role, place)
        .env(FIRST, first.to_string())
        .spawn()
        .unwrap()
}

/// Not a test of its own: what the children run.
#[test]
fn child() {
    let Some((role, place)) = role() else { return };
    let first: u32 = std::env::var(FIRST).unwrap().parse().unwrap();
    if role == "steps" {
        let store = open(&place);
        eprintln!("ack 0");
        store.compact(0.0, false).unwrap();
        eprintln!("ack 1");
        return;
    }
    let (store, mut acknowledge) = (open(&place), std::io::stderr());
    for number in (first..).step_by(4) {
        let events: Vec<Event> = (number..number + 4).map(event_of).collect();
        // What the process before had begun is a duplicate.
        let outcomes: Vec<Outcome> = match number % 8 {
            0 => events.iter().map(|event| store.append(event).unwrap()).collect(),
            _ => store.append_many(&events).unwrap(),
        };
        let there = |o: &Outcome| o.is_stored() || (number == first && is_duplicate(o));
        assert!(outcomes.iter().all(there), "{outcomes:?}");
        store.commit().unwrap();
        acknowledge.write_all(format!("ack {}\n", number + 4).as_bytes()).unwrap();
        if role == "compact" && number % 12 == 0 {
            store.compact(0.0, false).unwrap();
        }
    }
}

fn is_duplicate(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Duplicate(_))
}

/// Every fourth is a version of a profile, which replaces the one before.
fn event_of(number: u32) -> Event {
    match number % 4 {
        3 => event(9, number, 0, &[], &format!("profile {number}")),
        _ => note(number),
    }
}

/// Kill it; the number before which all events were committed.
pub fn kill(mut child: Child, first: u32) -> u32 {
    child.kill().unwrap();
    let mut bytes = Vec::new();
    child.stderr.take().unwrap().read_to_end(&mut bytes).unwrap();
    child.wait().unwrap();
    let text = String::from_utf8_lossy(&bytes);
    assert!(!text.contains("panicked"), "{text}");
    // The last line may be torn.
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let last = whole.lines().filter_map(|line| line.strip_prefix("ack ")).next_back();
    last.map_or(first, |last| last.parse().unwrap())
}

/// All that was committed is there once, and is found by its id and by a query, and of the profiles
/// the newest.
pub fn judge(place: &Path, end: u32, what: &str) {
    let store = open(place);
    let mut there: BTreeMap<u32, u32> = BTreeMap::new();
    for found in store.iter(Include::Live, OnCorrupt::Raise).unwrap() {
        let event = found.unwrap().event;
        let number = match event.kind {
            0 => event.created_at,
            _ => event.content.split(' ').next().unwrap().parse().unwrap(),
        };
        assert!(event == event_of(number), "{what}: event {number} was changed");
        *there.entry(number).or_default() += 1;
    }
    let twice = there.iter().find(|(_, times)| **times > 1);
    assert_eq!(twice, None, "{what}: twice");
    let next = there.keys().next_back().map_or(0, |last| last + 1).max(end);
    assert!(next <= end + 4, "{what}: {next} after {end} were committed");
    for number in (0..end).filter(|number| number % 4 != 3) {
        assert!(there.contains_key(&number), "{what}: event {number} is lost");
    }
    let profiles: Vec<u32> = there.keys().copied().filter(|number| number % 4 == 3).collect();
    let newest = (0..next).rev().find(|number| there.contains_key(number) && number % 4 == 3);
    assert_eq!(profiles, Vec::from_iter(newest), "{what}: versions");
    assert!(end < 4 || newest >= Some(end - 1), "{what}: the newest version is lost");
    for number in 0..next {
        let id = event_of(number).id;
        let found = store.find(&id).unwrap().map(|found| found.event.id);
        assert_eq!(
            found,
            there.contains_key(&number).then_some(id),
            "{what}: event {number} by id"
        );
    }
    let queried = store.query(&[Filter::default()]).unwrap();
    assert_eq!(queried.count(), there.len(), "{what}: a query");
    let report = store.verify(Check::Id).unwrap();
    assert!(report.is_ok(), "{what}: {report:?}");
}

/// Children killed one after the other, each of which goes on where the one before was killed.
fn cycles(role: &str) {
    let (_place, dir) = on_real_disk();
    let seed = number("DEEDBOOK_SEED", 1);
    let (mut next, mut lived, begun) = (0, 0, Instant::now());
    let kills = of_tier("DEEDBOOK_NOSTR_KILLS");
    // On a busy machine some never get to their first append.
    let mut cycle = 0;
    while cycle < kills || (lived < 3 && cycle < 10 * kills) {
        let child = start(role, &dir, next);
        // Some while it opens.
        let wait = 8_000 + mix(seed ^ cycle) % 150_000;
        std::thread::sleep(Duration::from_micros(wait));
        let end = kill(child, next);
        lived += u32::from(end > next);
        judge(&dir, end, &format!("{role}, seed {seed}, cycle {cycle}"));
        next = end;
        cycle += 1;
    }
    println!("{cycle} killed, {next} events, {:.1} s", begun.elapsed().as_secs_f32());
    // What went wrong has panicked.
    let json = format!("{{\"cycles\": {cycle}, \"events\": {next}, \"failures\": 0}}\n");
    report::write(&format!("store-kill-{role}"), &json);
    assert!(lived > 2 && next > 40, "no process lived long enough: {lived}, {next} events");
}

// Promise: store-kill.
#[test]
fn a_process_killed_at_any_moment_of_its_appends_loses_nothing_committed() {
    cycles("append");
}

// Promise: store-kill.
#[test]
fn a_process_killed_at_any_moment_of_compacting_loses_nothing_and_doubles_nothing() {
    cycles("compact");
}

/// A compaction that was killed began again from its start each time: a process that never lived long
/// enough for all of it dropped nothing. What was done is kept now, and the next one does the rest.
#[test]
fn a_compaction_that_is_killed_again_and_again_comes_to_its_end() {
    let (_place, dir) = on_real_disk();
    let store = open(&dir);
    let notes: Vec<Event> = (0..1_500).map(note).collect();
    notes.chunks(20).for_each(|notes| drop(store.append_many(notes).unwrap()));
    let (mut gone, mut left) = (Vec::new(), Vec::new());
    for (number, note) in notes.into_iter().enumerate() {
        if number % 3 == 0 { gone.push(note) } else { left.push(note) }
    }
    for note in &gone {
        delete(&store, note);
    }
    store.close().unwrap();
    let segments = fs::read_dir(dir.join("data/segments")).unwrap().count();
    assert!(segments > 20, "{segments} segments");
    let (mut interrupted, mut progressed, mut steps) = (0, 0, 0);
    let mut dead = gone.len();
    for cycle in 0.. {
        let mut child = start("steps", &dir, 0);
        std::thread::sleep(Duration::from_micros(5_000 + mix(cycle) % 60_000 + cycle * 5_000));
        let done = child.try_wait().unwrap().is_some_and(|status| status.success());
        kill(child, 0);
        let store = open(&dir);
        let found = all(&store);
        let mut ids: Vec<_> = found.iter().map(|event| event.id).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), found.len(), "cycle {cycle}: an event is there twice");
        assert!(left.iter().all(|event| ids.binary_search(&event.id).is_ok()), "cycle {cycle}");
        let live = queried(&store);
        assert_eq!(live, left.len(), "cycle {cycle}");
        let now = found.len() - left.len();
        assert!(now <= dead, "cycle {cycle}: {now} dropped events, {dead} before");
        interrupted += u32::from(!store.opening().removed.is_empty());
        progressed += u32::from(now < dead && now > 0);
        steps += u32::from(now < dead);
        dead = now;
        store.close().unwrap();
        if done || dead == 0 {
            break;
        }
    }
    assert_eq!(dead, 0);
    println!("{steps} steps, {progressed} kept after a kill, {interrupted} interrupted");
    let report = open(&dir).compact(0.0, false).unwrap();
    assert!(report.segments.is_empty(), "{report:?}");
}

/// As many new segments as are needed, in steps of a few; each event once, in the order of before.
#[test]
fn a_compaction_writes_several_segments() {
    let (_place, dir) = on_real_disk();
    let store = open(&dir);
    let notes = notes(0..800);
    notes.chunks(20).for_each(|notes| drop(store.append_many(notes).unwrap()));
    for note in notes.iter().step_by(10) {
        delete(&store, note);
    }
    let report = store.compact(0.0, false).unwrap();
    assert!(report.segments.len() > 10 && report.written.len() > 10, "{report:?}");
    assert!(report.bytes_after < report.bytes_before);
    let left: Vec<Event> =
        notes.iter().enumerate().filter(|(n, _)| n % 10 != 0).map(|(_, e)| e.clone()).collect();
    for reopened in [false, true] {
        let store = if reopened {
            store.close().unwrap();
            open(&dir)
        } else {
            store.clone()
        };
        let walk = store.iter(Include::All, OnCorrupt::Raise).unwrap();
        let found: Vec<Event> = walk.map(|found| found.unwrap().event).collect();
        assert!(found == left, "{} events, of {}", found.len(), left.len());
    }
}
