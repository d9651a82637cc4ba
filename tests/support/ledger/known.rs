//! The facts known of a ledger's events: required, allowed and forbidden events.

use std::collections::BTreeSet;

/// The first store numbers its events from 0 on, the second from here on.
pub const SECOND_FROM: u64 = 1_000_000;

#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The append returned, or failed without reporting the events as absent.
    pub tried: BTreeSet<u64>,
    /// The append returned: a crash of the process does not lose the events.
    pub written: BTreeSet<u64>,
    /// A power cut does not lose the events, either.
    pub durable: BTreeSet<u64>,
    pub leaving: BTreeSet<u64>,
    pub removed: BTreeSet<u64>,
    pub shown: Option<u32>,
    pub removal_is_durable: bool,
}

impl Known {
    /// The facts during a step: its appends may be there, and its removals may be done.
    pub fn during(before: &Self, after: &Self) -> Self {
        Self {
            written: before.written.clone(),
            durable: before.durable.clone(),
            removed: before.removed.clone(),
            shown: before.shown,
            ..after.clone()
        }
    }

    /// The facts after a power cut: only the events found are on the disk.
    pub fn found(&self, got: &[u64]) -> Self {
        let there: BTreeSet<u64> = got.iter().copied().collect();
        Self {
            tried: there.clone(),
            written: there.clone(),
            durable: there,
            leaving: BTreeSet::new(),
            removed: BTreeSet::new(),
            ..*self
        }
    }

    pub fn judge(&self, got: &[u64], power: bool) -> Result<(), String> {
        let there: BTreeSet<u64> = got.iter().copied().collect();
        // Two stores write next to each other; each store keeps its order.
        let (second, first): (Vec<u64>, Vec<u64>) = got.iter().partition(|n| **n >= SECOND_FROM);
        if there.len() != got.len() || !first.is_sorted() || !second.is_sorted() {
            return Err(format!("twice, or out of order: {got:?}"));
        }
        if let Some(stranger) = got.iter().find(|number| !self.tried.contains(number)) {
            return Err(format!("event {stranger} was never appended: {got:?}"));
        }
        let must = if power { &self.durable } else { &self.written };
        let gone = |number: &&u64| !there.contains(number) && !self.leaving.contains(number);
        if let Some(lost) = must.iter().find(gone) {
            return Err(format!("event {lost} is lost: {got:?}"));
        }
        if (!power || self.removal_is_durable)
            && let Some(back) = got.iter().find(|number| self.removed.contains(number))
        {
            return Err(format!("event {back} was removed: {got:?}"));
        }
        Ok(())
    }
}
