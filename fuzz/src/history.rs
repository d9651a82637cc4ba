//! Histories byte by byte, with deaths and power cuts between steps and in the middle of one: what
//! those of all formats have in common.

use deedbook::storage::sim::Sim;

use super::kit::Input;
use super::ledger::spool::mix;

/// A history in the making, and what is known of it.
pub trait History {
    /// What must be on the disk, and what may be.
    type Known: Clone;

    /// How many kinds of steps there are, up to 9.
    const STEPS: u8;

    fn disk(&self) -> &Sim;

    fn known(&self) -> &Self::Known;

    /// Do the step of a number. The disk has no faults, so it succeeds.
    fn step(&mut self, number: u8);

    /// What is known while a step goes on.
    fn during(before: &Self::Known, after: &Self::Known) -> Self::Known;

    /// Open what a crash left, and hold it against what is known; gives what is known then.
    fn recover(&self, disk: &Sim, known: &Self::Known, power: bool) -> Result<Self::Known, String>;

    /// Go on, as a new process, with what a crash left.
    fn go_on(&mut self, disk: Sim, known: Self::Known);
}

/// Let the input make a history of so many steps at most, and crash it at its end.
pub fn run<H: History>(history: &mut H, input: &mut Input<'_>, steps_max: usize) {
    for _ in 0..steps_max {
        if input.is_empty() {
            break;
        }
        let what = input.u8();
        match what & 15 {
            number if number < H::STEPS => history.step(number),
            9 => crash(history, None),
            10 => crash(history, Some(input.u8())),
            _ => crash_in(history, input),
        }
    }
    let known = history.known();
    killed(history, history.disk(), known);
    cut(history, history.disk(), known, 0);
    cut(history, history.disk(), known, 7);
}

fn crash<H: History>(history: &mut H, choice: Option<u8>) {
    let (disk, known) = (history.disk().clone(), history.known().clone());
    go_on(history, &disk, &known, choice);
}

/// Crash at one of the calls of a step.
fn crash_in<H: History>(history: &mut H, input: &mut Input<'_>) {
    let (what, moment, choice) = (input.u8(), input.u8(), input.u8());
    let before = history.known().clone();
    history.disk().record();
    history.step(what % H::STEPS);
    let moments = history.disk().recorded();
    let during = H::during(&before, history.known());
    let Some(disk) = moments.get(usize::from(moment) % moments.len().max(1)) else { return };
    go_on(history, disk, &during, (what & 0x80 != 0).then_some(choice));
}

/// The processes die, or the power is cut; new ones go on with what is there.
fn go_on<H: History>(history: &mut H, disk: &Sim, known: &H::Known, choice: Option<u8>) {
    let (disk, known) = match choice {
        None => (disk.kill(), killed(history, disk, known)),
        Some(choice) => cut(history, disk, known, choice),
    };
    history.go_on(disk, known);
}

/// What is known after the death of the processes.
fn killed<H: History>(history: &H, disk: &Sim, known: &H::Known) -> H::Known {
    let recovered = history.recover(&disk.kill(), known, false);
    recovered.expect("after the death of the processes")
}

/// What a power cut leaves, and what is known of it.
fn cut<H: History>(history: &H, disk: &Sim, known: &H::Known, choice: u8) -> (Sim, H::Known) {
    let crashes = disk.crashes();
    let choice = match u64::from(choice) {
        index if index < 4 && index < crashes.count() => crashes.nth(index),
        seed => crashes.sample(mix(seed)),
    };
    let image = crashes.build(&choice);
    let known = history
        .recover(&image.kill(), known, true)
        .unwrap_or_else(|what| panic!("after a power cut, {choice:?}: {what}"));
    (image, known)
}
