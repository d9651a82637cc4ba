//! All mutations of a history, and the list of their outcomes.

use std::fmt::Write as _;

use super::mutated::{At, Made, Mutation};

use crate::support::prelude::*;

const TRIES: u32 = 20;

/// The outcome of each mutation, by its name in the list.
#[derive(Debug, Default)]
pub struct Outcomes(BTreeMap<String, Outcome>);

#[derive(Debug, Default)]
struct Outcome {
    tries: u32,
    caught: Option<String>,
}

impl Outcomes {
    /// Try all mutations of a history. `run` returns the history's calls and the failure.
    pub fn try_all(
        &mut self,
        history: &str,
        mut run: impl FnMut(At) -> (Vec<Made>, Result<(), String>),
    ) {
        let (made, sound) = run(None);
        assert_eq!(sound, Ok(()), "without a mutation: {history}");
        for number in 0..made.len() {
            for (mutation, name) in mutations(&made, number) {
                let outcome = self.0.entry(name).or_default();
                if outcome.caught.is_some() || outcome.tries == TRIES {
                    continue;
                }
                outcome.tries += 1;
                outcome.caught = run(Some((number, mutation))).1.err();
            }
        }
    }

    pub fn unlike(&self, list: &'static str, format: &str) -> String {
        let rows: Vec<Row> = Row::all(list).filter(|row| row.concerns(format)).collect();
        let mut wrong = String::new();
        for Row { call, caught, .. } in &rows {
            let what = match self.0.get(call).map(|outcome| &outcome.caught) {
                None => "no history makes this call",
                Some(None) if *caught == Some(true) => "not caught",
                Some(Some(what)) if *caught == Some(false) => &format!("not needless: {what}"),
                _ => continue,
            };
            writeln!(wrong, "{call}: {what}").unwrap();
        }
        for (call, outcome) in &self.0 {
            let in_order = call.contains(" before ") && outcome.caught.is_none();
            if !in_order && !rows.iter().any(|row| row.call == *call) {
                writeln!(wrong, "{call}: not in the list: {outcome:?}").unwrap();
            }
        }
        wrong
    }
}

/// The mutations of call `number`, each with its name in the list.
fn mutations(made: &[Made], number: usize) -> Vec<(Mutation, String)> {
    let call = &made[number];
    let name = format!("{}: {call}", call.doing);
    let mut all = Vec::new();
    match call.call {
        Call::Rename => all.push((Mutation::Lose, name)),
        Call::Sync | Call::SyncDir => {
            let then = made.get(number + 1).filter(|then| then.operation == call.operation);
            if let Some(then) = then {
                let late = format!("{name} before {then}");
                all.push((Mutation::Swap, late.clone()));
                // The other syncs of the same file take place.
                if made.iter().filter(|other| *other == call).count() > 1 {
                    all.push((Mutation::Drop, late));
                }
            }
            if !made[..number].contains(call) {
                all.push((Mutation::DropAll, name));
            }
        }
        _ => {}
    }
    all
}

struct Row {
    call: String,
    logs: &'static str,
    /// Whether a test must catch the mutation; `None`: left to chance.
    caught: Option<bool>,
}

impl Row {
    fn all(list: &'static str) -> impl Iterator<Item = Self> {
        let lines = list.lines();
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines.flat_map(|line| {
            let parts: Vec<_> = line.splitn(3, '|').map(str::trim).collect();
            let [call, logs, verdict] = parts[..] else {
                panic!("not OPERATIONS: CALL | LOGS | VERDICT: {line}")
            };
            let (operations, call) = call.split_once(": ").expect("OPERATIONS: CALL");
            let caught = match verdict.split_once(": ") {
                None if verdict == "caught" => Some(true),
                Some(("needless", _)) => Some(false),
                Some(("seldom", _)) => None,
                _ => panic!("neither caught, needless nor seldom: {line}"),
            };
            let row = move |doing| Self { call: format!("{doing}: {call}"), logs, caught };
            operations.split(' ').map(row)
        })
    }

    /// Whether the row concerns the format: `LOGS` has a prefix of the format's name, and no such prefix after a minus.
    fn concerns(&self, format: &str) -> bool {
        let has = |name: &str| name == "all" || format.starts_with(name);
        let names = self.logs.split(' ');
        let (without, with): (Vec<_>, Vec<_>) = names.partition(|name| name.starts_with('-'));
        !without.iter().any(|name| has(&name[1..])) && with.into_iter().any(has)
    }
}
