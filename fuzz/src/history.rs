//! Histories byte by byte, with kills and power cuts between steps and in the middle of a step. The
//! common part of all formats.

use deedbook::storage::sim::Sim;

use super::kit::Input;
use super::ledger::spool::mix;

/// A growing history, and the known state of the log.
pub trait History {
    /// The records that must be on the disk, and the records that may be.
    type Known: Clone;

    /// Number of kinds of steps, up to 9.
    const STEPS: u8;

    fn disk(&self) -> &Sim;

    fn known(&self) -> &Self::Known;

    /// Do the step with a number. The disk has no faults, so the step succeeds.
    fn step(&mut self, number: u8);

    /// The known state during a step.
    fn during(before: &Self::Known, after: &Self::Known) -> Self::Known;

    /// Open the disk after a crash, and check the log against the known state. Returns the new
    /// known state.
    fn recover(&self, disk: &Sim, known: &Self::Known, power: bool) -> Result<Self::Known, String>;

    /// Go on as a new process with the disk after a crash.
    fn go_on(&mut self, disk: Sim, known: Self::Known);
}

/// Let the input make a history of at most `steps_max` steps, with crashes at the end.
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

/// Crash at a call of a step.
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

/// Kill the processes, or cut the power; new processes go on with the disk.
fn go_on<H: History>(history: &mut H, disk: &Sim, known: &H::Known, choice: Option<u8>) {
    let (disk, known) = match choice {
        None => (disk.kill(), killed(history, disk, known)),
        Some(choice) => cut(history, disk, known, choice),
    };
    history.go_on(disk, known);
}

/// The known state after killing the processes.
fn killed<H: History>(history: &H, disk: &Sim, known: &H::Known) -> H::Known {
    let recovered = history.recover(&disk.kill(), known, false);
    recovered.expect("after the death of the processes")
}

/// The disk after a power cut, and the known state.
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
