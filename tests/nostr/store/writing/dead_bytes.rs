//! The live count of dead bytes agrees with a look at all events.

use proptest::prelude::*;

use crate::store::prelude::*;

const BEGIN: u64 = 1_000_000;

/// One step of a history; the numbers choose among the stored events, flags and times.
#[derive(Clone, Debug)]
enum Step {
    Note(bool),
    Expiring(u64),
    Profile(u8),
    Delete(usize),
    Flag(usize, u8),
    Later(u64),
    Sync,
    Checkpoint,
    Compact(bool),
    Reopen,
    Kill,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => any::<bool>().prop_map(Step::Note),
        3 => (1..30u64).prop_map(Step::Expiring),
        4 => (0..3u8).prop_map(Step::Profile),
        3 => any::<usize>().prop_map(Step::Delete),
        2 => (any::<usize>(), 0..4u8).prop_map(|(which, flags)| Step::Flag(which, flags)),
        2 => (1..20u64).prop_map(Step::Later),
        1 => Just(Step::Sync),
        1 => Just(Step::Checkpoint),
        1 => any::<bool>().prop_map(Step::Compact),
        1 => Just(Step::Reopen),
        1 => Just(Step::Kill),
    ];
    prop::collection::vec(step, 1..60)
}

struct World {
    disk: Sim,
    store: Option<EventStore>,
    events: Vec<Event>,
    expires: bool,
    is_sure: bool,
}

impl World {
    fn new() -> Self {
        NOW.set(BEGIN);
        let (events, disk) = (Vec::new(), Sim::new());
        let mut world = Self { disk, store: None, events, expires: false, is_sure: true };
        world.open();
        world
    }

    fn options(&self) -> Options {
        options(&self.disk, Durability::Manual).clock(clock).compaction_ratio(0.3)
    }

    fn open(&mut self) {
        self.store = Some(open(&self.options()));
    }

    fn store(&self) -> &EventStore {
        self.store.as_ref().unwrap()
    }

    fn append(&mut self, author: u8, kind: u16, tags: &[&[&str]], len: usize) {
        let at = self.events.len() as u32;
        let event = event(author, at, kind, tags, &format!("{at} {}", "x".repeat(len)));
        self.store().append(&event).unwrap();
        self.events.push(event);
    }

    fn apply(&mut self, step: &Step) {
        match *step {
            Step::Note(is_long) => self.append(1, 1, &[], if is_long { 9_000 } else { 10 }),
            Step::Expiring(after) => {
                let at = (NOW.get() + after).to_string();
                self.append(1, 1, &[&["expiration", &at]], 10);
                self.expires = true;
            }
            Step::Profile(author) => self.append(author, 0, &[], 10),
            Step::Delete(which) if !self.events.is_empty() => {
                let target = &self.events[which % self.events.len()];
                let request = event(
                    1,
                    10_000 + self.events.len() as u32,
                    5,
                    &[&["e", &target.id.to_string()]],
                    "",
                );
                self.store().append(&request).unwrap();
                self.events.push(request);
            }
            Step::Flag(which, flags) => {
                let stored = walked(self.store(), Include::All);
                if let Some(found) = stored.get(which % stored.len().max(1)) {
                    self.store().set_flags(found.location, Flags(flags)).unwrap();
                }
            }
            Step::Later(seconds) => NOW.set(NOW.get() + seconds),
            Step::Sync => self.store().sync().unwrap(),
            Step::Checkpoint => self.store().checkpoint().unwrap(),
            Step::Compact(all) => {
                let ratio = if all { Some(0.0) } else { None };
                let due = self.store().compaction_due().unwrap();
                let report = self.store().compact(ratio, false).unwrap();
                assert!(all || due != report.segments.is_empty(), "{due} {report:?}");
            }
            Step::Reopen => {
                self.store().close().unwrap();
                self.open();
                // The manifest keeps the next expiration only.
                self.is_sure &= !self.expires;
            }
            Step::Kill => {
                self.disk = self.disk.kill();
                self.open();
                self.is_sure = false;
            }
            Step::Delete(_) => {}
        }
    }

    fn check(&self) {
        let store = self.store();
        let truth = store.fragmentation(&mut |_, _| Ok(())).unwrap();
        let dead: Vec<u64> = truth.iter().map(|is| is.bytes_before - is.bytes_after).collect();
        let counted = store.dead_bytes().unwrap();
        assert_eq!(counted.len(), dead.len());
        for (counted, dead) in counted.iter().zip(&dead) {
            assert!(
                counted.map_or(!self.is_sure, |counted| counted == *dead),
                "{counted:?} {dead}"
            );
        }
    }

    /// Ask the store, which then knows every count that matters for the answer.
    fn ask(&mut self) {
        let truth = self.store().fragmentation(&mut |_, _| Ok(())).unwrap();
        let is_due = truth.iter().any(|is| is.is_due(0.3));
        assert_eq!(self.store().compaction_due().unwrap(), is_due);
        if !is_due {
            assert!(self.store().dead_bytes().unwrap().iter().all(Option::is_some));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn counted_dead_bytes_agree_with_the_events(steps in steps()) {
        let mut world = World::new();
        for step in &steps {
            world.apply(step);
            world.check();
        }
        world.ask();
        world.check();
    }
}

/// Asking read every segment.
#[test]
fn asking_for_a_compaction_reads_nothing() {
    let disk = Sim::new();
    let (storage, counts) = counting(&disk);
    let on = options(&disk, Durability::Manual).storage(storage);
    let asked = |store: &EventStore| {
        let before = counts[0].load(std::sync::atomic::Ordering::Relaxed);
        let is_due = store.compaction_due().unwrap();
        assert_eq!(counts[0].load(std::sync::atomic::Ordering::Relaxed), before);
        is_due
    };
    let store = open(&on);
    one_by_one(&store, &(0..20).map(short).collect::<Vec<_>>());
    assert!(!asked(&store));
    (0..4).for_each(|number| delete(&store, &short(number)));
    assert!(asked(&store));
    store.close().unwrap();
    let store = open(&on);
    assert!(asked(&store), "the manifest has the counts");
    store.compact(None, false).unwrap();
    assert!(!asked(&store));
}

#[test]
fn a_look_counts_expirations_after_too_many() {
    NOW.set(BEGIN);
    let disk = Sim::new();
    let on = options(&disk, Durability::Manual).clock(clock).segment_bytes(400 * PAGE as u64);
    let store = open(&on);
    for number in 0..300u64 {
        let at = (BEGIN + 1 + number).to_string();
        let tags: &[&[&str]] = &[&["expiration", &at]];
        stored(&store, &event(1, number as u32, 1, tags, ""));
    }
    let page = PAGE as u64;
    NOW.set(BEGIN + 256);
    assert_eq!(store.dead_bytes().unwrap(), [Some(256 * page)]);
    NOW.set(BEGIN + 290);
    assert_eq!(store.dead_bytes().unwrap(), [None]);
    assert!(store.compaction_due().unwrap());
    assert_eq!(store.dead_bytes().unwrap(), [Some(290 * page)]);
    NOW.set(BEGIN + 300);
    assert_eq!(store.dead_bytes().unwrap(), [Some(300 * page)]);
}
