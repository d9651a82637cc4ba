//! Each sync and each rename is needed, see `tests/support/harness/mutated.rs`; `mutations.txt` has the caught mutations.
//! A call missing from the list fails the test, and so does an outdated row: somebody must explain each new sync.

use super::*;
use crate::support::harness::mutated::{At, Kinds, Made, Mutated};
use crate::support::harness::mutations::Outcomes;
use crate::support::report;

for_every_subject! { every_sync_and_rename_is_needed }

/// The configuration of a history, the call at which a first creator died, and the steps. After `!`
/// and a digit, the process dies at the sync with this number in the next step.
type History = (&'static str, Option<(Call, u64)>, &'static str);

const HISTORIES: &[History] = &[
    ("manual", None, "1s<bsrLs1k1s"),
    ("manual-reserve", None, "1s<bsrLs1k1s"),
    ("manual", None, "bs>LLp1sp"),
    ("manual", None, "bsLp1sLp"),
    ("manual", None, "1sbyrL"),
    ("manual-acknowledged", None, "1s<bsbp1s"),
    ("manual-acknowledged", None, "1sbr1srp"),
    ("always", None, "1bL"),
    ("bytes", None, "LL>1"),
    ("manual", Some((Call::SyncDir, 1)), "1sL"),
    ("manual", Some((Call::SyncDir, 2)), "1sL"),
    ("manual", Some((Call::SyncDir, 3)), "1sL"),
    ("manual", Some((Call::SyncDir, 4)), "1sL"),
    ("manual", Some((Call::Rename, 1)), "1sL"),
    ("manual", Some((Call::Create, 1)), "1sL"),
    // Only logs that can drop records.
    ("manual", None, "bLsbsh1sp"),
    ("manual", None, "bLsbLh1sp"),
    ("manual", None, "bLsrLh1"),
    ("manual", None, "bLsbst1sp1s"),
    ("manual", None, "bLsbsu1skb"),
    ("manual", None, "bsbsx1sp"),
    ("manual", None, "bsbsm1s1"),
    ("always", None, "bLbcp1"),
    ("manual", None, "bsLsC1sr1s"),
    ("manual", None, "bLsbs!1tk1s"),
    ("manual", None, "bLsbs!2tk1s"),
    ("manual", None, "bLsbs!3tk1s"),
    ("manual", None, "bLsbs!2tp1s"),
    ("manual", None, "bLsbs!2mk1s"),
];
/// Steps of every log; the others drop records.
const EVERYWHERE: &str = "!0123456789<=>bLsrkpy";
struct Judge<'a> {
    subject: &'a Subject,
    config: Config,
    states: u64,
    /// States that are in order.
    good: HashSet<u64>,
}

impl Judge<'_> {
    fn moment(&mut self, moment: &Moment) -> std::result::Result<(), String> {
        let (crashes, context) = (moment.disk.crashes(), moment.context());
        for choice in choices(&moment.disk, self.states, 0) {
            let disk = crashes.build(&choice);
            let key = mix(disk.fingerprint() ^ context);
            if self.good.contains(&key) {
                continue;
            }
            let looked = self.subject.read(&disk);
            let looked = looked.and_then(|log| log.read_all());
            let log = self.subject.open(&disk, self.config.how);
            let log = log.map_err(|error| format!("opening: {error:?}"))?;
            let got = log.read_all().map_err(|error| format!("reading: {error:?}"))?;
            let whole = self.config.how.acknowledged();
            moment.judge(&*log, &got, whole)?;
            match looked {
                Ok(seen) if seen == got || (whole && seen.starts_with(&got)) => {}
                Err(error) if error.kind() == ErrorKind::Missing && got.is_empty() => {}
                other => return Err(format!("a reader got {other:?}")),
            }
            views::check_few(&*log, &got)?;
            self.good.insert(key);
        }
        Ok(())
    }
}

/// Runs a history on a disk with one mutated call: the moments, the calls, and the result of the run.
fn run(
    subject: &Subject,
    (config, died, steps): History,
    nested: &[u8],
    at: At,
) -> (Vec<Moment>, Vec<Made>, Result<()>) {
    let config = Config::named(config);
    let mut run = Run::new(subject, config, nested);
    if let Some((call, at)) = died {
        run.disk.inject(Fault::once(at, What::Crash).of(call));
        let _ = subject.open(&run.disk, config.how);
        run.disk = run.disk.kill();
    }
    let mutated = Mutated::new(run.disk.clone(), kinds(subject), at);
    run.mutated = Some(mutated.clone());
    run.record();
    let done = run.open().and_then(|()| apply_all(&mut run, steps));
    (std::mem::take(&mut run.moments), mutated.made(), done)
}

fn apply_all(run: &mut Run<'_>, steps: &str) -> Result<()> {
    let mut steps = steps.chars();
    while let Some(op) = steps.next() {
        let Some(at) = (op == '!').then(|| steps.next().unwrap().to_digit(10).unwrap()) else {
            run.apply(op)?;
            continue;
        };
        run.disk.inject(Fault::once(at.into(), What::Crash).of(Call::Sync));
        let _ = run.apply(steps.next().unwrap());
    }
    Ok(())
}

fn kinds(subject: &Subject) -> Kinds {
    let sidecar = subject.sidecar();
    Arc::new(move |path| {
        let name = path.file_name().unwrap_or("/".as_ref()).to_string_lossy();
        let in_sidecar = path.components().any(|part| part.as_os_str() == ".deedbook");
        match path.components().count() {
            _ if path == sidecar => "sidecar".into(),
            _ if in_sidecar => name.into(),
            1 => "/".into(),
            2 => "directory".into(),
            _ if name.ends_with(".tmp") => "log.tmp".into(),
            _ => "log".into(),
        }
    })
}

// Promise: power-loss, crash-in-recovery, wal-recovery.
fn every_sync_and_rename_is_needed(subject: &Subject) {
    let nested = subject.nested();
    let known = subject.steps.longer;
    let is_known = |op: char| known.contains(op) || EVERYWHERE.contains(op);
    let own = subject.steps.scripts.iter();
    let own = own.flat_map(|steps| [("manual", None, *steps), ("always", None, *steps)]);
    let usual = HISTORIES.iter().copied().filter(|(.., steps)| steps.chars().all(is_known));
    let mut outcomes = Outcomes::default();
    for history in usual.chain(own) {
        let states = report::of_tier("DEEDBOOK_MUTATION_STATES");
        let config = Config::named(history.0);
        let mut judge = Judge { subject, config, states, good: HashSet::new() };
        outcomes.try_all(&format!("{history:?}"), |at| {
            let (moments, made, done) = run(subject, history, &nested, at);
            let judged = moments.iter().try_for_each(|moment| judge.moment(moment));
            (made, judged.and(done.map_err(|error| format!("{error:?}"))))
        });
    }
    let wrong = outcomes.unlike(include_str!("mutations.txt"), subject.name);
    assert!(wrong.is_empty(), "{}, tests/engine/crash/mutations.txt:\n{wrong}", subject.name);
}
