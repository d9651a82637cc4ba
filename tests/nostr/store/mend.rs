//! Repairs and salvages of damaged stores, crashed at every storage call and struck by faults.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind as Io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use deedbook::nostr::{
    Check, EventStore, Filter, Flags, Id, Include, Location, StoreSalvage, salvage,
};
use deedbook::storage::sim::{Call, Fault, Sim, What};
use deedbook::storage::{Access, Storage};
use deedbook::{Error, ErrorKind, Mode, OnCorrupt, Repair};

use crate::store::rescue::{
    ACCEPT, ALL, COPY_DIR, DRY, Events, PAGE, PLAIN, disk_remove, events, ids, listed, logs,
    mended, on, open, remove_log, segment, world,
};
use crate::support::report::{self, of_tier};
use crate::support::store::events::{changed, mix, note, read};
use crate::support::store::world::DIR;

/// Of a file of the write-ahead log.
const HEADER_BYTES: usize = 24;

type Outcome<T = ()> = Result<T, String>;

/// A damaged store, and what a repair makes of it.
pub struct Damaged {
    pub name: &'static str,
    pub disk: Sim,
    /// What the repair may do.
    may: Repair,
    /// The events after it.
    pub left: Events,
    /// Those of them that a power cut cannot take together with the damage: of one whose page only the
    /// cache has, the damaged log may have had the only copy.
    pub safe: BTreeSet<Id>,
    pub is_loss: bool,
    /// Bytes that it cuts: they are in a file beside.
    cut: Vec<Vec<u8>>,
}

impl Damaged {
    /// Mend a copy without any fault, and see that no more is lost than the damage took.
    fn new(name: &'static str, disk: Sim, may: Repair, all: &Events, lost: &[Id]) -> Self {
        let calm = disk.kill();
        let dry = mended(&calm, DRY).unwrap();
        let report = mended(&calm, may).unwrap_or_else(|e| panic!("{name}: {e:?}"));
        assert!(report.mended && report.is_loss == dry.is_loss, "{name}: {report:?}");
        let left = events(&open(&calm));
        // A segment that is written again keeps what counts.
        let counts =
            |(id, (_, flags)): &(&Id, &(_, Flags))| flags.is_live() && !left.contains_key(id);
        let gone: Vec<Id> = all.iter().filter(counts).map(|(id, _)| *id).collect();
        assert_eq!(gone, lost, "{name}");
        let crashes = disk.crashes();
        let worst = crashes.build(&crashes.nth(0));
        copied(&worst, COPY_DIR).unwrap();
        let copy = events(&on(&worst).open(COPY_DIR, Mode::Append).unwrap());
        let safe: BTreeSet<Id> = left.keys().filter(|id| copy.contains_key(id)).copied().collect();
        assert!(safe.len() + 1 >= left.len(), "{name}: {} of {}", safe.len(), left.len());
        let cut = saved(&calm);
        assert!(cut.is_empty() == report.saved.is_empty(), "{name}: {report:?}");
        Self { name, disk, may, left, safe, is_loss: report.is_loss, cut }
    }
}

pub fn copied(disk: &Sim, to: &str) -> Result<StoreSalvage, Error> {
    salvage(Path::new(DIR), Path::new(to), &on(disk), &mut |_, _| Ok(()))
}

/// The content of the files that hold what was cut off.
fn saved(disk: &Sim) -> Vec<Vec<u8>> {
    let files = listed(disk, Path::new(DIR)).into_iter();
    files.filter(|(path, _)| is_cut(path)).map(|(_, bytes)| bytes).collect()
}

/// Whether a file holds what was cut off another one.
pub fn is_cut(path: &Path) -> bool {
    path.to_string_lossy().contains(".cut-")
}

