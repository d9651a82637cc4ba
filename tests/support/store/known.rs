//! The facts known of a store's events, without a look into its files: required, allowed and forbidden events after a
//! crash, with flags and order.

use std::collections::{BTreeMap, BTreeSet};

use deedbook::nostr::{Event, Flags, Id};

pub type Order = Vec<usize>;

#[derive(Clone, Debug)]
pub struct About {
    pub event: Event,
    /// The append was begun, and nothing reported the event as absent.
    pub tried: bool,
    /// The append returned: a crash of the process does not lose the event.
    pub written: bool,
    /// Nor does a power cut.
    pub durable: bool,
    /// The flags of the event, one after the other.
    pub flags: Vec<Flags>,
    /// The first of `flags` that a crash of the process may leave.
    pub flags_written: usize,
    /// The first of `flags` that a power cut may leave.
    pub flags_durable: usize,
    pub hidden_by: Option<usize>,
    /// A compaction that drops the event was begun.
    pub leaving: bool,
    pub gone: bool,
}

impl About {
    pub fn new(event: Event, flags: Flags) -> Self {
        Self {
            event,
            tried: true,
            written: false,
            durable: false,
            flags: vec![flags],
            flags_written: 0,
            flags_durable: 0,
            hidden_by: None,
            leaving: false,
            gone: false,
        }
    }

    pub fn is_live(&self) -> bool {
        self.tried && !self.leaving && self.flags.last().is_some_and(|flags| flags.is_live())
    }
}

#[derive(Clone, Debug, Default)]
pub struct Known {
    pub events: Vec<About>,
    pub orders: Vec<Order>,
}

pub type Got = (usize, Flags);

impl Known {
    /// The facts during a step: its changes may be done, or not.
    pub fn during(before: &Self, after: &Self) -> Self {
        let mut known = after.clone();
        for (about, was) in known.events.iter_mut().zip(&before.events) {
            (about.written, about.durable, about.gone) = (was.written, was.durable, was.gone);
            about.flags_written = was.flags_written;
            about.flags_durable = was.flags_durable;
        }
        for about in known.events.iter_mut().skip(before.events.len()) {
            (about.written, about.durable, about.gone) = (false, false, false);
            (about.flags_written, about.flags_durable) = (0, 0);
        }
        known.orders.extend(before.orders.clone());
        known
    }

    pub fn written(&mut self, from: usize) {
        for number in 0..self.events.len() {
            let about = &mut self.events[number];
            about.written |= number >= from;
            if about.hidden_by.is_some_and(|by| by >= from) {
                about.flags_written = about.flags.len() - 1;
            }
        }
    }

    /// A power cut loses nothing.
    pub fn all_durable(&mut self) {
        self.durable_until(self.events.len());
    }

    pub fn durable_until(&mut self, count: usize) {
        for about in self.events.iter_mut().take(count) {
            (about.durable, about.flags_durable) = (about.written, about.flags_written);
        }
    }

    pub fn number_of(&self, event: &Event) -> Result<usize, String> {
        let found = self.events.iter().position(|about| about.event == *event);
        found.ok_or_else(|| format!("event {} was never appended", event.id))
    }

    /// Whether a store may hold these events, after a crash of the process or a power cut.
    pub fn judge(&self, got: &[Got], power: bool) -> Result<(), String> {
        self.holds(got, |about| if power { about.durable } else { about.written })?;
        let there: BTreeMap<usize, Flags> = got.iter().copied().collect();
        for (&number, flags) in &there {
            let about = &self.events[number];
            let first = if power { about.flags_durable } else { about.flags_written };
            let allowed = &about.flags[first..];
            if !allowed.contains(flags) {
                return Err(format!("event {number} has {flags:?}, may have {allowed:?}"));
            }
            // An earlier flag by hand may leave the same.
            let before = allowed.split_last().is_some_and(|(_, before)| before.contains(flags));
            match about.hidden_by {
                Some(by) if !flags.is_live() && !before && self.is_lost(by, &there) => {
                    return Err(format!("event {number} is hidden by {by}, which is not there"));
                }
                Some(by) if flags.is_live() && there.contains_key(&by) => {
                    return Err(format!("event {number} counts, though {by} is there"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether a reader next to the writer may see these events: every written event, no untried event, in order.
    /// Changed flags reach the reader with the next sync.
    pub fn judge_beside(&self, got: &[Got]) -> Result<(), String> {
        self.holds(got, |about| about.written)
    }

    /// Whether `got` has every required event, each once and in order, and no forbidden event.
    fn holds(&self, got: &[Got], must: impl Fn(&About) -> bool) -> Result<(), String> {
        let numbers: Vec<usize> = got.iter().map(|(number, _)| *number).collect();
        let there: BTreeSet<usize> = numbers.iter().copied().collect();
        if there.len() != got.len() {
            return Err(format!("an event is there twice: {got:?}"));
        }
        for (number, about) in self.events.iter().enumerate() {
            let is_there = there.contains(&number);
            if is_there && (!about.tried || about.gone) {
                return Err(format!("event {number} should not be there: {got:?}"));
            }
            if !is_there && must(about) && !about.leaving {
                return Err(format!("event {number} is lost: {got:?}"));
            }
        }
        match self.orders.iter().any(|order| is_part_of(&numbers, order)) {
            true => Ok(()),
            false => Err(format!("order {numbers:?}, may be {:?}", self.orders)),
        }
    }

    /// Whether the event is gone, and no version that hides it is there. The last of three versions also hides the
    /// first.
    fn is_lost(&self, number: usize, there: &BTreeMap<usize, Flags>) -> bool {
        let about = &self.events[number];
        let is_hidden = |by| !self.is_lost(by, there);
        let is_version = about.event.kind != 5;
        !there.contains_key(&number)
            && !about.leaving
            && !about.hidden_by.is_some_and(|by| is_version && is_hidden(by))
    }

    /// The facts once these events were found: only they are on the disk.
    pub fn found(&self, got: &[Got]) -> Self {
        let mut known = self.clone();
        let there: BTreeMap<usize, Flags> = got.iter().copied().collect();
        for (number, about) in known.events.iter_mut().enumerate() {
            let flags = there.get(&number);
            about.tried = flags.is_some();
            (about.written, about.durable) = (about.tried, about.tried);
            about.flags = vec![flags.copied().unwrap_or_default()];
            (about.flags_written, about.flags_durable) = (0, 0);
            (about.leaving, about.gone) = (false, false);
        }
        known.orders = vec![got.iter().map(|(number, _)| *number).collect()];
        known
    }

    pub fn ids(&self) -> BTreeSet<Id> {
        self.events.iter().map(|about| about.event.id).collect()
    }
}

/// Whether `order` has all of `part`, in the same order.
fn is_part_of(part: &[usize], order: &[usize]) -> bool {
    let mut rest = order.iter();
    part.iter().all(|number| rest.any(|other| other == number))
}
