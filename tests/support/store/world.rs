//! A history in the making on a simulated disk, and the facts known of its events.

use std::sync::Arc;
use std::time::Duration;

use deedbook::nostr::{Event, EventStore, Flags, Include, Options, Outcome};
use deedbook::storage::sim::Sim;
use deedbook::{Durability, Durable, Error, ErrorKind, Mode, OnCorrupt, Retention};

use super::events::event;
use super::judge::look;
use super::known::{About, Known};

pub const DIR: &str = "/events";
const PAGE: u64 = 4096;
/// Less than a long note.
const BATCH_BYTES: u64 = 5_000;

/// Five pages of records in a segment, so nearly every history begins another segment.
pub fn options(disk: &Sim, durability: impl Into<Option<Durability>>) -> Options {
    let mut options = super::events::on_storage(Arc::new(disk.clone()))
        // Default durability: a long note syncs the log, and so do the steps for a sync.
        .batch_bytes(BATCH_BYTES)
        .batch_interval(Duration::from_secs(1))
        .segment_bytes(6 * PAGE)
        .wal_segment_bytes(8 << 10)
        .checkpoint_bytes(12 << 10);
    options.durability = durability.into();
    options
}

pub struct Run {
    pub disk: Sim,
    pub options: Options,
    pub known: Known,
    pub store: Option<EventStore>,
    /// Whether a step failed, so only opening shows the events.
    unsure: bool,
    pub wrong: Option<String>,
}

type Done = Result<(), Error>;

impl Run {
    pub fn new(durability: impl Into<Option<Durability>>, checksums: bool) -> Self {
        Self::on(Sim::new(), durability, checksums)
    }

    pub fn on(disk: Sim, durability: impl Into<Option<Durability>>, checksums: bool) -> Self {
        let options = options(&disk, durability).checksums(checksums);
        let known = Known { events: vec![], orders: vec![vec![]] };
        Self { disk, options, known, store: None, unsure: false, wrong: None }
    }

    pub fn open(&mut self) -> Done {
        let store = self.options.open(DIR, Mode::Append)?;
        if std::mem::take(&mut self.unsure) {
            let got = look(&store, &self.known, "opened after an error");
            let judged = got.and_then(|got| self.known.judge(&got, false).map(|()| got));
            match judged {
                Ok(got) => self.known = self.known.found(&got),
                Err(wrong) => self.wrong = Some(wrong),
            }
        }
        self.store = Some(store);
        self.known.all_durable();
        Ok(())
    }

    /// Another process continues after a crash: for the fuzzer.
    #[allow(dead_code)]
    pub fn crashed(&mut self, disk: Sim, known: Known) -> Done {
        self.store = None;
        self.options.storage = Arc::new(disk.clone());
        (self.disk, self.known, self.unsure) = (disk, known, false);
        self.open()
    }

    fn store(&self) -> EventStore {
        self.store.clone().expect("the store is open")
    }

    /// Do one step: append a note; a note of two pages and two short notes at once; the next version of a profile; a
    /// deletion request for the newest note, or for the newest profile; a profile older than the newest, which is
    /// deleted; flag the oldest note by hand, or unflag it; retain the newest note alone; commit; checkpoint; a checkpoint by time; compact; compact,
    /// and do other steps during the copying; close and open.
    pub fn apply(&mut self, step: char) -> Done {
        let done = self.step(step);
        self.unsure |= done.is_err();
        done
    }

    fn step(&mut self, step: char) -> Done {
        match step {
            'a' => self.append(&[self.note(0, 10)]),
            'm' => self.append(&[self.note(0, 10), self.note(1, 5_000), self.note(2, 10)]),
            'v' => {
                let at = self.known.events.len() as u32;
                self.append(&[event(9, at, 0, &[], &format!("profile {at}"))])
            }
            'd' => self.delete(1, 1),
            'p' => self.delete(9, 0),
            'w' => {
                let versions = self.known.events.iter().filter(|about| about.event.kind == 0);
                let newest = versions.map(|about| about.event.created_at).max().unwrap();
                self.append(&[event(9, newest - 1, 0, &[], "an older profile")])
            }
            'f' => self.flag(),
            'n' => self.retain(),
            'c' => {
                self.store().sync()?;
                self.known.all_durable();
                Ok(())
            }
            'k' => {
                self.store().checkpoint()?;
                self.known.all_durable();
                Ok(())
            }
            't' => {
                self.store().checkpoint_after(Duration::from_secs(300))?;
                self.known.all_durable();
                Ok(())
            }
            'x' => self.compact(""),
            'y' => self.compact("afd"),
            'z' => self.compact("mvf"),
            'r' => {
                let closed = self.store().close();
                self.store = None;
                closed?;
                self.open()
            }
            other => panic!("no step {other}"),
        }
    }

    fn delete(&mut self, author: u8, kind: u16) -> Done {
        let newest = self.known.events.iter().rev();
        let newest = newest.filter(|about| about.is_live() && about.event.kind == kind);
        let id = newest.map(|about| about.event.id.to_string()).next();
        let id = id.unwrap_or_else(|| "ab".repeat(32));
        self.append(&[event(author, self.known.events.len() as u32, 5, &[&["e", &id]], "")])
    }

    fn note(&self, number: usize, len: usize) -> Event {
        let at = self.known.events.len() + number;
        event(1, at as u32, 1, &[], &format!("{at} {}", "x".repeat(len)))
    }

