//! Process crashes, power cuts and failing calls at every step of a roll, on the simulated disk.

use crate::pier::support::*;

/// States tried per power cut.
const STATES: u64 = 400;
const WHO: u128 = 0x1234;

/// The states that a crash may leave.
struct Known {
    layout: Layout,
    /// The last event on stable storage, and the last event ever appended.
    durable: u64,
    tried: u64,
    /// Epochs, without and with the new epoch.
    epochs: Vec<Vec<u64>>,
}

/// A pier with one epoch of `synced` durable events and two unsynced events.
fn begun(synced: u64) -> (Sim, Pier) {
    begun_in(Layout::Packed, synced)
}

fn begun_in(layout: Layout, synced: u64) -> (Sim, Pier) {
    begun_with(|options| options.durability(Durability::Manual), layout, synced)
}

fn begun_with(set: impl Fn(Options) -> Options, layout: Layout, synced: u64) -> (Sim, Pier) {
    let disk = Sim::new();
    put(&disk, "/unrelated", b"");
    let options = set(options(&disk).layout(layout));
    let pier = options.open_pier(PIER, Mode::Append).unwrap();
    append(&pier, 1..=synced);
    pier.sync().unwrap();
    pier.save_meta(&Meta { who: Some(WHO), ..Meta::default() }).unwrap();
    append(&pier, synced + 1..=synced + 2);
    (disk, pier)
}

/// Open the pier after a crash for reading and for writing, append, roll again, open once more. The second crash came
/// in an append and a roll of the next process.
fn judge(image: &Sim, known: &Known, crash: Crash) -> Vec<u64> {
    let again = crash == Crash::Second;
    let seen = match options(image).open_pier(PIER, Mode::Read) {
        Ok(reader) => all(&reader),
        Err(error) => panic!("for reading: {error:?}"),
    };
    let pier = options(image).open_pier(PIER, Mode::Append).unwrap();
    let found = numbers(&pier);
    let is_known = |found: &[u64]| known.epochs.iter().any(|epochs| epochs == found);
    let is_longer = again && is_known(&found[..found.len() - 1]);
    assert!(is_known(&found) || is_longer, "epochs {found:?}");
    assert!(layouts(&pier).iter().all(|layout| *layout == known.layout), "{:?}", layouts(&pier));
    let events = all(&pier);
    assert_eq!(events, seen, "a writer found other events than a reader");
    let last = events.last().copied().unwrap_or(0);
    assert_eq!(events, (1..=last).collect::<Vec<_>>());
    assert!((known.durable..=known.tried + u64::from(again)).contains(&last), "last event {last}");
    if let Some(&number) = found.last().filter(|&&number| number > 0) {
        // The epoch is complete: it has the metadata and the text of the epoch before.
        assert_eq!(pier.meta().unwrap().who, Some(WHO));
        assert_eq!(crate::support::common::read_file(image, &epoch(number).join("epoc.txt")), b"3");
    }
    append(&pier, last + 1..=last + 1);
    assert_eq!(pier.roll().unwrap(), last + 1);
    append(&pier, last + 2..=last + 2);
    pier.close().unwrap();
    let again = reading(image);
    assert_eq!(all(&again), (1..=last + 2).collect::<Vec<_>>());
    assert!(options(image).verify_pier(PIER).unwrap().ok());
    found
}

#[derive(Default)]
struct Crashed {
    found: RefCell<BTreeSet<Vec<u64>>>,
}

impl World for Crashed {
    type Known = Known;

    fn recover(&self, disk: &Sim, known: &Known, crash: Crash) -> Result<(), String> {
        let found = judge(disk, known, crash);
        if crash != Crash::Second {
            self.found.borrow_mut().insert(found);
        }
        Ok(())
    }

    fn begin(&self, disk: &Sim) -> Result<(), String> {
        let pier = appending(disk);
        let last = pier.last().unwrap() + 1;
        append(&pier, last..=last);
        pier.roll().map(drop).map_err(|error| format!("{error:?}"))
    }
}

fn crash(moments: &[(Sim, &Known)]) -> (Counts, BTreeSet<Vec<u64>>) {
    let (mut explorer, crashed) = (Explorer::default(), Crashed::default());
    explorer.explore("roll", &crashed, moments, &Plan::of(STATES));
    (explorer.counts, crashed.found.into_inner())
}

// Promise: pier-roll.
#[test]
fn a_crashed_roll_is_all_or_nothing() {
    let (mut moments, mut states, mut found) = (0, 0, BTreeSet::new());
    for (layout, synced) in [(Layout::Packed, 1), (Layout::Packed, 3), (Layout::Slots, 3)] {
        let (disk, pier) = begun_in(layout, synced);
        let last = synced + 2;
        let epochs = vec![vec![0], vec![0, last]];
        let during = Known { layout, durable: synced, tried: last, epochs };
        disk.record();
        assert_eq!(pier.roll().unwrap(), last);
        let crashed: Vec<_> = disk.recorded().into_iter().map(|disk| (disk, &during)).collect();
        let (counts, seen) = crash(&crashed);
        found.extend(seen);
        moments += counts.moments;
        states += counts.states;
        let after = Known { layout, durable: last, tried: last, epochs: vec![vec![0, last]] };
        states += crash(&[(disk.kill(), &after)]).0.states;
    }
    assert!(moments > 150 && states > 1000, "{moments} moments, {states} states");
    assert_eq!(found, BTreeSet::from([vec![0], vec![0, 3], vec![0, 5]]));
}

