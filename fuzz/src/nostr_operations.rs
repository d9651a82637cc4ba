//! Histories of an event store, with deaths and power cuts between its steps and in the middle of one.
//! No acknowledged event is lost, none comes back that a compaction dropped, and flags stay with what
//! set them.

use deedbook::Durability;
use deedbook::storage::sim::Sim;

use super::history::{self, History};
use super::kit::Input;
use super::nostr_store::judge::recover;
use super::nostr_store::known::Known;
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
    history::run(&mut run, &mut input, STEPS_MAX);
}

impl History for Run {
    type Known = Known;

    const STEPS: u8 = STEPS.len() as u8;

    fn disk(&self) -> &Sim {
        &self.disk
    }

    fn known(&self) -> &Known {
        &self.known
    }

    fn step(&mut self, number: u8) {
        let step = char::from(STEPS[usize::from(number)]);
        self.apply(step).expect("a disk without faults");
    }

    fn during(before: &Known, after: &Known) -> Known {
        Known::during(before, after)
    }

    fn recover(&self, disk: &Sim, known: &Known, power: bool) -> Result<Known, String> {
        recover(disk, &self.options, known, power).map(|got| known.found(&got))
    }

    fn go_on(&mut self, disk: Sim, known: Known) {
        self.crashed(disk, known).expect("opened after a crash");
    }
}
