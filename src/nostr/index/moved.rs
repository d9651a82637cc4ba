//! The moves of a compaction, and the index during the moves.
//!
//! The new segments count at once, and the index gets the new places in portions, because all of
//! them at once would hold the store for seconds. Until the last portion a look-up turns an old
//! place into the new place. Meanwhile the stored coverage fits no store: after a crash, opening
//! builds a new index, and no reader copies the index.

use crate::nostr::bytes::event::{Id, Location};

/// The moves of a compaction. The old locations are in order.
#[derive(Debug, Default)]
pub struct Moved {
    /// Id, time and new location of the copied events.
    pub kept: Vec<(Id, u32, Location)>,
    /// The old locations of the copied events.
    pub from: Vec<Location>,
    /// The old locations of the dropped events.
    pub gone: Vec<Location>,
    /// The old segments, once the new segments count.
    pub old: Vec<u32>,
}

impl Moved {
    /// Add later moves.
    pub fn join(&mut self, later: Self) {
        self.kept.extend(later.kept);
        self.from.extend(later.from);
        self.gone.extend(later.gone);
    }

    /// The new location of a copied event.
    pub fn copy_of(&self, at: Location) -> Option<Location> {
        let found = self.from.binary_search(&at).ok()?;
        self.kept.get(found).map(|&(_, _, to)| to)
    }

    /// The location now of an event at a stored location; `None` for a dropped event.
    pub fn place_now(&self, at: Location) -> Option<Location> {
        match self.old.contains(&at.segment) {
            true => self.copy_of(at),
            false => Some(at),
        }
    }

    /// The last new segment.
    pub fn last(&self) -> u32 {
        self.kept.iter().map(|(_, _, to)| to.segment).max().unwrap_or_default()
    }
}
