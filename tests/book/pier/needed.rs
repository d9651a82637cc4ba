//! Each sync and each rename of a pier is needed, see `tests/support/needed.rs`; `needed.txt` has the mutations.

use std::ffi::OsStr;

use deedbook::book::Options;

use crate::pier::support::{LOG, PIER, jam, options};
use crate::support::needed::{self, History, unlike};
use crate::support::prelude::*;
use crate::support::report;

const HISTORIES: &[History] = &[
    ("manual", None, "aasmalasar"),
    ("manual", None, "aalalatas"),
    ("always", None, "alal"),
    ("always", None, "amlma"),
    ("always", Some((Call::SyncDir, 1)), "a"),
    ("always", Some((Call::SyncDir, 2)), "a"),
    ("always", Some((Call::SyncDir, 3)), "al"),
    ("always", Some((Call::Rename, 1)), "a"),
];

struct Run {
    options: Options,
    pier: Option<Pier>,
    known: Known,
}

#[derive(Clone, Default)]
struct Known {
    /// The last durable event, and the last event appended.
    durable: u64,
    tried: u64,
    /// The allowed epochs (their first and last events) and names of the ship.
    epochs: Vec<Vec<u64>>,
    who: Vec<Option<u128>>,
}

impl Run {
    fn step_of(&mut self, op: char) -> deedbook::Result<()> {
        if op == 'o' {
            self.pier = Some(self.options.open_pier(PIER, Mode::Append)?);
            // The writer makes all events that it finds durable.
            self.known.durable = self.known.tried;
            return Ok(());
        }
        let pier = self.pier.clone().expect("the pier is open");
        let known = &mut self.known;
        match op {
            'a' => {
                known.tried += 1;
                pier.append(known.tried as u32, &jam(known.tried))?;
                if self.options.durability == Durability::Always {
                    known.durable = known.tried;
                }
            }
            's' => {
                pier.sync()?;
                known.durable = known.tried;
            }
            'm' => {
                let who = Some(known.who[0].unwrap_or_default() + 1);
                pier.save_meta(&Meta { who, ..Meta::default() })?;
                known.who = vec![who];
            }
            'l' => {
                pier.roll()?;
                let epochs = &mut known.epochs[0];
                epochs.push(known.tried);
                known.durable = known.tried;
            }
            't' => {
                pier.retain(&Retention::new().bytes_max(0))?;
                let epochs = &mut known.epochs[0];
                epochs.drain(..epochs.len() - 1);
            }
            'r' => {
                pier.close()?;
                drop(pier);
                self.pier = None;
                self.step_of('o')?;
            }
            other => panic!("no step {other}"),
        }
        Ok(())
    }
}

fn failed(doing: &'static str) -> impl Fn(Error) -> String {
    move |error| format!("{doing}: {error:?}")
}

/// The epochs and the events of a pier. Each event must be as appended.
fn look(pier: &Pier) -> Result<(Vec<u64>, Vec<u64>), String> {
    let epochs = pier.epochs().map_err(failed("listing"))?;
    let mut cursor = pier.cursor(.., OnCorrupt::Raise).map_err(failed("reading"))?;
    let mut events = Vec::new();
    while let Some(deed) = cursor.next().map_err(failed("reading"))? {
        let event = deed.event.unwrap();
        if (deed.mug, deed.jam) != (event as u32, &*jam(event)) {
            return Err(format!("another event {event}"));
        }
        events.push(event);
    }
    Ok((epochs.iter().map(|epoch| epoch.number).collect(), events))
}

impl Known {
    fn judge(&self, pier: &Pier) -> Result<Vec<u64>, String> {
        let (epochs, events) = look(pier)?;
        let last = pier.last().map_err(failed("the last event"))?;
        let first = epochs.first().map_or(1, |number| number + 1);
        let who = pier.meta().map_err(failed("metadata"))?.who;
        if events != (first..=last).collect::<Vec<_>>() {
            return Err(format!("epochs {epochs:?}, last {last}, events {events:?}"));
        }
        if !(self.durable..=self.tried).contains(&last) {
            return Err(format!("last {last}, {} of {} durable", self.durable, self.tried));
        }
        if !self.epochs.contains(&epochs) || !self.who.contains(&who) {
            return Err(format!("epochs {epochs:?}, who {who:?}"));
        }
        Ok(events)
    }
}