/// The durability of a handle is for appends: a roll is durable with any.
#[test]
fn a_roll_is_durable_with_any_handle_options() {
    use Recovery::{Acknowledged, Spec, Valid};
    for layout in [Layout::Packed, Layout::Slots] {
        for recovery in [Valid, Acknowledged, Spec] {
            let set = |options: Options| options.durability(Durability::None).recovery(recovery);
            let (disk, pier) = begun_with(set, layout, 3);
            assert_eq!(pier.roll().unwrap(), 5);
            let known = Known { layout, durable: 5, tried: 5, epochs: vec![vec![0, 5]] };
            assert!(crash(&[(disk.kill(), &known)]).0.states > 0);
        }
    }
}

/// A writer that died leaves unsynced names. The next writer syncs the names before it acknowledges.
#[test]
fn appending_makes_a_dead_writers_epoch_durable() {
    let (disk, pier) = begun(2);
    disk.record();
    pier.roll().unwrap();
    let mut gone_on = 0;
    for moment in disk.recorded() {
        let image = moment.kill();
        let pier = appending(&image);
        let last = pier.last().unwrap();
        append(&pier, last + 1..=last + 1);
        gone_on += usize::from(numbers(&pier).len() == 2);
        for after in cuts(&image, 50) {
            assert_eq!(reading(&after).last().unwrap(), last + 1);
        }
    }
    assert!(gone_on > 0);
}

// Promise: pier-roll.
#[test]
fn a_failed_call_in_a_roll_loses_nothing() {
    [Layout::Packed, Layout::Slots].into_iter().for_each(fails_in);
}

fn fails_in(layout: Layout) {
    let (mut failed, mut went_on, mut closed) = (0, 0, 0);
    for call in 1.. {
        let (disk, pier) = begun_in(layout, 2);
        disk.inject(Fault::once(call, What::Error(Io::Other)));
        let rolled = pier.roll();
        let struck = disk.fired() > 0;
        disk.heal();
        failed += u64::from(rolled.is_err());
        // If the new epoch may exist, only opening the pier again finds out.
        let unsure = rolled.is_err() && disk.is_dir(&epoch(4));
        let mut last = 4;
        match pier.append(5, &jam(5)) {
            Ok(event) => {
                assert!(event == 5 && !unsure, "call {call}: event {event}");
                went_on += 1;
                last = 5;
                // A later sync cannot undo a failed sync.
                if pier.sync().is_err() {
                    last = 4;
                }
            }
            Err(error) => {
                let kind = if unsure { ErrorKind::Closed } else { ErrorKind::Poisoned };
                assert_eq!(error.kind(), kind, "call {call}: {rolled:?}");
                closed += 1;
            }
        }
        drop(pier);
        let pier = appending(&disk);
        let found = pier.last().unwrap();
        assert!((last..=5).contains(&found), "call {call}: last {found}");
        assert_eq!(all(&pier), (1..=found).collect::<Vec<_>>(), "call {call}");
        append(&pier, found + 1..=found + 1);
        pier.roll().unwrap();
        pier.close().unwrap();
        assert!(options(&disk).verify_pier(PIER).unwrap().ok(), "call {call}");
        if !struck {
            assert!(rolled.is_ok());
            break;
        }
    }
    assert!(failed > 30 && went_on > 10 && closed > 0, "{failed} {went_on} {closed}");
}

/// A roll first removes the leftovers of an interrupted roll. A failed listing does not count as empty.
#[test]
fn leftovers_of_a_roll_never_enter_an_epoch() {
    let next = Path::new(LOG).join(".deedbook/next");
    let mut refused = 0;
    for call in 1.. {
        let (disk, pier) = begun(2);
        disk.create_dir(&next).unwrap();
        put(&disk, next.join("vere.txt"), b"of another one");
        disk.inject(Fault::once(call, What::Error(Io::Other)).of(Call::List));
        let rolled = pier.roll();
        let struck = disk.fired() > 0;
        disk.heal();
        refused += u64::from(rolled.is_err());
        drop(pier);
        let pier = appending(&disk);
        if numbers(&pier).len() == 1 {
            append(&pier, 5..=5);
            pier.roll().unwrap();
        }
        let begun = numbers(&pier)[1];
        let names = disk.list(&epoch(begun)).unwrap();
        assert!(!names.iter().any(|name| name == "vere.txt"), "call {call}: {rolled:?}");
        if !struck {
            break;
        }
    }
    assert!(refused > 0);
}
