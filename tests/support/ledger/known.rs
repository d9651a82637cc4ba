//! What is known of a ledger's events: which must be there, which may, and which must not.

use std::collections::BTreeSet;

/// The events of the first store are numbered from 0 on, those of the second from here on.
pub const SECOND_FROM: u64 = 1_000_000;

/// What is known of the events.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Their append returned, or failed without saying that they are absent.
    pub tried: BTreeSet<u64>,
    /// Their append returned: the death of the process does not take them.
    pub written: BTreeSet<u64>,
    /// A power cut does not take them either.
    pub durable: BTreeSet<u64>,
    /// Their removal was begun.
    pub leaving: BTreeSet<u64>,
    /// Their removal returned.
    pub removed: BTreeSet<u64>,
    /// The highest index that a fetch gave.
    pub shown: Option<u32>,
    /// Whether what is removed stays so.
    pub removal_is_durable: bool,
}

impl Known {
    /// What is known while a step goes on: what it appends may be there, and what it removes may not.
    pub fn during(before: &Self, after: &Self) -> Self {
        Self {
            written: before.written.clone(),
            durable: before.durable.clone(),
            removed: before.removed.clone(),
            shown: before.shown,
            ..after.clone()
        }
    }

    /// What is known after a power cut: what was found is on the disk, and nothing else is.
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

    /// Whether a ledger may hold these events, after the death of the process or a power cut.
    pub fn judge(&self, got: &[u64], power: bool) -> Result<(), String> {
        let there: BTreeSet<u64> = got.iter().copied().collect();
        // Two stores write beside each other; each one keeps its order.
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
