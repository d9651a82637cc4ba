//! Histories of two stores on one ledger, with deaths and power cuts between the calls of a step and
//! in the middle of one. No acknowledged event is lost, none comes back that was removed, and no index
//! is given twice.

use deedbook::Durability;
use deedbook::storage::sim::Sim;

use super::kit::Input;
use super::oracle::{Known, Run, recover};
use super::support::mix;

const STEPS: &[u8; 9] = b"abmsfxrzw";
const STEPS_MAX: usize = 60;

/// The target.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let durability = match input.u8() % 5 {
        0 => Durability::None,
        1 => Durability::Rotate,
        2 => Durability::Always,
        3 => Durability::Bytes(300),
        _ => Durability::Manual,
    };
    let mut run = Run::new(durability);
    run.open().expect("opened");
    for _ in 0..STEPS_MAX {
        if input.is_empty() {
            break;
        }
        let what = input.u8();
        match what & 15 {
            0..=8 => step(&mut run, what & 15),
            9 => {
                let (disk, known) = (run.disk.clone(), run.known.clone());
                go_on(&mut run, &disk, known, None);
            }
            10 => {
                let (disk, known) = (run.disk.clone(), run.known.clone());
                go_on(&mut run, &disk, known, Some(input.u8()));
            }
            _ => crash_in(&mut run, &mut input),
        }
    }
    recover(&run.disk.kill(), &run.known, false).expect("after the death of the processes");
    cut(&run.disk, &run.known, 0);
    cut(&run.disk, &run.known, 7);
}

fn step(run: &mut Run, what: u8) {
    let op = char::from(STEPS[usize::from(what)]);
    run.apply(op).expect("a disk without faults");
    if op == 'f' {
        run.judge_fetched().expect("a fetch");
    }
}

/// Crash at one of the calls of a step.
fn crash_in(run: &mut Run, input: &mut Input) {
    let (what, moment, choice) = (input.u8(), input.u8(), input.u8());
    let before = run.known.clone();
    run.disk.record();
    step(run, what % STEPS.len() as u8);
    let moments = run.disk.recorded();
    let during = Known::during(&before, &run.known);
    let Some(disk) = moments.get(usize::from(moment) % moments.len().max(1)) else { return };
    go_on(run, disk, during, (what & 0x80 != 0).then_some(choice));
}

/// The processes die, or the power is cut; new processes go on with what is there.
fn go_on(run: &mut Run, disk: &Sim, known: Known, choice: Option<u8>) {
    let (disk, known) = match choice {
        None => {
            recover(&disk.kill(), &known, false).expect("after the death of the processes");
            (disk.kill(), known)
        }
        Some(choice) => cut(disk, &known, choice),
    };
    run.crashed(disk, known).expect("opened after a crash");
}

/// What a power cut leaves, and what is known of it.
fn cut(disk: &Sim, known: &Known, choice: u8) -> (Sim, Known) {
    let crashes = disk.crashes();
    let choice = match u64::from(choice) {
        index if index < 4 && index < crashes.count() => crashes.nth(index),
        seed => crashes.sample(mix(seed)),
    };
    let image = crashes.build(&choice);
    let got = recover(&image.kill(), known, true)
        .unwrap_or_else(|what| panic!("after a power cut, {choice:?}: {what}"));
    (image, known.found(&got))
}