/// Have nothing that a power cut could take.
fn settle(disk: &Sim, dir: &Path) {
    for name in disk.list(dir).unwrap() {
        let path = dir.join(&name);
        match disk.is_dir(&path) {
            true => settle(disk, &path),
            false => disk.open(&path, Access::Write).unwrap().sync_data().unwrap(),
        }
    }
    disk.sync_dir(dir).unwrap();
}

/// Change a file, durably, and no other one.
fn damage(disk: &Sim, path: &str, change: impl FnOnce(&mut Vec<u8>)) {
    changed(disk, path, change);
    disk.open(Path::new(path), Access::Write).unwrap().sync_data().unwrap();
    disk.sync_dir(Path::new(path).parent().unwrap()).unwrap();
}

fn settled() -> (Sim, Events) {
    let (disk, all) = world();
    settle(&disk, Path::new("/"));
    (disk, all)
}

/// The last byte of a log that was written.
fn used(disk: &Sim, log: &str) -> usize {
    read(disk, log).iter().rposition(|&byte| byte != 0).unwrap()
}

fn event_in(disk: &Sim, page: u64) -> Id {
    let first = ids(disk)[0];
    let reader = on(disk).open(DIR, Mode::Read).unwrap();
    let mut all = reader.iter(Include::All, OnCorrupt::Raise).unwrap().map(Result::unwrap);
    let there = |at: Location| at.segment == first && u64::from(at.offset) == page * PAGE as u64;
    all.find(|found| there(found.location)).unwrap().event.id
}

fn size_by_manifest(disk: &Sim, segment: u32) -> u32 {
    let bytes = read(disk, "/events/manifest.json");
    let manifest: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    let named = manifest["active_segments"].as_array().unwrap();
    let named = named.iter().find(|named| named["id"] == segment).unwrap();
    named["size_bytes"].as_u64().unwrap() as u32
}

/// The events that count, of which a segment has pages there.
fn live_between(disk: &Sim, segment: u32, bytes: std::ops::Range<u32>) -> Vec<Id> {
    let reader = on(disk).open(DIR, Mode::Read).unwrap();
    let all = reader.iter(Include::Live, OnCorrupt::Raise).unwrap().map(Result::unwrap);
    let all: Vec<_> = all.filter(|found| found.location.segment == segment).collect();
    let ends = all.iter().skip(1).map(|next| next.location.offset).chain([u32::MAX]);
    let is_there = |at: Location, end: u32| at.offset < bytes.end && end > bytes.start;
    let there = all.iter().zip(ends).filter(|(found, end)| is_there(found.location, *end));
    let ids: BTreeSet<Id> = there.map(|(found, _)| found.event.id).collect();
    ids.into_iter().collect()
}

/// Damage of every kind that a repair mends, on disks that keep all there is, and on such of which the
/// dead writer's last pages are in the cache alone.
fn worlds() -> Vec<Damaged> {
    let mut worlds = Vec::new();
    let (disk, all) = settled();
    let (lost, first) = (event_in(&disk, 1), ids(&disk)[0]);
    damage(&disk, &segment(first), |bytes| bytes[PAGE + 80] ^= 1);
    worlds.push(Damaged::new("a damaged page", disk, ACCEPT, &all, &[lost]));

    let (disk, all) = settled();
    let last = *ids(&disk).last().unwrap();
    damage(&disk, &segment(last), |bytes| bytes[..PAGE].fill(0xEE));
    worlds.push(Damaged::new("a lost header", disk, PLAIN, &all, &[]));

    let (disk, all) = settled();
    let first = ids(&disk)[0];
    let reader = on(&disk).open(DIR, Mode::Read).unwrap();
    let lost: BTreeSet<Id> = reader
        .iter(Include::All, OnCorrupt::Raise)
        .unwrap()
        .map(Result::unwrap)
        .filter(|found| found.location.segment == first && found.flags.is_live())
        .map(|found| found.event.id)
        .collect();
    disk_remove(&disk, &segment(first));
    settle(&disk, Path::new("/"));
    let lost: Vec<Id> = lost.into_iter().collect();
    worlds.push(Damaged::new("a missing segment", disk, ACCEPT, &all, &lost));

    for which in [0, 1] {
        let (disk, all) = settled();
        let number = [ids(&disk)[0], *ids(&disk).last().unwrap()][which];
        let kept = size_by_manifest(&disk, number) - 2 * PAGE as u32;
        let lost = live_between(&disk, number, kept..kept + 2 * PAGE as u32);
        assert!(!lost.is_empty());
        damage(&disk, &segment(number), |bytes| bytes.truncate(kept as usize));
        let name = ["a segment without its last pages", "the last segment without pages"][which];
        worlds.push(Damaged::new(name, disk, ACCEPT, &all, &lost));
    }

    let (disk, all) = settled();
    let (lost, first, last) = (event_in(&disk, 1), ids(&disk)[0], *ids(&disk).last().unwrap());
    damage(&disk, &segment(first), |bytes| bytes[PAGE + 80] ^= 1);
    damage(&disk, &segment(last), |bytes| bytes[..PAGE].fill(0xEE));
    let newest = logs(&disk).pop().unwrap();
    damage(&disk, &newest, |bytes| bytes[HEADER_BYTES + 60] ^= 1);
    worlds.push(Damaged::new("a page, a header and the log", disk, ACCEPT, &all, &[lost]));

    worlds.extend(of_logs());
    worlds
}

