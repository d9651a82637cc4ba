//! The process that is struck while it writes a ledger.

use deedbook::ledger::LedgerStore;
use deedbook::{Durable, Error, ErrorKind};

use crate::Random;
use crate::spool::{EVENT_BYTES, FILE_BYTES, numbers, options};
use crate::support::ledger::spool::{event, number_of, shown, small};
use crate::writer::say;

/// `spool DIR DURABILITY SEED STEPS`: append, fetch and remove until struck, or for so many steps.
pub fn write(args: &[String]) {
    let [dir, durability, seed, steps] = args else { panic!("{args:?}") };
    let mut random = Random(seed.parse().unwrap());
    let mut left: u64 = steps.parse().unwrap();
    let mut next = 0;
    for _ in 0..8 {
        let opened = options(durability.parse().unwrap()).open(small(dir, FILE_BYTES));
        let ledger = match opened {
            Ok(ledger) => ledger,
            Err(error) => {
                say(&format!("e {error}").replace('\n', " "));
                continue;
            }
        };
        while left > 0 {
            left -= 1;
            let Err(error) = step(&ledger, &mut random, &mut next) else { continue };
            say(&format!("e {error}").replace('\n', " "));
            if error.kind() == ErrorKind::Poisoned || random.below(8) == 0 {
                break;
            }
        }
        if let Err(error) = ledger.close() {
            say(&format!("e {error}").replace('\n', " "));
        }
    }
    say(".");
}

fn step(ledger: &LedgerStore, random: &mut Random, next: &mut u64) -> Result<(), Error> {
    match random.below(12) {
        0 => ledger.sync(),
        1 | 2 => {
            let Some(fetched) = ledger.fetch(Some(3), None)? else { return Ok(()) };
            let first = shown(&fetched).swap_remove(0).1;
            let (from, last) = (number_of(&first[0]), number_of(&first[first.len() - 1]));
            let count = last + 1 - from;
            say(&format!("g {from} {count}"));
            ledger.remove(&fetched.removable.unwrap_or_default()[..1])?;
            say(&format!("t {from} {count}"));
            Ok(())
        }
        what => {
            let count = if what < 5 { 1 + random.below(8) } else { 1 };
            let events: Vec<_> =
                numbers(*next, count).map(|number| event(number, EVENT_BYTES)).collect();
            let range = format!("{next} {count}");
            *next += count;
            say(&format!("w {range}"));
            let appended = match &events[..] {
                [one] => ledger.append(one).map(drop),
                many => ledger.append_many(many).map(drop),
            };
            match &appended {
                Ok(()) => say(&format!("a {range}")),
                Err(e) if e.durable() == Some(Durable::No) => say(&format!("x {range}")),
                Err(_) => {}
            }
            appended
        }
    }
}
