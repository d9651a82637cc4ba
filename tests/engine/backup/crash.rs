//! A crash at each call of a backup, and each call failing.

use super::*;
use crate::support::crashes::worst;
use crate::support::harness::faulty::HONEST;

struct Behind {
    kind: Kind,
    before: Vec<Vec<u8>>,
    after: Vec<Vec<u8>>,
}

impl Behind {
    /// A backup after `rounds - 1` rounds, or none, and a log after another one.
    fn make(kind: Kind, rounds: u32) -> (Sim, Self) {
        let sim = disk();
        let mut before = Vec::new();
        for round in 0..rounds {
            if round > 0 {
                back_up(on(&sim)).unwrap_or_else(|e| panic!("{}: {e:?}", kind.name));
                before = read(&sim, &kind, COPY).unwrap();
            }
            write(&sim, &kind, round);
        }
        let after = read(&sim, &kind, LOG).unwrap();
        (sim, Self { kind, before, after })
    }

    /// Judges the copy of an interrupted backup. `Ok(false)`: the copy is refused.
    fn judge(&self, sim: &Sim) -> Result<bool, String> {
        let kind = self.kind;
        let found = match read(sim, &kind, COPY) {
            Ok(found) => found,
            Err(e) if self.before.is_empty() && Kind::says_so(&e) => return Ok(false),
            Err(e) if kind.may_be_refused && Kind::says_so(&e) => return Ok(false),
            Err(e) => return Err(format!("the backup before is refused: {e:?}")),
        };
        let both = self.before.iter().filter(|one| self.after.contains(one));
        for one in both {
            if !found.contains(one) {
                return Err(format!("{:?} is missing silently", String::from_utf8_lossy(one)));
            }
        }
        let mut whole = self.before.clone();
        whole.extend(self.after.iter().filter(|one| !self.before.contains(one)).cloned());
        if let Some(other) = found.iter().find(|one| !whole.contains(one)) {
            return Err(format!("{:?} was never there", String::from_utf8_lossy(other)));
        }
        let begin =
            found.first().and_then(|first| whole.iter().position(|one| one == first)).unwrap_or(0);
        if kind.is_ordered && found != whole[begin..begin + found.len()] {
            return Err("records are missing in the middle".into());
        }
        Ok(true)
    }

    /// The next backup continues the copy, and leaves all of it on stable storage.
    fn continue_on(&self, sim: &Sim) -> Result<(), String> {
        back_up(on(sim)).map_err(|e| format!("the next backup: {e:?}"))?;
        for (when, sim) in [("continued", sim.kill()), ("after a power cut", worst(sim))] {
            let found = read(&sim, &self.kind, COPY).map_err(|e| format!("{when}: {e:?}"))?;
            if found != self.after {
                return Err(format!(
                    "{when}: {} records, the log has {}",
                    found.len(),
                    self.after.len()
                ));
            }
            (self.kind.append)(&on(&sim), Path::new(COPY))
                .map_err(|e| format!("{when}, written: {e:?}"))?;
        }
        Ok(())
    }
}

impl World for Behind {
    type Known = ();

    fn recover(&self, disk: &Sim, (): &(), _crash: Crash) -> Result<(), String> {
        // A program opens the backup for writing: the open succeeds, or is refused.
        let opened = disk.kill();
        if self.judge(disk)? {
            match (self.kind.append)(&on(&opened), Path::new(COPY)) {
                Err(e) if !Kind::says_so(&e) => return Err(format!("opened for writing: {e:?}")),
                Err(_) => {}
                Ok(()) => {
                    let found =
                        read(&opened, &self.kind, COPY).map_err(|e| format!("written: {e:?}"))?;
                    let both = self.before.iter().filter(|one| self.after.contains(one));
                    if let Some(lost) = both.into_iter().find(|one| !found.contains(one)) {
                        return Err(format!(
                            "{:?} is lost by writing",
                            String::from_utf8_lossy(lost)
                        ));
                    }
                }
            }
        }
        self.continue_on(disk)
    }