/// Those of them in which only the write-ahead log is damaged.
pub fn of_logs() -> Vec<Damaged> {
    let mut worlds = Vec::new();
    for is_durable in [true, false] {
        let make = if is_durable { settled } else { world };
        let (disk, all) = make();
        let newest = logs(&disk).pop().unwrap();
        damage(&disk, &newest, |bytes| bytes[HEADER_BYTES + 60] ^= 1);
        worlds.push(Damaged::new("a damaged log", disk, ACCEPT, &all, &[]));

        // The checkpoint is in the first file, and more came before it.
        let (disk, all) = make();
        let oldest = logs(&disk)[0].clone();
        damage(&disk, &oldest, |bytes| bytes[HEADER_BYTES + 40] ^= 1);
        worlds.push(Damaged::new("a log damaged from its beginning", disk, ACCEPT, &all, &[]));

        let (disk, all) = make();
        let oldest = logs(&disk)[0].clone();
        let end = used(&disk, &oldest);
        damage(&disk, &oldest, |bytes| bytes[end - 300] ^= 1);
        worlds.push(Damaged::new("a log damaged at a file's end", disk, ACCEPT, &all, &[]));
    }

    for (name, number) in [("a log without its first file", 0), ("a log without its last file", 1)]
    {
        let (disk, all) = settled();
        let (first, last) = (logs(&disk)[0].clone(), logs(&disk).pop().unwrap());
        disk_remove(&disk, [&first, &last][number]);
        disk.sync_dir(Path::new("/events/wal")).unwrap();
        worlds.push(Damaged::new(name, disk, ACCEPT, &all, &[]));
    }

    let (disk, all) = settled();
    remove_log(&disk);
    settle(&disk, Path::new("/"));
    worlds.push(Damaged::new("no log", disk, ACCEPT, &all, &[]));

    // Events that only the log has, after its damage: they go, and are saved.
    let (disk, all) = settled();
    let last = *ids(&disk).last().unwrap();
    damage(&disk, &segment(last), |bytes| {
        let len = bytes.len();
        bytes[len - 2 * PAGE..].fill(0);
    });
    let bare = disk.kill();
    remove_log(&bare);
    let before = events(&on(&bare).open(DIR, Mode::Read).unwrap());
    let lost: Vec<Id> = all.keys().filter(|id| !before.contains_key(id)).copied().collect();
    assert_eq!(lost.len(), 2);
    let newest = logs(&disk).pop().unwrap();
    damage(&disk, &newest, |bytes| bytes[HEADER_BYTES + 60] ^= 1);
    worlds.push(Damaged::new("events of the log alone", disk, ALL, &all, &lost));
    worlds
}

