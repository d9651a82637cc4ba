//! Histories on a disk with faults: the k-th call fails, for every k, in every way that a disk can fail and stay
//! honest.

use crate::store::prelude::*;

const SCRIPTS: [&str; 3] = ["avmcvdyamfa", "mkavfxvmrad", "dmmxmcxvr"];
const STATES: u64 = 3;

#[derive(Default)]
struct Met {
    fired: u64,
    no: u64,
    unknown: u64,
    poisoned: u64,
}

/// Run a script while a fault strikes. Every failure is a typed error, and every acknowledged event is there
/// afterwards, also in a handle without a poisoning error.
fn run(script: &str, durability: Durability, fault: Fault, met: &mut Met) -> Result<bool, String> {
    let mut run = Run::new(durability, true);
    run.disk.inject(fault);
    for _ in 0..3 {
        match run.open() {
            Ok(()) => break,
            Err(error) => expect_typed(&error)?,
        }
    }
    let mut poisoned = false;
    for step in script.chars() {
        if run.store.is_none() {
            break;
        }
        let Err(error) = run.apply(step) else { continue };
        expect_typed(&error).map_err(|what| format!("step {step:?}: {what}"))?;
        match (error.kind(), error.durable()) {
            (ErrorKind::Poisoned, _) => met.poisoned += 1,
            (_, Some(Durable::No)) => met.no += 1,
            _ => met.unknown += 1,
        }
        if error.kind() == ErrorKind::Poisoned || run.store.is_none() {
            // Close and open again, as a user would.
            run.store = None;
            if let Err(error) = run.open() {
                expect_typed(&error)?;
                poisoned = true;
                break;
            }
        }
    }
    if let Some(wrong) = run.wrong {
        return Err(wrong);
    }
    let fired = run.disk.fired() > 0;
    met.fired += u64::from(fired);
    run.disk.heal();
    let is_dead = fired && fault.what == What::Crash;
    if !poisoned
        && !is_dead
        && let Some(store) = &run.store
    {
        // A checkpoint that failed halfway reports the failure, and the index may lack some of the segments' events.
        if store.checkpoint().is_ok() {
            let got = look(store, &run.known, "the handle")?;
            run.known.judge(&got, false).map_err(|what| format!("the handle: {what}"))?;
        }
    }
    let killed = run.disk.kill();
    recover(&killed, &run.options, &run.known, false).map_err(|what| format!("killed: {what}"))?;
    for choice in choices(&run.disk, STATES, 0) {
        let cut = run.disk.crashes().build(&choice);
        let recovered = recover(&cut, &run.options, &run.known, true);
        recovered.map_err(|what| format!("{choice:?}: {what}"))?;
    }
    Ok(fired)
}

// Promise: store-call-fails.
#[test]
fn failed_calls_lose_no_acknowledged_event() {
    let stride = crate::support::report::of_tier("DEEDBOOK_NOSTR_FAULT_STRIDE");
    let mut struck = HashSet::new();
    let (mut met, mut failures) = (Met::default(), Vec::new());
    for (number, script) in SCRIPTS.into_iter().enumerate() {
        let durability = [Durability::Manual, Durability::Always, Durability::Manual][number];
        let mut calls = Run::new(durability, true);
        calls.open().unwrap();
        script.chars().for_each(|step| calls.apply(step).unwrap());
        let calls = calls.disk.calls();
        for (which, (name, what, times)) in FAULTS.iter().enumerate() {
            // Some fault strikes every call, and each fault strikes every few calls.
            let first = 1 + (number + which) as u64 % stride;
            for k in (first..calls).step_by(stride as usize) {
                struck.insert((number, k));
                let fault = Fault { times: *times, ..Fault::once(k, *what) };
                if let Err(failed) = run(script, durability, fault, &mut met) {
                    failures.push(format!("{script} {durability}, {name} at call {k}: {failed}"));
                }
                if failures.len() > 8 {
                    break;
                }
            }
        }
    }
    let Met { fired, no, unknown, poisoned } = met;
    let json = format!(
        "{{\"calls\": {}, \"ways\": {}, \"faults\": {fired}, \"failures\": {}}}\n",
        struck.len(),
        FAULTS.len(),
        failures.len()
    );
    crate::support::report::write("store-faults", &json);
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
    assert!(fired > 500 && no > 100 && unknown > 50 && poisoned > 50);
}
