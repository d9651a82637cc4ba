//! A scripted history on a disk with faults, compared with the table of outcomes.

use super::config::Config;
use super::history::Run;
use super::{How, Subject, judge_any, mix};

use crate::support::prelude::*;

const STATES: u64 = 12;

#[derive(Clone, Copy, Debug, Default)]
pub struct Met {
    pub fired: bool,
    pub calls: u64,
    /// Failed calls, by the error's answer on durability.
    pub refused: u64,
    pub unknown: u64,
}

/// Runs a script while a fault strikes, and reopens the log when a user would.
pub struct Script<'a> {
    pub subject: &'a Subject,
    pub config: Config,
    pub steps: &'a str,
    pub nested: &'a [u8],
}

impl Script<'_> {
    /// Run the script from creation on: after every failure, the acknowledged records survive a kill and a power cut.
    pub fn run(&self, fault: Fault) -> Result<Met, String> {
        let mut run = Run::new(self.subject, self.config, self.nested);
        let disk = run.disk.clone();
        disk.inject(fault);
        let mut met = Met::default();
        let mut is_open = self.reopen(&mut run)?;
        for op in self.steps.chars() {
            if !is_open {
                break;
            }
            let before = run.records.len();
            let Err(error) = run.apply(op) else { continue };
            expect_typed(&error).map_err(|what| format!("step {op:?}: {what}"))?;
            let there = |what| format!("step {op:?} failed ({error:?}): {what}");
            if error.durable() == Some(Durable::No) {
                // The append was rolled back, or never begun: readers must never see it.
                run.records.truncate(before.max(run.acked));
                met.refused += 1;
            } else {
                met.unknown += 1;
                if op != 'r' {
                    self.expect_poisoned(&run).map_err(there)?;
                }
            }
            self.survives(&run).map_err(there)?;
            // Drop a handle that takes no more appends.
            let usable = op != 'r' && run.log().sync().is_ok();
            let mut readable = usable;
            if usable && self.config.how.durability != Durability::None {
                run.acked = run.records.len();
                match run.log().read_all() {
                    Ok(got) => {
                        let next = run.log().next_ordinal().ok().flatten();
                        judge_any(&got, next, &run.allowed(), false).map_err(there)?;
                    }
                    Err(error) => {
                        expect_typed(&error).map_err(there)?;
                        readable = false;
                    }
                }
            }
            if !readable {
                is_open = self.reopen(&mut run)?;
            }
        }
        met.fired = disk.fired() > 0;
        met.calls = disk.calls();
        disk.heal();
        self.survives(&run)?;
        Ok(met)
    }

    /// Open, at most twice; if the disk stays broken, the script ends. The found records are acknowledged from then on.
    fn reopen(&self, run: &mut Run<'_>) -> Result<bool, String> {
        for _ in 0..2 {
            let (records, acked) = (run.records.len(), run.acked);
            run.give_up();
            match run.open() {
                Ok(()) => {
                    let got = match run.log().read_all() {
                        Ok(got) => got,
                        Err(error) => {
                            expect_typed(&error)?;
                            // No handle acknowledged the records: the handle could not read them.
                            run.acked = acked;
                            continue;
                        }
                    };
                    let mut allowed = run.allowed();
                    allowed[0].acked = acked;
                    let next = run.log().next_ordinal().ok().flatten();
                    let found = judge_any(&got, next, &allowed, false)
                        .map_err(|what| format!("opened again: {what}"))?;
                    run.settle(got, found.base);
                    return Ok(true);
                }
                Err(error) => {
                    assert_eq!(run.records.len(), records);
                    expect_typed(&error).map_err(|what| format!("opening: {what}"))?;
                    self.survives(run)
                        .map_err(|what| format!("opening failed ({error:?}): {what}"))?;
                }
            }
        }
        Ok(false)
    }

    fn survives(&self, run: &Run<'_>) -> Result<(), String> {
        let killed = run.disk.kill();
        self.goes_on(&killed, run).map_err(|what| format!("process killed: {what}"))?;
        let crashes = run.disk.crashes();
        for index in 0..STATES.min(crashes.count()) {
            let choice = match index {
                0 => crashes.nth(0),
                _ => crashes.sample(mix(index)),
            };
            self.goes_on(&crashes.build(&choice), run)
                .map_err(|what| format!("power cut, {choice:?}: {what}"))?;
        }
        Ok(())
    }

    fn goes_on(&self, disk: &Sim, run: &Run<'_>) -> Result<(), String> {
        let how = How { durability: Durability::Always, ..self.config.how };
        let fail = |doing: &str, error: Error| format!("{doing}: {error:?}");
        let log = self.subject.open(disk, how).map_err(|e| fail("opening", e))?;
        let got = log.read_all().map_err(|e| fail("reading", e))?;
        let next = log.next_ordinal().map_err(|e| fail("looking", e))?;
        judge_any(&got, next, &run.allowed(), false)?;
        log.append(1, b"more").map_err(|e| fail("appending", e))?;
        // The power fails again: the found and the new records are acknowledged.
        drop(log);
        let crashes = disk.crashes();
        let last = crashes.state(0);
        let again = self.subject.open(&last, how).and_then(|log| log.read_all());
        let again = again.map_err(|e| fail("opening after another power cut", e))?;
        if again.len() != got.len() + 1 || again[..got.len()] != got {
            return Err(format!("{} records, {} and one more were there", again.len(), got.len()));
        }
        Ok(())
    }

    fn expect_poisoned(&self, run: &Run<'_>) -> Result<(), String> {
        for attempt in [run.log().append(1, b"refused").map(drop), run.log().sync()] {
            match attempt {
                Err(error) if error.kind() == ErrorKind::Poisoned => {}
                other => return Err(format!("not poisoned: {other:?}")),
            }
        }
        Ok(())
    }
}

/// Whether a broken disk may cause an error.
pub fn expect_typed(error: &Error) -> Result<(), String> {
    match error.kind() {
        ErrorKind::Io | ErrorKind::Poisoned | ErrorKind::Missing => Ok(()),
        _ => Err(format!("unexpected {error:?}")),
    }
}

/// A fault that honest storage may have.
#[derive(Clone, Debug)]
pub struct Honest {
    pub name: &'static str,
    /// Faults that no code distinguishes strike in turn.
    what: &'static [What],
    pub times: &'static [u64],
}

impl Honest {
    pub fn what(&self, at: u64) -> What {
        self.what[at as usize % self.what.len()]
    }
}

pub const HONEST: [Honest; 7] = {
    use std::io::ErrorKind as Io;
    const EVER: &[u64] = &[1, 3, u64::MAX];
    [
        Honest { name: "EIO", what: &[What::Error(Io::Other)], times: EVER },
        Honest {
            name: "ENOSPC, EDQUOT, EFBIG or EAGAIN",
            what: &[
                What::Error(Io::StorageFull),
                What::Error(Io::QuotaExceeded),
                What::Error(Io::FileTooLarge),
                What::Error(Io::WouldBlock),
            ],
            times: EVER,
        },
        Honest { name: "EINTR", what: &[What::Error(Io::Interrupted)], times: &[1, 3] },
        Honest {
            name: "half a write, then EIO or ENOSPC",
            what: &[What::Partial(Io::Other), What::Partial(Io::StorageFull)],
            times: EVER,
        },
        Honest { name: "half a read or write", what: &[What::Short], times: EVER },
        Honest { name: "a write of 0", what: &[What::Zero], times: EVER },
        Honest { name: "death", what: &[What::Crash], times: &[1] },
    ]
};