/// What a store gives in every way; it is whole.
pub fn given(store: &EventStore) -> Outcome<Events> {
    let report = store.verify(Check::Id).map_err(|e| format!("verify: {e:?}"))?;
    if !report.is_ok() {
        return Err(format!("{report:?}"));
    }
    let all = events(store);
    let live = all.values().filter(|(_, flags)| flags.is_live()).count();
    let queried = store.query(&[Filter::default()]).map_err(|e| format!("query: {e:?}"))?;
    let queried: BTreeSet<Id> = queried.map(|found| found.unwrap().event.id).collect();
    match queried.len() == live {
        true => Ok(all),
        false => Err(format!("a query gives {}, of {live}", queried.len())),
    }
}

/// Whether all that must be there is, and nothing else than what may be.
fn differs<'a>(
    found: &Events,
    expected: &Events,
    must: impl IntoIterator<Item = &'a Id>,
) -> Outcome {
    let differing = |(id, event): &(&Id, &(_, Flags))| expected.get(id) != Some(*event);
    let more: Vec<_> = found.iter().filter(differing).map(|(id, _)| id.to_string()).collect();
    let missing: Vec<_> =
        must.into_iter().filter(|id| !found.contains_key(id)).map(Id::to_string).collect();
    match (more.is_empty(), missing.is_empty()) {
        (true, true) => Ok(()),
        _ => Err(format!("missing {missing:?}, others {more:?}")),
    }
}

fn is_refused(error: &Error) -> bool {
    error.kind() == ErrorKind::Corrupt && error.message().contains("salvage copies")
}

/// Repair a store of which an earlier repair was interrupted, and judge what is left of it.
fn judge(damaged: &Damaged, disk: &Sim) -> Outcome {
    let again = mended(disk, PLAIN);
    let is_done = match &again {
        Ok(report) => {
            if report.mended && damaged.is_loss && !report.was_loss && !report.is_loss {
                return Err(format!("a loss was forgotten: {report:?}"));
            }
            report.mended
        }
        // The power cut took from the segments what the log still has, beyond its damage.
        Err(error) if is_refused(error) => {
            copied(disk, COPY_DIR).map_err(|e| format!("salvage: {e:?}"))?;
            let copy = on(disk).open(COPY_DIR, Mode::Append).map_err(|e| format!("{e:?}"))?;
            let copy = events(&copy);
            if let Some(id) = damaged.safe.iter().find(|id| !copy.contains_key(id)) {
                return Err(format!("{error}, and a salvage lacks {id}"));
            }
            if !damaged.may.force {
                return Ok(());
            }
            false
        }
        Err(error) => return Err(format!("repaired again: {error:?}")),
    };
    if !is_done {
        let report = mended(disk, damaged.may).map_err(|e| format!("mending again: {e:?}"))?;
        if !report.mended {
            return Err(format!("not mended: {report:?}"));
        }
    }
    let store = on(disk).open(DIR, Mode::Append).map_err(|e| format!("opening: {e:?}"))?;
    let found = given(&store)?;
    differs(&found, &damaged.left, &damaged.safe)?;
    if damaged.is_loss && !store.verify(Check::Id).map_err(|e| format!("{e:?}"))?.is_loss {
        return Err("the loss is not noted".into());
    }
    let kept = saved(disk);
    // The header of a file of the log need not be cut with what follows it.
    let is_kept = |cut: &Vec<u8>| {
        kept.iter().any(|saved| saved.starts_with(cut) || saved.starts_with(&cut[HEADER_BYTES..]))
    };
    if !damaged.cut.iter().all(is_kept) {
        let (cut, kept): (Vec<_>, Vec<_>) =
            (damaged.cut.iter().map(Vec::len).collect(), kept.iter().map(Vec::len).collect());
        return Err(format!("cut {cut:?} bytes, saved {kept:?}"));
    }
    // What is appended now stays.
    let more = note(900);
    store.append(&more).map_err(|e| format!("appending: {e:?}"))?;
    store.commit().map_err(|e| format!("committing: {e:?}"))?;
    drop(store);
    let crashes = disk.crashes();
    let worst = crashes.build(&crashes.nth(0));
    let store = on(&worst).open(DIR, Mode::Append).map_err(|e| format!("after a cut: {e:?}"))?;
    let mut left = found;
    left.insert(more.id, (more, Flags::default()));
    differs(&given(&store)?, &left, left.keys()).map_err(|why| format!("after a cut: {why}"))
}

