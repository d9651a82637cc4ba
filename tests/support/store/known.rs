//! What is known of a store's events, without a look into its files: which must be there after a
//! crash, which may, with which flags, in which order.

use std::collections::{BTreeMap, BTreeSet};

use deedbook::nostr::{Event, Flags, Id};

/// The numbers of events, in an order of theirs.
pub type Order = Vec<usize>;

/// What is known of one event.
#[derive(Clone, Debug)]
pub struct About {
    pub event: Event,
    /// Its append was begun, and nothing said that it is absent.
    pub tried: bool,
    /// Its append returned: the death of the process does not take it.
    pub written: bool,
    /// Nor does a power cut.
    pub durable: bool,
    /// The flags it had, one after the other.
    pub flags: Vec<Flags>,
    /// The first of them that the death of the process may leave.
    pub flags_written: usize,
    /// The first of them that a power cut may leave.
    pub flags_durable: usize,
    /// The version or the deletion request that hid it.
    pub hidden_by: Option<usize>,
    /// A compaction that drops it was begun.
    pub leaving: bool,
    /// It returned.
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

/// What is known of all.
#[derive(Clone, Debug, Default)]
pub struct Known {
    pub events: Vec<About>,
    /// The orders in which they may stand.
    pub orders: Vec<Order>,
}

/// An event as it was found.
pub type Got = (usize, Flags);

impl Known {
    /// What is known while a step goes on: what it does may have come about, and need not have.
    pub fn during(before: &Self, after: &Self) -> Self {
        let mut known = after.clone();
        for (about, was) in known.events.iter_mut().zip(&before.events) {
            (about.written, about.durable, about.gone) = (was.written, was.durable, was.gone);
            about.flags_written = was.flags_written;
            about.flags_durable = was.flags_durable;
        }
        for about in known.events.iter_mut().skip(before.events.len()) {
            (about.written, about.durable, about.gone) = (false, false, false);
        }
        known.orders.extend(before.orders.clone());
        known
    }

    /// What a step appended is there, and hid what it hides.
    pub fn written(&mut self, from: usize) {
        for number in 0..self.events.len() {
            let about = &mut self.events[number];
            about.written |= number >= from;
            if about.hidden_by.is_some_and(|by| by >= from) {
                about.flags_written = about.flags.len() - 1;
            }
        }
    }

    /// A power cut takes nothing of what is there.
    pub fn all_durable(&mut self) {
        self.durable_until(self.events.len());
    }

    /// The same of the first events.
    pub fn durable_until(&mut self, count: usize) {
        for about in self.events.iter_mut().take(count) {
            (about.durable, about.flags_durable) = (about.written, about.flags_written);
        }
    }

    /// The number of an event, which is as it was appended.
    pub fn number_of(&self, event: &Event) -> Result<usize, String> {
        let found = self.events.iter().position(|about| about.event == *event);
        found.ok_or_else(|| format!("event {} was never appended", event.id))
    }

    /// Whether a store may hold these events, after the death of the process or a power cut.
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
            // The same may be left of flags by hand that it had before.
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

    /// Whether a reader beside the writer may see these: all that was written, nothing that was never
    /// tried, in order. Flags come to it with the next sync.
    pub fn judge_beside(&self, got: &[Got]) -> Result<(), String> {
        self.holds(got, |about| about.written)
    }

    /// Whether these are all that must be there, each once and in order, and none that may not.
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

    /// What is known once this was found: it is on the disk, and nothing else is.
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

    /// The ids of all events that were ever tried.
    pub fn ids(&self) -> BTreeSet<Id> {
        self.events.iter().map(|about| about.event.id).collect()
    }
}

/// Whether all of one order stand in another, in its order.
fn is_part_of(part: &[usize], order: &[usize]) -> bool {
    let mut rest = order.iter();
    part.iter().all(|number| rest.any(|other| other == number))
}
