//! Histories of two stores on one ledger, with deaths and power cuts between the calls of a step and
//! in the middle of one. No acknowledged event is lost, none comes back that was removed, and no index
//! is given twice.

use deedbook::Durability;
use deedbook::storage::sim::Sim;

use super::history::{self, History};
use super::kit::Input;
use super::ledger::oracle::{Known, Run, recover};

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
        let op = char::from(STEPS[usize::from(number)]);
        self.apply(op).expect("a disk without faults");
        if op == 'f' {
            self.judge_fetched().expect("a fetch");
        }
    }

    fn during(before: &Known, after: &Known) -> Known {
        Known::during(before, after)
    }

    fn recover(&self, disk: &Sim, known: &Known, power: bool) -> Result<Known, String> {
        let got = recover(disk, known, power)?;
        Ok(if power { known.found(&got) } else { known.clone() })
    }

    fn go_on(&mut self, disk: Sim, known: Known) {
        self.crashed(disk, known).expect("opened after a crash");
    }
}