/// States that the end of the process, or of the power, at this moment may leave.
pub fn states(moment: &Sim, seed: u64) -> Vec<(String, Sim)> {
    let crashes = moment.crashes();
    let mut states = vec![
        ("killed".to_owned(), moment.kill()),
        ("nothing kept".to_owned(), crashes.build(&crashes.nth(0))),
    ];
    for each in 0..of_tier("DEEDBOOK_NOSTR_STATES").div_ceil(24) {
        let choice = crashes.sample(mix(seed ^ mix(each)));
        states.push((format!("{choice:?}"), crashes.build(&choice)));
    }
    states
}

/// For the published table. What went wrong has panicked.
fn tried(what: &str, states: usize, second: usize) {
    let json =
        format!("{{\"power_cuts\": {states}, \"second_power_cuts\": {second}, \"failures\": 0}}\n");
    report::write(&format!("store-mend-{what}"), &json);
}

// Promise: store-crash-in-repair.
#[test]
fn a_repair_that_crashes_at_any_call_is_taken_up_and_loses_nothing_intact() {
    let (begun, mut moments, mut count, mut second) = (Instant::now(), 0, 0, 0);
    for damaged in worlds() {
        let name = damaged.name;
        let disk = damaged.disk.kill();
        disk.record();
        assert!(mended(&disk, damaged.may).unwrap().mended);
        let mut recorded = disk.recorded();
        recorded.push(disk.kill());
        for (call, moment) in recorded.iter().enumerate() {
            moments += 1;
            for (which, state) in states(moment, call as u64) {
                count += 1;
                let fresh = state.kill();
                judge(&damaged, &state)
                    .unwrap_or_else(|why| panic!("{name}, call {call}, {which}: {why}"));
                // The repair that takes it up crashes as well.
                if (call + count) % 11 > 0 {
                    continue;
                }
                fresh.record();
                drop(mended(&fresh, damaged.may));
                let again = fresh.recorded();
                let every = (again.len() / 4).max(1);
                for (at, moment) in again.iter().enumerate().step_by(every) {
                    let crashes = moment.crashes();
                    let choice = match at % 2 {
                        0 => crashes.nth(0),
                        _ => crashes.sample(mix(at as u64)),
                    };
                    let state = crashes.build(&choice);
                    second += 1;
                    judge(&damaged, &state).unwrap_or_else(|why| {
                        panic!("{name}, call {call}, {which}; then call {at}, {choice:?}: {why}")
                    });
                }
            }
        }
    }
    println!(
        "{moments} moments, {count} states, {second} second ones, {:.1} s",
        begun.elapsed().as_secs_f32()
    );
    tried("repair", count, second);
    assert!(moments > 300 && count > 2 * moments && second > moments / 2);
}

const FAULTS: [(&str, What, u64); 7] = [
    ("EIO", What::Error(Io::Other), 1),
    ("EIO for ever", What::Error(Io::Other), u64::MAX),
    ("ENOSPC for ever", What::Error(Io::StorageFull), u64::MAX),
    ("half a write, then ENOSPC", What::Partial(Io::StorageFull), 1),
    ("half a read or write", What::Short, 1),
    ("a write of 0", What::Zero, 1),
    ("death", What::Crash, 1),
];

