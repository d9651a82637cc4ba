//! Each sync and each rename of ledgers, event stores and piers is needed: without it, some power cut loses records or
//! leaves a refused log. The disk mutates one call of a history (`harness/mutated.rs`). Then the power fails at every
//! later change, and the log is opened and read. A list has the mutations caught. An unlisted call fails the test, and
//! so does a wrong row.

use super::crashes::choices;
use super::harness::mutated::{At, Made, Mutated, Mutation};
use super::harness::mutations::Outcomes;

use crate::support::prelude::*;

/// After the step of the mutated call, each run judges one of so many moments, and the ends of the steps.
const LATER_EVERY: usize = 3;

/// The options of the log, the call at which a first process died, and the steps.
pub type History = (&'static str, Option<(Call, u64)>, &'static str);

pub trait Run: Sized + 'static {
    /// The facts that decide which records a reader may find.
    type Known: Clone;
    /// Begin on a disk; nothing is opened yet.
    fn on(disk: &Sim, how: &str) -> Self;
    fn mutate(&mut self, storage: Arc<dyn Storage>);
    /// Do one step; `o` opens.
    fn step(&mut self, op: char) -> deedbook::Result<()>;
    fn doing(op: char) -> &'static str;
    fn kind(path: &Path) -> String;
    fn known(&self) -> Self::Known;
    fn during(before: &Self::Known, after: &Self::Known) -> Self::Known;
    fn recover(&self, disk: &Sim, known: &Self::Known) -> Result<(), String>;
}

/// The disk at a moment, the number of the known facts then, and the facts.
struct Moment<K>(Sim, usize, K);

struct Ran<R: Run> {
    run: R,
    moments: Vec<Moment<R::Known>>,
    made: Vec<Made>,
    done: deedbook::Result<()>,
}

fn run<R: Run>((how, died, steps): History, at: At) -> Ran<R> {
    let mut disk = Sim::new();
    if let Some((call, at)) = died {
        disk.inject(Fault::once(at, What::Crash).of(call));
        let _ = R::on(&disk, how).step('o');
        disk = disk.kill();
    }
    let mut run = R::on(&disk, how);
    let mutated = Mutated::new(disk.clone(), Arc::new(R::kind), at);
    run.mutate(mutated.storage());
    disk.record();
    let mut moments = Vec::new();
    let mut steps = std::iter::once('o').chain(steps.chars()).enumerate();
    let done = steps.try_for_each(|(at, op)| {
        let before = run.known();
        if at > 0 {
            mutated.doing(R::doing(op));
        }
        let done = run.step(op);
        let after = run.known();
        let during = R::during(&before, &after);
        let disks = disk.recorded().into_iter();
        moments.extend(disks.map(|disk| Moment(disk, 2 * at, during.clone())));
        moments.push(Moment(disk.kill(), 2 * at + 1, after));
        done
    });
    Ran { run, moments, made: mutated.made(), done }
}

/// The mutated calls of a history on a disk, and the loss found after the first bad power cut. `good` has the states in
/// order, each with the number of its known facts.
fn judged<R: Run>(
    history: History,
    at: At,
    states: u64,
    good: &mut HashSet<(u64, usize)>,
) -> (Vec<Made>, Result<(), String>) {
    let Ran { run, mut moments, made, done } = run::<R>(history, at);
    if let Some((call, _)) = at {
        let end = 2 * made[call].operation;
        let mut index = call;
        moments.retain(|Moment(_, number, _)| {
            index += 1;
            *number < end || number % 2 == 1 || index.is_multiple_of(LATER_EVERY)
        });
    }
    let mut judge = |Moment(disk, number, known): &Moment<R::Known>| {
        let crashes = disk.crashes();
        for choice in choices(disk, states, 0) {
            let image = crashes.build(&choice);
            let key = (image.fingerprint(), *number);
            if !good.contains(&key) {
                run.recover(&image, known)?;
                good.insert(key);
            }
        }
        Ok(())
    };
    let judged = moments.iter().try_for_each(&mut judge);
    (made, judged.and(done.map_err(|error| format!("{error:?}"))))
}

/// The loss after a power cut if the disk drops the sync with this name in the list; `None` if no state shows a loss.
pub fn shown<R: Run>(history: History, sync: &str, states: u64) -> Option<String> {
    let mut good = HashSet::new();
    let (made, sound) = judged::<R>(history, None, states, &mut good);
    assert_eq!(sound, Ok(()), "without a mutation: {history:?}");
    let named = |made: &Made| format!("{}: {made}", made.doing) == sync;
    let numbers = (0..made.len()).filter(|number| named(&made[*number]));
    numbers
        .map(|number| Some((number, Mutation::DropAll)))
        .find_map(|at| judged::<R>(history, at, states, &mut good).1.err())
}

/// The outcomes of these histories that differ from the list of a format.
pub fn unlike<R: Run>(
    histories: &[History],
    states: u64,
    list: &'static str,
    format: &str,
) -> String {
    let mut outcomes = Outcomes::default();
    for &history in histories {
        let mut good = HashSet::new();
        outcomes.try_all(&format!("{history:?}"), |at| judged::<R>(history, at, states, &mut good));
    }
    outcomes.unlike(list, format)
}
