//! Histories of an event store, with deaths and power cuts between its steps and in the middle of one.
//! No acknowledged event is lost, none comes back that a compaction dropped, and flags stay with what
//! set them.

use deedbook::Durability;
use deedbook::storage::sim::Sim;

use super::kit::Input;
use super::nostr_store::judge::recover;
use super::nostr_store::known::Known;
use super::nostr_store::support::mix;
use super::nostr_store::world::Run;

const STEPS: &[u8; 9] = b"amvdfckxr";
const STEPS_MAX: usize = 16;

/// The target.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let how = input.u8();
    let durability = match how % 5 {
        0 => None,
        1 => Some(Durability::None),
        2 => Some(Durability::Always),
        3 => Some(Durability::Bytes(6_000)),
        _ => Some(Durability::Manual),
    };
    let mut run = Run::new(durability, how & 0x80 == 0);
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
    let (disk, known) = (run.disk.clone(), run.known.clone());
    recover(&disk.kill(), &run.options, &known, false).expect("after the death of the process");
    cut(&run, &disk, &known, 0);
    cut(&run, &disk, &known, 7);
}

fn step(run: &mut Run, what: u8) {
    run.apply(char::from(STEPS[usize::from(what)])).expect("a disk without faults");
}

/// Crash at one of the calls of a step.
fn crash_in(run: &mut Run, input: &mut Input<'_>) {
    let (what, moment, choice) = (input.u8(), input.u8(), input.u8());
    let before = run.known.clone();
    run.disk.record();
    step(run, what % STEPS.len() as u8);
    let moments = run.disk.recorded();
    let during = Known::during(&before, &run.known);
    let Some(disk) = moments.get(usize::from(moment) % moments.len().max(1)) else { return };
    go_on(run, disk, during, (what & 0x80 != 0).then_some(choice));
}

/// The process dies, or the power is cut; a new process goes on with what is there.
fn go_on(run: &mut Run, disk: &Sim, known: Known, choice: Option<u8>) {
    let (disk, known) = match choice {
        None => {
            let got = recover(&disk.kill(), &run.options, &known, false);
            let got = got.expect("after the death of the process");
            (disk.kill(), known.found(&got))
        }
        Some(choice) => cut(run, disk, &known, choice),
    };
    run.crashed(disk, known).expect("opened after a crash");
}

/// What a power cut leaves, and what is known of it.
fn cut(run: &Run, disk: &Sim, known: &Known, choice: u8) -> (Sim, Known) {
    let crashes = disk.crashes();
    let choice = match u64::from(choice) {
        index if index < 4 && index < crashes.count() => crashes.nth(index),
        seed => crashes.sample(mix(seed)),
    };
    let got = recover(&crashes.build(&choice), &run.options, known, true)
        .unwrap_or_else(|what| panic!("after a power cut, {choice:?}: {what}"));
    (crashes.build(&choice), known.found(&got))
}