fn expect_typed(error: &Error) {
    // A call that fails may leave a file that the same call refuses to read.
    let kinds = [ErrorKind::Io, ErrorKind::Poisoned, ErrorKind::Missing];
    assert!(kinds.contains(&error.kind()), "{error:?}");
}

// Promise: store-crash-in-repair.
#[test]
fn a_repair_of_which_any_call_fails_is_an_error_and_is_taken_up() {
    let stride = 2 * of_tier("DEEDBOOK_NOSTR_FAULT_STRIDE");
    let (begun, mut fired, mut failed) = (Instant::now(), 0, 0);
    for (number, damaged) in worlds().into_iter().enumerate() {
        let calm = damaged.disk.kill();
        let before = calm.calls();
        mended(&calm, damaged.may).unwrap();
        let calls = calm.calls() - before;
        for (which, (name, what, times)) in FAULTS.into_iter().enumerate() {
            let first = 1 + (number + which) as u64 % stride;
            for k in (first..calls).step_by(stride as usize) {
                let disk = damaged.disk.kill();
                disk.inject(Fault { times, ..Fault::once(k, what) });
                match mended(&disk, damaged.may) {
                    Ok(report) => assert!(report.mended, "{}, {name} at {k}", damaged.name),
                    Err(error) => {
                        expect_typed(&error);
                        failed += 1;
                    }
                }
                fired += u64::from(disk.fired() > 0);
                disk.heal();
                let crashes = disk.crashes();
                let cut = crashes.build(&crashes.nth(0));
                for (then, disk) in [("killed", disk.kill()), ("cut", cut)] {
                    judge(&damaged, &disk).unwrap_or_else(|why| {
                        panic!("{}, {name} at call {k}, {then}: {why}", damaged.name)
                    });
                }
            }
        }
    }
    println!("{fired} faults, {failed} errors, {:.1} s", begun.elapsed().as_secs_f32());
    assert!(fired > 200 && failed > 100);
}

/// Flags of earlier segments were in the cache only and not written again, and a power cut took them once
/// the log was cut that had them.
#[test]
fn a_repair_writes_again_what_a_failed_sync_left_in_the_cache() {
    let mut failed = 0;
    let worlds = worlds();
    for damaged in worlds.iter().filter(|damaged| damaged.name.contains("from its beginning")) {
        for (k, seed) in (1..9).flat_map(|k| (0..8).map(move |seed| (k, seed))) {
            let disk = damaged.disk.kill();
            disk.set_seed(seed);
            disk.inject(Fault::once(k, What::Error(Io::Other)).of(Call::Sync));
            if mended(&disk, damaged.may).is_err() {
                disk.heal();
                judge(damaged, &disk.kill())
                    .unwrap_or_else(|why| panic!("sync {k}, seed {seed}: {why}"));
                failed += 1;
            }
        }
    }
    assert!(failed > 30, "{failed}");
}

/// What a salvage that did not come to its end left: nothing, a store that cannot be opened, or a part of
/// the source's events as they are there.
fn judge_part(disk: &Sim, all: &Events, is_whole: bool) -> Outcome {
    let there = on(disk).open(COPY_DIR, Mode::Append);
    let found = match there {
        Ok(store) => given(&store)?,
        Err(error) if is_whole => return Err(format!("{error:?}")),
        Err(_) => Events::new(),
    };
    if is_whole {
        return differs(&found, all, all.keys());
    }
    for (id, (event, _)) in &found {
        if all.get(id).map(|(event, _)| event) != Some(event) {
            return Err(format!("event {id} is none of the source"));
        }
    }
    Ok(())
}

