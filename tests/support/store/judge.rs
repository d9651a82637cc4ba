//! A store's events, in every way of reading, compared with the known facts.

use deedbook::nostr::{Check, EventStore, Options, StoredEvent};
use deedbook::storage::sim::Sim;
use deedbook::{Error, Mode};

use super::events::event;
use super::known::{Got, Known};
use super::ways;
use super::world::DIR;

fn fail(doing: &str) -> impl Fn(Error) -> String {
    move |error| format!("{doing}: {error:?}")
}

/// All events of a handle. Every way of reading must return them.
pub fn look(store: &EventStore, known: &Known, doing: &str) -> Result<Vec<Got>, String> {
    let told = |why| format!("{doing}: {why}");
    let stored = ways::stored(store, known.ids()).map_err(told)?;
    let live = stored.iter().filter(|found| found.flags.is_live()).count();
    let report = store.verify(Check::Id).map_err(fail(doing))?;
    if !report.ok() || report.live != live as u64 {
        return Err(format!("{doing}: {report:?}"));
    }
    ways::now_and_then(store, &stored).map_err(told)?;
    let numbered = |found: &StoredEvent| Ok((known.number_of(&found.event)?, found.flags));
    stored.iter().map(numbered).collect()
}

/// Open a disk after a crash, and judge the events that the writer and a reader see. Then append, and check that the
/// new event survives a close and a power cut.
pub fn recover(
    disk: &Sim,
    options: &Options,
    known: &Known,
    power: bool,
) -> Result<Vec<Got>, String> {
    let on = |disk: &Sim| options.clone().storage(std::sync::Arc::new(disk.clone()));
    let open = |disk: &Sim, doing: &str| on(disk).open(DIR, Mode::Append).map_err(fail(doing));
    let store = open(disk, "opening")?;
    let got = look(&store, known, "after the crash")?;
    known.judge(&got, power)?;
    let reader = on(disk).open(DIR, Mode::Read).map_err(fail("opening a reader"))?;
    if look(&reader, known, "a reader")? != got {
        return Err("a reader sees other events".into());
    }
    let mut known = known.found(&got);
    let number = known.events.len();
    let more = event(3, 77_000, 1, &[], &"later ".repeat(1000));
    known.events.push(super::known::About::new(more.clone(), Default::default()));
    store.append(&more).map_err(fail("appending"))?;
    store.sync().map_err(fail("committing"))?;
    let expected: Vec<Got> = got.iter().copied().chain([(number, Default::default())]).collect();
    let crashes = disk.crashes();
    let worst = open(&crashes.state(0), "opening after a cut")?;
    if look(&worst, &known, "after a cut")? != expected {
        return Err("after a cut there are other events".into());
    }
    drop(worst);
    store.close().map_err(fail("closing"))?;
    let store = open(disk, "opening again")?;
    if look(&store, &known, "opened again")? != expected {
        return Err("opened again there are other events".into());
    }
    let opening = store.opening();
    match (opening.replayed, opening.appended_again, opening.saved.len()) {
        (0, 0, 0) => Ok(got),
        _ => Err(format!("closed, and something was left to do: {opening:?}")),
    }
}