    fn begin(&self, disk: &Sim) -> Result<(), String> {
        back_up(on(disk)).map(drop).map_err(|e| format!("{e:?}"))
    }

    fn context(&self, (): &()) -> Option<u64> {
        Some(0)
    }
}

// Promise: backup-crash.
fn survives_every_crash(name: &str) {
    let kind = Kind::named(name);
    let mut explorer = Explorer::default();
    for rounds in 1..=3 {
        let (sim, behind) = Behind::make(kind, rounds);
        let (sim, known) = (sim.kill(), ());
        sim.record();
        back_up(on(&sim)).unwrap();
        let moments = sim.recorded();
        assert!(moments.len() > 10, "{name}: {} calls", moments.len());
        let moments: Vec<_> = moments.into_iter().map(|moment| (moment, &known)).collect();
        let states = of_tier("DEEDBOOK_BACKUP_STATES");
        // A second crash follows each kill, and takes most of the time.
        let second_calls = states.div_ceil(2).min(5) as usize;
        let plan = Plan { second_every: Some(40), second_calls, ..Plan::of(states) };
        explorer.explore(&format!("{name}, round {rounds}"), &behind, &moments, &plan);
    }
    assert!(explorer.failures.is_empty(), "{:#?}", explorer.failures);
    assert!(explorer.counts.distinct > 20, "{:?}", explorer.counts);
}

of_each_kind! { survives_every_crash }

// Promise: backup-call-fails.
fn continues_after_every_failure(name: &str) {
    let kind = Kind::named(name);
    let stride = kind.stride();
    let (sim, behind) = Behind::make(kind, 2);
    let mut failed = 0;
    for honest in HONEST {
        for (offset, &times) in honest.times.iter().enumerate() {
            for at in (1 + offset as u64 % stride..).step_by(stride as usize) {
                let sim = sim.kill();
                let fault = Fault { at, of: None, what: honest.what(at), times };
                sim.inject(fault);
                let calls = sim.calls();
                let done = back_up(on(&sim));
                let is_over = at > sim.calls() - calls;
                sim.heal();
                let there = |what: String| format!("{} {fault:?} ({done:?}): {what}", kind.name);
                if let Err(e) = &done {
                    failed += 1;
                    assert!(
                        e.kind() == ErrorKind::Io || Kind::says_so(e),
                        "{}",
                        there(String::new())
                    );
                }
                // A process that died holds no lock.
                let sim = sim.kill();
                behind.judge(&sim).and_then(|_| behind.continue_on(&sim)).map_err(there).unwrap();
                if is_over {
                    break;
                }
            }
        }
    }
    assert!(failed > 10, "{}: {failed}", kind.name);
}

of_each_kind! { continues_after_every_failure }

/// A killed long copy continues from the last note of durable bytes.
#[test]
fn a_killed_backup_resumes_from_its_note() {
    for name in ["packed", "slots", "segments", "single"] {
        let kind = Kind::named(name);
        let sim = disk();
        (0..12).for_each(|round| (kind.write)(&on(&sim), Path::new(LOG), round % 2).unwrap());
        let whole = back_up(on(&sim.kill())).unwrap().copied_bytes;
        let killed = sim.kill();
        // Half-way: the calls of a backup of a copy of the disk show the place.
        let writes = 20;
        killed.inject(Fault::once(writes, What::Crash).of(Call::Write));
        back_up(on(&killed)).unwrap_err();
        let killed = killed.kill();
        let there: u64 = ["book.log", "00000000000000000000.wal", ""]
            .iter()
            .map(|file| Path::new(COPY).join(file))
            .filter_map(|path| killed.open(&path, Access::Read).ok()?.len().ok())
            .sum();
        let report = back_up(on(&killed)).unwrap();
        assert!(report.copied_bytes + 300 <= whole, "{name}: {report:?} of {whole}, {there} there");
        assert_eq!(read(&killed, &kind, COPY).unwrap(), read(&sim, &kind, LOG).unwrap());
    }
}