/// A source, and what a salvage of it gives.
fn source() -> (Sim, Events, BTreeMap<PathBuf, Vec<u8>>) {
    let (disk, _) = settled();
    let first = ids(&disk)[0];
    damage(&disk, &segment(first), |bytes| bytes[PAGE + 80] ^= 1);
    let newest = logs(&disk).pop().unwrap();
    damage(&disk, &newest, |bytes| bytes[HEADER_BYTES + 60] ^= 1);
    let calm = disk.kill();
    assert!(!copied(&calm, COPY_DIR).unwrap().is_complete());
    let all = events(&on(&calm).open(COPY_DIR, Mode::Append).unwrap());
    let before = listed(&disk, Path::new(DIR));
    (disk, all, before)
}

/// A destination that was begun is refused by its name, so a salvage goes to another one.
fn salvage_again(disk: &Sim, all: &Events) -> Outcome {
    let to = match copied(disk, COPY_DIR) {
        Ok(_) => COPY_DIR,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            copied(disk, "/elsewhere").map_err(|e| format!("salvaged again: {e:?}"))?;
            "/elsewhere"
        }
        Err(_) => {
            copied(disk, "/elsewhere").map_err(|e| format!("salvaged again: {e:?}"))?;
            "/elsewhere"
        }
    };
    let store = on(disk).open(to, Mode::Append).map_err(|e| format!("{to}: {e:?}"))?;
    differs(&given(&store)?, all, all.keys())
}

// Promise: store-crash-in-repair.
#[test]
fn a_salvage_that_crashes_at_any_call_leaves_its_source_and_no_false_event() {
    let (begun, mut count) = (Instant::now(), 0);
    let (disk, all, before) = source();
    let disk = disk.kill();
    disk.record();
    copied(&disk, COPY_DIR).unwrap();
    let mut recorded = disk.recorded();
    recorded.push(disk.kill());
    let last = recorded.len() - 1;
    for (call, moment) in recorded.iter().enumerate() {
        for (which, state) in states(moment, call as u64) {
            count += 1;
            let judged = || {
                if listed(&state, Path::new(DIR)) != before {
                    return Err("the source was changed".into());
                }
                judge_part(&state.kill(), &all, call == last)?;
                if call == last {
                    return Ok(());
                }
                salvage_again(&state, &all)
            };
            judged().unwrap_or_else(|why| panic!("call {call}, {which}: {why}"));
        }
    }
    println!("{last} calls, {count} states, {:.1} s", begun.elapsed().as_secs_f32());
    tried("salvage", count, 0);
    assert!(last > 20 && count > 2 * last);
}

// Promise: store-crash-in-repair.
#[test]
fn a_salvage_of_which_any_call_fails_is_an_error_or_whole() {
    let (begun, mut fired, mut failed) = (Instant::now(), 0, 0);
    let (disk, all, before) = source();
    let calm = disk.kill();
    let from = calm.calls();
    copied(&calm, COPY_DIR).unwrap();
    let calls = calm.calls() - from;
    let stride = of_tier("DEEDBOOK_NOSTR_FAULT_STRIDE");
    for (which, (name, what, times)) in FAULTS.into_iter().enumerate() {
        for k in (1 + which as u64 % stride..calls).step_by(stride as usize) {
            let disk = disk.kill();
            disk.inject(Fault { times, ..Fault::once(k, what) });
            let done = copied(&disk, COPY_DIR);
            fired += u64::from(disk.fired() > 0);
            disk.heal();
            if let Err(error) = &done {
                failed += 1;
                expect_typed(error);
            }
            let crashes = disk.crashes();
            let cut = crashes.build(&crashes.nth(0));
            for (then, disk) in [("killed", disk.kill()), ("cut", cut)] {
                assert_eq!(listed(&disk, Path::new(DIR)), before, "{name} at {k}");
                let judged = judge_part(&disk.kill(), &all, done.is_ok())
                    .and_then(|()| if done.is_err() { salvage_again(&disk, &all) } else { Ok(()) });
                judged.unwrap_or_else(|why| panic!("{name} at call {k}, {then}: {why}"));
            }
        }
    }
    println!("{fired} faults, {failed} errors, {:.1} s", begun.elapsed().as_secs_f32());
    assert!(fired > 50 && failed > 20);
}
