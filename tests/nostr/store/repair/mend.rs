//! Repairs and salvages of damaged stores, with a crash at every storage call, or with faults.

use super::worlds::*;
use crate::store::prelude::*;

pub type Outcome<T = ()> = Result<T, String>;

/// Whether the store has all required events, and only expected events.
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

/// Repair a store after an interrupted repair, and judge the result.
fn judge(damaged: &Damaged, disk: &Sim) -> Outcome {
    let again = mended(disk, PLAIN);
    let is_done = match &again {
        Ok(report) => {
            if report.mended
                && damaged.is_loss
                && report.earlier_loss.is_none()
                && report.loss.is_none()
            {
                return Err(format!("a loss was forgotten: {report:?}"));
            }
            report.mended
        }
        // The power cut removed events from the segments that only the log still has, after its damage.
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
    // A repair may save the cut end of a log file without the file's header.
    let is_kept = |cut: &Vec<u8>| {
        kept.iter().any(|saved| saved.starts_with(cut) || saved.starts_with(&cut[HEADER_BYTES..]))
    };
    if !damaged.cut.iter().all(is_kept) {
        let (cut, kept): (Vec<_>, Vec<_>) =
            (damaged.cut.iter().map(Vec::len).collect(), kept.iter().map(Vec::len).collect());
        return Err(format!("cut {cut:?} bytes, saved {kept:?}"));
    }
    // New events stay.
    let more = note(900);
    store.append(&more).map_err(|e| format!("appending: {e:?}"))?;
    store.sync().map_err(|e| format!("committing: {e:?}"))?;
    drop(store);
    let worst = worst(disk);
    let store = on(&worst).open(DIR, Mode::Append).map_err(|e| format!("after a cut: {e:?}"))?;
    let mut left = found;
    left.insert(more.id, (more, Flags::default()));
    differs(&given(&store)?, &left, left.keys()).map_err(|why| format!("after a cut: {why}"))
}

/// For the published table. Failures have panicked already.
fn tried(what: &str, states: usize, second: usize) {
    let json =
        format!("{{\"power_cuts\": {states}, \"second_power_cuts\": {second}, \"failures\": 0}}\n");
    report::write(&format!("store-mend-{what}"), &json);
}

// Promise: store-crash-in-repair.
#[test]
fn crashed_repair_is_repeatable_and_loses_nothing_intact() {
    let (mut moments, mut count, mut second) = (0, 0, 0);
    for damaged in worlds() {
        let name = damaged.name;
        let mend = |disk: &Sim| assert!(mended(disk, damaged.may).unwrap().mended);
        for Left { call, ended, disk, .. } in at_every_call(&damaged.disk, mend) {
            moments += usize::from(ended == "killed");
            count += 1;
            let fresh = disk.kill();
            judge(&damaged, &disk)
                .unwrap_or_else(|why| panic!("{name}, call {call}, {ended}: {why}"));
            // The next repair crashes as well.
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
                second += 1;
                judge(&damaged, &crashes.build(&choice)).unwrap_or_else(|why| {
                    panic!("{name}, call {call}, {ended}; then call {at}, {choice:?}: {why}")
                });
            }
        }
    }
    tried("repair", count, second);
    assert!(
        moments > 300 && count > 2 * moments && second > moments / 2,
        "{moments}, {count}, {second}"
    );
}

/// Do some work on copies of a disk while faults strike its calls. Then judge the disks after a kill and after a power
/// cut, with the result of the work. Count the fired faults and the errors.
fn strike(
    disk: &Sim,
    (first, stride): (u64, u64),
    work: impl Fn(&Sim) -> Result<(), Error>,
    judge: impl Fn(&Sim, bool) -> Outcome,
) -> (u64, u64) {
    let (mut fired, mut failed) = (0, 0);
    let calm = disk.kill();
    let before = calm.calls();
    work(&calm).unwrap();
    let calls = calm.calls() - before;
    for ((name, what, times), which) in FAULTS.into_iter().zip(first..) {
        for k in (1 + which % stride..calls).step_by(stride as usize) {
            let disk = disk.kill();
            disk.inject(Fault { times, ..Fault::once(k, what) });
            let done = work(&disk);
            fired += u64::from(disk.fired() > 0);
            disk.heal();
            if let Err(error) = &done {
                failed += 1;
                // A failed call may leave a file that the same call refuses to read.
                expect_typed(error).unwrap();
            }
            let cut = worst(&disk);
            for (then, disk) in [("killed", disk.kill()), ("cut", cut)] {
                judge(&disk, done.is_ok())
                    .unwrap_or_else(|why| panic!("{name} at call {k}, {then}: {why}"));
            }
        }
    }
    (fired, failed)
}

