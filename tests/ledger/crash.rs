//! Power cuts and process crashes at every storage call of every short history, on the simulated disk.

use crate::prelude::*;
use crate::support::crashes::worst;
use crate::support::ledger::oracle::{Known, Run, options, recover};

const STEPS: &str = "abmsfxrzw";
const DURABILITIES: [&str; 5] = ["none", "rotate", "always", "bytes:300", "manual"];

struct Ledger;

impl World for Ledger {
    type Known = Known;

    fn recover(&self, disk: &Sim, known: &Known, crash: Crash) -> Result<(), String> {
        recover(disk, known, crash.is_of_power()).map(drop)
    }

    fn begin(&self, disk: &Sim) -> Result<(), String> {
        let ledger = options(disk, Durability::None).open(small(DIR, 100_000));
        let fetched = ledger.and_then(|ledger| ledger.fetch(None, None));
        fetched.map(drop).map_err(|e| format!("the next fetch: {e:?}"))
    }
}

fn crash(history: &str, durability: Durability, states: u64, explorer: &mut Explorer) {
    let mut run = Run::new(durability);
    run.open().unwrap();
    let last = history.chars().count().saturating_sub(1);
    for (at, op) in history.chars().enumerate() {
        let before = run.known.clone();
        if at == last {
            run.disk.record();
        }
        run.apply(op).unwrap();
        if op == 'f' {
            run.judge_fetched().unwrap();
        }
        if at < last {
            continue;
        }
        let after = run.known.clone();
        let during = Known::during(&before, &after);
        let mut moments: Vec<_> = run.disk.recorded().into_iter().map(|d| (d, &during)).collect();
        moments.push((run.disk.kill(), &after));
        let what = format!("{durability} {history:?}");
        explorer.explore(&what, &Ledger, &moments, &Plan::of(states));
    }
}

// Promise: ledger-power-loss.
#[test]
fn every_short_history_survives_every_crash() {
    let states = report::number("DEEDBOOK_LEDGER_STATES", 24);
    let steps = report::of_tier("DEEDBOOK_LEDGER_STEPS") as usize;
    let mut explorer = Explorer::default();
    for durability in DURABILITIES {
        let durability: Durability = durability.parse().unwrap();
        for history in all_after("", steps, STEPS) {
            crash(&history, durability, states, &mut explorer);
            if explorer.failures.len() > 3 {
                break;
            }
        }
    }
    let seed = report::number("DEEDBOOK_SEED", 1);
    for number in 0..report::number("DEEDBOOK_LEDGER_HISTORIES", 150) {
        let chance = mix(seed ^ mix(number));
        let durability = DURABILITIES[(mix(chance) % 5) as usize].parse().unwrap();
        crash(&by_chance(STEPS, chance), durability, states, &mut explorer);
    }
    println!("{}", explorer.json());
    report::write("ledger-crash", &explorer.json());
    assert!(explorer.failures.is_empty(), "{}", explorer.failures.join("\n"));
    let Counts { histories, moments, states, second, .. } = explorer.counts;
    assert!(moments > histories && states > moments && second > moments);
}

/// The background syncs within the interval, even if no appends follow. A crash at any call of the sync loses no
/// durable event.
// Promise: ledger-power-loss.
#[test]
fn interval_syncs_without_a_call_and_survives_crashes() {
    let mut explorer = Explorer::default();
    for history in all_after("", 2, STEPS) {
        let mut run = Run::new(Durability::Interval(Duration::from_millis(2)));
        run.open().unwrap();
        let last = history.chars().count().saturating_sub(1);
        for (at, op) in history.chars().enumerate() {
            let before = run.known.clone();
            run.disk.record();
            run.apply(op).unwrap();
            let during = Known::during(&before, &run.known);
            run.known.durable = run.known.written.clone();
            wait_until_durable(&run);
            let moments = run.disk.recorded().into_iter().map(|disk| (disk, &during));
            if at == last {
                let moments: Vec<_> = moments.collect();
                let what = format!("interval {history:?}");
                explorer.explore(&what, &Ledger, &moments, &Plan::of(8));
            }
        }
    }
    assert!(explorer.failures.is_empty(), "{}", explorer.failures.join("\n"));
    let Counts { histories, states, .. } = explorer.counts;
    assert!(histories > 80 && states > 1000, "{states} states");
}

fn wait_until_durable(run: &Run) {
    let begun = Instant::now();
    while let Err(what) = recover(&worst(&run.disk), &run.known, true) {
        assert!(begun.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The same for a store that had been open all the time, with a durable counter of its own.
#[test]
fn nor_by_one_that_another_store_wrote_meanwhile() {
    let mut refusals = 0;
    for k in 1..5 {
        let run = Run::new(Durability::Always);
        let open = || run.options.open(small(DIR, 100_000)).unwrap();
        let first = open();
        first.append(&event(0, 0)).unwrap();
        send(&first);
        let second = open();
        second.append(&event(1, 0)).unwrap();
        run.disk.inject(Fault::once(k, What::Error(Io::Other)).of(Call::SyncDir));
        refusals += usize::from(second.fetch(None, None).is_err());
        run.disk.heal();
        drop(second);
        let last = send(&first).last().unwrap().0;
        // Leases are never synced, so each doubles the states: some 1,000 are enough.
        for choice in choices(&run.disk, 1000, 0) {
            let disk = run.disk.crashes().build(&choice);
            let again = options(&disk, Durability::Always).open(small(DIR, 100_000)).unwrap();
            again.append(&event(7, 0)).unwrap();
            let next = last_index(&again);
            assert!(next > last, "sync {k}: {next} after {last}");
        }
    }
    assert!(refusals > 0);
}