    /// Append, and note which events the new events hide.
    fn append(&mut self, events: &[Event]) -> Done {
        let (store, before) = (self.store(), self.known.clone());
        let from = self.known.events.len();
        for event in events {
            let number = self.known.events.len();
            for about in &mut self.known.events {
                let hides = about.is_live()
                    && match event.kind {
                        0 => about.event.kind == 0,
                        5 => event.tags[0][1] == about.event.id.to_string(),
                        _ => false,
                    };
                if hides {
                    let flag = if event.kind == 0 { Flags::REPLACED } else { Flags::DELETED };
                    about.flags.push(flag);
                    about.hidden_by = Some(number);
                }
            }
            self.known.events.push(About::new(event.clone(), Flags::default()));
            self.known.orders.iter_mut().for_each(|order| order.push(number));
        }
        match store.append_many(events) {
            Ok(outcomes) => {
                let stored = outcomes.iter().all(|o| matches!(o, Outcome::Stored(_)));
                assert!(stored && outcomes.len() == events.len(), "{outcomes:?}");
                self.known.written(from);
                // At the end of a segment, the store writes the events after the last long note separately.
                let is_long = |event: &Event| event.content.len() as u64 >= BATCH_BYTES;
                let synced = events.iter().rposition(is_long).map(|at| from + at + 1);
                self.changed(synced);
                Ok(())
            }
            Err(error) => {
                if error.durable() == Some(Durable::No) {
                    let count = self.known.events.len();
                    self.known = before;
                    // The numbers are used up.
                    for event in &events[..count - self.known.events.len()] {
                        let mut about = About::new(event.clone(), Flags::default());
                        about.tried = false;
                        self.known.events.push(about);
                    }
                }
                Err(error)
            }
        }
    }

    /// A step's changes are acknowledged; by default, so many events are synced.
    fn changed(&mut self, synced: Option<usize>) {
        match (self.options.durability, synced) {
            (Some(Durability::Always), _) => self.known.all_durable(),
            (None, Some(count)) => self.known.durable_until(count),
            _ => {}
        }
    }

    fn flag(&mut self) -> Done {
        let store = self.store();
        let by_hand = |about: &&mut About| {
            about.tried && !about.leaving && about.hidden_by.is_none() && about.event.kind == 1
        };
        let Some(about) = self.known.events.iter_mut().find(by_hand) else { return Ok(()) };
        let flags = if about.is_live() { Flags::DELETED } else { Flags::default() };
        let id = about.event.id;
        let mut all = store.iter(Include::All, OnCorrupt::Raise)?;
        let found = all.find_map(|found| found.ok().filter(|found| found.event.id == id));
        let Some(found) = found else {
            let lost = Error::new(ErrorKind::Poisoned, format!("the event {id} is not there"));
            return Err(lost.with_durable(Durable::No));
        };
        about.flags.push(flags);
        let last = about.flags.len() - 1;
        let done = store.set_flags(found.location, flags);
        match &done {
            Ok(()) => {
                about.flags_written = last;
                self.changed(None);
            }
            Err(error) if error.durable() == Some(Durable::No) => {
                about.flags.pop();
            }
            Err(_) => {}
        }
        done
    }

    fn retain(&mut self) -> Done {
        let is_note = |about: &About| about.tried && about.is_live() && about.event.kind == 1;
        let mut going: Vec<usize> = (0..self.known.events.len()).collect();
        going.retain(|&number| is_note(&self.known.events[number]));
        going.pop();
        for &number in &going {
            self.known.events[number].flags.push(Flags::DELETED);
        }
        let done = self.store().retain(&Retention::new().bytes_max(1), &[]);
        for &number in &going {
            let about = &mut self.known.events[number];
            match &done {
                Ok(_) => about.flags_written = about.flags.len() - 1,
                Err(error) if error.durable() == Some(Durable::No) => drop(about.flags.pop()),
                Err(_) => {}
            }
        }
        assert_eq!(done?, going.len() as u64);
        self.changed(None);
        Ok(())
    }

    /// Compact everything: hidden events go, live events move to the end. The steps `beside` come while the store copies.
    fn compact(&mut self, beside: &str) -> Done {
        let store = self.store();
        let all = store.iter(Include::All, OnCorrupt::Raise)?;
        let places: Vec<_> = all.collect::<Result<_, _>>()?;
        let dry = store.compact(0.0, true)?;
        let numbered: Vec<_> =
            places.iter().map(|at| (self.known.number_of(&at.event).unwrap(), at)).collect();
        // The old segments go one step after the other.
        let mut stages = Vec::new();
        for done in 0..=dry.segments.len() {
            let (mut stay, mut moved) = (Vec::new(), Vec::new());
            for &(number, at) in &numbered {
                match dry.segments[..done].contains(&at.location.segment) {
                    false => stay.push(number),
                    true if at.flags.is_live() => moved.push(number),
                    true => self.known.events[number].leaving = true,
                }
            }
            stages.push((stay, moved));
        }
        let (first, going) = (self.known.events.len(), self.known.clone());
        let mut beside = beside.chars();
        let mut run = |_, _| beside.by_ref().try_for_each(|step| self.step(step));
        let compacted = store.compact_with(0.0, false, &mut run);
        let new: Vec<usize> = (first..self.known.events.len()).collect();
        for (stay, moved) in stages {
            // The first events appended meanwhile are in an old segment, the others before the copies.
            for split in 0..=new.len() {
                let (first, rest) = new.split_at(split);
                self.known.orders.push([&stay[..], rest, &moved, first].concat());
            }
        }
        for about in &mut self.known.events {
            about.leaving |= about.flags.last().is_some_and(|flags| !flags.is_live());
        }
        compacted?;
        if new.is_empty() {
            self.known.orders.drain(..self.known.orders.len() - 1);
        }
        if !dry.segments.is_empty() {
            // A checkpoint comes before the copies count.
            self.known.all_durable();
        }
        for (about, before) in self.known.events.iter_mut().zip(&going.events) {
            about.gone = before.leaving;
        }
        Ok(())
    }
}