impl needed::Run for Run {
    type Known = Known;

    fn on(disk: &Sim, how: &str) -> Self {
        let options = options(disk).durability(how.parse().unwrap());
        let known = Known { epochs: vec![vec![0]], who: vec![None], ..Known::default() };
        Self { options, pier: None, known }
    }

    fn mutate(&mut self, storage: Arc<dyn Storage>) {
        self.options.storage = storage;
    }

    fn step(&mut self, op: char) -> deedbook::Result<()> {
        self.step_of(op)
    }

    fn doing(op: char) -> &'static str {
        match op {
            's' => "sync",
            'm' => "save",
            'l' => "roll",
            't' => "retain",
            'r' => "reopen",
            _ => "append",
        }
    }

    fn kind(path: &Path) -> String {
        let Ok(inside) = path.strip_prefix(LOG) else {
            return path.file_name().unwrap_or("/".as_ref()).to_string_lossy().into();
        };
        let name = |part: &OsStr| match part.to_str().unwrap() {
            part if part.starts_with("0i") => "epoch".into(),
            part => part.to_string(),
        };
        let parts: Vec<_> = inside.iter().filter(|&part| part != "next").map(name).collect();
        match &inside.iter().any(|part| part == "next") {
            true if parts.len() == 1 => "next".into(),
            true => format!("next {}", parts[1..].join("/")),
            false if parts.is_empty() => "log".into(),
            false => parts.join("/"),
        }
    }

    fn known(&self) -> Known {
        self.known.clone()
    }

    fn during(before: &Known, after: &Known) -> Known {
        // The first epochs go one after the other.
        let (before_all, after_all) = (&before.epochs[0], &after.epochs[0]);
        let dropped = before_all.len().saturating_sub(after_all.len());
        let between = (0..dropped).map(|count| before_all[count..].to_vec());
        let ends = [before_all.clone(), after_all.clone()];
        Known {
            durable: before.durable,
            tried: after.tried,
            epochs: between.chain(ends).collect(),
            who: [&before.who[..], &after.who].concat(),
        }
    }

    fn recover(&self, disk: &Sim, known: &Known) -> Result<(), String> {
        let on = |disk: &Sim| options(disk);
        let seen = match on(disk).open_pier(PIER, Mode::Read) {
            Ok(reader) => known.judge(&reader)?,
            Err(error) if error.kind() == ErrorKind::Missing && known.durable == 0 => vec![],
            Err(error) => return Err(format!("opening a reader: {error:?}")),
        };
        let pier = on(disk).open_pier(PIER, Mode::Append).map_err(failed("opening"))?;
        if known.judge(&pier)? != seen {
            return Err("a writer found other events than a reader".into());
        }
        let next = pier.last().map_err(failed("the last event"))? + 1;
        pier.append(next as u32, &jam(next)).map_err(failed("appending"))?;
        let crashes = disk.crashes();
        let worst = crashes.state(0);
        let again = on(&worst).open_pier(PIER, Mode::Read).map_err(failed("opening again"))?;
        match look(&again)?.1.last() {
            Some(&last) if last == next => {}
            other => return Err(format!("the last event is {other:?}, not {next}")),
        }
        let report = on(&worst).verify_pier(PIER).map_err(failed("verifying"))?;
        if report.ok() { Ok(()) } else { Err(format!("{report:?}")) }
    }
}

#[test]
fn every_sync_and_rename_is_needed() {
    let states = report::of_tier("DEEDBOOK_MUTATION_STATES");
    let wrong = unlike::<Run>(HISTORIES, states, include_str!("needed.txt"), "pier");
    assert!(wrong.is_empty(), "tests/book/pier/needed.txt:\n{wrong}");
}
