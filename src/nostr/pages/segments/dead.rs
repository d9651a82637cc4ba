//! The live count of a segment's dead bytes: the pages of deleted, replaced and expired events.
//!
//! All appends and all changes of flags go through the store, so the store counts along. The
//! manifest keeps the counts of the last checkpoint. After a crash, opening may know only that the
//! log set flags again, and not whether the manifest counted the events before. The count is then
//! unknown until a look at the segment.

use std::collections::BTreeMap;

use crate::nostr::bytes::event::{EventRef, Flags};
use crate::nostr::bytes::policy::expires_at;
use crate::nostr::pages::manifest::KeptDead;

/// The number of different expirations that a count keeps.
const TIMES_MAX: usize = 256;

/// The dead bytes of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dead {
    /// Bytes of deleted and replaced events, and of the others expired up to the second `at`.
    bytes: u64,
    at: u64,
    /// Bytes of the other events, by the second of their expiration.
    expiring: BTreeMap<u64, u64>,
    /// The second from which on the count lacks expirations.
    until: u64,
}

impl Dead {
    /// The count of a segment without events. Events expired by now count at once.
    pub fn none(now: u64) -> Self {
        Self { bytes: 0, at: now, expiring: BTreeMap::new(), until: u64::MAX }
    }

    /// Count an event whose pages have so many bytes.
    pub fn add(&mut self, event: &EventRef<'_>, bytes: u64) {
        self.add_with(event.flags, expires_at(event.kind, event.tags), bytes);
    }

    /// Count the new flags of an event.
    pub fn change(&mut self, event: &EventRef<'_>, flags: Flags, bytes: u64) {
        let expires = expires_at(event.kind, event.tags);
        if let Some(sum) = self.sum_of(event.flags, expires) {
            *sum = sum.saturating_sub(bytes);
        }
        self.add_with(flags, expires, bytes);
        if expires.is_some() {
            self.expiring.retain(|_, bytes| *bytes > 0);
        }
    }

    /// Add the count of another part of the segment, from the same second.
    pub fn join(&mut self, other: Self) {
        self.bytes += other.bytes;
        for (at, bytes) in other.expiring {
            *self.expiring.entry(at).or_default() += bytes;
        }
        self.until = self.until.min(other.until);
        self.expiring.split_off(&self.until);
        self.keep_few();
    }

    /// The dead bytes, unless the count lacks expirations.
    pub fn bytes(&mut self, now: u64) -> Option<u64> {
        if now >= self.until {
            return None;
        }
        let later = self.expiring.split_off(&now.saturating_add(1));
        let expired = std::mem::replace(&mut self.expiring, later);
        self.bytes += expired.values().sum::<u64>();
        self.at = self.at.max(now);
        Some(self.bytes)
    }

    /// The count for the manifest.
    pub fn kept(&mut self, now: u64) -> Option<KeptDead> {
        let bytes = self.bytes(now)?;
        let first = self.expiring.keys().next().copied();
        Some(KeptDead { bytes, at: self.at, until: first.unwrap_or(self.until) })
    }

    fn add_with(&mut self, flags: Flags, expires: Option<u64>, bytes: u64) {
        if let Some(sum) = self.sum_of(flags, expires) {
            *sum += bytes;
        }
        self.keep_few();
    }

    /// The sum that has an event's bytes.
    fn sum_of(&mut self, flags: Flags, expires: Option<u64>) -> Option<&mut u64> {
        let expires = expires.unwrap_or(u64::MAX);
        if !flags.is_live() || expires <= self.at {
            Some(&mut self.bytes)
        } else if expires < self.until {
            Some(self.expiring.entry(expires).or_default())
        } else {
            None
        }
    }

    /// Drop the latest expirations if there are too many: a stranger chooses them.
    fn keep_few(&mut self) {
        while self.expiring.len() > TIMES_MAX {
            let last = self.expiring.pop_last();
            self.until = last.map_or(self.until, |(at, _)| at);
        }
    }
}

impl From<KeptDead> for Dead {
    fn from(kept: KeptDead) -> Self {
        let KeptDead { bytes, at, until } = kept;
        Self { bytes, at, expiring: BTreeMap::new(), until }
    }
}