// Promise: store-crash-in-repair.
#[test]
fn failed_repair_is_an_error_and_repeatable() {
    let stride = 2 * of_tier("DEEDBOOK_NOSTR_FAULT_STRIDE");
    let (mut fired, mut failed) = (0, 0);
    for (damaged, number) in worlds().into_iter().zip(0..) {
        let mend = |disk: &Sim| {
            let report = mended(disk, damaged.may)?;
            assert!(report.mended, "{}", damaged.name);
            Ok(())
        };
        let judged =
            |disk: &Sim, _| judge(&damaged, disk).map_err(|e| format!("{}: {e}", damaged.name));
        let met = strike(&damaged.disk, (number, stride), mend, judged);
        (fired, failed) = (fired + met.0, failed + met.1);
    }
    assert!(fired > 200 && failed > 100, "{fired} faults, {failed} errors");
}

/// The flags of earlier segments were only in the cache, and the repair did not write them again. A power cut lost the
/// flags after the repair cut the log.
#[test]
fn repair_rewrites_pages_of_a_failed_sync() {
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

/// An unfinished salvage leaves nothing, a store that does not open, or some of the source's events, unchanged.
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

fn source() -> (Sim, Events, BTreeMap<PathBuf, Vec<u8>>) {
    let (disk, _) = settled();
    flip_first_page(&disk);
    flip_newest_log(&disk);
    let calm = disk.kill();
    assert!(!copied(&calm, COPY_DIR).unwrap().is_complete());
    let all = events(&on(&calm).open(COPY_DIR, Mode::Append).unwrap());
    let before = files(&disk);
    (disk, all, before)
}

/// Judge a salvage and its source, and repeat an unfinished salvage. A salvage refuses an existing destination, so the
/// second may need another.
fn judge_salvage(
    disk: &Sim,
    (all, before): (&Events, &BTreeMap<PathBuf, Vec<u8>>),
    is_whole: bool,
) -> Outcome {
    if files(disk) != *before {
        return Err("the source was changed".into());
    }
    judge_part(&disk.kill(), all, is_whole)?;
    if is_whole {
        return Ok(());
    }
    let to = match copied(disk, COPY_DIR) {
        Ok(_) => COPY_DIR,
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
fn crashed_salvage_keeps_source_and_invents_no_event() {
    let (disk, all, before) = source();
    let (mut count, mut last) = (0, 0);
    for left in at_every_call(&disk, |disk| drop(copied(disk, COPY_DIR).unwrap())) {
        (count, last) = (count + 1, left.call);
        judge_salvage(&left.disk, (&all, &before), left.is_over)
            .unwrap_or_else(|why| panic!("call {last}, {}: {why}", left.ended));
    }
    tried("salvage", count, 0);
    assert!(last > 20 && count > 2 * last, "{last} calls, {count} states");
}

// Promise: store-crash-in-repair.
#[test]
fn failed_salvage_is_an_error_or_complete() {
    let (disk, all, before) = source();
    let stride = of_tier("DEEDBOOK_NOSTR_FAULT_STRIDE");
    let work = |disk: &Sim| copied(disk, COPY_DIR).map(drop);
    let judged = |disk: &Sim, is_whole| judge_salvage(disk, (&all, &before), is_whole);
    let (fired, failed) = strike(&disk, (0, stride), work, judged);
    assert!(fired > 50 && failed > 20, "{fired} faults, {failed} errors");
}
